//! Section `[executor]`: which executable drives the desktop, pinned by digest, and how it is supervised.

use std::{collections::BTreeMap, ffi::OsString, fmt};

use serde::{Deserialize, Deserializer, de};

use super::value::{AbsolutePath, Bounded, Sha256, VariableName};

/// The executor and its supervision.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorConfig {
    /// The executable. Without it nothing is started: `GetStatus` shows the reason.
    pub path: Option<AbsolutePath>,
    /// Digest of the executable. Without it nothing is started: an executor that is not pinned is not trusted.
    pub sha256: Option<Sha256>,
    /// Which desktop to drive. Absent: the real desktop of this platform; `virtual` only by name.
    pub back_end: Option<BackEnd>,
    /// Further arguments, after `host` and the back end.
    #[serde(default)]
    pub args: Arguments,
    /// Variables for the executor beside those it inherits.
    #[serde(default)]
    pub env: Variables,
    /// Where the executor writes images. Absent: `images` in `state_dir`. Must be empty or ours at start.
    pub image_dir: Option<AbsolutePath>,
    /// When a dead executor is started again.
    #[serde(default)]
    pub restart: Restart,
    /// Starts in a row before giving up.
    #[serde(default = "defaults::max_restart_attempts")]
    pub max_restart_attempts: Bounded<0, 100>,
    /// After this long without a death the attempts are counted from zero again.
    #[serde(default = "defaults::stable_after_ms")]
    pub stable_after_ms: Bounded<1, 86_400_000>,
    /// Least time for one request.
    #[serde(default = "defaults::timeout_ms")]
    pub timeout_ms: Bounded<1, 600_000>,
    /// Time for the executor to introduce itself.
    #[serde(default = "defaults::handshake_timeout_ms")]
    pub handshake_timeout_ms: Bounded<1, 600_000>,
    /// How long a cancelled request may take to say what became of it.
    #[serde(default = "defaults::cancel_grace_ms")]
    pub cancel_grace_ms: Bounded<1, 60_000>,
}

mod defaults {
    use super::Bounded;

    pub(super) const fn max_restart_attempts() -> Bounded<0, 100> {
        Bounded::constant(3)
    }
    pub(super) const fn stable_after_ms() -> Bounded<1, 86_400_000> {
        Bounded::constant(60_000)
    }
    pub(super) const fn timeout_ms() -> Bounded<1, 600_000> {
        Bounded::constant(20_000)
    }
    pub(super) const fn handshake_timeout_ms() -> Bounded<1, 600_000> {
        Bounded::constant(10_000)
    }
    pub(super) const fn cancel_grace_ms() -> Bounded<1, 60_000> {
        Bounded::constant(2_000)
    }
}

/// Which desktop the executor drives.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum BackEnd {
    /// A Mac's desktop.
    Macos,
    /// An X11 desktop with AT-SPI.
    Linux,
    /// A Wayland desktop, through AT-SPI alone.
    Wayland,
    /// The embedded desktop, which needs nothing installed.
    Virtual,
}

impl BackEnd {
    /// The word on the executor's command line and in `GetStatus`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Macos => "macos",
            Self::Linux => "linux",
            Self::Wayland => "wayland",
            Self::Virtual => "virtual",
        }
    }

    /// What a bare `maka-cu host` drives in this session. In a Wayland session it takes an X display only if that has a
    /// screen of its own, which is rare and not looked at here.
    #[must_use]
    pub fn of_platform() -> Option<Self> {
        let in_wayland = std::env::var_os("WAYLAND_DISPLAY").is_some_and(|name| !name.is_empty());
        if cfg!(target_os = "macos") {
            Some(Self::Macos)
        } else if cfg!(target_os = "linux") {
            Some(if in_wayland {
                Self::Wayland
            } else {
                Self::Linux
            })
        } else {
            None
        }
    }
}

/// When a dead executor is started again.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// At once, within the budget.
    #[default]
    Eager,
    /// When the next call needs it.
    OnDemand,
}

/// Arguments for the executor; never printed, since they may name private files.
#[derive(Clone, Default)]
pub struct Arguments(pub Vec<OsString>);

impl fmt::Debug for Arguments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{} arguments]", self.0.len())
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let arguments = Vec::<String>::deserialize(deserializer)
            .map_err(|_| de::Error::custom("write a list of strings, one per argument"))?;
        if arguments.iter().any(|argument| argument.contains('\0')) {
            return Err(de::Error::custom(
                "an argument holds a NUL character; leave it out",
            ));
        }
        Ok(Self(arguments.into_iter().map(OsString::from).collect()))
    }
}

/// Variables for the executor; values are never printed.
#[derive(Clone, Default)]
pub struct Variables(pub BTreeMap<VariableName, OsString>);

impl fmt::Debug for Variables {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl<'de> Deserialize<'de> for Variables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let variables = BTreeMap::<String, String>::deserialize(deserializer).map_err(|_| {
            de::Error::custom("write a table of strings, for example `{ LANG = \"C.UTF-8\" }`")
        })?;
        let mut read = BTreeMap::new();
        for (name, value) in variables {
            if value.contains('\0') {
                return Err(de::Error::custom(
                    "a value holds a NUL character; leave it out",
                ));
            }
            read.insert(name.parse().map_err(de::Error::custom)?, value.into());
        }
        Ok(Self(read))
    }
}
