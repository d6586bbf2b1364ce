//! Doing something to a control: actions and values. Neither needs the pointer, the keyboard or a focused window, and nothing
//! here sends an X event; input is in `pointer` and `keyboard`.

use std::time::Duration;

use maka_cu_protocol::sets::{
    ElementActionKind, ElementVerb, ImageFormat, KeyActionKind, Path, PointActionKind,
};
use tokio::time::sleep;
use zbus::wire::Variant;

use super::bus::{Bus, CallError, ObjectRef};
use super::node::AccessibleNode;
use super::reader::Reader;
use super::vocabulary::{self, ValueSource, is_pressed_by_selection, value_settable, value_source};
use crate::backend::BackendCapabilities;
use crate::backend::perform::{ElementCommand, PerformError, Performed};
use crate::deadline::Deadline;
const ACTION: &str = "org.a11y.atspi.Action";
const EDITABLE_TEXT: &str = "org.a11y.atspi.EditableText";
const SELECTION: &str = "org.a11y.atspi.Selection";
const VALUE: &str = "org.a11y.atspi.Value";
/// A program may open a window, or run a query, before it answers. Longer than a reading call, because giving up here
/// turns a success into an unknown outcome.
const ACT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the answer to a command that was sent is still waited for when the caller gives up. Its outcome is unknown then,
/// which is worse than a late answer, so a little time is worth it; the host grants two seconds in all.
const CANCEL_PATIENCE: Duration = Duration::from_millis(500);

/// What this back end offers.
pub(super) fn capabilities() -> BackendCapabilities {
    BackendCapabilities {
        element_actions: vec![ElementActionKind::Click, ElementActionKind::SetValue],
        point_actions: PointActionKind::ALL.to_vec(),
        key_actions: KeyActionKind::ALL.to_vec(),
        image_formats: vec![ImageFormat::Png],
    }
}

/// Performs one command on one accessible, once.
pub(super) async fn perform(
    bus: &Bus,
    node: &AccessibleNode,
    command: &ElementCommand,
    deadline: &Deadline,
) -> Result<Performed, PerformError> {
    // A call that is sent with no time left would be acted on without anybody waiting for it.
    if deadline.is_over() {
        return Err(PerformError::NotActionable);
    }
    let reader = Reader::new(bus, node.context.toolkit, deadline.clone());
    match command {
        ElementCommand::Perform(verb) => act(bus, &reader, node, *verb, deadline).await,
        ElementCommand::SetValue(text) => {
            set_value(bus, &reader, &node.object, text.as_str(), deadline).await
        }
        ElementCommand::SelectText(_)
        | ElementCommand::Scroll { .. }
        | ElementCommand::MoveWindow(_)
        | ElementCommand::ResizeWindow(_)
        | ElementCommand::MinimizeWindow => Err(PerformError::NotActionable),
    }
}

async fn act(
    bus: &Bus,
    reader: &Reader<'_>,
    node: &AccessibleNode,
    verb: ElementVerb,
    deadline: &Deadline,
) -> Result<Performed, PerformError> {
    let object = &node.object;
    // Nothing is attempted before this is known, so every failure here is a plain no.
    let not_actionable = |_| PerformError::NotActionable;
    let core = reader.core(object).await.map_err(not_actionable)?;
    let actions = reader
        .actions(object, core.interfaces)
        .await
        .map_err(not_actionable)?;
    let index = actions
        .iter()
        .position(|name| vocabulary::verb(core.role, name) == Some(verb));
    let patience = ACT_TIMEOUT.min(deadline.remaining());
    if let Some(index) = index.and_then(|index| i32::try_from(index).ok()) {
        let answer = bus.call(object, ACTION, "DoAction", &index, patience);
        return outcome(Path::AxAction, unless_cancelled(deadline, answer).await);
    }
    let parent = node.parent.as_ref().filter(|_| verb == ElementVerb::Press);
    let parent = &parent.ok_or(PerformError::NotActionable)?.object;
    let (container, children) = reader
        .role_and_children(parent)
        .await
        .map_err(not_actionable)?;
    let gtk = node.context.toolkit.is_gtk();
    if !is_pressed_by_selection(gtk, container.interfaces, core.states, &[]) {
        return Err(PerformError::NotActionable);
    }
    let place = children.iter().position(|child| child == object);
    let place = place.and_then(|place| i32::try_from(place).ok());
    let place = place.ok_or(PerformError::NotActionable)?;
    let answer = bus.call(parent, SELECTION, "SelectChild", &place, patience);
    outcome(Path::AxSelect, unless_cancelled(deadline, answer).await)
}

async fn set_value(
    bus: &Bus,
    reader: &Reader<'_>,
    object: &ObjectRef,
    text: &str,
    deadline: &Deadline,
) -> Result<Performed, PerformError> {
    let core = reader
        .core(object)
        .await
        .map_err(|_| PerformError::NotActionable)?;
    if !value_settable(core.role, core.states, core.interfaces) {
        return Err(PerformError::NotActionable);
    }
    let patience = ACT_TIMEOUT.min(deadline.remaining());
    match value_source(core.role, core.states, core.interfaces) {
        ValueSource::Secret | ValueSource::Text => {
            let answer =
                bus.call::<_, bool>(object, EDITABLE_TEXT, "SetTextContents", &text, patience);
            outcome(Path::AxAttribute, unless_cancelled(deadline, answer).await)
        }
        ValueSource::Number => {
            let number: f64 = text
                .trim()
                .parse()
                .map_err(|_| PerformError::NotActionable)?;
            if !number.is_finite() {
                return Err(PerformError::NotActionable);
            }
            let value = Variant::from(number);
            let answer = bus.set_property(object, VALUE, "CurrentValue", value, patience);
            let answer = unless_cancelled(deadline, answer).await;
            outcome(Path::AxAttribute, answer.map(|()| true))
        }
        ValueSource::Check | ValueSource::None => Err(PerformError::NotActionable),
    }
}

/// The answer to a command, which stays out when the caller gives up.
async fn unless_cancelled<T>(
    deadline: &Deadline,
    answer: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    let given_up = async {
        deadline.cancelled().await;
        sleep(CANCEL_PATIENCE).await;
    };
    tokio::select! {
        biased;
        answer = answer => answer,
        () = given_up => Err(CallError::Timeout),
    }
}

/// The verdict on a call that was sent. `true` from the application means accepted, which by itself confirms nothing.
fn outcome(path: Path, answer: Result<bool, CallError>) -> Result<Performed, PerformError> {
    match answer {
        Ok(true) => Ok(Performed::by(path)),
        Ok(false) | Err(CallError::Rejected | CallError::Gone) => {
            Err(PerformError::Refused { path })
        }
        // GTK 4.8 leaves some calls without an answer although they took effect, and a program may end while it acts.
        Err(CallError::NoReply | CallError::Timeout | CallError::Lost | CallError::Malformed) => {
            Err(PerformError::Unknown { path })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sure_no_is_called_refused() {
        let path = Path::AxAction;
        let rows = [
            (Ok(true), Ok(Performed::by(path))),
            (Ok(false), Err(PerformError::Refused { path })),
            (
                Err(CallError::Rejected),
                Err(PerformError::Refused { path }),
            ),
            (Err(CallError::Gone), Err(PerformError::Refused { path })),
            (Err(CallError::NoReply), Err(PerformError::Unknown { path })),
            (Err(CallError::Timeout), Err(PerformError::Unknown { path })),
            (Err(CallError::Lost), Err(PerformError::Unknown { path })),
            (
                Err(CallError::Malformed),
                Err(PerformError::Unknown { path }),
            ),
        ];
        for (answer, expected) in rows {
            assert_eq!(outcome(path, answer), expected, "{answer:?}");
        }
    }
}
