//! The facts of the contract, as plain Rust types.
//!
//! Each type mirrors the record of the same name in `wit/policy.wit`, field for field; the host builds these, and the
//! conversions to and from the generated types live beside the generated code on either side. They hold no application
//! text except where the contract says so, and their `Debug` form must not be logged.

/// Declares an enum of the contract together with its names on the wire of `maka.cu/2` and the list of all members.
macro_rules! closed {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// Every member, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in logs and in the executor's protocol.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The member with this name.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

closed! {
    /// The family of mechanisms an action is carried out with.
    Tier {
        /// Accessibility.
        Ax = "ax",
        /// A page-level route; reserved, no path belongs to it yet.
        SemanticBackground = "semantic-background",
        /// Synthetic events.
        CoordinateBackground = "coordinate-background",
    }
}

closed! {
    /// The mechanism itself.
    Path {
        /// An accessibility action was performed.
        AxAction = "ax_action",
        /// An accessibility attribute was written.
        AxAttribute = "ax_attribute",
        /// A child was selected in its container.
        AxSelect = "ax_select",
        /// A synthetic event for one process, without moving the cursor.
        CgEventPid = "cg_event_pid",
        /// A background window event.
        SkylightPid = "skylight_pid",
        /// A system-wide event, which moves the cursor.
        CgEventGlobal = "cg_event_global",
        /// Nothing was dispatched.
        None = "none",
    }
}

closed! {
    /// What happened to a dispatched action.
    Outcome {
        /// It was carried out.
        Ok = "ok",
        /// It was refused before anything was sent.
        Refused = "refused",
        /// It was tried and did not work.
        Failed = "failed",
        /// It may or may not have taken effect.
        Unknown = "unknown",
    }
}

closed! {
    /// What the executor could prove about the effect.
    Effect {
        /// The intended change was read back.
        Confirmed = "confirmed",
        /// Nothing can be said.
        Unverifiable = "unverifiable",
        /// Everything was read back as it had been.
        SuspectedNoop = "suspected_noop",
    }
}

closed! {
    /// What the gateway remembers about a snapshot id.
    SnapshotState {
        /// No snapshot with this id was ever handed out.
        NeverSeen = "never_seen",
        /// It can be acted on.
        Live = "live",
        /// An action has used it up, or is using it now.
        Spent = "spent",
        /// A newer snapshot of the same window exists.
        Superseded = "superseded",
        /// Its time to live is over.
        Expired = "expired",
        /// It was dropped to stay within the bounds.
        Evicted = "evicted",
        /// The executor that made it is gone.
        OtherGeneration = "other_generation",
    }
}

/// A rectangle in points.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the four fields are their own documentation")]
pub struct Rect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// One row of the pairing table of the negotiated executor protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierPaths {
    /// The tier.
    pub tier: Tier,
    /// The paths that belong to it; [`Path::None`] pairs with every tier and is not listed.
    pub paths: Vec<Path>,
}

/// Who asks: from the authenticated connection, never from the request body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Name of the policy set that judges this principal.
    pub tenant: String,
    /// The principal.
    pub orchestrator: String,
    /// The session.
    pub session: String,
    /// The turn the request names, or empty.
    pub turn: String,
    /// Authority this principal was configured with.
    pub grants: Vec<String>,
}

impl Caller {
    /// Whether the caller holds this grant.
    #[must_use]
    pub fn holds(&self, grant: &str) -> bool {
        self.grants.iter().any(|held| held == grant)
    }
}

/// What the handshake with the executor allowed: from the gateway's own state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The negotiated protocol.
    pub protocol: String,
    /// The executor may move the system cursor.
    pub allow_global_pointer: bool,
    /// Synthetic keys and points are switched on.
    pub compat_input: bool,
    /// Counts executor starts.
    pub generation: u64,
    /// The pairing table of the protocol.
    pub permitted: Vec<TierPaths>,
}

impl Authority {
    /// The pairing table of `maka.cu/2`.
    #[must_use]
    pub fn pairing_of_maka_cu_2() -> Vec<TierPaths> {
        vec![
            TierPaths {
                tier: Tier::Ax,
                paths: vec![Path::AxAction, Path::AxAttribute, Path::AxSelect],
            },
            TierPaths {
                tier: Tier::SemanticBackground,
                paths: Vec::new(),
            },
            TierPaths {
                tier: Tier::CoordinateBackground,
                paths: vec![Path::CgEventPid, Path::SkylightPid, Path::CgEventGlobal],
            },
        ]
    }

    /// Whether the pairing table lets this path be taken for this tier.
    #[must_use]
    pub fn pairs(&self, tier: Tier, path: Path) -> bool {
        path == Path::None
            || self
                .permitted
                .iter()
                .any(|row| row.tier == tier && row.paths.contains(&path))
    }
}

/// Counters, so that rate rules need no state in a module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meter {
    /// Actions forwarded since the turn began.
    pub actions_this_turn: u32,
    /// Actions forwarded in the last 60 seconds.
    pub actions_last_minute: u32,
    /// Refusals since the turn began.
    pub denials_this_turn: u32,
    /// Calls of this session that have no answer yet.
    pub in_flight: u32,
}

/// A person's approval of one exact action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Its id.
    pub id: String,
    /// The operator who gave it.
    pub granted_by: String,
    /// When it ends, in Unix milliseconds.
    pub expires_unix_ms: u64,
    /// The one action it is for.
    pub fingerprint: String,
    /// It has not been used yet.
    pub unused: bool,
}

/// What every decision has in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The id of this decision.
    pub decision_id: String,
    /// The time of this decision, in Unix milliseconds.
    pub now_unix_ms: u64,
    /// The policy generation that decides.
    pub policy_generation: u64,
    /// The caller's idempotency key.
    pub tool_call_id: String,
    /// The executor or browser method.
    pub method: String,
    /// Identifies the action whatever its tool call id.
    pub fingerprint: String,
    /// Who asks.
    pub caller: Caller,
    /// What the handshake allowed.
    pub authority: Authority,
    /// Counters.
    pub meter: Meter,
    /// A person's approval, on resume.
    pub approval: Option<Grant>,
}

impl Head {
    /// Whether a person has approved exactly this action, and the approval is still good.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        self.approval.as_ref().is_some_and(|grant| {
            grant.unused
                && grant.expires_unix_ms > self.now_unix_ms
                && grant.fingerprint == self.fingerprint
        })
    }
}

/// One window of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The process.
    pub pid: u32,
    /// Tells two processes with a reused pid apart; zero where it is not known.
    pub process_start: u64,
    /// The window.
    pub window_id: u32,
    /// The application.
    pub app_id: String,
    /// The page inside the window, for browsers.
    pub page: Option<String>,
}

/// What the gateway remembers about the quoted snapshot id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRow {
    /// The quoted id; empty when none was quoted.
    pub id: String,
    /// What is remembered.
    pub state: SnapshotState,
    /// The session it was handed to.
    pub owner_session: String,
    /// The executor generation that made it.
    pub generation: u64,
    /// Counts the snapshots of one window.
    pub epoch: u64,
    /// Its age.
    pub age_ms: u64,
    /// The window it shows.
    pub target: Option<Target>,
    /// Digest over that window.
    pub window_digest: String,
    /// Parts of the tree were left out.
    pub truncated: bool,
}

impl SnapshotRow {
    /// The row for an id that was never handed out, and for a request that quotes none (`id` is then empty).
    #[must_use]
    pub fn never_seen(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            state: SnapshotState::NeverSeen,
            owner_session: String::new(),
            generation: 0,
            epoch: 0,
            age_ms: 0,
            target: None,
            window_digest: String::new(),
            truncated: false,
        }
    }
}

/// One element of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct ElementRow {
    /// Its token, valid in that snapshot only.
    pub token: String,
    /// Its digest.
    pub digest: String,
    /// Its accessibility role.
    pub role: String,
    /// The verbs it advertises.
    pub actions: Vec<String>,
    /// It can be used.
    pub enabled: bool,
    /// It is a password field.
    pub secure: bool,
    /// Where it is, in window points.
    pub frame: Option<Rect>,
}

/// What the request says about snapshot, element, target and route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// The quoted snapshot id; empty when none was quoted.
    pub snapshot_id: String,
    /// The quoted window digest.
    pub window_digest: Option<String>,
    /// The quoted element or focus token.
    pub element_token: Option<String>,
    /// The digest quoted with it.
    pub element_digest: Option<String>,
    /// The target the caller believes it acts on.
    pub target: Option<Target>,
    /// The demanded tier.
    pub tier: Option<Tier>,
    /// The demanded path.
    pub path: Option<Path>,
}

/// The arguments of a point action.
#[derive(Debug, Clone, PartialEq)]
pub struct PointArgs {
    /// Horizontal, in image pixels.
    pub x: f64,
    /// Vertical, in image pixels.
    pub y: f64,
    /// Where a drag starts: a rectangle without size.
    pub start: Option<Rect>,
    /// The action kind of `dispatch.point`.
    pub kind: String,
}

/// One key with its modifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyArgs {
    /// The key.
    pub key: String,
    /// The modifiers.
    pub modifiers: Vec<String>,
}

/// Typed text, without the text.
#[derive(Clone, PartialEq, Eq)]
pub struct TextArgs {
    /// Its length in bytes.
    pub length: u32,
    /// A hash of it under a key of the session.
    pub keyed_hash: String,
    /// The text, only for a policy that was granted `typed-text`.
    pub plain: Option<String>,
}

impl std::fmt::Debug for TextArgs {
    // What a person types must not reach a log through a derived `Debug`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextArgs")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// The arguments of an element action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementArgs {
    /// The action kind, with its variant after a colon where it has one (`click:right`, `secondary_action:show_menu`).
    pub kind: String,
    /// The text the action carries.
    pub text: Option<TextArgs>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Act on an element.
    Element(ElementArgs),
    /// Act on a point.
    Point(PointArgs),
    /// Press a key.
    Key(KeyArgs),
    /// Type text.
    Text(TextArgs),
    /// Launch the named application.
    Launch(String),
    /// Only read; carries the method.
    Observe(String),
    /// A verb newer than the contract.
    Other(String),
}

/// The facts of one executor call.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    /// What every decision has in common.
    pub head: Head,
    /// What is to be done.
    pub action: Action,
    /// What the request says.
    pub claim: Claim,
    /// What is remembered about the quoted snapshot.
    pub snapshot: SnapshotRow,
    /// The element behind the quoted token.
    pub element: Option<ElementRow>,
    /// The element behind the quoted focus token.
    pub focus: Option<ElementRow>,
}

/// The browser page that a command addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRow {
    /// The target.
    pub target_id: String,
    /// Its type, for example `page`.
    pub kind: String,
    /// The session it belongs to.
    pub owner_session: String,
    /// Its browser context; empty for the default one, which all share.
    pub browser_context: String,
    /// Its origin.
    pub origin: String,
    /// The target that opened it.
    pub opener: Option<String>,
}

/// A string parameter that parses as a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlFact {
    /// Where it stands in the parameters.
    pub pointer: String,
    /// Its scheme, lower case.
    pub scheme: String,
    /// Its host; for a URL without an authority, its opaque path.
    pub host: String,
    /// Its port.
    pub port: Option<u16>,
    /// It carries a user name or a password.
    pub userinfo: bool,
}

/// The facts of one browser command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cdp {
    /// What every decision has in common.
    pub head: Head,
    /// The page it addresses.
    pub page: Option<PageRow>,
    /// Its parameters as JSON, cut off when they are too long.
    pub params: String,
    /// The parameters were not cut off.
    pub params_complete: bool,
    /// The URLs among the parameters.
    pub urls: Vec<UrlFact>,
    /// The length of the script it carries.
    pub script_length: Option<u32>,
    /// The wrapper it was taken out of.
    pub nested_in: Option<String>,
}

/// What the executor reported about an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchResult {
    /// What happened.
    pub outcome: Outcome,
    /// The tier that was used.
    pub tier: Tier,
    /// The path that was used.
    pub path: Path,
    /// What could be proved.
    pub effect: Effect,
    /// The method of the proof.
    pub verification: String,
    /// That method saw a difference.
    pub observed_change: bool,
    /// The path a refused action would have needed.
    pub would_require: Option<Path>,
    /// The snapshot that came with the answer.
    pub fresh: Option<SnapshotRow>,
    /// The focus is now in a password field.
    pub now_secure: bool,
}

/// What the browser answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdpResult {
    /// It was no error.
    pub ok: bool,
    /// Its size.
    pub bytes: u64,
    /// The URLs in it.
    pub urls: Vec<UrlFact>,
    /// The page it is about.
    pub page: Option<PageRow>,
}

/// What is to be released to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The result of an executor call.
    Dispatch(DispatchResult),
    /// The answer to a browser command.
    Cdp(CdpResult),
    /// A browser event.
    Event(Box<Cdp>),
}

/// The facts of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The head of the decision that admitted the action.
    pub head: Head,
    /// The rules this module reported then.
    pub admitted_rules: Vec<u16>,
    /// What is to be released.
    pub subject: Subject,
}
