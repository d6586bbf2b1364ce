//! What an earlier gateway did, as its decision log tells it.
//!
//! Sessions do not survive a restart; their idempotency keys do. A repeated call that names a session of an earlier
//! gateway gets the logged outcome without a frame, or `unknown` when nothing was logged after the allow, and never
//! sends anything.

use std::collections::HashMap;
use std::path::Path;

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::{SessionId, ToolCallId};
use maka_cu_protocol::method::Method;
use maka_cu_protocol::sets::{Effect, Path as ActionPath};
use maka_policy_host::digest::Digest;
use maka_policy_host::log::{self, LogError, LoggedCall, LoggedOutcome};

use super::answer::{DispatchOutcome, DomainFault, LaunchOutcome};
use super::call::{DispatchCall, LaunchCall};
use super::caller::Caller;
use super::outcome;
use crate::error::CallError;
use crate::policy::words;

/// Calls remembered from the log; the newest count.
const ENTRIES_MAX: usize = 65_536;

/// See the module.
#[derive(Debug, Default)]
pub struct History(HashMap<(String, String), LoggedCall>);

impl History {
    /// Reads the newest calls from a decision log, before that log is opened for writing. A call that was admitted and
    /// never forwarded leaves its key free and is not remembered.
    ///
    /// # Errors
    /// When the log is there and cannot be read.
    pub fn load(path: &Path) -> Result<Self, LogError> {
        let scan = log::scan(path, ENTRIES_MAX)?;
        let forwarded = scan.calls.into_iter().filter(|call| {
            call.result
                .as_ref()
                .is_none_or(|result| result.outcome != LoggedOutcome::NotForwarded)
        });
        Ok(Self(
            forwarded
                .map(|call| ((call.session.clone(), call.tool_call.clone()), call))
                .collect(),
        ))
    }

    /// The outcome of this dispatch, if an earlier gateway may have sent it.
    pub(crate) fn dispatch(
        &self,
        caller: &Caller,
        session: &SessionId,
        call: &DispatchCall,
        request: Digest,
    ) -> Result<DispatchOutcome, CallError> {
        let logged = self.find(caller, session, &call.tool_call_id, request, |method| {
            method.is_dispatch()
        })?;
        let decision_id = logged.decision_id.clone();
        let Some(result) = &logged.result else {
            return Ok(DispatchOutcome {
                replayed: true,
                ..outcome::dispatch_lost(call, decision_id, None)
            });
        };
        let known = (
            words::logged_outcome(result.outcome),
            result.tier.map_or(call.tier, words::logged_tier),
            result.path.map_or(ActionPath::None, words::logged_path),
            result
                .effect
                .map_or(Effect::Unverifiable, words::logged_effect),
        );
        let code = result.code.as_deref().and_then(DomainCode::parse);
        Ok(outcome::dispatch_logged(
            call.tool_call_id.clone(),
            decision_id,
            known,
            code,
            result.withheld,
        ))
    }

    /// The outcome of this launch, if an earlier gateway may have sent it. What was launched is not in the log.
    pub(crate) fn launch(
        &self,
        caller: &Caller,
        session: &SessionId,
        call: &LaunchCall,
        request: Digest,
    ) -> Result<LaunchOutcome, CallError> {
        let is_launch = |method| method == Method::AppsLaunch;
        let logged = self.find(caller, session, &call.tool_call_id, request, is_launch)?;
        let decision_id = logged.decision_id.clone();
        Ok(match &logged.result {
            None => outcome::launch_lost(decision_id, None),
            Some(result) => {
                let code = result.code.as_deref().and_then(DomainCode::parse);
                LaunchOutcome {
                    outcome: words::logged_outcome(result.outcome),
                    error: code.map(DomainFault::of),
                    launched: None,
                    decision_id,
                    withheld: result.withheld,
                    release_reason: None,
                }
            }
        })
    }

    fn find(
        &self,
        caller: &Caller,
        session: &SessionId,
        key: &ToolCallId,
        request: Digest,
        is_kind: impl Fn(Method) -> bool,
    ) -> Result<&LoggedCall, CallError> {
        let name = (session.as_str().to_owned(), key.as_str().to_owned());
        let logged = self.0.get(&name).ok_or(CallError::SessionUnknown)?;
        if logged.orchestrator != caller.principal.as_str() {
            return Err(CallError::SessionForeign);
        }
        let same =
            logged.request == Some(request) && Method::parse(&logged.method).is_some_and(is_kind);
        if same {
            Ok(logged)
        } else {
            Err(CallError::KeyConflict)
        }
    }
}
