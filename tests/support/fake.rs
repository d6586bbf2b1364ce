//! The scriptable executor under a supervisor: a folder, a script, and the wire log to ask afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use maka_cu_host::Options;
use serde_json::Value;
use tempfile::TempDir;

use crate::binaries;

/// How long anything may take before a test is called failed. Generous: it is a bound, not an expectation.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// One fake executor: its script, its folder, its log.
#[derive(Debug)]
pub struct Fake {
    home: TempDir,
}

impl Fake {
    /// A folder with this script. `$HOME` in the script's texts becomes the folder.
    ///
    /// # Panics
    /// When the folder cannot be made.
    #[must_use]
    pub fn new(script: &Value) -> Self {
        let home = tempfile::tempdir().expect("a folder for the test");
        let text = script
            .to_string()
            .replace("$HOME", home.path().to_str().expect("UTF-8"));
        fs::write(home.path().join("script.json"), text).expect("the script can be written");
        Self { home }
    }

    /// Options of a supervisor for it, with short pauses.
    #[must_use]
    pub fn options(&self) -> Options {
        self.options_for(&binaries::path("fake-executor"))
    }

    /// As [`Fake::options`], for another file.
    #[must_use]
    pub fn options_for(&self, binary: &Path) -> Options {
        let mut options = Options::new(binary, self.path("state"), self.path("images"), "0.0.0");
        options.executor_args = ["--script", "script.json", "--wire-log", "wire.jsonl"]
            .map(|arg| {
                if arg.contains('.') {
                    self.path(arg).into()
                } else {
                    arg.into()
                }
            })
            .into();
        options.restart_backoff = Duration::from_millis(1);
        options
    }

    /// A path inside the test's folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Creates a file a script waits for.
    ///
    /// # Panics
    /// When it cannot be created.
    pub fn touch(&self, name: &str) {
        fs::write(self.path(name), "").expect("the file can be made");
    }

    /// Everything logged so far, over all processes.
    ///
    /// # Panics
    /// When a complete line is no JSON.
    #[must_use]
    pub fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("wire.jsonl")).unwrap_or_default();
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        complete
            .lines()
            .map(|line| serde_json::from_str(line).expect("the log holds JSON lines"))
            .collect()
    }

    /// The messages of one method, notifications included.
    #[must_use]
    pub fn received(&self, method: &str) -> Vec<Value> {
        self.log()
            .into_iter()
            .filter(|line| line["method"] == method)
            .collect()
    }

    /// The details of one kind of event, for example `start`.
    #[must_use]
    pub fn events(&self, event: &str) -> Vec<Value> {
        self.log()
            .into_iter()
            .filter(|line| line["event"] == event)
            .map(|mut line| line["detail"].take())
            .collect()
    }

    /// Process id of the newest executor.
    ///
    /// # Panics
    /// When none has started.
    #[must_use]
    pub fn pid(&self) -> i32 {
        let starts = self.events("start");
        let pid = starts.last().expect("an executor has started")["pid"]
            .as_i64()
            .expect("a number");
        i32::try_from(pid).expect("a process id")
    }
}

/// Waits until something holds. There is no time at which it has to: only one after which the test has failed.
///
/// # Panics
/// When it does not hold within [`PATIENCE`].
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Whether a process exists, zombies included.
#[must_use]
pub fn is_alive(pid: i32) -> bool {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).is_ok()
}
