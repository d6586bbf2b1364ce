//! What a person at a terminal uses: the applications of a desktop, and one window as a tree and as a picture.
//!
//! Nothing here acts. A window is read by the same code that answers a host, so that a person sees what an agent sees: the
//! same elements, in the same words, with the same numbers. Everything that an application wrote goes through [`plain`]
//! before it reaches a terminal.

use std::io::{self, Write as _};

use crate::exit::Exit;

pub mod list_apps;
pub mod marks;
pub mod naming;
pub mod outline;
pub mod plain;
pub mod snapshot;
pub mod style;
pub mod trouble;

use trouble::Trouble;

/// Prints what a command found, or says why there is nothing.
#[must_use]
pub fn finish(outcome: Result<String, Trouble>) -> Exit {
    match outcome {
        Ok(text) => {
            let mut out = io::stdout().lock();
            match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                Ok(()) => Exit::Done,
                // A reader that went away, as `head` does, has seen what it wanted.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
                Err(error) => {
                    crate::host::say(&error);
                    Exit::NotWritten
                }
            }
        }
        Err(trouble) => {
            crate::host::say(&trouble);
            trouble.exit()
        }
    }
}
