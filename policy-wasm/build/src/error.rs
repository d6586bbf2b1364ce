//! Why a policy cannot be built.

use std::path::PathBuf;
use std::process::ExitStatus;

/// What to do when there is no compiler.
const HOW_TO: &str = "no compiler here can build for wasm32-unknown-unknown. Two ways to get one:
  rustup target add wasm32-unknown-unknown
  apt-get install --no-install-recommends rustc-web cargo-web rust-web-src lld-22   (Debian)";

/// Why a policy cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no compiler for WebAssembly; the text has the ways to get one.
    #[error("{HOW_TO}")]
    NoCompiler,
    /// There is a compiler, and none of the linkers that it can use.
    #[error(
        "the compiler finds no linker for WebAssembly; install one: apt-get install lld-22   (Debian)"
    )]
    NoLinker,
    /// A program cannot be started.
    #[error("`{program}` cannot be started")]
    Start {
        /// The program.
        program: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A program failed; it has said why on the terminal.
    #[error("`{program}` ended with {status}")]
    Failed {
        /// The program with its first word.
        program: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// What a program printed is not what it should be.
    #[error("`{0}` printed something that is not understood")]
    Output(String),
    /// There is no home folder, so that its name cannot be kept out of the component.
    #[error("there is no home folder; set CARGO_HOME")]
    NoHome,
    /// A file cannot be read.
    #[error("`{path}` cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The folder is no project of one policy.
    #[error(
        "`{0}` is no project of a policy: it needs a Cargo.toml of one package with `crate-type = [\"cdylib\"]`, or a package.json with a script `build`"
    )]
    NoProject(PathBuf),
    /// There is no npm.
    #[error(
        "there is no npm, which a policy in JavaScript needs; install Node.js 20 or newer with npm"
    )]
    NoNpm,
    /// A file is larger than what it should be.
    #[error("`{path}` is larger than {limit} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// The manifest of a project says no usable name.
    #[error("`{0}` is no manifest with a `name` of letters, digits, `-` and `_`")]
    Unnamed(PathBuf),
    /// What should be a component is none.
    #[error("this is not a WebAssembly component, or a damaged one")]
    NotComponent,
    /// The component has a manifest.
    #[error("the component carries a manifest already")]
    Wrapped,
    /// The compiler made something that is no core module.
    #[error("the compiler made something that is not a WebAssembly module")]
    NotModule,
    /// The module has no manifest, or more than one.
    #[error("the policy carries no manifest, or several; write `maka_policy_sdk::policy!(…)` once")]
    Manifest,
    /// No component can be made of the module.
    #[error("no component can be made of the module: {0}")]
    Encode(String),
    /// The component holds the name of a folder.
    #[error(
        "the component holds the name of the folder `{0}`, and would tell it to everyone who gets it"
    )]
    Leak(PathBuf),
}
