//! What can be asked for, and the help that says so.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::decision_log::Anchor;
use crate::project::ProjectName;
use crate::reference::Reference;
use crate::workbench::LoadOptions;

const EXIT_CODES: &str = "A policy is named by its file, or as prebuilt:NAME: maka-floor, allow-all, deny-all, app-list, browser-domains, business-hours,
destructive-controls, rate-limits, read-only or typing-guard.

Exit codes: 0 passed, 1 a case failed or a log is not whole, 2 bad input (a policy that is refused, a fixture with a mistake, a wrong flag),
3 coverage under the minimum.";

const FIXTURE: &str = "A fixture is a YAML or JSON file. Its first document begins with the header; every document is a case:

  schema: maka.policy.fixture/1
  name: a spent snapshot is refused
  mirror:                                  # what the gateway remembers
    - {id: s1, state: spent}
  call:                                    # what is asked for
    hook: admit-dispatch                   # or admit-cdp, review-result
    method: dispatch.element
    claim: {snapshot: s1, element: e1, element_digest: d1}
  expect: {decision: deny, code: snapshot_spent, rules: [snap.state]}

Instead of `call` and `expect` a case can have `steps`, a list of them that share the mirror. Everything else takes a
default; policy-wasm/README.md has the table. Unknown keys are mistakes.";

const NEW: &str = "The project has one real rule, with fixtures that cover it, and builds as it is:

  maka-policy new my-policy
  cd my-policy
  maka-policy build
  maka-policy check my-policy.wasm
  maka-policy test my-policy.wasm fixtures --coverage --min 100 --mutate

The name is that of the folder, the package and the policy: a-z, 0-9 and single dashes, a letter first, at most 48 characters, and none that Rust or this product has taken. A folder that is
there already is left alone. With --language javascript, check and test need --max-module-mib 16 --max-memory-mib 32 --max-fuel 100000000,
because the component carries an engine. The SDK is not on a registry: its source is put into the project as maka/, unless --sdk names another
one, such as policy-wasm/sdk of a checkout.";

const BUILD: &str = "The component is the same on every machine with the same compiler, and holds no name of a folder. The compiler is the first of:
the toolchain on PATH with the target wasm32-unknown-unknown (rustup target add wasm32-unknown-unknown), the same with the source of
its standard library, Debian's (apt-get install --no-install-recommends rustc-web cargo-web rust-web-src lld-22). Without the
target the standard library is built along, which takes a minute the first time; projects share it when --target-dir, or the
variable MAKA_POLICY_TARGET_DIR, names one folder for all of them.

A folder with a package.json is a project in JavaScript: its packages are installed with npm as its lock file says, unless they are
there, its script `build` makes the component, and the manifest is put into it. It needs Node.js with npm.";

const ANCHOR: &str = "A record that was edited or removed ends with 1. That the end was cut off, or that the whole file was rewritten, is
found only with a position that was kept elsewhere: print one now, and give it with --anchor later.";

const REPLAY: &str = "A capture is made with `maka-gateway policy capture`. Without --against the recorded policies are asked, with their recorded
settings: built-in ones are known, others have to be named with --with. A decision differs when the answer of the set does (decision,
code, obligations), or what a policy of the same name says (rules too, and fuel when its component is the same). Policies in monitor
mode are left out. Ends with 1 when a decision differs or none could be compared, with 2 when the file is cut off or was changed.";

/// Start, build, check, run, test, measure and sign a policy, and judge with it the way a gateway would.
#[derive(Debug, Parser)]
#[command(name = "maka-policy", version, after_help = EXIT_CODES)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the project of a new policy.
    #[command(after_help = NEW)]
    New(NewArguments),
    /// Build a project to the component that a gateway loads.
    #[command(after_help = BUILD)]
    Build(BuildArguments),
    /// Put the manifest into a component that another tool made, in any language.
    Wrap(WrapArguments),
    /// Print what a policy says about itself: rules, refusals with their sentences, settings with defaults, limits.
    Inspect(InspectArguments),
    /// Say whether a gateway would load a policy, and what to write instead where it would not.
    Check(CheckArguments),
    /// Explain one call: what every policy says, by which rules, and what that costs.
    #[command(after_long_help = FIXTURE)]
    Run(RunArguments),
    /// Run fixtures against a policy, and say where it does not do what they expect.
    #[command(after_long_help = FIXTURE)]
    Test(TestArguments),
    /// Measure what calls cost: fuel, which is exact, and time and memory on this machine.
    Bench(BenchArguments),
    /// Make a pair of keys, to sign with or to read captures with.
    Keygen(KeygenArguments),
    /// Put a policy that passes its fixtures into a signed bundle.
    Sign(SignArguments),
    /// Check the signature of a bundle, and whether a gateway would load the policy in it.
    Verify(VerifyArguments),
    /// Ask the decisions of a capture again, of the policies that made them or of others.
    #[command(after_help = REPLAY)]
    Replay(ReplayArguments),
    /// Look at a decision log.
    #[command(subcommand)]
    Log(LogCommand),
}

/// What can be done with a decision log.
#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Check that every record follows the one before it, and print the position of the last one.
    #[command(after_help = ANCHOR)]
    Verify(VerifyLogArguments),
}

/// What `new` takes.
#[derive(Debug, Args)]
pub struct NewArguments {
    /// The name of the policy, and of the new folder.
    pub name: ProjectName,
    /// The language to write it in.
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    pub language: Language,
    /// The folder of the SDK to build on, instead of the one that this program carries.
    #[arg(long, value_name = "FOLDER")]
    pub sdk: Option<PathBuf>,
}

/// A language in which a policy can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Rust, with the SDK.
    Rust,
    /// JavaScript, with a small SDK; the component carries an engine of 12 MB.
    #[value(name = "javascript")]
    JavaScript,
}

/// What `build` takes.
#[derive(Debug, Args)]
pub struct BuildArguments {
    /// The folder of the project; the current one, if it is left out.
    pub folder: Option<PathBuf>,
    /// The file for the component, instead of NAME.wasm in the folder of the project.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Fail when Cargo.lock would have to change.
    #[arg(long)]
    pub locked: bool,
    /// Where cargo works, instead of target/policy in the folder of the project.
    #[arg(long, value_name = "FOLDER")]
    pub target_dir: Option<PathBuf>,
}

/// What `wrap` takes.
#[derive(Debug, Args)]
pub struct WrapArguments {
    /// The component, without a manifest.
    pub component: PathBuf,
    /// The manifest: a JSON file.
    #[arg(long, value_name = "FILE")]
    pub manifest: PathBuf,
    /// The file for the policy.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// What `inspect` takes.
#[derive(Debug, Args)]
pub struct InspectArguments {
    /// The policy.
    pub policy: Reference,
    /// Print one JSON object (maka.policy.inspect/1).
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened group shows the docs of its flags")]
    pub load: LoadOptions,
}

/// What `check` takes.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The policy.
    pub policy: Reference,
    /// Print one JSON object (maka.policy.check/1).
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened group shows the docs of its flags")]
    pub load: LoadOptions,
}

/// What `run` takes.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The policy. The floor is asked before it, as in a gateway.
    pub policy: Reference,
    /// The file with the call; its `expect` may be left out.
    pub fixture: PathBuf,
    /// The case of that file.
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    /// A policy that is asked after the first one. May be repeated.
    #[arg(long, value_name = "POLICY")]
    pub with: Vec<Reference>,
    /// Print one JSON object (maka.policy.run/1).
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened group shows the docs of its flags")]
    pub load: LoadOptions,
}

/// What `test` takes.
#[derive(Debug, Args)]
pub struct TestArguments {
    /// The policy. It is asked alone: what the floor says is tested with the floor.
    pub policy: Reference,
    /// Fixture files, and folders of them.
    #[arg(required = true)]
    pub fixtures: Vec<PathBuf>,
    /// Print one JSON object (maka.policy.test/1).
    #[arg(long)]
    pub json: bool,
    /// List the rules that were not seen both in a passing case that allows and in one that refuses.
    #[arg(long)]
    pub coverage: bool,
    /// End with 3 when fewer rules than this are covered, in percent.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub min: Option<u8>,
    /// Flip one fact at a time in every passing case, and fail those whose verdict depends on none.
    #[arg(long)]
    pub mutate: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened group shows the docs of its flags")]
    pub load: LoadOptions,
}

/// What `bench` takes.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// The policy. It is asked alone.
    pub policy: Reference,
    /// The file with the calls; what they expect does not matter.
    pub fixture: PathBuf,
    /// One case of that file, instead of all.
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    /// How often each call is made.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub runs: u32,
    /// Print one JSON object (maka.policy.bench/1).
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened group shows the docs of its flags")]
    pub load: LoadOptions,
}

/// What `log verify` takes.
#[derive(Debug, Args)]
pub struct VerifyLogArguments {
    /// The decision log.
    pub file: PathBuf,
    /// A position that was kept elsewhere, as this command prints it.
    #[arg(long, value_name = "COUNT:DIGEST")]
    pub anchor: Option<Anchor>,
    /// Print one JSON object (maka.policy.log/1).
    #[arg(long)]
    pub json: bool,
}

/// What `keygen` takes.
#[derive(Debug, Args)]
pub struct KeygenArguments {
    /// The new file for the secret key; the public key goes into FILE.pub.
    pub file: PathBuf,
    /// Make a pair for captures: the public key is `audit.capture_key` of a gateway.
    #[arg(long)]
    pub capture: bool,
}

/// What `replay` takes.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// The capture.
    pub capture: PathBuf,
    /// The secret key that reads it.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// A policy to ask behind the floor instead of the recorded ones. May be repeated.
    #[arg(long, value_name = "POLICY")]
    pub against: Vec<Reference>,
    /// The component of a recorded policy. May be repeated.
    #[arg(long, value_name = "POLICY")]
    pub with: Vec<Reference>,
    /// Print one JSON object (maka.policy.replay/1).
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened group shows the docs of its flags")]
    pub load: LoadOptions,
}

/// What `sign` takes.
#[derive(Debug, Args)]
pub struct SignArguments {
    /// The policy.
    pub policy: Reference,
    /// The folder with its fixtures. They have to pass, and become part of the bundle.
    #[arg(long, value_name = "FOLDER")]
    pub fixtures: PathBuf,
    /// The secret key.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// The new file for the bundle.
    #[arg(long, value_name = "BUNDLE")]
    pub out: PathBuf,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened group shows the docs of its flags")]
    pub load: LoadOptions,
}

/// What `verify` takes.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// The bundle.
    pub bundle: PathBuf,
    /// A public key that is trusted. May be repeated.
    #[arg(long, value_name = "FILE", required = true)]
    pub key: Vec<PathBuf>,
    /// Print one JSON object (maka.policy.verify/1).
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened group shows the docs of its flags")]
    pub load: LoadOptions,
}
