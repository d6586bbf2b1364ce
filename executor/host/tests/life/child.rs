//! A child whose every word is written in the test: a shell script in a folder of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use maka_cu_host::options::RestartPolicy;
use maka_cu_host::{MakaCuService, Options};
use maka_cu_protocol::handshake::{Capabilities, ExecutorIdentity, Handshake, Limits};
use maka_cu_protocol::json::Json;
use maka_cu_protocol::method::PROTOCOL;
use maka_cu_protocol::results::Answer;
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a test is called failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What scripts begin with. `answer LINE BODY` answers the request in LINE, `greet` answers the handshake, `serve` answers
/// `apps.list` until the end of input and writes down what it reads, `process` counts the children of this folder.
const PRELUDE: &str = r#"#!/bin/sh
home='@HOME@'
hello='"result":@HELLO@'
apps='"result":{"ok":true,"apps":[]}'
note() { printf '%s\n' "$*" >> "$home/log"; }
answer() { id=${1#*\"id\":}; id=${id%%,*}; printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$2"; }
greet() { read -r line; answer "$line" "$hello"; }
serve() {
    while read -r line; do
        note "$line"
        case $line in *'"apps.list"'*) answer "$line" "$apps" ;; esac
    done
}
[ "$1" = host ] || exit 64
note "start $$"
process=$(grep -c '^start' "$home/log")
"#;

/// A script, its folder, and what it wrote down.
#[derive(Debug)]
pub(crate) struct Script {
    home: TempDir,
}

impl Script {
    /// A child with this handshake and this body.
    pub(crate) fn with_handshake(handshake: &Value, body: &str) -> Self {
        let script = Self {
            home: tempfile::tempdir().unwrap(),
        };
        let text = format!("{PRELUDE}{body}\n")
            .replace("@HOME@", script.home.path().to_str().unwrap())
            .replace("@HELLO@", &handshake.to_string());
        script.executable("executor", &text);
        script
    }

    /// A child with this body.
    pub(crate) fn new(body: &str) -> Self {
        Self::with_handshake(&handshake(), body)
    }

    /// Options for it: short pauses, and nobody starts a lost child but the next call.
    pub(crate) fn options(&self) -> Options {
        Options {
            restart: RestartPolicy::OnDemand,
            restart_backoff: Duration::from_millis(1),
            ..Options::new(
                self.path("executor"),
                self.path("state"),
                self.path("images"),
                "0",
            )
        }
    }

    /// A service over it.
    pub(crate) fn service(&self, change: impl FnOnce(&mut Options)) -> MakaCuService {
        let mut options = self.options();
        change(&mut options);
        MakaCuService::try_new(options).unwrap()
    }

    /// A path in its folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// An executable file in its folder.
    pub(crate) fn executable(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The lines that were written down.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How many children there were.
    pub(crate) fn starts(&self) -> usize {
        self.received("start ")
    }

    /// How many lines hold this text.
    pub(crate) fn received(&self, text: &str) -> usize {
        self.log().iter().filter(|line| line.contains(text)).count()
    }
}

/// A good handshake.
pub(crate) fn handshake() -> Value {
    let limits = Limits {
        // Nothing here ends by itself at SIGTERM in a way worth waiting for.
        shutdown_grace_ms: 100,
        ..Limits::default()
    };
    Answer::Done(Handshake {
        protocol: PROTOCOL.to_owned(),
        executor: ExecutorIdentity {
            name: "script".to_owned(),
            version: "0".to_owned(),
            commit: None,
        },
        pid: 1,
        capabilities: Capabilities::default(),
        limits,
    })
    .write()
}

/// A good handshake with one field changed.
pub(crate) fn handshake_with(pointer: &str, value: Value) -> Value {
    let mut changed = handshake();
    *changed.pointer_mut(pointer).unwrap() = value;
    changed
}

/// Waits until a file exists.
pub(crate) async fn appears(path: &Path) {
    let appeared = async {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, appeared)
        .await
        .unwrap_or_else(|_| panic!("{} does not appear", path.display()));
}
