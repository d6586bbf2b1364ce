//! `Events.Watch`: what happens is told to those who may see it, in order, without text, and without holding anything
//! up; a watcher that does not read is told how much it lost.

use std::{fs, time::Duration};

use integration_tests::{
    client::{Client, click, details, element, on_element, reason, set_value},
    events::{Watching, is_end, is_outcome, is_release, position, words},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE, Role},
    tools,
};
use maka_proto::v1::{
    self, ActionKind, BeginSessionRequest, ExecutorState, GetStatusRequest, Outcome, Point,
    ReleaseReason, SessionEndReason, WatchRequest, event::Event as What,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tonic::{Code, Request, Status, transport::Endpoint};

const APP: &str = "org.example.Notes";

async fn start(script: Value) -> GatewayProcess {
    GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await
}

async fn click_save(agent: &Client, session_id: &str, key: &str) -> v1::DispatchResult {
    let frame = agent.snapshot_app(session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let request = on_element(session_id, key, &frame, save, click());
    agent.dispatch(request).await.expect("allowed")
}

async fn executor_pid(gateway: &GatewayProcess) -> Pid {
    let mut client = gateway.agent().computer_use;
    let status = client
        .get_status(GetStatusRequest {})
        .await
        .expect("status");
    let executor = status.into_inner().executor.expect("ready");
    Pid::from_raw(executor.pid.try_into().expect("a pid"))
}

/// The whole life of a session, told to its owner and to a viewer alike, and not to another agent's filter; the point is
/// the one that the caller is told.
#[tokio::test]
async fn an_action_is_told_from_begin_to_end() {
    let gateway = start(json!({})).await;
    let (agent, viewer) = (gateway.agent(), gateway.client(Role::Viewer));
    let mut watching = [agent.watch().await, viewer.watch().await];
    let session_id = agent.begin().await;
    let clicked = click_save(&agent, &session_id, "press").await;
    let frame = clicked.snapshot.as_ref().expect("a fresh frame");
    let name = element(frame, "AXTextField", "Name");
    let request = on_element(&session_id, "write", frame, name, set_value("x"));
    let written = agent.dispatch(request).await.expect("allowed");
    assert_eq!(written.outcome(), Outcome::Ok);
    agent.end(&session_id).await;

    let window = frame.target.as_ref().and_then(|target| target.window);
    for watching in &mut watching {
        watching
            .until(|event| is_end(event, &session_id, SessionEndReason::Caller).then_some(()))
            .await;
        let seen = watching.seen();
        assert_eq!(
            words(seen),
            [
                "current: 0 sessions, 0 actions",
                "session began",
                "action press began",
                "action press ended: Ok",
                "action write began",
                "action write ended: Ok",
                "session ended: Caller",
            ]
        );
        // The states of sessions have a test of their own.
        let seen: Vec<_> = seen
            .iter()
            .filter(|event| !matches!(event, What::SessionState(_)))
            .collect();
        let What::Current(state) = seen[0] else {
            panic!("{seen:?}")
        };
        let executor = state.executor.as_ref().expect("always told");
        assert_eq!(
            (executor.state(), executor.generation),
            (ExecutorState::Ready, 1)
        );
        let What::SessionBegan(began) = seen[1] else {
            panic!("{seen:?}")
        };
        assert_eq!(
            (began.session_id.as_str(), began.principal.as_str()),
            (session_id.as_str(), "agent")
        );
        let (What::ActionBegan(began), What::ActionEnded(ended)) = (seen[2], seen[3]) else {
            panic!("{seen:?}")
        };
        assert_eq!(
            (began.kind(), ended.kind()),
            (ActionKind::Click, ActionKind::Click)
        );
        assert_eq!(
            (&began.session_id, &ended.session_id),
            (&session_id, &session_id)
        );
        assert_eq!((began.target_window, ended.target_window), (window, window));
        assert!(window.is_some() && !began.keep_elevated && ended.pulse);
        assert_eq!(
            began.point_screen, clicked.resolved_screen_point,
            "the middle of the element"
        );
        assert!(began.point_screen.is_some());
        assert_eq!(ended.point_screen, clicked.resolved_screen_point);
        let What::ActionEnded(ended) = &seen[5] else {
            panic!("{seen:?}")
        };
        assert_eq!((ended.kind(), ended.pulse), (ActionKind::Other, false));
    }
    gateway.stop().await;
}

/// G4: an event is there when it happens, not when the next one does. A launch acts on no window, so it is shown above
/// all of them, nowhere.
#[tokio::test]
async fn an_event_is_told_when_it_happens() {
    let gateway = start(json!({})).await;
    let agent = gateway.agent();
    let mut watching = agent.watch().await;
    let What::Current(_) = watching.next().await else {
        panic!("{:?}", watching.seen())
    };
    let session_id = agent.begin().await;
    let What::SessionBegan(_) = watching.next().await else {
        panic!("{:?}", watching.seen())
    };
    let mut client = agent.computer_use.clone();
    let launched = client.launch_app(v1::LaunchAppRequest {
        session_id: session_id.clone(),
        tool_call_id: "launch".into(),
        app: "Notes".into(),
        ..Default::default()
    });
    let launched = launched.await.expect("allowed").into_inner();
    let What::ActionBegan(began) = watching.next().await else {
        panic!("{:?}", watching.seen())
    };
    assert_eq!(
        (began.action_id.as_str(), began.kind()),
        ("launch", ActionKind::Other)
    );
    assert!(began.keep_elevated && began.point_screen.is_none() && began.target_window.is_none());
    let What::ActionEnded(ended) = watching.next().await else {
        panic!("{:?}", watching.seen())
    };
    assert_eq!((ended.outcome(), ended.pulse), (launched.outcome(), false));
    agent.end(&session_id).await;
    let What::SessionEnded(_) = watching.next().await else {
        panic!("{:?}", watching.seen())
    };
    gateway.stop().await;
}

/// What was not done is not shown: no point, no flash. An action that was refused before it was sent never began.
#[tokio::test]
async fn what_was_not_done_is_not_shown() {
    let gateway = start(json!({
        "rules": [{"method": "dispatch.element", "nth": 1, "steps": [{"refuse": "element_disabled"}]}],
    }))
    .await;
    let agent = gateway.agent();
    let mut watching = agent.watch().await;
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let save = element(&frame, "AXButton", "Save");
    let mut stale = on_element(&session_id, "stale", &frame, save, click());
    stale.snapshot_id = "snap_never_seen".into();
    agent.dispatch(stale).await.expect_err("no such frame");
    let request = on_element(&session_id, "refused", &frame, save, click());
    let refused = agent.dispatch(request).await.expect("a result");
    assert_eq!(refused.outcome(), Outcome::Refused);
    let ended = watching
        .until(|event| integration_tests::events::ended(event, "refused"))
        .await;
    assert_eq!(ended.outcome(), Outcome::Refused);
    assert_eq!((ended.point_screen, ended.pulse), (None, false));
    assert_eq!(
        words(watching.seen()),
        [
            "current: 0 sessions, 0 actions",
            "session began",
            "action refused began",
            "action refused ended: Refused",
        ]
    );
    gateway.stop().await;
}

/// A drag begins where it starts and ends where it went, each as a point of the screen.
#[tokio::test]
async fn a_drag_is_shown_from_its_start_to_its_end() {
    let gateway = start(json!({})).await;
    let agent = gateway.agent();
    let mut watching = agent.watch().await;
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let image = frame.image.as_ref().expect("a picture");
    let bounds = frame
        .target
        .as_ref()
        .and_then(|target| target.bounds_screen);
    let bounds = bounds.expect("where the window is");
    let at = |x: f64, y: f64| Point {
        x: bounds.x + x / image.scale,
        y: bounds.y + y / image.scale,
    };
    let result = agent
        .dispatch(v1::DispatchRequest {
            session_id,
            tool_call_id: "drag".into(),
            tier: v1::Tier::CoordinateBackground.into(),
            snapshot_id: frame.snapshot_id.clone(),
            target: Some(v1::dispatch_request::Target::Point(v1::PointTarget {
                x: 20.0,
                y: 12.0,
                start: Some(Point { x: 4.0, y: 6.0 }),
                space: v1::PointSpace::ImagePx.into(),
                expect_window_digest: frame.window_digest.clone(),
                occlusion: 0,
            })),
            action: Some(v1::dispatch_request::Action::PointerDrag(
                v1::PointerDrag {},
            )),
            ..Default::default()
        })
        .await;
    let began = watching
        .until(|event| match event {
            What::ActionBegan(it) => Some(it.clone()),
            _ => None,
        })
        .await;
    let result = result.expect("allowed");
    assert_eq!(result.outcome(), Outcome::Ok, "{result:?}");
    let ended = watching
        .until(|event| integration_tests::events::ended(event, "drag"))
        .await;
    assert_eq!(
        (began.kind(), began.point_screen),
        (ActionKind::Drag, Some(at(4.0, 6.0)))
    );
    assert_eq!(
        (ended.point_screen, ended.pulse),
        (Some(at(20.0, 12.0)), true)
    );
    gateway.stop().await;
}

/// One executor, killed while two principals wait for it: the viewer is told of both, the agent of its own alone, and
/// both of the next generation. No event of the agent's names the other session.
#[tokio::test]
async fn a_killed_executor_is_told_with_the_sessions_it_concerns() {
    let gateway = start(json!({
        "rules": [{"method": "dispatch.element", "process": 1, "steps": ["never"]}],
    }))
    .await;
    let (agent, operator) = (gateway.agent(), gateway.client(Role::Operator));
    let mut of_agent = agent.watch().await;
    let mut of_viewer = gateway.client(Role::Viewer).watch().await;
    let (own, foreign) = (agent.begin().await, operator.begin().await);
    let mut calls = JoinSet::new();
    for (client, session_id, key) in [(&agent, &own, "own"), (&operator, &foreign, "foreign")] {
        let (client, session_id) = (client.clone(), session_id.clone());
        calls.spawn(async move { click_save(&client, &session_id, key).await });
    }
    let mut begun = 0;
    of_viewer
        .until(|event| {
            begun += usize::from(matches!(event, What::ActionBegan(_)));
            (begun == 2).then_some(())
        })
        .await;
    while gateway.received_count("dispatch.element") < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    kill(executor_pid(&gateway).await, Signal::SIGKILL).expect("it lives");
    while let Some(result) = calls.join_next().await {
        assert_eq!(result.expect("not panicked").outcome(), Outcome::Unknown);
    }
    for watching in [&mut of_viewer, &mut of_agent] {
        watching.until_ready(2).await;
    }

    let release = |watching: &Watching| {
        let at = position(watching.seen(), |event| {
            is_release(event, 1, ReleaseReason::ChildExit)
        });
        let What::Released(release) = &watching.seen()[at] else {
            panic!("found as a release")
        };
        assert!(release.outcome_unknown);
        let mut session_ids = release.session_ids.clone();
        session_ids.sort_unstable();
        (at, session_ids)
    };
    let mut both = [own.clone(), foreign.clone()];
    both.sort_unstable();
    let (at, named) = release(&of_viewer);
    assert_eq!(named, both);
    for key in ["own", "foreign"] {
        let ended = position(of_viewer.seen(), |event| {
            is_outcome(event, key, Outcome::Unknown)
        });
        assert!(at < ended, "{:?}", words(of_viewer.seen()));
    }
    let (at, named) = release(&of_agent);
    assert_eq!(named, [own]);
    assert!(
        at < position(of_agent.seen(), |event| is_outcome(
            event,
            "own",
            Outcome::Unknown
        ))
    );
    let told = format!("{:?}", of_agent.seen());
    assert!(
        !told.contains(&foreign) && !told.contains("\"foreign\""),
        "{told}"
    );
    gateway.stop().await;
}

/// Another principal's loss is nobody else's: a release that concerns none of its sessions names none to the agent, and
/// does not say that there was one.
#[tokio::test]
async fn a_release_tells_an_agent_nothing_of_others() {
    let gateway = start(json!({
        "rules": [{"method": "dispatch.element", "process": 1, "steps": [{"die": 9}]}],
    }))
    .await;
    let (agent, operator) = (gateway.agent(), gateway.client(Role::Operator));
    let (mut of_agent, mut of_operator) = (agent.watch().await, operator.watch().await);
    let session_id = operator.begin().await;
    let lost = click_save(&operator, &session_id, "foreign").await;
    assert_eq!(lost.outcome(), Outcome::Unknown);
    for watching in [&mut of_agent, &mut of_operator] {
        watching.until_ready(2).await;
    }
    let release = |watching: &Watching| {
        let at = position(watching.seen(), |event| {
            is_release(event, 1, ReleaseReason::ChildExit)
        });
        match &watching.seen()[at] {
            What::Released(release) => (release.session_ids.clone(), release.outcome_unknown),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(release(&of_operator), (vec![session_id.clone()], true));
    assert_eq!(release(&of_agent), (vec![], false));
    let told = format!("{:?}", of_agent.seen());
    assert!(
        !told.contains(&session_id) && !told.contains("foreign"),
        "{told}"
    );
    gateway.stop().await;
}

/// A client whose connection takes so many bytes of a stream that is not read, and then no more.
fn narrow(gateway: &GatewayProcess, role: Role, bytes: u32) -> Client {
    let channel = Endpoint::from_shared(format!("http://{}", gateway.address()))
        .expect("an address")
        .initial_stream_window_size(bytes)
        .connect_lazy();
    Client::new(&channel, Some(&role.token()))
}

/// Why a session ended: its owner, an operator, nobody's use, the gateway's end. The last is the story of a drain as
/// well (I9): every watcher gets it to the end, with status OK, although another one does not read at all.
#[tokio::test]
async fn a_session_ends_for_a_reason() {
    let gateway = start(json!({})).await;
    let (agent, operator) = (gateway.agent(), gateway.client(Role::Operator));
    let mut watching = agent.watch().await;
    let (by_owner, by_operator, by_nobody) = (
        agent.begin().await,
        agent.begin().await,
        agent.begin().await,
    );
    agent.end(&by_owner).await;
    operator.end(&by_operator).await;
    for (session_id, reason) in [
        (&by_owner, SessionEndReason::Caller),
        (&by_operator, SessionEndReason::Operator),
    ] {
        watching
            .until(|event| is_end(event, session_id, reason).then_some(()))
            .await;
    }
    agent.snapshot_app(&by_nobody, APP).await.expect("a frame");
    let late = agent.watch().await;
    let deaf = narrow(&gateway, Role::Operator, 16).watch().await;
    let (folder, seen) = tokio::join!(gateway.stop(), watching.rest());
    let seen = seen.expect("an end in order");
    let ended = position(&seen, |event| {
        is_end(event, &by_nobody, SessionEndReason::Shutdown)
    });
    let released = position(&seen, |event| is_release(event, 1, ReleaseReason::Disposed));
    assert!(ended < released, "{:?}", words(&seen));
    assert!(
        matches!(seen.last(), Some(What::Disposed(_))),
        "{:?}",
        words(&seen)
    );
    let seen = late.rest().await.expect("an end in order");
    assert_eq!(words(&seen)[0], "current: 1 sessions, 0 actions");
    assert!(matches!(seen.last(), Some(What::Disposed(_))));
    drop((folder, deaf));

    let mut options = GatewayOptions::new(Executor::Fake(json!({})));
    options.sections = "[session]\nidle_ttl_ms = 20\n".into();
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let mut watching = agent.watch().await;
    let session_id = agent.begin().await;
    watching
        .until(|event| is_end(event, &session_id, SessionEndReason::Idle).then_some(()))
        .await;
    gateway.stop().await;
}

/// G5, I9: a watcher that reads nothing, not even by its connection, costs nobody anything: every call and every other
/// watcher goes on, memory does not grow with what it does not read, and when it reads again it is told how much it
/// lost and how things are.
#[tokio::test]
async fn a_watcher_that_does_not_read_holds_nobody_up() {
    /// Sessions begun and ended: more events than all the buffers between gateway and client can hide.
    const SESSIONS: usize = 2000;
    let mut options = GatewayOptions::new(Executor::Fake(json!({})));
    // A number is measured.
    options.log_level = "info";
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let mut slow = narrow(&gateway, Role::Viewer, 1024).watch().await;
    let mut quick = gateway.client(Role::Viewer).watch().await;
    let before = resident_kib(&gateway);
    let mut last = String::new();
    for _ in 0..SESSIONS {
        last = agent.begin().await;
        agent.end(&last).await;
    }
    let grown = resident_kib(&gateway).saturating_sub(before);
    assert!(
        grown < 16 * 1024,
        "{grown} KiB more for one reader that does not read"
    );
    quick
        .until(|event| is_end(event, &last, SessionEndReason::Caller).then_some(()))
        .await;
    assert_eq!((quick.seen().len(), quick.lost()), (2 * SESSIONS + 1, 0));

    let live = agent.begin().await;
    slow.until(|event| match event {
        What::Current(state) => state
            .sessions
            .iter()
            .any(|it| it.session_id == live)
            .then_some(()),
        What::SessionBegan(it) => (it.session_id == live).then_some(()),
        _ => None,
    })
    .await;
    assert!(slow.lost() > 0, "{} events arrived", slow.seen().len());
    // From the state on it is told everything again.
    agent.end(&live).await;
    slow.until(|event| is_end(event, &live, SessionEndReason::Caller).then_some(()))
        .await;
    gateway.stop().await;
}

fn resident_kib(gateway: &GatewayProcess) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", gateway.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a number of KiB")
}

/// Streams are bounded for each principal; one that is dropped makes room.
#[tokio::test]
async fn a_principal_has_so_many_streams_and_no_more() {
    let gateway = start(json!({})).await;
    let agent = gateway.agent();
    let mut streams = Vec::new();
    let refused = loop {
        match agent.events.clone().watch(WatchRequest::default()).await {
            Ok(stream) => streams.push(stream),
            Err(status) => break status,
        }
        assert!(streams.len() <= 8);
    };
    assert_eq!(streams.len(), 8);
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(reason(&refused), "gateway.maka/watchers_of_principal");
    gateway.client(Role::Viewer).watch().await;
    streams.pop();
    let room = tokio::time::timeout(PATIENCE, async {
        while agent
            .events
            .clone()
            .watch(WatchRequest::default())
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(room.await.is_ok(), "the dropped stream still counts");
    gateway.stop().await;
}

/// I1: a deadline ends the stream, in the gateway's own words, whether or not anything happens.
#[tokio::test]
async fn a_watch_ends_at_its_deadline() {
    let gateway = start(json!({})).await;
    let mut request = Request::new(WatchRequest::default());
    // Long enough for the client to see the beginning on a busy machine.
    request.set_timeout(Duration::from_secs(3));
    let mut events = gateway.agent().events;
    let stream = events.watch(request).await.expect("it began in time");
    let ended = Watching::new(stream.into_inner()).rest().await;
    let status = ended.expect_err("a deadline is no end in order");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert_eq!(reason(&status), "gateway.maka/deadline");
    gateway.stop().await;
}

/// A watch of one session leaves the others out; one that is not there, or not the caller's to see, is refused.
#[tokio::test]
async fn one_session_can_be_watched() {
    let gateway = start(json!({})).await;
    let (agent, operator) = (gateway.agent(), gateway.client(Role::Operator));
    let watch = async |client: &Client, session_id: &str| -> Result<Watching, Status> {
        let session_id = Some(session_id.to_owned());
        let answer = client
            .events
            .clone()
            .watch(WatchRequest {
                session_id,
                approver: false,
            })
            .await?;
        Ok(Watching::new(answer.into_inner()))
    };
    let (wanted, other) = (agent.begin().await, agent.begin().await);
    let foreign = operator.begin().await;
    let mut watching = watch(&agent, &wanted).await.expect("its own");
    agent.end(&other).await;
    click_save(&agent, &wanted, "press").await;
    agent.end(&wanted).await;
    watching
        .until(|event| is_end(event, &wanted, SessionEndReason::Caller).then_some(()))
        .await;
    assert_eq!(
        words(watching.seen()),
        [
            "current: 1 sessions, 0 actions",
            "action press began",
            "action press ended: Ok",
            "session ended: Caller",
        ]
    );
    watch(&gateway.client(Role::Viewer), &foreign)
        .await
        .expect("a viewer sees all");
    for (session_id, code, expected) in [
        (
            foreign.as_str(),
            Code::PermissionDenied,
            "gateway.maka/session_foreign",
        ),
        ("s_nobody", Code::NotFound, "gateway.maka/session_unknown"),
    ] {
        let refused = watch(&agent, session_id)
            .await
            .expect_err("not to be watched");
        assert_eq!(
            (refused.code(), reason(&refused).as_str()),
            (code, expected)
        );
        assert!(details(&refused).error_info().is_some());
    }
    gateway.stop().await;
}

/// The printed line of docs/clients.md: grpcurl prints the state at once and each event as it comes, and ends well when
/// the gateway does.
#[tokio::test]
async fn grpcurl_watches() {
    let gateway = start(json!({})).await;
    let mut watch = tools::grpcurl();
    watch
        .arg("-plaintext")
        .args([
            "-H",
            &format!("authorization: Bearer {}", Role::Agent.token()),
        ])
        .args([gateway.address(), "maka.gateway.v1.Events/Watch"]);
    let mut printing = JoinSet::new();
    printing.spawn(tools::stdout(watch));
    // It watches once the gateway says so.
    let mut client = gateway.agent().computer_use;
    let watched = tokio::time::timeout(PATIENCE, async {
        while !gateway.log().contains("method=\"Watch\"") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(
        watched.await.is_ok(),
        "grpcurl never watched: {}",
        gateway.log()
    );
    client
        .begin_session(BeginSessionRequest {})
        .await
        .expect("a session begins");
    gateway.stop().await;
    let printed = printing
        .join_next()
        .await
        .expect("one")
        .expect("ended well");
    for expected in [
        "\"current\"",
        "EXECUTOR_STATE_READY",
        "\"sessionBegan\"",
        "SESSION_END_REASON_SHUTDOWN",
        "\"disposed\"",
    ] {
        assert!(printed.contains(expected), "{expected} in {printed}");
    }
}
