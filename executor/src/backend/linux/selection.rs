//! Selected text: reading it, and selecting the first occurrence of a text.
//!
//! Offsets are characters in GTK and Chromium and UTF-16 units in Qt. Nothing tells which, but the count of a text does
//! where it matters: the two differ exactly when a character outside the basic plane is in it.
//!
//! Text of a password field is neither read nor searched: a search that succeeds tells as much as the text.

use std::time::Duration;

use maka_cu_protocol::sets::Path;
use maka_cu_protocol::text::AppText;
use tokio::time::sleep;

use super::bus::{Bus, CallError, ObjectRef};
use super::frame::Toolkit;
use super::input::{Attempt, not_actionable, outcome};
use super::node::AccessibleNode;
use super::reader::{Reader, TEXT, absent_if_refused};
use super::vocabulary::{ValueSource, value_source};
use crate::backend::error::BackendError;
use crate::backend::perform::{PerformError, Performed};
use crate::deadline::Deadline;

/// How long a selection may take to read back. Chromium answers before the page has it, about 0.2 s in a loaded desktop.
const READ_BACK_PATIENCE: Duration = Duration::from_millis(600);
const READ_BACK_POLL: Duration = Duration::from_millis(20);
/// GTK 4 (4.8) selects in a text view and then answers with a value of the wrong type, which nobody can receive.
const NO_ANSWER_PATIENCE: Duration = Duration::from_millis(500);
/// No text has more selections that mean something here.
const MOST_SELECTIONS: i32 = 16;

/// Selects the first place where `text` occurs.
pub(super) async fn select(attempt: &Attempt<'_>, text: &str) -> Result<Performed, PerformError> {
    let (reader, object) = (&attempt.reader, &attempt.node.object);
    let core = reader.core(object).await.map_err(not_actionable)?;
    match value_source(core.role, core.states, core.interfaces) {
        ValueSource::Text => {}
        ValueSource::Secret | ValueSource::None | ValueSource::Check | ValueSource::Number => {
            return Err(PerformError::NotActionable);
        }
    }
    let (whole, count) = reader.whole_text(object).await.map_err(not_actionable)?;
    let range = range_of(&whole, count, text).ok_or(PerformError::NotActionable)?;
    let selections = selections(reader, object).await.map_err(not_actionable)?;
    let answer = write(attempt, selections, range).await?;
    if matches!(
        answer,
        Ok(false) | Err(CallError::Rejected | CallError::Gone)
    ) {
        return outcome(Path::AxAttribute, answer);
    }
    match (reads_back(reader, object, range).await, answer) {
        (true, _) => Ok(Performed::by(Path::AxAttribute)),
        (false, answer) => outcome(Path::AxAttribute, answer),
    }
}

/// Makes `range` the one selection. An error is the end of it; what the last call said is for the caller to judge.
async fn write(
    attempt: &Attempt<'_>,
    selections: i32,
    (start, end): (i32, i32),
) -> Result<Result<bool, CallError>, PerformError> {
    let object = &attempt.node.object;
    let path = Path::AxAttribute;
    let gtk4 = attempt.node.context.toolkit == Toolkit::Gtk4;
    if selections > 0 && !gtk4 {
        let body = (0, start, end);
        return Ok(attempt.send(object, TEXT, "SetSelection", &body).await);
    }
    // GTK 4 (4.8) accepts a change of a text view's selection and drops it: take away, then add.
    for index in (0..selections).rev() {
        let removed = attempt.send(object, TEXT, "RemoveSelection", &index).await;
        outcome(path, removed)?;
    }
    let patience = if gtk4 {
        NO_ANSWER_PATIENCE
    } else {
        Duration::MAX
    };
    let added = attempt
        .send_within(patience, object, TEXT, "AddSelection", &(start, end))
        .await;
    match added {
        // The old selection is gone by now.
        Ok(false) | Err(CallError::Rejected | CallError::Gone) if selections > 0 => {
            Err(PerformError::Unknown { path })
        }
        added => Ok(added),
    }
}

/// Whether the selection becomes `range` within the patience for it.
async fn reads_back(reader: &Reader<'_>, object: &ObjectRef, range: (i32, i32)) -> bool {
    let mut left = READ_BACK_PATIENCE;
    loop {
        match selection(reader, object).await {
            Ok(Some(found)) if found == range => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
        if left.is_zero() || reader.has_given_up() {
            return false;
        }
        sleep(READ_BACK_POLL.min(left)).await;
        left = left.saturating_sub(READ_BACK_POLL);
    }
}

/// The text that is selected in a node.
pub(super) async fn selected(
    bus: &Bus,
    node: &AccessibleNode,
    deadline: &Deadline,
) -> Result<Option<AppText>, BackendError> {
    let reader = Reader::new(bus, node.context.toolkit, deadline.clone());
    let read = async {
        let core = reader.core(&node.object).await?;
        let secret = value_source(core.role, core.states, core.interfaces) == ValueSource::Secret;
        if secret || !core.interfaces.text {
            return Ok(None);
        }
        match selection(&reader, &node.object).await? {
            Some((start, end)) => {
                absent_if_refused(reader.text_between(&node.object, start, end).await)
            }
            None => Ok(None),
        }
    };
    match read.await {
        Ok(text) => Ok(text.filter(|text| !text.is_empty()).map(AppText::new)),
        Err(CallError::Timeout) => Err(BackendError::Timeout),
        Err(CallError::Lost) => Err(BackendError::CaptureFailed),
        Err(CallError::Gone | CallError::Rejected | CallError::NoReply | CallError::Malformed) => {
            Ok(None)
        }
    }
}

/// The first selection that is not empty.
async fn selection(
    reader: &Reader<'_>,
    object: &ObjectRef,
) -> Result<Option<(i32, i32)>, CallError> {
    for index in 0..selections(reader, object).await? {
        let range: (i32, i32) = reader.call(object, TEXT, "GetSelection", &index).await?;
        let (start, end) = (range.0.min(range.1), range.0.max(range.1));
        if start >= 0 && end > start {
            return Ok(Some((start, end)));
        }
    }
    Ok(None)
}

async fn selections(reader: &Reader<'_>, object: &ObjectRef) -> Result<i32, CallError> {
    let count = reader
        .call::<_, i32>(object, TEXT, "GetNSelections", &())
        .await;
    let count = absent_if_refused(count)?.unwrap_or_default();
    Ok(count.clamp(0, MOST_SELECTIONS))
}

/// Where `text` first occurs in `whole`, in the units in which the application counts `count`.
fn range_of(whole: &str, count: i32, text: &str) -> Option<(i32, i32)> {
    let before = &whole[..whole.find(text)?];
    let characters = |text: &str| text.chars().count();
    let units = |text: &str| text.encode_utf16().count();
    let is = |length: usize| i32::try_from(length).is_ok_and(|length| length == count);
    let in_units = is(units(whole)) && !is(characters(whole));
    let length = |text: &str| {
        let length = if in_units {
            units(text)
        } else {
            characters(text)
        };
        i32::try_from(length).ok()
    };
    let start = length(before)?;
    Some((start, start.checked_add(length(text)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E1: a code unit is not a character.
    #[test]
    fn offsets_are_in_the_units_of_the_application() {
        let rows = [
            ("one two one", 11, "one", Some((0, 3))),
            ("one two one", 11, "two", Some((4, 7))),
            ("one two", 7, "three", None),
            ("", 0, "a", None),
            // Characters, as GTK and Chromium count.
            ("a😀b ä c", 7, "b ä", Some((2, 5))),
            ("a😀b ä c", 7, "😀", Some((1, 2))),
            // UTF-16 units, as Qt counts.
            ("a😀b ä c", 8, "b ä", Some((3, 6))),
            ("a😀b ä c", 8, "😀", Some((1, 3))),
            ("ä", 1, "ä", Some((0, 1))),
            // Only the beginning was read: characters, which is what most toolkits count.
            ("a😀b", 2_000_000, "b", Some((2, 3))),
        ];
        for (whole, count, text, expected) in rows {
            assert_eq!(range_of(whole, count, text), expected, "{whole} {text}");
        }
    }
}
