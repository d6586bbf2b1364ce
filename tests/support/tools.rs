//! Clients that this project did not write: Python with grpcio, grpcurl, `buf curl`. `cargo xtask test` installs
//! them and says where in `MAKA_TEST_TOOLS`.

use std::{
    env,
    ffi::OsString,
    path::PathBuf,
    process::{Command, Output},
};

/// A tool by its path below the folder of the tools.
///
/// # Panics
/// When the tools are not there: the text says which command installs them.
fn tool(below: &str) -> PathBuf {
    let folder = env::var_os("MAKA_TEST_TOOLS").map_or_else(
        || crate::binaries::workspace_root().join("target/test-tools"),
        PathBuf::from,
    );
    let path = folder.join(below);
    assert!(
        path.exists(),
        "{} is not there; `cargo xtask test` installs it",
        path.display()
    );
    path
}

/// `grpcurl`, which asks for reflection v1alpha.
#[must_use]
pub fn grpcurl() -> Command {
    Command::new(tool("venv/bin/grpcurl"))
}

/// `buf`, which asks for reflection v1.
#[must_use]
pub fn buf() -> Command {
    Command::new(tool("node_modules/.bin/buf"))
}

/// Python with grpcio and grpcio-reflection.
#[must_use]
pub fn python() -> Command {
    Command::new(tool("venv/bin/python"))
}

/// Runs a command off the runtime's threads and returns what it printed.
///
/// # Panics
/// When it cannot be started.
pub async fn run(mut command: Command) -> Output {
    let name = format!("{command:?}");
    tokio::task::spawn_blocking(move || command.output())
        .await
        .expect("not cancelled")
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What a command printed on stdout, after it succeeded.
///
/// # Panics
/// When it failed: the text holds both of its streams.
pub async fn stdout(command: Command) -> String {
    let name = format!("{command:?}");
    let output = run(command).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{name}: {}\n{text}\n{errors}",
        output.status
    );
    text
}

/// A `PATH` on which the tools come first, for command lines that a person would paste.
///
/// # Panics
/// When the tools are not there: the text says which command installs them.
#[must_use]
pub fn path_with_tools() -> OsString {
    let mut folders = vec![tool("venv/bin"), tool("node_modules/.bin")];
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    env::join_paths(folders).expect("folders of a PATH hold no separator")
}
