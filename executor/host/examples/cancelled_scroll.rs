//! A scroll that waits behind a slow call is cancelled after a second: it ends in `aborted`, and nothing was scrolled.
//!
//! ```text
//! cargo run -p maka-cu-host --example cancelled_scroll -- com.example.Slow target/debug/maka-cu --back-end virtual --desktop slow.toml
//! ```
//!
//! The executor serves one window's requests in order, so the scroll is read and not begun while the window is looked at. Cancelling
//! sends a word and reports what the executor answers to it; were the scroll under way already, that would be its true outcome.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use maka_cu_host::{Answer, CallOptions, MakaCuService, Options};
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::method::Method;
use maka_cu_protocol::results::{Envelope, ObserveExpectation, read_observe, read_session_begin};
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(app), Some(executable)) = (arguments.next(), arguments.next()) else {
        return Err("usage: cancelled_scroll APPLICATION EXECUTABLE [ARGUMENT…]".into());
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
    let outcome = scroll(app, &service, out).await;
    service.dispose().await;
    outcome
}

async fn scroll(
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

    let image_dir = service
        .negotiated()
        .ok_or("the executor has ended")?
        .image_dir
        .clone();
    let expected = ObserveExpectation {
        image_dir: &image_dir,
        image: false,
        window: None,
    };
    let look = || {
        let params = json!({
            "session": "example", "target": { "kind": "app", "app": app }, "includeImage": false,
        });
        let reader = |result: &_| read_observe(result, &expected);
        service.call_typed(Method::Observe, params, options(), reader)
    };
    let snapshot = look().await?.value.into_result()?;
    let element = snapshot.elements.last().ok_or("the window is empty")?;

    // By its window rather than its application: both requests then wait in the same line from the moment they are read.
    let window = snapshot.target.window();
    let slow = service.call(
        Method::Observe,
        json!({
            "session": "example", "includeImage": false,
            "target": { "kind": "window", "pid": window.pid, "windowId": window.window_id },
        }),
        options(),
    );
    let cancel = CancellationToken::new();
    let scroll = service.call(
        Method::DispatchElement,
        json!({
            "session": "example", "toolCallId": "call_1", "snapshotId": snapshot.snapshot_id.as_str(),
            "elementToken": element.token.as_str(), "expectElementDigest": element.digest.to_string(),
            "action": { "kind": "scroll", "direction": "down", "pages": 1 },
        }),
        CallOptions {
            cancel: cancel.clone(),
            ..options()
        },
    );
    let give_up = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    };
    // The slow call goes on: a cancel ends the request it names, and no other.
    let (slow, scroll, ()) = tokio::join!(slow, scroll, give_up);
    match scroll? {
        Answer {
            value: Envelope::Refused(refusal, _),
            ..
        } => writeln!(out, "the scroll ended in code `{}`", refusal.code)?,
        Answer {
            value: Envelope::Ok(_),
            ..
        } => writeln!(out, "the scroll was done before it could be cancelled")?,
    }
    match slow?.value {
        Envelope::Ok(_) => writeln!(out, "the slow call was answered")?,
        Envelope::Refused(refusal, _) => {
            writeln!(out, "the slow call ended in code `{}`", refusal.code)?;
        }
    }
    Ok(())
}
