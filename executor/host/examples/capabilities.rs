//! Starts an executor, prints who it is, what it can do and which limits it keeps, and ends it again.
//!
//! ```text
//! cargo run -p maka-cu-host --example capabilities -- target/debug/maka-cu --back-end virtual
//! ```

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use maka_cu_host::{MakaCuService, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let executable = arguments
        .next()
        .ok_or("usage: capabilities EXECUTABLE [ARGUMENT…]")?;
    run(
        executable.into(),
        arguments.collect(),
        &mut io::stdout().lock(),
    )
    .await
}

/// The example itself.
pub(crate) async fn run(
    executable: PathBuf,
    arguments: Vec<OsString>,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    // A folder of ours: the private copy that runs and the images live below it.
    let home = tempfile::tempdir()?;
    let mut options = Options::new(
        executable,
        home.path().join("state"),
        home.path().join("images"),
        env!("CARGO_PKG_VERSION"),
    );
    options.executor_args = arguments;
    let service = MakaCuService::try_new(options)?;

    // The first call would start it too; asking explicitly gives the reason when it cannot.
    match service.ensure_started().await {
        Ok(negotiated) => {
            let handshake = &negotiated.handshake;
            let capabilities = &handshake.capabilities;
            writeln!(
                out,
                "{} {}, process {}, generation {}",
                handshake.executor.name,
                handshake.executor.version,
                negotiated.pid,
                negotiated.generation
            )?;
            writeln!(out, "elements: {}", words(&capabilities.element_actions))?;
            writeln!(out, "points: {}", words(&capabilities.point_actions))?;
            writeln!(out, "keys: {}", words(&capabilities.key_actions))?;
            writeln!(
                out,
                "at most {} elements and {} bytes in an answer",
                handshake.limits.max_elements, handshake.limits.max_response_bytes
            )?;
        }
        Err(error) => writeln!(out, "{error}: {}", error.remedy().unwrap_or_default())?,
    }
    service.dispose().await;
    Ok(())
}

fn words(actions: &[impl ToString]) -> String {
    let words: Vec<_> = actions.iter().map(ToString::to_string).collect();
    words.join(" ")
}
