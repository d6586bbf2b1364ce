//! Starts programs that inherit nothing from the cargo and the toolchain around this program: their variables name the
//! wrong compiler, the wrong target directory and the wrong libraries.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::error::BuildError;

/// A command with a clean environment. `folder` is where the program lies, when it is not found on `PATH`.
pub(crate) fn clean(program: &str, folder: Option<&Path>) -> Command {
    let path = folder.map_or_else(|| program.into(), |folder| folder.join(program));
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        if is_inherited(&name) {
            command.env_remove(name);
        }
    }
    if let Some(folder) = folder {
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&rest));
        if let Ok(joined) = std::env::join_paths(folders) {
            command.env("PATH", joined);
        }
    }
    command
}

/// The variables that speak of another build. Where registries are and how the network is reached stays.
fn is_inherited(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_place = ["CARGO_HOME", "RUSTUP_HOME"].contains(&&*name);
    let is_network = [
        "CARGO_HTTP_",
        "CARGO_NET_",
        "CARGO_REGISTR",
        "CARGO_SOURCE_",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix));
    (name.starts_with("CARGO") || name.starts_with("RUST") || name == "LD_LIBRARY_PATH")
        && !is_place
        && !is_network
}

/// Runs a command, with its output on the terminal.
pub(crate) fn run(command: &mut Command) -> Result<(), BuildError> {
    let status = command.status().map_err(|source| BuildError::Start {
        program: name(command),
        source,
    })?;
    if status.success() {
        return Ok(());
    }
    Err(BuildError::Failed {
        program: name(command),
        status,
    })
}

/// Runs a command, and returns what it prints.
pub(crate) fn output(command: &mut Command) -> Result<String, BuildError> {
    let output = command.output().map_err(|source| BuildError::Start {
        program: name(command),
        source,
    })?;
    if !output.status.success() {
        return Err(BuildError::Failed {
            program: name(command),
            status: output.status,
        });
    }
    let text = String::from_utf8(output.stdout).map_err(|_| BuildError::Output(name(command)))?;
    Ok(text.trim().to_owned())
}

fn name(command: &Command) -> String {
    let program = command.get_program().display().to_string();
    match command.get_args().next() {
        Some(word) => format!("{program} {}", word.display()),
        None => program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_another_build_are_left_behind() {
        for (name, inherited) in [
            ("CARGO", true),
            ("CARGO_TARGET_DIR", true),
            ("CARGO_ENCODED_RUSTFLAGS", true),
            ("CARGO_BUILD_TARGET", true),
            ("RUSTC", true),
            ("RUSTFLAGS", true),
            ("RUSTC_WRAPPER", true),
            ("RUSTUP_TOOLCHAIN", true),
            ("LD_LIBRARY_PATH", true),
            ("CARGO_HOME", false),
            ("RUSTUP_HOME", false),
            ("CARGO_HTTP_PROXY", false),
            ("CARGO_REGISTRIES_MINE_INDEX", false),
            ("PATH", false),
            ("HOME", false),
        ] {
            assert_eq!(is_inherited(OsStr::new(name)), inherited, "{name}");
        }
    }
}
