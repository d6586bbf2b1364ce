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
use maka_cu_protocol::results::dispatch::Verification;
use maka_cu_protocol::sets::{Effect, Path as ActionPath, VerificationMethod};
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
        let checked = result.verification.as_ref();
        let verification = checked.and_then(|(method, observed_change)| {
            Some(Verification {
                method: VerificationMethod::parse(method)?,
                observed_change: *observed_change,
            })
        });
        let code = result.code.as_deref().and_then(DomainCode::parse);
        Ok(outcome::dispatch_logged(
            call.tool_call_id.clone(),
            decision_id,
            known,
            verification.unwrap_or(Verification::NONE),
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
            None => LaunchOutcome {
                replayed: true,
                ..outcome::launch_lost(decision_id, None)
            },
            Some(result) => {
                let code = result.code.as_deref().and_then(DomainCode::parse);
                LaunchOutcome {
                    outcome: words::logged_outcome(result.outcome),
                    error: code.map(DomainFault::of),
                    launched: None,
                    decision_id,
                    withheld: result.withheld,
                    release_reason: None,
                    replayed: true,
                    max_bytes: None,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use maka_cu_protocol::sets::Outcome;
    use maka_cu_protocol::text::SomeText;
    use maka_policy_host::call::ExecutorCall;
    use maka_policy_host::engine::Engine;
    use maka_policy_host::facts::{Action, Approving, Claim, DispatchFacts, Meter, SnapshotRow};
    use maka_policy_host::judge::{Judge, JudgeOptions};
    use maka_policy_host::limits::Limits;
    use maka_policy_host::log::{DecisionLog, LogOptions, OutcomeRecord};
    use maka_policy_host::set::{Floor, PolicySet};

    use super::*;
    use crate::policy;
    use crate::session::caller::{PrincipalName, Reach};

    const REQUEST: &[u8] = b"request";

    fn owner(name: &str) -> Caller {
        Caller {
            principal: PrincipalName::new(name),
            policy_set: "default".into(),
            grants: Arc::new([]),
            reach: Reach::Own,
        }
    }

    fn launch(key: &str) -> LaunchCall {
        LaunchCall {
            tool_call_id: ToolCallId::try_new(key).unwrap(),
            turn: None,
            app: SomeText::new("Editor").unwrap(),
            wait_for_window_ms: None,
        }
    }

    /// Has a launch under this key admitted and its outcome logged, as an earlier gateway would have.
    fn log_launch(judge: &Judge, key: &str, outcome: Option<LoggedOutcome>) {
        let facts = DispatchFacts {
            tool_call_id: key.to_owned(),
            caller: policy::caller(&owner("owner"), "s_1", None),
            authority: policy::authority(1, false, false),
            meter: Meter::default(),
            approval: None,
            approving: Approving::Unavailable,
            action: Action::Launch("Editor".to_owned()),
            claim: Claim::default(),
            snapshot: SnapshotRow::never_seen(""),
            element: None,
            focus: None,
            spent_fingerprint: None,
            row_version: 0,
            request: Some(Digest::of(REQUEST)),
        };
        let call = ExecutorCall::new("apps.launch", &serde_json::json!({"app": "Editor"})).unwrap();
        let permit = judge.admit_dispatch(&facts, call).unwrap();
        if let Some(outcome) = outcome {
            let record = OutcomeRecord {
                receipt: permit.receipt(),
                outcome,
                tier: None,
                path: None,
                effect: None,
                verification: None,
                code: None,
                withheld: false,
            };
            judge.log().outcome(&record).unwrap();
        }
    }

    /// After a restart (design.md §4): the logged outcome, or unknown, or not found; never a second launch.
    #[test]
    fn a_logged_key_answers_what_the_log_knows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("decisions.jsonl");
        let engine = Engine::new(Limits::default()).unwrap();
        let floor = Floor::load(&engine, &serde_json::json!({})).unwrap();
        let set = PolicySet::new(&engine, "default", &floor, Vec::new()).unwrap();
        let (log, _) = DecisionLog::open(&path, LogOptions::default()).unwrap();
        let judge = Judge::try_new(engine, Arc::new(log), JudgeOptions::default()).unwrap();
        judge.activate(vec![set]).unwrap();
        log_launch(&judge, "done", Some(LoggedOutcome::Ok));
        log_launch(&judge, "lost", None);
        log_launch(&judge, "not_sent", Some(LoggedOutcome::NotForwarded));
        drop(judge);

        let history = History::load(&path).unwrap();
        let session = SessionId::try_new("s_1").unwrap();
        let check = |who: &str, key: &str, request: &[u8]| {
            let launched = history.launch(&owner(who), &session, &launch(key), Digest::of(request));
            launched.map(|launched| launched.outcome)
        };
        assert!(matches!(check("owner", "done", REQUEST), Ok(Outcome::Ok)));
        assert!(matches!(
            check("owner", "lost", REQUEST),
            Ok(Outcome::Unknown)
        ));
        assert!(matches!(
            check("owner", "not_sent", REQUEST),
            Err(CallError::SessionUnknown)
        ));
        assert!(matches!(
            check("owner", "never", REQUEST),
            Err(CallError::SessionUnknown)
        ));
        assert!(matches!(
            check("owner", "done", b"other"),
            Err(CallError::KeyConflict)
        ));
        assert!(matches!(
            check("other", "done", REQUEST),
            Err(CallError::SessionForeign)
        ));
        assert!(
            History::load(&folder.path().join("none"))
                .unwrap()
                .0
                .is_empty()
        );
    }
}
