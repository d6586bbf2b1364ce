//! The executor's state, and the way from a parsed call to its answer.
//!
//! Everything here blocks and runs on a job's own thread, except [`Executor::greet`] and [`Executor::lane_of`], which the
//! server calls between two reads and which do no more than a few file system calls and one short lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::generic::GenericTarget;
use maka_cu_protocol::handshake::{Capabilities, ExecutorIdentity, Handshake, HelloParams, Limits};
use maka_cu_protocol::ids::{ElementToken, Millis};
use maka_cu_protocol::json::Json;
use maka_cu_protocol::method::{Method, PROTOCOL};
use maka_cu_protocol::params::{ObserveTarget, ParamError};
use maka_cu_protocol::refusal::Refusal;
use maka_cu_protocol::results::Answer;
use maka_cu_protocol::rpc::{Request, RpcCode, RpcError};
use maka_cu_protocol::sets::PointActionKind;
use nix::unistd::Pid;
use serde_json::Value;

use crate::backend::Backend;
use crate::backend::error::BackendError;
use crate::call::Call;
use crate::deadline::Deadline;
use crate::dispatch::held::HeldButtons;
use crate::image::store::ImageStore;
use crate::reply::Reply;
use crate::server::lanes::LaneKey;
use crate::server::ticket::{Aborted, Ticket};
use crate::session::{SessionGone, Sessions, SnapshotLimits};
use crate::{dispatch, generic, launch, lists, observe, screen};

/// Time for one list, one lock check, one permission check.
pub const LIST_BUDGET: Duration = Duration::from_secs(4);

/// `treeWalkCeilingMs` where none is advertised.
pub const WALK_CEILING_MS: u64 = 6_000;

/// Everything that requests share.
#[derive(Debug)]
pub struct Executor {
    backend: Arc<dyn Backend>,
    limits: Limits,
    nonce: String,
    next_token: AtomicU64,
    sessions: Mutex<Sessions>,
    held_buttons: HeldButtons,
    /// Set by the one successful handshake.
    host: OnceLock<Host>,
}

/// What the handshake said.
#[derive(Debug)]
pub struct Host {
    /// Where pictures go.
    pub images: ImageStore,
    /// Whether the system cursor may be moved.
    pub allow_global_pointer: bool,
    /// What was advertised.
    pub capabilities: Capabilities,
}

/// A handshake that succeeded.
#[derive(Debug)]
pub struct Greeting {
    /// The process to watch.
    pub host: Pid,
    /// The `result` to send.
    pub result: Value,
}

/// Why a call could not be carried out.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// A fact about the world.
    Refused(Refusal),
    /// The request was unusable.
    Unusable(RpcError),
}

impl Executor {
    /// An executor that no host has greeted yet.
    ///
    /// # Errors
    /// When the system gives no random numbers: ids could collide with those of an earlier process then.
    pub fn new(backend: Arc<dyn Backend>, limits: Limits) -> Result<Self, getrandom::Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)?;
        let nonce = format!("{:032x}", u128::from_be_bytes(random));
        let snapshot_limits = SnapshotLimits {
            per_session: bounded(limits.snapshots_per_session),
            ttl: Duration::from_millis(limits.snapshot_ttl_ms),
        };
        Ok(Self {
            held_buttons: HeldButtons::default(),
            sessions: Mutex::new(Sessions::new(&nonce, snapshot_limits)),
            backend,
            limits,
            nonce,
            next_token: AtomicU64::new(0),
            host: OnceLock::new(),
        })
    }

    /// Answers the first request, which has to be a `host.hello` that we can agree to (spec §2).
    ///
    /// # Errors
    /// `handshake_required`, `protocol_version_mismatch` or `invalid_params`.
    pub fn greet(&self, request: &Request) -> Result<Greeting, RpcError> {
        if request.method() != Ok(Method::HostHello) {
            return Err(RpcError::new(RpcCode::HandshakeRequired));
        }
        if !HelloParams::speaks_our_protocol(&request.params)? {
            return Err(RpcError::version_mismatch());
        }
        let hello = HelloParams::from_value(&request.params)?;
        let host =
            i32::try_from(hello.host_pid).map_err(|_| RpcError::invalid_params("hostPid"))?;
        let images = ImageStore::open(
            hello.image_dir.as_path(),
            &self.nonce,
            self.limits.image_dir_budget_bytes,
        )
        .map_err(|error| {
            tracing::warn!(%error, "the image directory was refused");
            RpcError::invalid_params("imageDir")
        })?;
        let capabilities = offered(&*self.backend, hello.allow_global_pointer);
        let state = Host {
            images,
            allow_global_pointer: hello.allow_global_pointer,
            capabilities: capabilities.clone(),
        };
        // The server greets only before the handshake, so the cell is empty.
        drop(self.host.set(state));
        tracing::info!(
            host_pid = hello.host_pid,
            allow_global_pointer = hello.allow_global_pointer,
            "handshake"
        );
        let handshake = Handshake {
            protocol: PROTOCOL.to_owned(),
            executor: ExecutorIdentity {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: option_env!("MAKA_COMMIT").map(str::to_owned),
            },
            pid: std::process::id(),
            capabilities,
            limits: self.limits,
        };
        let result = Answer::Done(handshake).write();
        Ok(Greeting {
            host: Pid::from_raw(host),
            result,
        })
    }

    /// The lane a call has to wait in (spec §1.6).
    #[must_use]
    pub fn lane_of(&self, call: &Call) -> LaneKey {
        match call {
            Call::SessionBegin(_)
            | Call::SessionEnd(_)
            | Call::WindowList(_)
            | Call::AppsList
            | Call::PermissionsCheck(_) => LaneKey::Control,
            Call::Launch(_) | Call::ScreenCapture(_) | Call::Reserved => LaneKey::Misc,
            Call::Observe(params) => match params.target {
                ObserveTarget::Window(key) => LaneKey::Target(key),
                ObserveTarget::App(_) => LaneKey::Misc,
            },
            Call::HostSnapshot(params) => match (&params.target, params.include_tree) {
                (GenericTarget::Target(ObserveTarget::Window(key)), true) => LaneKey::Target(*key),
                (
                    GenericTarget::Target(ObserveTarget::Window(_) | ObserveTarget::App(_))
                    | GenericTarget::Pid(_)
                    | GenericTarget::Unnamed,
                    _,
                ) => LaneKey::Misc,
            },
            Call::HostDispatch(params) => {
                generic::window_of(&self.sessions(), params).map_or(LaneKey::Misc, LaneKey::Target)
            }
            Call::DispatchElement(_) | Call::DispatchKey(_) | Call::DispatchPoint(_) => call
                .quoted()
                .and_then(|(session, snapshot)| self.sessions().window_of(session, snapshot))
                .map_or(LaneKey::Misc, LaneKey::Target),
        }
    }

    /// Carries a call out. Blocks.
    #[must_use]
    pub fn run(&self, call: &Call, ticket: &Ticket) -> Reply {
        let started = Instant::now();
        let reply = match call {
            Call::SessionBegin(params) => lists::session_begin(self, params, ticket).into(),
            Call::SessionEnd(params) => lists::session_end(self, params, ticket).into(),
            Call::WindowList(params) => Reply::from(lists::window_list(self, params, ticket))
                .within(self.limits.max_response_bytes),
            Call::AppsList => {
                Reply::from(lists::apps_list(self, ticket)).within(self.limits.max_response_bytes)
            }
            Call::PermissionsCheck(params) => lists::permissions_check(self, params, ticket).into(),
            Call::Launch(params) => launch::launch(self, params, ticket).into(),
            Call::Observe(params) => observe::observe(self, params, ticket).into(),
            Call::ScreenCapture(params) => screen::capture(self, params, ticket).into(),
            Call::DispatchElement(params) => dispatch::element(self, params, ticket),
            Call::DispatchKey(params) => dispatch::key(self, params, ticket),
            Call::DispatchPoint(params) => dispatch::point(self, params, ticket),
            Call::HostDispatch(params) => generic::dispatch(self, params, ticket),
            Call::HostSnapshot(params) => generic::snapshot(self, params, ticket).into(),
            Call::Reserved => call.refusal_shape().refuse(DomainCode::NotImplemented),
        };
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(
            method = call.method(),
            ok = reply.is_ok(),
            elapsed_ms,
            "request done"
        );
        reply
    }

    /// The desktop.
    #[must_use]
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// What the handshake advertised.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.host().capabilities
    }

    /// The buttons that actions left down.
    #[must_use]
    pub const fn held_buttons(&self) -> &HeldButtons {
        &self.held_buttons
    }

    /// The limits, as advertised.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the handshake said.
    #[must_use]
    pub fn host(&self) -> &Host {
        self.host
            .get()
            .expect("the server runs calls only after the handshake")
    }

    /// The sessions. Never held across a call into the back end.
    pub fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // No section leaves the table half changed, so a panic elsewhere does not make it unusable.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Element tokens that this process never gave out before.
    pub fn mint_tokens(&self, count: usize) -> impl Iterator<Item = ElementToken> + use<> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let first = self.next_token.fetch_add(count, Ordering::Relaxed);
        (first..first + count)
            .map(|number| ElementToken::try_new(format!("el_{number:x}")).expect("it is not empty"))
    }

    /// Deletes what is older than its time to live.
    pub fn sweep(&self) {
        self.sessions().sweep(Instant::now());
    }

    /// The time that one observe or dispatch may take, all its steps together, and its cancellation. Made of the advertised
    /// ceilings and the time of one list, which is less than what a host that reads the limits waits (design 5.4).
    #[must_use]
    pub fn deadline_of(&self, ticket: &Ticket) -> Deadline {
        let walk = self.limits.tree_walk_ceiling_ms.unwrap_or(WALK_CEILING_MS);
        let ceilings = Duration::from_millis(walk.saturating_add(self.limits.settle_ceiling_ms));
        Deadline::cancellable(ceilings + LIST_BUDGET, ticket.cancelled().clone())
    }

    /// How often to call [`Executor::sweep`].
    #[must_use]
    pub fn sweep_interval(&self) -> Duration {
        Duration::from_millis((self.limits.snapshot_ttl_ms / 4).clamp(20, 1000))
    }

    /// `shutdownGraceMs`.
    #[must_use]
    pub const fn shutdown_grace(&self) -> Duration {
        Duration::from_millis(self.limits.shutdown_grace_ms)
    }

    /// Ends every session: deletes its pictures and lets go of what it holds.
    pub fn end_all_sessions(&self) {
        self.sessions().end_all();
        self.held_buttons.release_all(&*self.backend);
    }
}

/// What is advertised: an action is listed only if some request for it can succeed, so what only moves the pointer is left
/// out where the pointer may not be moved (spec §2.2, §3.8).
#[must_use]
pub fn offered(backend: &dyn Backend, allow_global_pointer: bool) -> Capabilities {
    let offered = backend.capabilities();
    let possible = |kind: &PointActionKind| match kind {
        PointActionKind::Move => allow_global_pointer,
        PointActionKind::LeftClick
        | PointActionKind::RightClick
        | PointActionKind::MiddleClick
        | PointActionKind::DoubleClick
        | PointActionKind::TripleClick
        | PointActionKind::MouseDown
        | PointActionKind::MouseUp
        | PointActionKind::Drag
        | PointActionKind::Scroll => true,
    };
    Capabilities {
        capture_stream: false,
        element_actions: offered.element_actions,
        point_actions: offered.point_actions.into_iter().filter(possible).collect(),
        key_actions: offered.key_actions,
        image_formats: offered.image_formats,
        generic_methods: Some(vec![Method::HostDispatch, Method::HostSnapshot]),
    }
}

/// A limit as a size; one that is larger than memory is no bound anyway.
#[must_use]
pub fn bounded(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Milliseconds since the Unix epoch.
#[must_use]
pub fn now_ms() -> Millis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl From<BackendError> for Fault {
    fn from(error: BackendError) -> Self {
        Self::Refused(match error {
            BackendError::PermissionMissing(permission) => Refusal::permission(permission),
            BackendError::WindowGone
            | BackendError::AppNotFound
            | BackendError::Ambiguous
            | BackendError::ScreenLocked
            | BackendError::CaptureFailed
            | BackendError::Timeout
            | BackendError::Refused
            | BackendError::Unsupported => Refusal::new(error.code()),
        })
    }
}

impl From<DomainCode> for Fault {
    fn from(code: DomainCode) -> Self {
        Self::Refused(Refusal::new(code))
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Aborted> for Fault {
    fn from(Aborted: Aborted) -> Self {
        DomainCode::Aborted.into()
    }
}

impl From<SessionGone> for Fault {
    fn from(SessionGone: SessionGone) -> Self {
        Self::Unusable(RpcError::new(RpcCode::SessionUnknown))
    }
}

impl From<ParamError> for Fault {
    fn from(error: ParamError) -> Self {
        Self::Unusable(error.into())
    }
}

impl From<RpcError> for Fault {
    fn from(error: RpcError) -> Self {
        Self::Unusable(error)
    }
}

impl From<Fault> for Reply {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(refusal) => Self::refused(refusal),
            Fault::Unusable(error) => Self::Error(error),
        }
    }
}

impl<T: Json> From<Result<T, Fault>> for Reply {
    fn from(result: Result<T, Fault>) -> Self {
        match result {
            Ok(done) => Self::done(done),
            Err(fault) => fault.into(),
        }
    }
}
