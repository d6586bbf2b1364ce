//! The rule table: what the floor checks, in the order in which it checks.
//!
//! A verdict names rules by their index in this table, so the order is part of the component and new rules go to the end.

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $text:literal;)+) => {
        /// One rule of the floor.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Rule { $($(#[$doc])* $variant),+ }

        impl Rule {
            /// Every rule, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The id in the manifest and the decision log.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => $id),+ }
            }

            /// What it demands, in one sentence.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The index in the table.
            #[must_use]
            pub const fn index(self) -> u16 {
                self as u16
            }
        }
    };
}

rules! {
    /// Method and action belong together.
    MethodKnown = "method.known", "The method is one the floor knows, and the action is of the kind that method carries.";
    /// Keys and points are switched on.
    InputSynthetic = "input.synthetic", "Synthetic keys and points are sent only where the operator switched them on.";
    /// The demanded path belongs to the demanded tier.
    TierPath = "tier.path", "A demanded path belongs to the demanded tier in the pairing table of the protocol.";
    /// The global pointer needs two permissions.
    PointerGlobal = "pointer.global", "Moving the global pointer needs the handshake's permission and the caller's grant or a person's approval.";
    /// The action quotes what it is bound to.
    AnchorPresent = "anchor.present", "An action quotes a snapshot, and an element with its digest or the window digest.";
    /// The quoted snapshot was handed out.
    SnapKnown = "snap.known", "The quoted snapshot is one that was handed out.";
    /// It was handed to this session.
    SnapOwner = "snap.owner", "The quoted snapshot was handed to this session.";
    /// It was made by the executor that runs now.
    SnapGeneration = "snap.generation", "The quoted snapshot was made by the executor that runs now.";
    /// It can still be acted on.
    SnapState = "snap.state", "The quoted snapshot is live.";
    /// The window is the one the caller means.
    SnapTarget = "snap.target", "The snapshot has a target, and a quoted target equals it.";
    /// The window digest is the one of the snapshot.
    SnapWindow = "snap.window", "A quoted window digest equals the recorded one.";
    /// The element is part of the snapshot.
    ElementKnown = "element.known", "The quoted element is part of the quoted snapshot.";
    /// The element digest is the one of the snapshot.
    ElementDigest = "element.digest", "The quoted element digest equals the recorded one.";
    /// The element can be used.
    ElementEnabled = "element.enabled", "The element is enabled.";
    /// The element offers the verb.
    ElementOffers = "element.offers", "A verb is sent only to an element that advertises it.";
    /// Password fields are not written to.
    FieldSecure = "field.secure", "Nothing is written to or probed in a password field without the caller's grant.";
    /// Nothing was cut off.
    CdpComplete = "cdp.complete", "The parameters of a browser command were judged whole.";
    /// Wrappers are taken off first.
    CdpWrapper = "cdp.wrapper", "A browser command is not hidden inside another one, and the protocol is not handed to a page.";
    /// Pages belong to sessions.
    CdpOwner = "cdp.owner", "A browser command and its answer stay with pages of the caller's own session.";
    /// Only web pages.
    CdpDestination = "cdp.destination", "Every address in a browser command is http, https or about:blank.";
    /// The used path belongs to the used tier.
    ReviewPair = "review.pair", "The executor reports a path that belongs to the tier it reports.";
    /// The pointer was not moved without permission.
    ReviewPointer = "review.pointer", "The executor reports no global pointer movement that was not permitted.";
    /// Claims about the effect are possible.
    ReviewHonest = "review.honest", "The executor confirms an effect only for an action that it carried out.";
    /// The new snapshot belongs here.
    ReviewFresh = "review.fresh", "A snapshot that comes with an answer is live and belongs to this session and this executor.";
}
