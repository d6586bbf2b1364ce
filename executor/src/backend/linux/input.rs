//! Doing something to a control: actions, values, and what `selection` and `scroll` add. None of it needs the pointer, the
//! keyboard or a focused window, and nothing here sends an X event; input is in `pointer` and `keyboard`.

use std::time::Duration;

use maka_cu_protocol::sets::{
    ElementActionKind, ElementVerb, ImageFormat, KeyActionKind, Path, PointActionKind,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;
use zbus::wire::{DynamicType, Type, Variant};

use super::accessibility::COMPONENT;
use super::bus::{Bus, CallError, ObjectRef};
use super::frame::Toolkit;
use super::node::AccessibleNode;
use super::reader::{ACTION, Core, Reader, VALUE};
use super::vocabulary::{
    ROLE_COMBO_BOX, ValueSource, action_for, is_pressed_by_selection, option_is_inert,
    press_would_undo, scrolls_to, value_settable, value_source,
};
use super::{choice, scroll, selection};
use crate::backend::BackendCapabilities;
use crate::backend::perform::{ElementCommand, PerformError, Performed};
use crate::deadline::Deadline;

const EDITABLE_TEXT: &str = "org.a11y.atspi.EditableText";
/// `ATSPI_SCROLL_ANYWHERE`: no edge is preferred.
const SCROLL_ANYWHERE: u32 = 6;
/// A program may open a window, or run a query, before it answers. Longer than a reading call, because giving up here
/// turns a success into an unknown outcome.
const ACT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the answer to a command that was sent is still waited for when the caller gives up. Its outcome is unknown then,
/// which is worse than a late answer, so a little time is worth it; the host grants two seconds in all.
const CANCEL_PATIENCE: Duration = Duration::from_millis(500);

/// What this back end offers.
pub(super) fn capabilities() -> BackendCapabilities {
    BackendCapabilities {
        element_actions: ElementActionKind::ALL.to_vec(),
        point_actions: PointActionKind::ALL.to_vec(),
        key_actions: KeyActionKind::ALL.to_vec(),
        image_formats: vec![ImageFormat::Png],
    }
}

/// One action on one accessible: the way to it, and how long the caller waits.
pub(super) struct Attempt<'a> {
    bus: &'a Bus,
    pub(super) reader: Reader<'a>,
    pub(super) node: &'a AccessibleNode,
    pub(super) deadline: &'a Deadline,
}

impl Attempt<'_> {
    /// Sends a call that may change something, with the longest patience there is.
    pub(super) async fn send<B, R>(
        &self,
        object: &ObjectRef,
        interface: &'static str,
        method: &'static str,
        body: &B,
    ) -> Result<R, CallError>
    where
        B: Serialize + DynamicType + Sync,
        R: DeserializeOwned + Type,
    {
        self.send_within(ACT_TIMEOUT, object, interface, method, body)
            .await
    }

    /// As [`Self::send`], for calls of which it is known that no answer may come.
    pub(super) async fn send_within<B, R>(
        &self,
        patience: Duration,
        object: &ObjectRef,
        interface: &'static str,
        method: &'static str,
        body: &B,
    ) -> Result<R, CallError>
    where
        B: Serialize + DynamicType + Sync,
        R: DeserializeOwned + Type,
    {
        let patience = patience.min(self.deadline.remaining());
        let answer = self.bus.call(object, interface, method, body, patience);
        unless_cancelled(self.deadline, answer).await
    }

    /// Writes the number of a slider or scroll bar.
    pub(super) async fn write_number(
        &self,
        object: &ObjectRef,
        number: f64,
    ) -> Result<Performed, PerformError> {
        let patience = ACT_TIMEOUT.min(self.deadline.remaining());
        let value = Variant::from(number);
        let answer = self
            .bus
            .set_property(object, VALUE, "CurrentValue", value, patience);
        let answer = unless_cancelled(self.deadline, answer).await;
        outcome(Path::AxAttribute, answer.map(|()| true))
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
        return Err(PerformError::TimedOut);
    }
    let attempt = Attempt {
        bus,
        reader: Reader::new(bus, node.context.toolkit, deadline.clone()),
        node,
        deadline,
    };
    match command {
        ElementCommand::Perform(verb) => act(&attempt, *verb).await,
        ElementCommand::SetValue(text) => set_value(&attempt, text.as_str()).await,
        ElementCommand::SelectText(text) => selection::select(&attempt, text.as_str()).await,
        ElementCommand::Scroll { direction, pages } => {
            scroll::scroll(&attempt, *direction, *pages).await
        }
        // These are asked of the window manager, see `arrange`.
        ElementCommand::MoveWindow(_)
        | ElementCommand::ResizeWindow(_)
        | ElementCommand::MinimizeWindow => Err(PerformError::NotActionable),
    }
}

/// A question before anything is attempted: every failure is a no, and a program that is late may say yes another time.
pub(super) fn not_actionable(error: CallError) -> PerformError {
    match error {
        CallError::Timeout | CallError::NoReply | CallError::Lost => PerformError::TimedOut,
        CallError::Gone | CallError::Rejected | CallError::Malformed => PerformError::NotActionable,
    }
}

async fn act(attempt: &Attempt<'_>, verb: ElementVerb) -> Result<Performed, PerformError> {
    let (reader, node) = (&attempt.reader, attempt.node);
    let (object, toolkit) = (&node.object, node.context.toolkit);
    let core = reader.core(object).await.map_err(not_actionable)?;
    if verb == ElementVerb::ScrollToVisible && scrolls_to(toolkit, core.interfaces) {
        let answer = attempt
            .send(object, COMPONENT, "ScrollTo", &SCROLL_ANYWHERE)
            .await;
        return outcome(Path::AxAction, answer);
    }
    if verb == ElementVerb::Press
        && let Some(combo_box) = combo_box_of(attempt).await?
    {
        if option_is_inert(toolkit) {
            return Err(PerformError::NotActionable);
        }
        // GTK 3 would do the click too, but complains, because the menu that it closes was never open.
        if toolkit == Toolkit::Gtk3 {
            return choice::choose(attempt, &combo_box.object, &combo_box.core, combo_box.place)
                .await;
        }
    }
    let actions = reader
        .actions(object, core.interfaces)
        .await
        .map_err(not_actionable)?;
    let names = actions.iter().map(String::as_str);
    let index = action_for(toolkit, core.role, names, verb);
    if verb == ElementVerb::Press && press_would_undo(toolkit, core.role, core.states) {
        return Err(PerformError::NotActionable);
    }
    if let Some(index) = index.and_then(|index| i32::try_from(index).ok()) {
        let answer = attempt.send(object, ACTION, "DoAction", &index).await;
        return outcome(Path::AxAction, answer);
    }
    let parent = node.parent.as_ref().filter(|_| verb == ElementVerb::Press);
    let parent = &parent.ok_or(PerformError::NotActionable)?.object;
    let (container, children) = reader
        .role_and_children(parent)
        .await
        .map_err(not_actionable)?;
    if !is_pressed_by_selection(toolkit, container.interfaces, core.states, &[]) {
        return Err(PerformError::NotActionable);
    }
    let place = children.iter().position(|child| child == object);
    let place = place.ok_or(PerformError::NotActionable)?;
    choice::choose(attempt, parent, &container, place).await
}

/// A combo box, and the place of one option in it.
struct ComboBox {
    object: ObjectRef,
    core: Core,
    place: usize,
}

/// The mechanism that [`perform`] would use; `None` where it would refuse. The steps are those of [`act`] and of
/// [`scroll::scroll`].
pub(super) async fn mechanism(
    bus: &Bus,
    node: &AccessibleNode,
    command: &ElementCommand,
    deadline: &Deadline,
) -> Option<Path> {
    let attempt = Attempt {
        bus,
        reader: Reader::new(bus, node.context.toolkit, deadline.clone()),
        node,
        deadline,
    };
    match command {
        ElementCommand::Perform(ElementVerb::Press) => press_mechanism(&attempt).await,
        ElementCommand::Scroll { direction, .. } => scroll::mechanism(&attempt, *direction).await,
        ElementCommand::Perform(_)
        | ElementCommand::SetValue(_)
        | ElementCommand::SelectText(_)
        | ElementCommand::MoveWindow(_)
        | ElementCommand::ResizeWindow(_)
        | ElementCommand::MinimizeWindow => Some(command.usual_path()),
    }
}

/// An entry of a list or combo box may have to be selected there.
async fn press_mechanism(attempt: &Attempt<'_>) -> Option<Path> {
    let (reader, object) = (&attempt.reader, &attempt.node.object);
    let toolkit = attempt.node.context.toolkit;
    if combo_box_of(attempt).await.ok()?.is_some() {
        if option_is_inert(toolkit) {
            return None;
        }
        if toolkit == Toolkit::Gtk3 {
            return Some(Path::AxSelect);
        }
    }
    let core = reader.core(object).await.ok()?;
    if press_would_undo(toolkit, core.role, core.states) {
        return None;
    }
    let actions = reader.actions(object, core.interfaces).await.ok()?;
    let names = actions.iter().map(String::as_str);
    Some(
        match action_for(toolkit, core.role, names, ElementVerb::Press) {
            Some(_) => Path::AxAction,
            None => Path::AxSelect,
        },
    )
}

/// The combo box that a node is an option of. Options sit in a list or menu between the two.
async fn combo_box_of(attempt: &Attempt<'_>) -> Result<Option<ComboBox>, PerformError> {
    match attempt.node.context.toolkit {
        Toolkit::Gtk3 | Toolkit::Qt => {}
        Toolkit::Gtk4 | Toolkit::Chromium | Toolkit::ScreenBased => return Ok(None),
    }
    let mut ancestors = attempt.node.ancestors();
    let (Some(list), Some(above)) = (ancestors.next(), ancestors.next()) else {
        return Ok(None);
    };
    let reader = &attempt.reader;
    let core = reader.core(&above.object).await.map_err(not_actionable)?;
    if core.role != ROLE_COMBO_BOX {
        return Ok(None);
    }
    let options = reader
        .children(&list.object)
        .await
        .map_err(not_actionable)?;
    let place = options
        .iter()
        .position(|option| *option == attempt.node.object);
    Ok(Some(ComboBox {
        object: above.object.clone(),
        core,
        place: place.ok_or(PerformError::NotActionable)?,
    }))
}

async fn set_value(attempt: &Attempt<'_>, text: &str) -> Result<Performed, PerformError> {
    let object = &attempt.node.object;
    let core = attempt.reader.core(object).await.map_err(not_actionable)?;
    if !value_settable(core.role, core.states, core.interfaces) {
        return Err(PerformError::NotActionable);
    }
    match value_source(core.role, core.states, core.interfaces) {
        // D-Bus has no such text: it could not even be sent.
        ValueSource::Secret | ValueSource::Text if text.contains('\0') => {
            Err(PerformError::NotActionable)
        }
        ValueSource::Secret | ValueSource::Text => {
            let answer = attempt
                .send(object, EDITABLE_TEXT, "SetTextContents", &text)
                .await;
            outcome(Path::AxAttribute, answer)
        }
        ValueSource::Number => {
            let number: f64 = text
                .trim()
                .parse()
                .map_err(|_| PerformError::NotActionable)?;
            if !number.is_finite() {
                return Err(PerformError::NotActionable);
            }
            attempt.write_number(object, number).await
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
pub(super) fn outcome(
    path: Path,
    answer: Result<bool, CallError>,
) -> Result<Performed, PerformError> {
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
