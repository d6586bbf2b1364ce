//! The facts of a decision.
//!
//! The types are the floor's own ([`maka_floor::facts`]), so that what the host judges natively in a test and what a
//! component sees are built from one value. Session and mirror supply [`DispatchFacts`]; the judge adds what only it
//! knows: decision id, time, generation, method and fingerprint.

pub use maka_floor::facts::{
    Action, Authority, Caller, Cdp, CdpResult, Claim, Dispatch, DispatchResult, Effect,
    ElementArgs, ElementRow, Grant, Head, KeyArgs, Meter, Outcome, PageRow, Path, PointArgs, Rect,
    Review, SnapshotRow, SnapshotState, Subject, Target, TextArgs, Tier, TierPaths, UrlFact,
};

use crate::digest::Digest;
use crate::fingerprint::Fingerprint;

/// What asking a person for this action would come to now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Approving {
    /// Nobody is there who could approve.
    #[default]
    Unavailable,
    /// Somebody can be asked, or was.
    Possible,
    /// Somebody was asked for exactly this and said no.
    Rejected,
    /// The session has asked for as much as it may at a time.
    Full,
}

/// The recorded and the claimed side of one executor call.
#[derive(Debug, Clone, PartialEq)]
pub struct DispatchFacts {
    /// The caller's idempotency key.
    pub tool_call_id: String,
    /// Who asks: from the authenticated connection.
    pub caller: Caller,
    /// What the handshake allowed.
    pub authority: Authority,
    /// Counters of the session.
    pub meter: Meter,
    /// A person's approval, on resume. One that is not of exactly this action, used or over is not shown to any policy.
    pub approval: Option<Grant>,
    /// What a call that needs approval is told.
    pub approving: Approving,
    /// What is to be done.
    pub action: Action,
    /// What the request says.
    pub claim: Claim,
    /// What the mirror remembers about the quoted snapshot.
    pub snapshot: SnapshotRow,
    /// The element behind the quoted token.
    pub element: Option<ElementRow>,
    /// The element behind the quoted focus token.
    pub focus: Option<ElementRow>,
    /// The fingerprint of the action that spent the snapshot. The contract has no field for it, so the host judges this
    /// one fact itself: a `snapshot_spent` of the floor becomes `duplicate_action` when it equals the fingerprint of
    /// the call. Both are refusals; only the advice differs.
    pub spent_fingerprint: Option<Fingerprint>,
    /// The version of the mirror row these facts were read from; zero when there is none.
    pub row_version: u64,
    /// A digest of the whole request, kept in the log so that a repeated key can be told from a reused one after a
    /// restart.
    pub request: Option<Digest>,
}
