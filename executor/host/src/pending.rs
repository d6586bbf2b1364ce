//! The requests that are owed an answer.
//!
//! Owns stages, deadlines and cancellation, and gives every request exactly one end: whoever takes a request out of the table
//! answers it. It neither writes nor waits.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use maka_cu_protocol::codec::encode_line;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::rpc;
use maka_cu_protocol::sets::RequestStage;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::CallError;

/// Requests that may be owed an answer at once; one more is refused.
pub(crate) const MOST_IN_FLIGHT: usize = 1024;

/// A raw `result` and the generation that gave it.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) generation: u64,
    pub(crate) result: Value,
}

pub(crate) type Reply = oneshot::Sender<Result<RawAnswer, CallError>>;

/// Who waits for an answer.
#[derive(Debug)]
pub(crate) enum Asker {
    /// A caller, who may have gone away.
    Caller(Reply),
    /// The supervisor itself, for the handshake.
    Greeting,
}

/// When a request is given up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deadline {
    /// At this instant, by the caller's wish.
    At(Instant),
    /// After the longest time the executor may need, counted from here.
    Negotiated { since: Instant },
}

/// One request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) session: Option<SessionId>,
    pub(crate) asker: Asker,
    pub(crate) stage: RequestStage,
    /// The generation it belongs to; none while it waits for one to become ready.
    pub(crate) generation: Option<u64>,
    pub(crate) deadline: Deadline,
    /// The params, until they are handed to the writer.
    params: Value,
    /// The id on the wire, once handed over.
    wire_id: Option<u64>,
    /// Offset of its first byte in the generation's input, once handed over.
    first_byte: u64,
    /// Whether `$/cancel` was asked for; the alarm is then the end of the grace.
    cancelled: bool,
    alarm: Instant,
}

impl Request {
    pub(crate) fn new(
        method: Method,
        session: Option<SessionId>,
        params: Value,
        asker: Asker,
        deadline: Deadline,
    ) -> Self {
        let alarm = match deadline {
            Deadline::At(instant) | Deadline::Negotiated { since: instant } => instant,
        };
        Self {
            method,
            session,
            asker,
            stage: RequestStage::Queued,
            generation: None,
            deadline,
            params,
            wire_id: None,
            first_byte: 0,
            cancelled: false,
            alarm,
        }
    }

    /// Whether somebody outside asked, rather than the supervisor itself.
    pub(crate) fn is_callers(&self) -> bool {
        matches!(self.asker, Asker::Caller(_))
    }

    /// How far it had come in the eyes of a child that took `consumed` bytes and is dead: a line of which it took nothing was never
    /// delivered.
    pub(crate) fn stage_given(&self, consumed: Option<u64>) -> RequestStage {
        match (self.stage, consumed) {
            (RequestStage::Writing | RequestStage::Delivered, Some(consumed))
                if self.first_byte >= consumed =>
            {
                RequestStage::Queued
            }
            (stage, _) => stage,
        }
    }
}

/// What a cancel led to.
#[derive(Debug)]
pub(crate) enum Cancelled {
    /// Nothing was written: the request is out of the table and has to be answered.
    Withdrawn(Request),
    /// `$/cancel` will be written; the grace has begun.
    Notified,
    /// Nothing to do: unknown, settled, or cancelled before.
    Nothing,
}

/// All requests, by ticket.
///
/// A ticket names a request inside this process from the moment it is made. The id on the wire is given when the request is
/// written: so ids count up from 1 in the order of the wire, over all generations, and are never used again.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    requests: HashMap<u64, Request>,
    /// Requests that wait for an executor to become ready, in their order.
    waiting: VecDeque<u64>,
    /// Requests of the current generation that are to be written, in their order.
    outbox: VecDeque<u64>,
    /// Cancels to be written before anything else. At most one per request.
    cancels: VecDeque<u64>,
    alarms: BTreeSet<(Instant, u64)>,
    /// Tickets of the requests that were handed over, by their id on the wire.
    on_wire: HashMap<u64, u64>,
    last_wire_id: u64,
    /// The request whose line the writer has.
    writing: Option<u64>,
    /// Bytes handed to the writer of the current generation.
    handed_over: u64,
}

impl Pending {
    pub(crate) fn is_full(&self) -> bool {
        self.requests.len() >= MOST_IN_FLIGHT
    }

    /// Takes a request in. `alarm` is its deadline as an instant.
    pub(crate) fn insert(&mut self, id: u64, mut request: Request, alarm: Instant) {
        request.alarm = alarm;
        self.alarms.insert((alarm, id));
        match request.generation {
            Some(_) => self.outbox.push_back(id),
            None => self.waiting.push_back(id),
        }
        self.requests.insert(id, request);
    }

    /// Takes a request out, to be answered.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Request> {
        let request = self.requests.remove(&id)?;
        self.alarms.remove(&(request.alarm, id));
        if let Some(wire_id) = request.wire_id {
            self.on_wire.remove(&wire_id);
        }
        if request.stage == RequestStage::Queued {
            // Otherwise withdrawn ids would pile up behind a writer that is stuck.
            self.outbox.retain(|&queued| queued != id);
            self.waiting.retain(|&queued| queued != id);
        }
        Some(request)
    }

    /// The ticket of the request that was sent with this id.
    pub(crate) fn ticket(&self, wire_id: u64) -> Option<u64> {
        self.on_wire.get(&wire_id).copied()
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Request> {
        self.requests.get(&id)
    }

    /// A new child: nothing is handed over yet.
    pub(crate) fn begin_generation(&mut self) {
        self.handed_over = 0;
        self.writing = None;
        self.cancels.clear();
    }

    /// The requests that waited for an executor now belong to this one; `negotiated` is how long it may need.
    pub(crate) fn bind(&mut self, generation: u64, negotiated: Duration) {
        while let Some(id) = self.waiting.pop_front() {
            let Some(request) = self.requests.get_mut(&id) else {
                continue;
            };
            request.generation = Some(generation);
            if let Deadline::Negotiated { since } = request.deadline {
                self.alarms.remove(&(request.alarm, id));
                request.alarm = since + negotiated;
                self.alarms.insert((request.alarm, id));
            }
            self.outbox.push_back(id);
        }
    }

    /// The next line for an idle writer. Cancels come first.
    pub(crate) fn next_line(&mut self) -> Option<Vec<u8>> {
        let line = self.next_cancel().or_else(|| self.next_request())?;
        self.handed_over += line.len() as u64;
        Some(line)
    }

    fn next_cancel(&mut self) -> Option<Vec<u8>> {
        while let Some(id) = self.cancels.pop_front() {
            if let Some(wire_id) = self.requests.get(&id).and_then(|request| request.wire_id) {
                return Some(encode_line(&rpc::cancel(wire_id)));
            }
        }
        None
    }

    fn next_request(&mut self) -> Option<Vec<u8>> {
        let id = self.outbox.pop_front()?;
        let request = self
            .requests
            .get_mut(&id)
            .expect("a request that leaves the table leaves the outbox too");
        request.stage = RequestStage::Writing;
        request.first_byte = self.handed_over;
        self.last_wire_id += 1;
        request.wire_id = Some(self.last_wire_id);
        self.on_wire.insert(self.last_wire_id, id);
        self.writing = Some(id);
        Some(encode_line(&rpc::request(
            self.last_wire_id,
            request.method,
            request.params.take(),
        )))
    }

    /// The writer finished its line.
    pub(crate) fn written(&mut self) {
        if let Some(request) = self
            .writing
            .take()
            .and_then(|id| self.requests.get_mut(&id))
        {
            request.stage = RequestStage::Delivered;
        }
    }

    /// Cancels one request at `now`; a request the executor may have gets `grace`.
    pub(crate) fn cancel(&mut self, id: u64, now: Instant, grace: Duration) -> Cancelled {
        let Some(request) = self.requests.get_mut(&id) else {
            return Cancelled::Nothing;
        };
        match request.stage {
            RequestStage::Queued => {
                Cancelled::Withdrawn(self.remove(id).expect("it was there a line ago"))
            }
            RequestStage::Writing | RequestStage::Delivered => {
                if std::mem::replace(&mut request.cancelled, true) {
                    return Cancelled::Nothing;
                }
                self.alarms.remove(&(request.alarm, id));
                request.alarm = now + grace;
                self.alarms.insert((request.alarm, id));
                self.cancels.push_back(id);
                Cancelled::Notified
            }
            RequestStage::Settled => Cancelled::Nothing,
        }
    }

    /// The first request whose alarm has gone off.
    pub(crate) fn due(&self, now: Instant) -> Option<u64> {
        self.alarms
            .first()
            .filter(|(alarm, _)| *alarm <= now)
            .map(|&(_, id)| id)
    }

    /// Whether a request waits for an executor to become ready.
    pub(crate) fn is_anyone_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes a request's alarm away: its answer comes with the end of its generation.
    pub(crate) fn silence(&mut self, id: u64) {
        if let Some(request) = self.requests.get(&id) {
            self.alarms.remove(&(request.alarm, id));
        }
    }

    pub(crate) fn next_alarm(&self) -> Option<Instant> {
        self.alarms.first().map(|&(alarm, _)| alarm)
    }

    /// Ids of the requests for which `choose` holds, in their order.
    pub(crate) fn ids(&self, choose: impl Fn(&Request) -> bool) -> Vec<u64> {
        let mut ids: Vec<_> = self
            .requests
            .iter()
            .filter(|(_, it)| choose(it))
            .map(|(&id, _)| id)
            .collect();
        ids.sort_unstable();
        ids
    }

    /// Takes out the requests for which `choose` holds, in their order.
    pub(crate) fn take_if(&mut self, choose: impl Fn(&Request) -> bool) -> Vec<Request> {
        self.ids(choose)
            .into_iter()
            .filter_map(|id| self.remove(id))
            .collect()
    }
}

#[cfg(test)]
mod orders;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const GRACE: Duration = Duration::from_secs(2);

    fn request(
        generation: Option<u64>,
    ) -> (Request, oneshot::Receiver<Result<RawAnswer, CallError>>) {
        let (reply, answer) = oneshot::channel();
        let since = Instant::now();
        let mut request = Request::new(
            Method::AppsList,
            None,
            Value::Null,
            Asker::Caller(reply),
            Deadline::Negotiated { since },
        );
        request.generation = generation;
        (request, answer)
    }

    fn text(line: Option<Vec<u8>>) -> String {
        line.map_or_else(String::new, |line| String::from_utf8(line).unwrap())
    }

    #[test]
    fn a_request_walks_through_its_stages() {
        let now = Instant::now();
        let mut pending = Pending::default();
        pending.insert(7, request(None).0, now);
        assert!(pending.is_anyone_waiting() && pending.next_line().is_none());
        pending.bind(1, GRACE);
        assert_eq!(
            pending.next_alarm(),
            pending.get(7).map(|it| it.alarm),
            "the deadline moved with the negotiated time"
        );
        assert!(text(pending.next_line()).contains(r#""id":1"#));
        assert_eq!(pending.get(7).unwrap().stage, RequestStage::Writing);
        pending.written();
        assert_eq!(pending.get(7).unwrap().stage, RequestStage::Delivered);
        assert_eq!(pending.ticket(1), Some(7));
        pending.remove(7).unwrap();
        assert_eq!(
            (pending.ticket(1), pending.next_alarm(), pending.due(now)),
            (None, None, None)
        );
    }

    /// A cancel goes out once, before everything that is still queued.
    #[test]
    fn a_cancel_overtakes_the_queue() {
        let now = Instant::now();
        let mut pending = Pending::default();
        for ticket in [1, 2, 3] {
            pending.insert(ticket, request(Some(1)).0, now);
        }
        pending.next_line().unwrap();
        assert!(matches!(pending.cancel(1, now, GRACE), Cancelled::Notified));
        assert!(matches!(pending.cancel(1, now, GRACE), Cancelled::Nothing));
        assert!(matches!(
            pending.cancel(2, now, GRACE),
            Cancelled::Withdrawn(_)
        ));
        assert!(text(pending.next_line()).contains("$/cancel"));
        assert!(
            text(pending.next_line()).contains(r#""id":2"#),
            "ids count what is written, not what was asked"
        );
        assert!(pending.next_line().is_none());
    }

    /// What a dead child provably never took is queued again; a single byte taken is enough to doubt.
    #[test]
    fn delivery_is_judged_by_the_first_byte() {
        let now = Instant::now();
        let mut pending = Pending::default();
        for ticket in [1, 2] {
            pending.insert(ticket, request(Some(1)).0, now);
        }
        let first = pending.next_line().unwrap().len() as u64;
        pending.written();
        pending.next_line().unwrap();
        let stage = |ticket, consumed| pending.get(ticket).unwrap().stage_given(consumed);
        assert_eq!(stage(1, Some(0)), RequestStage::Queued);
        assert_eq!(stage(1, Some(1)), RequestStage::Delivered);
        assert_eq!(stage(2, Some(first)), RequestStage::Queued);
        assert_eq!(stage(2, Some(first + 1)), RequestStage::Writing);
        assert_eq!(stage(2, None), RequestStage::Writing);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Insert { bound: bool },
        Bind,
        Line,
        Written,
        Cancel(usize),
        Answer(usize),
        Release,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            any::<bool>().prop_map(|bound| Step::Insert { bound }),
            Just(Step::Bind),
            Just(Step::Line),
            Just(Step::Written),
            (0..40_usize).prop_map(Step::Cancel),
            (0..40_usize).prop_map(Step::Answer),
            Just(Step::Release),
        ]
    }

    proptest! {
        /// Whatever happens in whatever order: a request leaves the table once, is written at most once, never after it was
        /// withdrawn, and leaves neither alarm nor id behind.
        #[test]
        fn every_request_ends_exactly_once(steps in vec(step(), 0..200)) {
            let now = Instant::now();
            let mut pending = Pending::default();
            let (mut made, mut ended, mut written) = (0_u64, Vec::new(), 0_u64);
            for step in steps {
                match step {
                    Step::Insert { bound } => {
                        made += 1;
                        pending.insert(made, request(bound.then_some(1)).0, now);
                    }
                    Step::Bind => pending.bind(1, GRACE),
                    Step::Line => {
                        let line = text(pending.next_line());
                        if line.contains("apps.list") {
                            written += 1;
                            let id = format!("\"id\":{},", written);
                            prop_assert!(line.contains(&id), "ids count up: {}", line);
                        }
                    }
                    Step::Written => pending.written(),
                    Step::Cancel(ticket) => {
                        if let Cancelled::Withdrawn(request) = pending.cancel(ticket as u64, now, GRACE) {
                            prop_assert_eq!(request.stage, RequestStage::Queued);
                            ended.push(ticket as u64);
                        }
                    }
                    Step::Answer(id) => {
                        if let Some(ticket) = pending.ticket(id as u64) {
                            prop_assert!(pending.remove(ticket).is_some());
                            ended.push(ticket);
                        }
                    }
                    Step::Release => {
                        let before = pending.ids(|request| request.generation == Some(1));
                        prop_assert_eq!(pending.take_if(|request| request.generation == Some(1)).len(), before.len());
                        ended.extend(before);
                    }
                }
                prop_assert_eq!(pending.alarms.len(), pending.requests.len());
                prop_assert!(pending.on_wire.values().all(|ticket| pending.requests.contains_key(ticket)));
                prop_assert!(pending.outbox.len() + pending.waiting.len() <= pending.requests.len());
            }
            ended.extend(pending.ids(|_| true));
            ended.sort_unstable();
            prop_assert_eq!(ended, (1..=made).collect::<Vec<_>>());
        }
    }
}
