//! The child as a process: what it inherits, whom it takes along, and what stays behind.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use integration_tests::binaries;
use integration_tests::fake::is_alive;
use integration_tests::process::runs;
use maka_cu_protocol::sets::LifecycleCode;

use super::*;

/// Field report H20 and design 5.7: three descriptors, no core dumps, private files, an own group.
#[tokio::test]
async fn a_child_inherits_nothing_it_should_not_have() {
    // Listening sockets and open files of the host, one of them without close-on-exec, as foreign code leaves them.
    let _socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let leaky = fs::File::open("/dev/null").unwrap();
    nix::fcntl::fcntl(
        &leaky,
        nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()),
    )
    .unwrap();
    let (fake, service) = service(&json!({}));
    service.ensure_started().await.unwrap();
    let start = &fake.events("start")[0];
    let descriptors: Vec<_> = start["descriptors"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    // 3 is the wire log, which is open by the time it is written.
    assert_eq!(descriptors, ["0", "1", "2", "3"], "{start}");
    assert!(
        start["descriptors"]["3"]
            .as_str()
            .unwrap()
            .ends_with("wire.jsonl")
    );
    assert_eq!(start["group"], start["pid"]);
    assert_eq!(start["parent"], std::process::id());
    assert_eq!(
        (&start["umask"], &start["core_limit"]),
        (&json!(0o077), &json!(0))
    );
    assert_eq!(start["args"][0], "host");
}

/// Field report H17 and spec 8.2: links are resolved, the copy runs, spaces do no harm, and a swap changes nothing.
#[tokio::test]
async fn the_private_copy_runs_whatever_the_links_do() {
    let fake = Fake::new(&json!({}));
    let (real, inner, outer) = (
        fake.path("the real one"),
        fake.path("inner"),
        fake.path("outer link"),
    );
    fs::copy(binaries::path("fake-executor"), &real).unwrap();
    symlink(&real, &inner).unwrap();
    symlink(&inner, &outer).unwrap();
    let service = MakaCuService::try_new(fake.options_for(&outer)).unwrap();
    let negotiated = service.ensure_started().await.unwrap();
    let pin = service.status().pin.unwrap();
    let copy = fake
        .path("state/executors")
        .join(pin.digest.to_string())
        .join("maka-cu");
    assert_eq!(
        fake.events("start")[0]["program"],
        json!(fs::canonicalize(&copy).unwrap())
    );
    assert_eq!(negotiated.generation, 1);

    // Swapped for another program: the running one is unharmed, and a pinned service refuses the new one.
    let mut options = fake.options_for(&outer);
    options.expected_digest = Some(pin.digest);
    options.image_dir = fake.path("other images");
    fs::remove_file(&real).unwrap();
    fs::write(&real, "#!/bin/false\n").unwrap();
    fs::set_permissions(&real, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    list_apps(&service).await.unwrap();
    let pinned = MakaCuService::try_new(options).unwrap();
    assert_eq!(
        pinned.ensure_started().await.unwrap_err().code,
        LifecycleCode::ServiceMismatch
    );
}

/// Spec 12.1 row 13.
#[test]
fn the_fake_refuses_to_run_without_host() {
    for args in [&[][..], &["serve"], &["host", "--unknown"]] {
        let status = std::process::Command::new(binaries::path("fake-executor"))
            .args(args)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(64), "{args:?}");
    }
}

/// Helpers end with their executor, however it ends; nothing is left to reap (field reports H3, H4).
#[tokio::test]
async fn helpers_end_with_the_executor() {
    for end in ["dispose", "drop", "die", "restart"] {
        let (fake, service) = service(&rule("apps.list", json!(["spawn_helper", "default"])));
        list_apps(&service).await.unwrap();
        let helper = i32::try_from(fake.events("helper")[0]["pid"].as_i64().unwrap()).unwrap();
        let executor = fake.pid();
        assert!(is_alive(helper) && is_alive(executor));
        match end {
            "dispose" => service.dispose().await,
            "drop" => drop(service),
            "die" => {
                nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(executor),
                    nix::sys::signal::Signal::SIGKILL,
                )
                .unwrap();
                ready_again(&service, 2).await;
            }
            _ => assert_eq!(service.restart().await.unwrap().generation, 2),
        }
        until("the executor is reaped", || !is_alive(executor)).await;
        // A helper is an orphan by now; whoever adopted it reaps it, so only a live one counts.
        until("the helper is gone", || !runs(helper)).await;
    }
}

/// Field report H6: the parent-death signal is bound to the forking thread, so no thread of the runtime may be that one.
#[test]
fn the_child_outlives_the_threads_of_the_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("h6-runtime")
        .thread_keep_alive(Duration::from_millis(1))
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (fake, service) = service(&json!({}));
        service.ensure_started().await.unwrap();
        until("idle threads have ended", || {
            threads_named("h6-runtime") == 1
        })
        .await;
        list_apps(&service).await.unwrap();
        assert_eq!(
            (service.status().generation, fake.events("start").len()),
            (1, 1)
        );
        service.dispose().await;
    });
}

fn threads_named(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks
        .flatten()
        .filter(|task| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|it| it.trim() == name)
        })
        .count()
}

/// Set for the test process that plays a host about to be killed; holds its folder.
const PLAYED_HOST: &str = "MAKA_TEST_PLAYED_HOST";

/// Field report H4: a host that is killed takes its executor along, even one that ignores everything it could notice, and
/// what that has forked.
#[tokio::test]
async fn a_killed_host_takes_its_executor_along() {
    let fake = Fake::new(&json!({
        "ignore_sigterm": true,
        "ignore_eof": true,
        "rules": [{"method": "host.hello", "steps": ["spawn_helper", "default"]}],
    }));
    let this = std::env::current_exe().unwrap();
    let mut host = std::process::Command::new(this)
        .args(PLAY)
        .env(PLAYED_HOST, fake.path(""))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the executor has a helper", || {
        !fake.events("helper").is_empty()
    })
    .await;
    let executor = fake.pid();
    let helper = i32::try_from(fake.events("helper")[0]["pid"].as_i64().unwrap()).unwrap();
    assert!(runs(executor) && runs(helper));
    host.kill().unwrap();
    host.wait().unwrap();
    until("the executor is gone", || !runs(executor)).await;
    until("the helper is gone", || !runs(helper)).await;
}

/// A state folder without permission to execute is named as such. Needs the right to mount; without it there is nothing to see.
#[tokio::test]
async fn a_noexec_state_folder_is_named() {
    let fake = Fake::new(&json!({}));
    fs::create_dir(fake.path("state")).unwrap();
    let mount = format!(
        "mount -t tmpfs -o noexec,mode=700 tmpfs '{}' && exec \"$0\" \"$@\"",
        fake.path("state").display()
    );
    let played = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", &mount])
        .arg(std::env::current_exe().unwrap())
        .args(PLAY)
        .env(PLAYED_HOST, fake.path(""))
        .output();
    if played.is_ok_and(|played| played.status.success()) {
        assert_eq!(
            fs::read_to_string(fake.path("outcome")).unwrap(),
            "state_dir_noexec"
        );
    }
}

/// Makes a test process play the host.
const PLAY: [&str; 3] = [
    "--exact",
    "supervisor::processes::played_host",
    "--nocapture",
];

/// The other half of the tests above: does nothing unless it is asked to play. Ends when the start fails, else never.
#[tokio::test]
async fn played_host() {
    let Some(home) = std::env::var_os(PLAYED_HOST).map(std::path::PathBuf::from) else {
        return;
    };
    let mut options = Options::new(
        binaries::path("fake-executor"),
        home.join("state"),
        home.join("images"),
        "0.0.0",
    );
    let args = ["--script", "script.json", "--wire-log", "wire.jsonl"];
    options.executor_args = args
        .map(|arg| {
            if arg.contains('.') {
                home.join(arg).into()
            } else {
                arg.into()
            }
        })
        .into();
    let service = MakaCuService::try_new(options).unwrap();
    match service.ensure_started().await {
        Ok(_) => std::future::pending().await,
        Err(_) => {
            let last = service.status().last_failure.unwrap();
            fs::write(home.join("outcome"), last.failure.reason()).unwrap();
        }
    }
}

/// Field report H3: cycles leave no descriptors, threads or zombies.
#[tokio::test]
async fn cycles_leave_nothing_behind() {
    let (fake, service) = service(&json!({}));
    let cycle = async || {
        service.restart().await.unwrap();
        list_apps(&service).await.unwrap();
    };
    cycle().await;
    for _ in 0..10 {
        cycle().await;
    }
    for start in &fake.events("start")[..10] {
        let pid = i32::try_from(start["pid"].as_i64().unwrap()).unwrap();
        assert!(!is_alive(pid), "{pid} is reaped");
    }
    service.dispose().await;
}
