//! Finds a compiler that can build for `wasm32-unknown-unknown`, and calls it.
//!
//! There are two ways to have one: a toolchain with the target installed, or a compiler that comes with the source of
//! its own standard library, which is then built along. Debian's packages are of the second kind.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::error::BuildError;
use crate::process::{clean, output, run};

const TARGET: &str = "wasm32-unknown-unknown";

/// A compiler that can build for WebAssembly.
#[derive(Debug)]
pub struct Compiler {
    /// The folder of `rustc` and `cargo`, to be put in front of `PATH`; absent for those that are there already.
    folder: Option<PathBuf>,
    sysroot: PathBuf,
    version: String,
    /// The standard library has to be built along.
    builds_std: bool,
    linker: Option<PathBuf>,
}

/// What is to be built.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    /// The `Cargo.toml` of a package or a workspace.
    pub manifest: &'a Path,
    /// Where everything is put that is made on the way.
    pub target_dir: &'a Path,
    /// Folders of this machine whose names must not get into a module, with what stands there instead. The library
    /// source and cargo's home are left out anyway.
    pub remaps: Vec<(PathBuf, String)>,
    /// Refuse when `Cargo.lock` would have to change.
    pub locked: bool,
}

impl Compiler {
    /// The first of: the toolchain on `PATH` with the target, the same with its library source, Debian's compiler.
    ///
    /// # Errors
    ///
    /// When there is none, or none with a linker.
    pub fn find() -> Result<Self, BuildError> {
        let mut failure = BuildError::NoCompiler;
        for folder in std::iter::once(None).chain(debian().map(Some)) {
            match Self::probe(folder) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(error @ BuildError::NoLinker) => failure = error,
                // A compiler that does not even answer is as good as none.
                Err(_) => {}
            }
        }
        Err(failure)
    }

    fn probe(folder: Option<PathBuf>) -> Result<Option<Self>, BuildError> {
        let ask = |arguments: &[&str]| output(clean("rustc", folder.as_deref()).args(arguments));
        let sysroot = PathBuf::from(ask(&["--print", "sysroot"])?);
        let version = ask(&["--version"])?;
        let has_target =
            Path::new(&ask(&["--print", "target-libdir", "--target", TARGET])?).is_dir();
        if !has_target && !source(&sysroot).join("library").is_dir() {
            return Ok(None);
        }
        let linker = linker(&sysroot)?;
        Ok(Some(Self {
            folder,
            sysroot,
            version,
            builds_std: !has_target,
            linker,
        }))
    }

    /// The first line of its version: bytes are compared only when this is equal.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether the standard library is built along, which takes a minute the first time.
    #[must_use]
    pub fn builds_std(&self) -> bool {
        self.builds_std
    }

    /// The flags, with the folders of this machine left out.
    #[must_use]
    pub fn recorded_flags(&self, remaps: &[(&str, &str)]) -> Vec<String> {
        let own = [("library source", "/rustc"), ("cargo home", "/cargo")];
        let mut flags: Vec<_> = own
            .iter()
            .chain(remaps)
            .map(|(from, to)| format!("--remap-path-prefix=<{from}>={to}"))
            .collect();
        flags.push(STACK.to_owned());
        if self.builds_std {
            flags.push(BUILD_STD.to_owned());
        }
        flags
    }

    /// Builds a package or a workspace, and returns the folder of the core modules. Cargo speaks on the terminal.
    ///
    /// # Errors
    ///
    /// When it does not compile.
    pub fn build(&self, job: &Job<'_>) -> Result<PathBuf, BuildError> {
        // The source folder as the compiler names it: it can be a link, and the link is what ends up in the module.
        let own = [
            (source(&self.sysroot), "/rustc".to_owned()),
            (cargo_home()?, "/cargo".to_owned()),
        ];
        let mut flags: Vec<OsString> = own
            .iter()
            .chain(&job.remaps)
            .map(|(from, to)| {
                let mut flag = OsString::from("--remap-path-prefix=");
                flag.push(from);
                flag.push("=");
                flag.push(to);
                flag
            })
            .collect();
        flags.push(OsString::from(STACK));

        let mut command = clean("cargo", self.folder.as_deref());
        command
            .args(["build", "--release", "--target", TARGET, "--manifest-path"])
            .arg(job.manifest)
            .arg("--target-dir")
            .arg(job.target_dir)
            // Unlike `RUSTFLAGS`, this form can hold folders with spaces.
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join(OsStr::new("\u{1f}")));
        // Cargo reads configuration files from the folder it starts in and those above: the project's, not ours.
        if let Some(folder) = job.manifest.parent() {
            command.current_dir(folder);
        }
        if job.locked {
            command.arg("--locked");
        }
        if self.builds_std {
            command.arg(BUILD_STD).env("RUSTC_BOOTSTRAP", "1");
        }
        if let Some(linker) = &self.linker {
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        run(&mut command)?;
        Ok(job.target_dir.join(TARGET).join("release"))
    }

    /// Runs the native tests of a workspace. They share with [`build`](Self::build) what runs while compiling, which is
    /// most of it.
    ///
    /// # Errors
    ///
    /// When they do not compile, or one fails.
    pub fn test(&self, manifest: &Path, target_dir: &Path) -> Result<(), BuildError> {
        let version = output(clean("rustc", self.folder.as_deref()).arg("-vV"))?;
        let host = version
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .ok_or_else(|| BuildError::Output("rustc -vV".to_owned()))?;
        // The profile is for small modules; tests would only link longer.
        let words = [
            "test",
            "--quiet",
            "--release",
            "--locked",
            "--config",
            "profile.release.lto=false",
        ];
        let mut command = clean("cargo", self.folder.as_deref());
        command
            .args(words)
            .args(["--target", host, "--manifest-path"])
            .arg(manifest)
            .arg("--target-dir")
            .arg(target_dir);
        run(&mut command)
    }

    /// What cargo knows about a package and everything it depends on.
    ///
    /// # Errors
    ///
    /// When the package cannot be understood, or its dependencies cannot be had.
    pub fn metadata(&self, manifest: &Path, locked: bool) -> Result<Value, BuildError> {
        let mut command = clean("cargo", self.folder.as_deref());
        command
            .args([
                "metadata",
                "--format-version",
                "1",
                "--filter-platform",
                TARGET,
                "--manifest-path",
            ])
            .arg(manifest)
            .stderr(std::process::Stdio::inherit());
        if locked {
            command.arg("--locked");
        }
        let text = output(&mut command)?;
        serde_json::from_str(&text).map_err(|_| BuildError::Output("cargo metadata".to_owned()))
    }
}

const BUILD_STD: &str = "-Zbuild-std=core,alloc,std,panic_abort";

/// A small stack: a policy needs none, and every page that is touched has to be cleared again.
const STACK: &str = "-Clink-arg=-zstack-size=65536";

fn source(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib/src/rust")
}

fn cargo_home() -> Result<PathBuf, BuildError> {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .ok_or(BuildError::NoHome)
}

/// The folder of Debian's compiler, which is not on `PATH` where another one is.
fn debian() -> Option<PathBuf> {
    let files = output(Command::new("dpkg").args(["-L", "rustc-web"])).ok()?;
    let compiler = files.lines().find(|line| line.ends_with("/bin/rustc"))?;
    Path::new(compiler).parent().map(Path::to_owned)
}

/// The linker to name, or none when the compiler has its own. Debian's compiler looks for one that its packages do not
/// have. Two others give the same bytes: that of the package lld-22, and that of a toolchain on `PATH`.
fn linker(sysroot: &Path) -> Result<Option<PathBuf>, BuildError> {
    let own = |sysroot: &Path| {
        let found = std::fs::read_dir(sysroot.join("lib/rustlib"))
            .ok()?
            .flatten();
        found
            .map(|entry| entry.path().join("bin/rust-lld"))
            .find(|linker| linker.is_file())
    };
    if own(sysroot).is_some() {
        return Ok(None);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join("wasm-ld-22"))
        .find(|linker| linker.is_file())
        .or_else(|| {
            let sysroot = output(clean("rustc", None).args(["--print", "sysroot"])).ok()?;
            own(Path::new(&sysroot))
        })
        .map(Some)
        .ok_or(BuildError::NoLinker)
}
