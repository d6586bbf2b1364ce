//! One process of the desktop: started in its own group, ended and reaped for certain.
//!
//! INVARIANT: a signal goes to the group only while its leader is not reaped. Until then the kernel gives the number to nobody
//! else, so no stranger's group is ever hit.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::child::die_with_parent;
use crate::error::DesktopError;

/// A part gets this long between the request to end and the kill. The X server removes its lock and socket in it.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How often a state that has no event of its own is looked at.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_millis(10);
/// Answers on standard output are one short line; more than this is not an answer.
const LONGEST_ANSWER: u64 = 4096;
/// How much of a part's log an error quotes.
const LOG_TAIL: usize = 1024;

/// The parts, in the order in which they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartName {
    /// The X server, Xvfb.
    XServer,
    /// The Wayland compositor, in its place.
    Compositor,
    /// The D-Bus session bus.
    SessionBus,
    /// The launcher of the accessibility bus.
    AccessibilityBus,
    /// The window manager.
    WindowManager,
}

impl PartName {
    fn log_name(self) -> &'static str {
        match self {
            Self::XServer => "x-server.log",
            Self::Compositor => "compositor.log",
            Self::SessionBus => "session-bus.log",
            Self::AccessibilityBus => "accessibility-bus.log",
            Self::WindowManager => "window-manager.log",
        }
    }
}

impl fmt::Display for PartName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::XServer => "the X server (Xvfb)",
            Self::Compositor => "the compositor (sway)",
            Self::SessionBus => "the session bus (dbus-daemon)",
            Self::AccessibilityBus => "the accessibility bus (at-spi-bus-launcher)",
            Self::WindowManager => "the window manager",
        })
    }
}

/// A running process of the desktop. Dropping it kills its group and waits for it.
#[derive(Debug)]
pub(crate) struct Part {
    name: PartName,
    child: Child,
    log: PathBuf,
    life: Life,
}

/// What is known of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// It ran when it was last looked at.
    Running,
    /// It has ended and still holds its number.
    Dead,
    /// It is reaped: its number means nothing any more.
    Reaped,
}

impl Part {
    /// Starts `command` in a group of its own, bound to the life of the calling thread, its standard error in a log file.
    ///
    /// The kernel's parent of a process is the *thread* that made it, so this must be called on a thread that lives as
    /// long as the desktop.
    pub(crate) fn start(
        name: PartName,
        mut command: Command,
        logs: &Path,
    ) -> Result<Self, DesktopError> {
        let log = logs.join(name.log_name());
        let log_file = File::create(&log).map_err(|source| DesktopError::Folder {
            path: log.clone(),
            source,
        })?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .process_group(0);
        die_with_parent(&mut command);
        let child = command
            .spawn()
            .map_err(|source| DesktopError::Spawn { part: name, source })?;
        Ok(Self {
            name,
            child,
            log,
            life: Life::Running,
        })
    }

    pub(crate) fn name(&self) -> PartName {
        self.name
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the first line the part writes to its standard output.
    pub(crate) fn first_line(&mut self, deadline: Instant) -> Result<String, DesktopError> {
        let stdout = self
            .child
            .stdout
            .take()
            .expect("standard output is piped and is taken once");
        // Capacity one and one line sent: the reader can never wait on it.
        let (sender, receiver) = mpsc::sync_channel(1);
        let reader = thread::Builder::new()
            .name("desktop-answer".into())
            .spawn(move || {
                let mut line = String::new();
                let answer = BufReader::new(stdout.take(LONGEST_ANSWER)).read_line(&mut line);
                // The receiver may have given up at its deadline; then nobody wants the line.
                drop(sender.send(answer.map(|_| line)));
            });
        if reader.is_err() {
            return Err(DesktopError::Keeper);
        }
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(line)) if line.ends_with('\n') => Ok(line.trim_end().to_owned()),
            Ok(_) => Err(self.ended_error()),
            Err(_) => Err(self.not_ready_error()),
        }
    }

    /// Looks until `probe` answers, the part ends, or the deadline passes.
    pub(crate) fn wait_until<T>(
        &mut self,
        deadline: Instant,
        mut probe: impl FnMut() -> Option<T>,
    ) -> Result<T, DesktopError> {
        loop {
            if let Some(answer) = probe() {
                return Ok(answer);
            }
            if self.has_ended() {
                return Err(self.ended_error());
            }
            if Instant::now() >= deadline {
                return Err(self.not_ready_error());
            }
            thread::sleep(PROBE_INTERVAL);
        }
    }

    /// Whether the process has ended. It is not reaped by this, so that what it left behind can still be ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        if self.life == Life::Running {
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            self.life = match waitid(Id::Pid(self.pid()), flags) {
                Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => Life::Running,
                Ok(_) => Life::Dead,
                // There is no such child any more: somebody else reaped it, and the number may be another's.
                Err(_) => Life::Reaped,
            };
        }
        self.life != Life::Running
    }

    /// Ends the whole group: asks, waits, kills, reaps. Does nothing the second time.
    pub(crate) fn end(&mut self) {
        let deadline = Instant::now() + TERM_GRACE;
        if !self.has_ended() {
            self.signal(Signal::SIGTERM);
            while !self.has_ended() && Instant::now() < deadline {
                thread::sleep(PROBE_INTERVAL);
            }
        }
        // Also after a clean end: helpers that the part left behind share its group.
        self.signal(Signal::SIGKILL);
        // It is dead or was just killed; an error means that it is reaped already.
        drop(self.child.wait());
        self.life = Life::Reaped;
    }

    fn signal(&self, signal: Signal) {
        match self.life {
            // ESRCH: the group is empty, which is what was wanted.
            Life::Running | Life::Dead => {
                killpg(self.pid(), signal).ok();
            }
            Life::Reaped => {}
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id fits pid_t"))
    }

    fn ended_error(&self) -> DesktopError {
        DesktopError::Ended {
            part: self.name,
            log: self.log_tail(),
        }
    }

    fn not_ready_error(&self) -> DesktopError {
        DesktopError::NotReady {
            part: self.name,
            log: self.log_tail(),
        }
    }

    fn log_tail(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let tail = &bytes[bytes.len().saturating_sub(LOG_TAIL)..];
        let text = String::from_utf8_lossy(tail).trim().to_owned();
        if text.is_empty() {
            "nothing".to_owned()
        } else {
            text
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a short helper program to its end, or kills it at the deadline. `None` unless it succeeded.
pub(crate) fn output_before(mut command: Command, deadline: Instant) -> Option<String> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    die_with_parent(&mut command);
    let mut child = command.spawn().ok()?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
            Ok(None) | Err(_) => {
                // Killing a child that just ended fails; the wait reaps it in both cases.
                drop(child.kill());
                drop(child.wait());
                return None;
            }
        }
    };
    let mut text = String::new();
    // The answers asked for are far below the pipe's capacity, so the helper never waited for this read.
    child
        .stdout
        .take()?
        .take(LONGEST_ANSWER)
        .read_to_string(&mut text)
        .ok()?;
    status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state letter of a process, `None` when there is none of that number.
    fn state(pid: u32) -> Option<char> {
        let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        line.rsplit_once(')')?.1.trim_start().chars().next()
    }

    /// A part that ends and leaves a helper behind: its number is held until the helper is ended, and let go of once.
    #[test]
    fn what_a_dead_part_left_behind_is_ended_before_it_is_reaped() {
        let logs = tempfile::tempdir().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 1000 & echo $!"]);
        let mut part = Part::start(PartName::XServer, command, logs.path()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        let helper: u32 = part.first_line(deadline).unwrap().parse().unwrap();
        while !part.has_ended() {
            assert!(Instant::now() < deadline, "the part does not end");
            thread::sleep(PROBE_INTERVAL);
        }
        assert_eq!((part.life, state(part.id())), (Life::Dead, Some('Z')));
        assert!(state(helper).is_some_and(|state| state != 'Z'));
        part.end();
        assert_eq!(part.life, Life::Reaped);
        while !matches!(state(helper), None | Some('Z')) {
            assert!(Instant::now() < deadline, "the helper lives on");
            thread::sleep(PROBE_INTERVAL);
        }
        assert!(part.has_ended());
        part.end();
        assert_eq!(part.life, Life::Reaped);
    }
}
