//! Test: reports of one child that arrive in the unlucky order. The exit and the output come on two channels, so the order of the
//! reports is not the order of the events; here each order is dealt by hand, around a real child.

use std::sync::Arc;
use std::time::Duration;

use maka_cu_protocol::handshake::Handshake;
use maka_cu_protocol::json::{Reason, Violation};
use maka_cu_protocol::rpc::{ResponseBody, RpcError};
use serde_json::json;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Input, MAILBOX, Shared, State, Supervisor};
use crate::environment::ChildEnvironment;
use crate::options::{ExecutableDigest, Options, RestartPolicy};
use crate::process::SpawnOrder;
use crate::status::{Pin, PinKind, Status};
use crate::streams::FromChild;

const PATIENCE: Duration = Duration::from_secs(30);

/// A supervisor whose child has read the handshake, has ended, and is known to have ended; what it said is still to come.
async fn ended_while_greeting(folder: &std::path::Path) -> Supervisor {
    let options = Options {
        restart: RestartPolicy::OnDemand,
        ..Options::new("/bin/sh", folder, folder.join("images"), "0")
    };
    let (_, mailbox) = mpsc::channel(MAILBOX);
    let (status, _) = watch::channel(Status::initial());
    let (events, _) = broadcast::channel(16);
    let shared = Arc::new(Shared::new(options));
    let mut supervisor =
        Supervisor::new(shared, mailbox, status, events, CancellationToken::new()).unwrap();
    let order = SpawnOrder {
        program: "/bin/sh".into(),
        args: ["-c", "read hello; exit 78"].map(Into::into).into(),
        environment: ChildEnvironment::from_host([]),
    };
    let child = supervisor.forker.spawn(order).await.unwrap();
    supervisor.next_generation(Pin {
        digest: ExecutableDigest::from_bytes([0; 32]),
        kind: PinKind::PrivateCopy,
        pinned: false,
    });
    supervisor.greet(child, folder.join("images"));
    supervisor.pump();
    let State::Greeting { child } = &mut supervisor.state else {
        panic!("the child is asked who it is")
    };
    let exit = timeout(PATIENCE, &mut child.exit).await.unwrap().unwrap();
    supervisor.react(Input::Exited(exit));
    assert!(matches!(supervisor.state, State::Ending(_)));
    supervisor
}

/// A child of another version answers and exits at once (spec 2.3): heard of in either order, the mismatch stays one.
#[tokio::test]
async fn the_answer_of_a_child_that_is_gone_already_still_tells_why() {
    let violation = Violation::of("result", Reason::Missing);
    let rows: [(ResponseBody, &str, bool); 5] = [
        (
            ResponseBody::Error(RpcError::version_mismatch()),
            "version_mismatch",
            false,
        ),
        (
            ResponseBody::Result(json!({ "ok": true, "protocol": "maka.cu/9" })),
            "version_mismatch",
            false,
        ),
        (
            ResponseBody::Malformed(violation),
            "handshake_violation",
            false,
        ),
        (
            ResponseBody::Error(RpcError::new(maka_cu_protocol::rpc::RpcCode::InternalError)),
            "handshake_rpc_error",
            true,
        ),
        (ResponseBody::Result(good_handshake()), "exited_early", true),
    ];
    for (body, reason, again) in rows {
        let folder = tempfile::tempdir().unwrap();
        let mut supervisor = ended_while_greeting(folder.path()).await;
        supervisor.react(Input::Child(FromChild::Response { id: 1, body }));
        supervisor.react(Input::Child(FromChild::OutputClosed));
        let last = supervisor.last_failure.as_ref().unwrap();
        assert_eq!(last.failure.reason(), reason);
        assert_eq!(
            matches!(supervisor.state, State::BackingOff { .. }),
            again,
            "{reason}: {:?}",
            supervisor.state
        );
    }
}

pub(super) fn good_handshake() -> serde_json::Value {
    let limits = maka_cu_protocol::handshake::Limits::default();
    let value = json!({
        "ok": true, "protocol": "maka.cu/2", "executor": { "name": "x", "version": "0" }, "pid": 1,
        "capabilities": { "captureStream": false, "elementActions": [], "pointActions": [], "keyActions": [],
            "imageFormats": ["png"] },
        "limits": maka_cu_protocol::json::Json::write(&limits),
    });
    let handshake: Result<Handshake, Violation> = maka_cu_protocol::json::Json::read(&value);
    assert!(handshake.is_ok(), "the row is about a good handshake");
    value
}

/// Ends that are reported twice, or of nothing, change nothing and end nobody.
#[tokio::test]
async fn an_end_without_a_child_is_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut supervisor = ended_while_greeting(folder.path()).await;
    supervisor.hello_timed_out();
    assert!(matches!(supervisor.state, State::Ending(_)));
    supervisor.react(Input::Child(FromChild::OutputClosed));
    supervisor.hello_timed_out();
    supervisor.mute_for_good();
    assert!(matches!(supervisor.state, State::BackingOff { .. }));
}
