//! Builds the sets of a candidate, aside from what is active, and proves them.
//!
//! A component is compiled once as long as a set uses it, whatever its settings; its digest and signature are checked
//! each time it is named. Blocking: it reads files, compiles, and runs policies.

use std::{path::Path, sync::Arc};

use maka_policy_host::{
    digest::Digest,
    engine::Engine,
    limits::Allowance,
    module::{Mode, Module, ModuleSource},
    prebuilt::Prebuilt,
    proof,
    set::{Floor, PolicySet},
};
use serde_json::Value;

use super::{
    choices::{Choice, Choices, Chosen},
    fault::{Fault, FaultCode},
    source::{self, Component, Trust},
    store::Store,
};
use crate::config::policy::{self, ModuleConfig, PolicyConfig};

/// The most components that are kept compiled: those of a few sets, and some candidates.
const MAX_COMPILED: usize = 32;

/// A compiled component with what its manifest was held against.
#[derive(Clone, Debug)]
struct Compiled {
    digest: Digest,
    allowance: Allowance,
    module: Module,
}

/// Builds sets.
#[derive(Debug)]
pub(crate) struct Builder {
    engine: Engine,
    floor: Option<Floor>,
    compiled: Vec<Compiled>,
}

/// Where the parts of sets come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) config: Option<&'a PolicyConfig>,
    pub(crate) trust: &'a Trust,
    pub(crate) store: &'a Store,
}

impl<'a> Parts<'a> {
    fn names(self) -> Vec<&'a str> {
        self.config.map_or_else(
            || vec![policy::DEFAULT_SET],
            |config| config.set_names().collect(),
        )
    }

    /// Whether the configuration has a set of this name.
    pub(crate) fn has(self, set: &str) -> bool {
        self.names().contains(&set)
    }
}

impl Builder {
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine,
            floor: None,
            compiled: Vec::new(),
        }
    }

    /// Every set as the configuration and the calls want it, proved.
    pub(crate) fn sets(
        &mut self,
        parts: Parts<'_>,
        choices: &Choices,
    ) -> Result<Vec<Arc<PolicySet>>, Fault> {
        if let Some(gone) = choices.sets.keys().find(|name| !parts.has(name)) {
            return Err(Fault::refused("set_gone").at(gone.clone()));
        }
        let mut sets = Vec::new();
        for name in parts.names() {
            let set = match choices.sets.get(name) {
                Some(Choice::Deactivated) => None,
                Some(Choice::Activated {
                    modules,
                    floor_settings,
                }) => Some(self.chosen(parts, name, modules, floor_settings)?),
                None => match parts.config.and_then(|config| config.set(name)) {
                    Some((modules, floor)) => {
                        Some(self.configured(parts, name, modules, &floor.to_json())?)
                    }
                    None => None,
                },
            };
            if let Some(set) = set {
                proof::set(&self.engine, &set)?;
                sets.push(Arc::new(set));
            }
        }
        Ok(sets)
    }

    /// A set as a call wants it. Not proved yet.
    pub(crate) fn chosen(
        &mut self,
        parts: Parts<'_>,
        name: &str,
        modules: &[Chosen],
        floor_settings: &Value,
    ) -> Result<PolicySet, Fault> {
        let mut loaded = Vec::new();
        for chosen in modules {
            let digest = source::digest(&chosen.digest)?;
            let component = component(parts, digest)?
                .ok_or_else(|| Fault::from(FaultCode::PolicyUnknown).at(chosen.digest.clone()))?;
            loaded.push(self.module(
                &component,
                None,
                &chosen.settings,
                chosen.mode(),
                chosen.allowance(),
            )?);
        }
        self.set(name, loaded, floor_settings)
    }

    fn configured(
        &mut self,
        parts: Parts<'_>,
        name: &str,
        modules: &[ModuleConfig],
        floor_settings: &Value,
    ) -> Result<PolicySet, Fault> {
        let mut loaded = Vec::new();
        for module in modules {
            let component = source::configured(parts.trust, module)?;
            let mode = match module.mode {
                policy::Mode::Enforce => Mode::Enforce,
                policy::Mode::Monitor => Mode::Monitor,
            };
            let own_name = module.name.as_str();
            loaded.push(
                self.module(
                    &component,
                    Some(own_name),
                    &module.settings.to_json(),
                    mode,
                    module.allowance.clone(),
                )
                .map_err(|fault| fault.of(own_name))?,
            );
        }
        self.set(name, loaded, floor_settings)
    }

    fn set(
        &mut self,
        name: &str,
        modules: Vec<Module>,
        floor_settings: &Value,
    ) -> Result<PolicySet, Fault> {
        let floor = match &self.floor {
            Some(floor) => floor.clone(),
            None => {
                let floor = Floor::load(&self.engine, &Value::Object(serde_json::Map::new()))?;
                self.floor.insert(floor).clone()
            }
        };
        let floor = floor
            .with_settings(&self.engine, floor_settings)
            .map_err(|error| Fault::from(error).of(floor.module().name()))?;
        Ok(PolicySet::new(&self.engine, name, &floor, modules)?)
    }

    /// A module that passes the fixtures of its bundle.
    fn module(
        &mut self,
        component: &Component,
        name: Option<&str>,
        settings: &Value,
        mode: Mode,
        allowance: Allowance,
    ) -> Result<Module, Fault> {
        if component.digest == maka_policy_host::prebuilt::floor_digest() {
            return Err(Fault::refused("name_twice"));
        }
        let manifest = source::manifest(component)?;
        if name.is_some_and(|name| name != manifest.name) {
            return Err(Fault::refused("name"));
        }
        let of = |fault: Fault| match fault.module {
            Some(_) => fault,
            None => fault.of(&manifest.name),
        };
        let known = self
            .compiled
            .iter()
            .find(|known| known.digest == component.digest && known.allowance == allowance);
        if let Some(known) = known {
            return known
                .module
                .with_settings(&self.engine, settings)
                .map(|module| module.in_mode(mode))
                .map_err(|error| of(error.into()));
        }
        let module = Module::load(
            &self.engine,
            ModuleSource {
                name: manifest.name.clone(),
                bytes: Arc::clone(&component.bytes),
                pin: component.digest,
                settings: settings.clone(),
                mode,
                allowance: allowance.clone(),
            },
        )
        .map_err(|error| of(error.into()))?;
        proof::fixtures(&self.engine, &module, &component.fixtures)
            .map_err(|error| of(error.into()))?;
        if self.compiled.len() >= MAX_COMPILED {
            // The oldest may be in use; then it is compiled again when it is named again.
            self.compiled.remove(0);
        }
        self.compiled.push(Compiled {
            digest: component.digest,
            allowance,
            module: module.clone(),
        });
        Ok(module)
    }

    /// Forgets what no active set uses.
    pub(crate) fn forget(&mut self, used: &[Digest]) {
        self.compiled.retain(|known| used.contains(&known.digest));
    }
}

/// The component of this digest: built in, loaded, or configured.
fn component(parts: Parts<'_>, digest: Digest) -> Result<Option<Component>, Fault> {
    let built_in = Prebuilt::ALL
        .iter()
        .find(|prebuilt| Digest::of(prebuilt.bytes()) == digest);
    if let Some(prebuilt) = built_in {
        return Ok(Some(Component {
            bytes: prebuilt.bytes().into(),
            digest,
            fixtures: Vec::new(),
            signer: None,
        }));
    }
    if let Some(component) = parts.store.read(parts.trust, digest)? {
        return Ok(Some(component));
    }
    for module in configured_modules(parts.config) {
        // One that cannot be read now is not the one that is meant, or is missed below.
        if let Ok(component) = source::configured(parts.trust, module)
            && component.digest == digest
        {
            return Ok(Some(component));
        }
    }
    Ok(None)
}

/// Every module of every set of the configuration.
pub(crate) fn configured_modules(
    config: Option<&PolicyConfig>,
) -> impl Iterator<Item = &ModuleConfig> {
    config.into_iter().flat_map(|config| {
        config
            .set_names()
            .filter_map(|name| config.set(name))
            .flat_map(|(modules, _)| modules)
    })
}

/// Builds everything that a gateway with this configuration and state would judge by, and drops it again.
///
/// # Errors
/// [`Fault`] for the first thing that would keep it from starting.
pub fn examine(
    engine: Engine,
    config: &PolicyConfig,
    state_dir: &Path,
) -> Result<Vec<Arc<PolicySet>>, Fault> {
    let trust = Trust {
        signers: config.signers.clone(),
        require_signature: config.require_signature,
    };
    let store = Store::open(state_dir, &trust)?;
    let parts = Parts {
        config: Some(config),
        trust: &trust,
        store: &store,
    };
    Builder::new(engine).sets(parts, &Choices::read(state_dir)?)
}
