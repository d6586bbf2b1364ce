//! Captures: what the judge said is what a replay says, for admissions and reviews, and nothing else gets into the file.

use std::sync::Arc;
use std::time::Instant;

use super::corpus::{click, observe, result};
use super::support::{Bench, call, given, load, prebuilt, shared};
use crate::capture::{
    Capture, CaptureError, CaptureRunning, CaptureSecret, Capturing, Ended, Writer, replay,
};
use crate::facts::{Effect, Outcome, Path, Tier};
use crate::judge::Answer;
use crate::set::PolicySet;

#[test]
fn a_replay_says_what_was_said_and_another_policy_says_something_else() {
    let Bench {
        judge,
        folder: _log,
    } = Bench::new(vec![load("allow-all", prebuilt("allow-all")).unwrap()]);
    let judge = Arc::new(judge);
    let secret = CaptureSecret::from_seed([3; 32]);

    assert!(
        judge
            .admit_dispatch(&given(&observe()), call(&observe()))
            .is_ok()
    );
    let mut capturing = Capturing::begin(Arc::clone(&judge), None).unwrap();
    assert_eq!(
        Capturing::begin(Arc::clone(&judge), None).unwrap_err(),
        CaptureRunning
    );
    let permit = judge
        .admit_dispatch(&given(&click()), call(&click()))
        .unwrap();
    let answer = Answer::Dispatch {
        result: result(Tier::Ax, Path::AxAction, Outcome::Ok, Effect::Confirmed),
        arm_ok: true,
    };
    drop(judge.review(permit.receipt(), answer));
    let mut denied = click();
    denied.claim.snapshot_id = "never-seen".to_owned();
    denied.snapshot.state = crate::facts::SnapshotState::NeverSeen;
    judge
        .admit_dispatch(&given(&denied), call(&denied))
        .unwrap_err();
    capturing.stop();
    assert!(
        judge
            .admit_dispatch(&given(&observe()), call(&observe()))
            .is_ok()
    );

    let (mut writer, mut file) = Writer::begin(&secret.public()).unwrap();
    while let Some(taken) = capturing.waiting() {
        file.extend(writer.decision(&taken));
    }
    let dropped = capturing.dropped();
    file.extend(writer.end(Ended::Time, dropped));
    drop(capturing);
    assert!(Capturing::begin(Arc::clone(&judge), None).is_ok());

    let other = CaptureSecret::from_seed([4; 32]);
    assert_eq!(
        Capture::read(&file, &other).unwrap_err(),
        CaptureError::WrongKey
    );
    let capture = Capture::read(&file, &secret).unwrap();
    assert_eq!((capture.ended, capture.dropped), (Ended::Time, 0));
    assert_eq!(capture.decisions.len(), 3);
    let hooks: Vec<_> = capture.decisions.iter().map(|it| it.hook()).collect();
    assert_eq!(hooks, ["admit-dispatch", "review-result", "admit-dispatch"]);

    let (engine, floor) = shared();
    let set = judge.active_sets().remove(0);
    let deny = load("deny-all", prebuilt("deny-all")).unwrap();
    let against = PolicySet::new(engine, "default", floor, vec![deny]).unwrap();
    for recorded in &capture.decisions {
        let was = &capture.sets[recorded.set];
        assert!(recorded.is_comparable());
        let same = replay(engine, &set, was, recorded);
        assert_eq!(Some(&same.together), recorded.together());
        assert_eq!(same.said, recorded.said());
    }
    let first = &capture.decisions[0];
    let other = replay(engine, &against, &capture.sets[first.set], first);
    assert_ne!(Some(&other.together), first.together());
    assert_eq!(other.together.decision, "deny");
}

/// A capture that nobody reads delays and refuses nothing; what has no room is counted.
#[test]
fn a_full_queue_refuses_nothing() {
    let Bench {
        judge,
        folder: _log,
    } = Bench::new(Vec::new());
    let judge = Arc::new(judge);
    let capturing = Capturing::begin(Arc::clone(&judge), None).unwrap();
    for _ in 0..140 {
        assert!(
            judge
                .admit_dispatch(&given(&observe()), call(&observe()))
                .is_ok()
        );
    }
    assert_eq!(capturing.dropped(), 140 - 128);
}

/// Typed text is in a capture only when a policy was granted it.
#[test]
fn typed_text_that_nobody_was_granted_is_not_kept() {
    use crate::facts::{Action, TextArgs};
    let Bench {
        judge,
        folder: _log,
    } = Bench::new(Vec::new());
    let judge = Arc::new(judge);
    let mut capturing = Capturing::begin(Arc::clone(&judge), None).unwrap();
    let mut facts = click();
    facts.action = Action::Text(TextArgs {
        length: 6,
        keyed_hash: "h".to_owned(),
        plain: Some("canary".to_owned()),
    });
    drop(judge.admit_dispatch(&given(&facts), call(&facts)));
    let taken = capturing.waiting().unwrap();
    let row = crate::capture::plain_row(&taken);
    assert!(
        row.contains("keyed-hash") || row.contains("keyed_hash"),
        "{row}"
    );
    assert!(!row.contains("canary"), "{row}");
}

/// A reader that does not look at the time keeps nothing going.
#[test]
fn nothing_is_taken_after_its_time() {
    let Bench {
        judge,
        folder: _log,
    } = Bench::new(Vec::new());
    let judge = Arc::new(judge);
    let mut capturing = Capturing::begin(Arc::clone(&judge), Some(Instant::now())).unwrap();
    drop(
        judge
            .admit_dispatch(&given(&click()), call(&click()))
            .unwrap(),
    );
    assert!(capturing.waiting().is_none());
    assert_eq!(capturing.dropped(), 0);
}
