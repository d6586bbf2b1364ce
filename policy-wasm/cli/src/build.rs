//! `build`: from a project to the component that a gateway loads.

use std::path::{Path, PathBuf};

use maka_policy_build::{Compiler, JavaScript, Project, component};
use maka_policy_host::digest::Digest;

use crate::command_line::{BuildArguments, WrapArguments};
use crate::error::InputError;
use crate::reference::read_file;
use crate::report::{Exit, Report};

/// Where cargo works, for every build of one shell: projects share what is built for all of them alike.
const TARGET_DIR: &str = "MAKA_POLICY_TARGET_DIR";
/// The largest component that gets a manifest: one of componentize-py is 18 MB, more than a gateway accepts.
const COMPONENT_BYTES: u64 = 32 << 20;
/// The largest manifest to put into one; whether it is a manifest is for `check` to say.
const MANIFEST_BYTES: u64 = 1 << 20;

/// Carries out the command. Cargo speaks on the terminal meanwhile.
///
/// # Errors
///
/// When there is no compiler for WebAssembly, the project does not compile, or the component cannot be written.
pub fn run(arguments: &BuildArguments) -> Result<Report, InputError> {
    let folder = arguments.folder.as_deref().unwrap_or(Path::new("."));
    if JavaScript::is_in(folder) {
        let project = JavaScript::open(folder)?;
        let component = project.build()?;
        return written(arguments, project.name(), &component, "npm");
    }
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
    written(arguments, project.name(), &component, compiler.version())
}

/// Puts a manifest into a component.
///
/// # Errors
///
/// When one of them cannot be read, when the component is none or has a manifest, or the result cannot be written.
pub fn wrap(arguments: &WrapArguments) -> Result<Report, InputError> {
    let component = read_file(&arguments.component, COMPONENT_BYTES)?;
    let manifest = read_file(&arguments.manifest, MANIFEST_BYTES)?;
    let policy = component::wrap(&component, &manifest)?;
    replace(&arguments.out, &policy)?;
    let text = format!(
        "wrapped: {} ({} bytes)\npolicy {}\n",
        arguments.out.display(),
        policy.len(),
        Digest::of(&policy)
    );
    Ok(Report::new(text, Exit::Passed))
}

fn written(
    arguments: &BuildArguments,
    name: &str,
    component: &[u8],
    maker: &str,
) -> Result<Report, InputError> {
    let folder = arguments.folder.as_deref().unwrap_or(Path::new("."));
    let out = match &arguments.out {
        Some(path) => path.clone(),
        None => folder.join(format!("{name}.wasm")),
    };
    replace(&out, component)?;
    let text = format!(
        "built: {} ({} bytes) with {maker}\npolicy {}\n",
        out.display(),
        component.len(),
        Digest::of(component)
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
