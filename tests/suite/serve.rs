//! The first README command, as a person uses it: start it, paste what it prints, end it with Ctrl-C.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
};

use integration_tests::{binaries, tools};
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use tempfile::TempDir;

/// Ends the group when a test fails half-way.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // After a good end the group is gone already, which is no fault.
        let _gone = killpg(self.0, Signal::SIGKILL);
    }
}

/// Every command line below "try" works as printed; Ctrl-C, which a terminal sends to the whole foreground
/// group, ends everything with status 0 and leaves no socket, address or image directory.
#[tokio::test(flavor = "multi_thread")]
async fn the_printed_command_lines_work_and_ctrl_c_ends_it() {
    let Served {
        child,
        group,
        folder,
        banner,
    } = serve().await;
    assert!(
        banner.contains("back end         virtual (no DISPLAY"),
        "{banner}"
    );
    assert!(banner.contains("synthetic input  on"), "{banner}");

    let pasted: Vec<&str> = banner
        .lines()
        .filter(|line| line.starts_with("  "))
        .map(str::trim)
        .filter(|line| {
            ["TOKEN=", "grpcurl ", "buf ", "python3 "]
                .iter()
                .any(|start| line.starts_with(start))
        })
        .collect();
    assert!(pasted.len() >= 6, "{banner}");
    let mut shell = Command::new("sh");
    shell
        .arg("-ec")
        .arg(pasted.join("\n"))
        .env("PATH", tools::path_with_tools())
        .current_dir(binaries::workspace_root());
    let said = tools::stdout(shell).await;
    for expected in [
        "grpc.health.v1.Health",
        "EXECUTOR_STATE_READY",
        "sessionId",
        "Snapshot",
        "session ended",
    ] {
        assert!(said.contains(expected), "{expected} in {said}");
    }

    killpg(group.0, Signal::SIGINT).expect("the group lives");
    ends_clean(child, &folder).await;
    let config =
        fs::read_to_string(folder.path().join("gateway.toml")).expect("the configuration stays");
    assert!(config.contains("sha256"), "it pins the executor");
}

/// A signal that reaches the command alone, as a service manager sends it, ends the gateway and its executor too.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_the_command_alone_ends_everything() {
    let served = serve().await;
    kill(served.group.0, Signal::SIGINT).expect("it lives");
    ends_clean(served.child, &served.folder).await;
    // The group holds nobody any more: neither gateway nor executor.
    assert!(killpg(served.group.0, None).is_err(), "someone is left");
}

/// A running command with what it printed.
struct Served {
    child: Child,
    group: Group,
    folder: TempDir,
    banner: String,
}

/// Starts the command and reads what it prints, up to its last line.
async fn serve() -> Served {
    let folder = TempDir::new().expect("a folder");
    let mut child = Command::new(binaries::path("xtask"))
        .args(["serve", "--debug", "--port", "0", "--dir"])
        .arg(folder.path())
        .env_remove("DISPLAY")
        .current_dir(binaries::workspace_root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("xtask starts");
    let group = Group(Pid::from_raw(child.id().try_into().expect("a pid")));
    let output = BufReader::new(child.stdout.take().expect("piped"));

    let banner = tokio::task::spawn_blocking(move || {
        let mut banner = String::new();
        for line in output.lines() {
            let line = line.expect("text");
            banner.push_str(&line);
            banner.push('\n');
            if line.starts_with("Ctrl-C ends") {
                break;
            }
        }
        banner
    })
    .await
    .expect("not cancelled");
    Served {
        child,
        group,
        folder,
        banner,
    }
}

/// Waits for the end, which leaves nothing behind.
async fn ends_clean(mut child: Child, folder: &TempDir) {
    let status = tokio::task::spawn_blocking(move || child.wait())
        .await
        .expect("not cancelled")
        .expect("waited for");
    assert_eq!(status.code(), Some(0), "{status}");
    for left in ["state/maka-gateway.sock", "state/address", "state/images"] {
        assert!(!folder.path().join(left).exists(), "{left} is left behind");
    }
}
