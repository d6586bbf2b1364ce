//! Clients that this project did not write, for the tests: Python's grpcio, grpcurl and `buf curl`. They come
//! from the package registries by name and version and stay below the target directory.

use std::{path::PathBuf, process::Command};

use crate::workspace::{root, run, target_dir};

/// The vendor's own client; asks for reflection v1, where grpcurl asks for v1alpha.
const BUF: &str = "@bufbuild/buf@1.75.0";

/// Where the tests find the tools. A person who has them elsewhere can set it, and then nothing is installed.
const VARIABLE: &str = "MAKA_TEST_TOOLS";

/// The folder of the tools.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os(VARIABLE).map_or_else(|| target_dir().join("test-tools"), PathBuf::from)
}

/// Installs what is missing. The Python packages are pinned in `tests/python/requirements.txt`.
///
/// # Errors
/// When Python, its venv module, npm or a registry is not there.
pub(crate) fn ensure() -> anyhow::Result<()> {
    let folder = folder();
    if std::env::var_os(VARIABLE).is_some() {
        println!("test clients: those in {}", folder.display());
        return Ok(());
    }
    let requirements = root().join("tests/python/requirements.txt");
    let wanted = format!("{}{BUF}\n", std::fs::read_to_string(&requirements)?);
    let stamp = folder.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        println!("test clients: all there");
        return Ok(());
    }
    println!(
        "test clients: grpcio, grpcurl and buf into {}",
        folder.display()
    );
    std::fs::create_dir_all(&folder)?;
    let venv = folder.join("venv");
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    run(Command::new(venv.join("bin/pip"))
        .args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--requirement",
        ])
        .arg(&requirements))?;
    run(Command::new("npm")
        .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
        .arg(&folder)
        .arg(BUF))?;
    std::fs::write(stamp, wanted)?;
    Ok(())
}
