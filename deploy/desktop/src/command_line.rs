//! Flags, signals and exit statuses of the `maka-desktop` binary.

use std::error::Error;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitCode, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use maka_desktop::{Compositor, Desktop, DesktopOptions, ScreenSize, WindowManager};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

/// The statuses of `docker run` and `env`, which scripts know.
const NO_DESKTOP: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// How often the command and the desktop are looked at.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);

const EXIT_STATUS: &str = "Exit status:
  run    the command's own; 128+N when signal N ended it; 125 the desktop did not start or was lost;
         126 the command cannot be executed; 127 the command was not found
  start  0 after SIGTERM, SIGINT, SIGHUP or the end of standard input; 125 the desktop did not start or was lost
  both   2 for a usage error";

/// Starts one private Linux desktop: X server and window manager, or a Wayland compositor, with buses and accessibility.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_STATUS)]
struct Flags {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a command inside a new desktop and end the desktop with it.
    #[command(after_help = EXIT_STATUS)]
    Run {
        #[command(flatten)]
        desktop: DesktopFlags,
        /// The command and its arguments, after `--`.
        #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Print the environment of a new desktop and keep it until SIGTERM, SIGINT or the end of standard input.
    #[command(after_help = EXIT_STATUS)]
    Start {
        #[command(flatten)]
        desktop: DesktopFlags,
        /// One JSON object on one line instead of NAME='value' lines for a shell.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
struct DesktopFlags {
    /// Screen size in pixels.
    #[arg(long, default_value_t = DesktopOptions::default().size, value_name = "WIDTHxHEIGHT")]
    size: ScreenSize,
    /// Folder for sockets, logs and the applications' home; kept at the end. Default: a temporary one.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The window manager: openbox or xfwm4.
    #[arg(long, default_value_t = WindowManager::Openbox, value_name = "NAME")]
    window_manager: WindowManager,
    /// A Wayland compositor instead of X server and window manager: sway or sway-xwayland. Not as root.
    #[arg(long, conflicts_with_all = ["window_manager", "no_window_manager"], value_name = "NAME")]
    compositor: Option<Compositor>,
    /// Leave the window manager out.
    #[arg(long, conflicts_with = "window_manager")]
    no_window_manager: bool,
}

impl DesktopFlags {
    fn into_options(self) -> DesktopOptions {
        DesktopOptions {
            size: self.size,
            dir: self.dir,
            compositor: self.compositor,
            window_manager: (!self.no_window_manager).then_some(self.window_manager),
            ..DesktopOptions::default()
        }
    }
}

pub(crate) fn main() -> ExitCode {
    let flags = Flags::parse();
    // Blocked before any thread exists, so that only the thread below receives them. Children would inherit the mask;
    // the library empties it for every command that it makes.
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    if let Err(error) = signals.thread_block() {
        return fail(NO_DESKTOP, &error);
    }
    let wakes = watch_signals(signals);
    match flags.verb {
        Verb::Run { desktop, command } => match Desktop::start(desktop.into_options()) {
            Ok(desktop) => run(desktop, &command, &wakes.receiver),
            Err(error) => fail(NO_DESKTOP, &error),
        },
        Verb::Start { desktop, json } => match Desktop::start(desktop.into_options()) {
            Ok(desktop) => start(desktop, json, wakes),
            Err(error) => fail(NO_DESKTOP, &error),
        },
    }
}

/// Why the main thread is woken.
enum Wake {
    Signal(Signal),
    InputEnded,
}

struct Wakes {
    sender: SyncSender<Wake>,
    receiver: Receiver<Wake>,
}

fn watch_signals(signals: SigSet) -> Wakes {
    // Few and rare; when it is full the sender waits, and a further signal stays pending in the kernel.
    let (sender, receiver) = mpsc::sync_channel(4);
    let for_thread = sender.clone();
    thread::spawn(move || {
        while let Ok(signal) = signals.wait() {
            if for_thread.send(Wake::Signal(signal)).is_err() {
                return;
            }
        }
    });
    Wakes { sender, receiver }
}

fn run(desktop: Desktop, command: &[String], wakes: &Receiver<Wake>) -> ExitCode {
    let (program, arguments) = command
        .split_first()
        .expect("the parser requires one value");
    let mut child = match desktop.command(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            let status = if error.kind() == io::ErrorKind::NotFound {
                NOT_FOUND
            } else {
                NOT_EXECUTABLE
            };
            return fail(status, &error);
        }
    };
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => return fail(NO_DESKTOP, &error),
        }
        if let Some(part) = desktop.lost_part() {
            // The command is ended together with the desktop below; here it is only reaped.
            drop(desktop);
            drop(child.wait());
            return fail(NO_DESKTOP, &Lost(part));
        }
        match wakes.recv_timeout(WATCH_INTERVAL) {
            Ok(Wake::Signal(signal)) => forward(&child, signal),
            Ok(Wake::InputEnded)
            | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    };
    desktop.stop();
    ExitCode::from(status_code(status))
}

fn forward(child: &Child, signal: Signal) {
    // A terminal sends its interrupt to the whole foreground group: the command has had it already, and many programs
    // read a second one as "now, without cleaning up".
    if signal == Signal::SIGINT && io::stdin().is_terminal() {
        return;
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id fits pid_t"));
    // ESRCH: it has just ended, which the caller's loop notices.
    kill(pid, signal).ok();
}

fn status_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX)
}

fn start(desktop: Desktop, json: bool, wakes: Wakes) -> ExitCode {
    if let Err(error) = print_environment(&desktop, json) {
        return fail(NO_DESKTOP, &error);
    }
    let Wakes { sender, receiver } = wakes;
    thread::spawn(move || {
        let mut sink = [0; 256];
        let mut input = io::stdin().lock();
        while input.read(&mut sink).is_ok_and(|count| count > 0) {}
        // The main thread is on its way out when nobody listens.
        drop(sender.send(Wake::InputEnded));
    });
    loop {
        match receiver.recv_timeout(WATCH_INTERVAL) {
            Ok(Wake::Signal(_) | Wake::InputEnded) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(part) = desktop.lost_part() {
            return fail(NO_DESKTOP, &Lost(part));
        }
    }
    desktop.stop();
    ExitCode::SUCCESS
}

fn print_environment(desktop: &Desktop, json: bool) -> io::Result<()> {
    let mut output = io::stdout().lock();
    if json {
        let object: serde_json::Map<_, _> = desktop
            .env()
            .into_iter()
            .map(|(name, value)| (name, serde_json::Value::String(value)))
            .collect();
        writeln!(output, "{}", serde_json::Value::Object(object))?;
    } else {
        for (name, value) in desktop.env() {
            writeln!(output, "export {name}='{}'", value.replace('\'', r"'\''"))?;
        }
        for name in desktop.removed_env() {
            writeln!(output, "unset {name}")?;
        }
    }
    // Standard output is usually a pipe here, and the reader waits for these lines.
    output.flush()
}

#[derive(Debug, thiserror::Error)]
#[error("{0} ended by itself")]
struct Lost(maka_desktop::PartName);

fn fail(status: u8, error: &dyn Error) -> ExitCode {
    let mut text = format!("maka-desktop: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    // Standard error may be closed; the exit status still tells.
    drop(writeln!(io::stderr(), "{text}"));
    ExitCode::from(status)
}
