//! One policy: checked, compiled, prepared, and asked.
//!
//! Loading goes from what costs nothing to what runs the module: digest, size, manifest, compilation, imports and
//! exports, settings, `prepare`, and one decision over made-up facts for every hook. A policy that fails any of it is not
//! loaded, and whoever was about to activate it keeps what is active.

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker};

use crate::bindings::PolicyPre;
use crate::bindings::exports::maka::policy::hooks as wit;
use crate::canonical::{self, CanonicalError};
use crate::codes::{DenyCode, HostCode};
use crate::combiner::{Opinion, ReviewOpinion};
use crate::convert;
use crate::digest::Digest;
use crate::engine::{Caps, Engine, Guard, Ran};
use crate::limits::{self, Allowance};
use crate::manifest::{Ceiling, Hook, Manifest, ManifestError};
use crate::obligation::Obligation;
use crate::schema::{self, SchemaError};

/// Why a policy is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is not the one that was pinned.
    #[error("the policy file has another digest than the one it is pinned to")]
    Pin,
    /// It is too large.
    #[error("the policy file is larger than the limit")]
    TooLarge,
    /// Its manifest is not accepted.
    #[error("the policy manifest is not accepted")]
    Manifest(#[from] ManifestError),
    /// The manifest names another policy.
    #[error("the policy is not the one that the configuration names")]
    NameMismatch,
    /// It does not compile.
    #[error("the policy does not compile")]
    Compile(#[source] wasmtime::Error),
    /// It takes too long to compile.
    #[error("the policy takes longer to compile than the limit")]
    CompileTimeout,
    /// There is no thread to compile on.
    #[error("the policy cannot be compiled because no thread can be started")]
    CompileThread(#[source] std::io::Error),
    /// It wants something from its surroundings.
    #[error("the policy imports something, and a policy may import nothing")]
    Imports,
    /// It exports something else than the hooks.
    #[error("the policy does not export exactly the hooks of `maka:policy@1`")]
    Exports,
    /// Its hooks have other types.
    #[error("the policy has hooks of other types than `maka:policy@1`")]
    World(#[source] wasmtime::Error),
    /// The settings cannot be written canonically.
    #[error("the policy settings are not accepted")]
    Canonical(#[from] CanonicalError),
    /// The settings do not fit the schema.
    #[error("the policy settings are not accepted")]
    Schema(#[from] SchemaError),
    /// The settings are too large.
    #[error("the policy settings are too large")]
    SettingsTooLarge,
    /// The policy refuses the settings.
    #[error("the policy refuses its settings at `{pointer}`: {code}")]
    Settings {
        /// A JSON pointer.
        pointer: String,
        /// What is wrong with it.
        code: String,
    },
    /// Preparing failed.
    #[error("the policy fails to prepare: {}", DenyCode::Host(*.0).as_str())]
    Prepare(HostCode),
    /// It fails on ordinary facts.
    #[error("the policy fails its first decision: {}", DenyCode::Host(*.0).as_str())]
    FirstDecision(HostCode),
    /// A set has too many modules.
    #[error("the policy set has more modules than the limit")]
    TooMany,
    /// A set has one module twice.
    #[error("the policy set names one policy twice")]
    NameTwice,
}

impl LoadError {
    /// A stable word for the reason.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Pin => "pin",
            Self::TooLarge => "too_large",
            Self::Manifest(error) => error.code(),
            Self::NameMismatch => "name",
            Self::Compile(_) => "compile",
            Self::CompileTimeout => "compile_time",
            Self::CompileThread(_) => "compile_thread",
            Self::Imports => "imports",
            Self::Exports => "exports",
            Self::World(_) => "world",
            Self::Canonical(_)
            | Self::Schema(SchemaError::Settings(_))
            | Self::SettingsTooLarge
            | Self::Settings { .. } => "settings",
            Self::Schema(SchemaError::Schema(_)) => "settings_schema",
            Self::Prepare(_) => "prepare",
            Self::FirstDecision(_) => "first_decision",
            Self::TooMany => "too_many",
            Self::NameTwice => "name_twice",
        }
    }

    /// The place at fault, a JSON pointer into the settings or the manifest; empty for the whole, or where there is none.
    #[must_use]
    pub fn pointer(&self) -> &str {
        match self {
            Self::Manifest(error) => error.pointer(),
            Self::Schema(SchemaError::Settings(pointer) | SchemaError::Schema(pointer))
            | Self::Settings { pointer, .. } => pointer,
            Self::Pin
            | Self::TooLarge
            | Self::NameMismatch
            | Self::Compile(_)
            | Self::CompileTimeout
            | Self::CompileThread(_)
            | Self::Imports
            | Self::Exports
            | Self::World(_)
            | Self::Canonical(_)
            | Self::SettingsTooLarge
            | Self::Prepare(_)
            | Self::FirstDecision(_)
            | Self::TooMany
            | Self::NameTwice => "",
        }
    }
}

/// Whether the answers of a policy count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// They do.
    Enforce,
    /// They are only recorded. The floor is never in this mode.
    Monitor,
}

impl Mode {
    /// The word in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Monitor => "monitor",
        }
    }
}

/// A policy to load.
#[derive(Clone)]
pub struct ModuleSource {
    /// The name its manifest must have.
    pub name: String,
    /// The component.
    pub bytes: Arc<[u8]>,
    /// The digest the operator pinned.
    pub pin: Digest,
    /// Its settings.
    pub settings: Value,
    /// Whether its answers count.
    pub mode: Mode,
    /// What the operator gives it beyond what every policy gets.
    pub allowance: Allowance,
}

impl fmt::Debug for ModuleSource {
    // Settings may hold what an operator would not want in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModuleSource")
            .field("name", &self.name)
            .field("pin", &self.pin)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// A loaded policy; cheap to clone.
#[derive(Clone)]
pub struct Module {
    inner: Arc<Inner>,
}

struct Inner {
    manifest: Manifest,
    digest: Digest,
    /// Canonical.
    settings: String,
    settings_digest: Digest,
    mode: Mode,
    is_floor: bool,
    pre: PolicyPre<Guard>,
    prepared: Vec<u8>,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("name", &self.name())
            .field("digest", &self.digest())
            .finish_non_exhaustive()
    }
}

/// What a policy said, checked against its contract, and what it used up.
#[derive(Debug)]
pub(crate) struct Said<O> {
    pub(crate) opinion: O,
    pub(crate) rules: Vec<u16>,
    pub(crate) fuel: u64,
    pub(crate) memory_bytes: usize,
    pub(crate) elapsed: Duration,
}

impl Module {
    /// Loads a policy. Blocks for the time of a compilation.
    ///
    /// # Errors
    ///
    /// The first check that fails; see [`LoadError`].
    pub fn load(engine: &Engine, source: ModuleSource) -> Result<Self, LoadError> {
        Self::build(engine, source, false)
    }

    pub(crate) fn load_floor(engine: &Engine, source: ModuleSource) -> Result<Self, LoadError> {
        Self::build(engine, source, true)
    }

    fn build(engine: &Engine, source: ModuleSource, is_floor: bool) -> Result<Self, LoadError> {
        let limits = engine.limits();
        if source.bytes.len() as u64 > source.allowance.module_bytes(limits) {
            return Err(LoadError::TooLarge);
        }
        let digest = Digest::of(&source.bytes);
        if digest != source.pin {
            return Err(LoadError::Pin);
        }
        let ceiling = Ceiling {
            facts: &source.allowance.facts,
            fuel: source.allowance.fuel(limits),
            memory_bytes: source.allowance.memory_bytes(limits),
            owns_built_in: is_floor,
        };
        let manifest = Manifest::read(&source.bytes, ceiling)?;
        if manifest.name != source.name {
            return Err(LoadError::NameMismatch);
        }
        let settings = checked_settings(&manifest, &source.settings)?;
        let compile_ms = source.allowance.compile_ms(limits);
        let component = compile(engine, source.bytes, compile_ms)?;
        let pre = link(engine, &component)?;
        let prepared = prepare(engine, &pre, &manifest, &settings)?;
        let settings_digest = Digest::of(settings.as_bytes());
        let inner = Inner {
            manifest,
            digest,
            settings,
            settings_digest,
            mode: source.mode,
            is_floor,
            pre,
            prepared,
        };
        let module = Self {
            inner: Arc::new(inner),
        };
        module.first_decision(engine)?;
        Ok(module)
    }

    /// The same policy in this mode. The floor stays as it is.
    #[must_use]
    pub fn in_mode(&self, mode: Mode) -> Self {
        if self.inner.is_floor || self.inner.mode == mode {
            return self.clone();
        }
        let Inner {
            manifest,
            digest,
            settings,
            settings_digest,
            mode: _,
            is_floor,
            pre,
            prepared,
        } = &*self.inner;
        Self {
            inner: Arc::new(Inner {
                manifest: manifest.clone(),
                digest: *digest,
                settings: settings.clone(),
                settings_digest: *settings_digest,
                mode,
                is_floor: *is_floor,
                pre: pre.clone(),
                prepared: prepared.clone(),
            }),
        }
    }

    /// The same policy with other settings, without another compilation.
    ///
    /// # Errors
    ///
    /// When the settings are not accepted, or the policy fails with them.
    pub fn with_settings(&self, engine: &Engine, settings: &Value) -> Result<Self, LoadError> {
        let Inner {
            manifest,
            digest,
            settings: _,
            settings_digest: _,
            mode,
            is_floor,
            pre,
            prepared: _,
        } = &*self.inner;
        let settings = checked_settings(manifest, settings)?;
        let prepared = prepare(engine, pre, manifest, &settings)?;
        let module = Self {
            inner: Arc::new(Inner {
                manifest: manifest.clone(),
                digest: *digest,
                settings_digest: Digest::of(settings.as_bytes()),
                settings,
                mode: *mode,
                is_floor: *is_floor,
                pre: pre.clone(),
                prepared,
            }),
        };
        module.first_decision(engine)?;
        Ok(module)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.manifest.name
    }

    /// Its manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }

    /// The digest of its component.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.inner.digest
    }

    /// Its canonical settings. They may hold what belongs into no log.
    pub(crate) fn settings(&self) -> &str {
        &self.inner.settings
    }

    /// The digest of its canonical settings.
    #[must_use]
    pub fn settings_digest(&self) -> Digest {
        self.inner.settings_digest
    }

    /// Whether its answers count.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.inner.mode
    }

    /// Whether it is the floor that is part of the product.
    #[must_use]
    pub fn is_floor(&self) -> bool {
        self.inner.is_floor
    }

    /// Asks whether an executor call may go ahead.
    pub(crate) fn admit_dispatch(
        &self,
        engine: &Engine,
        facts: &wit::Dispatch,
        left: Duration,
    ) -> Said<Opinion> {
        if !self.wants(Hook::AdmitDispatch) {
            return Said::unasked(Opinion::Allow(Vec::new()));
        }
        let ran = engine.run(&self.inner.pre, self.caps(engine, left), |policy, store| {
            policy
                .maka_policy_hooks()
                .call_admit_dispatch(store, &self.inner.prepared, facts)
        });
        self.checked(ran, Self::opinion)
    }

    /// Asks whether a browser command may go ahead.
    pub(crate) fn admit_cdp(
        &self,
        engine: &Engine,
        facts: &wit::Cdp,
        left: Duration,
    ) -> Said<Opinion> {
        if !self.wants(Hook::AdmitCdp) {
            return Said::unasked(Opinion::Allow(Vec::new()));
        }
        let ran = engine.run(&self.inner.pre, self.caps(engine, left), |policy, store| {
            policy
                .maka_policy_hooks()
                .call_admit_cdp(store, &self.inner.prepared, facts)
        });
        self.checked(ran, Self::opinion)
    }

    /// Asks whether an answer may be released.
    pub(crate) fn review(
        &self,
        engine: &Engine,
        facts: &wit::Review,
        left: Duration,
    ) -> Said<ReviewOpinion> {
        if !self.wants(Hook::ReviewResult) {
            return Said::unasked(ReviewOpinion::Release(Vec::new()));
        }
        let ran = engine.run(&self.inner.pre, self.caps(engine, left), |policy, store| {
            policy
                .maka_policy_hooks()
                .call_review_result(store, &self.inner.prepared, facts)
        });
        self.checked(ran, Self::review_opinion)
    }

    pub(crate) fn wants(&self, hook: Hook) -> bool {
        self.inner.manifest.hooks.contains(&hook)
    }

    fn caps(&self, engine: &Engine, left: Duration) -> Caps {
        let limits = engine.limits();
        Caps {
            fuel: self.inner.manifest.fuel,
            ticks: limits.ticks(left),
            memory_bytes: self.inner.manifest.memory_bytes,
            output_bytes: usize::try_from(limits.verdict_bytes).unwrap_or(usize::MAX),
        }
    }

    /// Turns what was returned into an opinion; whatever is outside the contract is a fault.
    fn checked<V, O: Faulty>(&self, ran: Ran<V>, check: Reading<V, O>) -> Said<O> {
        let Ran {
            result,
            fuel,
            memory_bytes,
            elapsed,
        } = ran;
        let (opinion, rules) = match result {
            Ok(verdict) => match check(self, verdict) {
                Some((opinion, rules)) if self.knows(&rules) => (opinion, rules),
                Some(_) | None => (O::fault(HostCode::PolicyBadOutput), Vec::new()),
            },
            Err(code) => (O::fault(code), Vec::new()),
        };
        Said {
            opinion,
            rules,
            fuel,
            memory_bytes,
            elapsed,
        }
    }

    fn knows(&self, rules: &[u16]) -> bool {
        rules.len() <= limits::RULES
            && rules
                .iter()
                .all(|rule| usize::from(*rule) < self.inner.manifest.rules.len())
    }

    fn opinion(&self, verdict: wit::Verdict) -> Option<(Opinion, Vec<u16>)> {
        let opinion = match verdict.decision {
            wit::Decision::Allow(conditions) => Opinion::Allow(self.conditions(conditions)?),
            wit::Decision::Deny(code) => Opinion::Deny(self.code(code)?),
            wit::Decision::RequireApproval(code) => Opinion::RequireApproval(self.code(code)?),
        };
        Some((opinion, verdict.rules))
    }

    fn review_opinion(&self, verdict: wit::ReviewVerdict) -> Option<(ReviewOpinion, Vec<u16>)> {
        let opinion = match verdict.disposition {
            wit::Disposition::Release(conditions) => {
                ReviewOpinion::Release(self.conditions(conditions)?)
            }
            wit::Disposition::Withhold(code) => ReviewOpinion::Withhold(self.code(code)?),
            wit::Disposition::Quarantine(code) => ReviewOpinion::Quarantine(self.code(code)?),
        };
        Some((opinion, verdict.rules))
    }

    /// A code is one of the policy's own or one of the floor's rules. The host's own codes are not a policy's to give:
    /// they say that something failed, and a caller has to be able to rely on that.
    fn code(&self, code: String) -> Option<String> {
        let built_in = matches!(DenyCode::parse(&code), Some(DenyCode::Floor(_)));
        (built_in || self.inner.manifest.denial(&code).is_some()).then_some(code)
    }

    fn conditions(&self, raw: Vec<wit::Obligation>) -> Option<Vec<Obligation>> {
        if raw.len() > limits::OBLIGATIONS {
            return None;
        }
        raw.iter()
            .map(|condition| {
                let condition = Obligation::parse(&condition.kind, &condition.arg)?;
                self.inner
                    .manifest
                    .obligations
                    .contains(&condition.kind())
                    .then_some(condition)
            })
            .collect()
    }

    /// One decision per hook over made-up facts: whatever the answer is, there has to be one.
    fn first_decision(&self, engine: &Engine) -> Result<(), LoadError> {
        let facts = sample();
        let left = engine.limits().total_budget();
        let head = convert::head(&facts.head);
        let cdp = wit::Cdp {
            head: head.clone(),
            page: None,
            params: "{}".to_owned(),
            params_complete: true,
            urls: Vec::new(),
            script_length: None,
            nested_in: None,
        };
        let review = wit::Review {
            head,
            admitted_rules: Vec::new(),
            subject: wit::Subject::Dispatch(wit::DispatchResult {
                outcome: wit::Outcome::Refused,
                tier: wit::Tier::Ax,
                path: wit::Path::None,
                effect: wit::Effect::Unverifiable,
                verification: "none".to_owned(),
                observed_change: false,
                would_require: None,
                fresh: None,
                now_secure: false,
            }),
        };
        let dispatch = convert::dispatch(&facts);
        let admit = |opinion: Opinion| match opinion {
            Opinion::Fault(code) => Some(code),
            Opinion::Allow(_) | Opinion::Deny(_) | Opinion::RequireApproval(_) => None,
        };
        let reviewed = |opinion: ReviewOpinion| match opinion {
            ReviewOpinion::Fault(code) => Some(code),
            ReviewOpinion::Release(_)
            | ReviewOpinion::Withhold(_)
            | ReviewOpinion::Quarantine(_) => None,
        };
        let fault = patiently(|| admit(self.admit_dispatch(engine, &dispatch, left).opinion))
            .or_else(|| patiently(|| admit(self.admit_cdp(engine, &cdp, left).opinion)))
            .or_else(|| patiently(|| reviewed(self.review(engine, &review, left).opinion)));
        match fault {
            Some(code) => Err(LoadError::FirstDecision(code)),
            None => Ok(()),
        }
    }
}

/// How often a policy may be late while it is loaded. Lateness says that the machine is busy; fuel ends what never ends.
const TRIES: u32 = 10;

/// What is wrong, asked again while that is only lateness.
fn patiently(ask: impl Fn() -> Option<HostCode>) -> Option<HostCode> {
    let mut tries = 1;
    loop {
        match ask() {
            Some(HostCode::PolicyTimeout) if tries < TRIES => tries += 1,
            fault => return fault,
        }
    }
}

impl<O> Said<O> {
    pub(crate) fn unasked(opinion: O) -> Self {
        Self {
            opinion,
            rules: Vec::new(),
            fuel: 0,
            memory_bytes: 0,
            elapsed: Duration::ZERO,
        }
    }
}

/// Reads a verdict of the contract; nothing when it is outside of it.
type Reading<V, O> = fn(&Module, V) -> Option<(O, Vec<u16>)>;

/// An opinion that can stand for a failure.
trait Faulty {
    fn fault(code: HostCode) -> Self;
}

impl Faulty for Opinion {
    fn fault(code: HostCode) -> Self {
        Self::Fault(code)
    }
}

impl Faulty for ReviewOpinion {
    fn fault(code: HostCode) -> Self {
        Self::Fault(code)
    }
}

/// One compilation at a time in the whole process.
static COMPILING: Mutex<()> = Mutex::new(());

/// Compiles on a thread of its own, because a compilation cannot be interrupted: whoever waits can give up, and the
/// thread ends when the compiler does.
fn compile(engine: &Engine, bytes: Arc<[u8]>, compile_ms: u64) -> Result<Component, LoadError> {
    let (done, result) = mpsc::sync_channel(1);
    let wasmtime = engine.wasmtime().clone();
    std::thread::Builder::new()
        .name("maka-policy-compile".to_owned())
        .spawn(move || {
            let _turn = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
            // When nobody waits any more there is nothing to do with the component.
            drop(done.send(Component::new(&wasmtime, &bytes)));
        })
        .map_err(LoadError::CompileThread)?;
    match result.recv_timeout(Duration::from_millis(compile_ms)) {
        Ok(component) => component.map_err(LoadError::Compile),
        Err(RecvTimeoutError::Timeout) => Err(LoadError::CompileTimeout),
        Err(RecvTimeoutError::Disconnected) => Err(LoadError::Compile(wasmtime::Error::msg(
            "the compiler panicked",
        ))),
    }
}

/// What a component wants and offers on its outermost level, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surface {
    /// What it imports. A policy has none.
    pub imports: Vec<String>,
    /// What it exports. A policy has the interface of the hooks.
    pub exports: Vec<String>,
}

impl Surface {
    /// Compiles a component to read its types; nothing of it runs. Blocks for the time of a compilation.
    ///
    /// # Errors
    ///
    /// When it is too large or does not compile.
    pub fn read(engine: &Engine, bytes: Arc<[u8]>) -> Result<Self, LoadError> {
        if bytes.len() as u64 > engine.limits().module_bytes {
            return Err(LoadError::TooLarge);
        }
        let component = compile(engine, bytes, engine.limits().compile_ms)?;
        let wasmtime = engine.wasmtime();
        let ty = component.component_type();
        Ok(Self {
            imports: ty
                .imports(wasmtime)
                .map(|(name, _)| name.to_owned())
                .collect(),
            exports: ty
                .exports(wasmtime)
                .map(|(name, _)| name.to_owned())
                .collect(),
        })
    }
}

/// The canonical text of settings that fit the policy's schema.
fn checked_settings(manifest: &Manifest, settings: &Value) -> Result<String, LoadError> {
    schema::check(&manifest.settings_schema, settings)?;
    let settings = canonical::text(settings)?;
    if settings.len() > limits::SETTINGS_BYTES {
        return Err(LoadError::SettingsTooLarge);
    }
    Ok(settings)
}

fn link(engine: &Engine, component: &Component) -> Result<PolicyPre<Guard>, LoadError> {
    let wasmtime = engine.wasmtime();
    let ty = component.component_type();
    if ty.imports(wasmtime).next().is_some() {
        return Err(LoadError::Imports);
    }
    let mut exports = ty.exports(wasmtime);
    let only_hooks = matches!(exports.next(), Some(("maka:policy/hooks@1.0.0", item))
        if matches!(item.ty, ComponentItem::ComponentInstance(_)));
    if !only_hooks || exports.next().is_some() {
        return Err(LoadError::Exports);
    }
    let linker = Linker::new(wasmtime);
    linker
        .instantiate_pre(component)
        .and_then(PolicyPre::new)
        .map_err(LoadError::World)
}

fn prepare(
    engine: &Engine,
    pre: &PolicyPre<Guard>,
    manifest: &Manifest,
    settings: &str,
) -> Result<Vec<u8>, LoadError> {
    let caps = Caps {
        fuel: manifest.fuel,
        ticks: engine.limits().ticks(engine.limits().total_budget()),
        memory_bytes: manifest.memory_bytes,
        output_bytes: limits::PREPARED_BYTES,
    };
    let mut tries = 1;
    let ran = loop {
        let ran = engine.run(pre, caps, |policy, store| {
            policy.maka_policy_hooks().call_prepare(store, settings)
        });
        match ran.result {
            Err(HostCode::PolicyTimeout) if tries < TRIES => tries += 1,
            Ok(_) | Err(_) => break ran,
        }
    };
    match ran.result.map_err(LoadError::Prepare)? {
        Ok(prepared) if prepared.len() <= limits::PREPARED_BYTES => Ok(prepared),
        Ok(_) => Err(LoadError::Prepare(HostCode::PolicyBadOutput)),
        Err(errors) => {
            // The texts come from the policy: they go to an operator, so they have to be short and plain.
            let plain = |text: String| {
                if text.len() <= 128 && text.bytes().all(|b| (0x21..0x7f).contains(&b)) {
                    text
                } else {
                    "?".to_owned()
                }
            };
            let first = errors.into_iter().next();
            let (pointer, code) = first.map_or_else(Default::default, |error| {
                (plain(error.pointer), plain(error.code))
            });
            Err(LoadError::Settings { pointer, code })
        }
    }
}

/// Facts of an ordinary call, for the first decision of a policy.
pub(crate) fn sample() -> maka_floor::facts::Dispatch {
    use maka_floor::facts::{Action, Authority, Caller, Claim, Dispatch, Head, Meter, SnapshotRow};
    Dispatch {
        head: Head {
            decision_id: "00000000000000000000000000".to_owned(),
            now_unix_ms: 0,
            policy_generation: 0,
            tool_call_id: "call".to_owned(),
            method: "observe".to_owned(),
            fingerprint: Digest::of(b"").to_string(),
            caller: Caller {
                session: "session".to_owned(),
                ..Caller::default()
            },
            authority: Authority {
                protocol: "maka.cu/2".to_owned(),
                allow_global_pointer: false,
                compat_input: false,
                generation: 1,
                permitted: Authority::pairing_of_maka_cu_2(),
            },
            meter: Meter::default(),
            approval: None,
        },
        action: Action::Observe("observe".to_owned()),
        claim: Claim::default(),
        snapshot: SnapshotRow::never_seen(""),
        element: None,
        focus: None,
    }
}
