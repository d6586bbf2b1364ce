//! Keys: whose they are, what they remember, and in how much room.

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::geometry::ScreenPoint;
use maka_cu_protocol::results::dispatch::{Settle, Verification};
use maka_cu_protocol::sets::{ChangedInput, Effect, Outcome, Path, ReleaseReason, Tier};

use super::*;
use crate::session::answer::DomainFault;
use crate::session::outcome;

fn key(number: usize) -> ToolCallId {
    ToolCallId::try_new(format!("call_{number}")).unwrap()
}

fn stored(number: usize) -> Stored {
    Stored::Launch(Box::new(outcome::launch_lost(
        format!("decision_{number}"),
        None,
    )))
}

#[test]
fn a_key_belongs_to_its_first_request() {
    let mut keys = Keys::default();
    let (first, second) = (Digest::of(b"1"), Digest::of(b"2"));
    assert!(matches!(keys.look(&key(1), first), Known::Free));
    keys.keep(&key(1), first, stored(1));
    keys.keep(&key(1), second, stored(2));
    assert!(matches!(keys.look(&key(1), second), Known::Taken));
    let Known::Ended(Stored::Launch(outcome)) = keys.look(&key(1), first) else {
        panic!()
    };
    assert_eq!(outcome.decision_id, "decision_1");
}

/// A session whose keys are used up refuses new ones and still knows the old ones.
#[test]
fn no_key_is_ever_forgotten() {
    let mut keys = Keys::default();
    let request = Digest::of(b"request");
    for number in 0..KEYS_MAX {
        keys.keep(&key(number), request, stored(number));
    }
    assert!(matches!(keys.look(&key(KEYS_MAX), request), Known::Full));
    for number in [0, 1, KEYS_MAX - 1] {
        assert!(matches!(keys.look(&key(number), request), Known::Ended(_)));
    }
}

/// Field report H24: what a session keeps of each of its calls for as long as it lives.
#[test]
fn a_remembered_outcome_is_small() {
    assert!(size_of::<Settled>() <= 112, "{}", size_of::<Settled>());
    assert!(size_of::<(Remembered, Entry)>() <= 64);
}

/// Whatever an outcome says, it says it again when it is repeated.
#[test]
fn an_outcome_is_repeated_to_the_letter() {
    let fault = DomainFault {
        changed: vec![ChangedInput::Value],
        ..DomainFault::of(DomainCode::ElementChanged)
    };
    let refused = DispatchOutcome {
        tool_call_id: key(1),
        outcome: Outcome::Refused,
        tier: Tier::Ax,
        path: Path::None,
        effect: Effect::Unverifiable,
        verification: Verification::NONE,
        settle: Some(Settle::NOT_REQUESTED),
        error: Some(fault),
        frame: None,
        observation_error: Some(DomainFault::of(DomainCode::CaptureFailed)),
        decision_id: "d_1".into(),
        resolved_screen_point: ScreenPoint::try_new(1.0, 2.0).ok(),
        withheld: true,
        release_reason: Some(ReleaseReason::ChildExit),
        dry_run: false,
        replayed: false,
        max_bytes: None,
    };
    let plain = DispatchOutcome {
        tool_call_id: key(2),
        error: None,
        observation_error: None,
        resolved_screen_point: None,
        ..refused.clone()
    };
    let (mut keys, request) = (Keys::default(), Digest::of(b"request"));
    for outcome in [refused, plain] {
        let key = outcome.tool_call_id.clone();
        let said = format!("{outcome:?}");
        keys.keep(&key, request, Stored::Dispatch(Box::new(outcome)));
        let Known::Ended(Stored::Dispatch(again)) = keys.look(&key, request) else {
            panic!()
        };
        assert_eq!(format!("{again:?}"), said);
    }
}
