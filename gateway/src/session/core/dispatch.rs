//! Dispatch: the key, the judgement, the reservation of the quoted row, and the settled outcome.

use std::sync::Arc;
use std::time::Duration;

use maka_cu_host::status::Negotiated;
use maka_cu_protocol::action::PointAction;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::geometry::ScreenPoint;
use maka_cu_protocol::handshake::Capabilities;
use maka_cu_protocol::ids::{SessionId, ToolCallId};
use maka_cu_protocol::json::{Reason, Violation};
use maka_cu_protocol::method::Method;
use maka_cu_protocol::results::dispatch::{
    DispatchAnswer, DispatchExpectation, Ending, PostFrame, read_dispatch,
};
use maka_cu_protocol::sets::{Outcome, Path, Tier};
use maka_policy_host::call::ExecutorCall;
use maka_policy_host::digest::Digest;
use maka_policy_host::facts::{Claim, DispatchResult, Path as PolicyPath};
use maka_policy_host::judge::{Answer as Reviewed, Unmet};
use maka_policy_host::obligation::Obligation;
use maka_policy_host::permit::Receipt;
use serde_json::Value;
use tokio::time::Instant;

use super::act::takes_key;
use super::admit::{Ask, Narrow};
use super::{Context, Core, outcome};
use crate::error::{CallError, Limit};
use crate::policy::{self, actions, words};
use crate::session::answer::{DispatchOutcome, DomainFault, Frame};
use crate::session::call::{DispatchAction, DispatchCall, ImageDelivery};
use crate::session::conditions::{self, Conditions};
use crate::session::held::{Held, Press};
use crate::session::image::Stored as Image;
use crate::session::keys::{Known, Stored};
use crate::session::mirror::Settlement;
use crate::session::route::{self, Plan, Verdict};
use crate::session::secret::RequestSecret;
use crate::session::state::Happening;

/// The request under a key, hashed under the gateway's secret.
pub(crate) fn request_of_dispatch(
    secret: &RequestSecret,
    session: &SessionId,
    call: &DispatchCall,
) -> Digest {
    secret.digest(route::identity(session, call).to_string().as_bytes())
}

impl Core {
    pub(crate) async fn dispatch(
        &mut self,
        context: Context<'_>,
        call: &DispatchCall,
    ) -> Result<DispatchOutcome, CallError> {
        let request = request_of_dispatch(&self.parts.secret, &self.id, call);
        if !call.dry_run {
            match self.keys.look(&call.tool_call_id, request) {
                Known::Ended(Stored::Dispatch(outcome)) => {
                    return Ok(DispatchOutcome {
                        replayed: true,
                        ..*outcome
                    });
                }
                Known::Ended(Stored::Launch(_)) | Known::Taken => {
                    return Err(CallError::KeyConflict);
                }
                Known::Full => return Err(CallError::Limit(Limit::KeysInSession)),
                Known::Free => {}
            }
        }
        if self.shared.is_quarantined() {
            return Err(CallError::SessionQuarantined);
        }
        self.may_act()?;
        if call.observe_after.is_some() && !self.mirror.has_room() {
            return Err(CallError::Limit(Limit::SnapshotsInSession));
        }
        let answer = self.dispatch_new(context, call, request).await;
        if let Ok(outcome) = &answer {
            self.learn(outcome);
        }
        let outcome = match &answer {
            Ok(outcome) => outcome.clone(),
            // The caller is told why; a repeat is told that nothing happened.
            Err(error) if takes_key(context, error) => {
                let decision_id = error.decision_id().unwrap_or_default().to_owned();
                outcome::dispatch_cancelled(call, decision_id)
            }
            Err(_) => return answer,
        };
        if !call.dry_run {
            let outcome = Stored::Dispatch(Box::new(outcome));
            self.keys.keep(&call.tool_call_id, request, outcome);
        }
        answer
    }

    /// A dispatch that was dropped or came too late while it waited: nothing was sent, and nothing will be under its key.
    pub(crate) fn abandon_dispatch(&mut self, call: &DispatchCall) {
        let request = request_of_dispatch(&self.parts.secret, &self.id, call);
        if !call.dry_run && matches!(self.keys.look(&call.tool_call_id, request), Known::Free) {
            let outcome = outcome::dispatch_cancelled(call, String::new());
            self.keys.keep(
                &call.tool_call_id,
                request,
                Stored::Dispatch(Box::new(outcome)),
            );
        }
    }

    async fn dispatch_new(
        &mut self,
        context: Context<'_>,
        call: &DispatchCall,
        request: Digest,
    ) -> Result<DispatchOutcome, CallError> {
        let negotiated = self.ready(context).await?;
        let plan = route::plan(&self.id, call, &negotiated.handshake.capabilities);
        let session = self.id.clone();
        let narrow = |only: &[PolicyPath]| {
            narrowed(
                &session,
                call,
                &negotiated.handshake.capabilities,
                &plan,
                only,
            )
        };
        let ask = self.ask_dispatch(call, &plan, request, &narrow);
        let permit = self.judge(context, &ask)?;
        let decision_id = permit.receipt().decision_id().as_str().to_owned();
        let not_sent = match plan.verdict {
            Verdict::Sendable if call.dry_run => {
                Some(Ok(outcome::dispatch_dry(call, decision_id.clone())))
            }
            Verdict::Sendable if context.cancel.is_cancelled() => {
                Some(Ok(outcome::dispatch_cancelled(call, decision_id.clone())))
            }
            Verdict::Sendable if self.is_off_screen(call) => {
                Some(Ok(outcome::dispatch_off_screen(call, decision_id.clone())))
            }
            Verdict::Sendable => None,
            Verdict::Unsupported => Some(Err(CallError::Unsupported {
                decision_id: decision_id.clone(),
            })),
            // The floor refuses this; if it ever did not, there would be nothing to send.
            Verdict::NoAnchor => Some(Err(CallError::Malformed {
                field: "target",
                rule: "required",
            })),
        };
        if let Some(answer) = not_sent {
            self.log_not_forwarded(permit.receipt());
            return answer;
        }
        self.begin_for(&permit).await?;
        // Letting the executor know the session takes time, in which a person may have come.
        if let Err(held) = self.may_act() {
            self.log_not_forwarded(permit.receipt());
            return Err(held);
        }
        let expected = Expected::of(
            call,
            &negotiated,
            self.parts.forward.allows_global_pointer(),
            call.snapshot_id.as_ref().and_then(|id| self.mirror.pid(id)),
        );
        let sending = self.sending(context, Duration::ZERO);
        let (receipt, sent) = self.redeem(context, &ask, permit, |core, permit, now| {
            let expected = expected.clone().within(permit.receipt().obligations());
            core.parts
                .forward
                .forward(permit, now, sending.clone(), move |result: &Value| {
                    expected.read(result)
                })
        })?;
        let pointed = self.pointed(context, call);
        if let Some(id) = &call.snapshot_id {
            self.mirror.reserve(id, receipt.fingerprint());
        }
        self.meter.acted(context.turn, Instant::now());
        self.publish();
        let shown = self.show_dispatch(call);
        let answer = sent.await;
        let (is_last, by) = (
            receipt.obligations().contains(&Obligation::NoFollowUp),
            receipt.fingerprint(),
        );
        let settled = self
            .settle_dispatch(call, &negotiated, plan.method, receipt, answer)
            .await;
        if is_last && let Some(id) = &call.snapshot_id {
            self.mirror.seal(id, by);
        }
        if let (Some((action, held)), Ok(outcome)) = (pointed, &settled) {
            self.keep_books(&action, held, outcome);
        }
        self.dispatch_shown(shown, &settled);
        settled
    }

    /// What a point action would leave held, and where, seen before the row of its frame is used up.
    fn pointed(&self, context: Context<'_>, call: &DispatchCall) -> Option<(PointAction, Held)> {
        let DispatchAction::Point { anchor, action } = &call.action else {
            return None;
        };
        let id = call.snapshot_id.as_ref()?;
        let held = Held {
            generation: self.generation,
            window: self.mirror.window(id)?,
            point: self.mirror.screen_point(id, anchor.point?)?,
            connection: context.connection.cloned(),
            owner: Arc::clone(&self.shared),
            refused: false,
        };
        Some((*action, held))
    }

    fn keep_books(&self, action: &PointAction, held: Held, outcome: &DispatchOutcome) {
        match Press::after(action, outcome.outcome, outcome.path) {
            Press::Down => self.parts.held.note(&self.id, held),
            Press::Up => self.parts.held.clear(&self.id),
            Press::AsBefore => {}
        }
    }

    /// What the outcome of an action says about the session.
    fn learn(&mut self, outcome: &DispatchOutcome) {
        if outcome.outcome == Outcome::Unknown {
            self.happened(Happening::OutcomeUnknown);
        } else if outcome.frame.is_some() {
            self.happened(Happening::Observed);
        }
        if let Some(fault) = &outcome.error {
            self.refused_for(fault.code);
        }
    }

    fn ask_dispatch<'a>(
        &self,
        call: &'a DispatchCall,
        plan: &'a Plan,
        request: Digest,
        narrow: Narrow<'a>,
    ) -> Ask<'a> {
        let (element_token, element_digest, window_digest, is_focus) = match &call.action {
            DispatchAction::Element { anchor, .. } => {
                (anchor.token.as_ref(), anchor.expect_digest, None, false)
            }
            DispatchAction::Key { anchor, .. } => {
                (anchor.token.as_ref(), anchor.expect_digest, None, true)
            }
            DispatchAction::Point { anchor, .. } => {
                (None, None, anchor.expect_window_digest, false)
            }
        };
        Ask {
            tool_call_id: call.tool_call_id.as_str(),
            method: plan.method,
            params: &plan.params,
            action: actions::action(&call.action, &self.text_key),
            claim: Claim {
                snapshot_id: call
                    .snapshot_id
                    .as_ref()
                    .map(|id| id.as_str().to_owned())
                    .unwrap_or_default(),
                window_digest: window_digest.map(|digest| digest.to_string()),
                element_token: element_token.map(|token| token.as_str().to_owned()),
                element_digest: element_digest.map(|digest| digest.to_string()),
                target: None,
                tier: Some(words::tier(call.tier)),
                path: route::demanded(call).map(words::path),
            },
            quoted: call.snapshot_id.as_ref(),
            is_focus,
            may_ask: !call.dry_run,
            request: Some(request),
            narrow,
        }
    }

    /// What the answer, or its absence, means for the row, the caller and the log.
    async fn settle_dispatch(
        &mut self,
        call: &DispatchCall,
        negotiated: &Negotiated,
        method: Method,
        receipt: Receipt,
        answer: Result<maka_cu_host::Answer<DispatchAnswer>, maka_cu_host::CallError>,
    ) -> Result<DispatchOutcome, CallError> {
        let decision_id = receipt.decision_id().as_str().to_owned();
        let outcome = match answer {
            Ok(answer) => {
                return Ok(self
                    .answered(call, negotiated, method, &receipt, answer.value)
                    .await);
            }
            Err(error) if error.possibly_delivered() => {
                self.settle_row(call, Settlement::Spent);
                Ok(outcome::dispatch_lost(
                    call,
                    decision_id,
                    outcome::release_reason(&error),
                ))
            }
            Err(error) if outcome::was_cancelled(&error) => {
                self.settle_row(call, Settlement::LiveAgain);
                Ok(outcome::dispatch_cancelled(call, decision_id))
            }
            Err(error) => {
                // An RPC error is no valid answer, even though it had no effect: the frame is not tried again.
                let rejected = matches!(error, maka_cu_host::CallError::Rpc(_));
                self.settle_row(
                    call,
                    if rejected {
                        Settlement::Spent
                    } else {
                        Settlement::LiveAgain
                    },
                );
                Err(self.lost(&error, Some(&decision_id)))
            }
        };
        match &outcome {
            Ok(outcome) => self.log_dispatch(&receipt, outcome),
            Err(_) => self.log_not_forwarded(&receipt),
        }
        outcome
    }

    async fn answered(
        &mut self,
        call: &DispatchCall,
        negotiated: &Negotiated,
        method: Method,
        receipt: &Receipt,
        answer: DispatchAnswer,
    ) -> DispatchOutcome {
        // Before the row is settled: it knows where the element was.
        let resolved_screen_point = (answer.path != Path::None)
            .then(|| self.screen_point(call))
            .flatten();
        self.settle_row(call, settlement(&answer.ending));
        let reviewed = DispatchResult {
            outcome: words::outcome(answer.ending.outcome()),
            tier: words::tier(answer.tier),
            path: words::path(answer.path),
            effect: words::effect(answer.effect),
            verification: answer.verification.method.as_str().to_owned(),
            observed_change: answer.verification.observed_change,
            would_require: answer
                .ending
                .refusal()
                .and_then(|refusal| refusal.detail.would_require_path)
                .map(words::path),
            fresh: match &answer.frame {
                PostFrame::Taken(snapshot) => Some(policy::fresh_row(
                    snapshot,
                    self.id.as_str(),
                    negotiated.generation,
                )),
                PostFrame::None | PostFrame::Failed(_) => None,
            },
            now_secure: match &answer.frame {
                PostFrame::Taken(snapshot) => policy::focus_is_secure(snapshot),
                PostFrame::None | PostFrame::Failed(_) => false,
            },
        };
        let arm_ok = answer.ending == Ending::Done;
        let error = answer.ending.refusal().map(DomainFault::from);
        let outcome = answer.ending.outcome();
        let (frame, image, observation_error) =
            self.post_frame(call, negotiated, method, answer.frame, arm_ok);
        let mut outcome = DispatchOutcome {
            tool_call_id: call.tool_call_id.clone(),
            outcome,
            tier: answer.tier,
            path: answer.path,
            effect: answer.effect,
            verification: answer.verification,
            settle: answer.settle,
            error,
            frame,
            observation_error,
            decision_id: receipt.decision_id().as_str().to_owned(),
            resolved_screen_point,
            withheld: false,
            release_reason: None,
            dry_run: false,
            replayed: false,
            max_bytes: None,
        };
        let path = reviewed.path;
        let can = |obligation: &Obligation| match obligation {
            Obligation::OnlyPaths(paths) => path == PolicyPath::None || paths.contains(&path),
            Obligation::Redact(_)
            | Obligation::DropImage
            | Obligation::MaxBytes(_)
            | Obligation::NoFollowUp
            | Obligation::MarkSensitive => conditions::can(method, obligation),
        };
        let answer = Reviewed::Dispatch {
            result: reviewed,
            arm_ok,
        };
        let review = self.parts.judge.review_under(receipt, answer, &can);
        if self.is_withheld(&review) {
            // What happened stays true; what was seen is kept back.
            outcome = DispatchOutcome {
                settle: None,
                error: outcome.error.map(|fault| DomainFault::of(fault.code)),
                frame: None,
                observation_error: None,
                resolved_screen_point: None,
                withheld: true,
                ..outcome
            };
        } else {
            let all = receipt.obligations().iter().chain(&review.obligations);
            let conditions = Conditions::of(method, all);
            outcome.max_bytes = conditions.max_bytes;
            if conditions.no_follow_up
                && let Some(id) = &call.snapshot_id
            {
                self.mirror.seal(id, receipt.fingerprint());
            }
            if let Some(frame) = outcome.frame.take() {
                let delivery = call
                    .observe_after
                    .as_ref()
                    .map_or(ImageDelivery::None, |wish| wish.image);
                let how = (delivery, method);
                let by = receipt.fingerprint();
                match self.meet_frame(&conditions, frame, image, how, by).await {
                    Ok((frame, image)) => {
                        outcome.frame = Some(frame);
                        if let Some(image) = image {
                            self.images().add(image);
                        }
                    }
                    // The picture was not what the executor said, which ended it: its frames are dead.
                    Err(_) => {
                        outcome.observation_error =
                            Some(DomainFault::of(DomainCode::CaptureFailed));
                    }
                }
            }
        }
        self.log_dispatch(receipt, &outcome);
        outcome
    }

    /// The frame after an action, registered whether or not the caller gets to see it: the executor has it. What the
    /// caller gets of it is settled by the review.
    fn post_frame(
        &mut self,
        call: &DispatchCall,
        negotiated: &Negotiated,
        method: Method,
        frame: PostFrame,
        is_done: bool,
    ) -> (Option<Frame>, Option<Image>, Option<DomainFault>) {
        let without = |code| (None, None, Some(DomainFault::of(code)));
        let wish = call.observe_after.as_ref();
        match frame {
            // An executor that did the action owes the frame or the reason why there is none.
            PostFrame::None if is_done && wish.is_some() => without(DomainCode::CaptureFailed),
            PostFrame::None => (None, None, None),
            PostFrame::Failed(code) => without(code),
            PostFrame::Taken(snapshot) => {
                let delivery = wish.map_or(ImageDelivery::None, |wish| wish.image);
                match self.register(*snapshot, delivery, negotiated, method) {
                    Ok((frame, image)) => (Some(frame), image, None),
                    Err(_) => without(DomainCode::CaptureFailed),
                }
            }
        }
    }

    fn settle_row(&mut self, call: &DispatchCall, settlement: Settlement) {
        if let Some(id) = &call.snapshot_id {
            self.mirror.settle(id, settlement, Instant::now());
        }
    }

    /// Where on the screen the action goes, as far as the quoted snapshot tells.
    /// Whether a point of the action is no pixel of the quoted picture that a display shows. An executor would refuse it,
    /// or worse, would not.
    fn is_off_screen(&self, call: &DispatchCall) -> bool {
        let DispatchAction::Point { anchor, .. } = &call.action else {
            return false;
        };
        let Some(id) = &call.snapshot_id else {
            return false;
        };
        let mut points = anchor.point.iter().chain(&anchor.start);
        points.any(|point| !self.mirror.is_on_screen(id, *point))
    }

    fn screen_point(&self, call: &DispatchCall) -> Option<ScreenPoint> {
        let id = call.snapshot_id.as_ref()?;
        match &call.action {
            DispatchAction::Element { anchor, .. } => {
                self.mirror.center_of(id, anchor.token.as_ref()?.as_str())
            }
            DispatchAction::Point { anchor, .. } => self.mirror.screen_point(id, anchor.point?),
            DispatchAction::Key { .. } => None,
        }
    }

    fn log_dispatch(&self, receipt: &Receipt, outcome: &DispatchOutcome) {
        self.log_outcome(
            receipt,
            outcome.outcome,
            (outcome.tier, outcome.path, outcome.effect),
            Some(outcome.verification),
            outcome.error.as_ref().map(|fault| fault.code),
            outcome.withheld,
        );
    }
}

/// How an ending leaves the quoted row (design.md §5.1).
fn settlement(ending: &Ending) -> Settlement {
    match ending {
        Ending::Done | Ending::Unknown(_) => Settlement::Spent,
        Ending::Refused(refusal) | Ending::Failed(refusal) => Settlement::of_refusal(refusal.code),
    }
}

/// What an answer is held to. A tier or path other than the demanded one ends the executor (design.md §5.9): the
/// caller named the only ones it accepts, and [`route::plan`] made sure that they can be met.
#[derive(Clone, Debug)]
struct Expected {
    tool_call_id: ToolCallId,
    allow_global_pointer: bool,
    pid: Option<u32>,
    image_dir: Arc<std::path::Path>,
    tier: Tier,
    path: Option<Path>,
    /// The paths that a policy permits, where it does not permit all.
    only: Option<Vec<PolicyPath>>,
}

impl Expected {
    fn of(
        call: &DispatchCall,
        negotiated: &Negotiated,
        allow_global_pointer: bool,
        pid: Option<u32>,
    ) -> Self {
        Self {
            tool_call_id: call.tool_call_id.clone(),
            allow_global_pointer,
            pid,
            image_dir: negotiated.image_dir.as_path().into(),
            tier: call.tier,
            path: route::demanded(call),
            only: None,
        }
    }

    /// Under these conditions.
    fn within(self, obligations: &[Obligation]) -> Self {
        let only = conditions::only_paths(obligations).map(<[_]>::to_vec);
        Self { only, ..self }
    }

    fn read(&self, result: &Value) -> Result<DispatchAnswer, Violation> {
        let answer = read_dispatch(
            result,
            &DispatchExpectation {
                tool_call_id: &self.tool_call_id,
                allow_global_pointer: self.allow_global_pointer,
                pid: self.pid,
                image_dir: &self.image_dir,
                tier: Some(self.tier),
                path: self.path,
            },
        )?;
        let strays = |only: &Vec<PolicyPath>| !only.contains(&words::path(answer.path));
        // Made sure of before it was sent, like a path that the caller demands.
        if answer.path != Path::None && self.only.as_ref().is_some_and(strays) {
            return Err(Violation::of("path", Reason::Contradiction));
        }
        Ok(answer)
    }
}

/// The call of a plan that takes these paths alone; nothing when it does so anyway, or is not sent at all.
fn narrowed(
    session: &SessionId,
    call: &DispatchCall,
    capabilities: &Capabilities,
    plan: &Plan,
    only: &[PolicyPath],
) -> Result<Option<ExecutorCall>, Unmet> {
    if plan.verdict != Verdict::Sendable {
        return Ok(None);
    }
    let only: Vec<Path> = Path::ALL
        .iter()
        .copied()
        .filter(|path| only.contains(&words::path(*path)))
        .collect();
    let narrow = route::plan_within(session, call, capabilities, Some(&only));
    if narrow.verdict != Verdict::Sendable {
        return Err(Unmet);
    }
    if (narrow.method, &narrow.params) == (plan.method, &plan.params) {
        return Ok(None);
    }
    ExecutorCall::new(narrow.method.as_str(), &narrow.params)
        .map(Some)
        .map_err(|_| Unmet)
}
