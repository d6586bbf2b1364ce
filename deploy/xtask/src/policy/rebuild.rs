//! Builds the components, and compares them with the committed ones.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use super::compiler::Compiler;
use crate::workspace::{cargo, root, target_dir};

/// The section that `maka-policy-host` reads.
const SECTION: &str = "maka-policy-manifest";

/// The variable under which the tests of `maka-policy-host` find rebuilt components to compare with the committed ones.
const REBUILT: &str = "MAKA_POLICY_REBUILT";

/// A component that is part of the product.
struct Shipped {
    name: &'static str,
    /// The core module that cargo makes.
    module: &'static str,
    /// Below the root.
    source: &'static str,
}

const SHIPPED: [Shipped; 3] = [
    Shipped {
        name: "maka-floor",
        module: "maka_floor_component.wasm",
        source: "policy-wasm/floor",
    },
    Shipped {
        name: "allow-all",
        module: "allow_all.wasm",
        source: "policy-wasm/policies/allow-all",
    },
    Shipped {
        name: "deny-all",
        module: "deny_all.wasm",
        source: "policy-wasm/policies/deny-all",
    },
];

/// Rebuilds the components and writes them over the committed ones.
pub(super) fn write() -> anyhow::Result<()> {
    let compiler = Compiler::find()?;
    println!("building with {}", compiler.version);
    let built = build(&compiler)?;
    fs::write(folder().join("prebuilt.toml"), record(&compiler, &built))?;
    for (shipped, bytes) in SHIPPED.iter().zip(&built) {
        let file = folder().join(format!("{}.wasm", shipped.name));
        fs::write(&file, bytes)?;
        println!("{} ({} bytes)", file.display(), bytes.len());
    }
    Ok(())
}

/// Rebuilds the components aside and compares. One compiler version gives the same bytes; another one has to give the
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
    println!("building with {}", compiler.version);
    let built = build(&compiler)?;
    if committed == built {
        for (shipped, built) in SHIPPED.iter().zip(&built) {
            println!("{}: the same {} bytes", shipped.name, built.len());
        }
        return Ok(());
    }
    if recorded.get("compiler").and_then(toml::Value::as_str) == Some(&compiler.version) {
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
    cargo([
        "--config",
        &variable,
        "test",
        "--locked",
        // The selection of `cargo xtask test`, so that nothing is built twice.
        "--workspace",
        "--lib",
        "differential",
    ])
}

/// Builds all components, in the order of [`SHIPPED`].
fn build(compiler: &Compiler) -> anyhow::Result<Vec<Vec<u8>>> {
    let modules = compiler.build(&root().join("policy-wasm/Cargo.toml"), &work_dir())?;
    SHIPPED
        .iter()
        .map(|shipped| {
            let module = fs::read(modules.join(shipped.module)).with_context(|| shipped.module)?;
            let component = wit_component::ComponentEncoder::default()
                .validate(true)
                .module(&module)?
                .encode()?;
            let text = String::from_utf8_lossy(&component);
            for folder in [root(), std::env::home_dir().unwrap_or_else(root)] {
                if text.contains(&*folder.to_string_lossy()) {
                    bail!(
                        "{} holds the name of a folder of this machine",
                        shipped.name
                    );
                }
            }
            Ok(with_manifest(component, manifest(shipped)?.as_bytes()))
        })
        .collect()
}

/// The floor writes its manifest from its own tables; the others have a file.
fn manifest(shipped: &Shipped) -> anyhow::Result<String> {
    if shipped.name == maka_floor::manifest::NAME {
        return Ok(maka_floor::manifest::json());
    }
    let file = root().join(shipped.source).join("manifest.json");
    fs::read_to_string(&file).with_context(|| file.display().to_string())
}

/// Appends a custom section to a component: id 0, size, length of the name, name, content.
fn with_manifest(mut component: Vec<u8>, manifest: &[u8]) -> Vec<u8> {
    let mut payload = leb128(SECTION.len());
    payload.extend(SECTION.as_bytes());
    payload.extend(manifest);
    component.push(0);
    component.extend(leb128(payload.len()));
    component.extend(payload);
    component
}

/// An unsigned number in the variable-length form of WebAssembly.
fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).expect("seven bits fit in a byte");
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
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
        .recorded_flags()
        .into_iter()
        .map(toml::Value::String)
        .collect();
    let mut text = format!(
        "# Written by `cargo xtask policy`. The components beside this file, and what made them.\n\n\
         compiler = {}\nflags = {}\n",
        toml::Value::String(compiler.version.clone()),
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
