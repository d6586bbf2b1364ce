//! The operator's plane of policies: what there is, what judges, and how that changes while the gateway runs.
//!
//! A change is proved beside what runs and then made all at once, or refused with a reason; there is one at a time. It
//! comes from the start, from the configuration read again (SIGHUP), or from a call. What a call made of a set stands
//! over a restart and over SIGHUP until another call takes it back.
//!
//! Everything slow runs on threads for blocking work. A change that has begun is finished even if its caller goes away.
//!
//! **Invariants.**
//! - A refused candidate changes nothing: not what judges, not what is on disk.
//! - What judges after a restart is what judged before, or nothing does and the gateway does not run.

mod ask;
mod build;
mod choices;
pub mod fault;
mod source;
mod store;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use maka_policy_host::{
    bundle,
    digest::Digest,
    engine::Engine,
    judge::Judge,
    log::Trigger,
    module::{LoadError, Mode, Module, ModuleSource},
    prebuilt::Prebuilt,
    set::PolicySet,
};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

pub use self::ask::{Answer, Asked, Line, sentence};
pub use self::build::examine;
use self::{
    build::{Builder, Parts, configured_modules},
    choices::{Choice, Choices, Chosen},
    fault::{Fault, FaultCode},
    source::{Component, Trust},
    store::Store,
};
use crate::{config::policy::PolicyConfig, policy::standing::Standing};

/// Questions that are answered at the same time. A further one is told to come back.
const QUESTIONS: usize = 2;

/// Policies that arrive at the same time. A further one is told to come back.
const UPLOADS: usize = 2;

/// How long a call waits for a change that is under way.
const TURN_PATIENCE: Duration = Duration::from_secs(5);

/// A module as a call names it.
#[derive(Clone)]
pub struct ModuleChoice {
    /// Digest of its component, as text.
    pub digest: String,
    /// Whether its verdict counts.
    pub mode: Mode,
    /// Its settings.
    pub settings: Value,
    /// Facts that it gets beyond the ordinary ones.
    pub grant_facts: Vec<String>,
    /// Fuel per call beyond the usual.
    pub max_fuel: Option<u64>,
    /// Memory beyond the usual, in bytes.
    pub max_memory_bytes: Option<u64>,
}

impl fmt::Debug for ModuleChoice {
    // Settings may hold a secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ModuleChoice")
            .field("digest", &self.digest)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// What a call wants a set to be.
#[derive(Clone)]
pub enum Wanted {
    /// These modules behind the floor with these settings.
    Set {
        /// The modules, in order.
        modules: Vec<ModuleChoice>,
        /// Settings of the floor.
        floor_settings: Value,
    },
    /// What the configuration says.
    Configuration,
    /// Nothing: its principals are refused.
    Nothing,
}

impl fmt::Debug for Wanted {
    // Settings may hold a secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Set { .. } => "Set",
            Self::Configuration => "Configuration",
            Self::Nothing => "Nothing",
        })
    }
}

/// Where a policy comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// Part of the product.
    BuiltIn,
    /// Came by a call.
    Loaded,
    /// Named by the configuration.
    Configured,
}

/// A policy that a call can name.
#[derive(Clone, Debug)]
pub struct KnownPolicy {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Digest of its component.
    pub digest: Digest,
    /// Where it comes from.
    pub origin: Origin,
    /// The operator's name for the key that signed its bundle.
    pub signer: Option<String>,
    /// Fixture files that came with it.
    pub fixtures: usize,
    /// The active sets that use it.
    pub sets: Vec<String>,
}

/// What became of the last change.
#[derive(Clone, Debug)]
pub struct LastChange {
    /// Why it was refused; nothing when it was made.
    pub fault: Option<Fault>,
    /// Unix milliseconds.
    pub at_unix_ms: u64,
    /// The generation that judges since.
    pub generation: u64,
}

/// Where the plane stands.
#[derive(Clone, Debug)]
pub struct View {
    /// The last change, when there was one.
    pub last: Option<LastChange>,
    /// Sets that are what a call made of them.
    pub called: Vec<String>,
    /// The last successful look at the policies is older than it should be.
    pub stale: bool,
}

/// The plane. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Plane(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Engine,
    judge: Arc<Judge>,
    state_dir: PathBuf,
    standing: watch::Sender<Standing>,
    /// One change at a time.
    turn: Arc<Semaphore>,
    questions: Arc<Semaphore>,
    uploads: Arc<Semaphore>,
    /// Locked by whoever has the turn, on a thread for blocking work, and by questions about a candidate.
    bench: Mutex<Bench>,
    /// What can be looked at without waiting for a change.
    shown: Mutex<Shown>,
}

/// What a change works with.
#[derive(Debug)]
struct Bench {
    config: Option<PolicyConfig>,
    trust: Trust,
    choices: Choices,
    /// Opened at the start.
    store: Option<Store>,
    builder: Builder,
}

#[derive(Debug)]
struct Shown {
    last: Option<LastChange>,
    called: Vec<String>,
    stale_after: Option<Duration>,
    checked_at: Instant,
}

impl Plane {
    /// A plane with nothing active until [`start`](Self::start).
    #[must_use]
    pub fn new(
        engine: Engine,
        judge: Arc<Judge>,
        config: Option<PolicyConfig>,
        state_dir: &Path,
        standing: watch::Sender<Standing>,
    ) -> Self {
        Self(Arc::new(Inner {
            bench: Mutex::new(Bench {
                trust: trust(config.as_ref()),
                choices: Choices::default(),
                store: None,
                builder: Builder::new(engine.clone()),
                config: config.clone(),
            }),
            shown: Mutex::new(Shown {
                last: None,
                called: Vec::new(),
                stale_after: stale_after(config.as_ref()),
                checked_at: Instant::now(),
            }),
            engine,
            judge,
            state_dir: state_dir.to_owned(),
            standing,
            turn: Arc::new(Semaphore::new(1)),
            questions: Arc::new(Semaphore::new(QUESTIONS)),
            uploads: Arc::new(Semaphore::new(UPLOADS)),
        }))
    }

    /// Whether there is anything to make active: a section of the configuration, or what a call left behind.
    #[must_use]
    pub fn has_policies(config: Option<&PolicyConfig>, state_dir: &Path) -> bool {
        config.is_some() || Choices::are_there(state_dir)
    }

    /// Makes active what configuration and earlier calls say.
    ///
    /// # Errors
    /// [`Fault`]: a gateway that cannot have exactly these policies does not run (field report K6).
    pub async fn start(&self) -> Result<u64, Fault> {
        self.change(Patience::Gateway, None, |inner, bench| {
            bench.store = Some(Store::open(&inner.state_dir, &bench.trust)?);
            bench.choices = Choices::read(&inner.state_dir)?;
            let sets = bench.sets()?;
            inner.swap(bench, sets, Trigger::Start)
        })
        .await
    }

    /// Takes another section `[policy]`. What calls made of sets stands.
    ///
    /// # Errors
    /// [`Fault`]; what was active stays active, under the section it came from.
    pub async fn reload(&self, config: Option<PolicyConfig>) -> Result<u64, Fault> {
        self.change(Patience::Gateway, None, move |inner, bench| {
            let before = bench.replace(config);
            let swapped = bench
                .sets()
                .and_then(|sets| inner.swap(bench, sets, Trigger::Signal));
            match &swapped {
                Ok(_) => inner.shown().stale_after = stale_after(bench.config.as_ref()),
                Err(_) => drop(bench.replace(before)),
            }
            swapped
        })
        .await
    }

    /// Says that the configuration could not even be read.
    pub fn reload_unread(&self) {
        let fault = Fault::refused("configuration");
        self.0.refused(&fault, None);
    }

    /// Changes one set on the word of `principal`, who has seen generation `expected`.
    ///
    /// # Errors
    /// [`Fault`]; what was active stays active.
    pub async fn set(
        &self,
        principal: &str,
        name: &str,
        expected: u64,
        wanted: Wanted,
    ) -> Result<u64, Fault> {
        let (name, by) = (name.to_owned(), principal.to_owned());
        self.change(
            Patience::Caller,
            Some(principal.to_owned()),
            move |inner, bench| {
                if !bench.parts()?.has(&name) {
                    return Err(FaultCode::SetUnknown.into());
                }
                if inner.judge.generation() != expected {
                    return Err(FaultCode::GenerationChanged.into());
                }
                let before = bench.choices.clone();
                let choice = match wanted {
                    Wanted::Configuration => None,
                    Wanted::Nothing => Some(Choice::Deactivated),
                    Wanted::Set {
                        modules,
                        floor_settings,
                    } => Some(Choice::Activated {
                        modules: modules.into_iter().map(chosen).collect(),
                        floor_settings,
                    }),
                };
                match choice {
                    Some(choice) => drop(bench.choices.sets.insert(name, choice)),
                    None => drop(bench.choices.sets.remove(&name)),
                }
                // On disk before it judges: a crash in between leads to the new set, which was proved.
                let swapped = bench.sets().and_then(|sets| {
                    bench.choices.write(&inner.state_dir)?;
                    inner.swap(bench, sets, Trigger::Call(&by))
                });
                if swapped.is_err() {
                    bench.choices = before;
                    bench.choices.write(&inner.state_dir)?;
                }
                swapped
            },
        )
        .await
    }

    /// Room for a policy that arrives, until it is dropped; nothing when there is none.
    #[must_use]
    pub fn upload_room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.uploads).try_acquire_owned().ok()
    }

    /// Keeps a policy that came by a call. Whether it was there before.
    ///
    /// # Errors
    /// [`Fault`] when it is not acceptable or there is no room.
    pub async fn load(&self, file: Vec<u8>) -> Result<(KnownPolicy, bool), Fault> {
        let inner = Arc::clone(&self.0);
        self.with_turn(Patience::Caller, move || {
            let mut bench = inner.bench();
            let component = bench.trust.open(file.clone())?;
            let store = bench.store.as_ref().ok_or(FaultCode::ChangeRunning)?;
            if let Some(known) = store.get(component.digest) {
                let known = inner.loaded(known);
                return Ok((known, true));
            }
            inner.acceptable(&component)?;
            let used = used(&inner.judge, &bench.choices);
            let store = bench.store.as_mut().ok_or(FaultCode::ChangeRunning)?;
            let stored = store.keep(&component, &file, &used)?;
            Ok((inner.loaded(&stored), false))
        })
        .await
    }

    /// The policies that a call can name, and the names of the sets.
    ///
    /// # Errors
    /// [`Fault`] while a change is under way.
    pub async fn list(&self) -> Result<(Vec<KnownPolicy>, Vec<String>), Fault> {
        let inner = Arc::clone(&self.0);
        self.with_turn(Patience::Caller, move || {
            let bench = inner.bench();
            let mut known: Vec<_> = Prebuilt::ALL
                .iter()
                .filter(|prebuilt| **prebuilt != Prebuilt::Floor)
                .filter_map(|prebuilt| {
                    let component = Component {
                        digest: Digest::of(prebuilt.bytes()),
                        bytes: prebuilt.bytes().into(),
                        fixtures: Vec::new(),
                        signer: None,
                    };
                    inner.known(&component, Origin::BuiltIn)
                })
                .collect();
            let stored = bench.store.iter().flat_map(Store::policies);
            known.extend(stored.map(|stored| inner.loaded(stored)));
            for module in configured_modules(bench.config.as_ref()) {
                if let Ok(component) = source::configured(&bench.trust, module) {
                    known.extend(inner.known(&component, Origin::Configured));
                }
            }
            known.sort_by(|one, other| (&one.name, one.digest).cmp(&(&other.name, other.digest)));
            known.dedup_by_key(|policy| policy.digest);
            let names = match &bench.config {
                Some(config) => config.set_names().map(str::to_owned).collect(),
                None => vec![crate::config::policy::DEFAULT_SET.to_owned()],
            };
            Ok((known, names))
        })
        .await
    }

    /// Asks a set about the calls of a fixture. It is no decision: nothing is recorded and nothing is counted.
    ///
    /// # Errors
    /// [`Fault`] when fixture or candidate cannot be used, or too many ask.
    pub async fn ask(&self, fixture: String, asked: Asked) -> Result<Answer, Fault> {
        let permit = Arc::clone(&self.0.questions)
            .try_acquire_owned()
            .map_err(|_| FaultCode::ChangeRunning)?;
        let inner = Arc::clone(&self.0);
        blocking(move || {
            let _permit = permit;
            let set = match asked {
                Asked::Active(name) => inner
                    .judge
                    .active_sets()
                    .into_iter()
                    .find(|set| set.name() == name)
                    .ok_or(FaultCode::SetUnknown)?,
                Asked::Candidate {
                    modules,
                    floor_settings,
                } => {
                    // A change that is being proved has the bench for seconds; a question does not wait for it.
                    let mut bench = inner
                        .bench
                        .try_lock()
                        .map_err(|_| FaultCode::ChangeRunning)?;
                    let modules: Vec<_> = modules.into_iter().map(chosen).collect();
                    Arc::new(bench.candidate(&modules, &floor_settings)?)
                }
            };
            ask::ask(&inner.engine, &set, &fixture)
        })
        .await
    }

    /// Where the plane stands.
    #[must_use]
    pub fn view(&self) -> View {
        let shown = self.0.shown();
        View {
            last: shown.last.clone(),
            called: shown.called.clone(),
            stale: shown.is_stale(),
        }
    }

    async fn change(
        &self,
        patience: Patience,
        by: Option<String>,
        change: impl FnOnce(&Inner, &mut Bench) -> Result<u64, Fault> + Send + 'static,
    ) -> Result<u64, Fault> {
        let inner = Arc::clone(&self.0);
        self.with_turn(patience, move || {
            let changed = change(&inner, &mut inner.bench());
            if let Err(fault) = &changed {
                inner.refused(fault, by.as_deref());
            }
            changed
        })
        .await
    }

    async fn with_turn<T: Send + 'static>(
        &self,
        patience: Patience,
        work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let turn = Arc::clone(&self.0.turn);
        let turn = match patience {
            Patience::Caller => timeout(TURN_PATIENCE, turn.acquire_owned())
                .await
                .ok()
                .and_then(Result::ok),
            Patience::Gateway => turn.acquire_owned().await.ok(),
        };
        let turn = turn.ok_or(FaultCode::ChangeRunning)?;
        blocking(move || {
            let _turn = turn;
            work()
        })
        .await
    }
}

/// How long a change waits for the one before it: the gateway's own as long as it takes, a caller's a little, and then it
/// is told to come back.
#[derive(Clone, Copy, Debug)]
enum Patience {
    Caller,
    Gateway,
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // What panicked has changed nothing: the swap is the last thing that happens.
        Err(error) => Err(Fault::refused("internal").because(error)),
    }
}

impl Bench {
    fn parts(&self) -> Result<Parts<'_>, Fault> {
        Ok(Parts {
            config: self.config.as_ref(),
            trust: &self.trust,
            store: self.store.as_ref().ok_or(FaultCode::ChangeRunning)?,
        })
    }

    fn sets(&mut self) -> Result<Vec<Arc<PolicySet>>, Fault> {
        let parts = Parts {
            config: self.config.as_ref(),
            trust: &self.trust,
            store: self.store.as_ref().ok_or(FaultCode::ChangeRunning)?,
        };
        self.builder.sets(parts, &self.choices)
    }

    fn candidate(
        &mut self,
        modules: &[Chosen],
        floor_settings: &Value,
    ) -> Result<PolicySet, Fault> {
        let parts = Parts {
            config: self.config.as_ref(),
            trust: &self.trust,
            store: self.store.as_ref().ok_or(FaultCode::ChangeRunning)?,
        };
        self.builder
            .chosen(parts, "candidate", modules, floor_settings)
    }

    /// Puts another section in the place of the one there is.
    fn replace(&mut self, config: Option<PolicyConfig>) -> Option<PolicyConfig> {
        self.trust = trust(config.as_ref());
        std::mem::replace(&mut self.config, config)
    }
}

impl Shown {
    fn is_stale(&self) -> bool {
        self.stale_after
            .is_some_and(|after| self.checked_at.elapsed() > after)
    }
}

impl Inner {
    fn bench(&self) -> MutexGuard<'_, Bench> {
        self.bench.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes proved sets the ones that judge.
    fn swap(
        &self,
        bench: &mut Bench,
        sets: Vec<Arc<PolicySet>>,
        trigger: Trigger<'_>,
    ) -> Result<u64, Fault> {
        let standing = if sets.is_empty() {
            Standing::Absent
        } else {
            Standing::Active
        };
        // Held over the swap, so that whoever sees the new sets also sees where they come from.
        let mut shown = self.shown();
        let generation = self.judge.reload(sets, trigger)?;
        let used = used(&self.judge, &bench.choices);
        bench.builder.forget(&used);
        shown.called = bench.choices.sets.keys().cloned().collect();
        shown.checked_at = Instant::now();
        shown.last = Some(LastChange {
            fault: None,
            at_unix_ms: unix_ms(),
            generation,
        });
        drop(shown);
        self.standing.send_replace(standing);
        tracing::info!(generation, trigger = trigger.as_str(), "policies changed");
        Ok(generation)
    }

    /// Notes a refusal where an operator looks: in the decision log, in the view, and in the gateway's own log.
    fn refused(&self, fault: &Fault, by: Option<&str>) {
        let code = fault.detail.unwrap_or(fault.code.as_str());
        let trigger = by.map_or(Trigger::Signal, Trigger::Call);
        let trigger = match (self.shown().last.is_none(), by) {
            (true, None) => Trigger::Start,
            (true | false, _) => trigger,
        };
        self.judge
            .reload_refused(trigger, code, fault.module.as_deref(), &fault.place);
        tracing::warn!(
            error = %crate::telemetry::Chain(fault),
            code,
            "policies are refused; what was active stays active"
        );
        self.shown().last = Some(LastChange {
            fault: Some(fault.clone()),
            at_unix_ms: unix_ms(),
            generation: self.judge.generation(),
        });
    }

    /// Whether a policy could be part of a set at all: its manifest, imports and exports. Its settings are not known yet,
    /// and nothing is granted to it yet.
    fn acceptable(&self, component: &Component) -> Result<(), Fault> {
        let manifest = source::manifest(component)?;
        let name = manifest.name.clone();
        let loaded = Module::load(
            &self.engine,
            ModuleSource {
                name: manifest.name,
                bytes: Arc::clone(&component.bytes),
                pin: component.digest,
                settings: Value::Object(serde_json::Map::new()),
                mode: Mode::Enforce,
                allowance: maka_policy_host::limits::Allowance {
                    facts: manifest.facts,
                    fuel: Some(manifest.fuel),
                    memory_bytes: Some(manifest.memory_bytes),
                    module_bytes: Some(maka_policy_host::limits::MAX_MODULE_BYTES),
                    compile_ms: None,
                },
            },
        );
        match loaded {
            Ok(module) => {
                maka_policy_host::proof::fixtures(&self.engine, &module, &component.fixtures)
                    .map_err(|error| Fault::from(error).of(&name))
            }
            // It wants settings, which come with the activation, and is proved then.
            Err(
                LoadError::Schema(maka_policy_host::schema::SchemaError::Settings(_))
                | LoadError::Settings { .. },
            ) => Ok(()),
            Err(error) => Err(Fault::from(error).of(&name)),
        }
    }

    fn loaded(&self, stored: &store::Stored) -> KnownPolicy {
        KnownPolicy {
            name: stored.name.clone(),
            version: stored.version.clone(),
            digest: stored.digest,
            origin: Origin::Loaded,
            signer: stored.signer.clone(),
            fixtures: stored.fixtures,
            sets: self.sets_with(stored.digest),
        }
    }

    fn known(&self, component: &Component, origin: Origin) -> Option<KnownPolicy> {
        let manifest = source::manifest(component).ok()?;
        Some(KnownPolicy {
            name: manifest.name,
            version: manifest.version,
            digest: component.digest,
            origin,
            signer: component.signer.clone(),
            fixtures: component.fixtures.len(),
            sets: self.sets_with(component.digest),
        })
    }

    fn sets_with(&self, digest: Digest) -> Vec<String> {
        let uses = |set: &Arc<PolicySet>| set.modules().iter().any(|it| it.digest() == digest);
        let sets = self.judge.active_sets().into_iter().filter(uses);
        sets.map(|set| set.name().to_owned()).collect()
    }
}

/// The largest file that can be loaded.
pub const MAX_UPLOAD: u64 = bundle::MAX_BYTES;

fn chosen(module: ModuleChoice) -> Chosen {
    Chosen {
        digest: module.digest,
        monitor: module.mode == Mode::Monitor,
        settings: module.settings,
        grant_facts: module.grant_facts,
        max_fuel: module.max_fuel,
        max_memory_bytes: module.max_memory_bytes,
    }
}

/// What must not be dropped: what judges, and what would judge after a restart.
fn used(judge: &Judge, choices: &Choices) -> Vec<Digest> {
    let active = judge.active_sets();
    let active = active
        .iter()
        .flat_map(|set| set.modules().iter().map(Module::digest));
    let chosen = choices.sets.values().flat_map(|choice| match choice {
        Choice::Deactivated => Vec::new(),
        Choice::Activated { modules, .. } => modules
            .iter()
            .filter_map(|module| module.digest.parse().ok())
            .collect(),
    });
    active.chain(chosen).collect()
}

fn trust(config: Option<&PolicyConfig>) -> Trust {
    config.map_or_else(Trust::default, |config| Trust {
        signers: config.signers.clone(),
        require_signature: config.require_signature,
    })
}

fn stale_after(config: Option<&PolicyConfig>) -> Option<Duration> {
    config?.stale_after_ms.map(|after| after.as_millis())
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
