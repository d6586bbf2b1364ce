//! What a listener sees, as lines that a test can spell out.

use maka_cu_host::event::Release;
use maka_cu_host::{CallError, Event, EventStream, MakaCuLifecycleError, MakaCuService};
use maka_cu_protocol::sets::ServiceState;
use tokio::time::timeout;

use crate::child::PATIENCE;

/// The events of one service since it was made.
#[derive(Debug)]
pub(crate) struct Trace {
    events: EventStream,
    state: &'static str,
}

impl Trace {
    /// Begins to listen to a service that has done nothing yet.
    pub(crate) fn of(service: &MakaCuService) -> Self {
        Self {
            events: service.events(),
            state: ServiceState::Idle.as_str(),
        }
    }

    /// States passed through and releases told, until this state is entered.
    pub(crate) async fn until(&mut self, state: ServiceState) -> Vec<String> {
        self.collect(|line| line == state.as_str()).await
    }

    /// The same until this release is told.
    pub(crate) async fn until_release(&mut self, release: &str) -> Vec<String> {
        let told = format!("release {release}");
        self.collect(|line| line.starts_with(&told)).await
    }

    /// The same until every one of these lines was seen, in any order: the state is left when the end of a child begins, and
    /// its release is told when its last words are heard, which may be the same moment or a later one.
    pub(crate) async fn until_all(&mut self, expected: &[&str]) {
        let mut missing = expected.to_vec();
        while !missing.is_empty() {
            let seen = self.collect(|line| missing.contains(&line)).await;
            for line in &seen {
                let at = missing.iter().position(|it| it == line);
                let at = at.unwrap_or_else(|| panic!("{line} comes beside {expected:?}"));
                missing.swap_remove(at);
            }
        }
    }

    async fn collect(&mut self, last: impl Fn(&str) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let event = timeout(PATIENCE, self.events.next())
                .await
                .unwrap_or_else(|_| panic!("nothing follows {lines:?}"));
            match event.expect("the service lives") {
                // A status also tells of a new generation or failure; only states are lines.
                Event::Status(status) if status.state.as_str() == self.state => continue,
                Event::Status(status) => {
                    self.state = status.state.as_str();
                    lines.push(self.state.to_owned());
                }
                Event::Released(release) => lines.push(line(&release)),
                Event::Lost { count } => panic!("{count} events are lost"),
            }
            if lines.last().is_some_and(|line| last(line)) {
                return lines;
            }
        }
    }
}

fn line(release: &Release) -> String {
    let mut line = format!("release {} {}", release.reason, release.generation);
    if release.generation_released {
        line.push_str(", generation");
    }
    if release.outcome_unknown {
        line.push_str(", outcome unknown");
    }
    for session in &release.sessions {
        line.push_str(&format!(", session {session}"));
    }
    line
}

/// The lifecycle error that a call must end in.
#[track_caller]
pub(crate) fn lifecycle<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> MakaCuLifecycleError {
    match outcome {
        Err(CallError::Lifecycle(error)) => error,
        other => panic!("expected a lifecycle error, not {other:?}"),
    }
}

/// Ends within a test's patience.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it ends in time")
}
