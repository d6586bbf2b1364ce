//! `maka-policy check`.

use serde_json::{Value, json};

use super::support::{Folder, allowing, manifest, run, with_section, without_manifest};

fn changed(pointer: &str, value: Value) -> Value {
    let mut manifest = manifest();
    *manifest.pointer_mut(pointer).expect("the manifest has it") = value;
    manifest
}

#[test]
fn what_a_gateway_loads_is_accepted() {
    let folder = Folder::new();
    let file = folder.write("hours.wasm", allowing(&manifest()));
    for policy in [
        "prebuilt:maka-floor",
        "prebuilt:allow-all",
        "prebuilt:deny-all",
        &file,
    ] {
        let ran = run(&["check", policy]);
        assert_eq!(ran.status, 0, "{ran:?}");
        assert!(ran.out.starts_with("accepted: "), "{}", ran.out);
    }
    let value = run(&["check", &file, "--json"]).json();
    assert_eq!(value["accepted"], true);
    assert_eq!(value["name"], "acme/hours");
}

/// K6: everything that keeps a policy from being loaded is named, with its place and with what to write instead.
#[test]
fn every_refusal_says_what_to_write_instead() {
    let bare = without_manifest(&allowing(&manifest()));
    let rules = json!([{"id": "only", "doc": "One rule, but the policy names it."}]);
    let import = wat::parse_str(r#"(component (import "clock" (func (result u64))))"#).unwrap();
    let extra = wat::parse_str("(component)").unwrap();
    let mut damaged = allowing(&manifest());
    let middle = damaged.len() / 2;
    damaged[middle..middle + 64].fill(0xff);
    let text = manifest().to_string();
    let rows: Vec<(&str, Vec<u8>, &str, &str, &str)> = vec![
        (
            "core",
            wat::parse_str("(module)").unwrap(),
            "not_component",
            "",
            "wit-component",
        ),
        (
            "text",
            b"hello".to_vec(),
            "not_component",
            "",
            "wit-component",
        ),
        (
            "bare",
            bare.clone(),
            "manifest_missing",
            "",
            "manifest.json",
        ),
        (
            "twice",
            with_section(with_section(bare.clone(), &text), &text),
            "manifest_twice",
            "",
            "once",
        ),
        (
            "cut",
            with_section(bare.clone(), &text[..text.len() - 1]),
            "manifest_json",
            "",
            "every key",
        ),
        (
            "unknown-key",
            allowing(&{
                let mut more = manifest();
                more["color"] = json!("red");
                more
            }),
            "manifest_json",
            "",
            "no other",
        ),
        (
            "damaged",
            damaged,
            "compile",
            "",
            "build the component again",
        ),
        (
            "import",
            with_section(import, &text),
            "imports",
            "`clock`",
            "wasm32-unknown-unknown",
        ),
        (
            "exports",
            with_section(extra, &text),
            "exports",
            "nothing",
            "maka:policy/hooks@1.0.0",
        ),
        (
            "abi",
            allowing(&changed("/abi", json!("maka:policy@2"))),
            "manifest_field",
            "/abi",
            "maka:policy@1",
        ),
        (
            "no-hook",
            allowing(&changed("/hooks", json!([]))),
            "manifest_field",
            "/hooks",
            "at least one",
        ),
        (
            "odd-hook",
            allowing(&changed("/hooks", json!(["admit-all"]))),
            "manifest_json",
            "",
            "every key",
        ),
        (
            "fact",
            allowing(&changed("/facts", json!(["typed-text"]))),
            "fact_not_granted",
            "/facts",
            "--grant-fact",
        ),
        (
            "odd-fact",
            allowing(&changed("/facts", json!(["pixels"]))),
            "manifest_field",
            "/facts",
            "typed-text",
        ),
        (
            "fuel",
            allowing(&changed("/limits/fuel", json!(20_000_001))),
            "limits",
            "/limits",
            "--max-fuel",
        ),
        (
            "memory",
            allowing(&changed("/limits/memory_mib", json!(17))),
            "limits",
            "/limits",
            "--max-memory-mib",
        ),
        (
            "schema",
            allowing(&changed("/settings_schema", json!({"oneOf": []}))),
            "settings_schema",
            "",
            "additionalProperties",
        ),
        (
            "starved",
            allowing(&changed("/limits/fuel", json!(1))),
            "prepare",
            "`prepare` ends with policy_fuel",
            "/limits/fuel",
        ),
        (
            "no-rules",
            allowing(&changed("/rules", json!([]))),
            "first_decision",
            "a hook, for a plain `observe`, ends with policy_bad_output",
            "rule table",
        ),
    ];
    let folder = Folder::new();
    // One rule is enough for this policy, so what fails above is the missing one.
    let file = folder.write("one.wasm", allowing(&changed("/rules", rules)));
    assert_eq!(run(&["check", &file]).status, 0);
    for (name, bytes, code, place, instead) in rows {
        let file = folder.write(&format!("{name}.wasm"), bytes);
        let ran = run(&["check", &file, "--json"]);
        assert_eq!(ran.status, 2, "{name}: {ran:?}");
        let value = ran.json();
        assert_eq!(value["accepted"], false, "{name}");
        assert_eq!(value["code"], code, "{name}: {value}");
        assert_eq!(value["where"], place, "{name}: {value}");
        assert!(
            value["instead"].as_str().unwrap().contains(instead),
            "{name}: {value}"
        );
        if code == "imports" {
            let said = run(&["check", &file]);
            assert_eq!((said.status, said.out.as_str()), (2, ""));
            assert!(said.err.starts_with("refused: "), "{}", said.err);
            assert!(
                said.err
                    .contains("\n  where:   `clock`\n  instead: build for wasm32-unknown-unknown"),
                "{}",
                said.err
            );
        }
    }
}

/// What an operator can give is given with flags, and no more than that.
#[test]
fn an_operator_can_grant_and_raise() {
    let folder = Folder::new();
    let file = folder.write(
        "typed.wasm",
        allowing(&changed("/facts", json!(["typed-text"]))),
    );
    assert_eq!(
        run(&["check", &file, "--grant-fact", "typed-text"]).status,
        0
    );
    assert_eq!(run(&["check", &file, "--grant-fact", "pixels"]).status, 2);
    let file = folder.write(
        "fuel.wasm",
        allowing(&changed("/limits/fuel", json!(50_000_000))),
    );
    assert_eq!(run(&["check", &file, "--max-fuel", "50000000"]).status, 0);
    let ran = run(&["check", &file, "--max-fuel", "200000001"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("from 100000 to 200000000"), "{ran:?}");
    // An engine that accepts no component of this size refuses it by size.
    let large = folder.write("large.wasm", vec![0; (1 << 20) + 1]);
    let ran = run(&["check", &large, "--max-module-mib", "1", "--json"]);
    assert_eq!(ran.json()["code"], "too_large");
}

#[test]
fn settings_are_checked_against_the_schema_and_by_the_policy() {
    let folder = Folder::new();
    let floor = "prebuilt:maka-floor";
    let good = folder.write("good.json", r#"{"global_pointer": "approval"}"#);
    assert_eq!(run(&["check", floor, "--settings", &good]).status, 0);
    let bad = folder.write("bad.json", r#"{"global_pointer": "always"}"#);
    let value = run(&["check", floor, "--settings", &bad, "--json"]).json();
    assert_eq!(
        (&value["code"], &value["where"]),
        (&json!("settings"), &json!("/global_pointer"))
    );
    let broken = folder.write("broken.json", "{");
    let ran = run(&["check", floor, "--settings", &broken]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("are not JSON"), "{ran:?}");
    // The schema lets it pass, and the policy itself does not.
    let loose = changed(
        "/settings_schema",
        json!({"type": "object", "properties": {"x": {"type": "integer"}}}),
    );
    let file = folder.write("loose.wasm", allowing(&loose));
    let own = folder.write("own.json", r#"{"x": 1}"#);
    let ran = run(&["check", &file, "--settings", &own]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("refuses its settings"), "{ran:?}");
}
