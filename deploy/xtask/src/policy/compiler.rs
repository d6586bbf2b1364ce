//! Finds a compiler that can build for `wasm32-unknown-unknown`, and calls it.
//!
//! There are two ways to have one: a toolchain with the target installed, or a compiler that comes with the source of
//! its own standard library, which is then built along. Debian's packages are of the second kind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::workspace::{root, run};

const TARGET: &str = "wasm32-unknown-unknown";

/// What to do when there is none.
const HOW_TO: &str = "no compiler here can build for wasm32-unknown-unknown. Two ways to get one:
  rustup target add wasm32-unknown-unknown
  apt-get install --no-install-recommends rustc-web cargo-web rust-web-src lld-22   (Debian)";

/// A compiler that can build for WebAssembly.
#[derive(Debug)]
pub(crate) struct Compiler {
    /// The folder of `rustc` and `cargo`, to be put in front of `PATH`; absent for those that are there already.
    folder: Option<PathBuf>,
    sysroot: PathBuf,
    /// The first line of its version: bytes are compared only when this is equal.
    pub(crate) version: String,
    /// The standard library has to be built along.
    builds_std: bool,
}

impl Compiler {
    /// The first of: the toolchain on `PATH` with the target, the same with its library source, Debian's compiler.
    pub(crate) fn find() -> anyhow::Result<Self> {
        for folder in std::iter::once(None).chain(debian().map(Some)) {
            if let Ok(found) = Self::probe(folder) {
                return Ok(found);
            }
        }
        bail!(HOW_TO);
    }

    fn probe(folder: Option<PathBuf>) -> anyhow::Result<Self> {
        let ask = |arguments: &[&str]| output(clean("rustc", folder.as_deref()).args(arguments));
        let sysroot = PathBuf::from(ask(&["--print", "sysroot"])?);
        let version = ask(&["--version"])?;
        let has_target =
            Path::new(&ask(&["--print", "target-libdir", "--target", TARGET])?).is_dir();
        let has_source = source(&sysroot).join("library").is_dir();
        if !has_target && !has_source {
            bail!("neither target nor source");
        }
        Ok(Self {
            folder,
            sysroot,
            version,
            builds_std: !has_target,
        })
    }

    /// The flags, with the folders of this machine left out.
    pub(crate) fn recorded_flags(&self) -> Vec<String> {
        let mut flags = vec![
            "--remap-path-prefix=<library source>=/rustc".to_owned(),
            "--remap-path-prefix=<cargo home>=/cargo".to_owned(),
            "--remap-path-prefix=<repository>=/src".to_owned(),
        ];
        flags.extend(link_flags().map(str::to_owned));
        if self.builds_std {
            flags.push(build_std().to_owned());
        }
        flags
    }

    /// Builds a workspace, and returns the folder of the core modules.
    pub(crate) fn build(&self, manifest: &Path, target_dir: &Path) -> anyhow::Result<PathBuf> {
        let home = std::env::var_os("CARGO_HOME")
            .map(PathBuf::from)
            .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
            .context("there is no home folder")?;
        // The source folder as the compiler names it: it can be a link, and the link is what ends up in the module.
        let remaps = [
            (source(&self.sysroot), "/rustc"),
            (home, "/cargo"),
            (root(), "/src"),
        ];
        let mut flags: Vec<OsString> = Vec::new();
        for (from, to) in remaps {
            let mut flag = OsString::from("--remap-path-prefix=");
            flag.push(from);
            flag.push("=");
            flag.push(to);
            flags.push(flag);
        }
        flags.extend(link_flags().map(OsString::from));

        let mut command = clean("cargo", self.folder.as_deref());
        command
            .args([
                "build",
                "--release",
                "--locked",
                "--target",
                TARGET,
                "--manifest-path",
            ])
            .arg(manifest)
            .arg("--target-dir")
            .arg(target_dir)
            // Unlike `RUSTFLAGS`, this form can hold folders with spaces.
            .env(
                "CARGO_ENCODED_RUSTFLAGS",
                flags.join(std::ffi::OsStr::new("\u{1f}")),
            )
            .current_dir(root());
        if self.builds_std {
            command.arg(build_std()).env("RUSTC_BOOTSTRAP", "1");
        }
        if let Some(linker) = self.linker() {
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        run(&mut command)?;
        Ok(target_dir.join(TARGET).join("release"))
    }

    /// Debian's compiler looks for a linker that its packages do not have. Two others give the same bytes: that of the
    /// package lld-22, and that of a toolchain on `PATH`.
    fn linker(&self) -> Option<PathBuf> {
        let own = |sysroot: &Path| {
            let found = std::fs::read_dir(sysroot.join("lib/rustlib"))
                .ok()?
                .flatten();
            found
                .map(|entry| entry.path().join("bin/rust-lld"))
                .find(|linker| linker.is_file())
        };
        if own(&self.sysroot).is_some() {
            return None;
        }
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| folder.join("wasm-ld-22"))
            .find(|linker| linker.is_file())
            .or_else(|| {
                own(Path::new(
                    &output(clean("rustc", None).args(["--print", "sysroot"])).ok()?,
                ))
            })
    }
}

fn build_std() -> &'static str {
    "-Zbuild-std=core,alloc,std,panic_abort"
}

/// A small stack: a policy needs none, and every page that is touched has to be cleared again.
fn link_flags() -> impl Iterator<Item = &'static str> {
    ["-Clink-arg=-zstack-size=65536"].into_iter()
}

fn source(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib/src/rust")
}

/// The folder of Debian's compiler, which is not on `PATH` where another one is.
fn debian() -> Option<PathBuf> {
    let files = output(Command::new("dpkg").args(["-L", "rustc-web"])).ok()?;
    let compiler = files.lines().find(|line| line.ends_with("/bin/rustc"))?;
    Path::new(compiler).parent().map(Path::to_owned)
}

/// A command that inherits nothing from the cargo and the toolchain that run this program: their variables name the
/// wrong compiler, the wrong target directory and the wrong libraries.
fn clean(program: &str, folder: Option<&Path>) -> Command {
    let path = folder.map_or_else(|| program.into(), |folder| folder.join(program));
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let inherited = text.starts_with("CARGO") && text != "CARGO_HOME"
            || text.starts_with("RUST") && text != "RUSTUP_HOME"
            || text == "LD_LIBRARY_PATH";
        if inherited {
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

fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        bail!("{command:?} ended with {}", output.status);
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
