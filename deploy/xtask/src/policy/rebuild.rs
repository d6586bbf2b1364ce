//! Builds the components, and compares them with the committed ones.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use maka_policy_build::{Compiler, Job, component};
use sha2::{Digest as _, Sha256};

use crate::workspace::{cargo, root, target_dir};

/// The variable under which the tests of `maka-policy-host` find rebuilt components to compare with the committed ones.
const REBUILT: &str = "MAKA_POLICY_REBUILT";

/// A component that is part of the product.
struct Shipped {
    name: &'static str,
    /// The core module that cargo makes.
    module: &'static str,
    /// Below the root.
    source: &'static str,
    manifest: Manifest,
}

/// Where the manifest of a component comes from.
enum Manifest {
    /// The floor writes it from its own tables.
    Floor,
    /// A file beside the source.
    File,
    /// The SDK puts it into the core module.
    Carried,
}

const SHIPPED: [Shipped; 11] = [
    Shipped {
        name: "maka-floor",
        module: "maka_floor_component.wasm",
        source: "policy-wasm/floor",
        manifest: Manifest::Floor,
    },
    Shipped {
        name: "allow-all",
        module: "allow_all.wasm",
        source: "policy-wasm/policies/allow-all",
        manifest: Manifest::File,
    },
    Shipped {
        name: "deny-all",
        module: "deny_all.wasm",
        source: "policy-wasm/policies/deny-all",
        manifest: Manifest::File,
    },
    Shipped {
        name: "app-list",
        module: "app_list.wasm",
        source: "policy-wasm/policies/app-list",
        manifest: Manifest::Carried,
    },
    Shipped {
        name: "browser-domains",
        module: "browser_domains.wasm",
        source: "policy-wasm/policies/browser-domains",
        manifest: Manifest::Carried,
    },
    Shipped {
        name: "business-hours",
        module: "business_hours.wasm",
        source: "policy-wasm/policies/business-hours",
        manifest: Manifest::Carried,
    },
    Shipped {
        name: "destructive-controls",
        module: "destructive_controls.wasm",
        source: "policy-wasm/policies/destructive-controls",
        manifest: Manifest::Carried,
    },
    Shipped {
        name: "rate-limits",
        module: "rate_limits.wasm",
        source: "policy-wasm/policies/rate-limits",
        manifest: Manifest::Carried,
    },
    Shipped {
        name: "read-only",
        module: "read_only.wasm",
        source: "policy-wasm/policies/read-only",
        manifest: Manifest::Carried,
    },
    Shipped {
        name: "typing-guard",
        module: "typing_guard.wasm",
        source: "policy-wasm/policies/typing-guard",
        manifest: Manifest::Carried,
    },
    // Not for use: what the conformance fixtures are run against.
    Shipped {
        name: "conformance",
        module: "conformance.wasm",
        source: "policy-wasm/conformance/rust",
        manifest: Manifest::Carried,
    },
];

/// Rebuilds the components and writes them over the committed ones.
pub(super) fn write() -> anyhow::Result<()> {
    let compiler = Compiler::find()?;
    println!("building with {}", compiler.version());
    let built = build(&compiler)?;
    fs::write(folder().join("prebuilt.toml"), record(&compiler, &built))?;
    for (shipped, bytes) in SHIPPED.iter().zip(&built) {
        let file = folder().join(format!("{}.wasm", shipped.name));
        fs::write(&file, bytes)?;
        println!("{} ({} bytes)", file.display(), bytes.len());
    }
    Ok(())
}

/// Rebuilds the components aside and compares, and runs the native tests of SDK and policies. One compiler version gives the same bytes; another one has to give the
/// same verdicts on everything the tests compare.
pub(super) fn check() -> anyhow::Result<()> {
    let recorded: toml::Table = fs::read_to_string(folder().join("prebuilt.toml"))
        .context("policy-wasm/prebuilt/prebuilt.toml cannot be read")?
        .parse()?;
    let committed = SHIPPED
        .iter()
        .map(|shipped| committed(shipped, &recorded))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let compiler = Compiler::find()?;
    println!("building with {}", compiler.version());
    let built = build(&compiler)?;
    compiler.test(&root().join("policy-wasm/Cargo.toml"), &work_dir())?;
    if committed == built {
        for (shipped, built) in SHIPPED.iter().zip(&built) {
            println!("{}: the same {} bytes", shipped.name, built.len());
        }
        return Ok(());
    }
    if recorded.get("compiler").and_then(toml::Value::as_str) == Some(compiler.version()) {
        let differing: Vec<_> = SHIPPED
            .iter()
            .zip(committed.iter().zip(&built))
            .filter(|(_, (committed, built))| committed != built)
            .map(|(shipped, _)| shipped.name)
            .collect();
        bail!(
            "{}: the committed component is not what the source gives; run `cargo xtask policy` and commit what it writes",
            differing.join(", ")
        );
    }
    println!(
        "notice: the committed components were made by another compiler version, so their verdicts are compared instead of \
         their bytes; the next change of policy code should refresh them with `cargo xtask policy`"
    );
    let aside = work_dir().join("rebuilt");
    fs::create_dir_all(&aside)?;
    for (shipped, bytes) in SHIPPED.iter().zip(&built) {
        fs::write(aside.join(format!("{}.wasm", shipped.name)), bytes)?;
    }
    // The tests run wasmtime; this program does not link it.
    let variable = format!("env.{REBUILT}={:?}", aside.display().to_string());
    // The floor against its corpus, the other policies against their fixtures. The selection is that of `cargo xtask test`, so
    // that nothing is built twice.
    for tests in [
        &["--lib", "differential"][..],
        &["--test", "command", "--", "examples", "conformance"],
    ] {
        let words = ["--config", &variable, "test", "--locked", "--workspace"];
        cargo(words.iter().chain(tests))?;
    }
    Ok(())
}

/// Builds all components, in the order of [`SHIPPED`].
fn build(compiler: &Compiler) -> anyhow::Result<Vec<Vec<u8>>> {
    let modules = compiler.build(&Job {
        manifest: &root().join("policy-wasm/Cargo.toml"),
        target_dir: &work_dir(),
        remaps: Vec::new(),
        locked: true,
    })?;
    let folders: Vec<_> = std::iter::once(root())
        .chain(std::env::home_dir())
        .collect();
    SHIPPED
        .iter()
        .map(|shipped| {
            let module = fs::read(modules.join(shipped.module)).with_context(|| shipped.module)?;
            let component = match shipped.manifest {
                Manifest::Floor => {
                    component::encode_with(&module, maka_floor::manifest::json().as_bytes())
                }
                Manifest::File => {
                    let file = root().join(shipped.source).join("manifest.json");
                    let text = fs::read(&file).with_context(|| file.display().to_string())?;
                    component::encode_with(&module, &text)
                }
                Manifest::Carried => component::encode(&module),
            }
            .with_context(|| shipped.name)?;
            component::check_leaks(&component, &folders).with_context(|| shipped.name)?;
            Ok(component)
        })
        .collect()
}

/// The committed bytes of a component, if they are those of the record.
fn committed(shipped: &Shipped, recorded: &toml::Table) -> anyhow::Result<Vec<u8>> {
    let bytes =
        fs::read(folder().join(format!("{}.wasm", shipped.name))).with_context(|| shipped.name)?;
    let rows = recorded.get("component").and_then(toml::Value::as_array);
    let row = rows
        .into_iter()
        .flatten()
        .find(|row| row.get("name").and_then(toml::Value::as_str) == Some(shipped.name));
    let digest = row
        .and_then(|row| row.get("sha256"))
        .and_then(toml::Value::as_str);
    if digest != Some(&sha256(&bytes)) {
        bail!(
            "{}.wasm is not the file that prebuilt.toml records",
            shipped.name
        );
    }
    Ok(bytes)
}

fn record(compiler: &Compiler, built: &[Vec<u8>]) -> String {
    let flags: Vec<_> = compiler
        .recorded_flags(&[])
        .into_iter()
        .map(toml::Value::String)
        .collect();
    let mut text = format!(
        "# Written by `cargo xtask policy`. The components beside this file, and what made them.\n\n\
         compiler = {}\nflags = {}\n",
        toml::Value::String(compiler.version().to_owned()),
        toml::Value::Array(flags)
    );
    for (shipped, bytes) in SHIPPED.iter().zip(built) {
        text += &format!(
            "\n[[component]]\nname = \"{}\"\nsha256 = \"{}\"\nsource = \"{}\"\n",
            shipped.name,
            sha256(bytes),
            shipped.source
        );
    }
    text
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn folder() -> PathBuf {
    root().join("policy-wasm/prebuilt")
}

/// The target directory of the policies: nothing of it is shared with the ordinary build.
fn work_dir() -> PathBuf {
    Path::new(&target_dir()).join("policy")
}
