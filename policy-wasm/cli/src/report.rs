//! What a command has to say: text for standard output, text for standard error, and an exit code.

use std::error::Error;

pub use maka_policy_host::fixture::plain;

use crate::error::InputError;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Everything is as it should be.
    Passed,
    /// A case failed, a policy is not steady, or a log is not whole.
    Failed,
    /// What was given cannot be worked with: a policy that is refused, a fixture with a mistake, a wrong flag.
    BadInput,
    /// Every case passed, and too few rules were covered.
    Uncovered,
}

impl Exit {
    /// The status of the process.
    #[must_use]
    pub const fn status(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::BadInput => 2,
            Self::Uncovered => 3,
        }
    }
}

/// What a command has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// For standard output.
    pub out: String,
    /// For standard error.
    pub err: String,
    /// How it ended.
    pub exit: Exit,
}

impl Report {
    /// A result.
    #[must_use]
    pub fn new(out: String, exit: Exit) -> Self {
        Self {
            out,
            err: String::new(),
            exit,
        }
    }

    /// The end of a command that could not begin.
    #[must_use]
    pub fn bad_input(error: &InputError) -> Self {
        let mut err = chain(error);
        if let Some(advice) = error.advice() {
            err.push_str(&advice);
        }
        Self {
            out: String::new(),
            err: format!("maka-policy: {}\n", err.trim_end()),
            exit: Exit::BadInput,
        }
    }
}

/// An error with its causes, on one line each.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str("\n  because: ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text.push('\n');
    text
}
