//! The conformance fixtures, against the reference policy on the Rust SDK.

use std::path::PathBuf;

use super::support::{Folder, run};

fn below(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    folder.join(name).display().to_string()
}

/// Spec policy.md §3, item 8. `cargo xtask policy --check` names a folder of components that another compiler made.
#[test]
fn conformance_of_the_rust_sdk() {
    let policy = std::env::var("MAKA_POLICY_REBUILT").map_or_else(
        |_| below("prebuilt/conformance.wasm"),
        |rebuilt| format!("{rebuilt}/conformance.wasm"),
    );
    let fixtures = below("conformance/fixtures");
    let words = [
        "test",
        &policy,
        &fixtures,
        "--coverage",
        "--min",
        "100",
        "--json",
    ];
    let ran = run(&words);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let steps = ran.json()["steps"].as_array().map_or(0, Vec::len);
    assert!(steps >= 150, "{steps}");
}

/// Every fact is looked at: with another expected value each case that allowed fails, and only those.
#[test]
fn conformance_needs_every_fact() {
    let folder = Folder::new();
    let policy = below("prebuilt/conformance.wasm");
    for name in [
        "actions.yaml",
        "browser.yaml",
        "claims.yaml",
        "head.yaml",
        "reviews.yaml",
        "snapshots.yaml",
    ] {
        let text = std::fs::read_to_string(below(&format!("conformance/fixtures/{name}"))).unwrap();
        let mut wrong = String::new();
        for line in text.lines() {
            match line.split_once("equals: ") {
                Some((before, _)) => {
                    wrong += &format!("{before}equals: \"no value of any fact\"}}}}\n")
                }
                None => wrong += &format!("{line}\n"),
            }
        }
        let file = folder.write(name, &wrong);
        let ran = run(&["test", &policy, &file, "--json"]);
        assert_eq!(ran.status, 1, "{name} {}", ran.err);
        let steps = ran.json()["steps"].as_array().unwrap().clone();
        let failed = steps.iter().filter(|step| step["passed"] == false).count();
        let allowing = text.matches("decision: allow, rules: [fact.equal]").count()
            + text
                .matches("decision: release, rules: [fact.equal]")
                .count();
        assert!(allowing > 10, "{name}");
        assert_eq!(failed, allowing, "{name}");
    }
}
