//! The `host` subcommand: takes a desktop and serves until the host process ends the service.

use std::io;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

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
    serve(options).unwrap_or_else(|error| {
        say(&error);
        Exit::System
    })
}

fn serve(options: &HostOptions) -> io::Result<Exit> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()?;
    // Before anything that takes time, so that a SIGTERM right after the start ends the service as any other does.
    let signals = {
        let _context = runtime.enter();
        Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        }
    };
    // Outside of the runtime: a back end may drive one of its own.
    let opened = match options.second_pointer {
        true => open::open_with_second_pointer(&options.desktop),
        false => open::open(&options.desktop),
    };
    let backend = match opened {
        Ok(backend) => backend,
        Err(refusal) => {
            say(&refusal);
            return Ok(Exit::NoDesktop);
        }
    };
    tracing::info!(back_end = %backend.kind(), version = env!("CARGO_PKG_VERSION"), "desktop taken");
    let limits = limits::with_overrides(&options.limits);
    let executor = Executor::new(backend, limits).map_err(io::Error::other)?;
    let input = pipes::spawn_reader(io::stdin())?;
    let output = pipes::spawn_writer(io::stdout(), ANSWERS_QUEUED)?;
    let exit = runtime.block_on(server::serve(Arc::new(executor), input, output, signals));
    // A back end call that outlived the grace must not keep the process alive.
    runtime.shutdown_background();
    Ok(exit)
}

/// Logs this crate's events only: a library's own events may quote what goes through it, and that is application text.
fn log_to_stderr(level: LevelFilter) {
    let events = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_filter(Targets::new().with_target("maka_cu", level));
    // Fails only when somebody else in this process was faster; then logging works as well.
    drop(tracing_subscriber::registry().with(events).try_init());
}

/// The one line that a person reads when the service does not start; also with logging off.
#[expect(
    clippy::print_stderr,
    reason = "stderr is where a refusal to start is told"
)]
pub fn say(refusal: &dyn std::error::Error) {
    eprintln!("maka-cu: {refusal}");
}
