//! Points: only a pixel that the quoted picture has and a display shows can be acted on (B2, B6), and where it is on the
//! screen is told back.

use integration_tests::{
    client::on_point,
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::{
    CaptureScreenRequest, CaptureScreenResponse, ImageDelivery, Outcome, Path, PointerClick,
    dispatch_request,
};
use serde_json::json;

#[tokio::test]
async fn a_point_beside_the_picture_is_not_sent() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(json!({})))).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent
        .snapshot_app(&session_id, "org.example.Notes")
        .await
        .expect("a frame");
    let image = frame.image.as_ref().expect("a picture");
    let (width, height) = (f64::from(image.width_px), f64::from(image.height_px));
    let click = || dispatch_request::Action::PointerClick(PointerClick::default());
    let beside = [(width, 1.0), (1.0, height), (1e9, 1e9), (-1.0, 1.0)];
    for (index, point) in beside.into_iter().enumerate() {
        let request = on_point(&session_id, &index.to_string(), &frame, point, click());
        let refused = agent.dispatch(request).await;
        match refused {
            Ok(result) => {
                assert_eq!(result.outcome(), Outcome::Refused, "{point:?}");
                assert_eq!(
                    result.error.as_ref().expect("why").code,
                    "invalid_point",
                    "{point:?}"
                );
                assert_eq!(result.path(), Path::None, "{point:?}");
            }
            // What is no point at all is the message's fault.
            Err(status) => assert_eq!(status.code(), tonic::Code::InvalidArgument, "{point:?}"),
        }
    }
    assert_eq!(gateway.received_count("dispatch.point"), 0);

    // The frame is as good as before; the last pixel is one.
    let last = (width - 1.0, height - 1.0);
    let request = on_point(&session_id, "last", &frame, last, click());
    let done = agent.dispatch(request).await.expect("allowed");
    assert_eq!(done.outcome(), Outcome::Ok);
    let bounds = frame
        .target
        .expect("a target")
        .bounds_screen
        .expect("bounds");
    let screen = done.resolved_screen_point.expect("where it was");
    assert_eq!(
        (screen.x, screen.y),
        (
            bounds.x + last.0 / image.scale,
            bounds.y + last.1 / image.scale
        )
    );
    gateway.stop().await;
}

/// B4, B7: a point is told as a pixel of the quoted picture, with its space named, and comes out where it is on the screen:
/// window origin plus pixel by scale, whatever the scale and wherever the window. A hundred of them, each within one unit.
#[tokio::test]
async fn a_pixel_and_its_place_agree() {
    for (scale, x, y) in [(2.0, 400.0, 300.0), (1.0, 40.0, 60.0), (1.5, 0.0, 0.0)] {
        let (width, height) = (320.0, 200.0);
        let rules = json!([{"method": "observe", "steps": [{"patched": {"set": {
            "/snapshot/image/scale": scale,
            "/snapshot/image/widthPx": width * scale,
            "/snapshot/image/heightPx": height * scale,
            "/snapshot/target/bounds": {"x": x, "y": y, "width": width, "height": height},
        }}}]}]);
        let script = json!({ "rules": rules });
        let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await;
        let agent = gateway.agent();
        let session_id = agent.begin().await;
        for index in 0_u32..34 {
            let pixel = (
                f64::from(index * 37 % 320) * scale,
                f64::from(index * 53 % 200) * scale,
            );
            let frame = agent.snapshot_app(&session_id, "org.example.Notes").await;
            let frame = frame.expect("a frame");
            let click = dispatch_request::Action::PointerClick(PointerClick::default());
            let request = on_point(&session_id, &index.to_string(), &frame, pixel, click);
            let done = agent.dispatch(request).await.expect("allowed");
            assert_eq!(done.outcome(), Outcome::Ok, "{index}: {:?}", done.error);
            let screen = done.resolved_screen_point.expect("where it was");
            let off = |seen: f64, origin: f64, pixel: f64| (seen - origin - pixel / scale).abs();
            assert!(
                off(screen.x, x, pixel.0) <= 1.0 && off(screen.y, y, pixel.1) <= 1.0,
                "{pixel:?} at {scale}: {screen:?}"
            );
        }
        for line in gateway.wire() {
            if line["method"] == "dispatch.point" {
                assert_eq!(line["params"]["space"], "image_px");
                assert!(line["params"]["snapshotId"].is_string());
            }
        }
        gateway.stop().await;
    }
}

async fn captured(gateway: &GatewayProcess, session_id: &str) -> CaptureScreenResponse {
    let mut client = gateway.agent().computer_use;
    let request = CaptureScreenRequest {
        session_id: session_id.into(),
        image: ImageDelivery::Reference.into(),
        ..CaptureScreenRequest::default()
    };
    let answer = client.capture_screen(request).await;
    answer.expect("a picture").into_inner()
}

/// Which displays a picture shows is proved by the displays that a snapshot told of, or that the operator wrote down; else
/// nothing is said, and nothing guessed.
#[tokio::test]
async fn a_picture_shows_the_displays_that_it_can_be_proved_to() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let before = captured(&gateway, &session_id).await;
    assert!(before.displays.is_empty(), "no display is known yet");
    let windows = maka_proto::v1::ListWindowsRequest {
        session_id: session_id.clone(),
    };
    let mut client = agent.computer_use.clone();
    let windows = client.list_windows(windows).await.expect("windows");
    let window = windows.into_inner().windows[0].window.expect("its ids");
    let frame = agent.snapshot_window(&session_id, window).await;
    let known = frame.expect("a frame").displays;
    let after = captured(&gateway, &session_id).await;
    assert_eq!(after.displays.len(), 1);
    assert_eq!(after.displays[0].display_id, after.display_id);
    assert_eq!(
        after.displays[0].logical_bounds_screen,
        known[0].logical_bounds_screen
    );
    let folder = gateway.stop().await;

    // An operator's word counts, also where it makes the picture ambiguous.
    let mut options = GatewayOptions::new(Executor::Virtual);
    options.sections = format!(
        "[[displays]]\nid = \"{}\"\nx = 0.0\ny = 0.0\nwidth = 3.0\nheight = 3.0\nscale_factor = 1.0\n",
        after.display_id
    );
    let gateway = GatewayProcess::start_in(folder, options).await;
    gateway
        .wait_for(tonic_health::pb::health_check_response::ServingStatus::Serving)
        .await;
    let session_id = gateway.agent().begin().await;
    let doubtful = captured(&gateway, &session_id).await;
    assert!(doubtful.displays.is_empty() && doubtful.image.is_some());
    gateway.stop().await;
}
