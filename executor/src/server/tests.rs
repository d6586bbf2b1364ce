//! Test: who answers an id, with jobs that do what no request makes a real one do.

use std::sync::mpsc::{SyncSender, sync_channel};

use maka_cu_protocol::ids::ToolCallId;
use maka_cu_protocol::sets::{Path, Tier};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::backend::virtual_desktop::VirtualDesktop;
use crate::limits;

const SESSION: &str = "s-1";

/// A server over the built-in desktop, after the handshake.
struct Fixture {
    server: Server,
    answers: mpsc::Receiver<Vec<u8>>,
    _images: TempDir,
}

impl Fixture {
    async fn new() -> Self {
        let backend = Arc::new(VirtualDesktop::open(None).unwrap());
        let executor = Executor::new(backend, limits::with_overrides(&[])).unwrap();
        let (sender, answers) = mpsc::channel(ANSWERS_QUEUED);
        let images = tempfile::tempdir().unwrap();
        let mut fixture = Self {
            server: Server::new(Arc::new(executor), sender),
            answers,
            _images: images,
        };
        let hello = json!({ "protocol": "maka.cu/2", "hostPid": std::process::id(),
            "imageDir": fixture._images.path(), "allowGlobalPointer": false });
        assert_eq!(fixture.call("host.hello", hello).await["ok"], true);
        let begin = json!({ "session": SESSION, "captureScope": "window" });
        assert_eq!(fixture.call("session.begin", begin).await["ok"], true);
        fixture
    }

    fn read(&mut self, line: &Value) {
        self.server
            .handle(Incoming::parse(line.to_string().as_bytes()));
    }

    /// Waits for one job to end.
    async fn finish_one(&mut self) {
        let finished = self.server.running.join_next_with_id().await.unwrap();
        self.server.finish(finished);
    }

    /// The answers that were given since the last look.
    fn answered(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.answers.try_recv().ok())
            .map(|line| serde_json::from_slice(&line).unwrap())
            .collect()
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.read(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
        if !self.server.pending.is_empty() {
            self.finish_one().await;
        }
        self.answered().remove(0)["result"].clone()
    }

    async fn observe(&mut self) -> SnapshotId {
        let target = json!({ "kind": "app", "app": "org.maka.Notes" });
        let params = json!({ "session": SESSION, "target": target, "includeImage": false });
        let result = self.call("observe", params).await;
        SnapshotId::try_new(result["snapshot"]["snapshotId"].as_str().unwrap()).unwrap()
    }

    /// Starts a job that does `work`, as if it were a dispatch with this id that quotes the snapshot.
    fn start(
        &mut self,
        id: i64,
        quoted: Option<&SnapshotId>,
        work: impl FnOnce(&Ticket) -> Vec<u8> + Send + 'static,
    ) {
        let name = JobName {
            id: RequestId(id),
            number: self.server.next_job,
        };
        self.server.next_job += 1;
        let ticket = Ticket::default();
        let pending = Pending {
            job: name.number,
            ticket: ticket.clone(),
            quoted: quoted.map(|snapshot| (session(), snapshot.clone())),
            lane: LaneKey::Misc,
            shape: RefusalShape::Dispatch {
                tool_call_id: ToolCallId::try_new("call-1").unwrap(),
                tier: Tier::Ax,
                attempted: Path::AxAction,
            },
            started: true,
        };
        self.server.pending.insert(name.id, pending);
        let handle = self.server.running.spawn_blocking(move || work(&ticket));
        self.server.jobs.insert(handle.id(), (LaneKey::Misc, name));
    }

    /// Starts a job that answers with its mark when it is released.
    fn start_held(&mut self, id: i64, mark: &'static str) -> SyncSender<()> {
        let (release, released) = sync_channel(1);
        self.start(id, None, move |_| {
            released.recv().unwrap();
            json!({ "id": id, "mark": mark }).to_string().into_bytes()
        });
        release
    }
}

fn session() -> SessionId {
    SessionId::try_new(SESSION).unwrap()
}

/// Spec §6.4: what may have been done is never told as an error that reads like "nothing was done".
#[tokio::test]
async fn a_panic_after_the_commit_leaves_the_outcome_unknown() {
    let mut fixture = Fixture::new().await;
    for committed in [false, true] {
        let snapshot = fixture.observe().await;
        fixture.start(9, Some(&snapshot), move |ticket| {
            if committed {
                ticket.commit().unwrap();
            }
            panic!("a bug in a back end")
        });
        fixture.finish_one().await;
        let answers = fixture.answered();
        assert_eq!((answers.len(), &answers[0]["id"]), (1, &json!(9)));
        let mut sessions = fixture.server.executor.sessions();
        let handle = sessions.find(&session()).unwrap();
        let fate = sessions.resolve(&handle, &snapshot, std::time::Instant::now());
        if committed {
            let result = &answers[0]["result"];
            assert_eq!(result["outcome"], "unknown", "{result}");
            assert_eq!(result["error"]["code"], "outcome_unknown");
            assert_eq!(result["toolCallId"], "call-1");
            assert_eq!(fate.err(), Some(DomainCode::SnapshotSpent));
        } else {
            assert_eq!(answers[0]["error"]["code"], -32603);
            assert!(fate.is_ok(), "nothing was done, so the frame is still good");
        }
    }
}

/// An id is free once it was answered, also while the cancelled job of that id still runs.
#[tokio::test]
async fn a_cancelled_job_never_answers_for_the_next_one_of_its_id() {
    let mut fixture = Fixture::new().await;
    let first = fixture.start_held(9, "first");
    fixture.server.cancel(RequestId(9));
    let aborted = fixture.answered();
    assert_eq!(aborted[0]["result"]["error"]["code"], "aborted");
    let second = fixture.start_held(9, "second");
    first.send(()).unwrap();
    fixture.finish_one().await;
    assert!(fixture.answered().is_empty());
    second.send(()).unwrap();
    fixture.finish_one().await;
    let answers = fixture.answered();
    assert_eq!((answers.len(), &answers[0]["mark"]), (1, &json!("second")));
}

#[tokio::test]
async fn a_line_that_is_no_request_does_not_answer_for_one_that_is() {
    let mut fixture = Fixture::new().await;
    let held = fixture.start_held(9, "first");
    fixture.read(&json!({ "id": 9, "method": "apps.list" }));
    fixture.read(&json!({ "id": 8, "method": "apps.list" }));
    let answers = fixture.answered();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&Value::Null, &json!(8)]);
    assert!(answers.iter().all(|one| one["error"]["code"] == -32600));
    held.send(()).unwrap();
    fixture.finish_one().await;
    assert_eq!(fixture.answered()[0]["mark"], "first");
}
