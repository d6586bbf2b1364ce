//! Obligations: conditions on an allow, from a closed table.
//!
//! They only narrow. When several policies set conditions the stricter one counts, and conditions that leave nothing to
//! do are a conflict, which is a refusal.

use std::fmt;

use maka_floor::facts::Path;

/// A condition on an allow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obligation {
    /// Take the value at this JSON pointer out of the answer.
    Redact(String),
    /// Leave the image out of the answer.
    DropImage,
    /// Answer with at most this many bytes.
    MaxBytes(u64),
    /// Carry the action out by one of these paths.
    OnlyPaths(Vec<Path>),
    /// The snapshot is spent at once, whatever the outcome.
    NoFollowUp,
    /// Keep hashes instead of names in the log.
    MarkSensitive,
}

impl fmt::Display for Obligation {
    /// The kind, and after a colon its argument where it has one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().as_str())?;
        match self {
            Self::Redact(pointer) => write!(f, ":{pointer}"),
            Self::MaxBytes(limit) => write!(f, ":{limit}"),
            Self::OnlyPaths(paths) => {
                let names: Vec<_> = paths.iter().map(|path| path.as_str()).collect();
                write!(f, ":{}", names.join(","))
            }
            Self::DropImage | Self::NoFollowUp | Self::MarkSensitive => Ok(()),
        }
    }
}

/// The kinds of [`Obligation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "each is described at the obligation of the same name"
)]
pub enum ObligationKind {
    Redact,
    DropImage,
    MaxBytes,
    OnlyPaths,
    NoFollowUp,
    MarkSensitive,
}

impl ObligationKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Redact,
        Self::DropImage,
        Self::MaxBytes,
        Self::OnlyPaths,
        Self::NoFollowUp,
        Self::MarkSensitive,
    ];

    /// The word in verdicts, manifests and the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Redact => "redact",
            Self::DropImage => "drop-image",
            Self::MaxBytes => "max-bytes",
            Self::OnlyPaths => "only-paths",
            Self::NoFollowUp => "no-follow-up",
            Self::MarkSensitive => "mark-sensitive",
        }
    }

    /// The kind with this word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}

/// Conditions that leave nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict;

impl Obligation {
    /// Reads what a policy wrote; an unknown kind or a malformed argument is none.
    #[must_use]
    pub fn parse(kind: &str, arg: &str) -> Option<Self> {
        let bare = |obligation: Self| arg.is_empty().then_some(obligation);
        match ObligationKind::parse(kind)? {
            ObligationKind::Redact => {
                (arg.starts_with('/') && arg.len() <= 256).then(|| Self::Redact(arg.to_owned()))
            }
            ObligationKind::DropImage => bare(Self::DropImage),
            ObligationKind::MaxBytes => {
                let digits = !arg.is_empty() && arg.bytes().all(|b| b.is_ascii_digit());
                digits
                    .then(|| arg.parse().ok())
                    .flatten()
                    .map(Self::MaxBytes)
            }
            ObligationKind::OnlyPaths => {
                let mut paths = arg
                    .split(',')
                    .map(Path::parse)
                    .collect::<Option<Vec<_>>>()?;
                paths.sort_unstable();
                paths.dedup();
                Some(Self::OnlyPaths(paths))
            }
            ObligationKind::NoFollowUp => bare(Self::NoFollowUp),
            ObligationKind::MarkSensitive => bare(Self::MarkSensitive),
        }
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> ObligationKind {
        match self {
            Self::Redact(_) => ObligationKind::Redact,
            Self::DropImage => ObligationKind::DropImage,
            Self::MaxBytes(_) => ObligationKind::MaxBytes,
            Self::OnlyPaths(_) => ObligationKind::OnlyPaths,
            Self::NoFollowUp => ObligationKind::NoFollowUp,
            Self::MarkSensitive => ObligationKind::MarkSensitive,
        }
    }
}

/// Unites the conditions of several verdicts, each toward the stricter side: the union of redactions and switches, the
/// smallest byte limit, the paths that all of them permit. The result is sorted and does not depend on the order.
///
/// # Errors
///
/// When no path is left.
pub fn unite(all: impl IntoIterator<Item = Obligation>) -> Result<Vec<Obligation>, Conflict> {
    let mut united: Vec<Obligation> = Vec::new();
    let mut max_bytes: Option<u64> = None;
    let mut only_paths: Option<Vec<Path>> = None;
    for obligation in all {
        match obligation {
            Obligation::MaxBytes(limit) => {
                max_bytes = Some(max_bytes.map_or(limit, |least| least.min(limit)))
            }
            Obligation::OnlyPaths(paths) => {
                only_paths = Some(match only_paths {
                    None => paths,
                    Some(kept) => kept
                        .into_iter()
                        .filter(|path| paths.contains(path))
                        .collect(),
                });
            }
            Obligation::Redact(_)
            | Obligation::DropImage
            | Obligation::NoFollowUp
            | Obligation::MarkSensitive => {
                united.push(obligation);
            }
        }
    }
    united.extend(max_bytes.map(Obligation::MaxBytes));
    match only_paths {
        Some(paths) if paths.is_empty() => return Err(Conflict),
        Some(paths) => united.push(Obligation::OnlyPaths(paths)),
        None => {}
    }
    united.sort();
    united.dedup();
    Ok(united)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_is_accepted() {
        let rows: &[(&str, &str, Option<Obligation>)] = &[
            (
                "redact",
                "/snapshot/title",
                Some(Obligation::Redact("/snapshot/title".into())),
            ),
            ("redact", "title", None),
            ("drop-image", "", Some(Obligation::DropImage)),
            ("drop-image", "yes", None),
            ("max-bytes", "1024", Some(Obligation::MaxBytes(1024))),
            ("max-bytes", "+1", None),
            ("max-bytes", "", None),
            ("max-bytes", "99999999999999999999", None),
            (
                "only-paths",
                "ax_select,ax_action",
                Some(Obligation::OnlyPaths(vec![Path::AxAction, Path::AxSelect])),
            ),
            ("only-paths", "", None),
            ("only-paths", "ax_action,teleport", None),
            ("no-follow-up", "", Some(Obligation::NoFollowUp)),
            ("mark-sensitive", "", Some(Obligation::MarkSensitive)),
            ("run-shell", "", None),
            ("", "", None),
        ];
        for (kind, arg, expected) in rows {
            let parsed = Obligation::parse(kind, arg);
            assert_eq!(&parsed, expected, "{kind} {arg}");
            if let Some(text) = parsed.as_ref().map(ToString::to_string) {
                let (kind, arg) = text.split_once(':').unwrap_or((&text, ""));
                assert_eq!(Obligation::parse(kind, arg), parsed, "{text}");
            }
        }
    }

    #[test]
    fn the_stricter_side_counts() {
        let paths = |list: &[Path]| Obligation::OnlyPaths(list.to_vec());
        let united = unite([
            Obligation::MaxBytes(10),
            paths(&[Path::AxAction, Path::AxSelect]),
            Obligation::DropImage,
            Obligation::MaxBytes(5),
            Obligation::DropImage,
            paths(&[Path::AxSelect, Path::CgEventPid]),
        ]);
        assert_eq!(
            united,
            Ok(vec![
                Obligation::DropImage,
                Obligation::MaxBytes(5),
                paths(&[Path::AxSelect])
            ])
        );
        assert_eq!(
            unite([paths(&[Path::AxAction]), paths(&[Path::AxSelect])]),
            Err(Conflict)
        );
    }
}
