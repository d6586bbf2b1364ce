//! Approvals: a call that a policy wants a person to look at waits for one, is let through once, and dies with whatever it
//! was given for. Nothing reaches the executor before.

use std::time::Duration;

use integration_tests::{
    client::{Client, click, element, metadata, on_element, reason, set_value},
    events::Watching,
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE, Policy, Role},
    policy::{Says, TestPolicy},
    tools,
};
use maka_proto::v1::{
    self, ApprovalEnd, ApprovalResolution, ApprovalState, DispatchRequest, ListApprovalsRequest,
    Outcome, ReportHostEventRequest, ResolveApprovalRequest, RestartExecutorRequest, WatchRequest,
    event::Event as What,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

const APP: &str = "org.example.Notes";

/// A gateway whose policy wants an approval for actions on elements and for launches.
fn options() -> GatewayOptions {
    let mut options = GatewayOptions::new(Executor::Fake(json!({})));
    let policy = TestPolicy::new("asking")
        .admits("dispatch.element", Says::Third(vec![]))
        .admits("apps.launch", Says::Third(vec![]))
        .admits("screen.capture", Says::Third(vec![]));
    options.policy = Policy::Made(vec![policy]);
    // A second operator, so that two can race, and one who also drives.
    for name in ["second", "driver"] {
        let digest = maka_cu_protocol::ids::Digest::of(token(name).as_bytes()).to_hex();
        options.sections += &format!(
            "[[principals]]\nname = \"{name}\"\nrole = \"operator\"\ntoken_sha256 = \"{digest}\"\n"
        );
    }
    options
}

fn token(name: &str) -> String {
    format!("canary-token-{name}-77c2")
}

fn client(gateway: &GatewayProcess, name: &str) -> Client {
    Client::new(gateway.channel(), Some(&token(name)))
}

/// Somebody is there to approve, as long as what is returned lives.
async fn approver(of: &Client) -> Watching {
    let request = WatchRequest {
        session_id: None,
        approver: true,
    };
    let answer = of.events.clone().watch(request).await;
    let mut watching = Watching::new(answer.expect("an operator may").into_inner());
    watching.next().await;
    watching
}

async fn resolve(
    of: &Client,
    approval_id: &str,
    resolution: ApprovalResolution,
) -> Result<v1::Approval, Status> {
    let request = ResolveApprovalRequest {
        approval_id: approval_id.into(),
        resolution: resolution.into(),
    };
    let answer = of.operator.clone().resolve_approval(request).await?;
    Ok(answer.into_inner().approval.expect("an approval"))
}

async fn list(of: &Client) -> v1::ListApprovalsResponse {
    let request = ListApprovalsRequest::default();
    let answer = of.operator.clone().list_approvals(request).await;
    answer.expect("a list").into_inner()
}

fn approval_id(status: &Status) -> String {
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    assert_eq!(reason(status), "policy.maka/approval_required", "{status}");
    assert_eq!(metadata(status, "retry").as_deref(), Some("after_approval"));
    assert_eq!(metadata(status, "code").as_deref(), Some("test.ask"));
    assert_eq!(status.message(), "The test wants a person to look.");
    metadata(status, "approval_id").expect("somebody was asked")
}

/// A session with a click on Save that needs approval.
struct Asking {
    gateway: GatewayProcess,
    agent: Client,
    operator: Client,
    watching: Watching,
    session_id: String,
    click: DispatchRequest,
}

impl Asking {
    async fn start(options: GatewayOptions) -> Self {
        let gateway = GatewayProcess::serving(options).await;
        let agent = gateway.agent();
        let operator = gateway.client(Role::Operator);
        let watching = approver(&operator).await;
        let session_id = agent.begin().await;
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let save = element(&frame, "AXButton", "Save");
        let click = on_element(&session_id, "click", &frame, save, click());
        Self {
            gateway,
            agent,
            operator,
            watching,
            session_id,
            click,
        }
    }

    async fn click(&self) -> Result<v1::DispatchResult, Status> {
        self.agent.dispatch(self.click.clone()).await
    }

    /// Asks for the click and approves it.
    async fn approved(&self) -> String {
        let id = approval_id(&self.click().await.expect_err("it needs approval"));
        let approval = resolve(&self.operator, &id, ApprovalResolution::Approve).await;
        assert_eq!(approval.expect("approved").state(), ApprovalState::Approved);
        id
    }

    async fn ended(&mut self, id: &str) -> ApprovalEnd {
        self.watching
            .until(|event| match event {
                What::ApprovalEnded(it) if it.approval_id == id => Some(it.reason()),
                _ => None,
            })
            .await
    }

    fn clicks(&self) -> usize {
        self.gateway.received_count("dispatch.element")
    }
}

/// The whole life: asked, shown, approved, repeated with the same key, let through once, recorded and counted.
#[tokio::test]
async fn an_approved_action_is_let_through_once() {
    let mut asking = Asking::start(options()).await;
    let refused = asking.click().await.expect_err("it needs approval");
    let id = approval_id(&refused);
    let shown = asking
        .watching
        .until(|event| match event {
            What::Approval(approval) => Some(approval.clone()),
            _ => None,
        })
        .await;
    assert_eq!(shown.approval_id, id);
    assert_eq!(shown.state(), ApprovalState::Waiting);
    let target = shown.element.as_ref().expect("the button");
    assert_eq!((target.role.as_str(), target.secure), ("AXButton", false));
    assert_eq!(
        (
            shown.kind.as_str(),
            shown.method.as_str(),
            shown.app_id.as_str()
        ),
        ("click", "dispatch.element", APP)
    );
    assert_eq!(
        (shown.principal.as_str(), shown.tier()),
        ("agent", v1::Tier::Ax)
    );
    assert_eq!(shown.tool_call_id, "click");
    assert_eq!(shown.reasons.len(), 1);
    assert_eq!(shown.reasons[0].code, "test.ask");
    assert!(shown.expires_unix_ms > shown.asked_unix_ms);
    assert_eq!(list(&asking.operator).await.approvals, [shown]);
    // Asking again asks nobody anew.
    assert_eq!(approval_id(&asking.click().await.expect_err("still")), id);
    assert_eq!(asking.clicks(), 0);

    let approved = resolve(&asking.operator, &id, ApprovalResolution::Approve).await;
    let approved = approved.expect("approved");
    assert_eq!(approved.decided_by, "operator");
    // What was approved can be tried before it is done, which uses nothing up.
    let dry = DispatchRequest {
        dry_run: true,
        tool_call_id: "dry".into(),
        ..asking.click.clone()
    };
    assert!(asking.agent.dispatch(dry).await.expect("allowed").dry_run);
    let result = asking.click().await.expect("approved");
    assert_eq!((result.outcome(), result.replayed), (Outcome::Ok, false));
    assert_eq!(asking.ended(&id).await, ApprovalEnd::Used);
    assert!(asking.click().await.expect("the stored outcome").replayed);
    assert_eq!(asking.clicks(), 1);
    let listed = list(&asking.operator).await;
    assert!(listed.approvals.is_empty());
    let counts = listed.counts.expect("counts");
    assert_eq!((counts.asked, counts.approved, counts.used), (1, 1, 1));

    let records = asking.gateway.decisions();
    let granted = records
        .iter()
        .find(|record| record["kind"] == "approval_granted")
        .expect("recorded");
    assert_eq!(
        (&granted["approval"], &granted["by"]),
        (&json!(id), &json!("operator"))
    );
    let by_it =
        |record: &&Value| record["decision"] == "allow" && record["approval"] == id.as_str();
    assert_eq!(
        records.iter().filter(by_it).count(),
        2,
        "the dry run and the click"
    );
    assert_eq!(
        asking.agent.session_state(&asking.session_id).await,
        v1::SessionState::Active
    );
    asking.gateway.stop().await;
}

/// K7: nobody approves in their own name, and an agent not at all; without an approver the answer is there at once. An
/// approver of the caller's own principal is none.
#[tokio::test]
async fn an_agent_cannot_approve_itself() {
    let gateway = GatewayProcess::serving(options()).await;
    let driver = client(&gateway, "driver");
    let session_id = driver.begin().await;
    let frame = driver
        .snapshot_app(&session_id, APP)
        .await
        .expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(&session_id, "click", &frame, save, click());
    let own = approver(&driver).await;
    let refused = driver
        .dispatch(request.clone())
        .await
        .expect_err("nobody else is there");
    assert_eq!(reason(&refused), "policy.maka/approval_unavailable");
    assert_eq!(refused.code(), Code::PermissionDenied);

    let operator = gateway.client(Role::Operator);
    let other = approver(&operator).await;
    let id = approval_id(&driver.dispatch(request.clone()).await.expect_err("asked"));
    for resolution in [ApprovalResolution::Approve, ApprovalResolution::Reject] {
        let refused = resolve(&driver, &id, resolution)
            .await
            .expect_err("its own");
        assert_eq!(reason(&refused), "gateway.maka/own_principal");
        assert_eq!(refused.code(), Code::PermissionDenied);
    }
    for role in [Role::Agent, Role::Viewer, Role::Author] {
        let refused = resolve(&gateway.client(role), &id, ApprovalResolution::Approve).await;
        assert_eq!(
            reason(&refused.expect_err("not its role")),
            "gateway.maka/role_not_sufficient"
        );
        let watch = WatchRequest {
            approver: true,
            ..WatchRequest::default()
        };
        let refused = gateway.client(role).events.watch(watch).await;
        assert_eq!(
            refused.expect_err("not its role").code(),
            Code::PermissionDenied
        );
    }
    assert_eq!(gateway.received_count("dispatch.element"), 0);
    // Whoever was asked may leave: another operator can still decide.
    drop((own, other));
    resolve(
        &client(&gateway, "second"),
        &id,
        ApprovalResolution::Approve,
    )
    .await
    .expect("another operator");
    let result = driver.dispatch(request).await.expect("approved");
    assert_eq!(result.outcome(), Outcome::Ok);
    gateway.stop().await;
}

/// A rejection is told, remembered and final; an approval that was not used can be taken back.
#[tokio::test]
async fn a_rejection_is_final_and_an_approval_can_be_taken_back() {
    let asking = Asking::start(options()).await;
    let id = asking.approved().await;
    resolve(&asking.operator, &id, ApprovalResolution::Reject)
        .await
        .expect("taken back");
    let refused = asking.click().await.expect_err("rejected");
    assert_eq!(reason(&refused), "policy.maka/approval_rejected");
    assert_eq!(refused.code(), Code::PermissionDenied);
    for resolution in [ApprovalResolution::Approve, ApprovalResolution::Reject] {
        let settled = resolve(&asking.operator, &id, resolution).await;
        assert_eq!(
            reason(&settled.expect_err("decided")),
            "gateway.maka/approval_settled"
        );
    }
    let unknown = resolve(&asking.operator, "nonsense", ApprovalResolution::Approve).await;
    assert_eq!(unknown.expect_err("never asked").code(), Code::NotFound);
    assert_eq!(asking.clicks(), 0);
    asking.gateway.stop().await;
}

/// Of two who decide at once one counts; of two calls that one approval could be for, one is sent.
#[tokio::test]
async fn of_two_approvers_and_of_two_calls_one_counts() {
    let asking = Asking::start(options()).await;
    let id = approval_id(&asking.click().await.expect_err("it needs approval"));
    let second = client(&asking.gateway, "second");
    let (one, other) = tokio::join!(
        resolve(&asking.operator, &id, ApprovalResolution::Approve),
        resolve(&second, &id, ApprovalResolution::Approve),
    );
    let lost = match (one, other) {
        (Ok(_), Err(lost)) | (Err(lost), Ok(_)) => lost,
        both => panic!("{both:?}"),
    };
    assert_eq!(reason(&lost), "gateway.maka/approval_settled");

    // The same action under another key is the same action, and has the one use.
    let other = DispatchRequest {
        tool_call_id: "other".into(),
        ..asking.click.clone()
    };
    let (one, other) = tokio::join!(asking.click(), asking.agent.dispatch(other));
    let lost = match (one, other) {
        (Ok(sent), Err(lost)) | (Err(lost), Ok(sent)) => {
            assert_eq!(sent.outcome(), Outcome::Ok);
            lost
        }
        both => panic!("{both:?}"),
    };
    assert_eq!(
        reason(&lost),
        "policy.maka/duplicate_action",
        "its frame is spent"
    );
    assert_eq!(asking.clicks(), 1);
    asking.gateway.stop().await;
}

/// Another action of the same element is another action: the approval of one is none of the other.
#[tokio::test]
async fn an_approval_is_of_one_action_alone() {
    let asking = Asking::start(options()).await;
    asking.approved().await;
    let other = DispatchRequest {
        tool_call_id: "other".into(),
        action: Some(set_value("x")),
        ..asking.click.clone()
    };
    let refused = asking
        .agent
        .dispatch(other)
        .await
        .expect_err("another action");
    assert!(
        reason(&refused).starts_with("policy.maka/"),
        "refused, whatever for: {refused}"
    );
    assert_eq!(asking.clicks(), 0);
    asking.gateway.stop().await;
}

/// A new snapshot of the window, a person at the keyboard, another executor, the end of the session, and time: each ends
/// what was approved, is told, and nothing is sent.
#[tokio::test]
async fn a_grant_dies_with_what_it_was_given_for() {
    let mut asking = Asking::start(options()).await;
    let id = asking.approved().await;
    let again = asking.agent.snapshot_app(&asking.session_id, APP).await;
    let frame = again.expect("a frame");
    assert_eq!(asking.ended(&id).await, ApprovalEnd::SnapshotChanged);
    let refused = asking.click().await.expect_err("an old frame");
    assert_eq!(reason(&refused), "policy.maka/snapshot_superseded");

    let save = element(&frame, "AXButton", "Save");
    asking.click = on_element(&asking.session_id, "second", &frame, save, click());
    let id = asking.approved().await;
    for event in [v1::HostEvent::UserInputBegan, v1::HostEvent::UserInputEnded] {
        let request = ReportHostEventRequest {
            event: event.into(),
            session_id: None,
        };
        let reported = asking.operator.operator.report_host_event(request).await;
        reported.expect("reported");
    }
    assert_eq!(asking.ended(&id).await, ApprovalEnd::Intervened);

    let launch = v1::LaunchAppRequest {
        session_id: asking.session_id.clone(),
        tool_call_id: "launch".into(),
        app: "Notes".into(),
        ..Default::default()
    };
    let mut agent = asking.agent.computer_use.clone();
    let refused = loop {
        let refused = agent.launch_app(launch.clone()).await.expect_err("refused");
        // The session rests a little after a person was there.
        if reason(&refused) != "gateway.maka/user_intervened" {
            break refused;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let id = approval_id(&refused);
    resolve(&asking.operator, &id, ApprovalResolution::Approve)
        .await
        .expect("approved");
    let restart = asking
        .operator
        .operator
        .restart_executor(RestartExecutorRequest {});
    restart.await.expect("another executor");
    assert_eq!(asking.ended(&id).await, ApprovalEnd::ExecutorChanged);
    let refused = agent.launch_app(launch).await.expect_err("asked anew");
    let anew = approval_id(&refused);
    assert_ne!(anew, id);

    asking.agent.end(&asking.session_id).await;
    assert_eq!(asking.ended(&anew).await, ApprovalEnd::SessionEnded);
    let methods = asking.gateway.wire_methods();
    assert!(
        !methods
            .iter()
            .any(|it| it == "dispatch.element" || it == "apps.launch"),
        "{methods:?}"
    );
    let counts = list(&asking.operator).await.counts.expect("counts");
    assert_eq!((counts.asked, counts.used, counts.dropped), (4, 0, 4));
    let records = asking.gateway.decisions();
    let ends: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "approval_ended")
        .map(|record| record["why"].clone())
        .collect();
    assert_eq!(
        ends,
        [
            "snapshot_changed",
            "intervened",
            "executor_changed",
            "session_ended"
        ]
    );
    asking.gateway.stop().await;
}

/// What nobody decides on in time is over, and so is what was approved and not used in time.
#[tokio::test]
async fn time_ends_what_waits() {
    let mut options = options();
    options.sections += "[approval]\nlifetime_ms = 300\n";
    let mut asking = Asking::start(options).await;
    let id = approval_id(&asking.click().await.expect_err("it needs approval"));
    assert_eq!(asking.ended(&id).await, ApprovalEnd::Expired);
    let late = resolve(&asking.operator, &id, ApprovalResolution::Approve).await;
    assert_eq!(
        reason(&late.expect_err("over")),
        "gateway.maka/approval_unknown"
    );
    let anew = approval_id(&asking.click().await.expect_err("asked anew"));
    assert_ne!(anew, id);
    assert_eq!(asking.clicks(), 0);
    asking.gateway.stop().await;
}

/// The fifth thing that a session wants at a time has to wait.
#[tokio::test]
async fn a_session_asks_for_four_things_at_a_time() {
    let asking = Asking::start(options()).await;
    let mut agent = asking.agent.computer_use.clone();
    let mut launch = async |app: String| {
        let request = v1::LaunchAppRequest {
            session_id: asking.session_id.clone(),
            tool_call_id: app.clone(),
            app,
            ..Default::default()
        };
        agent
            .launch_app(request)
            .await
            .expect_err("it needs approval")
    };
    for number in 0..4 {
        approval_id(&launch(format!("App {number}")).await);
    }
    let refused = launch("App 4".into()).await;
    assert_eq!(reason(&refused), "policy.maka/approvals_pending");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let listed = list(&asking.operator).await.approvals;
    let apps: Vec<_> = listed
        .iter()
        .filter_map(|it| it.launch.as_deref())
        .collect();
    assert_eq!(apps, ["App 0", "App 1", "App 2", "App 3"]);
    asking.gateway.stop().await;
}

/// A read goes the same way. The executor that would not do what was approved does not give the approval back.
#[tokio::test]
async fn a_read_is_approved_and_a_failure_uses_the_approval_up() {
    let mut options = options();
    options.executor = Executor::Fake(json!({
        "rules": [{"method": "screen.capture", "nth": 1, "steps": [{"refuse": "capture_failed"}]}],
    }));
    let asking = Asking::start(options).await;
    let mut agent = asking.agent.computer_use.clone();
    let mut capture = async || {
        let request = v1::CaptureScreenRequest {
            session_id: asking.session_id.clone(),
            display_id: None,
            image: v1::ImageDelivery::Reference.into(),
        };
        agent.capture_screen(request).await.map(|_| ())
    };
    let id = approval_id(&capture().await.expect_err("it needs approval"));
    resolve(&asking.operator, &id, ApprovalResolution::Approve)
        .await
        .expect("approved");
    let failed = capture().await.expect_err("the executor would not");
    assert_eq!(reason(&failed), "executor.protocol/capture_failed");
    let anew = approval_id(&capture().await.expect_err("it was used"));
    assert_ne!(anew, id);
    resolve(&asking.operator, &anew, ApprovalResolution::Approve)
        .await
        .expect("approved");
    capture().await.expect("approved");
    assert_eq!(asking.gateway.received_count("screen.capture"), 2);
    asking.gateway.stop().await;
}

/// E10: who decides is told how long a text is, and nobody and nothing is told the text, or what the window shows.
#[tokio::test]
async fn what_is_shown_holds_no_text() {
    const TYPED: &str = "hunter2-approval-canary";
    const TITLE: &str = "title-approval-canary";
    const VALUE: &str = "value-approval-canary";
    let mut options = options();
    options.executor = Executor::Fake(json!({"world": {"title": TITLE, "value": VALUE}}));
    let asking = Asking::start(options).await;
    let frame = asking.agent.snapshot_app(&asking.session_id, APP).await;
    let frame = frame.expect("a frame");
    let field = element(&frame, "AXTextField", "Name");
    let request = on_element(&asking.session_id, "type", &frame, field, set_value(TYPED));
    let refused = asking
        .agent
        .dispatch(request)
        .await
        .expect_err("it needs approval");
    approval_id(&refused);
    let approvals = list(&asking.operator).await.approvals;
    let shown = approvals.first().expect("it waits");
    assert_eq!(
        (shown.kind.as_str(), shown.text_length),
        ("set_value", Some(23))
    );
    let bytes = prost::Message::encode_to_vec(shown);
    let decisions = asking.gateway.decisions();
    let decisions = Value::from(decisions).to_string();
    for canary in [TYPED, TITLE, VALUE] {
        let holds = |text: &[u8]| text.windows(canary.len()).any(|it| it == canary.as_bytes());
        assert!(!holds(&bytes), "{canary} is shown");
        assert!(!holds(decisions.as_bytes()), "{canary} is recorded");
        assert!(
            !holds(asking.gateway.log().as_bytes()),
            "{canary} is logged"
        );
    }
    asking.gateway.stop().await;
}

/// A watcher that comes later is told what waits; an agent sees its own, and nobody else's.
#[tokio::test]
async fn what_waits_is_part_of_the_present() {
    let asking = Asking::start(options()).await;
    let id = approval_id(&asking.click().await.expect_err("it needs approval"));
    let waiting = |event: What| match event {
        What::Current(state) => state.approvals,
        other => panic!("{other:?}"),
    };
    for role in [Role::Agent, Role::Viewer, Role::Operator] {
        let mut watching = asking.gateway.client(role).watch().await;
        let approvals = waiting(watching.next().await);
        assert_eq!(approvals.len(), 1, "{role:?}");
        assert_eq!(approvals[0].approval_id, id);
    }
    asking.gateway.stop().await;
}

/// The printed lines of docs/clients.md.
#[tokio::test]
async fn grpcurl_lists_and_resolves() {
    let asking = Asking::start(options()).await;
    let id = approval_id(&asking.click().await.expect_err("it needs approval"));
    let call = async |method: &str, data: Value| {
        let mut command = tools::grpcurl();
        command
            .args(["-plaintext", "-H"])
            .arg(format!("authorization: Bearer {}", Role::Operator.token()))
            .args(["-d", &data.to_string(), asking.gateway.address()])
            .arg(format!("maka.gateway.v1.Operator/{method}"));
        let printed = tokio::time::timeout(PATIENCE, tools::stdout(command)).await;
        serde_json::from_str::<Value>(&printed.expect("in time")).expect("grpcurl prints JSON")
    };
    let listed = call("ListApprovals", json!({})).await;
    assert_eq!(listed["approvals"][0]["approvalId"], id.as_str());
    assert_eq!(listed["approvals"][0]["kind"], "click");
    let approve = json!({"approval_id": id, "resolution": "APPROVAL_RESOLUTION_APPROVE"});
    let approved = call("ResolveApproval", approve).await;
    assert_eq!(approved["approval"]["state"], "APPROVAL_STATE_APPROVED");
    assert_eq!(
        asking.click().await.expect("approved").outcome(),
        Outcome::Ok
    );
    asking.gateway.stop().await;
}
