//! Clicks the first button of an application, bound to the process that was looked at, and prints what is known of the effect.
//!
//! ```text
//! cargo run -p maka-cu-host --example bound_click -- org.maka.Settings target/debug/maka-cu --back-end virtual
//! ```
//!
//! A click is never sent into the blue: it quotes a snapshot, an element of it and the element's digest, and the executor refuses it
//! when the process, the window or the element is not any more what was seen. The answer in turn is held to the request.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use maka_cu_host::{CallOptions, MakaCuService, Options};
use maka_cu_protocol::ids::{SessionId, ToolCallId};
use maka_cu_protocol::method::Method;
use maka_cu_protocol::results::dispatch::{DispatchExpectation, read_dispatch};
use maka_cu_protocol::results::{ObserveExpectation, read_observe, read_session_begin};
use maka_cu_protocol::roles;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(app), Some(executable)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bound_click APPLICATION EXECUTABLE [ARGUMENT…]".into());
    };
    let app = app.to_str().ok_or("an application's name is text")?;
    run(
        app,
        executable.into(),
        arguments.collect(),
        &mut io::stdout().lock(),
    )
    .await
}

/// The example itself.
pub(crate) async fn run(
    app: &str,
    executable: PathBuf,
    arguments: Vec<OsString>,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let mut options = Options::new(
        executable,
        home.path().join("state"),
        home.path().join("images"),
        env!("CARGO_PKG_VERSION"),
    );
    options.executor_args = arguments;
    let service = MakaCuService::try_new(options)?;
    let outcome = click(app, &service, out).await;
    // Whatever came of it, the executor ends and its images go.
    service.dispose().await;
    outcome
}

async fn click(
    app: &str,
    service: &MakaCuService,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let session = SessionId::try_new("example")?;
    let options = || CallOptions {
        session: Some(session.clone()),
        ..CallOptions::default()
    };
    let params = json!({ "session": "example", "captureScope": "window" });
    let begun = service
        .call_typed(Method::SessionBegin, params, options(), read_session_begin)
        .await?;
    begun.value.into_result()?;

    // The reader is strict, and what it finds wrong ends the executor: nothing unproved comes back from a call.
    let image_dir = service
        .negotiated()
        .ok_or("the executor has ended")?
        .image_dir
        .clone();
    let params = json!({
        "session": "example", "target": { "kind": "app", "app": app }, "includeImage": false,
    });
    let expected = ObserveExpectation {
        image_dir: &image_dir,
        image: false,
        window: None,
    };
    let reader = |result: &_| read_observe(result, &expected);
    let observed = service
        .call_typed(Method::Observe, params, options(), reader)
        .await?;
    let (generation, snapshot) = (observed.generation, observed.value.into_result()?);
    let button = snapshot
        .elements
        .iter()
        .find(|element| element.role.as_str() == roles::BUTTON && element.enabled)
        .ok_or("there is no button to click")?;

    let tool_call_id = ToolCallId::try_new("call_1")?;
    let params = json!({
        "session": "example", "toolCallId": "call_1", "snapshotId": snapshot.snapshot_id.as_str(),
        "elementToken": button.token.as_str(), "expectElementDigest": button.digest.to_string(),
        "action": { "kind": "click", "button": "left", "count": 1 },
        "observeAfter": { "includeImage": false, "settle": "quiesce" },
    });
    let expected = DispatchExpectation {
        tool_call_id: &tool_call_id,
        allow_global_pointer: false,
        pid: Some(snapshot.target.pid),
        image_dir: &image_dir,
        tier: None,
        path: None,
    };
    // The snapshot is worth nothing to another generation, so neither is the click.
    let bound = CallOptions {
        generation: Some(generation),
        ..options()
    };
    let reader = |result: &_| read_dispatch(result, &expected);
    let answer = service
        .call_typed(Method::DispatchElement, params, bound, reader)
        .await?
        .value;
    writeln!(
        out,
        "process {}: {} by {}, effect {}",
        snapshot.target.pid,
        answer.ending.outcome(),
        answer.path,
        answer.effect
    )?;
    Ok(())
}
