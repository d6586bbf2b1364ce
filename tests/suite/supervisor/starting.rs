//! Start, handshake, budget, restart, disposal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use maka_cu_host::environment::ChildEnvironment;
use maka_cu_host::options::RestartPolicy;
use maka_cu_host::status::{Pin, PinKind};
use maka_cu_protocol::sets::{LifecycleCode, ReleaseReason, RequestStage};

use super::*;

/// Spec 12.1 rows 9, 10 and the rest of the start table: each failure has its reason, and nothing runs.
#[tokio::test]
async fn each_start_failure_says_what_is_wrong() {
    type Prepare = fn(&Fake, &mut Options);
    let rows: [(&str, LifecycleCode, u64, Prepare); 8] = [
        (
            "binary_missing",
            LifecycleCode::ServiceUnavailable,
            0,
            |fake, options| {
                options.binary_path = fake.path("absent");
            },
        ),
        (
            "binary_not_executable",
            LifecycleCode::ServiceUnavailable,
            0,
            |fake, options| {
                options.binary_path = fake.path("script.json");
            },
        ),
        (
            "binary_wrong_format",
            LifecycleCode::ServiceUnavailable,
            0,
            |fake, options| {
                options.binary_path = executable(fake, "text", "exit 0\n");
            },
        ),
        (
            "wrong_digest",
            LifecycleCode::ServiceMismatch,
            0,
            |_, options| {
                options.expected_digest = Some("0".repeat(64).parse().unwrap());
            },
        ),
        (
            "missing_interpreter",
            LifecycleCode::ServiceUnavailable,
            1,
            |fake, options| {
                options.binary_path = executable(fake, "lost", "#!/no/such/interpreter\n");
                options.max_restart_attempts = 1;
            },
        ),
        (
            "image_dir_relative",
            LifecycleCode::ServiceUnavailable,
            0,
            |_, options| {
                options.image_dir = "images".into();
            },
        ),
        (
            "image_dir_foreign",
            LifecycleCode::ServiceUnavailable,
            0,
            |fake, options| {
                fs::create_dir(fake.path("photos")).unwrap();
                fs::write(fake.path("photos/mine.png"), "").unwrap();
                options.image_dir = fake.path("photos");
            },
        ),
        (
            "state_dir_unsafe",
            LifecycleCode::ServiceUnavailable,
            0,
            |fake, options| {
                fs::create_dir(fake.path("shared")).unwrap();
                fs::set_permissions(fake.path("shared"), fs::Permissions::from_mode(0o777))
                    .unwrap();
                options.state_dir = fake.path("shared");
            },
        ),
    ];
    for (reason, code, generation, prepare) in rows {
        let fake = Fake::new(&json!({}));
        let mut options = fake.options();
        prepare(&fake, &mut options);
        let service = MakaCuService::try_new(options).unwrap();
        let error = service.ensure_started().await.unwrap_err();
        let status = service.status();
        assert_eq!(error.code, code, "{reason}");
        assert_eq!(error.stage, RequestStage::Queued, "{reason}");
        assert!(error.is_fatal() && error.remedy().is_some(), "{reason}");
        let last = status
            .last_failure
            .as_ref()
            .expect("the failure is remembered");
        assert_eq!(last.failure.reason(), reason);
        assert_eq!(
            (status.state, status.generation),
            (ServiceState::Unavailable, generation),
            "{reason}"
        );
        assert!(fake.events("start").is_empty(), "{reason}");
        if reason == "image_dir_foreign" {
            service.dispose().await;
            assert!(fake.path("photos/mine.png").exists(), "foreign files stay");
        }
    }
}

fn executable(fake: &Fake, name: &str, content: &str) -> std::path::PathBuf {
    let path = fake.path(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Spec 12.1 row 9: the text says that it could not be executed, not that it ended.
#[tokio::test]
async fn a_missing_interpreter_is_no_exit() {
    let fake = Fake::new(&json!({}));
    let lost = executable(&fake, "lost", "#!/no/such/interpreter\n");
    let service = MakaCuService::try_new(fake.options_for(&lost)).unwrap();
    let mut events = service.events();
    let error = lifecycle(list_apps(&service).await);
    assert_eq!(error.code, LifecycleCode::ServiceUnavailable);
    let mut source: &dyn std::error::Error = &error;
    let mut chain = source.to_string();
    while let Some(cause) = source.source() {
        chain = format!("{chain}: {cause}");
        source = cause;
    }
    assert!(chain.contains("could not be executed"), "{chain}");
    assert_eq!(
        service.status().generation,
        3,
        "an exec failure is retried within the budget"
    );
    for _ in 0..3 {
        assert_eq!(release(&mut events).await.reason, ReleaseReason::ChildExit);
    }
    assert_eq!(
        release(&mut events).await.reason,
        ReleaseReason::RestartExhausted
    );
}

/// Spec 12.1 row 4 and field report H14: limits nobody can keep are violations that name the field, after one spawn.
#[tokio::test]
async fn hostile_limits_end_in_one_violation() {
    let rows = [
        ("snapshotsPerSession", json!(0)),
        ("snapshotTtlMs", json!(-1)),
        ("shutdownGraceMs", json!(0)),
        ("maxElements", json!(2.5)),
        ("maxDepth", json!("64")),
        ("maxTextChars", json!(9_223_372_036_854_775_808_u64)),
        ("maxResponseBytes", json!(null)),
        ("settleCeilingMs", json!([])),
    ];
    for (field, value) in rows {
        let (fake, service) = service(&json!({ "limits": { field: value } }));
        let error = service.ensure_started().await.unwrap_err();
        assert_eq!(error.code, LifecycleCode::ServiceMismatch, "{field}");
        let status = service.status();
        assert_eq!(
            (status.state, status.generation),
            (ServiceState::Unavailable, 1),
            "{field}"
        );
        let last = status.last_failure.unwrap();
        assert_eq!(last.failure.reason(), "handshake_violation");
        let violation = std::error::Error::source(&*last).unwrap().to_string();
        assert!(
            violation.contains(&format!("limits.{field}")),
            "{violation}"
        );
        assert_eq!(fake.events("start").len(), 1, "{field}");
    }
}

#[tokio::test]
async fn sane_limits_come_back_verbatim() {
    let (fake, service) = service(&json!({ "limits": { "maxElements": 7, "somethingNew": "x" } }));
    let negotiated = service.ensure_started().await.unwrap();
    assert_eq!(negotiated.handshake.limits.max_elements, 7);
    assert_eq!(negotiated.handshake.limits.snapshot_ttl_ms, 120_000);
    assert_eq!(negotiated.pid, u32::try_from(fake.pid()).unwrap());
    let Some(Pin {
        kind: PinKind::PrivateCopy,
        pinned: false,
        ..
    }) = service.status().pin
    else {
        panic!("a private copy runs")
    };
    let hello = &fake.received("host.hello")[0];
    let params = &hello["params"];
    assert_eq!(
        fake.log()[1],
        *hello,
        "the handshake is the very first message"
    );
    assert_eq!(params["protocol"], "maka.cu/2");
    assert_eq!(params["hostPid"], std::process::id());
    assert_eq!(params["allowGlobalPointer"], false);
    assert_eq!(
        params["imageDir"],
        json!(fs::canonicalize(fake.path("images")).unwrap())
    );
    assert_eq!(params["host"]["name"], "maka");
}

/// Spec 12.1 row 15: one spawn, no second word.
#[tokio::test]
async fn another_version_is_a_mismatch_and_not_retried() {
    let rows: [(Value, &str); 4] = [
        (json!({ "rules": [] }), "version_mismatch"),
        (
            rule(
                "host.hello",
                json!([{ "patched": { "set": { "/protocol": "maka.cu/9" } } }]),
            ),
            "version_mismatch",
        ),
        (
            rule("host.hello", json!([{ "refuse": "permission_missing" }])),
            "handshake_refused",
        ),
        (
            rule("host.hello", json!([{ "patched": { "remove": ["/ok"] } }])),
            "handshake_violation",
        ),
    ];
    for (index, (script, reason)) in rows.into_iter().enumerate() {
        let (fake, service) = service_with(&script, |options| {
            if index == 0 {
                options.protocol_version = "maka.cu/0".to_owned();
            }
        });
        let params = json!({ "session": "s", "captureScope": "window" });
        let error = lifecycle(call(&service, Method::SessionBegin, params).await);
        assert_eq!(error.code, LifecycleCode::ServiceMismatch, "{reason}");
        assert_eq!(
            service.status().last_failure.unwrap().failure.reason(),
            reason
        );
        assert_eq!(fake.events("start").len(), 1, "{reason}");
        assert!(fake.received("session.begin").is_empty(), "{reason}");
    }
}

/// Retried within the budget: an RPC error, silence, an early end.
#[tokio::test]
async fn passing_handshake_failures_are_retried() {
    let rows = [
        (
            json!([{ "error": { "code": -32603, "message": "internal_error" } }]),
            ReleaseReason::ChildExit,
        ),
        (json!([{ "exit": 3 }]), ReleaseReason::ChildExit),
        (
            json!([{ "complain": "no display" }, { "die": 9 }]),
            ReleaseReason::ChildExit,
        ),
        (json!(["never"]), ReleaseReason::RequestTimeout),
    ];
    for (steps, reason) in rows {
        let script = json!({ "rules": [
            { "method": "host.hello", "process": 1, "steps": steps },
            { "method": "host.hello", "process": 2, "steps": steps },
        ] });
        let (fake, service) = service_with(&script, |options| {
            options.handshake_timeout = Duration::from_secs(2);
            options.cancel_grace = Duration::from_millis(50);
        });
        let mut events = service.events();
        let negotiated = service.ensure_started().await.unwrap();
        assert_eq!(negotiated.generation, 3, "{steps}");
        assert_eq!(fake.events("start").len(), 3);
        for generation in 1..=2 {
            let release = release(&mut events).await;
            assert_eq!(
                (release.generation, release.reason),
                (generation, reason),
                "{steps}"
            );
            assert!(release.generation_released && !release.outcome_unknown);
        }
    }
}

/// Spec 12.6 row 68: late, but within the grace.
#[tokio::test]
async fn a_handshake_answered_within_the_grace_counts() {
    let script = rule("host.hello", json!(["wait_for_cancel", "default"]));
    let (_fake, service) = service_with(&script, |options| {
        options.handshake_timeout = Duration::from_millis(200)
    });
    assert_eq!(service.ensure_started().await.unwrap().generation, 1);
}

/// Spec 12.1 rows 11, 16; the error text holds no word of the executor's, the excerpt does.
#[tokio::test]
async fn a_spent_budget_keeps_stating_the_last_cause() {
    let script = rule(
        "host.hello",
        json!([{ "complain": "canary: no such display" }, { "exit": 3 }]),
    );
    let (fake, service) = service(&script);
    let mut events = service.events();
    for round in 0..3 {
        let error = lifecycle(list_apps(&service).await);
        assert_eq!(error.code, LifecycleCode::ServiceUnavailable);
        let status = service.status();
        assert_eq!(
            (status.state, status.restart_attempts),
            (ServiceState::Unavailable, 3),
            "round {round}"
        );
        let last = status.last_failure.unwrap();
        assert_eq!(
            last.failure.to_string(),
            "the executor ended before the handshake, by exit status 3"
        );
        assert_eq!(last.stderr().as_str(), "canary: no such display\n");
        assert!(!format!("{error:?} {last:?}").contains("canary"));
    }
    assert_eq!(fake.events("start").len(), 3);
    for _ in 0..3 {
        assert_eq!(release(&mut events).await.reason, ReleaseReason::ChildExit);
    }
    for _ in 0..3 {
        let exhausted = release(&mut events).await;
        assert_eq!(exhausted.reason, ReleaseReason::RestartExhausted);
        assert!(
            !exhausted.generation_released
                && !exhausted.outcome_unknown
                && exhausted.sessions.is_empty()
        );
    }
}

/// Field report H1 (and its neighbour H2): a good handshake gives no attempt back.
#[tokio::test]
async fn a_crash_loop_after_the_handshake_ends() {
    let script = json!({ "rules": [{ "method": "host.hello", "inline": true, "steps": ["default", { "die": 9 }] }] });
    for restart in [RestartPolicy::Eager, RestartPolicy::OnDemand] {
        let (fake, service) = service_with(&script, |options| options.restart = restart);
        let mut status = service.watch_status();
        match restart {
            RestartPolicy::Eager => {
                service.ensure_started().await.unwrap();
                reach(&service, ServiceState::Unavailable).await;
            }
            RestartPolicy::OnDemand => {
                while service.ensure_started().await.is_ok() {
                    timeout(
                        PATIENCE,
                        status.wait_for(|status| status.state != ServiceState::Ready),
                    )
                    .await
                    .unwrap()
                    .unwrap();
                }
            }
        }
        assert_eq!(fake.events("start").len(), 3);
        let error = lifecycle(list_apps(&service).await);
        assert_eq!(error.code, LifecycleCode::ServiceUnavailable);
        assert!(error.is_fatal());
        assert_eq!(fake.events("start").len(), 3, "nothing is started any more");
    }
}

/// Design 5.4: a stable life refills the attempts, however often it happens.
#[tokio::test]
async fn a_stable_life_refills_the_attempts() {
    let (fake, service) = service_with(&json!({}), |options| {
        options.stable_after = Duration::from_millis(1)
    });
    service.ensure_started().await.unwrap();
    for generation in 1..=5 {
        let mut status = service.watch_status();
        let stable = |status: &maka_cu_host::Status| {
            status.generation == generation && status.restart_attempts == 0
        };
        timeout(PATIENCE, status.wait_for(stable))
            .await
            .unwrap()
            .unwrap();
        kill(fake.pid());
        ready_again(&service, generation + 1).await;
    }
}

/// Design 5.4 and its option: who starts a lost executor again.
#[tokio::test]
async fn restart_is_eager_or_on_demand() {
    let (fake, service) = service(&json!({}));
    service.ensure_started().await.unwrap();
    kill(fake.pid());
    ready_again(&service, 2).await;

    let (fake, service) = service_with(&json!({}), |options| {
        options.restart = RestartPolicy::OnDemand
    });
    service.ensure_started().await.unwrap();
    kill(fake.pid());
    reach(&service, ServiceState::Idle).await;
    assert_eq!(service.status().generation, 1);
    assert_eq!(list_apps(&service).await.unwrap().generation, 2);
}

/// Design 5.4: the way out of `unavailable`.
#[tokio::test]
async fn restart_clears_the_attempts_and_makes_a_new_generation() {
    let steps = json!([{ "exit": 1 }]);
    let script = json!({ "rules": [{ "method": "host.hello", "process": 1, "steps": steps }] });
    let (fake, service) = service_with(&script, |options| options.max_restart_attempts = 1);
    assert!(service.ensure_started().await.unwrap_err().is_fatal());
    let negotiated = service.restart().await.unwrap();
    assert_eq!(
        (negotiated.generation, service.status().restart_attempts),
        (2, 1)
    );
    assert!(service.status().last_failure.is_none());

    let mut events = service.events();
    let negotiated = service.restart().await.unwrap();
    assert_eq!(negotiated.generation, 3);
    let release = release(&mut events).await;
    assert_eq!(
        (release.generation, release.reason),
        (2, ReleaseReason::ChildExit)
    );
    assert_eq!(
        fake.events("signal"),
        ["SIGTERM"],
        "it was asked, not killed"
    );
}

/// A restart lets the executor finish what it has; what it does not finish is unknown, what was not sent had no effect.
#[tokio::test]
async fn restart_waits_for_answers_within_the_grace() {
    let script = json!({ "ignore_sigterm": true, "limits": { "shutdownGraceMs": 30_000 }, "rules": [
        { "method": "apps.list", "steps": [{ "wait_for_file": "$HOME/go" }, "default"] },
        { "method": "window.list", "steps": [{ "wait_for_file": "$HOME/end" }, { "exit": 0 }] },
    ] });
    let (fake, service) = service(&script);
    service.ensure_started().await.unwrap();
    let answered = list_apps(&service);
    let unfinished = call(&service, Method::WindowList, json!({ "session": "s" }));
    let script = async {
        until("both are received", || {
            fake.received("apps.list").len() + fake.received("window.list").len() == 2
        })
        .await;
        let restarted = service.restart();
        let rest = async {
            until("it is asked to end", || !fake.events("signal").is_empty()).await;
            fake.touch("go");
        };
        tokio::join!(restarted, rest).0.unwrap()
    };
    let finish = async {
        until("the answer was let go", || fake.path("go").exists()).await;
        // Only after the answer is out may the process end.
        until("it is asked to end", || !fake.events("signal").is_empty()).await;
    };
    let (answered, unfinished, negotiated, ()) = tokio::join!(
        async {
            let answer = answered.await;
            fake.touch("end");
            answer
        },
        unfinished,
        script,
        finish
    );
    assert_eq!(answered.unwrap().generation, 1);
    assert_eq!(lifecycle(unfinished).code, LifecycleCode::OutcomeUnknown);
    assert_eq!(negotiated.generation, 2);
}

/// Spec 8.7 and 12.1 row 12.
#[tokio::test]
async fn dispose_leaves_nothing() {
    for at in [
        "before a start",
        "while starting",
        "while greeting",
        "when ready",
    ] {
        let script = json!({ "rules": [{ "method": "host.hello", "steps": [{ "wait_for_file": "$HOME/go" }, "default"] }] });
        let (fake, service) = service(&script);
        let mut events = service.events();
        let started = service.ensure_started();
        let disposed = async {
            match at {
                "before a start" => {}
                "while starting" => reach(&service, ServiceState::Starting).await,
                "while greeting" => {
                    until("it is greeted", || !fake.received("host.hello").is_empty()).await
                }
                _ => {
                    fake.touch("go");
                    reach(&service, ServiceState::Ready).await;
                    assert!(fake.path("images").exists());
                }
            }
            service.dispose().await;
        };
        if at == "before a start" {
            disposed.await;
            assert_eq!(
                started.await.unwrap_err().code,
                LifecycleCode::ServiceUnavailable
            );
        } else {
            let (started, ()) = tokio::join!(started, disposed);
            assert_eq!(started.is_ok(), at == "when ready", "{at}");
        }
        assert!(!fake.path("images").exists(), "{at}");
        for start in fake.events("start") {
            let pid = i32::try_from(start["pid"].as_i64().unwrap()).unwrap();
            assert!(!integration_tests::fake::is_alive(pid), "{at}");
        }
        service.dispose().await;
        assert_eq!(service.status().state, ServiceState::Disposed);
        let error = lifecycle(list_apps(&service).await);
        assert_eq!(
            (error.code, error.is_fatal()),
            (LifecycleCode::ServiceUnavailable, true)
        );
        let mut last = None;
        while let Some(event) = events.next().await {
            if let Event::Released(release) = event {
                last = Some(release);
            }
        }
        let last = last.expect("disposal is announced");
        assert_eq!(
            (last.reason, last.generation_released),
            (ReleaseReason::Disposed, false),
            "{at}"
        );
    }
}

/// Field report H8: an executor that ignores SIGTERM and the end of stdin is killed after its grace.
#[tokio::test]
async fn dispose_does_not_wait_for_the_unwilling() {
    let script =
        json!({ "ignore_sigterm": true, "ignore_eof": true, "limits": { "shutdownGraceMs": 100 } });
    let (fake, service) = service(&script);
    service.ensure_started().await.unwrap();
    timeout(PATIENCE, service.dispose()).await.unwrap();
    assert!(!integration_tests::fake::is_alive(fake.pid()));
    assert_eq!(fake.events("signal"), ["SIGTERM"]);
}

/// Field report H21 and design 5.7: the child sees the allow-list and the operator's own variables.
#[tokio::test]
async fn the_environment_is_scrubbed() {
    let (fake, service) = service_with(&json!({}), |options| {
        let host = [
            ("API_TOKEN", "x"),
            ("AWS_SECRET", "y"),
            ("LD_PRELOAD", ""),
            ("PATH", "/bin"),
            ("DISPLAY", ":7"),
        ];
        let own = [("MAKA_EXTRA", "1")];
        let pairs = |names: &[(&str, &str)]| {
            names
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect::<Vec<_>>()
        };
        options.environment = ChildEnvironment::from_vars(pairs(&host), pairs(&own));
    });
    service.ensure_started().await.unwrap();
    let environment = fake.events("start")[0]["environment"].clone();
    assert_eq!(
        environment,
        json!({ "PATH": "/bin", "DISPLAY": ":7", "MAKA_EXTRA": "1" })
    );
}

fn kill(pid: i32) {
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pid),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
}
