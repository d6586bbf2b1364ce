//! How the process ends.

/// A documented exit status (spec §1.7; those of the commands for a person are ours, from `sysexits.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// SIGTERM, end of stdin, or the host process is gone; `doctor` found everything in place; what was to be shown was
    /// shown.
    Done,
    /// `doctor` found something missing.
    Unhealthy,
    /// Started without a subcommand or with unknown arguments (`EX_USAGE`).
    Usage,
    /// The application or window that a person named is not there, or is not the only one (`EX_NOINPUT`).
    NoTarget,
    /// There is no desktop of the wanted kind: `host` refused to start, or the desktop went away while it served
    /// (`EX_UNAVAILABLE`).
    NoDesktop,
    /// The system refused something every process needs, such as a thread (`EX_OSERR`).
    System,
    /// A picture or the output could not be written where it was wanted (`EX_CANTCREAT`).
    NotWritten,
    /// The desktop did not let itself be read now; another try may succeed (`EX_TEMPFAIL`).
    Refused,
    /// The operating system withholds a permission (`EX_NOPERM`).
    NoPermission,
    /// The host speaks another version of the protocol (`EX_CONFIG`).
    VersionMismatch,
}

impl Exit {
    /// Every way to end.
    pub const ALL: [Self; 10] = [
        Self::Done,
        Self::Unhealthy,
        Self::Usage,
        Self::NoTarget,
        Self::NoDesktop,
        Self::System,
        Self::NotWritten,
        Self::Refused,
        Self::NoPermission,
        Self::VersionMismatch,
    ];

    /// The status.
    #[must_use]
    pub const fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Unhealthy => 1,
            Self::Usage => 64,
            Self::NoTarget => 66,
            Self::NoDesktop => 69,
            Self::System => 71,
            Self::NotWritten => 73,
            Self::Refused => 75,
            Self::NoPermission => 77,
            Self::VersionMismatch => 78,
        }
    }
}
