//! Section `[policy]`: the sets of modules that judge beside the floor, and who may sign them.

use std::fmt;

use maka_policy_host::{key::PublicKey, limits::Allowance, manifest::KNOWN_FACTS};
use serde::{Deserialize, Deserializer, de};

use super::value::{AbsolutePath, Bounded, Name, Sha256};

/// Name of the set of this section itself, which judges every principal that names no other.
pub const DEFAULT_SET: &str = "default";
/// The most sets.
const MAX_SETS: usize = 16;

/// The policy sets. The floor is embedded, always first in each and not part of the lists; a set without modules is the
/// floor alone.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// Modules of the set `default`, in order of judgement.
    #[serde(default)]
    pub modules: Modules,
    /// Settings of the floor in the set `default`.
    #[serde(default)]
    pub floor_settings: Settings,
    /// Further sets.
    #[serde(default)]
    pub sets: Sets,
    /// Whose bundles are taken.
    #[serde(default)]
    pub signers: Signers,
    /// Only signed bundles are taken, here and by `Policies.Load`. What is part of the product needs no signature.
    #[serde(default)]
    pub require_signature: bool,
    /// Warn when the last successful look at the policies is older.
    pub stale_after_ms: Option<Bounded<1_000, 31_536_000_000>>,
}

/// Modules with distinct names.
#[derive(Clone, Debug, Default)]
pub struct Modules(pub Vec<ModuleConfig>);

/// A further set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// The name that principals name.
    pub name: Name,
    /// Its modules, in order of judgement.
    #[serde(default)]
    pub modules: Modules,
    /// Settings of the floor in this set.
    #[serde(default)]
    pub floor_settings: Settings,
}

/// Further sets: distinct names, none of them `default`.
#[derive(Clone, Debug, Default)]
pub struct Sets(pub Vec<SetConfig>);

/// A key whose bundles are taken.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignerConfig {
    /// What it is called in `Policies.List`.
    pub name: Name,
    /// The public key, as `maka-policy keygen` prints it.
    #[serde(deserialize_with = "public_key")]
    pub key: PublicKey,
}

/// Signers: distinct names, distinct keys.
#[derive(Clone, Debug, Default)]
pub struct Signers(pub Vec<SignerConfig>);

/// One module.
#[derive(Clone, Debug)]
pub struct ModuleConfig {
    /// The name that its manifest carries.
    pub name: Name,
    /// Where it is.
    pub source: ModuleFile,
    /// Whether its verdict counts.
    pub mode: Mode,
    /// Its settings, as a table; checked by the module itself.
    pub settings: Settings,
    /// What it gets beyond what every module gets.
    pub allowance: Allowance,
}

/// Where a module is. One that differs from its digest or its signature is not loaded, and the gateway does not start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ModuleFile {
    /// A component, pinned by its digest.
    Component {
        /// The file.
        path: AbsolutePath,
        /// Digest of the file.
        sha256: Sha256,
    },
    /// A bundle of one of the signers.
    Bundle {
        /// The file.
        path: AbsolutePath,
        /// Digest of the component in it, where this very one is meant.
        sha256: Option<Sha256>,
    },
}

/// Whether a module's verdict counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It counts.
    #[default]
    Enforce,
    /// It is recorded only.
    Monitor,
}

/// Settings of a module, as JSON. Not printed: a module may keep a secret in them.
#[derive(Clone, Default)]
pub struct Settings(serde_json::Map<String, serde_json::Value>);

impl Settings {
    /// The settings; an empty object when there are none.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::Value::Object(self.0.clone())
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("<settings>")
    }
}

impl PolicyConfig {
    /// The names of all sets, `default` first.
    pub fn set_names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(DEFAULT_SET).chain(self.sets.0.iter().map(|set| set.name.as_str()))
    }

    /// What a set is made of: its modules and the settings of its floor.
    #[must_use]
    pub fn set(&self, name: &str) -> Option<(&[ModuleConfig], &Settings)> {
        if name == DEFAULT_SET {
            return Some((&self.modules.0, &self.floor_settings));
        }
        self.sets
            .0
            .iter()
            .find(|set| set.name.as_str() == name)
            .map(|set| (&*set.modules.0, &set.floor_settings))
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = toml::Table::deserialize(deserializer)
            .map_err(|_| de::Error::custom("write a table"))?;
        match serde_json::to_value(&table) {
            Ok(serde_json::Value::Object(settings)) => Ok(Self(settings)),
            Ok(_) | Err(_) => Err(de::Error::custom(
                "holds a value that JSON lacks; leave out `inf` and `nan`",
            )),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Name,
    path: Option<AbsolutePath>,
    bundle: Option<AbsolutePath>,
    sha256: Option<Sha256>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    settings: Settings,
    #[serde(default)]
    grant_facts: Vec<Fact>,
    max_fuel: Option<Bounded<100_000, 200_000_000>>,
    max_memory_mib: Option<Bounded<1, 64>>,
    max_module_mib: Option<Bounded<1, 16>>,
    max_compile_s: Option<Bounded<1, 60>>,
}

/// A fact that a manifest can ask for.
struct Fact(String);

impl<'de> Deserialize<'de> for Fact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        if KNOWN_FACTS.contains(&word.as_str()) {
            Ok(Self(word))
        } else {
            Err(de::Error::custom(
                "no fact that a policy can ask for; there is `typed-text`",
            ))
        }
    }
}

impl<'de> Deserialize<'de> for ModuleConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = Entry::deserialize(deserializer)?;
        let source = match (entry.path, entry.bundle, entry.sha256) {
            (Some(path), None, Some(sha256)) => ModuleFile::Component { path, sha256 },
            (None, Some(path), sha256) => ModuleFile::Bundle { path, sha256 },
            (Some(_), None, None) => {
                return Err(de::Error::custom(
                    "missing field `sha256`; a component is pinned by its digest",
                ));
            }
            (None, None, _) => {
                return Err(de::Error::custom(
                    "missing field `path`; write `path` and `sha256` of a component, or `bundle`",
                ));
            }
            (Some(_), Some(_), _) => {
                return Err(de::Error::custom(
                    "a module is one file; write `path` or `bundle`",
                ));
            }
        };
        let mib = |number: u64| number << 20;
        Ok(Self {
            name: entry.name,
            source,
            mode: entry.mode,
            settings: entry.settings,
            allowance: Allowance {
                facts: entry.grant_facts.into_iter().map(|fact| fact.0).collect(),
                fuel: entry.max_fuel.map(Bounded::get),
                memory_bytes: entry.max_memory_mib.map(Bounded::get).map(mib),
                module_bytes: entry.max_module_mib.map(Bounded::get).map(mib),
                compile_ms: entry
                    .max_compile_s
                    .map(Bounded::get)
                    .map(|seconds| seconds * 1_000),
            },
        })
    }
}

impl<'de> Deserialize<'de> for Modules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let modules = Vec::<ModuleConfig>::deserialize(deserializer)?;
        for (index, module) in modules.iter().enumerate() {
            if module.name.as_str() == "maka-floor" {
                return Err(de::Error::custom(
                    "the floor is built in and always first; leave `maka-floor` out",
                ));
            }
            if modules[..index]
                .iter()
                .any(|earlier| earlier.name == module.name)
            {
                return Err(de::Error::custom(
                    "two modules have the same name; name each once",
                ));
            }
        }
        Ok(Self(modules))
    }
}

impl<'de> Deserialize<'de> for Sets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sets = Vec::<SetConfig>::deserialize(deserializer)?;
        if sets.len() >= MAX_SETS {
            return Err(de::Error::custom("there are at most 16 sets"));
        }
        for (index, set) in sets.iter().enumerate() {
            if set.name.as_str() == DEFAULT_SET {
                return Err(de::Error::custom(
                    "the set `default` is the section itself; write its modules under `[policy]`",
                ));
            }
            if sets[..index].iter().any(|earlier| earlier.name == set.name) {
                return Err(de::Error::custom(
                    "two sets have the same name; name each once",
                ));
            }
        }
        Ok(Self(sets))
    }
}

impl<'de> Deserialize<'de> for Signers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let signers = Vec::<SignerConfig>::deserialize(deserializer)?;
        for (index, signer) in signers.iter().enumerate() {
            if signers[..index]
                .iter()
                .any(|earlier| earlier.name == signer.name || earlier.key == signer.key)
            {
                return Err(de::Error::custom(
                    "two signers have the same name or key; name each once",
                ));
            }
        }
        Ok(Self(signers))
    }
}

fn public_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PublicKey, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(de::Error::custom)
}
