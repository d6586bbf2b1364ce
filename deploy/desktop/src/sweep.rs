//! Ends what was started inside the desktop.
//!
//! Applications are not children of ours: the executor gives each its own session, and buses start services by
//! themselves. What they share is the environment, and `XDG_RUNTIME_DIR` names a folder that no other desktop has. A
//! process that removed it from its environment on purpose is not found; it still loses its display.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::part::PROBE_INTERVAL;

/// Applications may save state or show a dialog; after this they are killed.
const TERM_GRACE: Duration = Duration::from_secs(1);
/// A killed process that is still listed is being reaped by someone else; nothing more can be done about it.
const KILL_GRACE: Duration = Duration::from_secs(2);

/// Ends every process whose environment names `runtime_dir`, except this one and `spared`.
pub(crate) fn end_inhabitants(runtime_dir: &Path, spared: &[u32]) {
    let entry = [b"XDG_RUNTIME_DIR=", runtime_dir.as_os_str().as_bytes()].concat();
    for (signal, grace) in [(Signal::SIGTERM, TERM_GRACE), (Signal::SIGKILL, KILL_GRACE)] {
        let deadline = Instant::now() + grace;
        let mut signalled: Vec<Pid> = Vec::new();
        loop {
            let left = inhabitants(&entry, spared);
            if left.is_empty() {
                return;
            }
            // Each process is asked once, also one that a dying process has just started.
            for pid in left {
                if !signalled.contains(&pid) {
                    // ESRCH: it ended by itself.
                    kill(pid, signal).ok();
                    signalled.push(pid);
                }
            }
            if Instant::now() >= deadline {
                break;
            }
            thread::sleep(PROBE_INTERVAL);
        }
    }
}

fn inhabitants(entry: &[u8], spared: &[u32]) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .filter_map(|process| process.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != std::process::id() && !spared.contains(pid))
        .filter(|pid| environment_has(*pid, entry))
        .filter_map(|pid| i32::try_from(pid).ok().map(Pid::from_raw))
        .collect()
}

/// A dead process that waits to be reaped has an empty environment, and another user's cannot be read: neither counts.
fn environment_has(pid: u32, entry: &[u8]) -> bool {
    let path = format!("/proc/{pid}/environ");
    fs::read(OsStr::new(&path))
        .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|one| one == entry))
}
