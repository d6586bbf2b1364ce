//! Runs the program, and makes components that are wrong in one way.

use std::path::{Path, PathBuf};
use std::process::Command;

use maka_policy_host::manifest::SECTION;
use maka_policy_host::prebuilt::Prebuilt;
use serde_json::{Value, json};
use tempfile::TempDir;

/// What the program did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Standard output as one JSON value.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs the program in `folder`.
pub(crate) fn run_in(folder: &Path, words: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_maka-policy"))
        .args(words)
        .current_dir(folder)
        .output()
        .expect("the program starts");
    Ran {
        status: output.status.code().expect("no signal ends it"),
        out: String::from_utf8(output.stdout).expect("output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("output is UTF-8"),
    }
}

/// Runs the program.
pub(crate) fn run(words: &[&str]) -> Ran {
    run_in(Path::new("."), words)
}

/// A folder with files in it.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("there is room for a folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, and returns its path.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path: PathBuf = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in the folder"))
            .expect("the folder is ours");
        std::fs::write(&path, content).expect("the folder is ours");
        path.to_str().expect("temporary paths are plain").to_owned()
    }
}

/// The manifest of a policy that allows everything.
pub(crate) fn manifest() -> Value {
    json!({
        "schema": "maka.policy.manifest/1", "name": "acme/hours", "version": "1.4.0", "abi": "maka:policy@1",
        "hooks": ["admit-dispatch", "admit-cdp", "review-result"], "facts": [],
        "rules": [{"id": "hours.open", "doc": "Input is sent in opening hours."}],
        "denials": [{"code": "acme.closed", "sentence": "Closed at this hour. Stop.", "retry": "never"}],
        "obligations": ["drop-image"],
        "settings_schema": {"type": "object", "properties": {}},
        "limits": {"fuel": 1_000_000, "memory_mib": 2},
    })
}

/// The built-in policy that allows everything, under another manifest.
pub(crate) fn allowing(manifest: &Value) -> Vec<u8> {
    with_section(
        without_manifest(Prebuilt::AllowAll.bytes()),
        &manifest.to_string(),
    )
}

/// Appends a manifest section.
pub(crate) fn with_section(mut component: Vec<u8>, manifest: &str) -> Vec<u8> {
    let mut payload = leb128(SECTION.len());
    payload.extend(SECTION.as_bytes());
    payload.extend(manifest.as_bytes());
    component.push(0);
    component.extend(leb128(payload.len()));
    component.extend(payload);
    component
}

/// The component without its manifest section, which is the last one.
pub(crate) fn without_manifest(component: &[u8]) -> Vec<u8> {
    let name = SECTION.as_bytes();
    let at = component
        .windows(name.len())
        .rposition(|window| window == name)
        .expect("the component has a manifest");
    // Before the name stand its length in one byte, the section's size, and a zero.
    let start = (at - 7..at - 2)
        .rev()
        .find(|start| {
            component[*start] == 0
                && leb128(component.len() - at + 1) == component[start + 1..at - 1]
        })
        .expect("a section has a head");
    component[..start].to_vec()
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).expect("seven bits"));
    bytes
}
