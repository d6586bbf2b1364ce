//! What is not loaded, and why.

use std::sync::Arc;

use serde_json::json;

use super::guest::{Guest, NAME, manifest, with_manifest};
use super::support::{load, load_with, prebuilt, shared};
use crate::codes::HostCode;
use crate::digest::Digest;
use crate::engine::Engine;
use crate::limits::{Allowance, Limits};
use crate::manifest::ManifestError;
use crate::module::{LoadError, Mode, Module, ModuleSource};
use crate::schema::SchemaError;
use crate::set::{Floor, PolicySet};

fn source(bytes: Vec<u8>) -> ModuleSource {
    ModuleSource {
        name: NAME.to_owned(),
        pin: Digest::of(&bytes),
        bytes: bytes.into(),
        settings: json!({}),
        mode: Mode::Enforce,
        allowance: crate::limits::Allowance::default(),
    }
}

/// K6: what is not exactly what was pinned is not loaded.
#[test]
fn the_pin_and_the_name_have_to_match() {
    let engine = &shared().0;
    let good = source(Guest::default().build());
    Module::load(engine, good.clone()).unwrap();
    let other_pin = ModuleSource {
        pin: Digest::of(b""),
        ..good.clone()
    };
    assert!(matches!(
        Module::load(engine, other_pin),
        Err(LoadError::Pin)
    ));
    let mut bytes = good.bytes.to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert!(matches!(
        Module::load(
            engine,
            ModuleSource {
                bytes: Arc::from(bytes),
                ..good.clone()
            }
        ),
        Err(LoadError::Pin)
    ));
    let other_name = ModuleSource {
        name: "other".to_owned(),
        ..good
    };
    assert!(matches!(
        Module::load(engine, other_name),
        Err(LoadError::NameMismatch)
    ));
}

#[test]
fn what_is_no_policy_is_not_loaded() {
    let text = b"not wasm at all".to_vec();
    assert!(matches!(
        load(NAME, text),
        Err(LoadError::Manifest(ManifestError::NotComponent))
    ));
    let core = wat::parse_str("(module)").unwrap();
    assert!(matches!(
        load(NAME, core),
        Err(LoadError::Manifest(ManifestError::NotComponent))
    ));
    let empty = b"\0asm\x0d\0\x01\0".to_vec();
    assert!(matches!(
        load(NAME, empty.clone()),
        Err(LoadError::Manifest(ManifestError::Missing))
    ));
    assert!(matches!(
        load(NAME, with_manifest(empty, &manifest(""))),
        Err(LoadError::Exports)
    ));
    let mut broken = Guest::default().build();
    broken[20] ^= 0xff;
    assert!(matches!(
        load(NAME, broken),
        Err(LoadError::Compile(_) | LoadError::Manifest(_))
    ));
}

/// A policy that wants anything from its surroundings is not loaded, whether or not the host could give it.
#[test]
fn imports_are_refused() {
    let guest = Guest {
        world: "import clock: func() -> u64;",
        fields: r#"(import "$root" "clock" (func $clock (result i64)))"#,
        admit: "(drop (call $clock)) (i32.const 1024)".to_owned(),
        ..Guest::default()
    };
    assert!(matches!(load(NAME, guest.build()), Err(LoadError::Imports)));
}

#[test]
fn further_exports_are_refused() {
    let guest = Guest {
        world: "export extra: func();",
        fields: r#"(func (export "extra"))"#,
        ..Guest::default()
    };
    assert!(matches!(load(NAME, guest.build()), Err(LoadError::Exports)));
}

#[test]
fn a_policy_that_fails_at_once_is_not_loaded() {
    let trap = Guest {
        prepare: "(unreachable)",
        ..Guest::default()
    };
    assert!(matches!(
        load(NAME, trap.build()),
        Err(LoadError::Prepare(HostCode::PolicyTrap))
    ));
    let endless = Guest {
        prepare: "(loop (br 0)) (unreachable)",
        ..Guest::default()
    };
    assert!(matches!(
        load(NAME, endless.build()),
        Err(LoadError::Prepare(HostCode::PolicyFuel))
    ));
    let start = Guest {
        fields: "(func $boom (unreachable)) (start $boom)",
        ..Guest::default()
    };
    assert!(matches!(
        load(NAME, start.build()),
        Err(LoadError::Prepare(HostCode::PolicyTrap))
    ));
    let memory = Guest {
        fields: "(memory $big 100)",
        ..Guest::default()
    };
    assert!(matches!(
        load(NAME, memory.build()),
        Err(LoadError::Prepare(HostCode::PolicyMemory)
            | LoadError::Compile(_)
            | LoadError::World(_))
    ));
    let table = Guest {
        fields: "(table 20000 funcref)",
        ..Guest::default()
    };
    assert!(load(NAME, table.build()).is_err());
    let long = Guest {
        prepare: "(i32.store (i32.const 4100) (i32.const 0)) (i32.store (i32.const 4104) (i32.const 70000)) (i32.const 4096)",
        ..Guest::default()
    };
    assert!(matches!(
        load(NAME, long.build()),
        Err(LoadError::Prepare(HostCode::PolicyBadOutput))
    ));
    let refuses = Guest {
        prepare: "(i32.store8 (i32.const 4096) (i32.const 1)) (i32.const 4096)",
        ..Guest::default()
    };
    assert!(matches!(
        load(NAME, refuses.build()),
        Err(LoadError::Settings { .. })
    ));
}

#[test]
fn limits_are_ceilings() {
    let small = |limits: Limits| Engine::new(limits).unwrap();
    let bytes = Guest::default().build();
    let tiny = small(Limits {
        module_bytes: 100,
        ..Limits::default()
    });
    assert!(matches!(
        Module::load(&tiny, source(bytes.clone())),
        Err(LoadError::TooLarge)
    ));
    let frugal = small(Limits {
        fuel: 500_000,
        ..Limits::default()
    });
    assert!(matches!(
        Module::load(&frugal, source(bytes)),
        Err(LoadError::Manifest(ManifestError::LimitExceeded))
    ));
    let hasty = small(Limits {
        compile_ms: 1,
        ..Limits::default()
    });
    assert!(matches!(
        Floor::load(&hasty, &json!({})),
        Err(LoadError::CompileTimeout)
    ));
    // An operator can give one module more time than the engine gives every module.
    let patient = ModuleSource {
        allowance: Allowance {
            compile_ms: Some(30_000),
            ..Allowance::default()
        },
        ..source(Guest::default().build())
    };
    Module::load(&hasty, patient).unwrap();
}

#[test]
fn settings_are_checked_before_and_by_the_policy() {
    let engine = &shared().0;
    for good in [json!({}), json!({"global_pointer": "approval"})] {
        Floor::load(engine, &good).unwrap();
    }
    for bad in [
        json!({"global_pointer": "always"}),
        json!({"unknown": 1}),
        json!([]),
        json!(null),
    ] {
        assert!(
            matches!(
                Floor::load(engine, &bad),
                Err(LoadError::Schema(SchemaError::Settings(_)))
            ),
            "{bad}"
        );
    }
    let deny = load_with(
        "deny-all",
        prebuilt("deny-all"),
        json!({"x": 1}),
        Mode::Enforce,
    );
    assert!(matches!(deny, Err(LoadError::Schema(_))));
}

#[test]
fn sets_are_bounded_and_name_each_policy_once() {
    let (engine, floor) = shared();
    let guest = load(NAME, Guest::default().build()).unwrap();
    let twice = PolicySet::new(engine, "t", floor, vec![guest.clone(), guest.clone()]);
    assert!(matches!(twice, Err(LoadError::NameTwice)));
    // No other module can pass for the floor.
    let named = manifest("").replace("\"guest\"", "\"maka-floor\"");
    let impostor = load(
        "maka-floor",
        Guest {
            manifest: named,
            ..Guest::default()
        }
        .build(),
    )
    .unwrap();
    assert!(matches!(
        PolicySet::new(engine, "t", floor, vec![impostor]),
        Err(LoadError::NameTwice)
    ));
    let many = vec![guest; 8];
    assert!(matches!(
        PolicySet::new(engine, "t", floor, many),
        Err(LoadError::TooMany)
    ));
}

/// The digest of a set tells apart what judges differently.
#[test]
fn the_digest_of_a_set_covers_settings_mode_and_order() {
    let (engine, floor) = shared();
    let asking = Floor::load(engine, &json!({"global_pointer": "approval"})).unwrap();
    let bytes = || Guest::default().build();
    let enforcing = load(NAME, bytes()).unwrap();
    let watching = load_with(NAME, bytes(), json!({}), Mode::Monitor).unwrap();
    let allow = load("allow-all", prebuilt("allow-all")).unwrap();
    let digest = |floor: &Floor, more: Vec<Module>| {
        PolicySet::new(engine, "t", floor, more).unwrap().digest()
    };
    let digests = [
        digest(floor, vec![]),
        digest(&asking, vec![]),
        digest(floor, vec![enforcing.clone()]),
        digest(floor, vec![watching]),
        digest(floor, vec![enforcing.clone(), allow.clone()]),
        digest(floor, vec![allow, enforcing]),
    ];
    let distinct: std::collections::HashSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len());
    assert_eq!(digest(floor, vec![]), digests[0]);
}
