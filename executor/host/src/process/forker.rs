//! The one thread that forks.
//!
//! Linux sends the parent-death signal when the *thread* that forked ends, not the process. A worker of an async runtime may end at
//! any time, so children are made by a thread that lives as long as the service.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::Pid;
use tokio::sync::oneshot;

use super::group::{Group, Leash};
use super::warden::Warden;
use super::{Child, ExitCause, setup};
use crate::environment::ChildEnvironment;

/// How long an executable may stay busy. Another thread that forked while our copy was open for writing holds the descriptor until
/// its own exec, which is a matter of milliseconds.
const BUSY_LIMIT: Duration = Duration::from_secs(2);
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// What to run.
#[derive(Debug)]
pub(crate) struct SpawnOrder {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) environment: ChildEnvironment,
}

struct Order {
    what: SpawnOrder,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// Handle of the forking thread; the thread ends with it.
#[derive(Debug, Clone)]
pub(crate) struct Forker {
    // Bound 1: the supervisor starts one child at a time, so a sender never waits for long.
    orders: mpsc::SyncSender<Order>,
}

impl Forker {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (orders, inbox) = mpsc::sync_channel::<Order>(1);
        thread::Builder::new()
            .name("maka-cu-forker".to_owned())
            .spawn(move || {
                for Order { what, reply } in inbox {
                    // A refused answer means that nobody waits any more; dropping it drops the child's leash.
                    drop(reply.send(spawn(&what)));
                }
            })?;
        Ok(Self { orders })
    }

    /// Makes a child.
    pub(crate) async fn spawn(&self, what: SpawnOrder) -> io::Result<Child> {
        let (reply, answer) = oneshot::channel();
        self.orders
            .try_send(Order { what, reply })
            .map_err(|_| io::Error::other("the forking thread is not there"))?;
        answer
            .await
            .unwrap_or_else(|_| Err(io::Error::other("the forking thread ended")))
    }
}

fn spawn(what: &SpawnOrder) -> io::Result<Child> {
    // The reaper comes first: a child without one would stay behind as a zombie.
    let (hand_over, reaper) = start_reaper()?;
    let mut child = run(what)?;
    let pid = child.id();
    let leader = Pid::from_raw(i32::try_from(pid).expect("process ids fit pid_t"));
    let group = Group::new(leader);
    let leash = Leash(group.clone());
    let warden = Warden::over(leader)
        .inspect_err(|error| {
            tracing::warn!(%error, "no warden: helpers of this executor may outlive a killed host");
        })
        .ok();
    let stdin = OwnedFd::from(child.stdin.take().expect("stdin was asked for as a pipe"));
    let stdout = OwnedFd::from(child.stdout.take().expect("stdout was asked for as a pipe"));
    let stderr = OwnedFd::from(child.stderr.take().expect("stderr was asked for as a pipe"));
    hand_over
        .send((child, group, leader, warden))
        .map_err(|_| io::Error::other("the reaping thread ended"))?;
    Ok(Child {
        pid,
        leash,
        stdin,
        stdout,
        stderr,
        exit: reaper,
    })
}

type Orphan = (process::Child, Arc<Group>, Pid, Option<Warden>);

/// A thread that waits for one child to end. Without a child it ends with the sender.
fn start_reaper() -> io::Result<(mpsc::SyncSender<Orphan>, oneshot::Receiver<ExitCause>)> {
    // Bound 1: exactly one child is handed over.
    let (hand_over, handed_over) = mpsc::sync_channel::<Orphan>(1);
    let (ended, exit) = oneshot::channel();
    thread::Builder::new()
        .name("maka-cu-reaper".to_owned())
        .spawn(move || {
            if let Ok((mut child, group, leader, warden)) = handed_over.recv() {
                let cause = group.reap(&mut child, leader);
                if let Some(warden) = warden {
                    warden.reap();
                }
                // Nobody may be left to hear it; the child is reaped all the same.
                ended.send(cause).ok();
            }
        })?;
    Ok((hand_over, exit))
}

/// Runs the program, as soon as nobody has it open for writing.
fn run(what: &SpawnOrder) -> io::Result<process::Child> {
    let started = Instant::now();
    loop {
        match command(what).spawn() {
            Err(error)
                if error.raw_os_error() == Some(Errno::ETXTBSY as i32)
                    && started.elapsed() < BUSY_LIMIT =>
            {
                thread::sleep(BUSY_PAUSE);
            }
            other => return other,
        }
    }
}

fn command(what: &SpawnOrder) -> Command {
    let mut command = Command::new(&what.program);
    command
        .args(&what.args)
        .env_clear()
        .envs(what.environment.iter())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    setup::in_child(&mut command);
    command
}
