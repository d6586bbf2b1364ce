//! `new`, as far as it needs no compiler for WebAssembly. From the empty folder to a policy that denies in a gateway is
//! the tutorial, which `cargo xtask tutorial` walks.

use std::path::{Path, PathBuf};

use super::support::{Folder, run, run_in};

#[test]
fn a_project_is_complete_and_names_its_policy() {
    let folder = Folder::new();
    let ran = run_in(folder.path(), &["new", "my-policy"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.out.starts_with("created: my-policy\n"), "{}", ran.out);
    let project = folder.path().join("my-policy");
    let files = files(&project);
    for name in [
        ".gitignore",
        "Cargo.lock",
        "Cargo.toml",
        "README.md",
        "fixtures/launch.yaml",
        "maka/sdk/Cargo.toml",
        "maka/wit/policy.wit",
        "manifest.json",
        "src/lib.rs",
    ] {
        assert!(files.contains(&PathBuf::from(name)), "{name} {files:?}");
    }
    for file in &files {
        let text = std::fs::read_to_string(project.join(file)).unwrap();
        for place in ["@NAME@", "@TYPE@", "@SDK@", "@SDKROW@"] {
            assert!(!text.contains(place), "{} {place}", file.display());
        }
    }
    let manifest = std::fs::read_to_string(project.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["name"], "my-policy");
    let source = std::fs::read_to_string(project.join("src/lib.rs")).unwrap();
    assert!(source.contains("policy!(MyPolicy: admit_dispatch);"));
    // What it says that can be done next is what its own README says.
    let readme = std::fs::read_to_string(project.join("README.md")).unwrap();
    for line in ran.out.lines().filter(|line| line.contains(".wasm")) {
        assert!(readme.contains(line.trim()), "{line}");
    }
}

#[test]
fn a_checkout_of_the_sdk_can_be_named() {
    let folder = Folder::new();
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../sdk")
        .canonicalize()
        .unwrap();
    let sdk = sdk.to_str().unwrap();
    let ran = run_in(folder.path(), &["new", "other", "--sdk", sdk]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let cargo = std::fs::read_to_string(folder.path().join("other/Cargo.toml")).unwrap();
    assert!(
        cargo.contains(&format!("{{ path = \"{sdk}\" }}")),
        "{cargo}"
    );
    assert!(!folder.path().join("other/maka").exists());
    let ran = run_in(folder.path(), &["new", "third", "--sdk", "other"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("`other` is not the SDK"), "{ran:?}");
    assert!(!folder.path().join("third").exists());
}

/// Building it needs npm and its registry: `cargo xtask javascript` does.
#[test]
fn a_project_in_javascript_is_complete_and_names_its_policy() {
    let folder = Folder::new();
    let ran = run_in(
        folder.path(),
        &["new", "my-policy", "--language", "javascript"],
    );
    assert_eq!(ran.status, 0, "{ran:?}");
    let project = folder.path().join("my-policy");
    let files = files(&project);
    for name in [
        ".gitignore",
        "README.md",
        "build.mjs",
        "fixtures/launch.yaml",
        "maka/sdk-js/build.mjs",
        "maka/sdk-js/sdk.js",
        "maka/wit/policy.wit",
        "manifest.json",
        "package-lock.json",
        "package.json",
        "src/policy.js",
    ] {
        assert!(files.contains(&PathBuf::from(name)), "{name} {files:?}");
    }
    for file in &files {
        let text = std::fs::read_to_string(project.join(file)).unwrap();
        for place in ["@NAME@", "@TYPE@", "@SDK@", "@SDKROW@"] {
            assert!(!text.contains(place), "{} {place}", file.display());
        }
    }
    let readme = std::fs::read_to_string(project.join("README.md")).unwrap();
    for line in ran.out.lines().filter(|line| line.contains(".wasm")) {
        assert!(readme.contains(line.trim()), "{line}");
    }
    let words = ["new", "b", "--language", "javascript", "--sdk", "x"];
    let ran = run_in(folder.path(), &words);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("--sdk names an SDK for Rust"), "{ran:?}");
    assert!(!folder.path().join("b").exists());
}

/// A machine without npm is told what to install, and nothing is built.
#[test]
fn without_npm_that_is_told() {
    let folder = Folder::new();
    let words = ["new", "lonely", "--language", "javascript"];
    assert_eq!(run_in(folder.path(), &words).status, 0);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_maka-policy"))
        .args(["build", "lonely"])
        .current_dir(folder.path())
        .env("PATH", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("install Node.js"), "{said}");
    assert!(!folder.path().join("lonely/lonely.wasm").exists());
}

/// A component of any tool becomes a policy with its manifest, once.
#[test]
fn a_component_of_another_tool_gets_its_manifest() {
    let folder = Folder::new();
    let bare = folder.write("bare.wasm", b"\0asm\x0d\0\x01\0");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/rust/manifest.json");
    let manifest = manifest.to_str().unwrap();
    let words = ["wrap", &bare, "--manifest", manifest, "--out", "p.wasm"];
    let ran = run_in(folder.path(), &words);
    assert_eq!(ran.status, 0, "{ran:?}");
    let ran = run_in(folder.path(), &["inspect", "p.wasm"]);
    assert!(ran.out.starts_with("conformance 0.1.0\n"), "{ran:?}");
    let again = ["wrap", "p.wasm", "--manifest", manifest, "--out", "q.wasm"];
    let ran = run_in(folder.path(), &again);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("carries a manifest already"), "{ran:?}");
    assert!(!folder.path().join("q.wasm").exists());
}

#[test]
fn what_is_there_is_left_alone() {
    let folder = Folder::new();
    folder.write("mine/notes.txt", "mine");
    let ran = run_in(folder.path(), &["new", "mine"]);
    assert_eq!(ran.status, 2);
    assert!(
        ran.err
            .contains("a file that is there already is left alone"),
        "{ran:?}"
    );
    assert_eq!(
        files(&folder.path().join("mine")),
        [PathBuf::from("notes.txt")]
    );
}

#[test]
fn mistakes_say_what_to_write_instead() {
    let folder = Folder::new();
    for (words, text) in [
        (&["new", "My Policy"][..], "a-z, 0-9 and single dashes"),
        (&["new", "../outside"], "a-z, 0-9 and single dashes"),
        (
            &["new", "a", "--language", "cobol"],
            "[possible values: rust, javascript]",
        ),
        (
            &["new", "a", "--sdk", "nowhere"],
            "`nowhere` cannot be read",
        ),
        (&["build", "nowhere"], "`nowhere` cannot be read"),
        (&["build", "."], "no project of a policy"),
    ] {
        let ran = run_in(folder.path(), words);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{words:?}");
        // Where there is no compiler for WebAssembly, that is what `build` has to say.
        let says = ran.err.contains(text) || ran.err.contains("rustup target add");
        assert!(says, "{words:?} {}", ran.err);
    }
    assert!(run(&["new", "--help"]).out.contains("maka-policy build"));
    assert!(
        run(&["build", "--help"])
            .out
            .contains("rustup target add wasm32-unknown-unknown")
    );
}

/// A machine without a compiler is told the two ways to get one, and nothing is built.
#[test]
fn without_a_compiler_both_ways_are_told() {
    let folder = Folder::new();
    assert_eq!(run_in(folder.path(), &["new", "lonely"]).status, 0);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_maka-policy"))
        .args(["build", "lonely"])
        .current_dir(folder.path())
        .env("PATH", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("rustup target add wasm32-unknown-unknown"),
        "{said}"
    );
    assert!(
        said.contains("apt-get install --no-install-recommends rustc-web"),
        "{said}"
    );
    assert!(!folder.path().join("lonely/lonely.wasm").exists());
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fn walk(folder: &Path, below: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder.join(below)).expect("the folder is ours") {
            let path = below.join(entry.expect("the folder is ours").file_name());
            if folder.join(&path).is_dir() {
                walk(folder, &path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, Path::new(""), &mut found);
    found.sort();
    found
}
