//! Section `[policy]`: the modules that judge beside the floor.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use super::value::{AbsolutePath, Name, Sha256};

/// The policy set. The floor is embedded, always first and not part of the list; a section without modules
/// is the floor alone.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// Further modules, in order of judgement.
    #[serde(default)]
    pub modules: Modules,
}

/// Modules with distinct names.
#[derive(Clone, Debug, Default)]
pub struct Modules(pub Vec<ModuleConfig>);

/// One module.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleConfig {
    /// The name that its manifest carries.
    pub name: Name,
    /// The component's file.
    pub path: AbsolutePath,
    /// Digest of the file. A module that differs from it is not loaded, and the gateway does not start.
    pub sha256: Sha256,
    /// Whether its verdict counts.
    #[serde(default)]
    pub mode: Mode,
    /// Its settings, as a table; checked by the module itself.
    #[serde(default)]
    pub settings: Settings,
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
