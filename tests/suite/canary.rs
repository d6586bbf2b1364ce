//! E10, I12: what a person typed or saw, and what a caller proved itself with, is in no log line at trace
//! level, no decision record, no status and no file that stays, also when the executor dies in the middle.

use std::{fs, path::Path};

use integration_tests::{
    client::{element, on_element, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess, Role},
};
use maka_proto::v1::{LaunchAppRequest, Outcome};
use serde_json::json;

const TYPED: &str = "hunter2-∆-typed-canary";
const TITLE: &str = "title-∆-seen-canary";
const VALUE: &str = "value-∆-seen-canary";
const LAUNCH: &str = "launch-∆-asked-canary";
const STDERR: &str = "stderr-∆-said-canary";

#[tokio::test]
async fn no_output_holds_text_or_tokens() {
    let script = json!({
        "world": {"title": TITLE, "value": VALUE},
        "at_start": [{"complain": STDERR}],
        "rules": [
            {"method": "dispatch.element", "nth": 2, "process": 1, "steps": [{"die": 9}]},
            {"method": "apps.launch", "steps": [{"refuse": "app_not_found"}]},
        ],
    });
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await;
    let agent = gateway.agent();
    let watching = gateway.client(Role::Operator).watch().await;
    let session_id = agent.begin().await;
    let frame = agent
        .snapshot_app(&session_id, "org.example.Notes")
        .await
        .expect("a frame");
    assert!(
        frame
            .target
            .as_ref()
            .is_some_and(|target| target.title.as_deref() == Some(TITLE))
    );
    let name = element(&frame, "AXTextField", "Name");
    assert_eq!(name.value.as_deref(), Some(VALUE));

    let written = agent
        .dispatch(on_element(&session_id, "1", &frame, name, set_value(TYPED)))
        .await
        .expect("allowed");
    let frame = written.snapshot.expect("a fresh frame");
    let name = element(&frame, "AXTextField", "Name");
    let crashed = agent
        .dispatch(on_element(&session_id, "2", &frame, name, set_value(TYPED)))
        .await
        .expect("a result, since it was possibly delivered");
    assert_eq!(crashed.outcome(), Outcome::Unknown);

    let refused = agent
        .dispatch(on_element(&session_id, "3", &frame, name, set_value(TYPED)))
        .await
        .expect_err("a frame of an earlier generation");
    let mut texts = vec![format!("{refused:?}")];
    let launched = agent
        .computer_use
        .clone()
        .launch_app(LaunchAppRequest {
            session_id: session_id.clone(),
            tool_call_id: "4".into(),
            app: LAUNCH.into(),
            ..Default::default()
        })
        .await;
    texts.push(match launched {
        Ok(answer) => format!("{:?}", answer.into_inner().error),
        Err(status) => format!("{status:?}"),
    });
    let stranger = integration_tests::client::Client::new(
        gateway.channel(),
        Some("wrong-∅".trim_end_matches('∅')),
    );
    let unknown = stranger
        .computer_use
        .clone()
        .begin_session(maka_proto::v1::BeginSessionRequest {})
        .await
        .expect_err("not a token");
    texts.push(format!("{unknown:?}"));

    let (folder, told) = tokio::join!(gateway.stop(), watching.rest());
    let told = told.expect("an end in order");
    assert!(told.len() > 10, "actions, a crash, a restart and the end");
    texts.push(format!("{told:?}"));
    // The wire log and the configuration of the test are the only files that may hold them.
    let own = ["wire.jsonl", "script.json"];
    collect(folder.path(), &own, &mut texts);
    let log = fs::read_to_string(folder.path().join("gateway.log")).expect("the gateway's log");
    assert!(log.contains("TRACE"), "the log is at trace level");
    let mut canaries: Vec<String> = [TYPED, TITLE, VALUE, LAUNCH, STDERR, "wrong-"]
        .map(str::to_owned)
        .into();
    canaries.extend(Role::ALL.map(Role::token));
    for canary in canaries {
        for text in &texts {
            if let Some(position) = text.find(&canary) {
                let start = text[..position].rfind('\n').map_or(0, |at| at + 1);
                panic!("{canary} in: {}", &text[start..position + canary.len()]);
            }
        }
    }
}

/// Reads every file below `folder` except the named ones.
fn collect(folder: &Path, except: &[&str], texts: &mut Vec<String>) {
    for entry in fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
    {
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            // The executor's pinned copy is a program, not an output.
            if entry.file_name() != "executors" {
                collect(&entry.path(), except, texts);
            }
        } else if kind.is_file() && !except.iter().any(|name| entry.file_name() == *name) {
            texts.push(
                String::from_utf8_lossy(&fs::read(entry.path()).expect("readable")).into_owned(),
            );
        }
    }
}
