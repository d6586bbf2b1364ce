//! Pictures: they follow the state, and nothing else.

use maka_cu_protocol::roles;

use super::*;

fn picture(desktop: &VirtualDesktop, title: &str) -> Bitmap {
    desktop
        .capture_window(window(desktop, title).key, &soon())
        .unwrap()
}

fn screen(desktop: &VirtualDesktop) -> Bitmap {
    desktop
        .capture_display(&DisplayId::try_new("1").unwrap(), &soon())
        .unwrap()
}

/// Columns and rows of the smallest rectangle outside of which two pictures are equal: left, top, right, bottom.
fn changed(before: &Bitmap, after: &Bitmap) -> Option<[u32; 4]> {
    assert_eq!(
        (before.width(), before.height()),
        (after.width(), after.height())
    );
    let bytes = before.layout().bytes();
    let pixels = before
        .pixels()
        .chunks(bytes)
        .zip(after.pixels().chunks(bytes))
        .enumerate();
    let mut found: Option<[u32; 4]> = None;
    for (index, _) in pixels.filter(|(_, (before, after))| before != after) {
        let index = u32::try_from(index).unwrap();
        let (x, y) = (index % before.width(), index / before.width());
        let [left, top, right, bottom] = found.unwrap_or([x, y, x, y]);
        found = Some([left.min(x), top.min(y), right.max(x), bottom.max(y)]);
    }
    found
}

#[test]
fn a_window_is_painted_edge_to_edge_and_the_same_each_time() {
    let desktop = built_in();
    for name in ["Notes", "Tips", "Settings"] {
        let bounds = window(&desktop, name).bounds;
        let first = picture(&desktop, name);
        assert_eq!(f64::from(first.width()), bounds.width());
        assert_eq!(f64::from(first.height()), bounds.height());
        assert!(
            changed(&first, &picture(&desktop, name)).is_none(),
            "{name}"
        );
    }
}

#[test]
fn a_written_value_changes_the_pixels_of_its_field_alone() {
    let desktop = built_in();
    let before = picture(&desktop, "Notes");
    let field = node(&desktop, "Notes", roles::TEXT_FIELD, "Title");
    write(&desktop, &field, "Something else").unwrap();
    let [left, top, right, bottom] = changed(&before, &picture(&desktop, "Notes"))
        .unwrap()
        .map(f64::from);
    let frame = field.frame.unwrap();
    assert!(left >= frame.x() && right < frame.x() + frame.width());
    assert!(top >= frame.y() && bottom < frame.y() + frame.height());
}

#[test]
fn a_password_shows_as_bullets_of_its_length() {
    let shown = |text: &str| {
        let desktop = built_in();
        write(
            &desktop,
            &node(&desktop, "Settings", roles::TEXT_FIELD, "Password"),
            text,
        )
        .unwrap();
        picture(&desktop, "Settings")
    };
    assert!(changed(&shown("hunter2"), &shown("secret!")).is_none());
    assert!(changed(&shown("hunter2"), &shown("hunter22")).is_some());
}

/// A window under another one is captured whole, and the display shows the one in front.
#[test]
fn a_covered_window_shows_its_own_content() {
    let desktop = built_in();
    let settings = window(&desktop, "Settings");
    let tips = window(&desktop, "Tips");
    assert!(tips.z_index > settings.z_index);
    let apply = node(&desktop, "Settings", roles::BUTTON, "Apply")
        .frame
        .unwrap();
    let corner = (
        settings.bounds.x() + apply.x() + apply.width(),
        settings.bounds.y() + apply.y() + apply.height(),
    );
    assert!(
        corner.0 > tips.bounds.x() && corner.1 > tips.bounds.y(),
        "the tips cover the button"
    );
    let covered = picture(&desktop, "Settings");
    let screen_before = screen(&desktop);
    press(&desktop, &node(&desktop, "Tips", roles::BUTTON, "Got it")).unwrap();
    assert!(changed(&covered, &picture(&desktop, "Settings")).is_none());
    assert!(
        changed(&screen_before, &screen(&desktop)).is_some(),
        "the display shows that the cover is gone"
    );
}

#[test]
fn a_display_shows_each_window_at_its_place() {
    let desktop = built_in();
    let shot = screen(&desktop);
    assert_eq!((shot.width(), shot.height()), (1280, 800));
    let notes = window(&desktop, "Notes").bounds;
    // Away from the corners, which are round on a display, the window in front is on the display as it was captured.
    let inner = |bitmap: &Bitmap, x: f64, y: f64| {
        let part = |number: f64| number as u32;
        bitmap
            .crop(
                part(x) + 20,
                part(y) + 20,
                part(notes.width()) - 40,
                part(notes.height()) - 40,
            )
            .unwrap()
    };
    let captured = picture(&desktop, "Notes");
    assert!(
        changed(
            &inner(&shot, notes.x(), notes.y()),
            &inner(&captured, 0.0, 0.0)
        )
        .is_none()
    );
}

#[test]
fn a_dense_display_has_twice_the_pixels() {
    let desktop = desktop(
        "[[displays]]\nid = \"1\"\nsize = [640, 400]\n[[displays]]\nid = \"2\"\nsize = [320, 400]\norigin = [640, 0]\n\
         scale = 2\n[[apps]]\napp_id = \"a.b\"\nname = \"A\"\nrunning = true\n[[apps.windows]]\nid = \"left\"\n\
         title = \"Left\"\nbounds = [500, 50, 200, 150]\n[[apps.windows]]\nid = \"right\"\ntitle = \"Right\"\n\
         bounds = [600, 220, 200, 150]",
    );
    let displays = desktop.displays(&soon()).unwrap();
    assert_eq!(displays[1].scale_factor, 2.0);
    assert_eq!(displays[1].source_bounds_px.width(), 640.0);
    let shown = |title: &str| {
        let display = window(&desktop, title).display_id.unwrap();
        (
            display.as_str().to_owned(),
            picture(&desktop, title).width(),
        )
    };
    assert_eq!(
        shown("Left"),
        ("1".to_owned(), 200),
        "most of it is on the first display"
    );
    assert_eq!(shown("Right"), ("2".to_owned(), 400));
    let second = desktop
        .capture_display(&displays[1].display_id, &soon())
        .unwrap();
    assert_eq!((second.width(), second.height()), (640, 800));
    let absent = DisplayId::try_new("3").unwrap();
    assert_eq!(
        desktop.capture_display(&absent, &soon()),
        Err(BackendError::CaptureFailed)
    );
}
