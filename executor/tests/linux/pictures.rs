//! Pictures of windows.

use std::collections::HashSet;

use maka_cu::backend::Backend as _;
use maka_cu::backend::bitmap::Bitmap;
use maka_cu::backend::linux::LinuxDesktop;

use crate::stage::{Program, eventually, inside, soon, window_of};

#[test]
fn a_covered_window_is_captured_whole() {
    inside("pictures::a_covered_window_is_captured_whole", || {
        let _below = Program::start(
            "zenity",
            &["--question", "--title=Below", "--text=Is it seen?"],
        );
        let desktop = LinuxDesktop::open().unwrap();
        let below = window_of(&desktop, "Below");
        let _above = Program::start(
            "zenity",
            &[
                "--text-info",
                "--title=Above",
                "--width=1200",
                "--height=760",
            ],
        );
        let above = window_of(&desktop, "Above");
        eventually("the second window covers the first", || {
            let windows = desktop.windows(&soon()).unwrap();
            (windows[0].key == above.key && windows[0].on_screen).then_some(())
        });
        // The first capture ever of a window that is covered already: the case that used to be blank.
        let first = desktop.capture_window(below.key, &soon()).unwrap();
        assert_eq!(
            (f64::from(first.width()), f64::from(first.height())),
            (below.bounds.width(), below.bounds.height())
        );
        assert!(colors(&first) > 20, "{} colors", colors(&first));
        // Uncovered, the screen itself shows the same pixels.
        drop(_above);
        eventually("the cover is gone", || {
            desktop
                .windows(&soon())
                .unwrap()
                .iter()
                .all(|window| window.key != above.key)
                .then_some(())
        });
        let displays = desktop.displays(&soon()).unwrap();
        eventually("the uncovered window looks as it was captured", || {
            let screen = desktop
                .capture_display(&displays[0].display_id, &soon())
                .unwrap();
            let now = desktop.capture_window(below.key, &soon()).unwrap();
            let bounds = below.bounds;
            let shown = screen
                .crop(
                    bounds.x() as u32,
                    bounds.y() as u32,
                    bounds.width() as u32,
                    bounds.height() as u32,
                )
                .unwrap();
            // The dialog regains the focus and draws its default button anew, so a few pixels may differ from then.
            (shown == now && difference(&first, &now) < 0.2).then_some(())
        });
    });
}

fn colors(bitmap: &Bitmap) -> usize {
    bitmap
        .pixels()
        .chunks_exact(3)
        .map(<[u8]>::to_vec)
        .collect::<HashSet<_>>()
        .len()
}

fn difference(left: &Bitmap, right: &Bitmap) -> f64 {
    let pairs = left
        .pixels()
        .chunks_exact(3)
        .zip(right.pixels().chunks_exact(3));
    let other = pairs.filter(|(left, right)| left != right).count();
    other as f64 / (f64::from(left.width()) * f64::from(left.height()))
}
