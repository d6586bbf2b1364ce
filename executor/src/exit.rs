//! How the process ends.

/// A documented exit status (spec §1.7; 69 is ours, from `sysexits.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// SIGTERM, end of stdin, or the host process is gone; `doctor` found everything in place.
    Done,
    /// `doctor` found something missing.
    Unhealthy,
    /// Started without a subcommand or with unknown arguments (`EX_USAGE`).
    Usage,
    /// There is no desktop of the wanted kind: `host` refused to start, or the desktop went away while it served
    /// (`EX_UNAVAILABLE`).
    NoDesktop,
    /// The system refused something every process needs, such as a thread (`EX_OSERR`).
    System,
    /// The host speaks another version of the protocol (`EX_CONFIG`).
    VersionMismatch,
}

impl Exit {
    /// Every way to end.
    pub const ALL: [Self; 6] = [
        Self::Done,
        Self::Unhealthy,
        Self::Usage,
        Self::NoDesktop,
        Self::System,
        Self::VersionMismatch,
    ];

    /// The status.
    #[must_use]
    pub const fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Unhealthy => 1,
            Self::Usage => 64,
            Self::NoDesktop => 69,
            Self::System => 71,
            Self::VersionMismatch => 78,
        }
    }
}
