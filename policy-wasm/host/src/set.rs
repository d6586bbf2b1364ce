//! Policy sets: the floor, then what the operator added.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::digest::Digest;
use crate::engine::Engine;
use crate::limits::Allowance;
use crate::module::{LoadError, Mode, Module, ModuleSource};
use crate::prebuilt;

/// The floor, loaded. A type of its own, so that no other module can take its place.
#[derive(Debug, Clone)]
pub struct Floor(Module);

impl Floor {
    /// Compiles the floor that is part of the product. Blocks for the time of a compilation.
    ///
    /// # Errors
    ///
    /// When the settings are not accepted, or this machine cannot run the component.
    pub fn load(engine: &Engine, settings: &Value) -> Result<Self, LoadError> {
        Module::load_floor(
            engine,
            ModuleSource {
                name: maka_floor::manifest::NAME.to_owned(),
                bytes: prebuilt::FLOOR.into(),
                pin: prebuilt::floor_digest(),
                settings: settings.clone(),
                mode: Mode::Enforce,
                allowance: Allowance::default(),
            },
        )
        .map(Self)
    }

    /// The same floor with other settings, without another compilation.
    ///
    /// # Errors
    ///
    /// When the settings are not accepted.
    pub fn with_settings(&self, engine: &Engine, settings: &Value) -> Result<Self, LoadError> {
        self.0.with_settings(engine, settings).map(Self)
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.0
    }
}

/// The policies that judge the calls of one tenant, in order. The floor is always the first.
#[derive(Debug)]
pub struct PolicySet {
    name: String,
    modules: Vec<Module>,
    digest: Digest,
}

impl PolicySet {
    /// A set with this name. `more` follows the floor in the given order.
    ///
    /// # Errors
    ///
    /// When the set has more modules than the engine's limits permit, or two of one name.
    pub fn new(
        engine: &Engine,
        name: &str,
        floor: &Floor,
        more: Vec<Module>,
    ) -> Result<Self, LoadError> {
        let modules: Vec<_> = std::iter::once(floor.0.clone()).chain(more).collect();
        if modules.len() as u64 > engine.limits().modules_per_set {
            return Err(LoadError::TooMany);
        }
        let mut hash = Sha256::new();
        for (at, module) in modules.iter().enumerate() {
            if modules[..at]
                .iter()
                .any(|other| other.name() == module.name())
            {
                return Err(LoadError::NameTwice);
            }
            hash.update(module.digest().as_bytes());
            hash.update(module.settings_digest().as_bytes());
            hash.update(module.mode().as_str().as_bytes());
        }
        Ok(Self {
            name: name.to_owned(),
            modules,
            digest: Digest::from_bytes(hash.finalize().into()),
        })
    }

    /// The tenant whose calls this set judges.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The floor of this set, with its settings.
    #[must_use]
    pub fn floor(&self) -> Floor {
        Floor(self.modules[0].clone())
    }

    /// The modules, in order.
    #[must_use]
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Covers the components, their settings, their modes and their order.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}
