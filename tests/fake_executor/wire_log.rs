//! The witness: everything the executor received, one JSON value per line, written before anything is answered.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

/// An append-only log, or none.
#[derive(Debug)]
pub(crate) struct WireLog {
    file: Option<Mutex<File>>,
    process: u64,
}

impl WireLog {
    /// Opens the log and finds out which process of it this is.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else {
            return Ok(Self {
                file: None,
                process: 1,
            });
        };
        let earlier = match std::fs::read_to_string(path) {
            Ok(text) => text
                .lines()
                .filter(|line| line.starts_with(r#"{"event":"start""#))
                .count(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self {
            file: Some(Mutex::new(file)),
            process: earlier as u64 + 1,
        })
    }

    /// Number of this process within the log, from 1.
    pub(crate) fn process(&self) -> u64 {
        self.process
    }

    /// Appends a line as it was received.
    pub(crate) fn received(&self, line: &[u8]) {
        match serde_json::from_slice::<Value>(line) {
            Ok(message @ Value::Object(_)) => self.append(&format!("{message}\n")),
            Ok(other) => self.event("no_message", other),
            Err(_) => self.event("no_message", json!(String::from_utf8_lossy(line))),
        }
    }

    /// Appends something that happened.
    pub(crate) fn event(&self, event: &str, detail: Value) {
        // Written by hand, so that the event comes first and a reader can tell it from the line's start.
        let line = format!(
            r#"{{"event":{},"process":{},"detail":{}}}{}"#,
            json!(event),
            self.process,
            detail,
            "\n"
        );
        self.append(&line);
    }

    /// One write per line, so that a death in between leaves whole lines.
    fn append(&self, line: &str) {
        let Some(file) = &self.file else { return };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
            .expect("the wire log can be written");
    }
}
