//! Test: every order in which two requests can be written, cancelled, answered, run out of time and lose their executor.
//!
//! The table is driven exactly as the supervisor drives it, one step after the other, through *all* orders of steps up to a length at
//! which nothing new can happen to two requests. A step that would do nothing ends its order, except for the one kind of nothing that
//! matters: an answer or a cancel that comes too late, of which each order may hold one.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::*;
use crate::error::{LifecycleCause, MakaCuLifecycleError};

const GRACE: Duration = Duration::from_secs(2);
const DEADLINE: Duration = Duration::from_secs(20);

/// Long enough for two requests to be written, cancelled with their words written, and ended in every way.
const LENGTH: usize = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The idle writer takes a line.
    Line,
    /// The writer finished its line.
    Written,
    /// The caller gives up.
    Cancel(usize),
    /// The executor answers.
    Answer(usize),
    /// Every alarm that is set goes off.
    Expire,
    /// The generation ends.
    Exit,
}

const STEPS: [Step; 8] = [
    Step::Line,
    Step::Written,
    Step::Cancel(0),
    Step::Cancel(1),
    Step::Answer(0),
    Step::Answer(1),
    Step::Expire,
    Step::Exit,
];

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Answered,
    Withdrawn,
    LostUnsent,
    LostSent,
}

/// What is known of one request from the outside.
#[derive(Debug)]
struct Witness {
    reply: oneshot::Receiver<Result<RawAnswer, CallError>>,
    wire_id: Option<u64>,
    gave_up: bool,
    cancel_written: bool,
    end: Option<End>,
}

/// The table, and what was seen of it.
#[derive(Debug)]
struct World {
    pending: Pending,
    witnesses: [Witness; 2],
    now: Instant,
    writing: bool,
    gone: bool,
    late: u32,
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        let mut pending = Pending::default();
        let witnesses = [0, 1].map(|ticket| {
            let (reply, answer) = oneshot::channel();
            let deadline = Deadline::At(now + DEADLINE);
            let asker = Asker::Caller(reply);
            let mut request = Request::new(Method::AppsList, None, Value::Null, asker, deadline);
            request.generation = Some(1);
            pending.insert(ticket, request, now + DEADLINE);
            Witness {
                reply: answer,
                wire_id: None,
                gave_up: false,
                cancel_written: false,
                end: None,
            }
        });
        Self {
            pending,
            witnesses,
            now,
            writing: false,
            gone: false,
            late: 0,
        }
    }

    /// Takes a step; false when there was nothing to take.
    fn take(&mut self, step: Step) -> bool {
        if self.gone {
            return false;
        }
        match step {
            Step::Line => self.line(),
            Step::Written => {
                let written = std::mem::take(&mut self.writing);
                self.pending.written();
                written
            }
            Step::Cancel(ticket) => self.cancel(ticket),
            Step::Answer(ticket) => self.answer(ticket),
            Step::Expire => self.expire(),
            Step::Exit => {
                self.exit();
                true
            }
        }
    }

    fn line(&mut self) -> bool {
        if self.writing {
            return false;
        }
        let Some(line) = self.pending.next_line() else {
            return false;
        };
        self.writing = true;
        let message: Value = serde_json::from_slice(&line).unwrap();
        if message["method"] == "$/cancel" {
            let id = message["params"]["id"].as_u64();
            let cancelled = |it: &&mut Witness| it.wire_id == id;
            let witness = self.witnesses.iter_mut().find(cancelled);
            let witness = witness.expect("only what was sent is cancelled by a word");
            assert!(!witness.cancel_written, "a cancel is written once");
            assert_eq!(witness.end, None, "what has ended is not cancelled");
            witness.cancel_written = true;
            return true;
        }
        let id = message["id"].as_u64().unwrap();
        let ticket = self.pending.ticket(id).expect("a written id is known");
        let used = self.witnesses.iter().any(|it| it.wire_id == Some(id));
        assert!(!used, "an id is used once");
        let witness = &mut self.witnesses[usize::try_from(ticket).unwrap()];
        assert_eq!(witness.wire_id, None, "a request is sent once");
        assert!(!witness.gave_up, "what was given up is not sent");
        assert_eq!(witness.end, None, "what has ended is not sent");
        witness.wire_id = Some(id);
        true
    }

    fn cancel(&mut self, ticket: usize) -> bool {
        let witness = &mut self.witnesses[ticket];
        if witness.gave_up || witness.end.is_some() {
            // One that comes too late changes nothing.
            let nothing = self.pending.cancel(ticket as u64, self.now, GRACE);
            assert!(matches!(nothing, Cancelled::Nothing));
            return self.comes_late();
        }
        witness.gave_up = true;
        self.give_up(ticket);
        true
    }

    fn give_up(&mut self, ticket: usize) -> bool {
        match self.pending.cancel(ticket as u64, self.now, GRACE) {
            Cancelled::Withdrawn(request) => {
                self.end(ticket, request, End::Withdrawn);
                true
            }
            Cancelled::Notified => true,
            Cancelled::Nothing => false,
        }
    }

    fn answer(&mut self, ticket: usize) -> bool {
        let Some(id) = self.witnesses[ticket].wire_id else {
            // The executor cannot know it; an id it makes up is nobody's.
            return false;
        };
        match self.pending.ticket(id) {
            Some(found) => {
                assert_eq!(found, ticket as u64, "an answer finds its own request");
                let request = self.pending.remove(found).expect("it is there");
                self.end(ticket, request, End::Answered);
                true
            }
            None => self.comes_late(),
        }
    }

    fn comes_late(&mut self) -> bool {
        self.late += 1;
        self.late == 1
    }

    /// As the supervisor does it: a first alarm is a cancel, a second one the end of the generation.
    fn expire(&mut self) -> bool {
        let Some(alarm) = self.pending.next_alarm() else {
            return false;
        };
        self.now = self.now.max(alarm);
        let mut overdue = false;
        while let Some(ticket) = self.pending.due(self.now) {
            if !self.give_up(usize::try_from(ticket).unwrap()) {
                self.pending.silence(ticket);
                overdue = true;
            }
        }
        if overdue {
            self.exit();
        }
        true
    }

    fn exit(&mut self) {
        self.gone = true;
        for ticket in self.pending.ids(|_| true) {
            let request = self.pending.remove(ticket).expect("it was just seen");
            let end = match request.stage {
                RequestStage::Queued => End::LostUnsent,
                RequestStage::Writing | RequestStage::Delivered => End::LostSent,
                RequestStage::Settled => panic!("what is settled is not in the table"),
            };
            self.end(usize::try_from(ticket).unwrap(), request, end);
        }
    }

    /// Answers a request that is out of the table.
    fn end(&mut self, ticket: usize, request: Request, end: End) {
        let witness = &mut self.witnesses[ticket];
        assert_eq!(witness.end.replace(end), None, "a request ends once");
        let sent = witness.wire_id.is_some();
        let consistent = match end {
            End::Answered | End::LostSent => sent,
            End::Withdrawn | End::LostUnsent => !sent,
        };
        assert!(consistent, "{end:?}, sent: {sent}");
        let Asker::Caller(reply) = request.asker else {
            panic!("a caller asked")
        };
        let outcome = match end {
            End::Answered => Ok(RawAnswer {
                generation: 1,
                result: json!({ "ok": true }),
            }),
            End::Withdrawn | End::LostUnsent | End::LostSent => {
                let cause = LifecycleCause::Cancelled;
                let error = MakaCuLifecycleError::new(1, request.stage, None, cause);
                Err(CallError::Lifecycle(error))
            }
        };
        reply.send(outcome).expect("the caller waits");
    }

    /// What holds at the end of every order.
    fn close(mut self) -> [End; 2] {
        if !self.gone {
            self.exit();
        }
        assert!(self.pending.requests.is_empty() && self.pending.on_wire.is_empty());
        assert!(self.pending.alarms.is_empty() && self.pending.waiting.is_empty());
        assert!(
            self.pending.next_line().is_none(),
            "nothing is left to be written"
        );
        for witness in &mut self.witnesses {
            let answered = witness
                .reply
                .try_recv()
                .expect("every caller has an answer");
            assert_eq!(answered.is_ok(), witness.end == Some(End::Answered));
        }
        self.witnesses.map(|it| it.end.expect("it has ended"))
    }
}

/// The world after these steps; none when one of them does nothing.
fn replay(steps: &[Step]) -> Option<World> {
    let mut world = World::new();
    steps.iter().all(|step| world.take(*step)).then_some(world)
}

#[test]
fn every_order_ends_every_request_exactly_once() {
    let mut orders = 0_u64;
    let mut ends = std::collections::HashSet::new();
    let mut open = vec![Vec::new()];
    while let Some(steps) = open.pop() {
        let Some(world) = replay(&steps) else {
            continue;
        };
        // Every beginning of an order is an order too: the executor may be lost at any moment.
        let gone = world.gone;
        ends.insert(format!("{:?}", world.close()));
        orders += 1;
        if steps.len() < LENGTH && !gone {
            open.extend(STEPS.map(|step| [&steps[..], &[step]].concat()));
        }
    }
    // Each of the four ends of one request meets each of the other, but for what the order of the queue forbids: the second
    // request is written after the first, unless that one was withdrawn.
    let impossible = |first: &str, second: &str| {
        first == "LostUnsent" && (second == "LostSent" || second == "Answered")
    };
    for first in ["Answered", "Withdrawn", "LostUnsent", "LostSent"] {
        for second in ["Answered", "Withdrawn", "LostUnsent", "LostSent"] {
            assert_eq!(
                ends.contains(&format!("[{first}, {second}]")),
                !impossible(first, second),
                "{first}, {second}"
            );
        }
    }
    assert!(orders > 10_000, "{orders} orders are not all there are");
}
