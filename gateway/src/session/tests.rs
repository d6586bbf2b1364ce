use std::path::Path;

use maka_cu_host::selection::{NoBackend, Selection};
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::ToolCallId;
use maka_cu_protocol::sets::Outcome;
use maka_cu_protocol::text::SomeText;
use maka_policy_host::engine::Engine;
use maka_policy_host::judge::JudgeOptions;
use maka_policy_host::limits::Limits;
use maka_policy_host::log::{DecisionLog, LogOptions};

use tokio::sync::oneshot;

use super::answer::{DomainFault, ImageId};
use super::call::{CallContext, LaunchCall};
use super::host_event::HostEvent;
use super::job::{Running, Work};
use super::*;
use crate::policy::standing::Standing;

/// A gateway without an executor and without a policy, which is enough for everything up to judging.
fn sessions(folder: &Path, settings: SessionSettings) -> Sessions {
    let (log, _) =
        DecisionLog::open(&folder.join("decisions.jsonl"), LogOptions::default()).unwrap();
    let engine = Engine::new(Limits::default()).unwrap();
    let judge = Arc::new(Judge::try_new(engine, Arc::new(log), JudgeOptions::default()).unwrap());
    let forward = Forward::new(Selection::None(NoBackend::BinaryPathMissing), judge.clone());
    Sessions::new(
        forward,
        judge,
        StandingWatch::new(Standing::Absent).1,
        RequestSecret::random().unwrap(),
        History::default(),
        Events::new(None),
        settings,
    )
}

fn caller(name: &str, reach: Reach) -> Caller {
    Caller {
        principal: PrincipalName::new(name),
        policy_set: "default".into(),
        grants: Arc::new([]),
        reach,
    }
}

fn launch(key: &str) -> LaunchCall {
    LaunchCall {
        tool_call_id: ToolCallId::try_new(key).unwrap(),
        turn: None,
        app: SomeText::new("Editor").unwrap(),
        wait_for_window_ms: None,
    }
}

#[tokio::test]
async fn a_session_belongs_to_the_principal_that_began_it() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = sessions(folder.path(), SessionSettings::default());
    let (owner, other) = (caller("owner", Reach::Own), caller("other", Reach::Own));
    let (viewer, operator) = (
        caller("viewer", Reach::SeeAll),
        caller("operator", Reach::All),
    );
    let session = sessions.begin(&owner).unwrap().session_id;

    let context = CallContext::default();
    let call = sessions.list_apps(&other, &session, context.clone()).await;
    assert!(matches!(call, Err(CallError::SessionForeign)), "{call:?}");
    let call = sessions
        .list_apps(&operator, &session, context.clone())
        .await;
    assert!(
        matches!(call, Err(CallError::SessionForeign)),
        "not even the operator acts in it: {call:?}"
    );
    for (who, seen) in [(&owner, 1), (&other, 0), (&viewer, 1), (&operator, 1)] {
        assert_eq!(sessions.list(who).len(), seen, "{}", who.principal);
    }
    for who in [&other, &viewer] {
        let ended = sessions.end(who, &session).await;
        assert!(matches!(ended, Err(CallError::SessionForeign)), "{ended:?}");
    }
    sessions.end(&operator, &session).await.unwrap();
    let ended = sessions.end(&owner, &session).await;
    assert!(
        matches!(ended, Err(CallError::SessionUnknown)),
        "ended twice: {ended:?}"
    );
    sessions.shutdown().await;
}

/// A restart that comes too late is not begun, and without a back end there is nothing to restart.
#[tokio::test]
async fn a_restart_needs_time_and_a_back_end() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = sessions(folder.path(), SessionSettings::default());
    let late = CallContext {
        deadline: Some(Instant::now()),
        connection: None,
    };
    let refused = sessions.restart_executor(late).await;
    assert!(matches!(refused, Err(CallError::Deadline { stage: None })));
    let refused = sessions.restart_executor(CallContext::default()).await;
    let Err(CallError::NoBackend { reason }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(reason, NoBackend::BinaryPathMissing.as_str());
    let log = std::fs::read_to_string(folder.path().join("decisions.jsonl")).unwrap();
    assert!(!log.contains("executor_stop"), "{log}");
}

#[tokio::test]
async fn sessions_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SessionSettings {
        per_principal: 2,
        total: 3,
        ..SessionSettings::default()
    };
    let sessions = sessions(folder.path(), settings);
    let (one, other) = (caller("one", Reach::Own), caller("other", Reach::Own));
    let first = sessions.begin(&one).unwrap().session_id;
    sessions.begin(&one).unwrap();
    assert!(matches!(
        sessions.begin(&one),
        Err(CallError::Limit(Limit::SessionsOfPrincipal))
    ));
    sessions.begin(&other).unwrap();
    assert!(matches!(
        sessions.begin(&other),
        Err(CallError::Limit(Limit::SessionsInTotal))
    ));
    sessions.end(&one, &first).await.unwrap();
    sessions.begin(&other).unwrap();
    sessions.shutdown().await;
    assert!(matches!(sessions.begin(&one), Err(CallError::Cancelled)));
    assert!(sessions.list(&one).is_empty());
}

#[tokio::test]
async fn an_idle_session_ends_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SessionSettings {
        idle_ttl: Duration::from_millis(20),
        ..SessionSettings::default()
    };
    let sessions = sessions(folder.path(), settings);
    let owner = caller("owner", Reach::Own);
    let session = sessions.begin(&owner).unwrap().session_id;
    let mut ended = sessions.find(&owner, &session).unwrap().ended;
    let waited =
        tokio::time::timeout(Duration::from_secs(10), ended.wait_for(Option::is_some)).await;
    assert!(waited.unwrap().is_ok());
    assert!(sessions.list(&owner).is_empty());
    sessions.shutdown().await;
}

/// Without a back end every call says so, and a key that sent nothing stays free.
#[tokio::test]
async fn nothing_is_sent_without_an_executor() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = sessions(folder.path(), SessionSettings::default());
    let owner = caller("owner", Reach::Own);
    let session = sessions.begin(&owner).unwrap().session_id;
    let context = CallContext::default();
    for _ in 0..2 {
        let launched = sessions
            .launch(&owner, &session, launch("call_1"), context.clone())
            .await;
        let Err(CallError::NoBackend { reason }) = launched else {
            panic!("{launched:?}")
        };
        assert_eq!(reason, "binary_path_missing");
    }
    let permissions = sessions.check_permissions(context.clone()).await;
    assert!(
        matches!(permissions, Err(CallError::NoBackend { .. })),
        "{permissions:?}"
    );
    let image = sessions
        .read_image(&owner, &session, &ImageId::new("img_1"), context.clone())
        .await;
    assert!(matches!(image, Err(CallError::ImageUnknown)), "{image:?}");
    let unknown = SessionId::try_new("s_unknown").unwrap();
    let launched = sessions
        .launch(&owner, &unknown, launch("call_1"), context.clone())
        .await;
    assert!(
        matches!(launched, Err(CallError::SessionUnknown)),
        "{launched:?}"
    );
    sessions.shutdown().await;
}

/// A repeat that asks what became of a call that came too late must not do it.
#[tokio::test]
async fn a_deadline_that_passed_in_the_mailbox_takes_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = sessions(folder.path(), SessionSettings::default());
    let owner = caller("owner", Reach::Own);
    let session = sessions.begin(&owner).unwrap().session_id;
    let late = CallContext {
        deadline: Some(Instant::now()),
        connection: None,
    };
    let launched = sessions
        .launch(&owner, &session, launch("call_1"), late)
        .await;
    assert!(
        matches!(launched, Err(CallError::Deadline { .. })),
        "{launched:?}"
    );
    let repeated = sessions
        .launch(&owner, &session, launch("call_1"), CallContext::default())
        .await
        .unwrap();
    assert_eq!(repeated.outcome, Outcome::Refused);
    assert_eq!(repeated.error, Some(DomainFault::of(DomainCode::Aborted)));
    sessions.shutdown().await;
}

/// The same behind a running call: the caller hears at once, and the key is settled when the session is free.
#[tokio::test]
async fn a_deadline_that_passes_in_the_queue_leaves_the_key_to_be_taken() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = sessions(folder.path(), SessionSettings::default());
    let shared = Arc::new(Shared::new(state::Machine::new(Duration::ZERO)));
    let (_mailbox, receiver) = mpsc::channel(1);
    let (reply, answer) = oneshot::channel();
    let late = Job {
        caller: caller("owner", Reach::Own),
        deadline: Some(Instant::now()),
        connection: None,
        work: Work::Launch(launch("call_1"), reply),
        in_flight: shared.enter(),
    };
    let mut inbox = Inbox {
        id: SessionId::try_new("s_1").unwrap(),
        mailbox: receiver,
        queue: VecDeque::from([late]),
        end: CancellationToken::new(),
        shared,
        forward: sessions.0.parts.forward.clone(),
        events: sessions.0.parts.events.clone(),
    };
    let (done, running) = oneshot::channel();
    let (heard, _hears) = oneshot::channel();
    let cancel = CancellationToken::new();
    let work = async { running.await.map_err(|_| CallError::Cancelled) };
    let drive = inbox.drive(Running::Read, &cancel, heard, work);
    let told = async {
        let told = answer.await.unwrap();
        done.send(()).unwrap();
        told
    };
    let ((), told) = tokio::join!(drive, told);
    assert!(matches!(told, Err(CallError::Deadline { .. })), "{told:?}");
    let left: Vec<_> = inbox.queue.iter().map(|job| &job.work).collect();
    assert!(matches!(left[..], [Work::LateLaunch(_)]), "{left:?}");
}

/// A running call is kept alive by its own repetition, not by another request that borrows its key.
#[test]
fn only_the_same_request_repeats_a_running_call() {
    let session = SessionId::try_new("s_1").unwrap();
    let running = launch("call_1");
    let repeats = |call: LaunchCall| {
        let (reply, _answer) = oneshot::channel();
        Work::Launch(call, reply).repeats(&session, Running::Launch(&running))
    };
    assert!(repeats(launch("call_1")));
    assert!(!repeats(launch("call_2")));
    assert!(!repeats(LaunchCall {
        app: SomeText::new("Other").unwrap(),
        ..launch("call_1")
    }));
    let (reply, _answer) = oneshot::channel();
    assert!(!Work::Launch(launch("call_1"), reply).repeats(&session, Running::Read));
}

/// Host events hold up what they concern, sessions that begin later included, and nothing else (C5).
#[tokio::test]
async fn host_events_hold_sessions_up() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SessionSettings {
        intervention_debounce: Duration::ZERO,
        ..SessionSettings::default()
    };
    let sessions = sessions(folder.path(), settings);
    let owner = caller("owner", Reach::Own);
    let begin = || sessions.begin(&owner).unwrap().session_id;
    let (one, two) = (begin(), begin());
    // Without an executor nothing is done; what matters is who says so first.
    let held = async |session: &SessionId| {
        let key = random_hex();
        let launched = sessions.launch(&owner, session, launch(&key), CallContext::default());
        let acts = match launched.await {
            Err(CallError::Held { state, .. }) => Some(state),
            Err(CallError::NoBackend { .. }) => None,
            other => panic!("{other:?}"),
        };
        let listed = sessions.list_windows(&owner, session, CallContext::default());
        let sees = match listed.await {
            Err(CallError::Held { state, .. }) => Some(state),
            Err(CallError::NoBackend { .. }) => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(acts, sees, "{session}");
        acts
    };
    assert_eq!(held(&one).await, None);

    assert_eq!(sessions.report(HostEvent::ScreenLocked, None).unwrap(), 2);
    let late = begin();
    for session in [&one, &two, &late] {
        assert_eq!(held(session).await, Some(state::SessionState::ScreenLocked));
    }
    assert_eq!(sessions.report(HostEvent::ScreenUnlocked, None).unwrap(), 3);
    assert_eq!(held(&late).await, None);

    sessions.report(HostEvent::UserInputBegan, None).unwrap();
    let intervention = Some(state::SessionState::InterventionDebounce);
    assert_eq!(held(&one).await, intervention);
    sessions.report(HostEvent::UserInputEnded, None).unwrap();
    assert_eq!(held(&one).await, None);

    let event = HostEvent::UrlBlocked;
    assert_eq!(sessions.report(event, Some(&one)).unwrap(), 1);
    assert_eq!(held(&one).await, Some(state::SessionState::BlockedUrl));
    assert_eq!(held(&two).await, None);
    sessions.report(HostEvent::UserStopped, None).unwrap();
    assert_eq!(held(&two).await, Some(state::SessionState::UserStopped));
    assert_eq!(
        held(&one).await,
        Some(state::SessionState::BlockedUrl),
        "for good"
    );
    assert_eq!(held(&begin()).await, None, "a new session is a new order");

    for (event, session) in [
        (HostEvent::UrlBlocked, None),
        (HostEvent::ScreenLocked, Some(&one)),
    ] {
        let refused = sessions.report(event, session);
        assert!(
            matches!(
                refused,
                Err(CallError::Malformed {
                    field: "session_id",
                    ..
                })
            ),
            "{refused:?}"
        );
    }
    let unknown = SessionId::try_new("s_unknown").unwrap();
    let refused = sessions.report(HostEvent::UserStopped, Some(&unknown));
    assert!(matches!(refused, Err(CallError::SessionUnknown)));
    sessions.shutdown().await;
}
