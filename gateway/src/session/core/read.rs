//! Calls that only read: lists, snapshots, pictures of a display.

use std::time::Duration;

use maka_cu_host::displays::{PixelSize, resolve_display_snapshots};
use maka_cu_host::status::Negotiated;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::{Millis, WindowKey};
use maka_cu_protocol::json::Violation;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::params::{
    AppsListParams, ObserveParams, ObserveTarget, ScreenCaptureParams, WindowListParams,
};
use maka_cu_protocol::results::lists::{AppEntry, WindowEntry, read_app_list, read_window_list};
use maka_cu_protocol::results::{Answer, ObserveExpectation, read_observe, read_screen_capture};
use maka_cu_protocol::rpc::RpcCode;
use maka_policy_host::facts::SnapshotRow;
use maka_policy_host::judge::{Answer as Reviewed, Released};
use maka_policy_host::obligation::Obligation;
use maka_policy_host::permit::Receipt;
use serde_json::Value;
use tokio::time::Instant;

use super::admit::Ask;
use super::meet::shown;
use super::{Context, Core, outcome, source};
use crate::error::{CallError, Limit};
use crate::policy;
use crate::session::answer::{Decided, DomainFault, Frame, ScreenPicture};
use crate::session::call::{CaptureCall, ImageDelivery, ObserveWish, SnapshotCall};
use crate::session::conditions::{self, Conditions, Redaction};
use crate::session::image::Stored;
use crate::session::state::Happening;

impl Core {
    /// Judges a read, sends it, and reads the answer. The review is the caller's, after the mirror has the answer.
    async fn read<T>(
        &mut self,
        context: Context<'_>,
        method: Method,
        params: Value,
        reader: impl Fn(&Value) -> Result<Answer<T>, Violation> + Clone,
    ) -> Result<(Receipt, T), CallError> {
        let ask = Ask::read(method, &params);
        let permit = self.judge(context, &ask)?;
        self.begin().await?;
        let sending = self.sending(context, Duration::ZERO);
        let (receipt, sent) = self.redeem(context, &ask, permit, |core, permit, now| {
            core.parts
                .forward
                .forward(permit, now, sending.clone(), reader.clone())
        })?;
        let decision_id = receipt.decision_id().as_str();
        match sent.await {
            Ok(maka_cu_host::Answer {
                value: Answer::Done(done),
                ..
            }) => Ok((receipt, done)),
            Ok(maka_cu_host::Answer {
                value: Answer::Refused(refusal),
                ..
            }) => {
                let decision_id = Some(decision_id.to_owned());
                self.refused_for(refusal.code);
                // A refusal is an answer, too: what is in it is for the caller only once it is released.
                self.review_read(
                    &receipt,
                    method,
                    Reviewed::Read {
                        ok: false,
                        fresh: None,
                    },
                )?;
                Err(CallError::Refused {
                    fault: DomainFault::from(&refusal),
                    decision_id,
                })
            }
            Err(error) => Err(self.lost(&error, Some(decision_id))),
        }
    }

    /// The error of a call that was not answered. An executor that does not know the session gets to know it again.
    pub(super) fn lost(
        &mut self,
        error: &maka_cu_host::CallError,
        decision_id: Option<&str>,
    ) -> CallError {
        if let maka_cu_host::CallError::Rpc(rpc) = error
            && rpc.error.code() == Some(RpcCode::SessionUnknown)
        {
            self.shared.set_begun(0);
        }
        outcome::executor_error(error, decision_id)
    }

    /// Has the answer of a read reviewed, and says what it is held to.
    ///
    /// # Errors
    /// The policy keeps it back.
    fn review_read(
        &mut self,
        receipt: &Receipt,
        method: Method,
        answer: Reviewed,
    ) -> Result<Conditions, CallError> {
        let can = |obligation: &Obligation| conditions::can(method, obligation);
        let review = self.parts.judge.review_under(receipt, answer, &can);
        if review.disposition == Released::Quarantine {
            self.quarantine(&review);
        }
        match (review.disposition, review.refusal) {
            (Released::Release, _) => {
                let all = receipt.obligations().iter().chain(&review.obligations);
                Ok(Conditions::of(method, all))
            }
            (Released::Withhold | Released::Quarantine, Some(refusal)) => {
                Err(CallError::Withheld(Box::new(refusal)))
            }
            (Released::Withhold | Released::Quarantine, None) => Err(CallError::SessionQuarantined),
        }
    }

    /// Releases the answer of a read. One that comes after the session was stopped for good is nobody's (spec maka-cu §12.6
    /// row 70); what merely holds a session up leaves it its answer, and buries the frame.
    fn release(
        &mut self,
        receipt: &Receipt,
        method: Method,
        fresh: Option<SnapshotRow>,
    ) -> Result<Conditions, CallError> {
        let conditions = self.review_read(receipt, method, Reviewed::Read { ok: true, fresh })?;
        self.still_open()?;
        Ok(conditions)
    }

    pub(crate) async fn apps(
        &mut self,
        context: Context<'_>,
    ) -> Result<Decided<Vec<AppEntry>>, CallError> {
        self.may_observe()?;
        self.ready(context).await?;
        let params = AppsListParams.to_value();
        let (receipt, mut list) = self
            .read(context, Method::AppsList, params, read_app_list)
            .await?;
        let conditions = self.release(&receipt, Method::AppsList, None)?;
        if conditions.redacts(&Redaction::AppNames) {
            list.apps.iter_mut().for_each(|app| app.name = None);
        }
        Ok(decided(&receipt, &conditions, list.apps))
    }

    pub(crate) async fn windows(
        &mut self,
        context: Context<'_>,
    ) -> Result<Decided<Vec<WindowEntry>>, CallError> {
        self.may_observe()?;
        self.ready(context).await?;
        let params = WindowListParams {
            session: self.id.clone(),
        }
        .to_value();
        let (receipt, mut list) = self
            .read(context, Method::WindowList, params, read_window_list)
            .await?;
        let conditions = self.release(&receipt, Method::WindowList, None)?;
        for window in &mut list.windows {
            if conditions.redacts(&Redaction::WindowTitles) {
                window.title = None;
            }
            if conditions.redacts(&Redaction::WindowAppNames) {
                window.app_name = None;
            }
        }
        Ok(decided(&receipt, &conditions, list.windows))
    }

    pub(crate) async fn snapshot(
        &mut self,
        context: Context<'_>,
        call: &SnapshotCall,
    ) -> Result<Decided<Frame>, CallError> {
        if !self.mirror.has_room() {
            return Err(CallError::Limit(Limit::SnapshotsInSession));
        }
        self.may_observe()?;
        let negotiated = self.ready(context).await?;
        within_limits(call, &negotiated)?;
        let (target, window) = match &call.target {
            ObserveWish::App(app) => (ObserveTarget::App(app.clone()), None),
            ObserveWish::Window(window) => (ObserveTarget::Window(*window), Some(*window)),
            ObserveWish::Frontmost => {
                let window = self.frontmost(context).await?;
                (ObserveTarget::Window(window), Some(window))
            }
        };
        let params = ObserveParams {
            include_image: call.image != ImageDelivery::None,
            max_elements: call.max_elements,
            max_depth: call.max_depth,
            max_text_chars: call.max_text_chars,
            menu: call.menu.clone(),
            ..ObserveParams::new(self.id.clone(), target)
        };
        let image_dir = negotiated.image_dir.clone();
        let limits = negotiated.handshake.limits;
        let reader = move |result: &Value| {
            // A missing picture is told to the caller (field report C10) rather than held against the executor.
            let expected = ObserveExpectation {
                image_dir: &image_dir,
                image: false,
                window,
            };
            let answer = read_observe(result, &expected)?;
            if let Answer::Done(snapshot) = &answer {
                // It was told by nobody but itself how large its trees are.
                let within = snapshot.check_limits(&limits);
                within.map_err(|violation| violation.at("snapshot"))?;
            }
            Ok(answer)
        };
        let (receipt, snapshot) = self
            .read(context, Method::Observe, params.to_value(), reader)
            .await?;
        let fresh = policy::fresh_row(&snapshot, self.id.as_str(), negotiated.generation);
        let (frame, image) = self.register(snapshot, call.image, &negotiated, Method::Observe)?;
        let conditions = self.release(&receipt, Method::Observe, Some(fresh))?;
        let how = (call.image, Method::Observe);
        let by = receipt.fingerprint();
        let (frame, image) = self.meet_frame(&conditions, frame, image, how, by).await?;
        self.happened(Happening::Observed);
        // Not before the review: what is withheld must not be there to be fetched.
        if let Some(image) = image {
            self.images().add(image);
        }
        Ok(decided(&receipt, &conditions, frame))
    }

    /// The frontmost ordinary window on the screen. The list that tells is judged like any other.
    async fn frontmost(&mut self, context: Context<'_>) -> Result<WindowKey, CallError> {
        let listed = self.windows(context).await?;
        let ordinary = listed
            .value
            .iter()
            .filter(|window| window.on_screen && window.layer == 0);
        ordinary
            .max_by_key(|window| window.z_index)
            .map(WindowEntry::window)
            .ok_or(CallError::Refused {
                fault: DomainFault::of(DomainCode::WindowGone),
                decision_id: Some(listed.decision_id),
            })
    }

    pub(crate) async fn capture(
        &mut self,
        context: Context<'_>,
        call: &CaptureCall,
    ) -> Result<Decided<ScreenPicture>, CallError> {
        self.may_observe()?;
        let negotiated = self.ready(context).await?;
        let params = ScreenCaptureParams {
            session: self.id.clone(),
            display_id: call.display_id.clone(),
        };
        let (image_dir, asked) = (negotiated.image_dir.clone(), call.display_id.clone());
        let reader = move |result: &Value| read_screen_capture(result, &image_dir, asked.as_ref());
        let (receipt, captured) = self
            .read(context, Method::ScreenCapture, params.to_value(), reader)
            .await
            .map_err(|error| unknown_display(error, call))?;
        let ttl = Duration::from_millis(negotiated.handshake.limits.snapshot_ttl_ms);
        let file = source(&captured.image, &negotiated);
        let image = Stored::new(file, None, Instant::now() + ttl);
        let conditions = self.release(&receipt, Method::ScreenCapture, None)?;
        let method = Method::ScreenCapture;
        let image = self.meet_image(&conditions, None, image, method).await?;
        let mut picture = shown(image.as_ref());
        self.inline(&mut picture, image.as_ref(), call.image, method)
            .await?;
        let Millis(captured_unix_ms) = captured.captured_at;
        let size = PixelSize {
            width: captured.image.width_px,
            height: captured.image.height_px,
        };
        let configured = &self.parts.displays;
        let displays = if configured.is_empty() {
            &self.displays
        } else {
            &**configured
        };
        let displays = resolve_display_snapshots(displays, &captured.display_id, size);
        let value = ScreenPicture {
            picture,
            display_id: captured.display_id,
            captured_unix_ms,
            displays,
        };
        if let Some(image) = image {
            self.images().add(image);
        }
        Ok(decided(&receipt, &conditions, value))
    }
}

fn decided<T>(receipt: &Receipt, conditions: &Conditions, value: T) -> Decided<T> {
    Decided {
        decision_id: receipt.decision_id().as_str().to_owned(),
        value,
        max_bytes: conditions.max_bytes,
    }
}

/// Only the executor knows which displays there are: one that it rejects is the caller's mistake.
fn unknown_display(error: CallError, call: &CaptureCall) -> CallError {
    match error {
        CallError::Rpc { number, .. }
            if call.display_id.is_some() && number == RpcCode::InvalidParams.number() =>
        {
            CallError::Malformed {
                field: "display_id",
                rule: "not an attached display",
            }
        }
        error => error,
    }
}

/// Bounds above the executor's limits are the caller's mistake, and are told before anything is sent.
fn within_limits(call: &SnapshotCall, negotiated: &Negotiated) -> Result<(), CallError> {
    let limits = &negotiated.handshake.limits;
    let rows = [
        ("max_elements", call.max_elements, limits.max_elements),
        ("max_depth", call.max_depth, limits.max_depth),
        ("max_text_chars", call.max_text_chars, limits.max_text_chars),
    ];
    match rows
        .into_iter()
        .find(|(_, bound, limit)| bound.is_some_and(|bound| u64::from(bound.get()) > *limit))
    {
        Some((field, ..)) => Err(CallError::Malformed {
            field,
            rule: "above the executor's limit, see GetStatus",
        }),
        None => Ok(()),
    }
}
