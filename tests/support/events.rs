//! One watch of `maka.gateway.v1.Events`, read with patience and held to what every stream of it promises.

use maka_proto::v1::{
    ActionEnded, Event, ExecutorState, Outcome, ReleaseReason, SessionEndReason,
    event::Event as What,
};
use tonic::{Status, Streaming};

use crate::gateway::PATIENCE;

/// See the module.
#[derive(Debug)]
pub struct Watching {
    stream: Streaming<Event>,
    sequence: u64,
    lost: u64,
    seen: Vec<What>,
}

impl Watching {
    /// Takes over a stream of which nothing was read.
    #[must_use]
    pub fn new(stream: Streaming<Event>) -> Self {
        Self {
            stream,
            sequence: 0,
            lost: 0,
            seen: Vec::new(),
        }
    }

    /// The next event.
    ///
    /// # Panics
    /// When none comes in time, the stream ends, or it breaks its promises.
    pub async fn next(&mut self) -> What {
        match self.message().await {
            Ok(Some(event)) => event,
            end => panic!("the watch ended with {end:?} after {:?}", self.seen),
        }
    }

    /// Reads up to the event that `wanted` finds something in.
    ///
    /// # Panics
    /// As [`Watching::next`].
    pub async fn until<T>(&mut self, mut wanted: impl FnMut(&What) -> Option<T>) -> T {
        loop {
            let event = self.next().await;
            if let Some(found) = wanted(&event) {
                return found;
            }
        }
    }

    /// Reads until the executor of this generation is ready.
    ///
    /// # Panics
    /// As [`Watching::next`].
    pub async fn until_ready(&mut self, generation: u64) {
        self.until(|event| match event {
            What::Executor(it) => {
                (it.state() == ExecutorState::Ready && it.generation == generation).then_some(())
            }
            _ => None,
        })
        .await;
    }

    /// Reads to the end of the stream: everything that was seen, when the end is OK.
    ///
    /// # Errors
    /// The status that ended it.
    ///
    /// # Panics
    /// When no end comes in time, or the stream breaks its promises.
    pub async fn rest(self) -> Result<Vec<What>, Status> {
        Ok(self.to_the_end().await?.seen)
    }

    /// As [`Watching::rest`], with what was lost on the way.
    ///
    /// # Errors
    /// As [`Watching::rest`].
    ///
    /// # Panics
    /// As [`Watching::rest`].
    pub async fn to_the_end(mut self) -> Result<Self, Status> {
        while self.message().await?.is_some() {}
        Ok(self)
    }

    /// What was seen so far.
    #[must_use]
    pub fn seen(&self) -> &[What] {
        &self.seen
    }

    /// How many events were lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    async fn message(&mut self) -> Result<Option<What>, Status> {
        let message = tokio::time::timeout(PATIENCE, self.stream.message());
        let Ok(message) = message.await else {
            panic!("no event came after {:?}", self.seen)
        };
        let Some(event) = message? else {
            return Ok(None);
        };
        assert_eq!(event.sequence, self.sequence + 1 + event.lost, "{event:?}");
        assert!(event.at_unix_ms > 0, "{event:?}");
        let what = event.event.expect("an event of a known kind");
        let is_state = matches!(what, What::Current(_));
        assert!(is_state || !self.seen.is_empty(), "the first is the state");
        assert!(is_state || event.lost == 0, "a loss comes with the state");
        self.sequence = event.sequence;
        self.lost += event.lost;
        self.seen.push(what.clone());
        Ok(Some(what))
    }
}

/// Events in a few words each, for lists that a test compares: no ids but those of actions.
#[must_use]
pub fn words(events: &[What]) -> Vec<String> {
    events.iter().filter_map(word).collect()
}

/// Nothing for the states of sessions, which follow from everything else and would be in every list.
fn word(event: &What) -> Option<String> {
    Some(match event {
        What::SessionState(_) => return None,
        What::MayBeHeld(_) => "may be held".into(),
        What::Current(state) => format!(
            "current: {} sessions, {} actions",
            state.sessions.len(),
            state.actions.len()
        ),
        What::Executor(it) => format!("executor {:?} {}", it.state(), it.generation),
        What::Released(it) => format!(
            "released {:?} {}: {} sessions",
            it.reason(),
            it.generation,
            it.session_ids.len()
        ),
        What::SessionBegan(_) => "session began".into(),
        What::SessionEnded(it) => format!("session ended: {:?}", it.reason()),
        What::ActionBegan(it) => format!("action {} began", it.action_id),
        What::ActionEnded(it) => format!("action {} ended: {:?}", it.action_id, it.outcome()),
        What::Approval(it) => format!("approval {:?}: {}", it.state(), it.kind),
        What::ApprovalEnded(it) => format!("approval ended: {:?}", it.reason()),
        What::Quarantine(it) => format!("quarantined: {}", it.quarantined),
        What::Disposed(_) => "disposed".into(),
    })
}

/// The end of an action with this id.
#[must_use]
pub fn ended(event: &What, action_id: &str) -> Option<ActionEnded> {
    match event {
        What::ActionEnded(it) => (it.action_id == action_id).then(|| it.clone()),
        _ => None,
    }
}

/// Where in a list the first event is for which `wanted` holds.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn position(events: &[What], wanted: impl FnMut(&What) -> bool) -> usize {
    let found = events.iter().position(wanted);
    found.unwrap_or_else(|| panic!("not among {:?}", words(events)))
}

/// Whether a session ended for this reason.
#[must_use]
pub fn is_end(event: &What, session_id: &str, reason: SessionEndReason) -> bool {
    match event {
        What::SessionEnded(it) => it.session_id == session_id && it.reason() == reason,
        _ => false,
    }
}

/// Whether a generation was released for this reason.
#[must_use]
pub fn is_release(event: &What, generation: u64, reason: ReleaseReason) -> bool {
    match event {
        What::Released(it) => {
            it.generation == generation && it.generation_released && it.reason() == reason
        }
        _ => false,
    }
}

/// Whether an action ended like this.
#[must_use]
pub fn is_outcome(event: &What, action_id: &str, outcome: Outcome) -> bool {
    ended(event, action_id).is_some_and(|end| end.outcome() == outcome)
}
