//! The engine of a command, and the policies it loads.
//!
//! Fuel, memory and size have the gateway's defaults unless flags raise them as an operator would. Time limits stand at
//! their ceilings, because an author's busy machine should not change a verdict: fuel ends a loop long before.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use maka_policy_host::digest::Digest;
use maka_policy_host::engine::Engine;
use maka_policy_host::fixture::Case;
use maka_policy_host::limits::{Allowance, Limits};
use maka_policy_host::manifest::{Ceiling, KNOWN_FACTS, Manifest, RuleRow};
use maka_policy_host::module::{LoadError, Mode, Module, ModuleSource, Surface};
use maka_policy_host::prebuilt;
use maka_policy_host::set::Floor;
use serde_json::{Value, json};

use crate::error::InputError;
use crate::reference::{Reference, read_file};

/// The largest file of settings.
const SETTINGS_BYTES: u64 = 1 << 20;

/// What an operator would configure.
#[derive(Debug, Clone, Default, Args)]
pub struct LoadOptions {
    /// The settings of the policy: a JSON file. Without it they are `{}`.
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// Grant a fact that the manifest asks for. May be repeated.
    #[arg(long, value_name = "FACT", value_parser = clap::builder::PossibleValuesParser::new(KNOWN_FACTS))]
    pub grant_fact: Vec<String>,
    /// The fuel that the operator gives a call, in units; at most 200000000.
    #[arg(long, value_name = "UNITS")]
    pub max_fuel: Option<u64>,
    /// The memory that the operator gives an instance, in MiB; at most 64.
    #[arg(long, value_name = "MIB")]
    pub max_memory_mib: Option<u64>,
    /// The largest component that the operator accepts, in MiB; at most 16.
    #[arg(long, value_name = "MIB")]
    pub max_module_mib: Option<u64>,
}

impl LoadOptions {
    fn limits(&self) -> Limits {
        let defaults = Limits::default();
        let mib =
            |flag: Option<u64>, default| flag.map_or(default, |mib| mib.saturating_mul(1 << 20));
        Limits {
            fuel: self.max_fuel.unwrap_or(defaults.fuel),
            memory_bytes: mib(self.max_memory_mib, defaults.memory_bytes),
            module_bytes: mib(self.max_module_mib, defaults.module_bytes),
            wall_ms: 500,
            total_ms: 1_000,
            compile_ms: 60_000,
            pool: 2,
            pool_wait_ms: 1_000,
            ..defaults
        }
    }
}

/// An engine with what an operator would configure.
#[derive(Debug)]
pub struct Workbench {
    engine: Engine,
    options: LoadOptions,
}

impl Workbench {
    /// Starts an engine.
    ///
    /// # Errors
    ///
    /// When a limit is out of its range, or the engine does not start.
    pub fn new(options: &LoadOptions) -> Result<Self, InputError> {
        Ok(Self {
            engine: Engine::new(options.limits())?,
            options: options.clone(),
        })
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Reads a component.
    ///
    /// # Errors
    ///
    /// When its file cannot be read, or is larger than any limit allows.
    pub fn read(&self, reference: &Reference) -> Result<Arc<[u8]>, InputError> {
        // One byte more than the engine's own limit, so that it is the engine that refuses.
        reference.read(self.engine.limits().module_bytes.saturating_add(1))
    }

    /// Reads the manifest of a component, whatever it asks for.
    ///
    /// # Errors
    ///
    /// When it is missing or malformed.
    pub fn manifest(&self, reference: &Reference, bytes: &[u8]) -> Result<Manifest, InputError> {
        let facts: Vec<_> = KNOWN_FACTS.iter().map(|fact| (*fact).to_owned()).collect();
        let ceiling = Ceiling {
            facts: &facts,
            fuel: u64::MAX,
            memory_bytes: u64::MAX,
            owns_built_in: is_floor(bytes),
        };
        Manifest::read(bytes, ceiling).map_err(|error| refused(reference, error.into()))
    }

    /// The rules of a policy. Nothing is compiled for it.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or has no manifest that can be understood.
    pub fn rules(&self, reference: &Reference) -> Result<Vec<RuleRow>, InputError> {
        let bytes = self.read(reference)?;
        self.manifest(reference, &bytes)
            .map(|manifest| manifest.rules)
    }

    /// What a component imports and exports.
    ///
    /// # Errors
    ///
    /// When it does not compile.
    pub fn surface(&self, reference: &Reference, bytes: Arc<[u8]>) -> Result<Surface, InputError> {
        Surface::read(&self.engine, bytes).map_err(|error| refused(reference, error))
    }

    /// Loads a policy as a gateway would, with the settings of the command line.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is refused.
    pub fn load(&self, reference: &Reference) -> Result<Module, InputError> {
        self.load_with(reference, self.settings()?)
    }

    /// Loads a policy with these settings.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is refused.
    pub fn load_with(&self, reference: &Reference, settings: Value) -> Result<Module, InputError> {
        let bytes = self.read(reference)?;
        self.build(bytes, settings)
            .map_err(|error| refused(reference, error))
    }

    /// Loads a policy that was read already, with the settings of the command line.
    ///
    /// # Errors
    ///
    /// When it is refused.
    pub fn load_bytes(&self, policy: &str, bytes: &[u8]) -> Result<Module, InputError> {
        self.build(bytes.into(), self.settings()?)
            .map_err(|source| InputError::Refused {
                policy: policy.to_owned(),
                source: Box::new(source),
            })
    }

    /// A policy that is asked under the settings of several cases.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is refused.
    pub fn policies(&self, reference: &Reference) -> Result<Policies<'_>, InputError> {
        let base = self.load(reference)?;
        Ok(Policies {
            bench: self,
            base,
            prepared: Vec::new(),
        })
    }

    /// The floor with these settings.
    ///
    /// # Errors
    ///
    /// When they are refused, or this machine cannot run it.
    pub fn floor(&self, settings: &Value) -> Result<Floor, InputError> {
        Floor::load(&self.engine, settings)
            .map_err(|error| refused(&Reference::BuiltIn(prebuilt::Prebuilt::Floor), error))
    }

    /// The settings of the command line.
    ///
    /// # Errors
    ///
    /// When their file cannot be read, or is no JSON.
    pub fn settings(&self) -> Result<Value, InputError> {
        self.options
            .settings
            .as_deref()
            .map_or_else(|| Ok(json!({})), read_settings)
    }

    fn build(&self, bytes: Arc<[u8]>, settings: Value) -> Result<Module, LoadError> {
        if is_floor(&bytes) {
            return Floor::load(&self.engine, &settings).map(|floor| floor.module().clone());
        }
        let limits = self.engine.limits();
        // The name is not an author's to configure, so it is the manifest's; nothing else is taken from here.
        let name = Manifest::read(
            &bytes,
            Ceiling {
                facts: &self.options.grant_fact,
                fuel: limits.fuel,
                memory_bytes: limits.memory_bytes,
                owns_built_in: false,
            },
        );
        Module::load(
            &self.engine,
            ModuleSource {
                // Without a manifest the load fails by itself, and says so.
                name: name.map(|manifest| manifest.name).unwrap_or_default(),
                pin: Digest::of(&bytes),
                bytes,
                settings,
                mode: Mode::Enforce,
                allowance: Allowance {
                    facts: self.options.grant_fact.clone(),
                    ..Allowance::default()
                },
            },
        )
    }
}

/// One policy under the settings of several cases; it is compiled once.
#[derive(Debug)]
pub struct Policies<'a> {
    bench: &'a Workbench,
    base: Module,
    prepared: Vec<(Value, Module)>,
}

impl Policies<'_> {
    /// The policy with the settings of the command line.
    #[must_use]
    pub fn base(&self) -> &Module {
        &self.base
    }

    /// The policy with the settings of this case.
    ///
    /// # Errors
    ///
    /// When the settings are refused.
    pub fn with(&mut self, case: &Case) -> Result<Module, InputError> {
        let Some(settings) = &case.settings else {
            return Ok(self.base.clone());
        };
        if let Some((_, module)) = self.prepared.iter().find(|(known, _)| known == settings) {
            return Ok(module.clone());
        }
        let module = self
            .base
            .with_settings(self.bench.engine(), settings)
            .map_err(|source| InputError::CaseSettings {
                file: case.file.clone(),
                line: case.line,
                source: Box::new(source),
            })?;
        self.prepared.push((settings.clone(), module.clone()));
        Ok(module)
    }
}

/// Whether these bytes are the floor that is part of the product. Only that one may repeat the built-in refusals.
fn is_floor(bytes: &[u8]) -> bool {
    Digest::of(bytes) == prebuilt::floor_digest()
}

fn refused(reference: &Reference, source: LoadError) -> InputError {
    InputError::Refused {
        policy: reference.to_string(),
        source: Box::new(source),
    }
}

fn read_settings(path: &Path) -> Result<Value, InputError> {
    let bytes = read_file(path, SETTINGS_BYTES)?;
    serde_json::from_slice(&bytes).map_err(|source| InputError::SettingsJson {
        path: path.to_owned(),
        source,
    })
}
