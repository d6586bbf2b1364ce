//! Finds the workspace's programs beside the running test binary.
//!
//! `CARGO_BIN_EXE_*` is seen only by the package that owns a program, so the programs are built by a step of their own, and a test
//! that misses one says which.

use std::path::{Path, PathBuf};

/// The built program `name` of the same profile as the running test.
///
/// # Panics
/// When it is not built; the message says how to build it.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a running program has a path");
    // target/<profile>/deps/suite-<hash>, or target/<profile>/<program>.
    let folders = this.ancestors().skip(1).take(2);
    let candidates: Vec<PathBuf> = folders.map(|folder| folder.join(name)).collect();
    candidates.iter().find(|path| path.is_file()).cloned().unwrap_or_else(|| {
        panic!(
            "`{name}` is not built (looked for {}); run `cargo build --workspace --bins` with the same profile first",
            candidates.last().expect("two candidates").display()
        )
    })
}

/// The root of the workspace.
#[must_use]
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies inside the workspace")
        .to_owned()
}
