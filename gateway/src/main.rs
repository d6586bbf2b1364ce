//! The command line: `serve`, `probe`, `check`, `doctor`, `policy` and `token`.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{Parser, Subcommand};
use maka_gateway::{
    captures::command,
    config::{Config, ConfigError},
    doctor,
    principal::token::Token,
    probe,
    serve::{self, Stop},
    telemetry::{self, Chain},
};
use tokio::signal::unix::{SignalKind, signal};

/// Running failed, or a doctor found something that keeps the gateway from working.
const FAILED: u8 = 1;
/// The configuration is refused (`EX_CONFIG` of sysexits.h).
const BAD_CONFIG: u8 = 78;

/// Signals that come together are one order; nobody decides within this time that an orderly end takes too long.
const ONE_ORDER: Duration = Duration::from_millis(250);

/// How long the runtime may take to let go of tasks that no longer matter.
const RUNTIME_GRACE: Duration = Duration::from_millis(200);

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed (the reason is on stderr), 2 wrong command line, 78 configuration refused.

Signals of `serve`: SIGINT or SIGTERM ends it in order (no new calls, running calls cancelled, executor ended), a second one
at once. SIGHUP reads the section [policy] again; of a gateway in a terminal it is the end of that terminal, and ends it.";

/// One gRPC gateway between remote agents and a desktop, with a sandboxed policy in the path.
#[derive(Debug, Parser)]
#[command(name = "maka-gateway", version, after_help = EXIT_CODES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway.
    Serve {
        /// The configuration; deploy/gateway.toml documents every key.
        #[arg(long)]
        config: PathBuf,
    },
    /// Ask a running gateway whether it serves; fails when it does not.
    Probe {
        /// The configuration that the gateway was started with.
        #[arg(long)]
        config: PathBuf,
        /// Wait so many seconds for it to come up.
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        wait: u32,
    },
    /// Read the configuration and say what is wrong with it.
    Check {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
    },
    /// Try everything that the configuration names, the executor included, and say what to do about it.
    Doctor {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Work with the policies of a running gateway.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Make a fresh token: the token for its holder, and the line for the configuration.
    Token,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Capture the full facts of every decision for `maka-policy replay`, encrypted to `audit.capture_key`.
    Capture {
        /// The configuration that the gateway was started with.
        #[arg(long)]
        config: PathBuf,
        /// How long: seconds, or a number with s, m or h; at most an hour.
        #[arg(long = "for", value_name = "TIME", value_parser = command::duration)]
        duration: Duration,
        /// The new file, which gets mode 0600.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// A file with the token of an operator. Without it the gateway's socket has to know this user as one.
        #[arg(long, value_name = "FILE")]
        token_file: Option<PathBuf>,
    },
}

/// Why the process does not end with 0.
enum Failure {
    Config(ConfigError),
    Run(Box<dyn std::error::Error>),
    /// Everything was said already.
    Told,
}

fn main() -> ExitCode {
    match run(CommandLine::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Config(error)) => refuse(BAD_CONFIG, &error),
        Err(Failure::Run(error)) => refuse(FAILED, &*error),
        Err(Failure::Told) => ExitCode::from(FAILED),
    }
}

fn refuse(code: u8, error: &dyn std::error::Error) -> ExitCode {
    // Nobody reads a closed stderr; the exit code stands.
    drop(writeln!(io::stderr(), "maka-gateway: {}", Chain(error)));
    ExitCode::from(code)
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve { config: file } => {
            let config = Config::load(&file).map_err(Failure::Config)?;
            telemetry::install(config.telemetry);
            block_on(serve(config, file))
        }
        Command::Probe { config, wait } => {
            let config = Config::load(&config).map_err(Failure::Config)?;
            let wait = Duration::from_secs(wait.into());
            block_on(async {
                probe::probe(&config, wait)
                    .await
                    .map_err(|error| Failure::Run(error.into()))
            })
        }
        Command::Check { config } => {
            let config = Config::load(&config).map_err(Failure::Config)?;
            for notice in doctor::notices(&config) {
                print(&format!("note: {notice}"))?;
            }
            print("the configuration is understood")
        }
        Command::Doctor { config, json } => {
            let config = Config::load(&config).map_err(Failure::Config)?;
            let report = block_on(async { Ok(doctor::examine(config).await) })?;
            print(&if json {
                report.to_json()
            } else {
                report.to_string()
            })?;
            if report.is_well() {
                Ok(())
            } else {
                Err(Failure::Told)
            }
        }
        Command::Policy(PolicyCommand::Capture {
            config,
            duration,
            out,
            token_file,
        }) => {
            let config = Config::load(&config).map_err(Failure::Config)?;
            let told = block_on(async {
                command::capture(&config, duration, &out, token_file.as_deref())
                    .await
                    .map_err(|error| Failure::Run(error.into()))
            })?;
            print(&told)
        }
        Command::Token => {
            let token = Token::generate();
            print(&format!("token:        {}", token.reveal()))?;
            print(&format!("token_sha256 = \"{}\"", token.digest().to_hex()))
        }
    }
}

fn print(line: &str) -> Result<(), Failure> {
    writeln!(io::stdout(), "{line}").map_err(|error| Failure::Run(error.into()))
}

fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("maka-gateway")
        .build()
        .map_err(|error| Failure::Run(error.into()))?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(RUNTIME_GRACE);
    done
}

async fn serve(config: Config, file: PathBuf) -> Result<(), Failure> {
    let stop = Stop::default();
    let told = |kind| signal(kind).map_err(|error| Failure::Run(error.into()));
    let (mut interrupt, mut terminate, mut hangup) = (
        told(SignalKind::interrupt())?,
        told(SignalKind::terminate())?,
        told(SignalKind::hangup())?,
    );
    // A file that reaches its size limit is then an error of that write, which the decision log handles, and no death.
    let _file_size = told(SignalKind::from_raw(nix::libc::SIGXFSZ))?;
    let in_terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
    let orders = stop.clone();
    let listen = async move {
        let mut told_at: Option<Instant> = None;
        loop {
            // All are cancel-safe; a signal that comes meanwhile is kept.
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {
                    // A closed terminal: nothing may be left behind then, either.
                    if !in_terminal {
                        orders.reload.notify_one();
                        continue;
                    }
                }
            }
            match told_at {
                // The terminal tells the whole foreground group, and who started us may pass it on: one order.
                Some(at) if at.elapsed() < ONE_ORDER => {}
                Some(_) => orders.hurry.cancel(),
                None => told_at = Some(Instant::now()),
            }
            orders.drain.cancel();
        }
    };
    tokio::select! {
        served = serve::serve(config, file, stop) => served.map_err(|error| Failure::Run(error.into())),
        never = listen => never,
    }
}
