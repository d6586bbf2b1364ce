//! Policies made for these tests, as an author's build would make them: a core module turned into a component.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A verdict that allows or releases, without conditions and without rules.
const ALLOW: &str = "(i32.const 1024)";

/// What a policy does on every call but the first decision's `observe`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Does {
    /// Allows.
    Allow,
    /// Traps.
    Trap,
    /// Runs for ever.
    Loop,
}

/// A policy of this name and version that takes one setting, `level`.
pub(super) fn guest(name: &str, version: &str, does: Does) -> Vec<u8> {
    let body = match does {
        Does::Allow => ALLOW,
        Does::Trap => "(unreachable)",
        Does::Loop => "(loop (br 0)) (unreachable)",
    };
    let hook = |name: &str| {
        // All arguments are spilled to memory; the length of the method is 44 bytes into them.
        format!(
            r#"(func (export "maka:policy/hooks@1.0.0#{name}") (param i32) (result i32)
                 (if (i32.eq (i32.load offset=44 (local.get 0)) (i32.const 7)) (then (return {ALLOW})))
                 {body})"#
        )
    };
    let text = format!(
        r#"(module
             (memory (export "memory") 16)
             (global $top (mut i32) (i32.const 65536))
             (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
               (global.set $top (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
               (global.get $top)
               (global.set $top (i32.add (global.get $top) (local.get 3))))
             (func (export "maka:policy/hooks@1.0.0#prepare") (param i32 i32) (result i32) (i32.const 1024))
             {} {} {})"#,
        hook("admit-dispatch"),
        hook("admit-cdp"),
        hook("review-result"),
    );
    let mut module = wat::parse_str(text).expect("the text is a module");
    let mut resolve = Resolve::default();
    let wit = include_str!("../../../policy-wasm/wit/policy.wit");
    let package = resolve.push_str("policy.wit", wit).expect("the contract");
    let world = resolve
        .select_world(&[package], Some("policy"))
        .expect("its world");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)
        .expect("the module fits");
    let component = ComponentEncoder::default()
        .module(&module)
        .expect("a module")
        .encode()
        .expect("a component");
    let manifest = format!(
        r#"{{"schema":"maka.policy.manifest/1","name":"{name}","version":"{version}","abi":"maka:policy@1",
        "hooks":["admit-dispatch","review-result"],"facts":[],"rules":[],"denials":[],"obligations":[],
        "settings_schema":{{"type":"object","properties":{{"level":{{"type":"integer","minimum":0,"maximum":9}}}}}},
        "limits":{{"fuel":1000000,"memory_mib":2}}}}"#
    );
    with_manifest(component, &manifest)
}

fn with_manifest(mut component: Vec<u8>, manifest: &str) -> Vec<u8> {
    let leb128 = |mut value: usize| {
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
            value >>= 7;
        }
        bytes.push(u8::try_from(value).expect("seven bits"));
        bytes
    };
    let name = "maka-policy-manifest";
    let payload = [&leb128(name.len()), name.as_bytes(), manifest.as_bytes()].concat();
    component.push(0);
    component.extend(leb128(payload.len()));
    component.extend(payload);
    component
}
