//! Policies that a test makes to measure: for each executor method one verdict, whatever else the facts say.
//!
//! A policy is a core module in text form, turned into a component the way any policy is. It owns no rule of the product
//! and looks at three facts only: the method, whether a grant is there, and on review the method again.

use std::fmt::Write as _;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// What a test's policy says to a call or to an answer. An obligation is a pair of kind and argument.
#[derive(Clone, Debug)]
pub enum Says {
    /// Allow or release, under these obligations.
    Yes(Vec<(&'static str, &'static str)>),
    /// Deny or withhold with the code `test.no`.
    No,
    /// Require approval with the code `test.ask`, and with a grant allow under these obligations. On review: quarantine
    /// with the code `test.no`.
    Third(Vec<(&'static str, &'static str)>),
    /// On review: quarantine with a code of the floor, which says that the executor broke its protocol.
    Breach,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct TestPolicy {
    name: &'static str,
    admits: Vec<(&'static str, Says)>,
    reviews: Vec<(&'static str, Says)>,
}

/// Where the text of the policy begins in its memory.
const DATA_AT: usize = 4096;

/// The text that a policy's memory begins with, and where each part lies.
struct Data {
    bytes: Vec<u8>,
}

impl Data {
    fn put(&mut self, bytes: &[u8]) -> (usize, usize) {
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
        let at = DATA_AT + self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        (at, bytes.len())
    }

    /// A list of records of two texts each.
    fn list(&mut self, obligations: &[(&str, &str)]) -> (usize, usize) {
        let mut records = Vec::new();
        for text in obligations.iter().flat_map(|(kind, arg)| [kind, arg]) {
            let (at, length) = self.put(text.as_bytes());
            for number in [at, length] {
                records.extend(u32::try_from(number).expect("small").to_le_bytes());
            }
        }
        (self.put(&records).0, obligations.len())
    }

    /// Code that returns a verdict of this case.
    fn verdict(&mut self, tag: u32, (at, length): (usize, usize)) -> String {
        let mut record = Vec::new();
        for number in [tag, word(at), word(length), 0, 0] {
            record.extend(number.to_le_bytes());
        }
        format!("(return (i32.const {}))", self.put(&record).0)
    }

    fn says(&mut self, says: &Says, third: &'static str) -> String {
        match says {
            Says::Yes(obligations) => {
                let list = self.list(obligations);
                self.verdict(0, list)
            }
            Says::No => {
                let code = self.put(b"test.no");
                self.verdict(1, code)
            }
            Says::Breach => {
                let code = self.put(b"outcome_dishonest");
                self.verdict(2, code)
            }
            Says::Third(obligations) => {
                let code = self.put(third.as_bytes());
                let third = self.verdict(2, code);
                let list = self.list(obligations);
                let allowed = self.verdict(0, list);
                // The discriminant of `head.approval`.
                format!("(if (i32.load8_u offset=144 (local.get 0)) (then {allowed})) {third}")
            }
        }
    }

    fn hook(&mut self, rows: &[(&'static str, Says)], third: &'static str) -> String {
        let mut body = String::new();
        for (method, says) in rows {
            let (at, length) = self.put(method.as_bytes());
            let code = self.says(says, third);
            write!(
                body,
                "(if (call $is (local.get 0) (i32.const {at}) (i32.const {length})) (then {code}))"
            )
            .expect("a string takes everything");
        }
        body + &self.verdict(0, (0, 0))
    }
}

fn word(number: usize) -> u32 {
    u32::try_from(number).expect("small")
}

impl TestPolicy {
    /// A policy that says yes to everything.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            admits: Vec::new(),
            reviews: Vec::new(),
        }
    }

    /// What it says to calls of this method.
    #[must_use]
    pub fn admits(mut self, method: &'static str, says: Says) -> Self {
        self.admits.push((method, says));
        self
    }

    /// What it says to answers of this method.
    #[must_use]
    pub fn reviews(mut self, method: &'static str, says: Says) -> Self {
        self.reviews.push((method, says));
        self
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The component with its manifest.
    ///
    /// # Panics
    /// When this file makes something that is no policy.
    #[must_use]
    pub fn component(&self) -> Vec<u8> {
        let mut data = Data { bytes: Vec::new() };
        let admit = data.hook(&self.admits, "test.ask");
        let review = data.hook(&self.reviews, "test.no");
        let yes = data.verdict(0, (0, 0));
        let bytes: String = data
            .bytes
            .iter()
            .map(|byte| format!("\\{byte:02x}"))
            .collect();
        let hook = |name: &str, body: &str| {
            format!(
                r#"(func (export "maka:policy/hooks@1.0.0#{name}") (param i32) (result i32) {body})"#
            )
        };
        let module = format!(
            r#"(module
                 (memory (export "memory") 16)
                 (global $top (mut i32) (i32.const 524288))
                 (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                   (global.set $top (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
                   (global.get $top)
                   (global.set $top (i32.add (global.get $top) (local.get 3))))
                 ;; whether the method of the facts, whose arguments are spilled to memory, is this text
                 (func $is (param $facts i32) (param $at i32) (param $length i32) (result i32)
                   (local $method i32)
                   (if (i32.ne (i32.load offset=44 (local.get $facts)) (local.get $length)) (then (return (i32.const 0))))
                   (local.set $method (i32.load offset=40 (local.get $facts)))
                   (loop $next
                     (if (i32.eqz (local.get $length)) (then (return (i32.const 1))))
                     (local.set $length (i32.sub (local.get $length) (i32.const 1)))
                     (if (i32.ne (i32.load8_u (i32.add (local.get $method) (local.get $length)))
                                 (i32.load8_u (i32.add (local.get $at) (local.get $length))))
                       (then (return (i32.const 0))))
                     (br $next))
                   (i32.const 0))
                 (func (export "maka:policy/hooks@1.0.0#prepare") (param i32 i32) (result i32) (i32.const 1024))
                 {} {} {}
                 (data (i32.const {DATA_AT}) "{bytes}"))"#,
            hook("admit-dispatch", &admit),
            hook("admit-cdp", &yes),
            hook("review-result", &review),
        );
        let mut module = wat::parse_str(&module).expect("the text of a module");
        let mut resolve = Resolve::default();
        let wit = include_str!("../../policy-wasm/wit/policy.wit");
        let package = resolve.push_str("policy.wit", wit).expect("the contract");
        let world = resolve
            .select_world(&[package], Some("policy"))
            .expect("its world");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)
            .expect("a module");
        let component = ComponentEncoder::default()
            .module(&module)
            .expect("a module of the world")
            .encode()
            .expect("a component");
        with_manifest(component, &self.manifest())
    }

    fn manifest(&self) -> String {
        let name = self.name;
        format!(
            r#"{{"schema":"maka.policy.manifest/1","name":"{name}","version":"1.0.0","abi":"maka:policy@1",
            "hooks":["admit-dispatch","review-result"],"facts":[],"rules":[],
            "denials":[{{"code":"test.no","sentence":"The test says no.","retry":"never"}},
                       {{"code":"test.ask","sentence":"The test wants a person to look.","retry":"after_approval"}}],
            "obligations":["redact","drop-image","max-bytes","only-paths","no-follow-up","mark-sensitive"],
            "settings_schema":{{"type":"object"}},"limits":{{"fuel":1000000,"memory_mib":2}}}}"#
        )
    }
}

/// Appends the manifest section.
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
