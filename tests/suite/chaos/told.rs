//! What a watcher of `Events` was told, and the laws of that; and the law that it is needed for: no button stays down unreported.

use std::collections::{BTreeMap, BTreeSet};

use integration_tests::events::Watching;
use maka_proto::v1::{Outcome, event::Event as What};
use serde_json::Value;

/// The laws of one stream, read to its end.
///
/// - generations only grow, in states and in releases;
/// - an action ends once for each time that it begins, in that order, and begins anew only if it ended with nothing sent: whoever asks
///   again after that may be lucky;
/// - what was lost was counted, which the reading itself has checked.
pub(super) fn check(watching: &Watching, context: &str) {
    let mut newest = 0;
    let mut open = BTreeSet::new();
    let mut over = BTreeSet::new();
    for event in watching.seen() {
        match event {
            What::Executor(it) => {
                assert!(
                    it.generation >= newest,
                    "{} after {newest}\n{context}",
                    it.generation
                );
                newest = it.generation;
            }
            What::Released(it) => {
                assert!(it.generation <= newest, "{it:?} before it began\n{context}");
            }
            What::ActionBegan(it) => {
                let action = (it.session_id.clone(), it.action_id.clone());
                assert!(!over.contains(&action), "{it:?} was done before\n{context}");
                assert!(open.insert(action), "{it:?} began twice\n{context}");
            }
            What::ActionEnded(it) => {
                let action = (it.session_id.clone(), it.action_id.clone());
                assert!(
                    open.remove(&action) || watching.lost() > 0,
                    "{it:?} never began\n{context}"
                );
                match it.outcome() {
                    Outcome::Unspecified | Outcome::Refused => {}
                    Outcome::Ok | Outcome::Failed | Outcome::Unknown => {
                        over.insert(action);
                    }
                }
            }
            What::Current(it) => {
                newest = newest.max(
                    it.executor
                        .as_ref()
                        .map_or(0, |executor| executor.generation),
                );
            }
            What::SessionBegan(_)
            | What::SessionEnded(_)
            | What::SessionState(_)
            | What::MayBeHeld(_)
            | What::Approval(_)
            | What::ApprovalEnded(_)
            | What::Quarantine(_)
            | What::Disposed(_) => {}
        }
    }
    assert!(
        watching.lost() > 0 || open.is_empty(),
        "never ended: {open:?}\n{context}"
    );
}

/// No button stays down unreported (design.md §5.5). An executor that has read a press, and did not say that it refused it, has read
/// a release of that session afterwards, or its successor has, or did a whole click or drag, which ends with the button up; else a
/// watcher was told that the button may be held.
pub(super) fn nothing_stays_held(wire: &[Value], watching: &Watching, context: &str) {
    let refused = believed(wire, |said| {
        said["outcome"] == "refused" || said["error"] == SHUTTING_DOWN
    });
    let done = believed(wire, |said| said["outcome"] == "ok");
    let mut down: BTreeMap<&str, &Value> = BTreeMap::new();
    let (mut presses, mut releases) = (0, 0);
    for line in wire {
        let params = &line["params"];
        let (Some(session), Some(kind)) = (
            params["session"].as_str(),
            params["action"]["kind"].as_str(),
        ) else {
            continue;
        };
        match kind {
            "mouse_down" if !refused.contains(&line["id"].as_i64()) => {
                presses += 1;
                down.insert(session, line);
            }
            "mouse_up" => {
                releases += 1;
                down.remove(session);
            }
            "left_click" | "double_click" | "triple_click" | "drag"
                if done.contains(&line["id"].as_i64()) =>
            {
                down.remove(session);
            }
            _ => {}
        }
    }
    let told: BTreeSet<&str> = watching
        .seen()
        .iter()
        .filter_map(|event| match event {
            What::MayBeHeld(it) => Some(it.session_id.as_str()),
            _ => None,
        })
        .collect();
    down.retain(|session, _| !told.contains(session));
    assert!(
        watching.lost() > 0 || down.is_empty(),
        "held and not reported: {down:?}\n{context}"
    );
    assert!(
        presses == 0 || releases > 0 || !told.is_empty(),
        "the law was not put to the test\n{context}"
    );
}

/// What an executor that ends says of a request that it only read (spec maka-cu §1.2).
const SHUTTING_DOWN: i32 = -32003;

/// The requests of which an executor said this, in answers that may be believed.
fn believed(wire: &[Value], said: impl Fn(&Value) -> bool) -> BTreeSet<Option<i64>> {
    let of = |event: &str, wanted: &dyn Fn(&Value) -> bool| -> BTreeSet<Option<i64>> {
        let details = wire
            .iter()
            .filter(|line| line["event"] == event)
            .map(|line| &line["detail"]);
        details
            .filter(|detail| wanted(detail))
            .map(|detail| detail["id"].as_i64())
            .collect()
    };
    let lies = of("fault", &|detail| detail["honest"] == false);
    let answered = of("reply", &|detail| said(&detail["said"]));
    answered.difference(&lies).copied().collect()
}
