//! `build`: from a project to the component that a gateway loads.

use std::path::{Path, PathBuf};

use maka_policy_build::{Compiler, Project};
use maka_policy_host::digest::Digest;

use crate::command_line::BuildArguments;
use crate::error::InputError;
use crate::report::{Exit, Report};

/// Where cargo works, for every build of one shell: projects share what is built for all of them alike.
const TARGET_DIR: &str = "MAKA_POLICY_TARGET_DIR";

/// Carries out the command. Cargo speaks on the terminal meanwhile.
///
/// # Errors
///
/// When there is no compiler for WebAssembly, the project does not compile, or the component cannot be written.
pub fn run(arguments: &BuildArguments) -> Result<Report, InputError> {
    let folder = arguments.folder.as_deref().unwrap_or(Path::new("."));
    let compiler = Compiler::find()?;
    let project = Project::open(&compiler, folder, arguments.locked)?;
    let target_dir = arguments
        .target_dir
        .clone()
        .or_else(|| std::env::var_os(TARGET_DIR).map(PathBuf::from))
        .unwrap_or_else(|| folder.join("target/policy"));
    // Cargo starts in the folder of the project, and this is said from where the author is.
    let target_dir = std::path::absolute(&target_dir).map_err(|source| InputError::Write {
        path: target_dir,
        source,
    })?;
    let component = project.build(&compiler, &target_dir)?;
    let out = match &arguments.out {
        Some(path) => path.clone(),
        None => folder.join(format!("{}.wasm", project.name())),
    };
    replace(&out, &component)?;
    let text = format!(
        "built: {} ({} bytes) with {}\npolicy {}\n",
        out.display(),
        component.len(),
        compiler.version(),
        Digest::of(&component)
    );
    Ok(Report::new(text, Exit::Passed))
}

/// Writes a file whole or not at all: a gateway may be about to read the old one.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), InputError> {
    let failed = |source| InputError::Write {
        path: path.to_owned(),
        source,
    };
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    std::fs::write(&aside, bytes).map_err(failed)?;
    std::fs::rename(&aside, path).map_err(failed)
}
