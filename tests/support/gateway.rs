//! A real gateway process in a folder of its own, on a free port, with one principal for each role.
//!
//! Ends with [`GatewayProcess::stop`], or is killed when dropped. Its stderr goes to a file, which is printed
//! when a wait for it fails.

use std::{
    fmt::Write as _,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use maka_cu_protocol::ids::Digest;
use maka_proto::v1::GetStatusRequest;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{binaries, client::Client};

/// How long a test waits for an event before it says which one did not come. Generous: two cores build and
/// test at once.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The four roles, each with a principal of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Drives desktops.
    Agent,
    /// Looks on.
    Viewer,
    /// Writes policies.
    Author,
    /// May everything.
    Operator,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Viewer, Self::Author, Self::Operator];

    /// The configuration's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Viewer => "viewer",
            Self::Author => "author",
            Self::Operator => "operator",
        }
    }

    /// A token that occurs nowhere else, so that its absence from every output can be asserted.
    #[must_use]
    pub fn token(self) -> String {
        format!("canary-token-{}-5f1d", self.as_str())
    }
}

/// Which executor the gateway starts.
#[derive(Clone, Debug)]
pub enum Executor {
    /// `maka-cu` with the embedded desktop.
    Virtual,
    /// `maka-cu` with the embedded desktop described by this TOML text.
    Scenario(String),
    /// `maka-cu` on the X11 desktop of these variables.
    Linux(Vec<(String, String)>),
    /// The scriptable executor with this script (see `tests/fake_executor`).
    Fake(serde_json::Value),
    /// Any file, with the digest to pin; `None` pins what is there.
    File {
        /// The executable.
        path: PathBuf,
        /// 64 hex digits.
        sha256: Option<String>,
    },
}

/// Which modules judge beside the floor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The floor alone.
    #[default]
    Floor,
    /// No section: nothing is active.
    Absent,
    /// The floor and these committed components, by name.
    With(Vec<&'static str>),
}

/// What a test wants from its gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The executor.
    pub executor: Executor,
    /// The policy.
    pub policy: Policy,
    /// The operator's key for actions that move the pointer.
    pub allow_global_pointer: bool,
    /// The operator's key for synthetic keys and points.
    pub synthetic_input: bool,
    /// Lines for the section `[executor]`.
    pub executor_keys: String,
    /// Whole sections to append.
    pub sections: String,
    /// Level of the gateway's log; `trace` unless a number is measured.
    pub log_level: &'static str,
    /// Variables for the gateway process.
    pub environment: Vec<(String, String)>,
}

impl GatewayOptions {
    /// The embedded desktop under the floor alone.
    #[must_use]
    pub fn new(executor: Executor) -> Self {
        Self {
            executor,
            policy: Policy::Floor,
            allow_global_pointer: false,
            synthetic_input: true,
            executor_keys: String::new(),
            sections: String::new(),
            log_level: "trace",
            environment: Vec::new(),
        }
    }
}

/// A running gateway.
#[derive(Debug)]
pub struct GatewayProcess {
    child: Child,
    folder: TempDir,
    channel: Channel,
    address: String,
}

impl GatewayProcess {
    /// Starts a gateway and waits until it answers gRPC; [`Self::serving`] waits for more.
    pub async fn start(options: GatewayOptions) -> Self {
        Self::start_in(TempDir::new().expect("a temporary folder"), options).await
    }

    /// Starts a gateway in a folder that an earlier one left behind.
    pub async fn start_in(folder: TempDir, options: GatewayOptions) -> Self {
        let config = write_config(folder.path(), &options);
        let address_file = folder.path().join("state/address");
        if let Err(error) = fs::remove_file(&address_file) {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(folder.path().join("gateway.log"))
            .expect("a log file");
        let mut child = Command::new(binaries::path("maka-gateway"))
            .args(["serve", "--config"])
            .arg(&config)
            .envs(
                options
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("maka-gateway starts");

        let started = tokio::time::Instant::now();
        let address = loop {
            if let Ok(text) = fs::read_to_string(&address_file)
                && text.ends_with('\n')
            {
                break text.trim().to_owned();
            }
            let ended = child.try_wait().expect("the child can be waited for");
            assert!(
                ended.is_none() && started.elapsed() < PATIENCE,
                "maka-gateway wrote no address ({ended:?}): {}",
                fs::read_to_string(folder.path().join("gateway.log")).unwrap_or_default()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let channel = Endpoint::from_shared(format!("http://{address}"))
            .expect("an address")
            .tcp_nodelay(true)
            .connect_lazy();
        Self {
            child,
            folder,
            channel,
            address,
        }
    }

    /// Starts a gateway and waits until it is SERVING.
    pub async fn serving(options: GatewayOptions) -> Self {
        let gateway = Self::start(options).await;
        gateway.wait_for(ServingStatus::Serving).await;
        gateway
    }

    /// Waits until health says `wanted`.
    pub async fn wait_for(&self, wanted: ServingStatus) {
        let mut health = HealthClient::new(self.channel.clone());
        let watched = async {
            let request = HealthCheckRequest {
                service: String::new(),
            };
            let mut states = health
                .watch(request)
                .await
                .expect("health can be watched")
                .into_inner();
            loop {
                match states.message().await {
                    Ok(Some(state)) if state.status() == wanted => return,
                    Ok(Some(_)) => {}
                    end => panic!("health ended with {end:?}: {}", self.log()),
                }
            }
        };
        assert!(
            tokio::time::timeout(PATIENCE, watched).await.is_ok(),
            "health never became {wanted:?}: {}",
            self.log()
        );
    }

    /// Waits until an executor is ready, whether or not anything may be asked of it.
    pub async fn executor_ready(&self) {
        let mut client = self.agent().computer_use;
        let ready = tokio::time::timeout(PATIENCE, async {
            loop {
                let status = client.get_status(GetStatusRequest {}).await;
                if status.expect("a status").into_inner().executor.is_some() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(ready.await.is_ok(), "no executor: {}", self.log());
    }

    /// The TCP address, `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The channel that clients share.
    #[must_use]
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// A client of this role.
    #[must_use]
    pub fn client(&self, role: Role) -> Client {
        Client::new(&self.channel, Some(&role.token()))
    }

    /// A client of the agent.
    #[must_use]
    pub fn agent(&self) -> Client {
        self.client(Role::Agent)
    }

    /// A client without credentials.
    #[must_use]
    pub fn anonymous(&self) -> Client {
        Client::new(&self.channel, None)
    }

    /// The folder of this gateway: `state/`, `gateway.toml`, `gateway.log`, `wire.jsonl`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The gateway's process id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        let id = self.child.id().expect("not reaped yet");
        Pid::from_raw(id.try_into().expect("a pid"))
    }

    /// Everything the gateway wrote to stderr so far.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(
            &fs::read(self.folder.path().join("gateway.log")).unwrap_or_default(),
        )
        .into_owned()
    }

    /// The decision log so far, one value a line.
    #[must_use]
    pub fn decisions(&self) -> Vec<serde_json::Value> {
        lines(&self.folder.path().join("state/decisions.jsonl"))
    }

    /// What the fake executor received so far, one value a line.
    #[must_use]
    pub fn wire(&self) -> Vec<serde_json::Value> {
        lines(&self.folder.path().join("wire.jsonl"))
    }

    /// The methods that the fake executor received so far, in order, over all its generations.
    #[must_use]
    pub fn wire_methods(&self) -> Vec<String> {
        self.wire()
            .iter()
            .filter_map(|line| line.get("method")?.as_str().map(str::to_owned))
            .collect()
    }

    /// How often the fake executor has received `method` so far.
    #[must_use]
    pub fn received_count(&self, method: &str) -> usize {
        self.wire_methods()
            .iter()
            .filter(|received| *received == method)
            .count()
    }

    /// Waits until the fake executor has received `method`.
    pub async fn received(&self, method: &str) {
        self.received_line(|line| line["method"] == method).await;
    }

    /// Waits until the fake executor has received a line like this.
    pub async fn received_line(&self, is_it: impl Fn(&serde_json::Value) -> bool) {
        let seen = tokio::time::timeout(PATIENCE, async {
            while !self.wire().iter().any(&is_it) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(
            seen.await.is_ok(),
            "it never reached the executor: {:?}",
            self.wire_methods()
        );
    }

    /// Sends a signal and waits for the end.
    pub async fn signal(mut self, signal: Signal) -> (ExitStatus, TempDir) {
        kill(self.pid(), signal).expect("the gateway lives");
        let status = tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .unwrap_or_else(|_| panic!("maka-gateway did not end: {}", self.log()))
            .expect("the child can be waited for");
        (status, self.folder)
    }

    /// Stops the gateway as an operator would and asserts that it ended well.
    pub async fn stop(self) -> TempDir {
        let (status, folder) = self.signal(Signal::SIGTERM).await;
        assert!(
            status.success(),
            "{status}: {}",
            fs::read_to_string(folder.path().join("gateway.log")).unwrap_or_default()
        );
        folder
    }
}

/// Parses a file of JSON lines; a last line without its end is not there yet.
fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

/// The SHA-256 of a file, bare.
#[must_use]
pub fn sha256_of(path: &Path) -> String {
    Digest::of(&fs::read(path).expect("the file can be read")).to_hex()
}

/// Writes `gateway.toml` and what it refers to; returns its path.
fn write_config(folder: &Path, options: &GatewayOptions) -> PathBuf {
    let state = folder.join("state");
    fs::create_dir_all(&state).expect("the state folder");
    let quoted = |path: &Path| toml::Value::from(path.to_str().expect("UTF-8")).to_string();

    let mut text = String::new();
    let mut line = |value: String| writeln!(text, "{value}").expect("a string takes everything");
    line(format!("state_dir = {}", quoted(&state)));
    line(format!(
        "allow_global_pointer = {}",
        options.allow_global_pointer
    ));
    line(format!("[input]\nsynthetic = {}", options.synthetic_input));
    line(format!(
        "[listen]\ntcp = \"127.0.0.1:0\"\nunix = {}",
        quoted(&state.join("maka-gateway.sock"))
    ));
    for role in Role::ALL {
        let name = role.as_str();
        let digest = Digest::of(role.token().as_bytes()).to_hex();
        line(format!(
            "[[principals]]\nname = \"{name}\"\nrole = \"{name}\"\ntoken_sha256 = \"{digest}\""
        ));
    }

    let (path, digest, back_end, args, env) = executor_keys(folder, &options.executor);
    line(format!(
        "[executor]\npath = {}\nsha256 = \"{digest}\"",
        quoted(&path)
    ));
    if let Some(back_end) = back_end {
        line(format!("back_end = \"{back_end}\""));
    }
    line(format!("args = {}", toml::Value::from(args)));
    let env: toml::Table = env
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    line(format!("env = {}", toml::Value::from(env)));
    line(options.executor_keys.clone());

    match &options.policy {
        Policy::Absent => {}
        Policy::Floor => line("[policy]".into()),
        Policy::With(names) => {
            line("[policy]".into());
            for name in names {
                let path =
                    binaries::workspace_root().join(format!("policy-wasm/prebuilt/{name}.wasm"));
                line(format!(
                    "[[policy.modules]]\nname = \"{name}\"\npath = {}\nsha256 = \"{}\"",
                    quoted(&path),
                    sha256_of(&path)
                ));
            }
        }
    }
    line("[telemetry]\nmetrics = \"127.0.0.1:0\"".to_owned());
    line(format!("level = \"{}\"", options.log_level));
    line(options.sections.clone());

    let config = folder.join("gateway.toml");
    fs::write(&config, text).expect("the configuration");
    config
}

type ExecutorKeys = (
    PathBuf,
    String,
    Option<&'static str>,
    Vec<String>,
    Vec<(String, String)>,
);

fn executor_keys(folder: &Path, executor: &Executor) -> ExecutorKeys {
    let text = |path: PathBuf| path.to_str().expect("UTF-8").to_owned();
    match executor {
        Executor::Virtual => {
            let path = binaries::path("maka-cu");
            (
                path.clone(),
                sha256_of(&path),
                Some("virtual"),
                Vec::new(),
                Vec::new(),
            )
        }
        Executor::Scenario(scenario) => {
            let file = folder.join("desktop.toml");
            fs::write(&file, scenario).expect("the scenario");
            let path = binaries::path("maka-cu");
            let args = vec!["--desktop".into(), text(file)];
            (
                path.clone(),
                sha256_of(&path),
                Some("virtual"),
                args,
                Vec::new(),
            )
        }
        Executor::Linux(env) => {
            let path = binaries::path("maka-cu");
            (
                path.clone(),
                sha256_of(&path),
                Some("linux"),
                Vec::new(),
                env.clone(),
            )
        }
        Executor::Fake(script) => {
            let file = folder.join("script.json");
            fs::write(&file, script.to_string()).expect("the script");
            let path = binaries::path("fake-executor");
            let args = vec![
                "--script".into(),
                text(file),
                "--wire-log".into(),
                text(folder.join("wire.jsonl")),
            ];
            (path.clone(), sha256_of(&path), None, args, Vec::new())
        }
        Executor::File { path, sha256 } => {
            let digest = sha256.clone().unwrap_or_else(|| sha256_of(path));
            (path.clone(), digest, None, Vec::new(), Vec::new())
        }
    }
}
