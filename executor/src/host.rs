//! The `host` subcommand: takes a desktop and serves until the host process ends the service.

use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;

use crate::backend::open;
use crate::command_line::HostOptions;
use crate::executor::Executor;
use crate::exit::Exit;
use crate::limits;
use crate::server::{self, ANSWERS_QUEUED, Signals, pipes};

/// Threads for calls into the back end. A lane uses at most one, so this many windows are worked on side by side.
const BLOCKING_THREADS: usize = 64;

/// Runs the service.
#[must_use]
pub fn run(options: &HostOptions) -> Exit {
    log_to_stderr(options.log.into());
    let backend = match open::open(&options.desktop) {
        Ok(backend) => backend,
        Err(refusal) => {
            say(&refusal);
            return Exit::NoDesktop;
        }
    };
    tracing::info!(back_end = %backend.kind(), version = env!("CARGO_PKG_VERSION"), "desktop taken");
    let limits = limits::with_overrides(&options.limits);
    match Executor::new(backend, limits)
        .map_err(io::Error::other)
        .and_then(|executor| {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .max_blocking_threads(BLOCKING_THREADS)
                .build()?;
            serve(&runtime, Arc::new(executor)).inspect(|_| {
                // A back end call that outlived the grace must not keep the process alive.
                runtime.shutdown_background();
            })
        }) {
        Ok(exit) => exit,
        Err(error) => {
            tracing::error!(%error, "the service could not be set up");
            Exit::System
        }
    }
}

fn serve(runtime: &Runtime, executor: Arc<Executor>) -> io::Result<Exit> {
    runtime.block_on(async {
        // Before the first byte is read, so that a SIGTERM right after the start is handled as well.
        let signals = Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        };
        let input = pipes::spawn_reader(io::stdin())?;
        let output = pipes::spawn_writer(io::stdout(), ANSWERS_QUEUED)?;
        Ok(server::serve(executor, input, output, signals).await)
    })
}

fn log_to_stderr(level: LevelFilter) {
    let subscriber = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_max_level(level);
    // Fails only when somebody else in this process was faster; then logging works as well.
    drop(subscriber.try_init());
}

/// The one line that a person reads when the service does not start; also with logging off.
#[expect(
    clippy::print_stderr,
    reason = "stderr is where a refusal to start is told"
)]
pub fn say(refusal: &dyn std::error::Error) {
    eprintln!("maka-cu: {refusal}");
}
