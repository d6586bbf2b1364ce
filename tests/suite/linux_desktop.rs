//! A real desktop: Xvfb, D-Bus, AT-SPI, openbox, and real programs on it.

#![cfg(target_os = "linux")]

use std::time::Duration;

use integration_tests::{
    client::Client,
    desktop::{self, BIG_WINDOW, COVER, ZENITY_ENTRY},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE},
};
use maka_proto::v1::{LaunchAppRequest, Outcome, Snapshot, WindowRef};

use crate::clients::drive;

/// Starts a desktop, or fails with the words that say what to install.
async fn start() -> (desktop::LinuxDesktop, GatewayProcess) {
    let desktop = tokio::task::spawn_blocking(desktop::start)
        .await
        .expect("not cancelled")
        .unwrap_or_else(|why| panic!("{why}"));
    let gateway =
        GatewayProcess::serving(GatewayOptions::new(Executor::Linux(desktop.env()))).await;
    (desktop, gateway)
}

/// The Python client writes into a real `zenity --entry` and confirms it; the program prints the text.
#[tokio::test(flavor = "multi_thread")]
async fn python_drives_a_real_zenity() {
    let (desktop, gateway) = start().await;
    let printed = drive(&gateway, ZENITY_ENTRY, "Grüße, 世界").await;
    assert!(printed.contains("session ended"), "{printed}");
    // The window was gone; the process ends on its own time and its file with it.
    let written = tokio::time::timeout(PATIENCE, async {
        while desktop.answer().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(written.await.is_ok(), "zenity wrote nothing");
    assert_eq!(desktop.answer().trim_end(), "Grüße, 世界");
    gateway.stop().await;
    desktop.stop();
}

/// A window's picture is its own while another window covers it, and covering it changes no digest.
#[tokio::test(flavor = "multi_thread")]
async fn a_covered_window_is_captured_as_itself() {
    let (desktop, gateway) = start().await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let window = launch(&agent, &session_id, BIG_WINDOW).await;
    let (open, picture_open) = painted(&agent, &session_id, window, |pixels| {
        pixels.chunks(3).any(|pixel| pixel != &pixels[..3])
    })
    .await;

    let cover = launch(&agent, &session_id, COVER).await;
    let covered = agent
        .snapshot_window(&session_id, window)
        .await
        .expect("a frame");
    assert!(
        !covered.obscuring_rects_screen.is_empty(),
        "the cover lies above"
    );
    let picture_covered = agent
        .read_image(&session_id, covered.image.as_ref().expect("a picture"))
        .await;
    // Not by `assert_eq`, which would print millions of numbers.
    assert!(
        picture_open == decode(&picture_covered.expect("the picture")),
        "covered and uncovered pixels are the same"
    );
    assert_eq!(open.window_digest, covered.window_digest);

    // The cover is one colour.
    painted(&agent, &session_id, cover, |pixels| {
        pixels.chunks(3).all(|pixel| pixel == [0xc0, 0x1c, 0x28])
    })
    .await;
    gateway.stop().await;
    desktop.stop();
}

/// Observes a window until it shows what it is to show, twice the same: a program paints when it has the time.
async fn painted(
    agent: &Client,
    session_id: &str,
    window: WindowRef,
    is_shown: impl Fn(&[u8]) -> bool,
) -> (Snapshot, Vec<u8>) {
    let shown = async {
        let mut before = Vec::new();
        loop {
            let frame = agent
                .snapshot_window(session_id, window)
                .await
                .expect("a frame");
            let image = frame.image.as_ref().expect("a picture");
            let picture = agent.read_image(session_id, image).await;
            let pixels = decode(&picture.expect("the picture"));
            if is_shown(&pixels) && pixels == before {
                return (frame, pixels);
            }
            before = pixels;
        }
    };
    tokio::time::timeout(PATIENCE, shown)
        .await
        .expect("the window is painted")
}

/// 500 labels are 500 elements, none cut, each with a frame inside the window.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_of_500_elements_is_read_whole() {
    let (desktop, gateway) = start().await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let window = launch(&agent, &session_id, BIG_WINDOW).await;
    let frame = agent
        .snapshot_window(&session_id, window)
        .await
        .expect("a frame");
    let labels: Vec<_> = frame
        .elements
        .iter()
        .filter(|element| element.role == "AXStaticText")
        .collect();
    assert_eq!(labels.len(), 500);
    assert!(!frame.truncated.expect("always there").elements);
    assert!(labels.iter().all(|label| label.frame_window.is_some()));
    gateway.stop().await;
    desktop.stop();
}

async fn launch(agent: &Client, session_id: &str, app: &str) -> WindowRef {
    let request = LaunchAppRequest {
        session_id: session_id.into(),
        tool_call_id: app.into(),
        app: app.into(),
        wait_for_window_ms: Some(30_000),
        turn: None,
    };
    let answer = agent
        .computer_use
        .clone()
        .launch_app(request)
        .await
        .expect("answered")
        .into_inner();
    assert_eq!(answer.outcome(), Outcome::Ok, "{app}: {:?}", answer.error);
    let launched = answer.launched.expect("it started");
    WindowRef {
        pid: launched.pid,
        window_id: launched.windows.first().expect("its window").window_id,
    }
}

/// The RGB bytes of a PNG.
fn decode(bytes: &[u8]) -> Vec<u8> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .expect("a PNG");
    let mut pixels = vec![
        0;
        reader
            .output_buffer_size()
            .expect("a picture of reasonable size")
    ];
    let info = reader.next_frame(&mut pixels).expect("a frame");
    let channels = info.color_type.samples();
    pixels.truncate(info.buffer_size());
    pixels
        .chunks(channels)
        .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
        .collect()
}
