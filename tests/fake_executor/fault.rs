//! The faults a storm draws from: each is a name for a few steps of a script.
//!
//! What a fault is called honest for: whatever the caller is told as the outcome may be the answer that was written. After a
//! dishonest one no caller may be told that the action was done.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::script::{PictureLie, Step};

/// The bound of an unfinished line before and after the default handshake (spec maka-cu §8.5), and a bit.
const ABOVE_THE_BUFFER: u64 = 5 * 1024 * 1024;

macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// One way to misbehave once.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum Fault { $($(#[$doc])* $variant),+ }

        impl Fault {
            /// Every fault.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in a script and in the log.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

faults! {
    /// The answer comes in pieces of three bytes.
    Pieces = "pieces",
    /// The answer comes twice.
    Twice = "twice",
    /// The answer comes after those of later requests.
    Late = "late",
    /// A line that is no message comes first.
    BadLine = "bad_line",
    /// Messages that nobody asked for come first.
    OddMessages = "odd_messages",
    /// More than a pipe holds goes to stderr first.
    FloodStderr = "flood_stderr",
    /// A helper process is left behind.
    Helper = "helper",
    /// The true answer comes only after a cancel.
    AfterCancel = "after_cancel",
    /// The action is refused.
    Refused = "refused",
    /// Death right after the answer.
    DieAfterAnswer = "die_after_answer",
    /// The request is aborted once it is cancelled.
    Aborted = "aborted",
    /// No answer, whatever comes.
    Never = "never",
    /// The answer bears an id that was never used.
    OtherId = "other_id",
    /// Death before the answer.
    DieBeforeAnswer = "die_before_answer",
    /// An orderly end in the middle of the work.
    Exit = "exit",
    /// Death in the middle of the answer.
    DieMidLine = "die_mid_line",
    /// Standard output is closed.
    CloseStdout = "close_stdout",
    /// Standard input is closed.
    CloseStdin = "close_stdin",
    /// Three lines that are no messages.
    BadLines = "bad_lines",
    /// A line that never ends.
    FloodStdout = "flood_stdout",
    /// The executor says that it failed.
    InternalError = "internal_error",
    /// A word outside the closed set of outcomes, or no list where one belongs.
    Malformed = "malformed",
    /// `ok` and the outcome contradict each other.
    Contradiction = "contradiction",
    /// A path that is not of the tier.
    WrongPath = "wrong_path",
    /// A path that was forbidden.
    ForbiddenPath = "forbidden_path",
    /// Confirmed, and not done.
    ConfirmedFailure = "confirmed_failure",
    /// The key of another call.
    WrongToolCall = "wrong_tool_call",
    /// A picture outside the folder.
    PictureOutside = "picture_outside",
    /// A picture that is a link.
    PictureLink = "picture_link",
    /// A picture that is a pipe.
    PictureFifo = "picture_fifo",
    /// A picture with another hash.
    PictureHash = "picture_hash",
    /// A picture with another length.
    PictureLength = "picture_length",
    /// A picture that is gone.
    PictureGone = "picture_gone",
}

impl Fault {
    /// Whether the answer that is written may be believed.
    pub(crate) const fn is_honest(self) -> bool {
        match self {
            Self::Pieces
            | Self::Twice
            | Self::Late
            | Self::BadLine
            | Self::OddMessages
            | Self::FloodStderr
            | Self::Helper
            | Self::AfterCancel
            | Self::Refused
            | Self::DieAfterAnswer
            // What was done is true; the picture is judged when it is read.
            | Self::PictureLink
            | Self::PictureFifo
            | Self::PictureHash
            | Self::PictureLength
            | Self::PictureGone => true,
            Self::Aborted
            | Self::Never
            | Self::OtherId
            | Self::DieBeforeAnswer
            | Self::Exit
            | Self::DieMidLine
            | Self::CloseStdout
            | Self::CloseStdin
            | Self::BadLines
            | Self::FloodStdout
            | Self::InternalError
            | Self::Malformed
            | Self::Contradiction
            | Self::WrongPath
            | Self::ForbiddenPath
            | Self::ConfirmedFailure
            | Self::WrongToolCall
            | Self::PictureOutside => false,
        }
    }

    /// Whether a handshake that meets it is tried again: a lie there is a mismatch, which ends the storm for good.
    pub(crate) const fn spares_the_start(self) -> bool {
        matches!(
            self,
            Self::Pieces
                | Self::FloodStderr
                | Self::DieBeforeAnswer
                | Self::DieMidLine
                | Self::Exit
        )
    }

    /// Whether it is a lie about an action, which only the answer to one can hold.
    pub(crate) const fn is_about_an_action(self) -> bool {
        matches!(
            self,
            Self::Contradiction
                | Self::WrongPath
                | Self::ForbiddenPath
                | Self::ConfirmedFailure
                | Self::WrongToolCall
        )
    }

    /// What to do.
    pub(crate) fn steps(self) -> Vec<Step> {
        let first = |step| vec![step, Step::Default];
        let kill = Step::Die(9);
        match self {
            Self::Pieces => first(Step::Pieces(3)),
            Self::Twice => vec![Step::Default, Step::Again],
            Self::Late => first(Step::Pause(40)),
            Self::BadLine => first(Step::Raw("this is no message\n".to_owned())),
            Self::OddMessages => first(Step::Raw(
                "{}\n{\"id\":null}\n\n{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{}}\n\
                 {\"jsonrpc\":\"2.0\",\"id\":987654321,\"result\":{\"ok\":true}}\n\
                 {\"jsonrpc\":\"2.0\",\"method\":\"$/hello\"}\n"
                    .to_owned(),
            )),
            Self::FloodStderr => first(Step::FloodStderr(256 * 1024)),
            Self::Helper => first(Step::SpawnHelper),
            Self::AfterCancel => first(Step::WaitForCancel),
            Self::Refused => vec![Step::Refuse("window_gone".to_owned())],
            Self::DieAfterAnswer => vec![Step::Default, kill],
            Self::Aborted => vec![Step::WaitForCancel, Step::Refuse("aborted".to_owned())],
            Self::Never => vec![Step::Never],
            Self::OtherId => vec![Step::OtherId(1_000_000)],
            Self::DieBeforeAnswer => vec![kill],
            Self::Exit => vec![Step::Exit(0)],
            Self::DieMidLine => vec![Step::Half, kill],
            Self::CloseStdout => vec![Step::CloseStdout],
            Self::CloseStdin => vec![Step::CloseStdin],
            Self::BadLines => vec![Step::Raw("null\n4\n\"text\"\n".to_owned())],
            Self::FloodStdout => vec![Step::FloodStdoutBytes(ABOVE_THE_BUFFER)],
            Self::InternalError => vec![Step::Error(
                json!({ "code": -32603, "message": "internal_error" }),
            )],
            Self::Malformed => set(&[
                ("/outcome", json!("done")),
                ("/snapshot", json!(7)),
                ("/apps", json!({})),
                ("/windows", json!({})),
                ("/foregroundTaken", json!("no")),
                ("/image", json!([])),
                ("/released", json!(1)),
            ]),
            Self::Contradiction => set(&[("/outcome", json!("refused"))]),
            Self::WrongPath => set(&[("/path", json!("skylight_pid")), ("/tier", json!("ax"))]),
            Self::ForbiddenPath => set(&[
                ("/path", json!("cg_event_global")),
                ("/tier", json!("coordinate-background")),
            ]),
            Self::ConfirmedFailure => set(&[
                ("/ok", json!(false)),
                ("/outcome", json!("failed")),
                ("/effect", json!("confirmed")),
                ("/error", json!({ "code": "window_gone", "message": "no" })),
            ]),
            Self::WrongToolCall => set(&[("/toolCallId", json!("of somebody else"))]),
            Self::PictureOutside => vec![Step::Picture(PictureLie::Outside)],
            Self::PictureLink => vec![Step::Picture(PictureLie::Link)],
            Self::PictureFifo => vec![Step::Picture(PictureLie::Fifo)],
            Self::PictureHash => vec![Step::Picture(PictureLie::Hash)],
            Self::PictureLength => vec![Step::Picture(PictureLie::Length)],
            Self::PictureGone => vec![Step::Picture(PictureLie::Gone)],
        }
    }
}

fn set(changes: &[(&str, Value)]) -> Vec<Step> {
    let set = changes
        .iter()
        .map(|(pointer, value)| ((*pointer).to_owned(), value.clone()))
        .collect();
    vec![Step::Patched {
        set,
        remove: Vec::new(),
    }]
}
