//! The table against a model that knows nothing of lines: whatever happens in whatever order, a call is let through
//! exactly when somebody approved that action of that session, nobody took it back, nothing it was given for has changed,
//! its time is not up, and it was not used.

use std::collections::HashMap;

use maka_policy_host::digest::Digest;
use proptest::prelude::*;

use super::book::Counts;
use super::*;

const LIFETIME: Duration = Duration::from_secs(60);

fn session(number: usize) -> SessionId {
    SessionId::try_new(format!("s_{number}")).unwrap()
}

fn fingerprint(action: usize) -> Fingerprint {
    Fingerprint::from_digest(Digest::of(format!("{action}").as_bytes()))
}

fn wanted(of: usize, action: usize, decision_id: &str) -> Wanted {
    Wanted {
        session: session(of),
        principal: PrincipalName::new("agent"),
        tool_call_id: "call".to_owned(),
        turn: String::new(),
        method: "dispatch.element",
        kind: "click".to_owned(),
        text_length: None,
        key: None,
        point: None,
        launch: None,
        app_id: "org.example.Notes".to_owned(),
        window: None,
        snapshot_id: format!("snap_{of}"),
        window_digest: String::new(),
        element: None,
        tier: None,
        path: None,
        asks: Vec::new(),
        decision_id: decision_id.to_owned(),
        fingerprint: fingerprint(action),
    }
}

/// The world as a session and the table see it.
#[derive(Clone, Debug)]
struct World {
    now: Now,
    rows: [u64; 2],
    burials: [u64; 2],
}

impl World {
    fn new() -> Self {
        Self {
            now: Now {
                at: Instant::now(),
                unix_ms: 1_000_000,
                policy_generation: 1,
                executor_generation: 1,
            },
            rows: [1; 2],
            burials: [0; 2],
        }
    }

    fn binding(&self, of: usize, action: usize) -> Binding {
        Binding {
            session: session(of),
            fingerprint: fingerprint(action),
            row_version: self.rows[of],
            burials: self.burials[of],
            executor_generation: self.now.executor_generation,
            policy_generation: self.now.policy_generation,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now.at += time;
        self.now.unix_ms += u64::try_from(time.as_millis()).unwrap();
    }

    fn ask(&self, book: &mut Book, of: usize, action: usize, id: &str) -> Option<(Approval, bool)> {
        let binding = self.binding(of, action);
        book.ask(binding, wanted(of, action, id), &self.now, LIFETIME)
    }

    fn resolve(
        &self,
        book: &mut Book,
        id: &ApprovalId,
        resolution: Resolution,
    ) -> Result<Approval, ApprovalError> {
        book.resolve(id, &PrincipalName::new("operator"), resolution, &self.now)
    }

    /// What a session does: look, have it judged with what it found, and use it up before it sends.
    fn let_through(&self, book: &mut Book, of: usize, action: usize) -> bool {
        let binding = self.binding(of, action);
        match book.standing(&binding, &self.now) {
            Standing::Granted(grant) => {
                assert!(grant.expires_unix_ms > self.now.unix_ms && grant.unused);
                assert_eq!(grant.fingerprint, fingerprint(action).to_string());
                book.consume(&ApprovalId::new(grant.id), &binding, &self.now)
            }
            Standing::Nothing | Standing::Waiting(_) | Standing::Rejected | Standing::Full => false,
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Ask(usize, usize),
    Resolve(prop::sample::Index, bool),
    LetThrough(usize, usize),
    Pass(u64),
    Reload,
    Restart,
    RowChanges(usize),
    RowsFollowed(usize),
    Intervention(usize),
    InterventionTold(usize),
    SessionEnds(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0_usize..2, 0_usize..3);
    prop_oneof![
        6 => place().prop_map(|(of, action)| Step::Ask(of, action)),
        6 => (any::<prop::sample::Index>(), prop::bool::weighted(0.8))
            .prop_map(|(which, approve)| Step::Resolve(which, approve)),
        8 => place().prop_map(|(of, action)| Step::LetThrough(of, action)),
        2 => (1_u64..50).prop_map(Step::Pass),
        1 => Just(Step::Reload),
        1 => Just(Step::Restart),
        1 => (0_usize..2).prop_map(Step::RowChanges),
        1 => (0_usize..2).prop_map(Step::RowsFollowed),
        1 => (0_usize..2).prop_map(Step::Intervention),
        1 => (0_usize..2).prop_map(Step::InterventionTold),
        1 => (0_usize..2).prop_map(Step::SessionEnds),
    ]
}

/// What was asked, and what became of it, without any of the table's means.
#[derive(Debug)]
struct Asked {
    of: usize,
    action: usize,
    binding: Binding,
    /// Approved, and good until then.
    good_until: Option<Instant>,
    over: bool,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// K7, and the law of the table.
    #[test]
    fn nothing_passes_without_a_live_unused_matching_grant(steps in prop::collection::vec(step(), 0..60)) {
        let (mut book, mut world) = (Book::default(), World::new());
        let mut asked: Vec<(ApprovalId, Asked)> = Vec::new();
        let mut ended = HashMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Ask(of, action) => {
                    let id = format!("d{number:03}");
                    if let Some((approval, true)) = world.ask(&mut book, of, action, &id) {
                        prop_assert_eq!(approval.id.as_str(), &id);
                        let binding = world.binding(of, action);
                        asked.push((approval.id, Asked { of, action, binding, good_until: None, over: false }));
                    }
                }
                Step::Resolve(which, approve) if !asked.is_empty() => {
                    let (id, asked) = which.get_mut(&mut asked);
                    let resolution = if approve { Resolution::Approve } else { Resolution::Reject };
                    if let Ok(approval) = world.resolve(&mut book, id, resolution) {
                        prop_assert!(!asked.over, "what is over is not decided on");
                        prop_assert_eq!(asked.binding.policy_generation, world.now.policy_generation);
                        prop_assert_eq!(asked.binding.executor_generation, world.now.executor_generation);
                        prop_assert!(asked.good_until.is_none() || !approve, "nothing is approved twice");
                        asked.good_until = approve.then(|| world.now.at + LIFETIME);
                        prop_assert!(approval.expires_unix_ms > world.now.unix_ms);
                    }
                }
                Step::Resolve(..) => {}
                Step::LetThrough(of, action) => {
                    let now = world.binding(of, action);
                    let good = asked.iter_mut().find(|(_, asked)| {
                        (asked.of, asked.action, &asked.binding) == (of, action, &now)
                            && !asked.over
                            && asked.good_until.is_some_and(|until| until > world.now.at)
                    });
                    let expected = good.is_some();
                    if let Some((_, used)) = good {
                        used.over = true;
                    }
                    prop_assert_eq!(world.let_through(&mut book, of, action), expected);
                    prop_assert!(!world.let_through(&mut book, of, action), "no grant is used twice");
                }
                Step::Pass(seconds) => world.pass(Duration::from_secs(seconds)),
                Step::Reload => world.now.policy_generation += 1,
                Step::Restart => world.now.executor_generation += 1,
                Step::RowChanges(of) => world.rows[of] += 1,
                Step::RowsFollowed(of) => book.follow_rows(&session(of), |_| Some(world.rows[of])),
                Step::Intervention(of) => world.burials[of] += 1,
                Step::InterventionTold(of) => {
                    world.burials[of] += 1;
                    book.drop_session(&session(of), ApprovalEnd::Intervened);
                }
                Step::SessionEnds(of) => {
                    book.drop_session(&session(of), ApprovalEnd::SessionEnded);
                    asked.iter_mut().filter(|(_, asked)| asked.of == of).for_each(|(_, asked)| asked.over = true);
                }
            }
            book.sweep(&world.now);
            for of in 0..2 {
                let lines = book.list().iter().filter(|it| it.wanted.session == session(of)).count();
                prop_assert!(lines <= PENDING_MAX);
            }
            for (approval, why) in book.take_ended() {
                prop_assert_eq!(ended.insert(approval.id, why), None, "nothing ends twice");
            }
        }
        let Counts { asked: count, used, expired, dropped, .. } = book.counts();
        let left = u64::try_from(book.list().len()).unwrap();
        prop_assert_eq!(count, used + expired + dropped + left, "everything asked is somewhere");
        prop_assert_eq!(u64::try_from(ended.len()).unwrap(), used + expired + dropped);
    }
}

/// The same action is asked for once, whatever the key; the fifth action of a session has to wait; a rejection is
/// remembered, counts, and is not asked about again until it is over.
#[test]
fn a_session_asks_for_each_action_once_and_for_four_at_a_time() {
    let (mut book, mut world) = (Book::default(), World::new());
    let (first, is_new) = world.ask(&mut book, 0, 0, "a").unwrap();
    assert!(is_new);
    let (again, is_new) = world.ask(&mut book, 0, 0, "b").unwrap();
    assert_eq!((again.id, is_new), (first.id.clone(), false));
    for (action, id) in [(1, "c"), (2, "d"), (3, "e")] {
        world.ask(&mut book, 0, action, id).unwrap();
    }
    assert_eq!(
        book.standing(&world.binding(0, 4), &world.now),
        Standing::Full
    );
    assert_eq!(world.ask(&mut book, 0, 4, "f"), None);
    assert!(world.ask(&mut book, 1, 4, "g").is_some(), "another session");

    world
        .resolve(&mut book, &first.id, Resolution::Reject)
        .unwrap();
    assert_eq!(
        book.standing(&world.binding(0, 0), &world.now),
        Standing::Rejected
    );
    assert_eq!(world.ask(&mut book, 0, 0, "h"), None);
    assert_eq!(world.ask(&mut book, 0, 4, "i"), None, "it counts");
    for resolution in [Resolution::Approve, Resolution::Reject] {
        let settled = world.resolve(&mut book, &first.id, resolution);
        assert_eq!(settled, Err(ApprovalError::Settled));
    }
    world.pass(LIFETIME);
    assert_eq!(
        book.standing(&world.binding(0, 0), &world.now),
        Standing::Nothing
    );
    let gone = world.resolve(&mut book, &first.id, Resolution::Approve);
    assert_eq!(gone, Err(ApprovalError::Unknown));
}

/// Each way for a grant to die is told by its own name, and the next one of the same action starts from nothing.
#[test]
fn a_grant_dies_for_a_stated_reason() {
    type Change = fn(&mut World, &mut Book);
    let rows: [(ApprovalEnd, Change); 7] = [
        (ApprovalEnd::Used, |world, book| {
            assert!(world.let_through(book, 0, 0));
        }),
        (ApprovalEnd::Expired, |world, _| world.pass(LIFETIME)),
        (ApprovalEnd::PolicyChanged, |world, _| {
            world.now.policy_generation += 1;
        }),
        (ApprovalEnd::ExecutorChanged, |world, _| {
            world.now.executor_generation = 0;
        }),
        (ApprovalEnd::SnapshotChanged, |world, _| world.rows[0] += 1),
        (ApprovalEnd::Intervened, |world, _| world.burials[0] += 1),
        (ApprovalEnd::SessionEnded, |_, book| {
            book.drop_session(&session(0), ApprovalEnd::SessionEnded);
        }),
    ];
    assert_eq!(rows.map(|(why, _)| why), ApprovalEnd::ALL);
    for (why, change) in rows {
        let (mut book, mut world) = (Book::default(), World::new());
        let (approval, _) = world.ask(&mut book, 0, 0, "a").unwrap();
        world
            .resolve(&mut book, &approval.id, Resolution::Approve)
            .unwrap();
        change(&mut world, &mut book);
        assert!(!world.let_through(&mut book, 0, 0), "{}", why.as_str());
        let ended: Vec<_> = book.take_ended().into_iter().map(|(_, why)| why).collect();
        assert_eq!(ended, [why]);
        assert!(book.is_empty());
    }
}
