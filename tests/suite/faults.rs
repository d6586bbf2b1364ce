//! Every way an executor can fail in the middle of a call, as one table: what the caller gets, what a watcher of the status sees,
//! that the next call works, that frames of the dead are refused, and that nothing is sent twice. The wire log of the fake is the
//! witness.
//!
//! One gateway goes through a whole table, so that each row also begins where the fault before it left the gateway. Rows are told
//! apart by a value of their own in the request.

mod actions;
mod frames;
mod own_file;
mod pictures;
mod reads;
mod sessions;
mod unread;

use std::time::Duration;

use integration_tests::{
    client::{Client, element, on_element, set_value},
    gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE},
};
use maka_proto::v1::{
    self, DispatchRequest, DispatchResult, ExecutorState, GetStatusRequest, GetStatusResponse,
};
use serde_json::{Value, json};
use tonic::Status;

const APP: &str = "org.example.Notes";

/// Characters of two, three and four bytes, which no cut may harm (field report H10).
const TITLE: &str = "é漢😀";

/// Whether the executor survives what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The same generation goes on.
    Same,
    /// It is gone, and the next one answers.
    New,
}

/// One gateway over a fake, and one session.
struct Bench {
    gateway: GatewayProcess,
    agent: Client,
    session_id: String,
}

impl Bench {
    /// Rules of a script; the executor may die as often as the table is long, and an ignored cancel costs little.
    async fn start(rules: Value) -> Self {
        let script = json!({
            "rules": rules,
            "limits": { "settleCeilingMs": 1, "treeWalkCeilingMs": 1 },
            "world": { "title": TITLE },
        });
        let mut options = GatewayOptions::new(Executor::Fake(script));
        options.executor_keys =
            "max_restart_attempts = 100\nstable_after_ms = 1\ncancel_grace_ms = 150".into();
        let gateway = GatewayProcess::serving(options).await;
        let agent = gateway.agent();
        let session_id = agent.begin().await;
        Self {
            gateway,
            agent,
            session_id,
        }
    }

    async fn status(&self) -> GetStatusResponse {
        let mut client = self.agent.computer_use.clone();
        client
            .get_status(GetStatusRequest {})
            .await
            .expect("the status can always be had")
            .into_inner()
    }

    /// Polls the status until it is ready in a generation after `after`, and asserts on the way that generations only grow.
    async fn ready_after(&self, after: u64) -> u64 {
        let mut newest = 0;
        let ready = tokio::time::timeout(PATIENCE, async {
            loop {
                let status = self.status().await;
                assert!(status.generation >= newest, "generations only grow");
                newest = status.generation;
                if newest > after && status.executor_state() == ExecutorState::Ready {
                    return newest;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        ready
            .await
            .unwrap_or_else(|_| panic!("no generation after {after}: {}", self.gateway.log()))
    }

    async fn frame(&self) -> v1::Snapshot {
        let frame = self
            .agent
            .snapshot_app(&self.session_id, APP)
            .await
            .expect("a ready executor gives a frame");
        has_its_title(&frame);
        frame
    }

    /// Writes a text of its own into the text field of a frame.
    fn write(&self, key: &str, frame: &v1::Snapshot) -> DispatchRequest {
        let field = element(frame, "AXTextField", "Name");
        on_element(&self.session_id, key, frame, field, set_value(key))
    }

    /// How often the executors read a dispatch with this key.
    fn sent(&self, key: &str) -> usize {
        self.gateway
            .wire()
            .iter()
            .filter(|line| line["params"]["toolCallId"] == key && line["event"].is_null())
            .count()
    }

    /// What became of the generation, and that everything works afterwards.
    async fn goes_on(&self, name: &str, before: u64, then: Then, old: &v1::Snapshot) {
        match then {
            Then::Same => {
                let status = self.status().await;
                assert_eq!(
                    (status.generation, status.executor_state()),
                    (before, ExecutorState::Ready),
                    "{name}: the executor goes on"
                );
            }
            Then::New => {
                let now = self.ready_after(before).await;
                assert_eq!(now, before + 1, "{name}: one fault costs one generation");
                let key = format!("{name}, with an old frame");
                let refused = self
                    .agent
                    .dispatch(self.write(&key, old))
                    .await
                    .expect_err("frames die with their generation");
                assert_eq!(
                    integration_tests::client::metadata(&refused, "retry").as_deref(),
                    Some("after_observe"),
                    "{name}: {refused:?}"
                );
                assert_eq!(self.sent(&key), 0, "{name}: nothing was sent");
            }
        }
        let key = format!("{name}, afterwards");
        let frame = self.frame().await;
        let result = self.agent.dispatch(self.write(&key, &frame)).await;
        assert_eq!(said(&result), "OK CONFIRMED", "{name}: the next call works");
        assert_eq!(self.sent(&key), 1, "{name}");
    }
}

fn has_its_title(frame: &v1::Snapshot) {
    let title = frame
        .target
        .as_ref()
        .and_then(|target| target.title.as_deref());
    assert_eq!(title, Some(TITLE));
}

/// A result in one line: the outcome, then what tells it from others with this outcome.
fn said(result: &Result<DispatchResult, Status>) -> String {
    let result = match result {
        Ok(result) => result,
        Err(status) => return status_line(status),
    };
    let mut words = vec![
        result
            .outcome()
            .as_str_name()
            .trim_start_matches("OUTCOME_")
            .to_owned(),
        result
            .effect()
            .as_str_name()
            .trim_start_matches("EFFECT_")
            .to_owned(),
    ];
    if let Some(error) = &result.error {
        words.push(error.code.clone());
    }
    if result.release_reason.is_some() {
        let reason = result.release_reason().as_str_name();
        words.push(reason.trim_start_matches("RELEASE_REASON_").to_owned());
    }
    if let Some(error) = &result.observation_error {
        words.push(format!("no frame: {}", error.code));
    }
    words.join(" ")
}

/// A status in one line.
fn status_line(status: &Status) -> String {
    format!(
        "{:?} {}",
        status.code(),
        integration_tests::client::reason(status)
    )
}
