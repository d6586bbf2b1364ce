//! What a script says: rules that match requests, and the steps that answer them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::fault::Fault;

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
    /// Faults drawn by a seed for requests without a rule.
    pub(crate) storm: Option<StormScript>,
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

/// A storm: which requests meet a fault is drawn from a seed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StormScript {
    /// The seed. The n-th request of the m-th process meets the same fault in every run.
    pub(crate) seed: u64,
    /// Requests in a thousand that meet a fault.
    pub(crate) permille: u64,
    /// The storm is over once this file exists.
    pub(crate) until: PathBuf,
    /// Which faults there are. Left out: all of them.
    #[serde(default)]
    pub(crate) faults: Option<Vec<Fault>>,
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
    /// Only requests whose params hold these values at these JSON pointers.
    #[serde(default)]
    pub(crate) params: BTreeMap<String, Value>,
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
    /// The default answer with a picture that is not what is said of it.
    Picture(PictureLie),
    /// The first half of the default answer, and no newline.
    Half,
    /// The message that this rule sent last, once more.
    Again,
    /// The default answer under another id, which is so much higher.
    OtherId(i64),
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
    /// Waits so many milliseconds. For storms; a test that waits for something uses a file.
    Pause(u64),
    /// Creates this file.
    Touch(PathBuf),
    /// Waits for `$/cancel` of this request.
    WaitForCancel,
    /// Waits so many milliseconds; then the default answer, or the refusal `aborted` when `$/cancel` came first.
    DefaultUnlessCancelledWithin(u64),
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
    /// Puts a program that only fails in the place of this program's own file.
    SwapOwnFile,
}

/// What is wrong with the picture of an answer.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PictureLie {
    /// There is no such file.
    Gone,
    /// Its path leads out of the image folder.
    Outside,
    /// Its path steps out of the image folder and back.
    Winding,
    /// It is a symbolic link to the picture.
    Link,
    /// It is a named pipe that nobody writes to.
    Fifo,
    /// It is a device that never ends.
    Device,
    /// It is a folder.
    Folder,
    /// Another hash is said.
    Hash,
    /// Another length is said.
    Length,
    /// It grows for as long as the executor lives.
    Growing,
    /// It has exactly the frame budget of 8 MiB, and is said to: no lie, but the last picture that is none.
    AsLargeAsMayBe,
    /// It is one byte above the frame budget of 8 MiB, and said to be.
    TooLarge,
}

impl Script {
    /// The rule for a request.
    pub(crate) fn rule(
        &self,
        method: &str,
        params: &Value,
        nth: u64,
        process: u64,
    ) -> Option<&Rule> {
        let session = params.get("session").and_then(Value::as_str);
        self.rules.iter().find(|rule| {
            rule.method == method
                && rule.nth.is_none_or(|wanted| wanted == nth)
                && rule.process.is_none_or(|wanted| wanted == process)
                && rule
                    .session
                    .as_deref()
                    .is_none_or(|wanted| Some(wanted) == session)
                && rule
                    .params
                    .iter()
                    .all(|(pointer, value)| params.pointer(pointer) == Some(value))
        })
    }
}
