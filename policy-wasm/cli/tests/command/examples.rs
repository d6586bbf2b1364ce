//! The example policies that the product ships, each against its own fixtures.

use std::path::PathBuf;

use maka_policy_host::prebuilt::Prebuilt;

use super::support::{Folder, run};

/// Where `cargo xtask policy --check` puts components that another compiler has made, to be compared by their verdicts.
const REBUILT: &str = "MAKA_POLICY_REBUILT";

fn examples() -> impl Iterator<Item = &'static str> {
    Prebuilt::ALL.iter().filter_map(|prebuilt| match prebuilt {
        // The floor has fixtures of its own, and the two smallest policies have nothing to cover.
        Prebuilt::Floor | Prebuilt::AllowAll | Prebuilt::DenyAll => None,
        Prebuilt::AppList
        | Prebuilt::BrowserDomains
        | Prebuilt::BusinessHours
        | Prebuilt::DestructiveControls
        | Prebuilt::RateLimits
        | Prebuilt::ReadOnly
        | Prebuilt::TypingGuard => Some(prebuilt.name()),
    })
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../policies/{name}"))
}

/// Every rule is seen from both sides, and every case depends on a fact.
#[test]
fn examples_pass_their_fixtures_at_full_coverage() {
    for name in examples() {
        let fixtures = folder(name).join("fixtures").display().to_string();
        let policy = std::env::var(REBUILT).map_or_else(
            |_| format!("prebuilt:{name}"),
            |rebuilt| format!("{rebuilt}/{name}.wasm"),
        );
        let words = [
            "test",
            &policy,
            &fixtures,
            "--coverage",
            "--min",
            "100",
            "--mutate",
        ];
        let ran = run(&words);
        assert_eq!(ran.status, 0, "{name}: {}{}", ran.out, ran.err);
    }
}

/// The committed component carries the manifest that lies beside its source, with every default written down.
#[test]
fn examples_carry_their_manifest() {
    for name in examples() {
        let component = Prebuilt::parse(name).unwrap().bytes();
        let carried = maka_policy_host::manifest::section(component).unwrap();
        let written = std::fs::read(folder(name).join("manifest.json")).unwrap();
        assert!(carried == written, "{name}: run `cargo xtask policy`");
        let manifest: serde_json::Value = serde_json::from_slice(&written).unwrap();
        let properties = &manifest["settings_schema"]["properties"];
        for (setting, schema) in properties.as_object().unwrap() {
            for key in ["default", "description"] {
                let is_there = schema.get(key).is_some()
                    || key == "description" && schema.get("enum").is_some();
                assert!(is_there, "{name}: {setting} has no {key}");
            }
        }
        let checked = run(&["check", &format!("prebuilt:{name}")]);
        assert_eq!(checked.status, 0, "{name}: {}", checked.err);
    }
}

/// What a schema cannot say, the policy itself says, and names the place.
#[test]
fn settings_that_make_no_sense_are_refused_at_their_place() {
    let folder = Folder::new();
    for (name, settings, place) in [
        ("app-list", r#"{"deny": ["a", "*b"]}"#, "/deny/1"),
        ("app-list", r#"{"deny": "a"}"#, "/deny"),
        (
            "browser-domains",
            r#"{"domains": ["https://example.com"]}"#,
            "/domains/0",
        ),
        ("business-hours", r#"{"open": "8:00"}"#, "/open"),
        ("business-hours", r#"{"open": "18:00"}"#, "/close"),
        ("business-hours", r#"{"days": [0]}"#, "/days/0"),
        ("rate-limits", r#"{"in_flight": 0}"#, "/in_flight"),
        ("typing-guard", r#"{"max_bytes": -1}"#, "/max_bytes"),
        ("read-only", r#"{"more": 1}"#, "/more"),
    ] {
        let file = folder.write("settings.json", settings);
        let policy = format!("prebuilt:{name}");
        let ran = run(&["check", &policy, "--settings", &file, "--json"]);
        assert_eq!(ran.status, 2, "{name} {settings}");
        let said = ran.json();
        assert_eq!(said["code"], "settings", "{name} {settings} {said}");
        assert_eq!(said["where"], place, "{name} {settings} {said}");
    }
}
