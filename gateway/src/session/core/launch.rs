//! Launch: as a dispatch, without a frame.

use std::time::Duration;

use maka_cu_protocol::ids::{Millis, SessionId};
use maka_cu_protocol::json::ObjectWriter;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::params::LaunchParams;
use maka_cu_protocol::results::{Answer, Launched, read_launch};
use maka_cu_protocol::sets::{Effect, Outcome, Path, Tier};
use maka_policy_host::digest::Digest;
use maka_policy_host::facts::Action;
use maka_policy_host::judge::Answer as Reviewed;
use maka_policy_host::obligation::Obligation;
use maka_policy_host::permit::Receipt;
use tokio::time::Instant;

use super::act::takes_key;
use super::admit::Ask;
use super::{Context, Core, outcome};
use crate::error::{CallError, Limit};
use crate::session::answer::{DomainFault, LaunchOutcome};
use crate::session::call::LaunchCall;
use crate::session::conditions::{self, Conditions, Redaction};
use crate::session::keys::{Known, Stored};
use crate::session::secret::RequestSecret;

/// What a launch waits for when the caller does not say (spec maka-cu §3.4).
const LAUNCH_WAIT: Millis = Millis(8000);

/// The request under a key, hashed under the gateway's secret.
pub(crate) fn request_of_launch(
    secret: &RequestSecret,
    session: &SessionId,
    call: &LaunchCall,
) -> Digest {
    let turn = call.turn.as_ref().map(|turn| turn.as_str().to_owned());
    let identity = ObjectWriter::new()
        .word("method", Method::AppsLaunch.as_str())
        .with("session", session)
        .with("app", &call.app)
        .with("wait", &call.wait_for_window_ms)
        .with("turn", &turn)
        .finish();
    secret.digest(identity.to_string().as_bytes())
}

impl Core {
    pub(crate) async fn launch(
        &mut self,
        context: Context<'_>,
        call: &LaunchCall,
    ) -> Result<LaunchOutcome, CallError> {
        let request = request_of_launch(&self.parts.secret, &self.id, call);
        match self.keys.look(&call.tool_call_id, request) {
            Known::Ended(Stored::Launch(outcome)) => {
                return Ok(LaunchOutcome {
                    replayed: true,
                    ..*outcome
                });
            }
            Known::Ended(Stored::Dispatch(_)) | Known::Taken => return Err(CallError::KeyConflict),
            Known::Full => return Err(CallError::Limit(Limit::KeysInSession)),
            Known::Free => {}
        }
        if self.shared.is_quarantined() {
            return Err(CallError::SessionQuarantined);
        }
        self.may_act()?;
        let answer = self.launch_new(context, call, request).await;
        let outcome = match &answer {
            Ok(outcome) => outcome.clone(),
            Err(error) if takes_key(context, error) => {
                let decision_id = error.decision_id().unwrap_or_default().to_owned();
                outcome::launch_cancelled(decision_id)
            }
            Err(_) => return answer,
        };
        let outcome = Stored::Launch(Box::new(outcome));
        self.keys.keep(&call.tool_call_id, request, outcome);
        answer
    }

    /// A launch that was dropped or came too late while it waited.
    pub(crate) fn abandon_launch(&mut self, call: &LaunchCall) {
        let request = request_of_launch(&self.parts.secret, &self.id, call);
        if matches!(self.keys.look(&call.tool_call_id, request), Known::Free) {
            let outcome = outcome::launch_cancelled(String::new());
            self.keys.keep(
                &call.tool_call_id,
                request,
                Stored::Launch(Box::new(outcome)),
            );
        }
    }

    async fn launch_new(
        &mut self,
        context: Context<'_>,
        call: &LaunchCall,
        request: Digest,
    ) -> Result<LaunchOutcome, CallError> {
        self.ready(context).await?;
        let wait = call.wait_for_window_ms.unwrap_or(LAUNCH_WAIT);
        let params = LaunchParams {
            session: self.id.clone(),
            app: call.app.clone(),
            wait_for_window_ms: Some(wait),
        }
        .to_value();
        let ask = Ask {
            tool_call_id: call.tool_call_id.as_str(),
            action: Action::Launch(call.app.as_str().to_owned()),
            request: Some(request),
            ..Ask::read(Method::AppsLaunch, &params)
        };
        let permit = self.judge(context, &ask)?;
        self.begin_for(&permit).await?;
        let sending = self.sending(context, Duration::from_millis(wait.0));
        let (receipt, sent) = self.redeem(context, &ask, permit, |core, permit, now| {
            core.parts
                .forward
                .forward(permit, now, sending.clone(), read_launch)
        })?;
        self.meter.acted(context.turn, Instant::now());
        let decision_id = receipt.decision_id().as_str().to_owned();
        let shown = self.show_launch(call);
        let outcome = match sent.await {
            Ok(answer) => Ok(self.launched(&receipt, answer.value)),
            Err(error) if error.possibly_delivered() => Ok(outcome::launch_lost(
                decision_id,
                outcome::release_reason(&error),
            )),
            Err(error) if outcome::was_cancelled(&error) => {
                Ok(outcome::launch_cancelled(decision_id))
            }
            Err(error) => Err(self.lost(&error, Some(&decision_id))),
        };
        match &outcome {
            Ok(outcome) => self.log_outcome(
                &receipt,
                outcome.outcome,
                (Tier::Ax, Path::None, Effect::Unverifiable),
                None,
                outcome.error.as_ref().map(|fault| fault.code),
                outcome.withheld,
            ),
            Err(_) => self.log_not_forwarded(&receipt),
        }
        self.launch_shown(shown, &outcome);
        outcome
    }

    fn launched(&mut self, receipt: &Receipt, answer: Answer<Launched>) -> LaunchOutcome {
        let decision_id = receipt.decision_id().as_str().to_owned();
        let mut outcome = match answer {
            Answer::Done(launched) => LaunchOutcome {
                outcome: Outcome::Ok,
                error: None,
                launched: Some(launched),
                decision_id,
                withheld: false,
                release_reason: None,
                replayed: false,
                max_bytes: None,
            },
            Answer::Refused(refusal) => {
                let fault = DomainFault::from(&refusal);
                outcome::launch(decision_id, outcome::launch_outcome(refusal.code), fault)
            }
        };
        let ok = outcome.launched.is_some();
        let can = |obligation: &Obligation| conditions::can(Method::AppsLaunch, obligation);
        let answer = Reviewed::Read { ok, fresh: None };
        let review = self.parts.judge.review_under(receipt, answer, &can);
        if self.is_withheld(&review) {
            outcome = LaunchOutcome {
                launched: None,
                withheld: true,
                ..outcome
            };
        } else {
            let all = receipt.obligations().iter().chain(&review.obligations);
            let conditions = Conditions::of(Method::AppsLaunch, all);
            if let Some(launched) = &mut outcome.launched {
                redact(&conditions, launched);
            }
            outcome.max_bytes = conditions.max_bytes;
        }
        outcome
    }
}

fn redact(conditions: &Conditions, launched: &mut Launched) {
    if conditions.redacts(&Redaction::LaunchedName) {
        launched.name = None;
    }
    if conditions.redacts(&Redaction::LaunchedTitles) {
        let windows = &mut launched.windows;
        windows.iter_mut().for_each(|window| window.title = None);
    }
}
