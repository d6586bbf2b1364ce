//! What a gateway holds when nobody wants anything of it, before and after.

use std::fs;
use std::path::Path;
use std::time::Duration;

use integration_tests::{
    gateway::{GatewayProcess, PATIENCE},
    process,
};
use maka_proto::v1::ListSessionsRequest;
use tokio::time::Instant;

use super::book::Book;

/// Descriptors that may come and go.
const DESCRIPTORS: usize = 2;

/// What is held, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leftovers {
    sessions: usize,
    children: usize,
    zombies: usize,
    descriptors: usize,
    threads: usize,
    pictures: usize,
}

impl Leftovers {
    async fn of(gateway: &GatewayProcess) -> Self {
        let pid = gateway.pid().as_raw();
        let children = process::children(pid);
        let mut client = gateway
            .client(integration_tests::gateway::Role::Operator)
            .computer_use;
        let sessions = client
            .list_sessions(ListSessionsRequest {})
            .await
            .expect("a list")
            .into_inner()
            .sessions
            .len();
        Self {
            sessions,
            zombies: children
                .iter()
                .filter(|pid| process::is_zombie(**pid))
                .count(),
            children: children.len(),
            descriptors: process::descriptors(pid),
            threads: process::threads(pid),
            pictures: pictures(&gateway.folder().join("state/images")),
        }
    }

    /// What is held after ordinary calls; threads for blocking work included, which go after a while.
    pub(super) async fn at_rest(gateway: &GatewayProcess) -> Self {
        let now = Self::of(gateway).await;
        assert_eq!(
            (now.sessions, now.children, now.zombies, now.pictures),
            // The executor and its warden.
            (0, 2, 0, 0),
            "the calm before the storm: {now:?}"
        );
        now
    }

    fn holds(&self, now: &Self) -> bool {
        now.sessions == self.sessions
            && now.children == self.children
            && now.zombies == self.zombies
            && now.descriptors <= self.descriptors + DESCRIPTORS
            && now.threads <= self.threads
            && now.pictures == self.pictures
    }

    /// Waits until no more is held than before.
    pub(super) async fn hold_again(&self, gateway: &GatewayProcess, book: &Book) {
        let started = Instant::now();
        loop {
            let now = Self::of(gateway).await;
            if self.holds(&now) {
                return;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "left behind: {now:?}, before: {self:?}\n{}",
                book.tail()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Files in the image folder, our marker not counted.
fn pictures(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, |entries| {
        entries
            .flatten()
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .count()
    })
}

/// After the gateway: none of its children runs, no helper of any executor, and no picture is there.
pub(super) async fn nothing_survives(children: &[i32], folder: &Path, book: &Book) {
    let text = fs::read_to_string(folder.join("wire.jsonl")).expect("a wire log");
    let helpers = text.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        let pid = (line["event"] == "helper").then(|| line["detail"]["pid"].as_i64())??;
        i32::try_from(pid).ok()
    });
    for pid in helpers.chain(children.iter().copied()) {
        integration_tests::fake::until("every process is gone", || !is_ours(pid)).await;
    }
    assert_eq!(pictures(&folder.join("state/images")), 0, "{}", book.tail());
}

/// Whether a process of ours still runs under this number; the number may be somebody else's by now.
fn is_ours(pid: i32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    process::runs(pid) && (name.starts_with("maka-cu") || name.starts_with("fake-executor"))
}
