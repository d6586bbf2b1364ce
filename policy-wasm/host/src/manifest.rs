//! The manifest of a policy: what it is called, which rules and refusals it has, and what it asks for.
//!
//! It is a custom section of the component and is read without running anything. Empty lists mean none, never all.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::codes::{DenyCode, Retry};
use crate::digest::Digest;
use crate::obligation::ObligationKind;

/// The name of the custom section.
pub const SECTION: &str = "maka-policy-manifest";

const SCHEMA: &str = "maka.policy.manifest/1";
/// The contract that a manifest has to name.
pub const ABI: &str = "maka:policy@1";
/// Facts beyond the ordinary ones that a policy can ask for.
pub const KNOWN_FACTS: &[&str] = &["typed-text"];
const MAX_BYTES: usize = 256 << 10;
const MAX_ROWS: usize = 1_024;

/// Why a manifest is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file is no component.
    #[error("the file is not a WebAssembly component")]
    NotComponent,
    /// The section is missing.
    #[error("the component has no section `{SECTION}`")]
    Missing,
    /// There is more than one.
    #[error("the component has more than one section `{SECTION}`")]
    Ambiguous,
    /// It is not the JSON it should be.
    #[error("the manifest is not well formed")]
    Json(#[source] serde_json::Error),
    /// A field is not accepted.
    #[error("the manifest is not accepted at `{0}`")]
    Field(&'static str),
    /// It asks for a fact that the operator did not grant.
    #[error("the policy asks for facts that were not granted")]
    FactNotGranted,
    /// It wants more fuel or memory than the engine gives.
    #[error("the policy asks for more fuel or memory than the limits give")]
    LimitExceeded,
}

impl ManifestError {
    /// A stable word for the reason.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotComponent => "not_component",
            Self::Missing => "manifest_missing",
            Self::Ambiguous => "manifest_twice",
            Self::Json(_) => "manifest_json",
            Self::Field(_) => "manifest_field",
            Self::FactNotGranted => "fact_not_granted",
            Self::LimitExceeded => "limits",
        }
    }

    /// The place at fault, a JSON pointer into the manifest; empty where there is none.
    #[must_use]
    pub const fn pointer(&self) -> &'static str {
        match self {
            Self::Field(pointer) => pointer,
            Self::FactNotGranted => "/facts",
            Self::LimitExceeded => "/limits",
            Self::NotComponent | Self::Missing | Self::Ambiguous | Self::Json(_) => "",
        }
    }
}

/// A hook that a policy wants to be called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// Before an executor call.
    AdmitDispatch,
    /// Before a browser command.
    AdmitCdp,
    /// Before an answer is released.
    ReviewResult,
}

impl Hook {
    /// The name in manifests and in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AdmitDispatch => "admit-dispatch",
            Self::AdmitCdp => "admit-cdp",
            Self::ReviewResult => "review-result",
        }
    }
}

/// A checked manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The name of the policy.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The hooks it is called for.
    pub hooks: Vec<Hook>,
    /// Facts beyond the ordinary ones that it asks for.
    pub facts: Vec<String>,
    /// Its rules, in table order.
    pub rules: Vec<RuleRow>,
    /// Its own refusals.
    pub denials: Vec<DenialRow>,
    /// The obligations it may set.
    pub obligations: Vec<ObligationKind>,
    /// The schema of its settings.
    pub settings_schema: Value,
    /// Fuel per call.
    pub fuel: u64,
    /// Linear memory, in bytes.
    pub memory_bytes: u64,
    /// The digest of the fixtures it was tested with.
    pub fixtures_digest: Option<Digest>,
}

/// A rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleRow {
    /// Its id, in verdicts and in the log.
    pub id: String,
    /// What it demands, in one sentence.
    pub doc: String,
}

/// A refusal of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenialRow {
    /// The code.
    pub code: String,
    /// The fixed sentence.
    pub sentence: String,
    /// When it makes sense to try again.
    pub retry: Retry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    schema: String,
    name: String,
    version: String,
    abi: String,
    hooks: Vec<Hook>,
    facts: Vec<String>,
    rules: Vec<RuleRow>,
    denials: Vec<RawDenial>,
    obligations: Vec<String>,
    settings_schema: Map<String, Value>,
    limits: RawLimits,
    #[serde(default)]
    fixtures_digest: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDenial {
    code: String,
    sentence: String,
    retry: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    fuel: u64,
    memory_mib: u64,
}

/// What a manifest may ask for.
#[derive(Debug, Clone, Copy)]
pub struct Ceiling<'a> {
    /// Facts the operator granted.
    pub facts: &'a [String],
    /// Fuel per call.
    pub fuel: u64,
    /// Linear memory, in bytes.
    pub memory_bytes: u64,
    /// The policy may repeat the built-in refusals: only the floor, which owns them.
    pub owns_built_in: bool,
}

impl Manifest {
    /// Reads the manifest out of a component.
    ///
    /// # Errors
    ///
    /// When it is missing, malformed, or asks for more than it may have.
    pub fn read(component: &[u8], ceiling: Ceiling<'_>) -> Result<Self, ManifestError> {
        Self::parse(section(component)?, ceiling)
    }

    /// Reads and checks a manifest.
    ///
    /// # Errors
    ///
    /// When it is malformed, or asks for more than it may have.
    pub fn parse(json: &[u8], ceiling: Ceiling<'_>) -> Result<Self, ManifestError> {
        if json.len() > MAX_BYTES {
            return Err(ManifestError::Field(""));
        }
        let raw: Raw = serde_json::from_slice(json).map_err(ManifestError::Json)?;
        let require = |held: bool, field| {
            if held {
                Ok(())
            } else {
                Err(ManifestError::Field(field))
            }
        };
        require(raw.schema == SCHEMA, "/schema")?;
        require(raw.abi == ABI, "/abi")?;
        require(is_name(&raw.name), "/name")?;
        require(is_name(&raw.version), "/version")?;
        let fixtures_digest = raw
            .fixtures_digest
            .map(|digest| digest.parse::<Digest>())
            .transpose()
            .map_err(|_| ManifestError::Field("/fixtures_digest"))?;
        require(
            !raw.hooks.is_empty() && is_unique(raw.hooks.iter()),
            "/hooks",
        )?;
        require(
            raw.facts
                .iter()
                .all(|fact| KNOWN_FACTS.contains(&fact.as_str())),
            "/facts",
        )?;
        require(
            raw.rules.len() <= MAX_ROWS && is_unique(raw.rules.iter().map(|rule| &rule.id)),
            "/rules",
        )?;
        require(
            raw.rules
                .iter()
                .all(|rule| is_name(&rule.id) && is_sentence(&rule.doc)),
            "/rules",
        )?;
        require(
            raw.denials.len() <= MAX_ROWS && is_unique(raw.denials.iter().map(|row| &row.code)),
            "/denials",
        )?;
        if !raw.facts.iter().all(|fact| ceiling.facts.contains(fact)) {
            return Err(ManifestError::FactNotGranted);
        }
        let denials = raw
            .denials
            .into_iter()
            .map(|row| denial(row, ceiling.owns_built_in))
            .collect::<Result<_, _>>()?;
        let obligations = raw
            .obligations
            .iter()
            .map(|kind| ObligationKind::parse(kind).ok_or(ManifestError::Field("/obligations")))
            .collect::<Result<_, _>>()?;
        let memory_bytes = raw
            .limits
            .memory_mib
            .checked_mul(1 << 20)
            .ok_or(ManifestError::LimitExceeded)?;
        if raw.limits.fuel > ceiling.fuel || memory_bytes > ceiling.memory_bytes {
            return Err(ManifestError::LimitExceeded);
        }
        require(raw.limits.fuel > 0 && memory_bytes > 0, "/limits")?;
        Ok(Self {
            name: raw.name,
            version: raw.version,
            hooks: raw.hooks,
            facts: raw.facts,
            rules: raw.rules,
            denials,
            obligations,
            settings_schema: Value::Object(raw.settings_schema),
            fuel: raw.limits.fuel,
            memory_bytes,
            fixtures_digest,
        })
    }

    /// The row of one of the policy's own refusals.
    #[must_use]
    pub fn denial(&self, code: &str) -> Option<&DenialRow> {
        self.denials.iter().find(|row| row.code == code)
    }
}

fn denial(raw: RawDenial, owns_built_in: bool) -> Result<DenialRow, ManifestError> {
    let RawDenial {
        code,
        sentence,
        retry,
    } = raw;
    let retry = Retry::parse(&retry).ok_or(ManifestError::Field("/denials"))?;
    // A policy that could redefine a built-in code could give it a sentence of its own.
    let mine = owns_built_in || DenyCode::parse(&code).is_none();
    if !mine || !is_name(&code) || !is_sentence(&sentence) {
        return Err(ManifestError::Field("/denials"));
    }
    Ok(DenialRow {
        code,
        sentence,
        retry,
    })
}

fn is_unique<T: std::hash::Hash + Eq>(mut items: impl Iterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    items.all(|item| seen.insert(item))
}

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'/' | b'+'))
}

/// A sentence may end up in front of a model, so it is one line of plain characters: ASCII is always in normal form, and
/// has no invisible or look-alike letters. Braces would invite placeholders.
fn is_sentence(text: &str) -> bool {
    (1..=200).contains(&text.len())
        && text
            .bytes()
            .all(|b| (0x20..0x7f).contains(&b) && b != b'{' && b != b'}')
}

/// The same component with another manifest in the place of its own.
///
/// # Errors
///
/// When the file is no component, or has no manifest or more than one.
pub fn replace_section(component: &[u8], manifest: &[u8]) -> Result<Vec<u8>, ManifestError> {
    let old = section(component)?;
    let (name, start) = (
        SECTION.as_bytes(),
        old.as_ptr() as usize - component.as_ptr() as usize,
    );
    // The section begins with its id, the size of what follows, and the size of its name before the name.
    let payload = 1 + name.len() + old.len();
    let before = start - name.len() - 1 - size(payload).len() - 1;
    let payload = 1 + name.len() + manifest.len();
    let name_size = size(name.len());
    let canonical = component[before] == 0
        && component[before + 1..].starts_with(&size(1 + name.len() + old.len()))
        && name_size.len() == 1;
    if !canonical {
        // A section whose sizes are written in a longer form than needed: nothing that a build makes.
        return Err(ManifestError::NotComponent);
    }
    Ok([
        &component[..before],
        &[0],
        &size(payload),
        &name_size,
        name,
        manifest,
        &component[start + old.len()..],
    ]
    .concat())
}

/// A number in LEB128.
fn size(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).expect("seven bits");
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// The one manifest section on the outermost level of a component, as it stands there.
///
/// # Errors
///
/// When the file is no component, or has none or more than one.
pub fn section(component: &[u8]) -> Result<&[u8], ManifestError> {
    // Magic, then version 13 in the component layer.
    let mut rest = component
        .strip_prefix(b"\0asm\x0d\0\x01\0")
        .ok_or(ManifestError::NotComponent)?;
    let mut found = None;
    while let Some((id, after)) = rest.split_first() {
        let (size, after) = leb128(after).ok_or(ManifestError::NotComponent)?;
        let (payload, after) = after
            .split_at_checked(size)
            .ok_or(ManifestError::NotComponent)?;
        rest = after;
        if *id == 0 {
            let (length, named) = leb128(payload).ok_or(ManifestError::NotComponent)?;
            let (name, content) = named
                .split_at_checked(length)
                .ok_or(ManifestError::NotComponent)?;
            if name == SECTION.as_bytes() && found.replace(content).is_some() {
                return Err(ManifestError::Ambiguous);
            }
        }
    }
    found.ok_or(ManifestError::Missing)
}

/// An unsigned 32-bit number in the variable-length form of WebAssembly.
fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((
                usize::try_from(u32::try_from(value).ok()?).ok()?,
                &bytes[at + 1..],
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CEILING: Ceiling<'static> = Ceiling {
        facts: &[],
        fuel: 20_000_000,
        memory_bytes: 16 << 20,
        owns_built_in: false,
    };

    fn good() -> Value {
        json!({
            "schema": SCHEMA, "name": "acme/hours", "version": "1.4.0", "abi": ABI,
            "hooks": ["admit-dispatch"], "facts": [],
            "rules": [{"id": "hours.closed", "doc": "No input outside opening hours."}],
            "denials": [{"code": "acme.closed", "sentence": "Closed. Stop.", "retry": "never"}],
            "obligations": ["drop-image"], "settings_schema": {"type": "object"},
            "limits": {"fuel": 1000000, "memory_mib": 8}
        })
    }

    fn check(pointer: &str, value: Value) -> Result<Manifest, ManifestError> {
        let mut manifest = good();
        *manifest.pointer_mut(pointer).unwrap() = value;
        Manifest::parse(manifest.to_string().as_bytes(), CEILING)
    }

    #[test]
    fn a_good_one_is_read() {
        let manifest = check("/name", json!("acme/hours")).unwrap();
        assert_eq!(manifest.hooks, [Hook::AdmitDispatch]);
        assert_eq!(manifest.denial("acme.closed").unwrap().retry, Retry::Never);
        assert_eq!(manifest.memory_bytes, 8 << 20);
    }

    #[test]
    fn every_field_is_checked() {
        let long = "x".repeat(201);
        let rows = [
            ("/schema", json!("maka.policy.manifest/2")),
            ("/abi", json!("maka:policy@2")),
            ("/name", json!("")),
            ("/name", json!("Acme Hours")),
            ("/version", json!("1 4")),
            ("/hooks", json!([])),
            ("/hooks", json!(["admit-dispatch", "admit-dispatch"])),
            ("/hooks", json!(["admit-everything"])),
            ("/facts", json!(["screen-contents"])),
            ("/facts", json!(["typed-text"])),
            (
                "/rules",
                json!([{"id": "a", "doc": "d"}, {"id": "a", "doc": "d"}]),
            ),
            ("/rules/0/doc", json!("line\nline")),
            ("/denials/0/code", json!("snapshot_spent")),
            ("/denials/0/code", json!("policy_trap")),
            ("/denials/0/sentence", json!(long)),
            ("/denials/0/sentence", json!("say {title}")),
            ("/denials/0/sentence", json!("tip\u{202e}")),
            ("/denials/0/retry", json!("soon")),
            ("/obligations", json!(["run-shell"])),
            ("/settings_schema", json!(true)),
            ("/limits/fuel", json!(0)),
            ("/limits/fuel", json!(20_000_001)),
            ("/limits/memory_mib", json!(17)),
            ("/limits/memory_mib", json!(u64::MAX)),
            ("/limits", json!({"fuel": 1, "memory_mib": 1, "threads": 4})),
        ];
        for (pointer, value) in rows {
            assert!(check(pointer, value.clone()).is_err(), "{pointer} {value}");
        }
    }

    #[test]
    fn only_the_outermost_section_counts_and_only_one() {
        let custom = |name: &str, content: &str| {
            let mut payload = vec![u8::try_from(name.len()).unwrap()];
            payload.extend(name.as_bytes());
            payload.extend(content.as_bytes());
            let mut bytes = vec![0, u8::try_from(payload.len()).unwrap()];
            bytes.extend(payload);
            bytes
        };
        let head = b"\0asm\x0d\0\x01\0".to_vec();
        let with = |parts: &[Vec<u8>]| [head.clone(), parts.concat()].concat();
        assert_eq!(
            section(&with(&[custom("other", "x"), custom(SECTION, "{}")])).unwrap(),
            b"{}"
        );
        assert!(matches!(section(&with(&[])), Err(ManifestError::Missing)));
        let twice = with(&[custom(SECTION, "{}"), custom(SECTION, "{}")]);
        assert!(matches!(section(&twice), Err(ManifestError::Ambiguous)));
        for bad in [
            &b"\0asm\x01\0\0\0"[..],
            b"",
            &with(&[vec![1, 0xff]]),
            &with(&[vec![0, 0x80, 0x80, 0x80, 0x80, 0x80]]),
        ] {
            assert!(matches!(section(bad), Err(ManifestError::NotComponent)));
        }
    }
}
