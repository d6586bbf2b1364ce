//! Policies written by hand, so that they can do what no compiler would let them do.
//!
//! A guest is a core module in text form around four bodies, turned into a component the way any policy is. The bodies of
//! the admit and review hooks run only for methods other than `observe`: a policy that misbehaves at once is not even
//! loaded, and these tests are about what happens later.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A policy in parts.
pub(super) struct Guest {
    /// The body of `prepare`; leaves the address of its result.
    pub(super) prepare: &'static str,
    /// The body of `admit-dispatch`; leaves the address of a verdict.
    pub(super) admit: String,
    /// The body of `review-result`; leaves the address of a verdict.
    pub(super) review: String,
    /// Further fields of the module.
    pub(super) fields: &'static str,
    /// Further items of the world.
    pub(super) world: &'static str,
    pub(super) manifest: String,
}

/// The address of a verdict that allows or releases without conditions and without rules.
pub(super) const ALLOW: &str = "(i32.const 1024)";

/// The name of every guest.
pub(super) const NAME: &str = "guest";

impl Default for Guest {
    fn default() -> Self {
        Self {
            prepare: "(i32.const 1024)",
            admit: ALLOW.to_owned(),
            review: ALLOW.to_owned(),
            fields: "",
            world: "",
            manifest: manifest(""),
        }
    }
}

/// A manifest with one rule, one denial of its own, and these obligations.
pub(super) fn manifest(obligations: &str) -> String {
    format!(
        r#"{{"schema":"maka.policy.manifest/1","name":"{NAME}","version":"1.0.0","abi":"maka:policy@1",
        "hooks":["admit-dispatch","review-result"],"facts":[],"rules":[{{"id":"guest.rule","doc":"A rule."}}],
        "denials":[{{"code":"guest.no","sentence":"The guest says no.","retry":"after_delay"}}],
        "obligations":[{obligations}],"settings_schema":{{"type":"object"}},
        "limits":{{"fuel":1000000,"memory_mib":2}}}}"#
    )
}

/// A body that stores a verdict at address 4096 and leaves that address. `tag`: 0 allow, 1 deny, 2 require-approval.
pub(super) fn verdict(tag: u32, (at, length): (u32, u32), rules: u32) -> String {
    format!(
        "(i32.store8 (i32.const 4096) (i32.const {tag}))
         (i32.store offset=4 (i32.const 4096) (i32.const {at})) (i32.store offset=8 (i32.const 4096) (i32.const {length}))
         (i32.store offset=12 (i32.const 4096) (i32.const 8192)) (i32.store offset=16 (i32.const 4096) (i32.const {rules}))
         (i32.const 4096)"
    )
}

impl Guest {
    /// A guest with this body for `admit-dispatch`.
    pub(super) fn admitting(body: impl Into<String>) -> Self {
        Self {
            admit: body.into(),
            ..Self::default()
        }
    }

    /// The component, with its manifest.
    pub(super) fn build(&self) -> Vec<u8> {
        let hook = |name: &str, body: &str| {
            // All arguments are spilled to memory; the length of the method is 44 bytes into them.
            format!(
                r#"(func (export "maka:policy/hooks@1.0.0#{name}") (param i32) (result i32)
                     (if (i32.eq (i32.load offset=44 (local.get 0)) (i32.const 7)) (then (return {ALLOW})))
                     {body})"#
            )
        };
        let module = format!(
            r#"(module
                 {}
                 (memory (export "memory") 16)
                 (global $top (mut i32) (i32.const 65536))
                 (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                   (global.set $top (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
                   (global.get $top)
                   (global.set $top (i32.add (global.get $top) (local.get 3))))
                 (func (export "maka:policy/hooks@1.0.0#prepare") (param i32 i32) (result i32) {})
                 {} {} {}
                 (data (i32.const 2048) "guest.no") (data (i32.const 2056) "nonsense") (data (i32.const 2064) "policy_busy")
                 (data (i32.const 2080) "\ff\fe\fd") (data (i32.const 2096) "snapshot_spent")
                 ;; one obligation each: kind and argument as address and length
                 (data (i32.const 2112) "run-shell") (data (i32.const 2128) "drop-image")
                 (data (i32.const 3072) "\40\08\00\00\09\00\00\00\00\00\00\00\00\00\00\00")
                 (data (i32.const 3088) "\50\08\00\00\0a\00\00\00\00\00\00\00\00\00\00\00"))"#,
            self.fields,
            self.prepare,
            hook("admit-dispatch", &self.admit),
            hook("admit-cdp", ALLOW),
            hook("review-result", &self.review),
        );
        let mut module = wat::parse_str(&module).unwrap();
        let wit = include_str!("../../../wit/policy.wit")
            .replace("world policy {", &format!("world policy {{ {}", self.world));
        let mut resolve = Resolve::default();
        let package = resolve.push_str("policy.wit", &wit).unwrap();
        let world = resolve.select_world(&[package], Some("policy")).unwrap();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)
            .unwrap();
        let component = ComponentEncoder::default()
            .validate(true)
            .module(&module)
            .unwrap()
            .encode()
            .unwrap();
        with_manifest(component, &self.manifest)
    }
}

/// Appends the manifest section.
pub(super) fn with_manifest(mut component: Vec<u8>, manifest: &str) -> Vec<u8> {
    let leb128 = |mut value: usize| {
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        bytes.push(u8::try_from(value).unwrap());
        bytes
    };
    let name = crate::manifest::SECTION;
    let payload = [&leb128(name.len()), name.as_bytes(), manifest.as_bytes()].concat();
    component.push(0);
    component.extend(leb128(payload.len()));
    component.extend(payload);
    component
}
