//! What the policy refuses before the executor hears of it: one table, over real gRPC. Each row has a code, a
//! fixed sentence and a decision id, and the executor's wire log proves that nothing was sent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use integration_tests::{
    client::{Client, click, element, metadata, on_element, reason, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE},
};
use maka_proto::v1::{
    self, DispatchRequest, ElementTarget, FocusTarget, GetStatusRequest, Outcome, Path, PointSpace,
    PointTarget, PointerClick, PressKey, SecondaryAction, Snapshot, Tier, dispatch_request,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;
use tonic::{Code, Status};
use tonic_health::pb::health_check_response::ServingStatus;

const APP: &str = "org.example.Notes";
const OTHER_DIGEST: &str =
    "sha256:00000000000000000000000000000000000000000000000000000000deadbeef";

/// Everything that the rows quote from.
struct Fixture {
    gateway: GatewayProcess,
    agent: Client,
    session_id: String,
    /// A frame that may be acted on.
    live: Snapshot,
}

impl Fixture {
    async fn start(script: serde_json::Value) -> Self {
        let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await;
        let agent = gateway.agent();
        let session_id = agent.begin().await;
        let live = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        Self {
            gateway,
            agent,
            session_id,
            live,
        }
    }

    /// A click on Save of `frame`, which would be allowed if the frame were good.
    fn press(&self, key: &str, frame: &Snapshot) -> DispatchRequest {
        on_element(
            &self.session_id,
            key,
            frame,
            element(frame, "AXButton", "Save"),
            click(),
        )
    }

    /// Dispatches `request`, which must be refused as `code` with `status`, and prove that nothing was sent.
    async fn refused(&self, row: &str, request: DispatchRequest, code: &str, expected: Code) {
        let before = self.gateway.wire().len();
        let status = match self.agent.dispatch(request).await {
            Ok(result) => panic!("{row}: not refused: {result:?}"),
            Err(status) => status,
        };
        assert_refusal(row, &status, code, expected);
        assert_eq!(
            self.gateway.wire().len(),
            before,
            "{row}: the executor received something"
        );
        let decision_id = metadata(&status, "decision_id").expect("checked above");
        let record = self
            .gateway
            .decisions()
            .into_iter()
            .find(|record| record["id"] == decision_id.as_str())
            .unwrap_or_else(|| panic!("{row}: no record of {decision_id}"));
        assert_eq!(record["effective"], "deny", "{row}");
        assert_eq!(record["code"], code, "{row}");
    }
}

fn assert_refusal(row: &str, status: &Status, code: &str, expected: Code) {
    assert_eq!(
        reason(status),
        format!("policy.maka/{code}"),
        "{row}: {status}"
    );
    assert_eq!(status.code(), expected, "{row}");
    let sentence = status.message();
    assert!(
        sentence.len() > 20 && sentence.len() <= 200,
        "{row}: a sentence: {sentence}"
    );
    assert!(
        metadata(status, "decision_id").is_some_and(|id| !id.is_empty()),
        "{row}: a decision id"
    );
    assert!(metadata(status, "retry").is_some(), "{row}: when to repeat");
}

/// Rows that need nothing but a live frame. A1, A3 and their neighbours: a token, a digest or a frame that is
/// not exactly the recorded one is refused with a code of its own, never guessed at.
#[tokio::test]
async fn a_claim_that_does_not_match_the_record_is_refused() {
    let fixture = Fixture::start(json!({})).await;
    let window_digest = fixture.live.window_digest.clone();
    let press = |change: &dyn Fn(&mut DispatchRequest)| {
        let mut request = fixture.press("to be replaced", &fixture.live);
        change(&mut request);
        request
    };
    let element_target = |request: &mut DispatchRequest, change: &dyn Fn(&mut ElementTarget)| {
        let Some(dispatch_request::Target::Element(target)) = &mut request.target else {
            panic!("an element target")
        };
        change(target);
    };
    let point = |request: &mut DispatchRequest, expect_window_digest: &str| {
        request.tier = Tier::CoordinateBackground.into();
        request.target = Some(dispatch_request::Target::Point(PointTarget {
            x: 10.0,
            y: 10.0,
            space: PointSpace::ImagePx.into(),
            expect_window_digest: expect_window_digest.into(),
            ..Default::default()
        }));
        request.action = Some(dispatch_request::Action::PointerClick(
            PointerClick::default(),
        ));
    };
    let rows: Vec<(&str, DispatchRequest, &str, Code)> = vec![
        (
            "a path that is illegal for its tier",
            press(&|request| request.path = Some(Path::CgEventPid.into())),
            "tier_path_mismatch",
            Code::PermissionDenied,
        ),
        (
            "a tier that no path serves",
            press(&|request| {
                request.tier = Tier::SemanticBackground.into();
                request.path = Some(Path::AxAction.into());
            }),
            "tier_path_mismatch",
            Code::PermissionDenied,
        ),
        (
            "the global pointer without the handshake's permission",
            press(&|request| {
                point(request, &window_digest);
                request.path = Some(Path::CgEventGlobal.into());
            }),
            "global_pointer_forbidden",
            Code::PermissionDenied,
        ),
        (
            "a snapshot that nobody took",
            press(&|request| {
                request.snapshot_id = "snap_ffffffffffffffffffffffffffffffff_9".into()
            }),
            "snapshot_unknown",
            Code::FailedPrecondition,
        ),
        (
            "no snapshot at all",
            press(&|request| request.snapshot_id = String::new()),
            "anchor_missing",
            Code::FailedPrecondition,
        ),
        (
            "no target at all",
            press(&|request| request.target = None),
            "anchor_missing",
            Code::FailedPrecondition,
        ),
        (
            "an element without its digest",
            press(&|request| {
                element_target(request, &|target| target.expect_digest = String::new());
            }),
            "anchor_missing",
            Code::FailedPrecondition,
        ),
        (
            "an element with a foreign digest",
            press(&|request| {
                element_target(request, &|target| {
                    target.expect_digest = OTHER_DIGEST.into()
                });
            }),
            "element_digest_mismatch",
            Code::FailedPrecondition,
        ),
        (
            "an element that is not in the frame",
            press(&|request| element_target(request, &|target| target.token = "nope".into())),
            "element_unknown",
            Code::FailedPrecondition,
        ),
        (
            "a point without the window's digest",
            press(&|request| point(request, "")),
            "anchor_missing",
            Code::FailedPrecondition,
        ),
        (
            "a point with another window's digest",
            press(&|request| point(request, OTHER_DIGEST)),
            "window_digest_mismatch",
            Code::FailedPrecondition,
        ),
        (
            "a key without a focus token",
            press(&|request| {
                request.tier = Tier::CoordinateBackground.into();
                request.target = Some(dispatch_request::Target::Focus(FocusTarget::default()));
                request.action = Some(dispatch_request::Action::PressKey(PressKey {
                    key: "Return".into(),
                    modifiers: vec![],
                }));
            }),
            "anchor_missing",
            Code::FailedPrecondition,
        ),
        (
            "a secondary action that the element does not offer",
            press(&|request| {
                request.action = Some(dispatch_request::Action::SecondaryAction(SecondaryAction {
                    action: "increment".into(),
                }));
            }),
            "action_not_offered",
            Code::FailedPrecondition,
        ),
        (
            "a text for a password field",
            press(&|request| {
                let password = element(&fixture.live, "AXTextField", "Password");
                *request = on_element(
                    &request.session_id,
                    "x",
                    &fixture.live,
                    password,
                    set_value("hunter2"),
                );
            }),
            "secure_field",
            Code::PermissionDenied,
        ),
    ];
    for (index, (row, mut request, code, expected)) in rows.into_iter().enumerate() {
        request.tool_call_id = format!("row-{index}");
        fixture.refused(row, request, code, expected).await;
    }
    // None of them used the frame up.
    let pressed = fixture
        .agent
        .dispatch(fixture.press("good", &fixture.live))
        .await
        .expect("allowed");
    assert_eq!(pressed.outcome(), Outcome::Ok);
    fixture.gateway.stop().await;
}

/// With the synthetic input key off, keys and points are refused and the refusal names the key.
#[tokio::test]
async fn synthetic_input_is_refused_where_the_operator_has_not_turned_it_on() {
    let mut options = GatewayOptions::new(Executor::Fake(json!({})));
    options.synthetic_input = false;
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let mut request = on_element(
        &session_id,
        "key",
        &frame,
        element(&frame, "AXButton", "Save"),
        click(),
    );
    request.tier = Tier::CoordinateBackground.into();
    request.target = Some(dispatch_request::Target::Point(PointTarget {
        x: 1.0,
        y: 1.0,
        space: PointSpace::ImagePx.into(),
        expect_window_digest: frame.window_digest.clone(),
        ..Default::default()
    }));
    request.action = Some(dispatch_request::Action::PointerClick(
        PointerClick::default(),
    ));
    let before = gateway.wire().len();
    let status = agent.dispatch(request).await.expect_err("refused");
    assert_refusal(
        "synthetic input",
        &status,
        "synthetic_input_off",
        Code::PermissionDenied,
    );
    assert_eq!(
        metadata(&status, "operator_key").as_deref(),
        Some("input.synthetic")
    );
    assert_eq!(gateway.wire().len(), before);
    gateway.stop().await;
}

/// A frame dies with its use; the same action again is told apart from another action.
#[tokio::test]
async fn a_spent_frame_is_refused_and_a_duplicate_is_called_one() {
    let fixture = Fixture::start(json!({})).await;
    let mut first = fixture.press("first", &fixture.live);
    first.observe_after = None;
    let pressed = fixture.agent.dispatch(first).await.expect("allowed");
    assert_eq!(pressed.outcome(), Outcome::Ok);
    let mut same = fixture.press("same", &fixture.live);
    same.observe_after = None;
    fixture
        .refused(
            "the same action",
            same,
            "duplicate_action",
            Code::FailedPrecondition,
        )
        .await;
    let name = element(&fixture.live, "AXTextField", "Name");
    let other = on_element(
        &fixture.session_id,
        "other",
        &fixture.live,
        name,
        set_value("x"),
    );
    fixture
        .refused(
            "another action",
            other,
            "snapshot_spent",
            Code::FailedPrecondition,
        )
        .await;
    fixture.gateway.stop().await;
}

/// A1: a later look at the same window kills the earlier frame, whatever its tokens are.
#[tokio::test]
async fn a_superseded_frame_is_refused() {
    let fixture = Fixture::start(json!({})).await;
    fixture
        .agent
        .snapshot_app(&fixture.session_id, APP)
        .await
        .expect("a frame");
    let request = fixture.press("superseded", &fixture.live);
    fixture
        .refused(
            "superseded",
            request,
            "snapshot_superseded",
            Code::FailedPrecondition,
        )
        .await;
    fixture.gateway.stop().await;
}

#[tokio::test]
async fn an_expired_frame_is_refused() {
    let fixture = Fixture::start(json!({"limits": {"snapshotTtlMs": 1}})).await;
    // The event is the wall clock passing the moment that the frame itself names.
    let expires =
        Duration::from_millis(fixture.live.expires_unix_ms.try_into().expect("after 1970"));
    while SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        <= expires
    {
        tokio::task::yield_now().await;
    }
    let request = fixture.press("expired", &fixture.live);
    fixture
        .refused(
            "expired",
            request,
            "snapshot_expired",
            Code::FailedPrecondition,
        )
        .await;
    fixture.gateway.stop().await;
}

#[tokio::test]
async fn an_evicted_frame_is_refused() {
    let script = json!({
        "limits": {"snapshotsPerSession": 1},
        "rules": [{
            "method": "observe",
            "nth": 2,
            "steps": [{"patched": {"set": {"/snapshot/target/windowId": 319}}}],
        }],
    });
    let fixture = Fixture::start(script).await;
    let other = fixture
        .agent
        .snapshot_app(&fixture.session_id, APP)
        .await
        .expect("a frame");
    let window = |frame: &Snapshot| frame.target.as_ref().and_then(|target| target.window);
    assert_ne!(window(&other), window(&fixture.live));
    let request = fixture.press("evicted", &fixture.live);
    fixture
        .refused(
            "evicted",
            request,
            "snapshot_evicted",
            Code::FailedPrecondition,
        )
        .await;
    fixture.gateway.stop().await;
}

#[tokio::test]
async fn a_frame_of_another_session_is_refused() {
    let mut fixture = Fixture::start(json!({})).await;
    fixture.session_id = fixture.agent.begin().await;
    let request = fixture.press("foreign", &fixture.live);
    fixture
        .refused(
            "foreign",
            request,
            "snapshot_foreign_session",
            Code::FailedPrecondition,
        )
        .await;
    fixture.gateway.stop().await;
}

/// A8: frames die with the executor that took them, although the next one would accept the same id.
#[tokio::test]
async fn a_frame_of_an_earlier_generation_is_refused() {
    let fixture = Fixture::start(json!({})).await;
    let mut client = fixture.agent.computer_use.clone();
    let status = client
        .get_status(GetStatusRequest {})
        .await
        .expect("status")
        .into_inner();
    let pid = status.executor.expect("ready").pid;
    kill(
        Pid::from_raw(pid.try_into().expect("a pid")),
        Signal::SIGKILL,
    )
    .expect("it lives");
    let renewed = tokio::time::timeout(PATIENCE, async {
        loop {
            fixture.gateway.wait_for(ServingStatus::Serving).await;
            let now = client
                .get_status(GetStatusRequest {})
                .await
                .expect("status")
                .into_inner();
            if now.generation > status.generation
                && now.executor_state() == v1::ExecutorState::Ready
            {
                return;
            }
        }
    });
    assert!(renewed.await.is_ok(), "no new executor came");
    let request = fixture.press("earlier", &fixture.live);
    fixture
        .refused(
            "earlier",
            request,
            "snapshot_other_generation",
            Code::FailedPrecondition,
        )
        .await;
    fixture.gateway.stop().await;
}
