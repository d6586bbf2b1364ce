//! Why a configuration is refused: where, which key, and what to write instead.

use std::{
    io,
    path::{Path, PathBuf},
};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read the configuration `{}`", file.display())]
    Unreadable {
        /// The file that was named.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is larger than any configuration.
    #[error("the configuration `{}` is larger than {max_bytes} bytes", file.display())]
    TooLarge {
        /// The file that was named.
        file: PathBuf,
        /// The bound.
        max_bytes: u64,
    },
    /// A key is unknown, missing or has a bad value.
    #[error("{}:{line}: {}{problem}", file.display(), key.as_deref().map(|key| format!("`{key}`: ")).unwrap_or_default())]
    Invalid {
        /// The file that was read.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The dotted key on that line, when there is one.
        key: Option<String>,
        /// What is wrong and what to write instead. Never holds a value of the executor's environment or arguments.
        problem: String,
    },
}

impl ConfigError {
    /// Two sections that do not go together; `key` is the one to look at, and its first line is named.
    pub(super) fn misfit(file: &Path, text: &str, key: &str, problem: &str) -> Self {
        let line = text
            .lines()
            .position(|line| line.trim_start().starts_with(key));
        Self::Invalid {
            file: file.to_owned(),
            line: line.map_or(1, |line| line + 1),
            key: Some(key.to_owned()),
            problem: problem.to_owned(),
        }
    }

    pub(super) fn invalid(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        Self::Invalid {
            file: file.to_owned(),
            line: text.as_bytes()[..offset]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
                + 1,
            key: if error.message().starts_with("missing field") {
                // The span is the whole table, whose first line may be another key.
                header_above(text, offset)
            } else {
                key_at(text, offset)
            },
            problem: error.message().trim_end().replace('\n', "; "),
        }
    }
}

/// The dotted key of the entry at `offset`: the table header above it and the words before the line's `=`.
/// The parser knows the path but does not tell it; a file is read by a person, so the nearest header is right.
fn key_at(text: &str, offset: usize) -> Option<String> {
    let start = line_start(text, offset)?;
    let line = text.get(start..)?.lines().next()?;
    if let Some(header) = header(line) {
        return Some(header.to_owned());
    }
    let key = line.split_once('=')?.0.trim();
    match text.get(..start)?.lines().rev().find_map(header) {
        Some(header) => Some(format!("{header}.{key}")),
        None => Some(key.to_owned()),
    }
}

/// The table that `offset` lies in; none before the first header.
fn header_above(text: &str, offset: usize) -> Option<String> {
    let start = line_start(text, offset)?;
    let end = start + text.get(start..)?.lines().next().unwrap_or_default().len();
    text.get(..end)?
        .lines()
        .rev()
        .find_map(header)
        .map(str::to_owned)
}

fn line_start(text: &str, offset: usize) -> Option<usize> {
    Some(
        text.get(..offset)?
            .rfind('\n')
            .map_or(0, |newline| newline + 1),
    )
}

/// The name in `[name]` or `[[name]]`.
fn header(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix('[')?;
    Some(rest.split(']').next()?.trim_start_matches('[').trim())
}
