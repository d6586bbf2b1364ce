//! Reads back which calls were admitted and how they ended, so that a gateway that was restarted can answer a repeated
//! key without forwarding anything.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use maka_floor::facts::{Effect, Path as Route, Tier};
use serde::Deserialize;

use super::LogError;
use super::lines::Lines;
use super::record::{DECISION, LoggedOutcome, OUTCOME};
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

/// Reads the newest `max` admitted calls that carry a key. A log that does not exist has none. Reading does not need the
/// lock, so do it before [`DecisionLog::open`](super::DecisionLog::open).
///
/// # Errors
///
/// When the file cannot be read, or a line of it is no record.
pub fn scan(path: &Path, max: usize) -> Result<Scan, LogError> {
    let mut lines = match Lines::open(path) {
        Ok(lines) => lines,
        Err(LogError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Scan::default());
        }
        Err(error) => return Err(error),
    };
    let mut order: VecDeque<String> = VecDeque::new();
    let mut calls: HashMap<String, LoggedCall> = HashMap::new();
    let mut dropped = 0;
    while let Some(line) = lines.next()? {
        let line: Line = serde_json::from_slice(line).map_err(|_| LogError::Corrupt)?;
        if line.schema == DECISION {
            if line.hook == "admit-dispatch"
                && line.effective == "allow"
                && !line.tool_call.is_empty()
            {
                order.push_back(line.id.clone());
                calls.insert(line.id.clone(), call(line));
                if order.len() > max
                    && let Some(oldest) = order.pop_front()
                {
                    calls.remove(&oldest);
                    dropped += 1;
                }
            }
        } else if line.schema == OUTCOME
            && let Some(call) = calls.get_mut(&line.decision)
        {
            call.result = Some(result(line)?);
        }
    }
    let calls = order.iter().filter_map(|id| calls.remove(id)).collect();
    Ok(Scan { calls, dropped })
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
