//! `cargo xtask serve`: the first README command. Builds gateway and executor, writes a configuration for this
//! machine that pins the executor just built, starts the gateway in the foreground, and prints command lines
//! that work as they stand.

use std::{
    env,
    path::PathBuf,
    process::{Child, Command, ExitCode, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    dev_config::{DevConfig, Written},
    workspace::{Profile, binary, build, target_dir},
};

/// Flags of `cargo xtask serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// TCP port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 50051)]
    port: u16,
    /// What the executor drives; without it: macOS on a Mac, the X11 desktop where DISPLAY is set, else the
    /// embedded virtual desktop.
    #[arg(long, value_enum)]
    back_end: Option<BackEnd>,
    /// Use the unoptimised build of the tests.
    #[arg(long)]
    debug: bool,
    /// Where configuration, tokens, sockets and the decision log go.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The back ends of `maka-cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackEnd {
    /// The embedded desktop: needs nothing installed and touches nothing.
    Virtual,
    /// X11 and AT-SPI.
    Linux,
    /// Wayland, through AT-SPI alone.
    Wayland,
    /// The Mac's own desktop.
    Macos,
}

impl BackEnd {
    /// The executor's name for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Linux => "linux",
            Self::Wayland => "wayland",
            Self::Macos => "macos",
        }
    }

    /// The choice and the reason to print beside it.
    fn choose(wanted: Option<Self>) -> (Self, &'static str) {
        if let Some(back_end) = wanted {
            return (back_end, "chosen with --back-end");
        }
        if cfg!(target_os = "macos") {
            return (Self::Macos, "this is a Mac");
        }
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        if is_set("WAYLAND_DISPLAY") {
            (Self::Wayland, "WAYLAND_DISPLAY is set")
        } else if is_set("DISPLAY") {
            (Self::Linux, "DISPLAY is set")
        } else {
            (
                Self::Virtual,
                "no DISPLAY: the embedded desktop, which needs nothing installed",
            )
        }
    }
}

/// Serves until Ctrl-C or SIGTERM, then ends with the gateway's own status.
///
/// # Errors
/// When the build fails or the gateway does not come up.
pub(crate) fn serve(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let profile = Profile::from_debug_flag(arguments.debug);
    build(profile, &["maka-gateway", "maka-cu"])?;

    let (back_end, why) = BackEnd::choose(arguments.back_end);
    let written = DevConfig {
        folder: arguments
            .dir
            .clone()
            .unwrap_or_else(|| target_dir().join("serve")),
        executor: binary(profile, "maka-cu"),
        back_end,
        port: arguments.port,
    }
    .write()?;

    // A signal sent to this process alone has to reach the gateway; one of the terminal reaches it twice, which the
    // gateway takes as one order.
    let told = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&told))?;
    }

    let gateway_binary = binary(profile, "maka-gateway");
    let mut gateway = Command::new(&gateway_binary)
        .arg("serve")
        .arg("--config")
        .arg(&written.config)
        .spawn()
        .context("cannot start maka-gateway")?;

    let ready = Command::new(&gateway_binary)
        .args(["probe", "--wait", "30", "--config"])
        .arg(&written.config)
        .status()
        .context("cannot start maka-gateway probe")?;
    if ready.success() {
        print_banner(&written, back_end, why)?;
    } else if gateway.try_wait()?.is_none() {
        println!(
            "\nthe gateway answers but is not ready yet: the line above says why; Ctrl-C ends it\n"
        );
    }

    let status = wait(&mut gateway, &told)?;
    Ok(exit_code(status))
}

/// Waits for the gateway; an order to end that came meanwhile is passed on.
fn wait(gateway: &mut Child, told: &AtomicBool) -> anyhow::Result<ExitStatus> {
    loop {
        if let Some(status) = gateway.try_wait()? {
            return Ok(status);
        }
        if told.swap(false, Ordering::Relaxed) {
            let pid = Pid::from_raw(i32::try_from(gateway.id()).context("pid out of range")?);
            kill(pid, Signal::SIGTERM).context("cannot pass the signal on")?;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from)
}

/// What a person needs to go on. Every line below "try" works when pasted.
fn print_banner(written: &Written, back_end: BackEnd, why: &str) -> anyhow::Result<()> {
    let address = written.address()?;
    if address.is_empty() {
        bail!("the gateway wrote no address");
    }
    let token = written.agent_token.display();
    let operator = written.operator_token.display();
    let config = written.config.display();
    let synthetic = if written.synthetic_input { "on" } else { "off" };
    // The script's dialog exists on the embedded desktop; on a real one it depends on what is installed.
    let dialog = match back_end {
        BackEnd::Virtual => format!(
            "a whole dialog, with Python and grpcio (pip install -r tests/python/requirements.txt):

  python3 tests/python/drive.py --address {address} --token-file '{token}'

"
        ),
        BackEnd::Linux | BackEnd::Wayland | BackEnd::Macos => String::new(),
    };
    println!(
        "
maka-gateway serves on {address}

  back end         {name} ({why})
  synthetic input  {synthetic}
  policy           maka-floor
  configuration    {config}
  agent token      {token}
  operator token   {operator}

try, in another terminal (grpcurl, or buf from npm's @bufbuild/buf):

  TOKEN=$(cat '{token}')
  grpcurl -plaintext -H \"authorization: Bearer $TOKEN\" {address} list
  grpcurl -plaintext -H \"authorization: Bearer $TOKEN\" {address} maka.gateway.v1.ComputerUse/GetStatus
  grpcurl -plaintext -H \"authorization: Bearer $TOKEN\" {address} maka.gateway.v1.ComputerUse/BeginSession
  buf curl --protocol grpc --http2-prior-knowledge --reflect-header '*' -H \"authorization: Bearer $TOKEN\" --list-methods http://{address}

{dialog}Ctrl-C ends gateway and executor.
",
        name = back_end.as_str(),
    );
    Ok(())
}
