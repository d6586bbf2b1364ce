use maka_cu_host::event::Release;
use maka_cu_protocol::ids::{ToolCallId, WindowKey};
use maka_cu_protocol::sets::ServiceState;
use proptest::prelude::*;
use tokio::task::JoinSet;
use tokio_stream::StreamExt as _;

use super::what::{ActionKind, Event};
use super::*;
use crate::session::caller::Reach;

fn caller(name: &str, reach: Reach) -> Caller {
    Caller {
        principal: PrincipalName::new(name),
        policy_set: "default".into(),
        grants: Arc::new([]),
        reach,
    }
}

fn id(number: usize) -> SessionId {
    SessionId::try_new(format!("s_{number}")).unwrap()
}

fn begin(events: &Events, number: usize, owner: &str) {
    events.session_began(LiveSession {
        id: id(number),
        principal: PrincipalName::new(owner),
        began_unix_ms: u64::try_from(number).unwrap(),
        state: SessionState::Unobserved,
        quarantined: false,
    });
}

fn action(number: usize, kind: ActionKind) -> Action {
    Action {
        id: ToolCallId::try_new("call").unwrap(),
        session: id(number),
        kind,
        point: ScreenPoint::try_new(3.0, 4.0).ok(),
        window: Some(WindowKey {
            pid: 1,
            window_id: 2,
        }),
    }
}

fn release(reason: ReleaseReason, sessions: &[usize]) -> What {
    What::Released(Release {
        generation: 4,
        generation_released: reason != ReleaseReason::SessionCleared,
        reason,
        sessions: sessions.iter().copied().map(id).collect(),
        outcome_unknown: !sessions.is_empty(),
    })
}

/// The next event that is there already.
fn next(watcher: &mut Watcher) -> Option<Event> {
    watcher
        .next()
        .now_or_never()
        .map(|event| event.expect("the watch goes on"))
}

fn present(event: Option<Event>) -> Present {
    match event.map(|event| event.what) {
        Some(What::Present(present)) => *present,
        other => panic!("{other:?} instead of the present state"),
    }
}

/// Everything that waits, in words.
fn words(watcher: &mut Watcher) -> Vec<String> {
    let list = |sessions: &[SessionId]| {
        let ids: Vec<_> = sessions.iter().map(SessionId::as_str).collect();
        ids.join(",")
    };
    std::iter::from_fn(|| next(watcher))
        .map(|event| match event.what {
            What::Present(present) => {
                let ids: Vec<_> = present.sessions.iter().map(|it| it.id.clone()).collect();
                format!("present {} {}", list(&ids), present.actions.len())
            }
            What::Executor(executor) => format!("executor {}", executor.state),
            What::Released(it) => format!(
                "{} {} {}",
                it.reason,
                list(&it.sessions),
                it.outcome_unknown
            ),
            What::SessionBegan(session) => format!("began {}", session.id),
            What::SessionEnded(session, reason) => format!("ended {session} {reason:?}"),
            What::ActionBegan(action) => format!("action in {}", action.session),
            What::ActionEnded(end) => format!("{} in {}", end.outcome, end.action.session),
            What::SessionState(session, state) => format!("{session} is {}", state.as_str()),
            What::MayBeHeld(session, _) => format!("{session} may hold"),
            What::Approval(approval) => format!("approval in {}", approval.wanted.session),
            What::ApprovalEnded(approval, why) => {
                format!("approval in {} {}", approval.wanted.session, why.as_str())
            }
            What::Quarantine(session, is) => format!("{session} quarantined {is}"),
            What::Disposed => "disposed".to_owned(),
        })
        .collect()
}

/// One story, as each kind of watcher is told it: no session of somebody else, neither by name nor by a flag.
#[test]
fn a_watcher_is_told_what_it_may_see() {
    let events = Events::new(None);
    begin(&events, 1, "ann");
    let ann = caller("ann", Reach::Own);
    let watch = |who: &Caller, session| events.watch(who, session).unwrap();
    let mut watchers = [
        watch(&ann, None),
        watch(&caller("bob", Reach::Own), None),
        watch(&caller("eve", Reach::SeeAll), None),
        watch(&caller("eve", Reach::SeeAll), Some(id(1))),
        watch(&caller("root", Reach::All), None),
    ];
    begin(&events, 2, "bob");
    for number in [1, 2] {
        events.action_began(action(number, ActionKind::Click));
    }
    let mut late = watch(&ann, None);
    let latest = || words(&mut watch(&caller("root", Reach::All), None));
    assert_eq!(latest(), ["present s_1,s_2 2"]);
    events.with(|hub| hub.tell(&release(ReleaseReason::ChildExit, &[1, 2])));
    events.with(|hub| hub.tell(&release(ReleaseReason::ChildExit, &[2])));
    events.with(|hub| hub.tell(&release(ReleaseReason::SessionCleared, &[2])));
    events.action_ended(
        action(2, ActionKind::Click),
        Outcome::Unknown,
        ScreenPoint::try_new(3.0, 4.0).ok(),
    );
    assert_eq!(latest(), ["present s_1,s_2 1"], "one of two has ended");
    events.session_ended(&id(2), EndReason::Operator);
    assert_eq!(latest(), ["present s_1 1"]);
    // Heard of after the session ended: still bob's, and still nobody else's.
    events.with(|hub| hub.tell(&release(ReleaseReason::ChildExit, &[2, 9])));

    let expected: [&[&str]; 5] = [
        &[
            "present s_1 0",
            "action in s_1",
            "child_exit s_1 true",
            "child_exit  false",
            "child_exit  false",
        ],
        &[
            "present  0",
            "began s_2",
            "action in s_2",
            "child_exit s_2 true",
            "child_exit s_2 true",
            "session_cleared s_2 true",
            "unknown in s_2",
            "ended s_2 Operator",
            "child_exit s_2 true",
        ],
        &[
            "present s_1 0",
            "began s_2",
            "action in s_1",
            "action in s_2",
            "child_exit s_1,s_2 true",
            "child_exit s_2 true",
            "session_cleared s_2 true",
            "unknown in s_2",
            "ended s_2 Operator",
            "child_exit s_2,s_9 true",
        ],
        &[
            "present s_1 0",
            "action in s_1",
            "child_exit s_1 true",
            "child_exit  false",
            "child_exit  false",
        ],
        &[
            "present s_1 0",
            "began s_2",
            "action in s_1",
            "action in s_2",
            "child_exit s_1,s_2 true",
            "child_exit s_2 true",
            "session_cleared s_2 true",
            "unknown in s_2",
            "ended s_2 Operator",
            "child_exit s_2,s_9 true",
        ],
    ];
    for (watcher, expected) in watchers.iter_mut().zip(expected) {
        assert_eq!(words(watcher), expected);
    }
    assert_eq!(
        words(&mut late)[0],
        "present s_1 1",
        "with what is under way"
    );
}

/// G5: a watcher that does not read holds no more than its bound, is told how many events it lost and how things are
/// now; one that reads is told everything.
#[test]
fn a_slow_watcher_is_told_how_many_it_lost() {
    let events = Events::new(None);
    let eve = caller("eve", Reach::SeeAll);
    let mut slow = events.watch(&eve, None).unwrap();
    let mut quick = events.watch(&eve, None).unwrap();
    assert_eq!(words(&mut quick), ["present  0"]);
    let told = 10 * QUEUE_MAX;
    for number in 0..told {
        begin(&events, number, "ann");
        assert_eq!(words(&mut quick).len(), 1);
        if number > 0 {
            events.session_ended(&id(number), EndReason::Idle);
            assert_eq!(words(&mut quick).len(), 1);
        }
    }
    let first = next(&mut slow).unwrap();
    let told = u64::try_from(2 * told - 1).unwrap();
    assert_eq!(first.lost, told + 1, "the first message was lost as well");
    assert_eq!(first.sequence, told + 2);
    let state = present(Some(first));
    assert_eq!(state.sessions.len(), 1, "what it needs to go on");
    assert!(next(&mut slow).is_none());
    begin(&events, 1, "ann");
    let event = next(&mut slow).unwrap();
    assert_eq!((event.sequence, event.lost), (told + 3, 0));
}

/// What the supervisor's own stream lost is counted for everybody, who get the present state.
#[test]
fn events_that_the_supervisor_lost_are_counted() {
    let events = Events::new(None);
    let mut watcher = events.watch(&caller("eve", Reach::SeeAll), None).unwrap();
    words(&mut watcher);
    begin(&events, 1, "ann");
    events.with(|hub| hub.subscribers.values_mut().for_each(|it| it.lose(5)));
    let event = next(&mut watcher).unwrap();
    assert_eq!((event.sequence, event.lost), (8, 6));
    assert_eq!(present(Some(event)).sessions.len(), 1);
}

/// The gateway's end is the last event of everybody, also of one that is behind, and nobody watches after it.
#[test]
fn disposed_is_the_last_event() {
    let events = Events::new(None);
    let eve = caller("eve", Reach::SeeAll);
    let mut quick = events.watch(&eve, None).unwrap();
    let mut slow = events.watch(&eve, None).unwrap();
    words(&mut quick);
    for number in 0..=QUEUE_MAX {
        begin(&events, number, "ann");
        next(&mut quick);
    }
    events.close();
    let end = |watcher: &mut Watcher| -> Vec<Event> {
        watcher.collect::<Vec<_>>().now_or_never().unwrap()
    };
    let last = end(&mut quick);
    assert!(matches!(
        last.as_slice(),
        [Event {
            what: What::Disposed,
            ..
        }]
    ));
    let last = end(&mut slow);
    let [state, disposed] = last.as_slice() else {
        panic!("{last:?}")
    };
    assert!(matches!(state.what, What::Present(_)) && state.lost > 0);
    assert!(matches!(disposed.what, What::Disposed));
    assert_eq!(disposed.sequence, state.sequence + 1);
    assert!(matches!(
        events.watch(&eve, None).map(|_| ()),
        Err(CallError::Cancelled)
    ));
}

/// A principal's watchers are bounded, and a stream that ends makes room.
#[test]
fn watchers_are_bounded_for_each_principal() {
    let events = Events::new(None);
    let (ann, bob) = (caller("ann", Reach::Own), caller("bob", Reach::Own));
    let mut watchers: Vec<_> = (0..WATCHERS_PER_PRINCIPAL)
        .map(|_| events.watch(&ann, None).unwrap())
        .collect();
    assert!(matches!(
        events.watch(&ann, None).map(|_| ()),
        Err(CallError::Limit(Limit::WatchersOfPrincipal))
    ));
    events.watch(&bob, None).unwrap();
    watchers.pop();
    events.watch(&ann, None).unwrap();
}

#[test]
fn a_session_can_be_watched_by_those_who_see_it() {
    let events = Events::new(None);
    begin(&events, 1, "ann");
    let watch = |who, reach, session| {
        let watched = events.watch(&caller(who, reach), Some(id(session)));
        watched
            .map(|_| ())
            .map_err(|error| error.reason().to_owned())
    };
    for (who, reach, session, expected) in [
        ("ann", Reach::Own, 1, Ok(())),
        ("bob", Reach::Own, 1, Err("session_foreign")),
        ("eve", Reach::SeeAll, 1, Ok(())),
        ("root", Reach::All, 1, Ok(())),
        ("ann", Reach::Own, 2, Err("session_unknown")),
        ("root", Reach::All, 2, Err("session_unknown")),
    ] {
        let expected = expected.map_err(str::to_owned);
        assert_eq!(watch(who, reach, session), expected, "{who} {session}");
    }
}

/// Without a back end the state says so, and stays.
#[test]
fn without_a_back_end_the_executor_is_unavailable() {
    let events = Events::new(None);
    let mut watcher = events.watch(&caller("ann", Reach::Own), None).unwrap();
    let executor = present(next(&mut watcher)).executor;
    assert_eq!(executor.state, ServiceState::Unavailable);
    assert_eq!((executor.generation, executor.restart_attempts), (0, 0));
}

/// The end of an action as spec maka-cu §10.2 has it: only what was done is shown, and only clicks and drags flash.
#[test]
fn only_what_was_done_is_shown() {
    let point = ScreenPoint::try_new(5.0, 6.0).ok();
    for (kind, outcome, shown, pulse) in [
        (ActionKind::Click, Outcome::Ok, true, true),
        (ActionKind::Drag, Outcome::Ok, true, true),
        (ActionKind::Scroll, Outcome::Ok, true, false),
        (ActionKind::Move, Outcome::Ok, true, false),
        (ActionKind::Other, Outcome::Ok, true, false),
        (ActionKind::Click, Outcome::Refused, false, false),
        (ActionKind::Click, Outcome::Failed, false, false),
        (ActionKind::Drag, Outcome::Unknown, false, false),
    ] {
        let end = ActionEnd::new(action(1, kind), outcome, point);
        assert_eq!(
            end.action.point,
            point.filter(|_| shown),
            "{kind:?} {outcome}"
        );
        assert_eq!(end.pulse(), pulse, "{kind:?} {outcome}");
        let unknown = ActionEnd::new(action(1, kind), outcome, None);
        assert!(!unknown.pulse(), "nowhere to show it");
    }
}

/// A watcher that waits hears of the next event.
#[tokio::test]
async fn a_waiting_watcher_is_woken() {
    let events = Events::new(None);
    let mut watcher = events.watch(&caller("eve", Reach::SeeAll), None).unwrap();
    words(&mut watcher);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { watcher.next().await });
    tokio::task::yield_now().await;
    begin(&events, 1, "ann");
    let heard = tasks.join_next().await.unwrap().unwrap().unwrap();
    assert!(matches!(heard.what, What::SessionBegan(_)));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Tell(usize),
    Read(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..400_usize).prop_map(Step::Tell),
        (0..300_usize).prop_map(Step::Read),
    ];
    proptest::collection::vec(step, 0..12)
}

proptest! {
    /// However telling and reading alternate: no event is passed over in silence, none is told twice, what waits is
    /// bounded, and a loss is followed by the state that makes up for it.
    #[test]
    fn a_loss_is_always_counted(steps in steps()) {
        let events = Events::new(None);
        let mut watcher = events.watch(&caller("eve", Reach::SeeAll), None).unwrap();
        let (mut told, mut sequence) = (0_usize, 0_u64);
        let mut known = std::collections::BTreeSet::new();
        let mut read = |watcher: &mut Watcher, count: usize| {
            for event in std::iter::from_fn(|| next(watcher)).take(count) {
                assert_eq!(event.sequence, sequence + 1 + event.lost);
                sequence = event.sequence;
                match event.what {
                    What::Present(present) => {
                        known = present.sessions.into_iter().map(|it| it.id).collect();
                    }
                    What::SessionBegan(session) => {
                        assert_eq!(event.lost, 0);
                        assert!(known.insert(session.id), "told twice");
                    }
                    other => panic!("{other:?}"),
                }
            }
            known.len()
        };
        for step in steps {
            match step {
                Step::Tell(count) => {
                    for _ in 0..count {
                        begin(&events, told, "ann");
                        told += 1;
                    }
                    prop_assert!(events.with(|hub| hub.subscribers.values().all(|it| it.waiting() <= QUEUE_MAX)));
                }
                Step::Read(count) => {
                    read(&mut watcher, count);
                }
            }
        }
        prop_assert_eq!(read(&mut watcher, usize::MAX), told, "in the end it knows everything");
    }
}

/// A session's state is told to those who may see the session, and only when it is another one.
#[test]
fn a_state_is_told_once_and_to_those_who_may_see_it() {
    let events = Events::new(None);
    begin(&events, 1, "ann");
    let watch = |who: &str, reach| events.watch(&caller(who, reach), None).unwrap();
    let (mut ann, mut bob) = (watch("ann", Reach::Own), watch("bob", Reach::Own));
    for state in [
        SessionState::Unobserved,
        SessionState::Active,
        SessionState::Active,
        SessionState::ScreenLocked,
    ] {
        events.session_state(&id(1), state);
    }
    events.session_state(&id(7), SessionState::Active);
    let window = WindowKey {
        pid: 1,
        window_id: 2,
    };
    events.may_be_held(&id(1), window);
    let told = [
        "present s_1 0",
        "s_1 is active",
        "s_1 is screen_locked",
        "s_1 may hold",
    ];
    assert_eq!(words(&mut ann), told);
    assert_eq!(words(&mut bob), ["present  0"]);
    let mut late = watch("ann", Reach::Own);
    let Some(What::Present(present)) = next(&mut late).map(|event| event.what) else {
        panic!("the first is the state")
    };
    assert_eq!(present.sessions[0].state, SessionState::ScreenLocked);
}
