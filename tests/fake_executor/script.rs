//! What a script says: rules that match requests, and the steps that answer them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// A whole script. Every key is optional; unknown keys are refused, because a misspelt fault would test nothing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Script {
    /// Where to write the wire log; `--wire-log` wins.
    pub(crate) log: Option<PathBuf>,
    /// Steps before the first line is read. They run on the reading thread.
    pub(crate) at_start: Vec<Step>,
    /// Restricts `at_start` to the n-th process of this log (1 is the first).
    pub(crate) at_start_of_process: Option<u64>,
    /// Changes to the limits of the handshake.
    pub(crate) limits: BTreeMap<String, Value>,
    /// Changes to the capabilities of the handshake.
    pub(crate) capabilities: BTreeMap<String, Value>,
    /// Lives on after SIGTERM.
    pub(crate) ignore_sigterm: bool,
    /// Lives on after the end of stdin.
    pub(crate) ignore_eof: bool,
    /// The window on show.
    pub(crate) world: WorldScript,
    /// The first rule that matches a request is followed; without one the request gets its default answer.
    pub(crate) rules: Vec<Rule>,
}

/// Changes to the default window.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WorldScript {
    /// Its title.
    pub(crate) title: String,
    /// Value of its text field.
    pub(crate) value: String,
    /// Static texts added to its tree.
    pub(crate) extra_elements: u32,
}

impl Default for WorldScript {
    fn default() -> Self {
        Self {
            title: "Untitled".to_owned(),
            value: "draft".to_owned(),
            extra_elements: 0,
        }
    }
}

/// Which requests, and what happens to them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// The method, as on the wire.
    pub(crate) method: String,
    /// Only the n-th request of the method in this process (1 is the first).
    #[serde(default)]
    pub(crate) nth: Option<u64>,
    /// Only in the n-th process of this log (1 is the first).
    #[serde(default)]
    pub(crate) process: Option<u64>,
    /// Only requests of this session.
    #[serde(default)]
    pub(crate) session: Option<String>,
    /// Runs on the reading thread: nothing more is read until the steps are done. Otherwise on a thread of its own.
    #[serde(default)]
    pub(crate) inline: bool,
    /// What to do, in order.
    pub(crate) steps: Vec<Step>,
}

/// One thing to do.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// The answer the request would get without a script.
    Default,
    /// The default answer with changes at JSON pointers into `result`.
    Patched {
        /// New values.
        #[serde(default)]
        set: BTreeMap<String, Value>,
        /// Keys to take out.
        #[serde(default)]
        remove: Vec<String>,
    },
    /// This `result`.
    Result(Value),
    /// This JSON-RPC `error`.
    Error(Value),
    /// A domain refusal with this code; a dispatch gets its full refusal arm.
    Refuse(String),
    /// Exactly these characters. `$ID` becomes the request's id; no newline is added.
    Raw(String),
    /// Exactly these bytes.
    RawBytes(Vec<u8>),
    /// From here on this rule's output leaves in pieces of so many bytes, each flushed.
    Pieces(usize),
    /// Waits until this file exists.
    WaitForFile(PathBuf),
    /// Creates this file.
    Touch(PathBuf),
    /// Waits for `$/cancel` of this request.
    WaitForCancel,
    /// Ends the rule without an answer.
    Never,
    /// Ends the process with this status.
    Exit(i32),
    /// Ends the process with this signal, by number.
    Die(i32),
    /// Closes standard output.
    CloseStdout,
    /// Closes standard input.
    CloseStdin,
    /// Writes this line (newline added) so many times to standard output.
    FloodStdout {
        /// The line.
        line: String,
        /// How often.
        count: u64,
    },
    /// Writes so many bytes without a newline to standard output.
    FloodStdoutBytes(u64),
    /// Writes so many bytes without a newline to standard error, invalid UTF-8 among them.
    FloodStderr(u64),
    /// Writes this line to standard error.
    Complain(String),
    /// Starts a helper in the same process group that lives until it is killed, and logs its process id.
    SpawnHelper,
}

impl Script {
    /// The rule for a request.
    pub(crate) fn rule(
        &self,
        method: &str,
        session: Option<&str>,
        nth: u64,
        process: u64,
    ) -> Option<&Rule> {
        self.rules.iter().find(|rule| {
            rule.method == method
                && rule.nth.is_none_or(|wanted| wanted == nth)
                && rule.process.is_none_or(|wanted| wanted == process)
                && rule
                    .session
                    .as_deref()
                    .is_none_or(|wanted| Some(wanted) == session)
        })
    }
}
