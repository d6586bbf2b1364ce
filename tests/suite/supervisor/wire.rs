//! The child's output: whatever bytes arrive, however they are cut.

use maka_cu_protocol::results::Answer as Arm;
use maka_cu_protocol::results::lists::read_window_list;
use maka_cu_protocol::sets::ReleaseReason;

use super::*;

/// Field report H14, spec 12.1 row 1: lines that are ignored by rule, before and after a good answer.
#[tokio::test]
async fn odd_lines_are_ignored_by_rule() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let rows = [
        "null",
        "[]",
        "42",
        "\"text\"",
        "{}",
        r#"{"id":null}"#,
        r#"{"id":"1","result":{"ok":true}}"#,
        r#"{"id":987654321,"result":{"ok":true}}"#,
        r#"{"id":-1,"result":{"ok":true}}"#,
        r#"{"id":1.5,"result":{"ok":true}}"#,
        r#"{"id":1,"result":{"ok":false}}"#,
        r#"{"method":"capture.frame","params":{}}"#,
        "1e400",
        "not json at all",
        deep.as_str(),
        "\u{feff}",
    ];
    for line in rows {
        let steps = json!([{ "raw": format!("{line}\n") }, "default", { "raw": format!("{line}\r\n\r\n  \n") }]);
        let (_fake, service) = service(&rule("apps.list", steps));
        for _ in 0..1 {
            let Envelope::Ok(_) = list_apps(&service).await.unwrap().value else {
                panic!("{line}")
            };
        }
        let Envelope::Ok(_) = call(&service, Method::PermissionsCheck, json!({}))
            .await
            .unwrap()
            .value
        else {
            panic!("{line}")
        };
        assert_eq!(service.status().generation, 1, "{line}");
    }
}

/// Spec 12.1 row 2: the third line that is no message ends the generation; the count is per generation.
#[tokio::test]
async fn three_lines_that_are_no_messages_end_it() {
    let steps = json!([{ "raw": "null\n4\n" }, { "wait_for_file": "$HOME/go" }, { "raw": "\"text\"\n" }, "never"]);
    let (fake, service) = service(&rule("apps.list", steps));
    service.ensure_started().await.unwrap();
    let mut events = service.events();
    let two = async {
        until("two are out", || !fake.received("apps.list").is_empty()).await;
        let Envelope::Ok(_) = call(&service, Method::PermissionsCheck, json!({}))
            .await
            .unwrap()
            .value
        else {
            panic!("two do no harm")
        };
        fake.touch("go");
    };
    let (answer, ()) = tokio::join!(list_apps(&service), two);
    assert_eq!(
        lifecycle(answer).release_reason(),
        Some(ReleaseReason::ProtocolViolation)
    );
    assert_eq!(
        release(&mut events).await.reason,
        ReleaseReason::ProtocolViolation
    );
    ready_again(&service, 2).await;
}

/// Field report H10: split anywhere, CRLF, blank lines, two objects in one write.
#[tokio::test]
async fn text_survives_every_cut() {
    let text = "é漢😀";
    let entry = json!({ "pid": 1, "windowId": 2, "appId": "a", "layer": 0, "zIndex": 1, "onScreen": true, "title": text });
    let result = json!({ "ok": true, "windows": [entry] });
    let line = json!({ "jsonrpc": "2.0", "id": "$ID", "result": result })
        .to_string()
        .replace("\"$ID\"", "$ID");
    let rows = [
        json!([{ "pieces": 1 }, { "result": result }]),
        json!([{ "pieces": 3 }, { "raw": format!("\r\n \n{line}\r\n") }]),
        json!([{ "raw": format!("{{\"id\":0}}\n{line}\n{{\"id\":0}}\n") }]),
    ];
    for steps in rows {
        let (_fake, service) = service(&rule("window.list", steps.clone()));
        let options = CallOptions::default();
        let answer = service
            .call_typed(
                Method::WindowList,
                json!({ "session": "s" }),
                options,
                read_window_list,
            )
            .await;
        let Arm::Done(list) = answer.unwrap().value else {
            panic!("{steps}")
        };
        assert_eq!(
            list.windows[0].title.as_ref().unwrap().as_str(),
            text,
            "{steps}"
        );
    }
}

/// Spec 12.1 row 3: the bound follows the handshake. Row 16 and field report H11: past it, the generation ends.
#[tokio::test]
async fn the_bound_of_a_line_is_negotiated() {
    let big = "x".repeat(5 * 1024 * 1024);
    let steps = json!([{ "result": { "ok": true, "apps": [], "padding": big } }]);
    for (limit, fits) in [(8 * 1024 * 1024, true), (1024 * 1024, false)] {
        let mut script = rule("apps.list", steps.clone());
        script["limits"] = json!({ "maxResponseBytes": limit });
        let (_fake, service) = service(&script);
        service.ensure_started().await.unwrap();
        let mut events = service.events();
        let answer = list_apps(&service).await;
        if fits {
            let Envelope::Ok(fields) = answer.unwrap().value else {
                panic!("it arrives whole")
            };
            assert_eq!(fields["padding"].as_str().map(str::len), Some(big.len()));
        } else {
            assert_eq!(
                lifecycle(answer).release_reason(),
                Some(ReleaseReason::ProtocolViolation)
            );
            assert_eq!(
                release(&mut events).await.reason,
                ReleaseReason::ProtocolViolation
            );
        }
    }
}

/// Field report H11: many small lines in one burst are no big line; bytes without end are.
#[tokio::test]
async fn floods_are_told_apart() {
    let flood = json!({ "flood_stdout": { "line": "{\"id\":0,\"padding\":\"xxxxxxxxxxxxxxxxxxxxxxxx\"}", "count": 100_000 } });
    let (_fake, many) = service(&rule("apps.list", json!([flood, "default"])));
    let Envelope::Ok(_) = list_apps(&many).await.unwrap().value else {
        panic!("all were well-formed")
    };
    assert_eq!(many.status().generation, 1);

    let endless = json!([{ "flood_stdout_bytes": 200_000_000 }, "default"]);
    let (_fake, one) = service(&rule("apps.list", endless));
    assert_eq!(
        lifecycle(list_apps(&one).await).release_reason(),
        Some(ReleaseReason::ProtocolViolation)
    );
}

/// Field report H9: 64 MB on stderr before the handshake, no newline, no UTF-8.
#[tokio::test]
async fn stderr_is_always_drained() {
    let script = rule(
        "host.hello",
        json!([{ "flood_stderr": 64 * 1024 * 1024 }, "default"]),
    );
    let (_fake, service) = service(&script);
    assert_eq!(service.ensure_started().await.unwrap().generation, 1);
    list_apps(&service).await.unwrap();
}

/// An answer given twice settles once; the second is dropped, and nobody else gets it.
#[tokio::test]
async fn a_second_answer_is_dropped() {
    let (_fake, service) = service(&rule(
        "apps.list",
        json!(["default", { "refuse": "capture_failed" }, "default"]),
    ));
    for _ in 0..3 {
        let Envelope::Ok(_) = list_apps(&service).await.unwrap().value else {
            panic!("the first answer counts")
        };
    }
    assert_eq!(service.status().generation, 1);
}

/// Answers in any order find their callers.
#[tokio::test]
async fn answers_may_come_in_any_order() {
    let script = json!({ "rules": [
        { "method": "apps.list", "nth": 1, "steps": [{ "wait_for_file": "$HOME/go" }, { "refuse": "capture_failed" }] },
        { "method": "apps.list", "nth": 2, "steps": ["default", { "touch": "$HOME/go" }] },
    ] });
    let (_fake, service) = service(&script);
    let (first, second) = tokio::join!(list_apps(&service), list_apps(&service));
    let Envelope::Refused(..) = first.unwrap().value else {
        panic!("the first was refused")
    };
    let Envelope::Ok(_) = second.unwrap().value else {
        panic!("the second was answered")
    };
}

/// An executor that lives on without its output is of no use.
#[tokio::test]
async fn a_closed_output_ends_it() {
    let steps = json!(["close_stdout", "never"]);
    let (_fake, service) = service(
        &json!({ "ignore_eof": true, "rules": [{ "method": "apps.list", "steps": steps }] }),
    );
    service.ensure_started().await.unwrap();
    let mut events = service.events();
    lifecycle(list_apps(&service).await);
    assert_eq!(
        release(&mut events).await.reason,
        ReleaseReason::ProtocolViolation
    );
    ready_again(&service, 2).await;
}

/// Spec 8.3: an executor that takes no more input is as good as ended; what it never took had no effect.
#[tokio::test]
async fn a_closed_input_ends_it() {
    let deaf = json!({ "method": "apps.list", "process": 1, "inline": true, "steps": ["default", "close_stdin"] });
    let (fake, service) = service(&json!({ "ignore_eof": true, "rules": [deaf] }));
    list_apps(&service).await.unwrap();
    until("it reads no more", || {
        !fake.events("end_of_input").is_empty()
    })
    .await;
    let mut events = service.events();
    let error = lifecycle(list_apps(&service).await);
    assert!(!error.possibly_delivered(), "{error:?}");
    let release = release(&mut events).await;
    assert_eq!(
        (release.reason, release.outcome_unknown),
        (ReleaseReason::ChildExit, false)
    );
    ready_again(&service, 2).await;
}
