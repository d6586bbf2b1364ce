//! The process itself: what it inherited, how it ends, its helpers and its signals.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{Mode, umask};
use serde_json::{Value, json};

use crate::executor::Executor;

/// Argument that makes this program a helper that only waits to be killed.
pub(crate) const HELPER: &str = "--wait-to-be-killed";

/// What this process got from whoever started it.
pub(crate) fn inheritance() -> Value {
    let environment: serde_json::Map<String, Value> = std::env::vars_os()
        .map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                json!(value.to_string_lossy()),
            )
        })
        .collect();
    let mask = umask(Mode::empty());
    umask(mask);
    let core = getrlimit(Resource::RLIMIT_CORE).map_or(u64::MAX, |(soft, _)| soft);
    json!({
        "pid": std::process::id(),
        "group": nix::unistd::getpgrp().as_raw(),
        "parent": nix::unistd::getppid().as_raw(),
        "program": std::env::current_exe().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        "args": std::env::args().skip(1).collect::<Vec<_>>(),
        "environment": environment,
        "descriptors": descriptors(),
        "umask": mask.bits(),
        "core_limit": core,
    })
}

/// Open descriptors and what they lead to, where the system can tell.
fn descriptors() -> Value {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return Value::Null;
    };
    let open: serde_json::Map<String, Value> = entries
        .flatten()
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?;
            // The descriptor that lists the folder is of our own making.
            let own = target.starts_with("/proc") && target.ends_with("fd");
            (!own).then(|| {
                (
                    entry.file_name().to_string_lossy().into_owned(),
                    json!(target.to_string_lossy()),
                )
            })
        })
        .collect();
    Value::Object(open)
}

/// Keeps SIGTERM from ending the process by itself. Must run before any other thread is made.
pub(crate) fn hold_sigterm() -> SigSet {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.thread_block().expect("a thread may block a signal");
    signals
}

/// Ends the executor at SIGTERM, or only notes it.
pub(crate) fn watch_sigterm(signals: SigSet, executor: Arc<Executor>) {
    thread::spawn(move || {
        while let Ok(signal) = signals.wait() {
            executor.log.event("signal", json!(signal.as_str()));
            if !executor.script.ignore_sigterm {
                executor.world().forget_everything();
                quit(0);
            }
        }
    });
}

/// Starts a helper of the same group and says who it is.
pub(crate) fn spawn_helper() -> Value {
    let program = std::env::current_exe().expect("the running program has a path");
    let mut helper = Command::new(program)
        .arg(HELPER)
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(Stdio::null())
        .spawn()
        .expect("a helper can be started");
    let pid = helper.id();
    thread::spawn(move || helper.wait());
    json!({ "pid": pid })
}

/// Puts a program that only fails in the place of the running one. The running one is not touched: a file that runs cannot be
/// written, but its name can be given to another.
pub(crate) fn swap_own_file() {
    let own = std::env::current_exe().expect("the running program has a path");
    let new = own.with_extension("new");
    fs::write(&new, "#!/bin/sh\nexit 3\n").expect("a file beside the program can be made");
    let executable = fs::Permissions::from_mode(0o500);
    fs::set_permissions(&new, executable).expect("our own file");
    fs::rename(&new, &own).expect("the folder is ours");
}

/// Waits to be killed.
pub(crate) fn wait_for_ever() -> ! {
    loop {
        thread::park();
    }
}

/// Ends the process at once.
#[expect(
    clippy::exit,
    reason = "a scripted end must not run destructors or wait for threads"
)]
pub(crate) fn quit(status: i32) -> ! {
    std::process::exit(status)
}

/// Ends the process by a signal.
pub(crate) fn die(number: i32) -> ! {
    let signal = Signal::try_from(number).expect("a script names an existing signal");
    if let Ok(()) = nix::sys::signal::raise(signal) {
        // A signal that does not end the process leaves it waiting.
    }
    wait_for_ever()
}
