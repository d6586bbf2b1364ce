//! Obligations: each kind is carried out before anything leaves, whoever asks for it (admit or review), or the call is
//! refused before anything is sent.

use std::{fs, io::Cursor};

use integration_tests::{
    client::{Client, click, element, on_element, reason},
    gateway::{Executor, GatewayOptions, GatewayProcess, Policy},
    policy::{Says, TestPolicy},
};
use maka_proto::v1::{
    self, CaptureScreenRequest, DispatchRequest, ImageAbsence, ImageDelivery, Outcome,
    SnapshotRequest, snapshot_request,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

const APP: &str = "org.example.Notes";

type Obligations = Vec<(&'static str, &'static str)>;

/// Admits this method under these obligations.
fn admitting(method: &'static str, obligations: Obligations) -> TestPolicy {
    TestPolicy::new("conditions").admits(method, Says::Yes(obligations))
}

/// Releases the answers of this method under these obligations.
fn releasing(method: &'static str, obligations: Obligations) -> TestPolicy {
    TestPolicy::new("conditions").reviews(method, Says::Yes(obligations))
}

async fn start(policies: Vec<TestPolicy>, script: Value) -> (GatewayProcess, Client, String) {
    let mut options = GatewayOptions::new(Executor::Fake(script));
    options.policy = Policy::Made(policies);
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    (gateway, agent, session_id)
}

async fn inline(agent: &Client, session_id: &str, app: &str) -> Result<v1::Snapshot, Status> {
    let request = SnapshotRequest {
        session_id: session_id.into(),
        image: ImageDelivery::Inline.into(),
        target: Some(snapshot_request::Target::AppId(app.into())),
        ..Default::default()
    };
    let answer = agent.computer_use.clone().snapshot(request).await?;
    Ok(answer.into_inner().snapshot.expect("a snapshot"))
}

async fn capture(agent: &Client, session_id: &str) -> v1::CaptureScreenResponse {
    let request = CaptureScreenRequest {
        session_id: session_id.into(),
        display_id: None,
        image: ImageDelivery::Inline.into(),
    };
    let answer = agent.computer_use.clone().capture_screen(request).await;
    answer.expect("a picture").into_inner()
}

fn save(session_id: &str, key: &str, frame: &v1::Snapshot) -> DispatchRequest {
    let save = element(frame, "AXButton", "Save");
    on_element(session_id, key, frame, save, click())
}

/// The pixels of a picture, three or four samples each.
struct Pixels {
    width: usize,
    samples: usize,
    bytes: Vec<u8>,
}

impl Pixels {
    fn of(png: &[u8]) -> Self {
        let decoder = png::Decoder::new(Cursor::new(png));
        let mut reader = decoder.read_info().expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("it fits")];
        let frame = reader.next_frame(&mut bytes).expect("pixels");
        Self {
            width: frame.width as usize,
            samples: frame.color_type.samples(),
            bytes,
        }
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * self.samples;
        [self.bytes[at], self.bytes[at + 1], self.bytes[at + 2]]
    }
}

/// The newest picture as the executor wrote it.
fn original(gateway: &GatewayProcess) -> Pixels {
    let files = fs::read_dir(gateway.folder().join("state/images")).expect("the images");
    let newest = files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|it| it == "png"))
        .max_by_key(|path| {
            let metadata = fs::metadata(path).expect("it is there");
            metadata.modified().expect("a time")
        });
    Pixels::of(&fs::read(newest.expect("a picture")).expect("its bytes"))
}

#[tokio::test]
async fn texts_are_taken_out_on_admit_and_on_review() {
    let admit = admitting(
        "observe",
        vec![
            ("redact", "/snapshot/target/title"),
            ("redact", "/snapshot/elements/secure/value"),
        ],
    )
    .admits(
        "window.list",
        Says::Yes(vec![("redact", "/windows/*/title")]),
    )
    .admits("apps.list", Says::Yes(vec![("redact", "/apps/*/name")]))
    .reviews(
        "observe",
        Says::Yes(vec![("redact", "/snapshot/elements/*/label")]),
    );
    let (gateway, agent, session_id) = start(vec![admit], json!({})).await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    assert_eq!(frame.target.as_ref().and_then(|it| it.title.clone()), None);
    let target = frame.target.as_ref().expect("a window");
    assert!(target.app_name.is_some(), "only what was named");
    let mut values = 0;
    for element in &frame.elements {
        assert_eq!(element.label, None);
        assert!(!element.digest.is_empty());
        if element.role == "AXSecureTextField"
            || element.subrole.as_deref() == Some("AXSecureTextField")
        {
            assert_eq!(element.value, None, "a secret");
        } else {
            values += usize::from(element.value.is_some());
        }
    }
    assert!(values > 0, "the others have theirs");
    let mut client = agent.computer_use.clone();
    let request = v1::ListWindowsRequest {
        session_id: session_id.clone(),
    };
    let windows = client
        .list_windows(request)
        .await
        .expect("a list")
        .into_inner();
    assert!(
        windows
            .windows
            .iter()
            .all(|it| it.title.is_none() && it.app_name.is_some())
    );
    let request = v1::ListAppsRequest {
        session_id: session_id.clone(),
        ..Default::default()
    };
    let apps = client
        .list_apps(request)
        .await
        .expect("a list")
        .into_inner();
    assert!(!apps.apps.is_empty() && apps.apps.iter().all(|it| it.name.is_none()));
    // The frame can be acted on all the same.
    let request = on_element(&session_id, "click", &frame, &frame.elements[3], click());
    let result = agent.dispatch(request).await.expect("a result");
    assert_eq!(result.outcome(), Outcome::Ok);
    gateway.stop().await;
}

#[tokio::test]
async fn pictures_are_left_out_on_admit_and_on_review() {
    let policies = [
        admitting("observe", vec![("drop-image", "")])
            .admits("screen.capture", Says::Yes(vec![("drop-image", "")]))
            .admits("dispatch.element", Says::Yes(vec![("drop-image", "")])),
        releasing("observe", vec![("drop-image", "")])
            .reviews("screen.capture", Says::Yes(vec![("drop-image", "")]))
            .reviews("dispatch.element", Says::Yes(vec![("drop-image", "")])),
    ];
    for policy in policies {
        let (gateway, agent, session_id) = start(vec![policy], json!({})).await;
        let frame = inline(&agent, &session_id, APP).await.expect("a frame");
        assert_eq!(frame.image, None);
        assert_eq!(frame.image_absence(), ImageAbsence::DroppedByPolicy);
        let result = agent.dispatch(save(&session_id, "click", &frame)).await;
        let result = result.expect("a result");
        assert_eq!((result.outcome(), result.withheld), (Outcome::Ok, false));
        let after = result.snapshot.expect("the frame after it");
        assert_eq!(after.image_absence(), ImageAbsence::DroppedByPolicy);
        let screen = capture(&agent, &session_id).await;
        assert_eq!(screen.image, None);
        assert_eq!(screen.image_absence(), ImageAbsence::DroppedByPolicy);
        gateway.stop().await;
    }
}

/// What is a place of a secret is black in every byte that leaves, inline and by reference, and everything else is as it
/// was.
#[tokio::test]
async fn places_of_secrets_are_painted_before_a_byte_leaves() {
    let policy = admitting("observe", vec![("redact", "/snapshot/image/secure")]).reviews(
        "screen.capture",
        Says::Yes(vec![("redact", "/image/rect/5/6/20/10")]),
    );
    let (gateway, agent, session_id) = start(vec![policy], json!({})).await;
    let frame = inline(&agent, &session_id, APP).await.expect("a frame");
    let before = original(&gateway);
    let image = frame.image.expect("a picture");
    assert_eq!(image.byte_length, image.data.len() as u64);
    let fetched = agent
        .read_image(&session_id, &image)
        .await
        .expect("the picture");
    assert!(fetched == image.data, "the same bytes by reference");
    let secret = frame
        .elements
        .iter()
        .find(|it| it.title.as_deref() == Some("Password"));
    let place = secret
        .and_then(|it| it.frame_window)
        .expect("the secret has a place");
    let after = Pixels::of(&image.data);
    assert_eq!(after.width, before.width);
    let mut painted = 0;
    for y in 0..200 {
        for x in 0..320 {
            let is_in = (place.x..place.x + place.width).contains(&f64::from(x))
                && (place.y..place.y + place.height).contains(&f64::from(y));
            let is_near = (place.x - 1.0..=place.x + place.width + 1.0).contains(&f64::from(x))
                && (place.y - 1.0..=place.y + place.height + 1.0).contains(&f64::from(y));
            let (x, y) = (x as usize, y as usize);
            if is_in {
                assert_eq!(after.at(x, y), [0; 3], "{x} {y}");
                painted += 1;
            } else if !is_near {
                assert_eq!(after.at(x, y), before.at(x, y), "{x} {y}");
            }
        }
    }
    assert!(painted > 0);

    let screen = capture(&agent, &session_id).await;
    let (before, after) = (
        original(&gateway),
        Pixels::of(&screen.image.expect("a picture").data),
    );
    assert_eq!(after.at(5, 6), [0; 3]);
    assert_eq!(after.at(24, 15), [0; 3]);
    assert_eq!(after.at(4, 6), before.at(4, 6));
    assert_eq!(after.at(25, 15), before.at(25, 15));
    gateway.stop().await;
}

/// The same on the embedded desktop, by role: every button is black, and not everything is.
#[tokio::test]
async fn elements_of_a_role_are_painted_on_the_virtual_desktop() {
    let mut options = GatewayOptions::new(Executor::Virtual);
    let policy = releasing("observe", vec![("redact", "/snapshot/image/role/AXButton")]);
    options.policy = Policy::Made(vec![policy]);
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = inline(&agent, &session_id, "org.maka.Notes")
        .await
        .expect("a frame");
    let image = frame.image.expect("a picture");
    let pixels = Pixels::of(&image.data);
    let buttons: Vec<_> = frame
        .elements
        .iter()
        .filter(|it| it.role == "AXButton")
        .collect();
    assert!(!buttons.is_empty());
    for button in buttons {
        let place = button.frame_window.expect("it has a place");
        let middle = |at: f64, size: f64| ((at + size / 2.0) * image.scale) as usize;
        let (x, y) = (middle(place.x, place.width), middle(place.y, place.height));
        assert_eq!(pixels.at(x, y), [0; 3], "{:?}", button.title);
    }
    assert!(
        pixels.bytes.iter().any(|byte| *byte > 128),
        "the rest is there"
    );
    gateway.stop().await;
}

/// A picture on which a secret may be somewhere is not shown: the tree is cut short.
#[tokio::test]
async fn a_picture_that_cannot_be_painted_for_sure_is_left_out() {
    let script = json!({
        "rules": [{"method": "observe", "steps": [{"patched": {"set": {"/snapshot/truncated/elements": true}}}]}],
    });
    let policy = admitting("observe", vec![("redact", "/snapshot/image/secure")]);
    let (gateway, agent, session_id) = start(vec![policy], script).await;
    let frame = inline(&agent, &session_id, APP).await.expect("a frame");
    assert_eq!(
        (frame.image, frame.image_absence),
        (None, ImageAbsence::DroppedByPolicy.into())
    );
    gateway.stop().await;
}

#[tokio::test]
async fn an_answer_is_no_longer_than_permitted() {
    let policy = admitting("window.list", vec![("max-bytes", "10")])
        .admits("dispatch.element", Says::Yes(vec![("max-bytes", "400")]))
        .reviews("screen.capture", Says::Yes(vec![("max-bytes", "200")]));
    let (gateway, agent, session_id) = start(vec![policy], json!({})).await;
    let request = v1::ListWindowsRequest {
        session_id: session_id.clone(),
    };
    let refused = agent.computer_use.clone().list_windows(request).await;
    let refused = refused.expect_err("too long");
    assert_eq!(reason(&refused), "executor.protocol/response_too_large");
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let result = agent.dispatch(save(&session_id, "click", &frame)).await;
    let result = result.expect("what happened is told in any case");
    assert_eq!(
        (result.outcome(), result.snapshot.is_none()),
        (Outcome::Ok, true)
    );
    let replayed = agent.dispatch(save(&session_id, "click", &frame)).await;
    let replayed = replayed.expect("the stored outcome");
    assert!(replayed.replayed && replayed.snapshot.is_none());
    let screen = capture(&agent, &session_id).await;
    assert_eq!(screen.image_absence(), ImageAbsence::DroppedByPolicy);
    gateway.stop().await;
}

/// Look, and do nothing: a frame is spent as soon as it is there, its picture can be fetched. An action that nothing may
/// follow on spends its frame also when the executor would not do it.
#[tokio::test]
async fn nothing_follows_where_nothing_may() {
    let script = json!({
        "rules": [{"method": "dispatch.element", "nth": 1, "steps": [{"refuse": "window_occluded"}]}],
    });
    let looking = admitting("observe", vec![("no-follow-up", "")]);
    let (gateway, agent, session_id) = start(vec![looking], script.clone()).await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    agent
        .read_image(&session_id, frame.image.as_ref().expect("a picture"))
        .await
        .expect("it may be looked at");
    let refused = agent.dispatch(save(&session_id, "click", &frame)).await;
    assert_eq!(
        reason(&refused.expect_err("spent")),
        "policy.maka/snapshot_spent"
    );
    assert_eq!(gateway.received_count("dispatch.element"), 0);
    gateway.stop().await;

    let acting = admitting("dispatch.element", vec![("no-follow-up", "")]);
    let (gateway, agent, session_id) = start(vec![acting], script).await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let result = agent.dispatch(save(&session_id, "one", &frame)).await;
    assert_eq!(result.expect("a result").outcome(), Outcome::Refused);
    let refused = agent.dispatch(save(&session_id, "two", &frame)).await;
    assert_eq!(
        reason(&refused.expect_err("spent")),
        "policy.maka/duplicate_action"
    );
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let result = agent
        .dispatch(save(&session_id, "three", &frame))
        .await
        .expect("a result");
    let after = result.snapshot.expect("the frame after it");
    let refused = agent.dispatch(save(&session_id, "four", &after)).await;
    assert_eq!(
        reason(&refused.expect_err("spent")),
        "policy.maka/snapshot_spent"
    );
    gateway.stop().await;
}

/// Permitted paths are sent where the executor can be told, and refused before anything is sent where it cannot.
#[tokio::test]
async fn paths_are_kept_to_or_nothing_is_sent() {
    let policy = || admitting("dispatch.element", vec![("only-paths", "ax_action")]);
    let (gateway, agent, session_id) = start(vec![policy()], json!({})).await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let refused = agent.dispatch(save(&session_id, "click", &frame)).await;
    let refused = refused.expect_err("the executor cannot be told");
    assert_eq!(reason(&refused), "policy.maka/obligation_failed");
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert_eq!(gateway.received_count("dispatch.element"), 0);
    gateway.stop().await;

    let script = json!({
        "capabilities": {"genericMethods": ["host.dispatch"]},
        "rules": [{"method": "host.dispatch", "steps": [{"refuse": "window_occluded"}]}],
    });
    let (gateway, agent, session_id) = start(vec![policy()], script).await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let result = agent.dispatch(save(&session_id, "click", &frame)).await;
    assert_eq!(result.expect("a result").outcome(), Outcome::Refused);
    let wire = gateway.wire();
    let sent = wire.iter().find(|line| line["method"] == "host.dispatch");
    assert!(
        sent.expect("it was sent")
            .to_string()
            .contains(r#""path":"ax_action""#),
        "{sent:?}"
    );
    assert_eq!(gateway.received_count("dispatch.element"), 0);
    gateway.stop().await;

    let other = TestPolicy::new("other").admits(
        "dispatch.element",
        Says::Yes(vec![("only-paths", "ax_select")]),
    );
    let (gateway, agent, session_id) = start(vec![policy(), other], json!({})).await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let refused = agent.dispatch(save(&session_id, "click", &frame)).await;
    assert_eq!(
        reason(&refused.expect_err("no path is left")),
        "policy.maka/obligation_conflict"
    );
    gateway.stop().await;

    // Too late to be kept to: what happened is told, what was seen is not.
    let late = releasing("dispatch.element", vec![("only-paths", "ax_select")]);
    let (gateway, agent, session_id) = start(vec![late], json!({})).await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let result = agent
        .dispatch(save(&session_id, "click", &frame))
        .await
        .expect("a result");
    assert_eq!((result.outcome(), result.withheld), (Outcome::Ok, true));
    assert_eq!(result.snapshot, None);
    gateway.stop().await;
}

/// A condition that means nothing for a method is a refusal, and its record says so; one on the log is carried out there.
#[tokio::test]
async fn what_cannot_be_carried_out_is_refused_before_anything_is_sent() {
    let policy = admitting("observe", vec![("redact", "/apps/*/name")])
        .admits(
            "apps.list",
            Says::Yes(vec![("redact", "/snapshot/target/title")]),
        )
        .reviews("window.list", Says::Yes(vec![("redact", "/nonsense")]));
    let (gateway, agent, session_id) = start(vec![policy], json!({})).await;
    let refused = agent
        .snapshot_app(&session_id, APP)
        .await
        .expect_err("not here");
    assert_eq!(reason(&refused), "policy.maka/obligation_failed");
    let mut client = agent.computer_use.clone();
    let request = v1::ListAppsRequest {
        session_id: session_id.clone(),
        ..Default::default()
    };
    let refused = client.list_apps(request).await.expect_err("not here");
    assert_eq!(reason(&refused), "policy.maka/obligation_failed");
    let request = v1::ListWindowsRequest {
        session_id: session_id.clone(),
    };
    let withheld = client.list_windows(request).await.expect_err("too late");
    assert_eq!(reason(&withheld), "policy.maka/obligation_failed");
    assert_eq!(
        gateway.received_count("observe") + gateway.received_count("apps.list"),
        0
    );
    let records = gateway.decisions();
    let failed = records
        .iter()
        .filter(|it| it["code"] == "obligation_failed");
    assert_eq!(failed.count(), 3);
    gateway.stop().await;

    let policy = admitting("dispatch.element", vec![("mark-sensitive", "")]);
    let (gateway, agent, session_id) = start(vec![policy], json!({})).await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    agent
        .dispatch(save(&session_id, "click", &frame))
        .await
        .expect("a result");
    let records = gateway.decisions();
    let decided = records
        .iter()
        .find(|it| it["hook"] == "admit-dispatch" && it["method"] == "dispatch.element")
        .expect("recorded");
    assert_eq!(decided["obligations"], json!(["mark-sensitive"]));
    assert_eq!(decided["facts"]["app"], Value::Null);
    assert!(decided["facts"]["hash"].is_string());
    gateway.stop().await;
}
