//! Reads back which calls were admitted and how they ended, so that a gateway that was restarted can answer a repeated
//! key without forwarding anything.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::path::Path;

use maka_floor::facts::{Effect, Path as Route, Tier};
use serde::Deserialize;

use super::lines::Lines;
use super::record::{DECISION, LoggedOutcome, OUTCOME};
use super::{LogError, names};
use crate::digest::Digest;

/// An admitted call with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCall {
    /// The principal.
    pub orchestrator: String,
    /// The session.
    pub session: String,
    /// The caller's idempotency key.
    pub tool_call: String,
    /// The method.
    pub method: String,
    /// The digest of the request, to tell a repeated key from a reused one.
    pub request: Option<Digest>,
    /// The decision that admitted it.
    pub decision_id: String,
    /// How it ended. Absent when nothing was recorded after the allow: its outcome is unknown.
    pub result: Option<LoggedResult>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedResult {
    /// How.
    pub outcome: LoggedOutcome,
    /// The tier the executor reported.
    pub tier: Option<Tier>,
    /// The path the executor reported.
    pub path: Option<Route>,
    /// The effect the executor reported.
    pub effect: Option<Effect>,
    /// How the effect was checked, and whether a change was seen.
    pub verification: Option<(String, bool)>,
    /// The executor's domain code.
    pub code: Option<String>,
    /// The answer was kept from the caller.
    pub withheld: bool,
}

/// What [`scan`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// The newest calls, oldest first.
    pub calls: Vec<LoggedCall>,
    /// Older calls that were left out.
    pub dropped: u64,
}

#[derive(Deserialize)]
struct Line {
    schema: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    hook: String,
    #[serde(default)]
    orchestrator: String,
    #[serde(default)]
    session: String,
    #[serde(default)]
    tool_call: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    request: Option<String>,
    #[serde(default)]
    effective: String,
    #[serde(default)]
    decision: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    tier: Option<String>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    effect: Option<String>,
    #[serde(default)]
    verification: Option<String>,
    #[serde(default)]
    observed_change: bool,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    withheld: bool,
}

/// Reads the newest `max` admitted calls that carry a key, from the current file and the full one before it. A log that does not exist has none. Reading does not need the
/// lock, so do it before [`DecisionLog::open`](super::DecisionLog::open).
///
/// # Errors
///
/// When the file cannot be read, or a line of it is no record.
pub fn scan(path: &Path, max: usize) -> Result<Scan, LogError> {
    // The newest full file as well: right after a change of files the current one knows next to nothing.
    let newest = match names::archives(path) {
        Ok(archives) => archives.into_iter().next_back(),
        Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let files = newest.iter().map(|archive| archive.path.as_path());
    let mut found = Calls::new(max);
    for file in files.chain([path]) {
        let mut lines = match Lines::open(file) {
            Ok(lines) => lines,
            Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        while let Some(line) = lines.next()? {
            found.take(serde_json::from_slice(line).map_err(|_| LogError::Corrupt)?)?;
        }
    }
    Ok(found.finish())
}

/// The calls found so far.
struct Calls {
    max: usize,
    order: VecDeque<String>,
    calls: HashMap<String, LoggedCall>,
    dropped: u64,
}

impl Calls {
    fn new(max: usize) -> Self {
        Self {
            max,
            order: VecDeque::new(),
            calls: HashMap::new(),
            dropped: 0,
        }
    }

    fn take(&mut self, line: Line) -> Result<(), LogError> {
        if line.schema == DECISION {
            if line.hook == "admit-dispatch"
                && line.effective == "allow"
                && !line.tool_call.is_empty()
            {
                self.order.push_back(line.id.clone());
                self.calls.insert(line.id.clone(), call(line));
                if self.order.len() > self.max
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.calls.remove(&oldest);
                    self.dropped += 1;
                }
            }
        } else if line.schema == OUTCOME
            && let Some(call) = self.calls.get_mut(&line.decision)
        {
            call.result = Some(result(line)?);
        }
        Ok(())
    }

    fn finish(mut self) -> Scan {
        let order = self.order.iter();
        Scan {
            calls: order.filter_map(|id| self.calls.remove(id)).collect(),
            dropped: self.dropped,
        }
    }
}

fn call(line: Line) -> LoggedCall {
    LoggedCall {
        orchestrator: line.orchestrator,
        session: line.session,
        tool_call: line.tool_call,
        method: line.method,
        request: line.request.and_then(|digest| digest.parse().ok()),
        decision_id: line.id,
        result: None,
    }
}

fn result(line: Line) -> Result<LoggedResult, LogError> {
    Ok(LoggedResult {
        outcome: LoggedOutcome::parse(&line.outcome).ok_or(LogError::Corrupt)?,
        tier: line.tier.as_deref().and_then(Tier::parse),
        path: line.path.as_deref().and_then(Route::parse),
        effect: line.effect.as_deref().and_then(Effect::parse),
        verification: line
            .verification
            .map(|method| (method, line.observed_change)),
        code: line.code,
        withheld: line.withheld,
    })
}
