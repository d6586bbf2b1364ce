//! The advertised limits, and how the command line changes them.
//!
//! A limit is always advertised as it is kept. Overrides exist for operators with unusual desktops and for tests that
//! would otherwise wait two minutes for a snapshot to expire.

use std::str::FromStr;

use maka_cu_protocol::handshake::Limits;
use maka_cu_protocol::json::MAX_WHOLE;
use thiserror::Error;

/// A limit that can be changed, by its name on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitName {
    /// `snapshotsPerSession`.
    SnapshotsPerSession,
    /// `snapshotTtlMs`.
    SnapshotTtlMs,
    /// `maxElements`.
    MaxElements,
    /// `maxDepth`.
    MaxDepth,
    /// `maxTextChars`.
    MaxTextChars,
    /// `maxResponseBytes`.
    MaxResponseBytes,
    /// `settleCeilingMs`.
    SettleCeilingMs,
    /// `shutdownGraceMs`.
    ShutdownGraceMs,
    /// `imageDirBudgetBytes`.
    ImageDirBudgetBytes,
    /// `treeWalkCeilingMs`.
    TreeWalkCeilingMs,
    /// `maxMenuElements`.
    MaxMenuElements,
    /// `menuWalkCeilingMs`.
    MenuWalkCeilingMs,
}

impl LimitName {
    /// Every name.
    pub const ALL: [Self; 12] = [
        Self::SnapshotsPerSession,
        Self::SnapshotTtlMs,
        Self::MaxElements,
        Self::MaxDepth,
        Self::MaxTextChars,
        Self::MaxResponseBytes,
        Self::SettleCeilingMs,
        Self::ShutdownGraceMs,
        Self::ImageDirBudgetBytes,
        Self::TreeWalkCeilingMs,
        Self::MaxMenuElements,
        Self::MenuWalkCeilingMs,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SnapshotsPerSession => "snapshotsPerSession",
            Self::SnapshotTtlMs => "snapshotTtlMs",
            Self::MaxElements => "maxElements",
            Self::MaxDepth => "maxDepth",
            Self::MaxTextChars => "maxTextChars",
            Self::MaxResponseBytes => "maxResponseBytes",
            Self::SettleCeilingMs => "settleCeilingMs",
            Self::ShutdownGraceMs => "shutdownGraceMs",
            Self::ImageDirBudgetBytes => "imageDirBudgetBytes",
            Self::TreeWalkCeilingMs => "treeWalkCeilingMs",
            Self::MaxMenuElements => "maxMenuElements",
            Self::MenuWalkCeilingMs => "menuWalkCeilingMs",
        }
    }

    /// The largest value that is taken: a day, a gibibyte of message, a million things.
    const fn largest(self) -> u64 {
        match self {
            Self::SnapshotTtlMs
            | Self::SettleCeilingMs
            | Self::ShutdownGraceMs
            | Self::TreeWalkCeilingMs
            | Self::MenuWalkCeilingMs => 24 * 60 * 60 * 1000,
            Self::MaxResponseBytes => 1024 * 1024 * 1024,
            Self::ImageDirBudgetBytes => MAX_WHOLE,
            Self::SnapshotsPerSession
            | Self::MaxElements
            | Self::MaxDepth
            | Self::MaxTextChars
            | Self::MaxMenuElements => 1_000_000,
        }
    }
}

/// `NAME=VALUE` from the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitOverride {
    name: LimitName,
    value: u64,
}

/// Why an override cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LimitError {
    /// Not of the form `NAME=VALUE`.
    #[error("write `NAME=VALUE`, for example `snapshotTtlMs=5000`")]
    Form,
    /// No such limit.
    #[error("no limit has that name; the names are {}", LimitName::ALL.map(LimitName::as_str).join(", "))]
    Name,
    /// Not a whole number in the limit's range.
    #[error("`{}` takes a whole number from 1 to {}", .0.as_str(), .0.largest())]
    Value(LimitName),
}

impl FromStr for LimitOverride {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let (name, value) = text.split_once('=').ok_or(LimitError::Form)?;
        let name = LimitName::ALL
            .into_iter()
            .find(|limit| limit.as_str() == name)
            .ok_or(LimitError::Name)?;
        let value = value.parse().map_err(|_| LimitError::Value(name))?;
        if (1..=name.largest()).contains(&value) {
            Ok(Self { name, value })
        } else {
            Err(LimitError::Value(name))
        }
    }
}

/// The protocol's defaults with these changes, the last of a name winning.
#[must_use]
pub fn with_overrides(overrides: &[LimitOverride]) -> Limits {
    let mut limits = Limits::default();
    for LimitOverride { name, value } in overrides {
        let value = *value;
        match name {
            LimitName::SnapshotsPerSession => limits.snapshots_per_session = value,
            LimitName::SnapshotTtlMs => limits.snapshot_ttl_ms = value,
            LimitName::MaxElements => limits.max_elements = value,
            LimitName::MaxDepth => limits.max_depth = value,
            LimitName::MaxTextChars => limits.max_text_chars = value,
            LimitName::MaxResponseBytes => limits.max_response_bytes = value,
            LimitName::SettleCeilingMs => limits.settle_ceiling_ms = value,
            LimitName::ShutdownGraceMs => limits.shutdown_grace_ms = value,
            LimitName::ImageDirBudgetBytes => limits.image_dir_budget_bytes = value,
            LimitName::TreeWalkCeilingMs => limits.tree_walk_ceiling_ms = Some(value),
            LimitName::MaxMenuElements => limits.max_menu_elements = Some(value),
            LimitName::MenuWalkCeilingMs => limits.menu_walk_ceiling_ms = Some(value),
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_is_checked_when_it_is_read() {
        let rows = [
            ("snapshotTtlMs=5", None),
            ("snapshotTtlMs", Some(LimitError::Form)),
            ("ttl=5", Some(LimitError::Name)),
            ("maxDepth=0", Some(LimitError::Value(LimitName::MaxDepth))),
            ("maxDepth=-1", Some(LimitError::Value(LimitName::MaxDepth))),
            ("maxDepth=1.5", Some(LimitError::Value(LimitName::MaxDepth))),
            (
                "maxDepth=1000001",
                Some(LimitError::Value(LimitName::MaxDepth)),
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(text.parse::<LimitOverride>().err(), expected, "{text}");
        }
    }

    #[test]
    fn every_limit_can_be_changed() {
        for name in LimitName::ALL {
            let limits = with_overrides(&[format!("{}=7", name.as_str()).parse().unwrap()]);
            let written = maka_cu_protocol::json::Json::write(&limits);
            assert_eq!(written[name.as_str()], 7);
        }
    }
}
