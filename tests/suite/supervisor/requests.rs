//! Requests: stages, cancels, deadlines, sessions, and what a death means for them.

use std::time::Duration;

use integration_tests::process::is_stopped;
use maka_cu_host::error::{Breach, LifecycleCause};
use maka_cu_protocol::json::{Reason, Violation};
use maka_cu_protocol::sets::{LifecycleCode, ReleaseReason, RequestStage};
use nix::sys::signal::Signal;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;

const SHORT: Duration = Duration::from_millis(150);

fn soon() -> CallOptions {
    CallOptions {
        deadline: Some(Instant::now() + SHORT),
        ..CallOptions::default()
    }
}

fn cancelled_by(cancel: &CancellationToken) -> CallOptions {
    CallOptions {
        cancel: cancel.clone(),
        ..CallOptions::default()
    }
}

fn signal(fake: &Fake, signal: Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(fake.pid()), signal).unwrap();
}

/// Spec 12.1 rows 5 and 6: a delivered request is cancelled by a word, and its true answer is what the caller gets.
#[tokio::test]
async fn a_cancelled_request_reports_what_the_executor_answers() {
    for (answer, aborted) in [
        (json!({ "refuse": "aborted" }), true),
        (json!("default"), false),
    ] {
        let (fake, service) = service(&rule("apps.list", json!(["wait_for_cancel", answer])));
        service.ensure_started().await.unwrap();
        let cancel = CancellationToken::new();
        let answered = call_with(&service, Method::AppsList, json!({}), cancelled_by(&cancel));
        let cancelled = async {
            until("it is received", || !fake.received("apps.list").is_empty()).await;
            cancel.cancel();
        };
        let (answer, ()) = tokio::join!(answered, cancelled);
        match answer.unwrap().value {
            Envelope::Refused(refusal, _) => assert!(aborted && refusal.code.as_str() == "aborted"),
            Envelope::Ok(_) => assert!(!aborted),
        }
        assert_eq!(
            fake.received("$/cancel")[0]["params"]["id"],
            fake.received("apps.list")[0]["id"]
        );
        assert_eq!(service.status().state, ServiceState::Ready);
        list_apps_after(&service).await;
    }
}

/// The same executor still works.
async fn list_apps_after(service: &MakaCuService) {
    let Envelope::Ok(_) = call(service, Method::PermissionsCheck, json!({}))
        .await
        .unwrap()
        .value
    else {
        panic!("the executor still works")
    };
}

/// Spec 12.1 row 5: the grace bounds a cancel, not the deadline. Row 7: the word is out before the kill.
#[tokio::test]
async fn an_ignored_cancel_ends_the_generation() {
    for by_deadline in [false, true] {
        let (fake, service) = service_with(&rule("apps.list", json!(["never"])), |options| {
            options.cancel_grace = SHORT
        });
        service.ensure_started().await.unwrap();
        let mut events = service.events();
        let cancel = CancellationToken::new();
        let options = if by_deadline {
            soon()
        } else {
            cancelled_by(&cancel)
        };
        let answered = call_with(&service, Method::AppsList, json!({}), options);
        let cancelled = async {
            until("it is received", || !fake.received("apps.list").is_empty()).await;
            if !by_deadline {
                cancel.cancel();
            }
        };
        let (answer, ()) = tokio::join!(answered, cancelled);
        let error = lifecycle(answer);
        assert_eq!(
            (error.code, error.generation),
            (LifecycleCode::OutcomeUnknown, 1)
        );
        assert_eq!(error.release_reason(), Some(ReleaseReason::RequestTimeout));
        assert_eq!(fake.received("$/cancel").len(), 1);
        let release = release(&mut events).await;
        assert_eq!(
            (release.reason, release.outcome_unknown),
            (ReleaseReason::RequestTimeout, true)
        );
        ready_again(&service, 2).await;
    }
}

/// Design 4: dropping a call cancels that call, and only that call.
#[tokio::test]
async fn dropping_a_call_cancels_it() {
    let (fake, service) = service(&rule(
        "apps.list",
        json!(["wait_for_cancel", { "refuse": "aborted" }]),
    ));
    service.ensure_started().await.unwrap();
    let dropped = async {
        tokio::select! {
            _ = list_apps(&service) => panic!("nothing is answered before the cancel"),
            () = until("it is received", || !fake.received("apps.list").is_empty()) => {}
        }
    };
    dropped.await;
    until("the cancel arrives", || {
        fake.received("$/cancel").len() == 1
    })
    .await;
    list_apps_after(&service).await;
    assert_eq!(service.status().generation, 1);
}

/// Spec 8.4: nothing written, nothing done; the code says so.
#[tokio::test]
async fn what_is_still_queued_is_withdrawn() {
    let script = rule(
        "host.hello",
        json!([{ "wait_for_file": "$HOME/go" }, "default"]),
    );
    let (fake, service) = service(&script);
    let cancel = CancellationToken::new();
    let early = CancellationToken::new();
    early.cancel();
    let already =
        lifecycle(call_with(&service, Method::AppsList, json!({}), cancelled_by(&early)).await);
    assert_eq!(
        (already.code, already.stage),
        (LifecycleCode::Aborted, RequestStage::Queued)
    );

    let while_starting = call_with(&service, Method::AppsList, json!({}), cancelled_by(&cancel));
    let cancelled = async {
        until("it is greeted", || !fake.received("host.hello").is_empty()).await;
        cancel.cancel();
    };
    let error = lifecycle(tokio::join!(while_starting, cancelled).0);
    assert_eq!(
        (error.code, error.stage),
        (LifecycleCode::Aborted, RequestStage::Queued)
    );

    let error = lifecycle(call_with(&service, Method::AppsList, json!({}), soon()).await);
    assert_eq!(
        (error.code, error.stage),
        (LifecycleCode::ServiceUnavailable, RequestStage::Queued)
    );
    assert!(matches!(error.cause, LifecycleCause::DeadlineWhileQueued));

    fake.touch("go");
    list_apps(&service).await.unwrap();
    assert_eq!(
        fake.received("apps.list").len(),
        1,
        "what was withdrawn was never sent"
    );
    assert!(fake.received("$/cancel").is_empty());
}

/// A deadline that has passed is kept even by a ready executor: nothing is sent.
#[tokio::test]
async fn what_comes_too_late_is_not_sent() {
    let (fake, service) = service(&json!({}));
    service.ensure_started().await.unwrap();
    let late = CallOptions {
        deadline: Some(Instant::now()),
        ..CallOptions::default()
    };
    let error = lifecycle(call_with(&service, Method::AppsList, json!({}), late).await);
    assert!(matches!(error.cause, LifecycleCause::DeadlineWhileQueued));
    list_apps_after(&service).await;
    assert!(fake.received("apps.list").is_empty());
}

/// Spec 12.1 row 8: one session's requests are cancelled, and nothing else happens.
#[tokio::test]
async fn clearing_a_session_touches_no_other() {
    let slow = |session: &str, answer: Value| json!({ "method": "window.list", "session": session, "steps": answer });
    let script = json!({ "rules": [
        slow("a", json!(["wait_for_cancel", { "refuse": "aborted" }])),
        slow("b", json!([{ "wait_for_file": "$HOME/go" }, "default"])),
    ] });
    let (fake, service) = service(&script);
    for name in ["a", "b"] {
        begin(&service, name).await;
    }
    let mut events = service.events();
    let list = |name: &'static str| {
        call_with(
            &service,
            Method::WindowList,
            json!({ "session": name }),
            of_session(name),
        )
    };
    let cleared = async {
        until("both are received", || {
            fake.received("window.list").len() == 2
        })
        .await;
        assert!(service.clear_session(&session("a")).await);
        let release = release(&mut events).await;
        assert_eq!(
            (release.reason, release.generation_released),
            (ReleaseReason::SessionCleared, false)
        );
        assert_eq!(
            (release.sessions, release.outcome_unknown),
            (vec![session("a")], true)
        );
        until("the cancel arrives", || {
            !fake.received("$/cancel").is_empty()
        })
        .await;
        fake.touch("go");
    };
    let (a, b, ()) = tokio::join!(list("a"), list("b"), cleared);
    let Envelope::Refused(refusal, _) = a.unwrap().value else {
        panic!("a is aborted")
    };
    assert_eq!(refusal.code.as_str(), "aborted");
    let Envelope::Ok(_) = b.unwrap().value else {
        panic!("b is answered")
    };
    assert_eq!(fake.received("$/cancel").len(), 1);
    assert_eq!(service.status().generation, 1);
    assert!(
        !service.clear_session(&session("a")).await,
        "nothing is in flight any more"
    );
}

/// Spec 12.1 row 14 and field report M2: read and not answered is unknown; the session is named.
#[tokio::test]
async fn death_after_reading_is_unknown() {
    let script =
        json!({ "rules": [{ "method": "window.list", "process": 1, "steps": [{ "die": 9 }] }] });
    let (fake, service) = service(&script);
    begin(&service, "s").await;
    let mut events = service.events();
    let answer = call_with(
        &service,
        Method::WindowList,
        json!({ "session": "s" }),
        of_session("s"),
    )
    .await;
    let error = lifecycle(answer);
    assert_eq!(
        (error.code, error.generation),
        (LifecycleCode::OutcomeUnknown, 1)
    );
    assert!(error.possibly_delivered());
    let release = release(&mut events).await;
    assert_eq!(
        (release.generation, release.reason),
        (1, ReleaseReason::ChildExit)
    );
    assert_eq!(
        (release.sessions, release.outcome_unknown),
        (vec![session("s")], true)
    );
    ready_again(&service, 2).await;
    // Field report A8: the session died with its generation, and nobody begins it again on its own.
    let Err(CallError::Rpc(error)) =
        call(&service, Method::WindowList, json!({ "session": "s" })).await
    else {
        panic!("the new executor does not know the session")
    };
    assert_eq!(error.error.number(), -32002);
    assert_eq!(fake.received("window.list").len(), 2, "nothing is replayed");
}

/// Field report M2, the provable half: written into the pipe and never read had no effect.
#[tokio::test]
async fn death_before_reading_is_provably_nothing() {
    let steps = json!(["default", { "touch": "$HOME/deaf" }, { "wait_for_file": "$HOME/die" }, { "die": 9 }]);
    let script =
        json!({ "rules": [{ "method": "session.begin", "inline": true, "steps": steps }] });
    let (fake, service) = service(&script);
    begin(&service, "s").await;
    let mut events = service.events();
    until("it reads no more", || fake.path("deaf").exists()).await;
    let written = call_with(
        &service,
        Method::WindowList,
        json!({ "session": "s" }),
        of_session("s"),
    );
    let die = async {
        // Clearing says whether a request may have been delivered, which it may from the moment it is written.
        while !service.clear_session(&session("s")).await {
            tokio::task::yield_now().await;
        }
        fake.touch("die");
    };
    let error = lifecycle(tokio::join!(written, die).0);
    assert_eq!(
        (error.code, error.stage),
        (LifecycleCode::ServiceUnavailable, RequestStage::Queued)
    );
    assert!(!error.possibly_delivered());
    let release = loop {
        let release = release(&mut events).await;
        if release.reason != ReleaseReason::SessionCleared {
            break release;
        }
    };
    assert!(!release.outcome_unknown && release.sessions.is_empty());
}

/// A stopped executor takes nothing out of its pipe: killing it for silence leaves the same proof.
#[tokio::test]
async fn a_stopped_executor_did_nothing() {
    let (fake, service) = service_with(&json!({}), |options| options.cancel_grace = SHORT);
    service.ensure_started().await.unwrap();
    signal(&fake, Signal::SIGSTOP);
    until("every thread of it has stopped", || is_stopped(fake.pid())).await;
    let error = lifecycle(call_with(&service, Method::AppsList, json!({}), soon()).await);
    assert_eq!(
        (error.code, error.stage),
        (LifecycleCode::ServiceUnavailable, RequestStage::Queued)
    );
    assert_eq!(error.release_reason(), Some(ReleaseReason::RequestTimeout));
    ready_again(&service, 2).await;
}

/// Spec 8.6: an answer that was written before the death is an answer.
#[tokio::test]
async fn last_words_count() {
    let (_fake, service) = service(&rule("apps.list", json!(["default", { "exit": 0 }])));
    for generation in 1..=2 {
        let Envelope::Ok(_) = list_apps(&service).await.unwrap().value else {
            panic!("it answered")
        };
        ready_again(&service, generation + 1).await;
    }
}

/// A violation found by a caller's reader kills the executor; others in flight learn that their outcome is unknown.
#[tokio::test]
async fn a_violation_found_by_a_reader_kills() {
    let script = json!({ "rules": [
        { "method": "window.list", "steps": ["never"] },
        { "method": "apps.list", "steps": [{ "wait_for_file": "$HOME/go" }, "default"] },
    ] });
    let (fake, service) = service(&script);
    begin(&service, "s").await;
    let mut events = service.events();
    let other = call_with(
        &service,
        Method::WindowList,
        json!({ "session": "s" }),
        of_session("s"),
    );
    let broken = async {
        until("the other is received", || {
            !fake.received("window.list").is_empty()
        })
        .await;
        fake.touch("go");
        let violation = Violation::of("apps", Reason::Contradiction);
        service
            .call_typed(Method::AppsList, json!({}), CallOptions::default(), |_| {
                Err::<(), _>(violation)
            })
            .await
    };
    let (other, broken) = tokio::join!(other, broken);
    let Err(CallError::Violation(violation)) = broken else {
        panic!("the reader's verdict comes back")
    };
    assert_eq!(
        (violation.method, violation.generation),
        (Some(Method::AppsList), 1)
    );
    assert_eq!(
        violation.violation,
        Breach::Field(Violation::of("apps", Reason::Contradiction))
    );
    assert_eq!(violation.code(), LifecycleCode::ServiceMismatch);
    assert_eq!(lifecycle(other).code, LifecycleCode::OutcomeUnknown);
    let release = release(&mut events).await;
    assert_eq!(
        (release.reason, release.outcome_unknown),
        (ReleaseReason::ProtocolViolation, true)
    );
    ready_again(&service, 2).await;
    service.report_violation(1, Method::AppsList, Violation::of("late", Reason::Missing));
    list_apps(&service).await.unwrap();
    assert_eq!(
        service.status().generation,
        2,
        "a verdict on an older generation ends nobody"
    );
}

/// Malformed envelopes and error bodies are violations; well-formed RPC errors leave the executor alone (spec 12.6 row 68).
#[tokio::test]
async fn envelopes_are_held_to_their_form() {
    let rows = [
        (json!({ "result": null }), "violation"),
        (json!({ "result": [] }), "violation"),
        (json!({ "result": { "apps": [] } }), "violation"),
        (json!({ "result": { "ok": "true" } }), "violation"),
        (json!({ "result": { "ok": false } }), "violation"),
        (
            json!({ "result": { "ok": false, "error": { "code": "made_up", "message": "x" } } }),
            "violation",
        ),
        (
            json!({ "raw": "{\"jsonrpc\":\"2.0\",\"id\":$ID}\n" }),
            "violation",
        ),
        (
            json!({ "raw": "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":\"no\"}\n" }),
            "violation",
        ),
        (
            json!({ "error": { "code": -32603, "message": "internal_error" } }),
            "rpc, perhaps after an effect",
        ),
        (
            json!({ "error": { "code": -32050, "message": "made_up" } }),
            "rpc, perhaps after an effect",
        ),
        (
            json!({ "error": { "code": -32602, "message": "invalid_params" } }),
            "rpc, before any effect",
        ),
        (json!({ "refuse": "capture_failed" }), "answer"),
    ];
    for (step, expected) in rows {
        let (_fake, service) = service(&rule("apps.list", json!([step])));
        let seen = match list_apps(&service).await {
            Ok(_) => "answer",
            Err(CallError::Rpc(error)) if CallError::from(error.clone()).possibly_delivered() => {
                "rpc, perhaps after an effect"
            }
            Err(CallError::Rpc(_)) => "rpc, before any effect",
            Err(CallError::Violation(_)) => "violation",
            Err(CallError::Lifecycle(error)) => panic!("{step}: {error:?}"),
        };
        assert_eq!(seen, expected, "{step}");
        if seen == "violation" {
            ready_again(&service, 2).await;
        } else {
            assert_eq!(service.status().generation, 1, "{step}");
            list_apps_after(&service).await;
        }
    }
}

/// A request bound to a generation goes to that generation or nowhere.
#[tokio::test]
async fn a_bound_request_follows_no_successor() {
    let (fake, service) = service(&json!({}));
    let bound_to = |generation| CallOptions {
        generation: Some(generation),
        ..CallOptions::default()
    };
    let error = lifecycle(call_with(&service, Method::AppsList, json!({}), bound_to(1)).await);
    assert!(matches!(error.cause, LifecycleCause::WrongGeneration));
    assert_eq!(
        service.status().state,
        ServiceState::Idle,
        "a refused request starts nothing"
    );
    service.ensure_started().await.unwrap();
    call_with(&service, Method::AppsList, json!({}), bound_to(1))
        .await
        .unwrap();
    signal(&fake, Signal::SIGKILL);
    ready_again(&service, 2).await;
    let error = lifecycle(call_with(&service, Method::AppsList, json!({}), bound_to(1)).await);
    assert_eq!(
        (error.code, error.stage),
        (LifecycleCode::ServiceUnavailable, RequestStage::Queued)
    );
    assert_eq!(fake.received("apps.list").len(), 1);
}

/// Field report F1: one call that hangs delays nobody else, and ends within its deadline and grace.
#[tokio::test]
async fn a_hanging_call_delays_no_other() {
    let script = rule(
        "observe",
        json!(["wait_for_cancel", { "refuse": "timeout" }]),
    );
    let (fake, service) = service(&script);
    begin(&service, "s").await;
    let target = json!({ "kind": "app", "app": "org.example.Notes" });
    let hanging = call_with(
        &service,
        Method::Observe,
        json!({ "session": "s", "target": target }),
        soon(),
    );
    let others = async {
        until("it hangs", || !fake.received("observe").is_empty()).await;
        for _ in 0..20 {
            list_apps(&service).await.unwrap();
        }
    };
    let (hanging, ()) = tokio::join!(hanging, others);
    let Envelope::Refused(refusal, _) = hanging.unwrap().value else {
        panic!("it answers the cancel")
    };
    assert_eq!(refusal.code.as_str(), "timeout");
    assert_eq!(fake.received("$/cancel").len(), 1);
}

/// Ids count up over all generations, so that a late answer can never meet a newer request.
#[tokio::test]
async fn ids_are_never_used_again() {
    let (fake, service) = service(&json!({}));
    list_apps(&service).await.unwrap();
    service.restart().await.unwrap();
    list_apps(&service).await.unwrap();
    let ids: Vec<_> = fake
        .log()
        .iter()
        .filter_map(|line| line["id"].as_u64())
        .collect();
    assert_eq!(ids.len(), 4);
    assert!(ids.is_sorted_by(|one, other| one < other), "{ids:?}");
}

/// More callers than anything holds: each is answered, in order or as busy, none is lost.
#[tokio::test]
async fn a_crowd_is_served_or_told_busy() {
    let script = rule(
        "host.hello",
        json!([{ "wait_for_file": "$HOME/go" }, "default"]),
    );
    let (fake, service) = service(&script);
    let calls = futures(1500, || list_apps(&service));
    let open = async {
        until("it is greeted", || !fake.received("host.hello").is_empty()).await;
        fake.touch("go");
    };
    let (outcomes, ()) = tokio::join!(calls, open);
    let (mut answered, mut busy) = (0, 0);
    for outcome in outcomes {
        match outcome {
            Ok(_) => answered += 1,
            Err(CallError::Lifecycle(error)) if matches!(error.cause, LifecycleCause::Busy) => {
                busy += 1
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(answered + busy, 1500);
    assert!(answered >= 1024, "{answered} answered, {busy} busy");
    assert_eq!(fake.received("apps.list").len(), answered);
}

/// Runs many futures at once on this task.
async fn futures<F: Future>(count: usize, make: impl Fn() -> F) -> Vec<F::Output> {
    let mut running: Vec<_> = (0..count).map(|_| Box::pin(make())).collect();
    let mut done: Vec<Option<F::Output>> = (0..count).map(|_| None).collect();
    std::future::poll_fn(move |context| {
        for (future, slot) in running.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(context)
            {
                *slot = Some(output);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(done.drain(..).flatten().collect())
        } else {
            std::task::Poll::Pending
        }
    })
    .await
}
