//! The runtime around an action, with sinks that behave and sinks that do not. No test waits for a time to pass: where a bound is
//! the subject, the test waits for what happens at it.

use std::sync::mpsc as std_mpsc;

use maka_cu_protocol::geometry::ScreenPoint;
use maka_cu_protocol::ids::ToolCallId;
use maka_cu_protocol::sets::{KeyActionKind, PointActionKind};

use super::super::{Pointer, PresentedAction};
use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

/// Bounds that are never met in a test that passes.
const LONG: Bounds = Bounds {
    slot: Duration::from_secs(60),
    ready: Duration::from_secs(60),
    finished: Duration::from_secs(60),
};

/// Bounds that are met at once.
const SHORT: Bounds = Bounds {
    slot: Duration::from_millis(1),
    ready: Duration::from_millis(1),
    finished: Duration::from_millis(1),
};

/// What a sink does when it is told to move.
type OnMove = Box<dyn FnMut() -> Result<Option<Fence>, SinkError> + Send>;

/// A sink that reports what it is told.
struct Recorder {
    seen: std_mpsc::Sender<String>,
    on_move: OnMove,
}

impl Recorder {
    fn note(&self, text: String) {
        self.seen.send(text).ok();
    }
}

impl OverlaySink for Recorder {
    fn ensure(&mut self, session: &SessionId) -> Result<(), SinkError> {
        self.note(format!("ensure {session}"));
        Ok(())
    }

    fn move_to(&mut self, pointer: &Pointer) -> Result<Option<Fence>, SinkError> {
        self.note(format!("move {}", pointer.action_id));
        (self.on_move)()
    }

    fn complete(&mut self, pointer: &Pointer, _pulse: bool) -> Result<(), SinkError> {
        self.note(format!("complete {}", pointer.action_id));
        Ok(())
    }

    fn cancel(&mut self, action_id: &ToolCallId, _session: &SessionId) -> Result<(), SinkError> {
        self.note(format!("cancel {action_id}"));
        Ok(())
    }
}

fn overlay(
    bounds: Bounds,
    on_move: impl FnMut() -> Result<Option<Fence>, SinkError> + Send + 'static,
) -> (Overlay, std_mpsc::Receiver<String>) {
    let (seen, told) = std_mpsc::channel();
    let sink = Recorder {
        seen,
        on_move: Box::new(on_move),
    };
    (Overlay::with_bounds(sink, bounds).unwrap(), told)
}

/// Everything the sink was told, once it will not be told any more.
fn all(overlay: Overlay, told: &std_mpsc::Receiver<String>) -> Vec<String> {
    drop(overlay);
    let mut all = Vec::new();
    while let Ok(text) = told.recv_timeout(PATIENCE) {
        all.push(text);
    }
    all
}

fn click(action: &str, session: &str) -> Presented {
    Presented {
        action_id: ToolCallId::try_new(action).unwrap(),
        session: SessionId::try_new(session).unwrap(),
        action: PresentedAction::Point(PointActionKind::LeftClick),
        point: ScreenPoint::try_new(1.0, 2.0).ok(),
        start: None,
        target_window_id: None,
    }
}

const OK: Ended = Ended::Ok { resolved: None };

fn never() -> Signal {
    Box::pin(std::future::pending())
}

fn at_once() -> Signal {
    Box::pin(std::future::ready(()))
}

fn when(token: &CancellationToken) -> Signal {
    let token = token.clone();
    Box::pin(async move { token.cancelled().await })
}

fn fence(ready_for_interaction: Signal, finished: Signal) -> Result<Option<Fence>, SinkError> {
    Ok(Some(Fence {
        ready_for_interaction,
        finished,
        ready_timeout: None,
    }))
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it ends in time")
}

fn free() -> CancellationToken {
    CancellationToken::new()
}

#[test]
fn the_bounds_are_those_of_the_protocol() {
    let bounds = Bounds::SPECIFIED;
    assert_eq!(bounds.finished, Duration::from_millis(1500));
    let ready = |asked: Option<u64>| bounds.ready(asked.map(Duration::from_millis)).as_millis();
    for (asked, expected) in [
        (None, 1000),
        (Some(0), 1000),
        (Some(999), 1000),
        (Some(2500), 2500),
        (Some(u64::MAX), READY_CEILING.as_millis()),
    ] {
        assert_eq!(ready(asked), expected, "{asked:?}");
    }
}

/// The beginning comes before the action, the end after it, and the action's result passes through untouched.
#[tokio::test]
async fn an_action_is_presented_around_its_dispatch() {
    let ready = free();
    let gate = ready.clone();
    let (overlay, told) = overlay(LONG, move || fence(when(&gate), at_once()));
    let cancel = free();
    let order = Arc::new(Mutex::new(Vec::new()));
    let dispatch = async {
        order.lock().unwrap().push("dispatched");
        42
    };
    let opened = async {
        // Not before the sink was told, and not before it says so.
        let first = loop {
            match told.try_recv() {
                Ok(text) => break text,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        assert_eq!(first, "move a");
        order.lock().unwrap().push("ready");
        ready.cancel();
    };
    let (result, ()) = soon(async {
        tokio::join!(
            overlay.present(click("a", "s"), &cancel, dispatch, |_| OK),
            opened
        )
    })
    .await;
    assert_eq!(result, Ok(42));
    assert_eq!(*order.lock().unwrap(), ["ready", "dispatched"]);
    assert_eq!(all(overlay, &told), ["complete a"]);
}

#[tokio::test]
async fn each_end_is_told_once() {
    let (overlay, told) = overlay(LONG, || Ok(None));
    for (action, ended) in [("a", OK), ("b", Ended::NotOk), ("c", Ended::NoResult)] {
        let presentation = soon(overlay.begin(click(action, "s"), &free()))
            .await
            .unwrap();
        presentation.end(ended);
    }
    drop(soon(overlay.begin(click("d", "s"), &free())).await.unwrap());
    let typed = Presented {
        action: PresentedAction::Key(KeyActionKind::Type),
        ..click("e", "s")
    };
    soon(overlay.present(typed, &free(), async {}, |()| OK))
        .await
        .unwrap();
    assert_eq!(
        all(overlay, &told),
        [
            "move a",
            "complete a",
            "move b",
            "cancel b",
            "move c",
            "cancel c",
            "move d",
            "cancel d",
            "ensure s"
        ]
    );
}

/// A fence that never opens, a sink that fails or panics, and one that hangs: the action goes on, and it is ended where it begun.
#[tokio::test]
async fn a_sink_that_does_not_behave_delays_within_its_bound() {
    let panics = || -> Signal { Box::pin(async { panic!("a sink's signal") }) };
    let sinks: [(&str, OnMove); 5] = [
        ("never ready", Box::new(|| fence(never(), at_once()))),
        ("an error", Box::new(|| Err("broken".into()))),
        ("a panic", Box::new(|| panic!("a sink"))),
        (
            "a panic while ready",
            Box::new(move || fence(panics(), panics())),
        ),
        ("never finished", Box::new(|| fence(at_once(), never()))),
    ];
    for (name, on_move) in sinks {
        let (overlay, told) = overlay(SHORT, on_move);
        let result = soon(overlay.present(click("a", "s"), &free(), async { name }, |_| OK)).await;
        assert_eq!(result, Ok(name));
        soon(overlay.close()).await;
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "move a", "{name}");
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "complete a", "{name}");
    }
}

/// A signal that panics counts as having happened: nobody waits for a bound that is never met here.
#[tokio::test]
async fn a_signal_that_panics_has_happened() {
    let panics = || -> Signal { Box::pin(async { panic!("a sink's signal") }) };
    let (overlay, told) = overlay(LONG, move || fence(panics(), panics()));
    let result = soon(overlay.present(click("a", "s"), &free(), async { 1 }, |_| OK)).await;
    assert_eq!(result, Ok(1));
    soon(overlay.close()).await;
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "move a");
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "complete a");
}

/// A sink that hangs is left alone: its queue fills, every action goes on, and what was begun is ended when it comes to itself.
#[tokio::test]
async fn a_sink_that_hangs_holds_up_no_action() {
    let (release, held) = std_mpsc::channel::<()>();
    let (overlay, told) = overlay(SHORT, move || {
        // Released, or given up together with the test.
        held.recv().ok();
        Ok(None)
    });
    for number in 0..3 * ORDERS {
        let click = click(&number.to_string(), "s");
        let result = soon(overlay.present(click, &free(), async { number }, |_| OK)).await;
        assert_eq!(result, Ok(number));
    }
    drop(release);
    let all = all(overlay, &told);
    assert!(all.len() <= ORDERS + 2, "{all:?}");
    let begun: Vec<_> = all
        .iter()
        .filter_map(|text| text.strip_prefix("move "))
        .collect();
    let ended: Vec<_> = all
        .iter()
        .filter_map(|text| text.strip_prefix("complete "))
        .collect();
    assert!(!begun.is_empty(), "the first is seen: {all:?}");
    assert_eq!(begun, ended, "what was begun is ended, in order");
}

/// The abort wins over a fence that is ready, and an action given up before its turn is never shown.
#[tokio::test]
async fn an_abort_wins() {
    let (overlay, told) = overlay(LONG, || fence(never(), at_once()));
    let cancel = free();
    cancel.cancel();
    let refused = soon(overlay.begin(click("early", "s"), &cancel)).await;
    assert!(matches!(refused, Err(Aborted)));

    let cancel = free();
    let begun = overlay.begin(click("a", "s"), &cancel);
    let abort = async {
        while told.try_recv() != Ok("move a".to_owned()) {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (aborted, ()) = soon(async { tokio::join!(begun, abort) }).await;
    assert!(matches!(aborted, Err(Aborted)));
    assert_eq!(all(overlay, &told), ["cancel a"]);
}

/// The next presentation waits until the one before is finished; its own action's answer does not.
#[tokio::test]
async fn presentations_come_one_after_the_other() {
    let finished = free();
    let gate = finished.clone();
    let (overlay, told) = overlay(LONG, move || fence(at_once(), when(&gate)));
    let (a, b) = (free(), free());
    soon(overlay.present(click("a", "s"), &a, async {}, |()| OK))
        .await
        .unwrap();
    let second = overlay.present(click("b", "t"), &b, async {}, |()| OK);
    let first_is_over = async {
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "move a");
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "complete a");
        // The second one had its chance to be told of while the first was not finished.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(told.try_recv().is_err());
        finished.cancel();
    };
    let (second, ()) = soon(async { tokio::join!(second, first_is_over) }).await;
    second.unwrap();
    assert_eq!(all(overlay, &told), ["move b", "complete b"]);
}

/// A presentation that takes too long costs the next one its place, not the action its turn.
#[tokio::test]
async fn an_action_does_not_wait_for_ever_for_its_turn() {
    let bounds = Bounds {
        slot: SHORT.slot,
        ..LONG
    };
    let (overlay, told) = overlay(bounds, || fence(at_once(), at_once()));
    let first = soon(overlay.begin(click("a", "s"), &free())).await.unwrap();
    let second = soon(overlay.present(click("b", "t"), &free(), async { 2 }, |_| OK)).await;
    assert_eq!(second, Ok(2), "it went on unseen");
    first.end(OK);
    assert_eq!(all(overlay, &told), ["move a", "complete a"]);
}

/// Clearing a session wakes those who wait for its fence, for the slot, and for its finish; another session's wait goes on.
#[tokio::test]
async fn clearing_a_session_wakes_its_waiters() {
    let (overlay, told) = overlay(LONG, || fence(never(), never()));
    let session = SessionId::try_new("s").unwrap();
    let other = SessionId::try_new("t").unwrap();
    let cancel = free();
    let (fenced, queued) = (
        overlay.begin(click("fenced", "s"), &cancel),
        overlay.begin(click("queued", "s"), &cancel),
    );
    let cleared = async {
        while told.try_recv() != Ok("move fenced".to_owned()) {
            tokio::task::yield_now().await;
        }
        overlay.clear_session(&other);
        tokio::task::yield_now().await;
        assert_eq!(
            overlay.waiters.lock().tokens.len(),
            2,
            "another session wakes nobody"
        );
        overlay.clear_session(&session);
    };
    let (fenced, queued, ()) = soon(async { tokio::join!(fenced, queued, cleared) }).await;
    assert!(queued.unwrap().shown.is_none(), "it had no slot yet");
    fenced.unwrap().end(OK);
    // Its finish never comes; clearing ends that wait too.
    overlay.clear_session(&session);
    let waiters = overlay.waiters.clone();
    soon(overlay.close()).await;
    assert!(waiters.lock().tokens.is_empty(), "no wait is left behind");
}
