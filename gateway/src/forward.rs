//! The only owner of the executor, with two doors.
//!
//! - `forward` takes a [`Permit`]: everything that a caller asked for. The permit is used up, its facts are
//!   checked once more against the present, and exactly the params that were judged are sent.
//! - `control`, private behind one function per message, takes a `HostMessage`: a closed set of messages
//!   without a caller-chosen action. They are recorded and never denied, because a policy that denies everything must
//!   not keep the gateway from ending a session.
//!
//! Knows nothing of gRPC, and of policies only permits and the record of control messages.

mod restart;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use maka_cu_host::error::LifecycleCause;
use maka_cu_host::selection::{NoBackend, Selection};
use maka_cu_host::status::{Negotiated, Status};
use maka_cu_host::{
    CallError as ExecutorError, CallOptions, EventStream, MakaCuLifecycleError, MakaCuService,
};
use maka_cu_protocol::action::PointAction;
use maka_cu_protocol::geometry::{ImagePoint, ScreenPoint, screen_to_image};
use maka_cu_protocol::ids::{SessionId, ToolCallId, WindowKey};
use maka_cu_protocol::json::{Reason, Violation};
use maka_cu_protocol::method::Method;
use maka_cu_protocol::params::{
    DispatchPointParams, ObserveParams, ObserveTarget, PermissionsCheckParams, SessionBeginParams,
    SessionEndParams,
};
use maka_cu_protocol::results::dispatch::{DispatchExpectation, Ending, read_dispatch};
use maka_cu_protocol::results::{
    self, Answer, Done, ObserveExpectation, Permissions, SessionEnded,
};
use maka_cu_protocol::sets::{CaptureScope, OcclusionPolicy, Space};
use maka_cu_protocol::snapshot::Snapshot;
use maka_policy_host::call::ExecutorCall;
use maka_policy_host::judge::Judge;
use maka_policy_host::log::ControlKind;
use maka_policy_host::permit::{Permit, Receipt, Recheck, Stale};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use restart::Restarts;

/// How long a call waits for an executor that is starting. A restart usually fits into it; the first start may not, and
/// its callers get an answer at once rather than after ten seconds (field report F8).
const START_PATIENCE: Duration = Duration::from_millis(600);

/// What every request may take on top of the executor's own ceilings (design.md §5.4).
const CEILING_MARGIN: Duration = Duration::from_secs(5);

/// Which back end was chosen when the gateway started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Backend {
    /// The executor `maka-cu`.
    MakaCu,
    /// None; every call is refused.
    None(NoBackend),
}

/// Messages of the gateway itself. `host.hello` and `$/cancel` belong to the supervisor, which sends them on its own.
#[derive(Clone, Copy, Debug)]
enum HostMessage<'a> {
    SessionBegin(&'a SessionId),
    SessionEnd(&'a SessionId),
    PermissionsCheck,
    /// Letting go of a button: the window is observed …
    ReleaseObserve(&'a SessionId, WindowKey),
    /// … and the button is let go of at a point of the picture.
    ReleaseUp(&'a SessionId, &'a ToolCallId, &'a Snapshot, ImagePoint),
}

/// How a message is sent.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    /// The session it belongs to.
    pub(crate) session: Option<SessionId>,
    /// The caller's deadline; the executor's own ceilings count when they come first.
    pub(crate) deadline: Option<Instant>,
    /// Time that this request may need beyond the ceilings, because it asked for it.
    pub(crate) extra: Duration,
    /// Cancels the request.
    pub(crate) cancel: CancellationToken,
    /// The only executor it is meant for; nothing when any will do.
    pub(crate) generation: Option<u64>,
}

/// Why there is no executor to talk to.
#[derive(Clone, Debug)]
pub(crate) enum NotReady {
    NoBackend(NoBackend),
    Lifecycle(MakaCuLifecycleError),
    /// It is starting and was not ready within the patience of a call.
    Starting {
        generation: u64,
    },
    /// The caller gave up first.
    Cancelled,
}

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Forward(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    executor: Executor,
    judge: Arc<Judge>,
    /// The last generation whose handshake was recorded.
    greeted: AtomicU64,
    /// The last generation of which an answer was quarantined.
    distrusted: AtomicU64,
    /// Releases of held buttons so far.
    releases: AtomicU64,
    restarts: Restarts,
}

#[derive(Debug)]
enum Executor {
    Service(Box<MakaCuService>),
    None(NoBackend),
}

impl Forward {
    /// Takes over the executor that was chosen, or the reason why there is none.
    #[must_use]
    pub fn new(selection: Selection, judge: Arc<Judge>) -> Self {
        let executor = match selection {
            Selection::MakaCu(service) => Executor::Service(service),
            Selection::None(reason) => Executor::None(reason),
        };
        Self(Arc::new(Inner {
            executor,
            judge,
            greeted: AtomicU64::new(0),
            distrusted: AtomicU64::new(0),
            releases: AtomicU64::new(0),
            restarts: Restarts::default(),
        }))
    }

    /// What was chosen.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match &self.0.executor {
            Executor::Service(_) => Backend::MakaCu,
            Executor::None(reason) => Backend::None(*reason),
        }
    }

    /// The supervisor's status; nothing when there is no back end.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        self.service().ok().map(MakaCuService::status)
    }

    /// The status as a value to watch.
    #[must_use]
    pub fn watch_status(&self) -> Option<watch::Receiver<Status>> {
        self.service().ok().map(MakaCuService::watch_status)
    }

    /// What the supervisor tells from now on. Nothing when there is no back end.
    #[must_use]
    pub fn events(&self) -> Option<EventStream> {
        self.service().ok().map(MakaCuService::events)
    }

    /// Starts the executor. Why it could not be started is in [`Forward::status`].
    pub async fn start(&self) {
        if let Ok(service) = self.service()
            && let Err(error) = service.ensure_started().await
        {
            tracing::warn!(
                code = error.code.as_str(),
                generation = error.generation,
                "the executor did not start"
            );
        }
    }

    /// Ends the executor. To be called when no session is left.
    pub async fn dispose(&self) {
        if let Ok(service) = self.service() {
            service.dispose().await;
        }
        self.0.restarts.end().await;
    }

    /// Ends the executor (SIGTERM, its grace, SIGKILL) and starts another one with every attempt available again. Whoever
    /// asks while a restart is under way shares it; leaving does not stop it.
    pub(crate) async fn restart(&self) -> Result<Arc<Negotiated>, NotReady> {
        self.service().map_err(NotReady::NoBackend)?;
        let begin = || {
            tracing::warn!("the executor is restarted on request");
            let log = self.0.judge.log();
            log.control(ControlKind::ExecutorStop, None);
            let this = self.clone();
            async move {
                match this.service() {
                    Ok(service) => service.restart().await,
                    Err(_) => Err(is_disposed(0)),
                }
            }
        };
        let restarted = self.0.restarts.join(begin).await;
        restarted
            .unwrap_or_else(|| Err(is_disposed(0)))
            .map_err(NotReady::Lifecycle)
    }

    /// Whether the operator let the executor move the system pointer: what this gateway said in the handshake.
    pub(crate) fn allows_global_pointer(&self) -> bool {
        self.service()
            .is_ok_and(|service| service.options().allow_global_pointer)
    }

    /// What was agreed on with the executor that is ready now.
    pub(crate) fn negotiated(&self) -> Option<Arc<Negotiated>> {
        self.service().ok().and_then(MakaCuService::negotiated)
    }

    /// The generation that is ready now; 0 when none is.
    pub(crate) fn generation(&self) -> u64 {
        self.negotiated()
            .map_or(0, |negotiated| negotiated.generation)
    }

    /// A ready executor. Starts one if need be, and waits a little for one that is starting.
    pub(crate) async fn ready(
        &self,
        cancel: &CancellationToken,
    ) -> Result<Arc<Negotiated>, NotReady> {
        let service = self.service().map_err(NotReady::NoBackend)?;
        let negotiated = match service.negotiated() {
            Some(negotiated) => negotiated,
            None => tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(NotReady::Cancelled),
                started = timeout(START_PATIENCE, service.ensure_started()) => match started {
                    Ok(started) => started.map_err(NotReady::Lifecycle)?,
                    Err(_) => return Err(NotReady::Starting { generation: service.status().generation }),
                },
            },
        };
        if self
            .0
            .greeted
            .fetch_max(negotiated.generation, Ordering::Relaxed)
            < negotiated.generation
        {
            self.0.judge.log().control(ControlKind::Hello, None);
        }
        Ok(negotiated)
    }

    /// Uses the permit up and sends what it permits. `reader` reads the answer; a violation it finds ends the executor.
    ///
    /// The check of the permit happens now, the sending when the returned future runs; it is bound to the generation
    /// that was judged. Dropping the future cancels the request.
    ///
    /// # Errors
    /// [`Stale`] when the world is not the one that was judged. Nothing was sent.
    pub(crate) fn forward<T, R>(
        &self,
        permit: Permit<ExecutorCall>,
        now: Recheck,
        sending: Sending,
        reader: R,
    ) -> Result<
        (
            Receipt,
            impl Future<Output = Result<maka_cu_host::Answer<T>, ExecutorError>> + use<T, R>,
        ),
        Stale,
    >
    where
        R: FnOnce(&Value) -> Result<T, Violation>,
    {
        let (call, receipt) = permit.redeem(now)?;
        tracing::trace!(
            method = call.method(),
            decision_id = %receipt.decision_id(),
            generation = now.executor_generation,
            "forwarding"
        );
        let (this, generation) = (self.clone(), now.executor_generation);
        let sent = async move {
            let Ok(service) = this.service() else {
                return Err(disposed(generation));
            };
            let (method, params) = call.into_parts();
            let method = Method::parse(method).expect("calls are made with the names of this enum");
            let params = serde_json::from_str(&params).expect("canonical params are JSON");
            let sending = Sending {
                generation: Some(generation),
                ..sending
            };
            let options = options(service, sending);
            service.call_typed(method, params, options, reader).await
        };
        Ok((receipt, sent))
    }

    /// Begins a session at the executor.
    pub(crate) async fn begin_session(
        &self,
        session: &SessionId,
        sending: Sending,
    ) -> Result<maka_cu_host::Answer<Answer<Done>>, ExecutorError> {
        self.control(
            HostMessage::SessionBegin(session),
            sending,
            results::read_session_begin,
        )
        .await
    }

    /// Ends a session at the executor.
    pub(crate) async fn end_session(
        &self,
        session: &SessionId,
        sending: Sending,
    ) -> Result<maka_cu_host::Answer<Answer<SessionEnded>>, ExecutorError> {
        self.control(
            HostMessage::SessionEnd(session),
            sending,
            results::read_session_end,
        )
        .await
    }

    /// Asks which permissions the executor holds. Never shows a dialog.
    pub(crate) async fn check_permissions(
        &self,
        sending: Sending,
    ) -> Result<maka_cu_host::Answer<Answer<Permissions>>, ExecutorError> {
        self.control(
            HostMessage::PermissionsCheck,
            sending,
            results::read_permissions,
        )
        .await
    }

    /// Observes the window in which a button may be down.
    pub(crate) async fn release_observe(
        &self,
        session: &SessionId,
        window: WindowKey,
        negotiated: &Negotiated,
        sending: Sending,
    ) -> Result<Answer<Snapshot>, ExecutorError> {
        let expected = ObserveExpectation {
            image_dir: &negotiated.image_dir,
            image: false,
            window: Some(window),
        };
        let message = HostMessage::ReleaseObserve(session, window);
        let answer = self
            .control(message, sending, |result| {
                results::read_observe(result, &expected)
            })
            .await?;
        Ok(answer.value)
    }

    /// Lets go of the left button at this point of the screen, or at the nearest that the window's picture has.
    pub(crate) async fn release_up(
        &self,
        session: &SessionId,
        snapshot: &Snapshot,
        point: ScreenPoint,
        negotiated: &Negotiated,
        sending: Sending,
    ) -> Result<Ending, ExecutorError> {
        let count = self.0.releases.fetch_add(1, Ordering::Relaxed) + 1;
        // No caller's key: those of callers stay inside the gateway's own table, by session.
        let id = ToolCallId::try_new(format!("release_{count}"))
            .expect("it is neither empty nor too long");
        let expected = DispatchExpectation {
            tool_call_id: &id,
            allow_global_pointer: self.allows_global_pointer(),
            pid: Some(snapshot.target.pid),
            image_dir: &negotiated.image_dir,
            tier: None,
            path: None,
        };
        let message = HostMessage::ReleaseUp(session, &id, snapshot, pixel(snapshot, point));
        let answer = self
            .control(message, sending, |result| read_dispatch(result, &expected))
            .await?;
        Ok(answer.value.ending)
    }

    /// Records that a caller gave up a request; the supervisor sends the cancel.
    pub(crate) fn note_cancel(&self, session: &SessionId) {
        self.0
            .judge
            .log()
            .control(ControlKind::Cancel, Some(session.as_str()));
    }

    /// Reports a violation that was found outside a reader, for example in an image file.
    pub(crate) fn report_violation(&self, generation: u64, method: Method, violation: Violation) {
        if let Ok(service) = self.service() {
            service.report_violation(generation, method, violation);
        }
    }

    /// An answer of this generation was quarantined. The second time ends it (spec policy §1.12).
    pub(crate) fn distrust(&self, generation: u64) {
        if self.0.distrusted.swap(generation, Ordering::Relaxed) == generation {
            let untrusted = Violation::of("outcome", Reason::Contradiction);
            self.report_violation(generation, Method::HostDispatch, untrusted);
        }
    }

    /// The second door.
    async fn control<T>(
        &self,
        message: HostMessage<'_>,
        sending: Sending,
        reader: impl FnOnce(&Value) -> Result<T, Violation>,
    ) -> Result<maka_cu_host::Answer<T>, ExecutorError> {
        let Ok(service) = self.service() else {
            return Err(disposed(0));
        };
        let (kind, method, params) = match message {
            HostMessage::SessionBegin(session) => {
                let params = SessionBeginParams {
                    session: session.clone(),
                    capture_scope: CaptureScope::Window,
                };
                (
                    ControlKind::SessionBegin,
                    Method::SessionBegin,
                    params.to_value(),
                )
            }
            HostMessage::SessionEnd(session) => {
                let params = SessionEndParams {
                    session: session.clone(),
                };
                (
                    ControlKind::SessionEnd,
                    Method::SessionEnd,
                    params.to_value(),
                )
            }
            HostMessage::ReleaseObserve(session, window) => {
                let params = ObserveParams {
                    include_image: true,
                    ..ObserveParams::new(session.clone(), ObserveTarget::Window(window))
                };
                (ControlKind::ReleaseHeld, Method::Observe, params.to_value())
            }
            HostMessage::ReleaseUp(session, id, snapshot, point) => {
                let params = DispatchPointParams {
                    session: session.clone(),
                    snapshot_id: snapshot.snapshot_id.clone(),
                    tool_call_id: id.clone(),
                    expect_window_digest: snapshot.window_digest,
                    point,
                    start_point: None,
                    space: Space::ImagePx,
                    occlusion_policy: OcclusionPolicy::Any,
                    action: PointAction::MouseUp,
                    observe_after: None,
                };
                (
                    ControlKind::ReleaseHeld,
                    Method::DispatchPoint,
                    params.to_value(),
                )
            }
            HostMessage::PermissionsCheck => {
                let params = PermissionsCheckParams { prompt: false };
                (
                    ControlKind::PermissionsCheck,
                    Method::PermissionsCheck,
                    params.to_value(),
                )
            }
        };
        self.0
            .judge
            .log()
            .control(kind, sending.session.as_ref().map(SessionId::as_str));
        let options = options(service, sending);
        service.call_typed(method, params, options, reader).await
    }

    fn service(&self) -> Result<&MakaCuService, NoBackend> {
        match &self.0.executor {
            Executor::Service(service) => Ok(service),
            Executor::None(reason) => Err(*reason),
        }
    }
}

/// The pixel of a picture at a point of the screen, or the nearest there is: letting go counts more than where.
fn pixel(snapshot: &Snapshot, point: ScreenPoint) -> ImagePoint {
    let bounds = snapshot.target.bounds;
    let (scale, width, height) =
        snapshot
            .image
            .as_ref()
            .map_or((1.0, bounds.width(), bounds.height()), |image| {
                (
                    image.scale,
                    f64::from(image.width_px),
                    f64::from(image.height_px),
                )
            });
    let within = |at: f64, size: f64| at.clamp(0.0, (size - 1.0).max(0.0));
    let point = screen_to_image(point, bounds, scale)
        .and_then(|at| ImagePoint::try_new(within(at.x(), width), within(at.y(), height)));
    point.unwrap_or_else(|_| ImagePoint::try_new(0.0, 0.0).expect("the origin is a point"))
}

/// The earlier of the caller's deadline and the executor's own ceilings.
fn options(service: &MakaCuService, sending: Sending) -> CallOptions {
    let limits = service
        .negotiated()
        .map(|negotiated| negotiated.handshake.limits);
    let ceilings = limits.map_or(Duration::ZERO, |limits| {
        let walk = limits.tree_walk_ceiling_ms.unwrap_or(0);
        Duration::from_millis(walk.saturating_add(limits.settle_ceiling_ms)) + CEILING_MARGIN
    });
    // An hour bounds what a hostile handshake can announce: an instant must not overflow.
    let patience = ceilings
        .max(service.options().timeout)
        .saturating_add(sending.extra)
        .min(Duration::from_secs(3600));
    let ceiling = Instant::now() + patience;
    CallOptions {
        session: sending.session,
        deadline: Some(
            sending
                .deadline
                .map_or(ceiling, |deadline| deadline.min(ceiling)),
        ),
        cancel: sending.cancel,
        generation: sending.generation,
    }
}

/// No back end: whoever gets here asked [`Forward::ready`] first, which said so.
fn disposed(generation: u64) -> ExecutorError {
    ExecutorError::Lifecycle(is_disposed(generation))
}

/// What a service says when it is gone.
fn is_disposed(generation: u64) -> MakaCuLifecycleError {
    use maka_cu_protocol::sets::{LifecycleCode, RequestStage};
    MakaCuLifecycleError {
        code: LifecycleCode::ServiceUnavailable,
        generation,
        stage: RequestStage::Queued,
        method: None,
        cause: LifecycleCause::Disposed,
    }
}
