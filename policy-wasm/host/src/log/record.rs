//! The records: what one line holds, in this order of fields. Absent is absent, never null.

use std::time::{SystemTime, UNIX_EPOCH};

use maka_floor::facts::{Effect, Outcome, Path, Tier};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::permit::Receipt;
use crate::set::PolicySet;

pub(super) const DECISION: &str = "maka.policy.decision/1";
pub(super) const OUTCOME: &str = "maka.policy.outcome/1";
pub(super) const CONTROL: &str = "maka.policy.control/1";
const MONITOR: &str = "maka.policy.monitor/1";
const RELOAD: &str = "maka.policy.reload/1";
/// The longest place that a record of a refused policy keeps.
const MAX_PLACE: usize = 256;

/// What ties a record to the one before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    pub(super) seq: u64,
    pub(super) prev: Option<Digest>,
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// Every member.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word in the log.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The member with this word.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

words! {
    /// A message that the gateway sends of itself, and what the log says about itself.
    ControlKind {
        /// The handshake.
        Hello = "hello",
        /// A cancellation.
        Cancel = "cancel",
        /// A session begins.
        SessionBegin = "session_begin",
        /// A session ends.
        SessionEnd = "session_end",
        /// Permissions are looked at.
        PermissionsCheck = "permissions_check",
        /// Held input is released: an observation and one release.
        ReleaseHeld = "release_held",
        /// The executor is stopped or restarted.
        ExecutorStop = "executor_stop",
        /// A policy generation became active.
        PolicyActivated = "policy_activated",
        /// An operator approved an action.
        ApprovalGranted = "approval_granted",
        /// An operator rejected an action, or took an approval back.
        ApprovalRejected = "approval_rejected",
        /// An approval, or the wish for one, ended without having been used.
        ApprovalEnded = "approval_ended",
        /// An operator opened a quarantined session again.
        QuarantineCleared = "quarantine_cleared",
        /// A capture of facts for a replay began.
        CaptureBegan = "capture_began",
        /// It ended; `why` says how.
        CaptureEnded = "capture_ended",
        /// An unfinished record at the end of the log was cut off.
        TailCut = "tail_cut",
        /// The log takes records again after it had refused some.
        LogResumed = "log_resumed",
        /// The log was replaced by this file.
        LogReplaced = "log_replaced",
        /// The file before this one was full.
        LogRotated = "log_rotated",
        /// The browser is asked for its version.
        BrowserGetVersion = "browser_get_version",
        /// Browser targets are discovered.
        BrowserDiscover = "browser_discover",
        /// The bridge attaches to a page.
        BrowserAttach = "browser_attach",
        /// The bridge detaches from a page.
        BrowserDetach = "browser_detach",
        /// A dialog is dismissed.
        BrowserDismissDialog = "browser_dismiss_dialog",
        /// A page is asked whether it answers.
        BrowserProbe = "browser_probe",
        /// A hung page is reloaded.
        BrowserReload = "browser_reload",
        /// A child target is let go.
        BrowserReleaseChild = "browser_release_child",
        /// The browser is closed.
        BrowserClose = "browser_close",
    }
}

words! {
    /// How an admitted call ended.
    LoggedOutcome {
        /// It was carried out.
        Ok = "ok",
        /// The executor refused it before anything was sent.
        Refused = "refused",
        /// It was tried and did not work.
        Failed = "failed",
        /// It may or may not have taken effect.
        Unknown = "unknown",
        /// It was cancelled, or judged again, before anything was forwarded.
        NotForwarded = "not_forwarded",
    }
}

impl From<Outcome> for LoggedOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::Ok,
            Outcome::Refused => Self::Refused,
            Outcome::Failed => Self::Failed,
            Outcome::Unknown => Self::Unknown,
        }
    }
}

/// How an admitted call ended, for the log.
#[derive(Debug, Clone, Copy)]
pub struct OutcomeRecord<'a> {
    /// What remained of its permit.
    pub receipt: &'a Receipt,
    /// How it ended.
    pub outcome: LoggedOutcome,
    /// The tier the executor reported.
    pub tier: Option<Tier>,
    /// The path the executor reported.
    pub path: Option<Path>,
    /// The effect the executor reported.
    pub effect: Option<Effect>,
    /// How the effect was checked: the method's word, a member of a closed set, and whether a change was seen.
    pub verification: Option<(&'a str, bool)>,
    /// The executor's domain code; a member of a closed set, never free text.
    pub code: Option<&'a str>,
    /// The answer was kept from the caller.
    pub withheld: bool,
}

/// What a person decided, or what became of it.
#[derive(Debug, Clone, Copy)]
pub struct PersonRecord<'a> {
    /// What happened.
    pub kind: ControlKind,
    /// The session it is about.
    pub session: &'a str,
    /// The approval it is about.
    pub approval: Option<&'a str>,
    /// The principal who decided.
    pub by: Option<&'a str>,
    /// Why, where nobody decided: a member of a closed set.
    pub why: Option<&'static str>,
}

/// The word for what a decision came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Allow,
    Deny,
    RequireApproval,
    Release,
    Withhold,
    Quarantine,
    Error,
}

impl Decision {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::RequireApproval => "require-approval",
            Self::Release => "release",
            Self::Withhold => "withhold",
            Self::Quarantine => "quarantine",
            Self::Error => "error",
        }
    }
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct PolicyRow<'a> {
    pub(crate) generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) set: Option<&'a str>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct FactsRow<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) snapshot: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) app: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tier: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hash: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ModuleRow<'a> {
    pub(crate) name: &'a str,
    pub(crate) digest: String,
    pub(crate) mode: &'static str,
    pub(crate) decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<String>,
    pub(crate) rules: Vec<&'a str>,
    pub(crate) fuel: u64,
    pub(crate) us: u64,
}

/// A decision, without what ties it into the chain.
#[derive(Debug)]
pub(crate) struct DecisionRecord<'a> {
    pub(crate) id: &'a str,
    pub(crate) unix_ms: u64,
    pub(crate) hook: &'static str,
    pub(crate) tenant: &'a str,
    pub(crate) orchestrator: &'a str,
    pub(crate) session: &'a str,
    pub(crate) turn: &'a str,
    pub(crate) tool_call: &'a str,
    pub(crate) method: &'a str,
    pub(crate) fingerprint: Option<String>,
    pub(crate) request: Option<Digest>,
    pub(crate) policy: PolicyRow<'a>,
    pub(crate) facts: FactsRow<'a>,
    pub(crate) modules: Vec<ModuleRow<'a>>,
    pub(crate) decision: Decision,
    pub(crate) effective: Decision,
    pub(crate) code: Option<&'a str>,
    pub(crate) class: Option<&'static str>,
    pub(crate) obligations: Vec<&'static str>,
    pub(crate) approval: Option<&'a str>,
    pub(crate) us: u64,
}

/// What modules in monitor mode said about a decision that was made without them.
#[derive(Debug)]
pub(crate) struct MonitorRecord<'a> {
    pub(crate) decision: &'a str,
    pub(crate) hook: &'static str,
    pub(crate) policy: PolicyRow<'a>,
    pub(crate) modules: Vec<ModuleRow<'a>>,
}

/// What asked for a change of policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger<'a> {
    /// The gateway starts.
    Start,
    /// The configuration is read again.
    Signal,
    /// A call of this principal.
    Call(&'a str),
}

impl Trigger<'_> {
    /// The word in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Signal => "signal",
            Self::Call(_) => "call",
        }
    }
}

/// What became of a change of policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReloadResult {
    /// These sets judge.
    Activated,
    /// No set judges.
    Deactivated,
    /// The candidate is refused, and what ran goes on.
    Refused,
}

impl ReloadResult {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Activated => "activated",
            Self::Deactivated => "deactivated",
            Self::Refused => "refused",
        }
    }
}

/// A change of policies.
#[derive(Debug)]
pub(crate) struct ReloadRecord<'a> {
    pub(crate) result: ReloadResult,
    pub(crate) trigger: Trigger<'a>,
    /// The generation that judges afterwards.
    pub(crate) generation: u64,
    /// Why not: a word, the module and the place.
    pub(crate) refusal: Option<(&'static str, Option<&'a str>, &'a str)>,
    /// Modules that enforced and do not any more, as set and name.
    pub(crate) demoted: Vec<String>,
    pub(crate) sets: Vec<ReloadSet<'a>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ReloadSet<'a> {
    name: &'a str,
    set: String,
    modules: Vec<ReloadModule<'a>>,
}

#[derive(Debug, Serialize)]
struct ReloadModule<'a> {
    name: &'a str,
    digest: String,
    mode: &'static str,
}

impl<'a> ReloadSet<'a> {
    pub(crate) fn of(set: &'a PolicySet) -> Self {
        let modules = set.modules().iter().map(|module| ReloadModule {
            name: module.name(),
            digest: module.digest().to_string(),
            mode: module.mode().as_str(),
        });
        Self {
            name: set.name(),
            set: set.digest().to_string(),
            modules: modules.collect(),
        }
    }
}

#[derive(Serialize)]
struct MonitorLine<'a> {
    schema: &'static str,
    seq: u64,
    decision: &'a str,
    ts: String,
    hook: &'static str,
    policy: PolicyRow<'a>,
    modules: &'a [ModuleRow<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    prev: Option<String>,
}

#[derive(Serialize)]
struct ReloadLine<'a> {
    schema: &'static str,
    seq: u64,
    ts: String,
    result: &'static str,
    trigger: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    demoted: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    sets: &'a [ReloadSet<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    prev: Option<String>,
}

#[derive(Serialize)]
struct DecisionLine<'a> {
    schema: &'static str,
    seq: u64,
    id: &'a str,
    ts: String,
    hook: &'static str,
    tenant: &'a str,
    orchestrator: &'a str,
    session: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    turn: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    tool_call: &'a str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    policy: PolicyRow<'a>,
    facts: &'a FactsRow<'a>,
    modules: &'a [ModuleRow<'a>],
    decision: &'static str,
    enforced: bool,
    effective: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'static str>,
    obligations: &'a [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'a str>,
    us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev: Option<String>,
}

#[derive(Serialize)]
struct OutcomeLine<'a> {
    schema: &'static str,
    seq: u64,
    decision: &'a str,
    ts: String,
    orchestrator: &'a str,
    session: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    tool_call: &'a str,
    method: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verification: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_change: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    withheld: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev: Option<String>,
}

#[derive(Serialize)]
struct ControlLine<'a> {
    schema: &'static str,
    seq: u64,
    ts: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev: Option<String>,
}

pub(super) fn decision(chain: Chain, record: &DecisionRecord<'_>) -> Vec<u8> {
    line(&DecisionLine {
        schema: DECISION,
        seq: chain.seq,
        id: record.id,
        ts: timestamp(record.unix_ms),
        hook: record.hook,
        tenant: record.tenant,
        orchestrator: record.orchestrator,
        session: record.session,
        turn: record.turn,
        tool_call: record.tool_call,
        method: record.method,
        fingerprint: record.fingerprint.as_deref(),
        request: record.request.map(|digest| digest.to_string()),
        policy: record.policy,
        facts: &record.facts,
        modules: &record.modules,
        decision: record.decision.as_str(),
        enforced: record.decision == record.effective,
        effective: record.effective.as_str(),
        code: record.code,
        class: record.class,
        obligations: &record.obligations,
        approval: record.approval,
        us: record.us,
        prev: chain.prev.map(|digest| digest.to_string()),
    })
}

pub(super) fn outcome(chain: Chain, record: &OutcomeRecord<'_>) -> Vec<u8> {
    let head = &record.receipt.head;
    line(&OutcomeLine {
        schema: OUTCOME,
        seq: chain.seq,
        decision: record.receipt.decision_id.as_str(),
        ts: timestamp(now_unix_ms()),
        orchestrator: &head.caller.orchestrator,
        session: &head.caller.session,
        tool_call: &head.tool_call_id,
        method: &head.method,
        outcome: record.outcome.as_str(),
        tier: record.tier.map(Tier::as_str),
        path: record.path.map(Path::as_str),
        effect: record.effect.map(Effect::as_str),
        verification: record.verification.map(|(method, _)| method),
        observed_change: record.verification.map(|(_, changed)| changed),
        code: record.code,
        withheld: record.withheld,
        prev: chain.prev.map(|digest| digest.to_string()),
    })
}

pub(super) fn control(chain: Chain, kind: ControlKind, session: Option<&str>) -> Vec<u8> {
    line(&ControlLine {
        schema: CONTROL,
        seq: chain.seq,
        ts: timestamp(now_unix_ms()),
        kind: kind.as_str(),
        session,
        approval: None,
        by: None,
        why: None,
        prev: chain.prev.map(|digest| digest.to_string()),
    })
}

pub(super) fn person(chain: Chain, record: PersonRecord<'_>) -> Vec<u8> {
    line(&ControlLine {
        schema: CONTROL,
        seq: chain.seq,
        ts: timestamp(now_unix_ms()),
        kind: record.kind.as_str(),
        session: Some(record.session),
        approval: record.approval,
        by: record.by,
        why: record.why,
        prev: chain.prev.map(|digest| digest.to_string()),
    })
}

pub(super) fn capture(
    chain: Chain,
    kind: ControlKind,
    by: &str,
    why: Option<&'static str>,
) -> Vec<u8> {
    line(&ControlLine {
        schema: CONTROL,
        seq: chain.seq,
        ts: timestamp(now_unix_ms()),
        kind: kind.as_str(),
        session: None,
        approval: None,
        by: Some(by),
        why,
        prev: chain.prev.map(|digest| digest.to_string()),
    })
}

pub(super) fn monitor(chain: Chain, record: &MonitorRecord<'_>) -> Vec<u8> {
    line(&MonitorLine {
        schema: MONITOR,
        seq: chain.seq,
        decision: record.decision,
        ts: timestamp(now_unix_ms()),
        hook: record.hook,
        policy: record.policy,
        modules: &record.modules,
        prev: chain.prev.map(|digest| digest.to_string()),
    })
}

pub(super) fn reload(chain: Chain, record: &ReloadRecord<'_>) -> Vec<u8> {
    let (code, module, place) = match record.refusal {
        Some((code, module, place)) => (Some(code), module, Some(place)),
        None => (None, None, None),
    };
    let place = place.filter(|place| !place.is_empty()).map(|place| {
        let plain: String = crate::fixture::plain(place);
        if plain.len() <= MAX_PLACE {
            plain
        } else {
            "?".to_owned()
        }
    });
    line(&ReloadLine {
        schema: RELOAD,
        seq: chain.seq,
        ts: timestamp(now_unix_ms()),
        result: record.result.as_str(),
        trigger: record.trigger.as_str(),
        principal: match record.trigger {
            Trigger::Call(principal) => Some(principal),
            Trigger::Start | Trigger::Signal => None,
        },
        generation: record.generation,
        code,
        module,
        place,
        demoted: &record.demoted,
        sets: &record.sets,
        prev: chain.prev.map(|digest| digest.to_string()),
    })
}

/// The number of a record.
pub(super) fn seq(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Seq {
        schema: String,
        seq: u64,
    }
    let record: Seq = serde_json::from_slice(line).ok()?;
    [DECISION, OUTCOME, CONTROL, MONITOR, RELOAD]
        .contains(&record.schema.as_str())
        .then_some(record.seq)
}

fn line(record: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(record).expect("records hold texts, numbers and lists only");
    bytes.push(b'\n');
    bytes
}

/// The time of this machine, in Unix milliseconds.
pub(crate) fn now_unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Unix milliseconds as UTC in the form of RFC 3339.
fn timestamp(unix_ms: u64) -> String {
    let (days, of_day) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    // Days to a date by counting from 1 March, so that a leap day is the last day of a year (Hinnant, `civil_from_days`).
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (seconds, ms) = (of_day / 1_000, of_day % 1_000);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_796_040_000_123, "2026-11-30T12:00:00.123Z"),
            (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(ms), text);
        }
    }

    #[test]
    fn words_are_one_to_one() {
        assert!(
            ControlKind::ALL
                .iter()
                .all(|kind| ControlKind::parse(kind.as_str()) == Some(*kind))
        );
        assert!(
            LoggedOutcome::ALL
                .iter()
                .all(|outcome| LoggedOutcome::parse(outcome.as_str()) == Some(*outcome))
        );
    }
}
