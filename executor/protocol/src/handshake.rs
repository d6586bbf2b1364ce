//! `host.hello`: who speaks to whom, with which abilities and under which limits (§2).

use serde_json::Value;

use crate::{
    image::AbsolutePath,
    json::{Fields, Json, MAX_WHOLE, ObjectWriter, Reason, Violation, record},
    method::{Method, PROTOCOL},
    params::{ParamError, params_of},
    sets::{ElementActionKind, ImageFormat, KeyActionKind, PointActionKind},
};

record! {
    /// A program and its version. Identification only.
    #[derive(Eq)]
    pub struct HostIdentity {
        /// Program name.
        pub name: String = "name";
        /// Version.
        pub version: String = "version";
    }
}

record! {
    /// The params of `host.hello`.
    #[derive(Eq)]
    pub struct HelloParams {
        /// Must equal [`PROTOCOL`]; see [`HelloParams::speaks_our_protocol`].
        pub protocol: String = "protocol";
        /// Who calls.
        pub host: Option<HostIdentity> = "host";
        /// The host's process, which the executor watches.
        pub host_pid: u32 = "hostPid";
        /// Where the executor writes images; exists already.
        pub image_dir: AbsolutePath = "imageDir";
        /// Whether the system cursor may be moved.
        pub allow_global_pointer: bool = "allowGlobalPointer";
    }
    => |hello| if hello.host_pid > 0 { Ok(()) } else { Err(Violation::of("hostPid", Reason::OutOfRange)) }
}

params_of! { HelloParams => Method::HostHello }

impl HelloParams {
    /// Whether these raw params name our protocol. To be asked before anything else is read, so that a peer of another
    /// version gets the version answer even when its other fields differ.
    ///
    /// # Errors
    /// [`ParamError`] when `protocol` is missing or no string.
    pub fn speaks_our_protocol(params: &Value) -> Result<bool, ParamError> {
        let protocol: String = Fields::of(params).and_then(|fields| fields.get("protocol"))?;
        Ok(protocol == PROTOCOL)
    }
}

record! {
    /// The executor's identity.
    #[derive(Eq)]
    pub struct ExecutorIdentity {
        /// Program name.
        pub name: String = "name";
        /// Version.
        pub version: String = "version";
        /// Source revision it was built from.
        pub commit: Option<String> = "commit";
    }
}

record! {
    /// What the executor can do. An action is listed only if some request for it can succeed.
    #[derive(Default, Eq)]
    pub struct Capabilities {
        /// Reserved; `false`.
        pub capture_stream: bool = "captureStream";
        /// Kinds of `dispatch.element`.
        pub element_actions: Vec<ElementActionKind> = "elementActions";
        /// Kinds of `dispatch.point`.
        pub point_actions: Vec<PointActionKind> = "pointActions";
        /// Kinds of `dispatch.key`.
        pub key_actions: Vec<KeyActionKind> = "keyActions";
        /// Image formats it writes.
        pub image_formats: Vec<ImageFormat> = "imageFormats";
        /// Generic methods (§9): our addition, unknown to other executors.
        pub generic_methods: Option<Vec<Method>> = "genericMethods";
    }
}

impl Capabilities {
    /// Whether requests of this method are understood. Every executor understands the published ones; the generic ones
    /// have to be advertised (§9).
    #[must_use]
    pub fn understands(&self, method: Method) -> bool {
        match method {
            Method::HostDispatch | Method::HostSnapshot => self
                .generic_methods
                .as_ref()
                .is_some_and(|methods| methods.contains(&method)),
            Method::HostHello
            | Method::SessionBegin
            | Method::SessionEnd
            | Method::WindowList
            | Method::AppsList
            | Method::AppsLaunch
            | Method::Observe
            | Method::DispatchElement
            | Method::DispatchKey
            | Method::DispatchPoint
            | Method::ScreenCapture
            | Method::PermissionsCheck
            | Method::CaptureStart
            | Method::CaptureNext
            | Method::CaptureStop => true,
        }
    }
}

/// Declares the limits: name, wire name, default. The first list must be sent, the second may be.
macro_rules! limits {
    (
        required { $( $(#[$meta:meta])* $field:ident = $wire:literal default $default:literal, )* }
        optional { $( $(#[$optional_meta:meta])* $optional:ident = $optional_wire:literal default $optional_default:literal, )* }
    ) => {
        /// The limits an executor keeps (§2.2). A host takes these numbers from here, not from constants of its own.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub struct Limits {
            $( $(#[$meta])* pub $field: u64, )*
            $( $(#[$optional_meta])* pub $optional: Option<u64>, )*
        }

        impl Default for Limits {
            /// The defaults of the protocol.
            fn default() -> Self {
                Self { $( $field: $default, )* $( $optional: Some($optional_default), )* }
            }
        }

        impl Json for Limits {
            fn read(value: &Value) -> Result<Self, Violation> {
                let fields = Fields::of(value)?;
                Ok(Self {
                    $( $field: positive(fields, $wire)?, )*
                    $( $optional: if fields.has($optional_wire) { Some(positive(fields, $optional_wire)?) } else { None }, )*
                })
            }

            fn write(&self) -> Value {
                ObjectWriter::new()
                    $( .with($wire, &self.$field.min(MAX_WHOLE)) )*
                    $( .with($optional_wire, &self.$optional.map(|limit| limit.min(MAX_WHOLE))) )*
                    .finish()
            }
        }
    };
}

limits! {
    required {
        /// Live snapshots per session; the oldest gives way.
        snapshots_per_session = "snapshotsPerSession" default 8,
        /// Lifetime of a snapshot and its image, in milliseconds.
        snapshot_ttl_ms = "snapshotTtlMs" default 120_000,
        /// Elements of one window tree.
        max_elements = "maxElements" default 1_500,
        /// Levels of one window tree.
        max_depth = "maxDepth" default 64,
        /// Grapheme clusters of one text field.
        max_text_chars = "maxTextChars" default 500,
        /// Bytes of one encoded message.
        max_response_bytes = "maxResponseBytes" default 1_048_576,
        /// Time for settling, in milliseconds.
        settle_ceiling_ms = "settleCeilingMs" default 2_500,
        /// Time to end after SIGTERM, in milliseconds.
        shutdown_grace_ms = "shutdownGraceMs" default 3_000,
        /// Bytes of all image files together.
        image_dir_budget_bytes = "imageDirBudgetBytes" default 268_435_456,
    }
    optional {
        /// Time for the tree reads of one observe, in milliseconds.
        tree_walk_ceiling_ms = "treeWalkCeilingMs" default 6_000,
        /// Elements of one menu.
        max_menu_elements = "maxMenuElements" default 500,
        /// The menu's share of the walk time, in milliseconds.
        menu_walk_ceiling_ms = "menuWalkCeilingMs" default 1_500,
    }
}

/// A whole number of at least one; anything else would let a limit of nothing crash or stall a host.
fn positive(fields: Fields<'_>, name: &str) -> Result<u64, Violation> {
    match fields.get(name)? {
        0 => Err(Violation::of(name, Reason::OutOfRange)),
        limit => Ok(limit),
    }
}

record! {
    /// The answer to `host.hello`.
    #[derive(Eq)]
    pub struct Handshake {
        /// The version the executor speaks. A host compares it with the one sent: another one is a mismatch of versions,
        /// not a malformed answer.
        pub protocol: String = "protocol";
        /// Who answers.
        pub executor: ExecutorIdentity = "executor";
        /// The executor's process id.
        pub pid: u32 = "pid";
        /// What it can do.
        pub capabilities: Capabilities = "capabilities";
        /// What it keeps to.
        pub limits: Limits = "limits";
    }
}
