//! A gateway's life: take hold of the folder, listen at once, make executor and policy ready side by side, serve,
//! and end everything that was started.
//!
//! The port is open before anything is ready; until then health says NOT_SERVING and calls are refused with a
//! reason. Every task is in one set that is awaited at the end.

pub(crate) mod connection;
pub mod executor;
mod metrics;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use maka_policy_host::{
    engine::{Engine, EngineError},
    judge::{Judge, JudgeOptions},
    limits::Limits,
    log::{DecisionLog, Fsync, LogError, LogOptions, Rotation, VerifyError, verify},
    obligation::ObligationKind,
};
use tokio::{
    sync::Notify,
    task::{JoinError, JoinSet},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_health::server::HealthReporter;
use tower::Layer as _;

use crate::{
    api::{
        self, Edge, EdgeSettings,
        authenticate::{Authenticate, AuthenticateLayer},
    },
    captures::Captures,
    config::{self, Config},
    decisions::Decisions,
    events::Events,
    forward::Forward,
    health,
    listen::{self, ListenError, OwnedFile, counted::Connections},
    plane::{Plane, fault::Fault},
    policy::standing::{Standing, StandingWatch},
    principal::Directory,
    session::{
        SessionSettings, Sessions,
        history::History,
        secret::{RequestSecret, SecretError},
    },
    state_dir::{StateDir, StateDirError},
};

/// File of the key under which requests are hashed, in the state folder.
const REQUEST_KEY_FILE: &str = "request.key";

/// How long connections may take to finish once everything behind them has ended.
const CONNECTION_GRACE: Duration = Duration::from_millis(500);

/// How often it is looked whether the policies are stale. Their age is counted in longer times.
const STALE_CHECK: Duration = Duration::from_secs(1);

/// How long a connection may be there without having made a call. One that is only held open takes the place of another.
const FIRST_CALL: Duration = Duration::from_secs(20);

/// How a gateway is told to end.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// End in order: no new calls, cancel what runs, let go of what is held, end the executor.
    pub drain: CancellationToken,
    /// End now: the executor is killed.
    pub hurry: CancellationToken,
    /// Read the section `[policy]` of the configuration again. Orders that come while one is carried out are one more.
    pub reload: Arc<Notify>,
}

/// Why a gateway does not run, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The state folder.
    #[error(transparent)]
    StateDir(#[from] StateDirError),
    /// A listener.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The decision log. Without it nothing may be permitted, so nothing is served.
    #[error("the decision log cannot be used")]
    Log(#[from] LogError),
    /// The decision log is not whole. What it says about earlier calls is then not to be believed.
    #[error(transparent)]
    LogChanged(#[from] VerifyError),
    /// The request key.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The policy engine.
    #[error("the policy engine cannot be started")]
    Engine(#[from] EngineError),
    /// The policy judge.
    #[error("the policy judge cannot be made")]
    Judge(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The policies.
    #[error("the policies cannot be used as they are configured: {}", .0.plainly())]
    Policy(Fault),
    /// A task of the gateway panicked.
    #[error("a task of the gateway failed")]
    Task(#[from] JoinError),
}

/// Runs a gateway until it is told to end. `file` is what `config` was read from, to be read again when that is asked for.
///
/// # Errors
/// [`ServeError`] when it cannot start, or when something it cannot do without fails. What it had started is ended
/// all the same.
pub async fn serve(config: Config, file: PathBuf, stop: Stop) -> Result<(), ServeError> {
    let state_dir = StateDir::hold(config.state_dir.as_path())?;
    let listeners = Listeners::bind(&config, &state_dir)?;
    let page = match config.telemetry.metrics {
        Some(address) => Some(metrics::Page::bind(address.0, state_dir.path()).await?),
        None => None,
    };
    let gateway = Gateway::prepare(&config)?;
    gateway.run(&config, file, listeners, page, stop).await
}

/// Bound, not yet served. Connections wait in the kernel's queue.
struct Listeners {
    tcp: Option<tonic::transport::server::TcpIncoming>,
    unix: Option<tokio_stream::wrappers::UnixListenerStream>,
    /// Removed when the gateway ends.
    _files: Vec<OwnedFile>,
}

impl Listeners {
    fn bind(config: &Config, state_dir: &StateDir) -> Result<Self, ListenError> {
        let mut files = Vec::new();
        let mut tcp = None;
        if let Some(address) = config.listen.tcp() {
            let (incoming, bound): (_, SocketAddr) = listen::tcp(address.0)?;
            files.push(listen::write_address(state_dir.path(), bound)?);
            tracing::info!(address = %bound, "listening");
            tcp = Some(incoming);
        }
        let mut unix = None;
        if let Some(path) = config.socket_path() {
            let (incoming, file) = listen::unix(&path)?;
            files.push(file);
            tracing::info!(socket = %path.display(), "listening");
            unix = Some(incoming);
        }
        Ok(Self {
            tcp,
            unix,
            _files: files,
        })
    }
}

/// Everything that lives as long as the gateway.
struct Gateway {
    plane: Plane,
    judge: Arc<Judge>,
    forward: Forward,
    events: Events,
    sessions: Sessions,
    directory: Arc<Directory>,
    policy: StandingWatch,
}

impl Gateway {
    /// Opens the log, makes the engine, and chooses the executor without starting it.
    fn prepare(config: &Config) -> Result<Self, ServeError> {
        let audit_path = config.audit_path();
        // Read before it is opened for writing: the log's owner holds a lock on it.
        verify(&audit_path)?;
        let history = History::load(&audit_path)?;
        let fsync = match config.audit.fsync {
            config::Fsync::Batch => Fsync::Batch,
            config::Fsync::Each => Fsync::Each,
            config::Fsync::Never => Fsync::Never,
        };
        let (log, opened) = DecisionLog::open(
            &audit_path,
            LogOptions {
                fsync,
                rotation: Some(Rotation {
                    max_file_bytes: config.audit.max_file_bytes.get(),
                    keep_files: config.audit.keep_files.map(|keep| keep.get() as u32),
                }),
            },
        )?;
        if opened.torn_bytes > 0 {
            tracing::warn!(
                bytes = opened.torn_bytes,
                "the decision log ended in an unfinished record, which was cut off"
            );
        }
        let secret =
            RequestSecret::load_or_create(&config.state_dir.as_path().join(REQUEST_KEY_FILE))?;
        let engine = Engine::new(Limits::default())?;
        // Sessions carry out every kind; whether one can be met is asked for each call.
        let options = JudgeOptions {
            enforceable: ObligationKind::ALL.to_vec(),
        };
        let judge = Judge::try_new(engine.clone(), Arc::new(log), options)
            .map_err(|error| ServeError::Judge(Box::new(error)))?;
        let judge = Arc::new(judge);
        let forward = Forward::new(executor::select(config), Arc::clone(&judge));
        // Nothing was started yet, so nothing happens between the status and the events that follow it.
        let events = Events::new(forward.status().zip(forward.events()));
        let settings = SessionSettings {
            idle_ttl: config.session.idle_ttl_ms.as_millis(),
            per_principal: config.session.max_per_principal.as_usize(),
            total: config.session.max_total.as_usize(),
            synthetic_input: config.input.synthetic,
            intervention_debounce: config.session.intervention_debounce_ms.as_millis(),
            approval_lifetime: config.approval.lifetime_ms.as_millis(),
            displays: config
                .displays
                .iter()
                .map(|display| display.0.clone())
                .collect(),
        };
        let state_dir = config.state_dir.as_path();
        let has_policies = Plane::has_policies(config.policy.as_ref(), state_dir);
        let (standing, policy) = StandingWatch::new(if has_policies {
            Standing::Loading
        } else {
            Standing::Absent
        });
        let plane = Plane::new(
            engine,
            Arc::clone(&judge),
            config.policy.clone(),
            state_dir,
            standing,
        );
        let sessions = Sessions::new(
            forward.clone(),
            Arc::clone(&judge),
            policy.clone(),
            secret,
            history,
            events.clone(),
            settings,
        );
        let directory = Arc::new(Directory::new(&config.principals));
        Ok(Self {
            plane,
            judge,
            forward,
            events,
            sessions,
            directory,
            policy,
        })
    }

    async fn run(
        self,
        config: &Config,
        file: PathBuf,
        listeners: Listeners,
        page: Option<metrics::Page>,
        stop: Stop,
    ) -> Result<(), ServeError> {
        let Self {
            plane,
            judge,
            forward,
            events,
            sessions,
            directory,
            policy: policy_standing,
        } = self;
        let mut tasks: JoinSet<Result<(), ServeError>> = JoinSet::new();

        let (reporter, health_service) = tonic_health::server::health_reporter();
        health::report(&reporter, false).await;
        tasks.spawn(follow_health(
            reporter,
            forward.clone(),
            Arc::clone(&judge),
            policy_standing,
            stop.drain.clone(),
        ));

        let decisions = Decisions::new(Arc::clone(&judge));
        let captures = Captures::new(Arc::clone(&judge), config.audit.capture_key.clone());
        let edge = Arc::new(Edge {
            captures: captures.clone(),
            decisions: decisions.clone(),
            sessions: sessions.clone(),
            events: events.clone(),
            forward: forward.clone(),
            judge: Arc::clone(&judge),
            plane: plane.clone(),
            settings: EdgeSettings {
                back_end: executor::back_end(config),
                allow_global_pointer: config.allow_global_pointer,
                synthetic_input: config.input.synthetic,
            },
        });
        let layer = AuthenticateLayer::new(directory, config.dev);
        let services = services(&layer, edge, health_service);
        if let Some(incoming) = listeners.tcp {
            let incoming = Connections::tcp().accept(incoming);
            let served =
                connection::serve(services.clone(), incoming, FIRST_CALL, stop.drain.clone());
            tasks.spawn(async move {
                served.await;
                Ok(())
            });
        }
        if let Some(incoming) = listeners.unix {
            let incoming = Connections::unix().accept(incoming);
            let served = connection::serve(services, incoming, FIRST_CALL, stop.drain.clone());
            tasks.spawn(async move {
                served.await;
                Ok(())
            });
        }

        if let Some(page) = page {
            let approvals = sessions.approvals().clone();
            let served = page.serve(Arc::clone(&judge), approvals, stop.drain.clone());
            tasks.spawn(async move {
                served.await;
                Ok(())
            });
        }
        if let Some(heard) = forward.events() {
            let events = events.clone();
            tasks.spawn(async move {
                events.follow(heard).await;
                Ok(())
            });
        }
        let followed = sessions.clone();
        let follow_stop = stop.drain.clone();
        tasks.spawn(async move {
            followed.follow_executor(follow_stop).await;
            Ok(())
        });
        let (approvals, approvals_stop) = (sessions.approvals().clone(), stop.drain.clone());
        tasks.spawn(async move {
            approvals.follow(approvals_stop).await;
            Ok(())
        });
        let starting = forward.clone();
        let start_stop = stop.drain.clone();
        tasks.spawn(async move {
            // Dropping the wait is safe: the supervisor goes on by itself and is disposed of below.
            tokio::select! {
                () = starting.start() => {}
                () = start_stop.cancelled() => {}
            }
            Ok(())
        });
        if !Plane::has_policies(config.policy.as_ref(), config.state_dir.as_path()) {
            tracing::warn!(
                "no policy is configured; every call about the desktop is refused until a set is activated"
            );
        }
        let policy_stop = stop.clone();
        tasks.spawn(async move { follow_policies(plane, file, policy_stop).await });

        let failed = until_told_or_failed(&mut tasks, &stop.drain).await;
        stop.drain.cancel();
        tracing::info!("ending");
        tokio::select! {
            () = end(&sessions, &forward, &events, &captures, &decisions, &mut tasks) => {}
            // What is dropped here ends by itself: the supervisor kills its executor when it goes.
            () = stop.hurry.cancelled() => tracing::warn!("ending without waiting"),
        }
        tasks.abort_all();
        failed
    }
}

/// Waits until the gateway is told to end or one of its tasks fails.
async fn until_told_or_failed(
    tasks: &mut JoinSet<Result<(), ServeError>>,
    drain: &CancellationToken,
) -> Result<(), ServeError> {
    loop {
        // Both are cancel-safe.
        tokio::select! {
            () = drain.cancelled() => return Ok(()),
            ended = tasks.join_next() => match ended {
                Some(ended) => ended??,
                None => return Ok(()),
            },
        }
    }
}

/// Sessions first, so that what they hold is let go of while the executor still listens; then the executor; then
/// watchers, who have seen all of it; then the connections, whose calls all have their answers by now.
async fn end(
    sessions: &Sessions,
    forward: &Forward,
    events: &Events,
    captures: &Captures,
    decisions: &Decisions,
    tasks: &mut JoinSet<Result<(), ServeError>>,
) {
    sessions.shutdown().await;
    forward.dispose().await;
    events.close();
    captures.close();
    decisions.close();
    let connections = async {
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended.map_err(ServeError::from).flatten() {
                tracing::warn!(error = %crate::telemetry::Chain(&error), "a task ended badly");
            }
        }
    };
    // A health watch or a client that does not read would hold us for ever.
    if timeout(CONNECTION_GRACE, connections).await.is_err() {
        tracing::debug!("connections were still open");
    }
}

/// Makes the policies active, and again whenever the configuration is to be read again.
async fn follow_policies(plane: Plane, file: PathBuf, stop: Stop) -> Result<(), ServeError> {
    plane.start().await.map_err(ServeError::Policy)?;
    let mut was_stale = false;
    loop {
        // All are cancel-safe: an order that comes meanwhile is kept.
        tokio::select! {
            () = stop.drain.cancelled() => return Ok(()),
            () = stop.reload.notified() => {
                let read = file.clone();
                match tokio::task::spawn_blocking(move || Config::load(&read)).await? {
                    // A refusal is recorded and shown by the plane; what was active goes on.
                    Ok(config) => drop(plane.reload(config.policy).await),
                    Err(error) => {
                        tracing::warn!(error = %crate::telemetry::Chain(&error), "the configuration is not understood");
                        plane.reload_unread();
                    }
                }
            }
            () = sleep(STALE_CHECK) => {
                let is_stale = plane.view().stale;
                if is_stale && !was_stale {
                    tracing::warn!("the last successful look at the policies is older than `policy.stale_after_ms`");
                }
                was_stale = is_stale;
            }
        }
    }
}

async fn follow_health(
    reporter: HealthReporter,
    forward: Forward,
    judge: Arc<Judge>,
    policy: StandingWatch,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    health::follow(reporter, forward.watch_status(), policy, &judge, stop).await;
    Ok(())
}

/// All services behind one authenticating layer.
fn services<H>(
    layer: &AuthenticateLayer,
    edge: Arc<Edge>,
    health_service: tonic_health::pb::health_server::HealthServer<H>,
) -> Authenticate<Routes>
where
    H: tonic_health::pb::health_server::Health,
{
    // Both versions describe every served service, each other, and the details that statuses carry: a tool then
    // prints an error instead of its bytes.
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .include_reflection_service(false)
            .register_encoded_file_descriptor_set(maka_proto::DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(
                tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
            )
    };
    let routes = Routes::new(health_service)
        // Tools ask for either version: grpcurl and grpcio v1alpha, buf v1.
        .add_service(
            reflection()
                .build_v1()
                .expect("the descriptor sets were made by the build"),
        )
        .add_service(
            reflection()
                .build_v1alpha()
                .expect("the descriptor sets were made by the build"),
        )
        .add_service(api::computer_use(Arc::clone(&edge)))
        .add_service(api::events(Arc::clone(&edge)))
        .add_service(api::operator(Arc::clone(&edge)))
        .add_service(api::policies(edge))
        .prepare();
    layer.layer(routes)
}
