//! The floor's refusals: code, fixed sentence, and when it makes sense to try again.
//!
//! A sentence never holds a value from the request or the screen: it belongs to this table, is covered by the digest of
//! the component, and says what to do next or that nothing will help.

/// When it makes sense to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Not at all.
    Never,
    /// At once.
    Now,
    /// With a fresh snapshot.
    AfterObserve,
    /// When a person has approved it.
    AfterApproval,
    /// After a pause.
    AfterDelay,
    /// When an operator has lifted the halt.
    AfterResume,
    /// With another target.
    NewTarget,
}

impl Retry {
    /// Every member.
    pub const ALL: &'static [Self] = &[
        Self::Never,
        Self::Now,
        Self::AfterObserve,
        Self::AfterApproval,
        Self::AfterDelay,
        Self::AfterResume,
        Self::NewTarget,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Now => "now",
            Self::AfterObserve => "after_observe",
            Self::AfterApproval => "after_approval",
            Self::AfterDelay => "after_delay",
            Self::AfterResume => "after_resume",
            Self::NewTarget => "new_target",
        }
    }

    /// The member with this word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|retry| retry.as_str() == text)
    }
}

macro_rules! denials {
    ($($variant:ident = $code:literal, $retry:ident, $sentence:literal;)+) => {
        /// One reason for which the floor refuses, withholds or quarantines.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Denial { $(#[doc = $sentence] $variant),+ }

        impl Denial {
            /// Every denial, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            /// The fixed sentence, at most 200 bytes.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence),+ }
            }

            /// When it makes sense to try again.
            #[must_use]
            pub const fn retry(self) -> Retry {
                match self { $(Self::$variant => Retry::$retry),+ }
            }

            /// The denial with this code.
            #[must_use]
            pub fn parse(code: &str) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

denials! {
    ActionUnknown = "action_unknown", Never, "This kind of action is not known here and cannot be done.";
    SyntheticInputOff = "synthetic_input_off", Never, "Synthetic keys and points are switched off on this desktop (input.synthetic). Use an element action instead.";
    TierPathMismatch = "tier_path_mismatch", Never, "The demanded path does not belong to the demanded tier. Leave the path out, or name one of that tier.";
    GlobalPointerForbidden = "global_pointer_forbidden", Never, "Moving the global pointer is not permitted here (allow_global_pointer). Use an element action instead.";
    GlobalPointerApproval = "global_pointer_approval", AfterApproval, "Moving the global pointer needs a person's approval.";
    AnchorMissing = "anchor_missing", AfterObserve, "The action does not say what it acts on. Take a snapshot and quote its id with the element and its digest, or the window digest.";
    SnapshotUnknown = "snapshot_unknown", AfterObserve, "No snapshot with this id was handed out. Take a new snapshot and act on that.";
    SnapshotSpent = "snapshot_spent", AfterObserve, "An action has used this snapshot already. Take a new snapshot and look before acting again.";
    SnapshotSuperseded = "snapshot_superseded", AfterObserve, "A newer snapshot of this window exists. Act on the newer one.";
    SnapshotExpired = "snapshot_expired", AfterObserve, "This snapshot is too old. Take a new snapshot and act on that.";
    SnapshotEvicted = "snapshot_evicted", AfterObserve, "This snapshot was dropped because there were too many. Take a new snapshot and act on that.";
    SnapshotOtherGeneration = "snapshot_other_generation", AfterObserve, "This snapshot was made before the executor was restarted. Take a new snapshot and act on that.";
    SnapshotForeignSession = "snapshot_foreign_session", AfterObserve, "This snapshot belongs to another session. Take a snapshot in this session and act on that.";
    TargetMismatch = "target_mismatch", AfterObserve, "The window is not the one this snapshot shows. Take a new snapshot of the window that is meant.";
    WindowDigestMismatch = "window_digest_mismatch", AfterObserve, "The window digest is not the one of this snapshot. Quote both from the same snapshot.";
    ElementUnknown = "element_unknown", AfterObserve, "This snapshot has no such element. Quote token and digest from the snapshot that is acted on.";
    ElementDigestMismatch = "element_digest_mismatch", AfterObserve, "The element digest is not the one of this snapshot. Quote token and digest from the same snapshot.";
    ElementDisabled = "element_disabled", AfterObserve, "The element is disabled, so acting on it would do nothing. Do what enables it, then take a new snapshot.";
    ActionNotOffered = "action_not_offered", AfterObserve, "The element does not offer this action. Choose one of the actions it lists.";
    SecureField = "secure_field", Never, "Password fields cannot be filled or probed here. A person has to do this.";
    FactsTooLarge = "facts_too_large", AfterDelay, "The request is too large to be judged. Send a smaller one.";
    CdpSmuggling = "cdp_smuggling", Never, "A command inside another command, or a page that gets the protocol, is not accepted. Send the command itself.";
    PageForeign = "page_foreign", Never, "This page, or the browser as a whole, does not belong to this session.";
    DestinationForbidden = "destination_forbidden", Never, "Only http, https and about:blank addresses can be used here.";
    OutcomeDishonest = "outcome_dishonest", Never, "The executor reported an effect that does not go with its outcome. An operator has to look at this session.";
    SnapshotNotOurs = "snapshot_not_ours", AfterObserve, "The snapshot that came with the answer does not belong to this session. Take a new snapshot.";
}
