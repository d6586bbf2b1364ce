//! Pictures on disk (spec §4.8, §12.5 rows 57 and 61).

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::client::{Client, is_plain_file_inside};
use crate::desk::{self, SESSION};

const FORM: &str = "org.contract.Form";

fn observe_with_image(client: &mut Client, app: &str) -> Value {
    let mut params = desk::app_params(app);
    params["includeImage"] = json!(true);
    client.ok("observe", params)["snapshot"].clone()
}

/// Decodes the file that a reference names after checking what the reference says about it.
pub(crate) fn pixels(client: &Client, image: &Value) -> Vec<u8> {
    let path = image["path"].as_str().unwrap();
    assert!(is_plain_file_inside(path, client.images.path()), "{path}");
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(image["byteLength"], bytes.len());
    let digest: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(image["sha256"], format!("sha256:{digest}"));
    assert_eq!(image["format"], "png");
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .unwrap();
    let mut decoded = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut decoded).unwrap();
    assert_eq!(
        (&image["widthPx"], &image["heightPx"]),
        (&json!(info.width), &json!(info.height))
    );
    decoded
}

#[test]
fn a_picture_shows_the_window_and_dies_with_its_frame() {
    let mut client = desk::start();
    let first = observe_with_image(&mut client, FORM);
    let before = pixels(&client, &first["image"]);
    assert_eq!(first["image"]["scale"], 1);
    assert_eq!(
        first["image"]["widthPx"],
        first["target"]["bounds"]["width"]
    );
    assert_eq!(client.image_files(), 1);
    let mut params = desk::write_params(&first, "Entry", "something else");
    params["observeAfter"]["includeImage"] = json!(true);
    let result = client.ok("dispatch.element", params);
    assert_ne!(
        before,
        pixels(&client, &result["snapshot"]["image"]),
        "the write can be seen"
    );
    assert_eq!(client.image_files(), 1, "the spent frame's file is gone");
    observe_with_image(&mut client, FORM);
    assert_eq!(
        client.image_files(),
        1,
        "the superseded frame's file is gone"
    );
    client.ok("screen.capture", json!({ "session": SESSION }));
    let released = client.ok("session.end", json!({ "session": SESSION }))["released"].clone();
    assert_eq!(
        released,
        json!({ "snapshots": 1, "images": 2, "streams": 0 })
    );
    assert_eq!(client.image_files(), 0);
}

#[test]
fn a_covered_window_shows_its_own_content() {
    let mut client = desk::start();
    let covered = observe_with_image(&mut client, FORM);
    let covered_pixels = pixels(&client, &covered["image"]);
    // The suite's desktop has Cover above Form; in its desktop scope the picture shows Cover, else it must not.
    client.ok(
        "session.begin",
        json!({ "session": "desktop", "captureScope": "desktop" }),
    );
    let mut params = desk::app_params(FORM);
    params["session"] = json!("desktop");
    params["includeImage"] = json!(true);
    let on_desktop = client.ok("observe", params)["snapshot"].clone();
    assert_ne!(covered_pixels, pixels(&client, &on_desktop["image"]));
    assert_eq!(on_desktop["image"]["widthPx"], covered["image"]["widthPx"]);
    assert_eq!(
        on_desktop["windowDigest"], covered["windowDigest"],
        "the scope does not change digests"
    );
}

/// Spec §12.5 row 61.
#[test]
fn a_display_is_captured_by_name_or_not_at_all() {
    let mut client = desk::start();
    let main = client.ok("screen.capture", json!({ "session": SESSION }));
    assert_eq!(main["displayId"], "1");
    assert_eq!(
        (&main["image"]["widthPx"], &main["image"]["scale"]),
        (&json!(1280), &json!(1))
    );
    pixels(&client, &main["image"]);
    let second = client.ok(
        "screen.capture",
        json!({ "session": SESSION, "displayId": "2" }),
    );
    assert_eq!(second["displayId"], "2");
    assert_eq!(
        (&second["image"]["widthPx"], &second["image"]["scale"]),
        (&json!(1280), &json!(2)),
        "full density"
    );
    let files = client.image_files();
    let wrong = client.rpc_error(
        "screen.capture",
        json!({ "session": SESSION, "displayId": "3" }),
    );
    assert_eq!(wrong, (-32602, Some("displayId".to_owned())));
    assert_eq!(client.image_files(), files, "no file is written");
}

#[test]
fn the_budget_takes_the_oldest_files_and_refuses_what_never_fits() {
    let mut client = desk::start();
    let size = observe_with_image(&mut client, FORM)["image"]["byteLength"]
        .as_u64()
        .unwrap();
    let budget = format!("imageDirBudgetBytes={}", size + size / 2);
    let mut client = desk::start_with(&["--limit", &budget]);
    desk::begin(&mut client, "s-2");
    let first = observe_with_image(&mut client, FORM);
    let mut params = desk::app_params(FORM);
    params["session"] = json!("s-2");
    params["includeImage"] = json!(true);
    let second = client.ok("observe", params)["snapshot"].clone();
    let exists = |snapshot: &Value| {
        std::path::Path::new(snapshot["image"]["path"].as_str().unwrap()).exists()
    };
    assert!(!exists(&first) && exists(&second));
    client.ok("dispatch.element", desk::click_params(&first, "Set status"));

    let mut client = desk::start_with(&["--limit", "imageDirBudgetBytes=100"]);
    let mut params = desk::app_params(FORM);
    params["includeImage"] = json!(true);
    assert_eq!(
        client.refused("observe", params.clone()),
        "image_write_failed"
    );
    assert_eq!(
        client.refused("screen.capture", json!({ "session": SESSION })),
        "image_write_failed"
    );
    assert_eq!(client.image_files(), 0);
    // The action stands although its frame cannot be shown.
    let snapshot = desk::observe(&mut client, FORM);
    let mut params = desk::click_params(&snapshot, "Set status");
    params["observeAfter"]["includeImage"] = json!(true);
    let result = client.ok("dispatch.element", params);
    assert_eq!(result["postObservationError"]["code"], "image_write_failed");
    assert_eq!(result["effect"], "confirmed");
}
