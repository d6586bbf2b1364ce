//! The life of sessions and snapshots, row by row and as laws over random orders of events.

use maka_cu_protocol::ids::Digest;
use proptest::prelude::*;

use super::*;
use crate::backend::desktop::ProcessStart;
use crate::observe::lineage::Lineage;

const LIMITS: SnapshotLimits = SnapshotLimits {
    per_session: 3,
    ttl: Duration::from_secs(10),
};

fn session_id(id: &str) -> SessionId {
    SessionId::try_new(id).unwrap()
}

/// Reserves and registers a snapshot of window number `window`.
fn observe(
    sessions: &mut Sessions,
    handle: &SessionHandle,
    window: u32,
    taken: Instant,
) -> SnapshotId {
    let id = sessions.reserve(handle).unwrap();
    let key = WindowKey {
        pid: 1,
        window_id: window,
    };
    let digest = Digest::of(b"");
    let snapshot = Snapshot::new(
        id.clone(),
        key,
        ProcessStart(1),
        taken,
        digest,
        Vec::new(),
        Vec::new(),
        None,
    );
    let base = Lineage::trace(None, &[]).leave(id.clone(), taken, &[]);
    let kept = Kept {
        snapshot: Arc::new(snapshot),
        base: Arc::new(base),
    };
    sessions.register(handle, kept).unwrap();
    id
}

fn code(
    sessions: &mut Sessions,
    handle: &SessionHandle,
    id: &SnapshotId,
    now: Instant,
) -> Option<DomainCode> {
    sessions.resolve(handle, id, now).err()
}

#[test]
fn each_end_of_a_snapshot_keeps_its_code() {
    let mut sessions = Sessions::new("n", LIMITS);
    sessions
        .begin(session_id("s"), CaptureScope::Window)
        .unwrap();
    let handle = sessions.find(&session_id("s")).unwrap();
    let start = Instant::now();
    let superseded = observe(&mut sessions, &handle, 1, start);
    let spent = observe(&mut sessions, &handle, 1, start);
    sessions.spend(&handle, &spent);
    let evicted = observe(&mut sessions, &handle, 2, start);
    let expired: Vec<_> = (3..6)
        .map(|window| observe(&mut sessions, &handle, window, start))
        .collect();
    let reserved = sessions.reserve(&handle).unwrap();
    let later = start + LIMITS.ttl;
    let live = observe(&mut sessions, &handle, 9, later);
    let rows = [
        (&superseded, Some(DomainCode::SnapshotSuperseded)),
        (&spent, Some(DomainCode::SnapshotSpent)),
        (&evicted, Some(DomainCode::SnapshotEvicted)),
        (&expired[0], Some(DomainCode::SnapshotEvicted)),
        (&expired[2], Some(DomainCode::SnapshotExpired)),
        (&reserved, Some(DomainCode::SnapshotUnknown)),
        (&live, None),
    ];
    for _ in 0..2 {
        for (id, expected) in rows {
            assert_eq!(code(&mut sessions, &handle, id, later), expected, "{id}");
        }
        // A state is final: spending what is not live changes nothing.
        for (id, expected) in rows {
            if expected.is_some() {
                sessions.spend(&handle, id);
            }
        }
    }
}

#[test]
fn a_session_begins_by_itself_once_at_most() {
    let mut sessions = Sessions::new("n", LIMITS);
    let id = session_id("s");
    let first = sessions.adopt(&id).unwrap();
    assert_eq!(first.scope, CaptureScope::Window);
    assert_eq!(sessions.adopt(&id), Ok(first), "it is live");
    sessions.end(&id);
    assert_eq!(sessions.adopt(&id), Err(AdoptError::Gone(SessionGone)));
    sessions.begin(id.clone(), CaptureScope::Desktop).unwrap();
    assert_eq!(sessions.adopt(&id).unwrap().scope, CaptureScope::Desktop);
    for number in 0..ENDED_REMEMBERED {
        let id = session_id(&format!("e-{number}"));
        sessions.begin(id.clone(), CaptureScope::Window).unwrap();
        sessions.end(&id);
    }
    let never_seen = session_id("never");
    assert_eq!(
        sessions.adopt(&never_seen),
        Err(AdoptError::Gone(SessionGone)),
        "nobody can tell any more"
    );
    assert_eq!(sessions.begin(never_seen, CaptureScope::Window), Ok(()));
}

#[test]
fn an_anchor_is_the_only_live_snapshot_of_its_process() {
    let mut sessions = Sessions::new("n", LIMITS);
    let handle = sessions.adopt(&session_id("s")).unwrap();
    let now = Instant::now();
    assert_eq!(sessions.only_live_of(&handle, 1, now), Ok(None));
    let first = observe(&mut sessions, &handle, 1, now);
    assert_eq!(sessions.only_live_of(&handle, 1, now), Ok(Some(first)));
    assert_eq!(
        sessions.only_live_of(&handle, 2, now),
        Ok(None),
        "another process"
    );
    let newer = observe(&mut sessions, &handle, 1, now);
    assert_eq!(
        sessions.only_live_of(&handle, 1, now),
        Ok(Some(newer.clone()))
    );
    let second = observe(&mut sessions, &handle, 2, now);
    assert_eq!(sessions.only_live_of(&handle, 1, now), Err(SeveralLive));
    sessions.spend(&handle, &newer);
    assert_eq!(sessions.only_live_of(&handle, 1, now), Ok(Some(second)));
    assert_eq!(
        sessions.only_live_of(&handle, 1, now + LIMITS.ttl),
        Ok(None),
        "expired"
    );
}

#[test]
fn a_session_that_ended_shares_nothing_with_its_successor() {
    let mut sessions = Sessions::new("n", LIMITS);
    let id = session_id("s");
    sessions.begin(id.clone(), CaptureScope::Window).unwrap();
    assert_eq!(
        sessions.begin(id.clone(), CaptureScope::Desktop),
        Err(BeginError::Live)
    );
    let old = sessions.find(&id).unwrap();
    let now = Instant::now();
    let snapshot = observe(&mut sessions, &old, 1, now);
    assert_eq!(
        sessions.end(&id),
        Released {
            snapshots: 1,
            images: 0
        }
    );
    assert_eq!(sessions.end(&id), Released::default());
    sessions.begin(id.clone(), CaptureScope::Window).unwrap();
    let new = sessions.find(&id).unwrap();
    assert_eq!(
        sessions.reserve(&old),
        Err(SessionGone),
        "a request in flight belongs to the old one"
    );
    assert_eq!(
        code(&mut sessions, &old, &snapshot, now),
        Some(DomainCode::SnapshotUnknown)
    );
    assert_eq!(
        code(&mut sessions, &new, &snapshot, now),
        Some(DomainCode::SnapshotUnknown)
    );
    assert_eq!(sessions.window_of(&id, &snapshot), None);
}

#[test]
fn the_number_of_sessions_is_bounded() {
    let mut sessions = Sessions::new("n", LIMITS);
    for number in 0..MAX_SESSIONS {
        sessions
            .begin(session_id(&number.to_string()), CaptureScope::Window)
            .unwrap();
    }
    assert_eq!(
        sessions.begin(session_id("more"), CaptureScope::Window),
        Err(BeginError::TooMany)
    );
}

proptest! {
    /// Whatever the order of observations, spending and time: at most `per_session` live ones, at most one per
    /// window, and a dead one never lives again.
    #[test]
    fn live_snapshots_stay_within_their_bounds(steps in prop::collection::vec((0u8..4, 0u32..5), 1..60)) {
        let mut sessions = Sessions::new("n", LIMITS);
        sessions.begin(session_id("s"), CaptureScope::Window).unwrap();
        let handle = sessions.find(&session_id("s")).unwrap();
        let mut now = Instant::now();
        let mut minted: Vec<(SnapshotId, u32, Option<DomainCode>)> = Vec::new();
        for (step, number) in steps {
            match step {
                0 | 1 => minted.push((observe(&mut sessions, &handle, number, now), number, None)),
                2 => if let Some((id, ..)) = minted.get(number as usize) { sessions.spend(&handle, id) },
                _ => now += Duration::from_secs(u64::from(number)),
            }
            let mut windows = Vec::new();
            for (id, window, before) in &mut minted {
                let code = sessions.resolve(&handle, id, now).err();
                prop_assert!(before.is_none() || code == *before, "{} came back or changed its code", id);
                if code.is_none() {
                    windows.push(*window);
                }
                *before = code;
            }
            prop_assert!(windows.len() <= LIMITS.per_session);
            windows.sort_unstable();
            windows.dedup_by(|one, other| one == other);
            let live = minted.iter().filter(|(.., code)| code.is_none()).count();
            prop_assert_eq!(windows.len(), live, "one live snapshot per window");
        }
    }
}
