//! Reading what one accessible says about itself: the same questions at observe and at dispatch time.
//!
//! Calls of one reader run side by side, [`IN_FLIGHT`] at most, each with its own time limit. After [`TOLERATED`] calls
//! without an answer the application counts as hung and every further call fails at once; so it does after [`MOST_KEPT`]
//! bytes of answers, since what an application says is kept until the walk is over and it may say anything.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use maka_cu_protocol::sets::ElementVerb;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use zbus::wire::{DynamicType, OwnedVariant, Type};

use super::accessibility::{ACCESSIBLE, COMPONENT, WireRef, object_ref};
use super::bus::{Bus, CALL_TIMEOUT, CallError, ObjectRef};
use super::cache::CachedCore;
use super::frame::{Extents, Toolkit};
use super::vocabulary::{
    Interfaces, State, States, ValueSource, check_value, scrolls_to, selected, value_settable,
    value_source, verbs,
};
use crate::deadline::Deadline;

pub(super) const ACTION: &str = "org.a11y.atspi.Action";
pub(super) const SELECTION: &str = "org.a11y.atspi.Selection";
pub(super) const TABLE: &str = "org.a11y.atspi.Table";
pub(super) const TEXT: &str = "org.a11y.atspi.Text";
pub(super) const VALUE: &str = "org.a11y.atspi.Value";

/// Measured: 16 calls at once halve a walk, 64 gain another tenth, more gains nothing.
pub(super) const IN_FLIGHT: usize = 64;
const TOLERATED: usize = 3;
/// The attribute that only elements of a page have.
const WEB_ELEMENT: &str = "tag";
/// No control offers more actions that mean something here.
const MOST_ACTIONS: i32 = 16;
/// Longest text that is read as a value, in characters. A digest of a longer one covers this much of it.
const LONGEST_TEXT: i32 = 1_000_000;
/// From this many children on, containers are read one by one and only so far: a list of a million rows must not be
/// answered in one message. Any role can have that many, so each is asked for the number first.
const MOST_CHILDREN: i32 = 2000;
/// Bytes of text and references that one reading keeps. A walk of the largest size with ordinary labels takes a hundredth.
pub(super) const MOST_KEPT: usize = 64 * 1024 * 1024;
/// What a reference to a child counts for.
const REFERENCE_BYTES: usize = 64;

/// What is told by every accessible.
#[derive(Clone)]
pub(super) struct Core {
    pub(super) role: u32,
    pub(super) states: States,
    pub(super) interfaces: Interfaces,
    pub(super) name: String,
    pub(super) description: String,
}

/// Everything about one accessible. Holds application text; has no `Debug`.
pub(super) struct Facts {
    pub(super) core: Core,
    pub(super) children: Vec<ObjectRef>,
    /// The child list was longer than what is read.
    pub(super) children_cut: bool,
    pub(super) extents: Option<Extents>,
    pub(super) verbs: Vec<ElementVerb>,
    pub(super) value: Option<String>,
    pub(super) placeholder: Option<String>,
    pub(super) identifier: Option<String>,
}

impl Facts {
    pub(super) fn secure(&self) -> bool {
        self.source() == ValueSource::Secret
    }

    pub(super) fn settable(&self) -> bool {
        value_settable(self.core.role, self.core.states, self.core.interfaces)
    }

    pub(super) fn selected(&self) -> Option<bool> {
        selected(self.core.role, self.core.states, self.core.interfaces)
    }

    fn source(&self) -> ValueSource {
        value_source(self.core.role, self.core.states, self.core.interfaces)
    }
}

/// One reading of one application.
pub(super) struct Reader<'b> {
    bus: &'b Bus,
    deadline: Deadline,
    pub(super) toolkit: Toolkit,
    patience: Duration,
    permits: Semaphore,
    unanswered: AtomicUsize,
    kept: AtomicUsize,
    cached: HashMap<ObjectRef, CachedCore>,
}

impl<'b> Reader<'b> {
    pub(super) fn new(bus: &'b Bus, toolkit: Toolkit, deadline: Deadline) -> Self {
        Self {
            bus,
            deadline,
            toolkit,
            patience: CALL_TIMEOUT,
            permits: Semaphore::new(IN_FLIGHT),
            unanswered: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            cached: HashMap::new(),
        }
    }

    /// With another time limit for one call: a test of what an answer does must not depend on how soon it comes.
    #[cfg(test)]
    pub(super) fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Fetches what the application can tell about many accessibles in one answer; see [`super::cache`].
    pub(super) async fn with_cache(mut self, object: &ObjectRef) -> Self {
        let patience = super::cache::PATIENCE.min(self.deadline.remaining());
        self.cached = super::cache::items(self.bus, object, patience).await;
        self
    }

    /// Whether the time is over or the application counts as hung.
    pub(super) fn has_given_up(&self) -> bool {
        self.deadline.is_over()
            || self.unanswered.load(Ordering::Relaxed) >= TOLERATED
            || self.kept.load(Ordering::Relaxed) >= MOST_KEPT
    }

    fn keeps(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    /// One call, with a place among those in flight.
    pub(super) async fn call<B, R>(
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
        let _permit = self
            .permits
            .acquire()
            .await
            .expect("the semaphore is never closed");
        if self.has_given_up() {
            return Err(CallError::Timeout);
        }
        let patience = self.patience.min(self.deadline.remaining());
        let answer = self
            .bus
            .call(object, interface, method, body, patience)
            .await;
        self.note(&answer);
        answer
    }

    pub(super) async fn property(
        &self,
        object: &ObjectRef,
        interface: &'static str,
        name: &'static str,
    ) -> Result<OwnedVariant, CallError> {
        self.call(
            object,
            "org.freedesktop.DBus.Properties",
            "Get",
            &(interface, name),
        )
        .await
    }

    pub(super) async fn number(
        &self,
        object: &ObjectRef,
        interface: &'static str,
        name: &'static str,
    ) -> Result<i32, CallError> {
        let value = self.property(object, interface, name).await?;
        i32::try_from(value).map_err(|_| CallError::Malformed)
    }

    async fn text(
        &self,
        object: &ObjectRef,
        interface: &'static str,
        name: &'static str,
    ) -> Result<String, CallError> {
        let value = self.property(object, interface, name).await?;
        let text = String::try_from(value).map_err(|_| CallError::Malformed)?;
        self.keeps(text.len());
        Ok(text)
    }

    fn note<R>(&self, answer: &Result<R, CallError>) {
        // A call cut short by the deadline says nothing about the application.
        if matches!(answer, Err(CallError::Timeout)) && !self.deadline.is_over() {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Role, states, interfaces, name and description.
    pub(super) async fn core(&self, object: &ObjectRef) -> Result<Core, CallError> {
        let (role, states, interfaces, name, description) = tokio::join!(
            self.call::<_, u32>(object, ACCESSIBLE, "GetRole", &()),
            self.call::<_, Vec<u32>>(object, ACCESSIBLE, "GetState", &()),
            self.call::<_, Vec<String>>(object, ACCESSIBLE, "GetInterfaces", &()),
            self.text(object, ACCESSIBLE, "Name"),
            self.text(object, ACCESSIBLE, "Description"),
        );
        let interfaces = interfaces?;
        Ok(Core {
            role: role?,
            states: States::from_words(&states?),
            interfaces: Interfaces::from_names(interfaces.iter().map(String::as_str)),
            name: or_default(name)?,
            description: or_default(description)?,
        })
    }

    /// Everything about one accessible. `extents` is the coordinate type, or `None` where frames do not matter.
    ///
    /// # Errors
    /// When it does not answer or calls itself defunct.
    pub(super) async fn facts(
        &self,
        object: &ObjectRef,
        extents: Option<u32>,
    ) -> Result<Facts, CallError> {
        let (core, known_children) = match self.cached.get(object) {
            Some(cached) => (cached.core.clone(), cached.children.clone()),
            None => (self.core(object).await?, None),
        };
        if core.states.has(State::Defunct) {
            return Err(CallError::Gone);
        }
        // Off-screen items have no extents worth asking for; toolkits answer with leftovers.
        let extents =
            extents.filter(|_| core.interfaces.component && core.states.is_showing(self.toolkit));
        let children = async {
            match known_children {
                Some(children) => Ok((children, false)),
                None => self.children_of(object).await,
            }
        };
        let (children, extents, actions, value, attributes) = tokio::join!(
            children,
            self.extents(object, extents),
            self.actions(object, core.interfaces),
            self.value(object, &core),
            self.attributes(object, &core),
        );
        let (children, children_cut) = or_default(children)?;
        let actions = actions?;
        let mut attributes = attributes?;
        let names = actions.iter().map(String::as_str);
        let mut verbs = verbs(self.toolkit, core.role, names);
        if scrolls_to(self.toolkit, core.interfaces) && attributes.contains_key(WEB_ELEMENT) {
            verbs.push(ElementVerb::ScrollToVisible);
        }
        Ok(Facts {
            children,
            children_cut,
            extents: extents?,
            verbs,
            value: value?,
            placeholder: attributes
                .remove("placeholder-text")
                .filter(|text| !text.is_empty()),
            identifier: attributes.remove("id").filter(|text| !text.is_empty()),
            core,
        })
    }

    /// Role and children only: what is needed of an ancestor.
    pub(super) async fn role_and_children(
        &self,
        object: &ObjectRef,
    ) -> Result<(Core, Vec<ObjectRef>), CallError> {
        let core = self.core(object).await?;
        let children = self.children(object).await?;
        Ok((core, children))
    }

    /// The children of an accessible; none when it does not tell.
    pub(super) async fn children(&self, object: &ObjectRef) -> Result<Vec<ObjectRef>, CallError> {
        let (children, _) = or_default(self.children_of(object).await)?;
        Ok(children)
    }

    async fn children_of(&self, object: &ObjectRef) -> Result<(Vec<ObjectRef>, bool), CallError> {
        let count = or_default(self.number(object, ACCESSIBLE, "ChildCount").await)?;
        if count > MOST_CHILDREN {
            let asked = stream::iter(0..MOST_CHILDREN)
                .map(|index| self.child_at(object, index))
                .buffered(IN_FLIGHT)
                .collect::<Vec<_>>();
            let children = asked.await.into_iter().collect::<Result<Vec<_>, _>>()?;
            self.keeps(children.len() * REFERENCE_BYTES);
            return Ok((children.into_iter().flatten().collect(), true));
        }
        let mut children: Vec<WireRef> = self.call(object, ACCESSIBLE, "GetChildren", &()).await?;
        // The number may have been a lie.
        let most = usize::try_from(MOST_CHILDREN).unwrap_or(usize::MAX);
        let cut = children.len() > most;
        children.truncate(most);
        self.keeps(children.len() * REFERENCE_BYTES);
        Ok((children.into_iter().filter_map(object_ref).collect(), cut))
    }

    async fn child_at(
        &self,
        object: &ObjectRef,
        index: i32,
    ) -> Result<Option<ObjectRef>, CallError> {
        let child: WireRef = self
            .call(object, ACCESSIBLE, "GetChildAtIndex", &index)
            .await?;
        Ok(object_ref(child))
    }

    pub(super) async fn extents(
        &self,
        object: &ObjectRef,
        kind: Option<u32>,
    ) -> Result<Option<Extents>, CallError> {
        let Some(kind) = kind else { return Ok(None) };
        let answer = self
            .call::<_, (i32, i32, i32, i32)>(object, COMPONENT, "GetExtents", &kind)
            .await;
        let extents = absent_if_refused(answer)?;
        Ok(extents.map(|(x, y, width, height)| Extents {
            x,
            y,
            width,
            height,
        }))
    }

    /// The untranslated names of the actions, in the application's order.
    pub(super) async fn actions(
        &self,
        object: &ObjectRef,
        interfaces: Interfaces,
    ) -> Result<Vec<String>, CallError> {
        if !interfaces.action {
            return Ok(Vec::new());
        }
        let count =
            or_default(self.number(object, ACTION, "NActions").await)?.clamp(0, MOST_ACTIONS);
        let names = join_all((0..count).map(|index| async move {
            or_default(
                self.call::<_, String>(object, ACTION, "GetName", &index)
                    .await,
            )
        }));
        names.await.into_iter().collect()
    }

    async fn value(&self, object: &ObjectRef, core: &Core) -> Result<Option<String>, CallError> {
        match value_source(core.role, core.states, core.interfaces) {
            ValueSource::None | ValueSource::Secret => Ok(None),
            ValueSource::Check => Ok(Some(check_value(core.states).to_owned())),
            ValueSource::Number => {
                let number = absent_if_refused(self.property(object, VALUE, "CurrentValue").await)?;
                Ok(number
                    .and_then(|value| f64::try_from(value).ok())
                    .filter(|it| it.is_finite())
                    .map(|it| it.to_string()))
            }
            ValueSource::Text => {
                let whole = absent_if_refused(self.whole_text(object).await)?;
                Ok(whole.map(|(text, _)| text))
            }
        }
    }

    /// All of the text, or as much as is read of one, and how long the application says that it is. An end of -1 is never asked for: Qt complains about it, and GTK 4
    /// (4.8) answers nothing.
    pub(super) async fn whole_text(&self, object: &ObjectRef) -> Result<(String, i32), CallError> {
        let count = self.number(object, TEXT, "CharacterCount").await?;
        let text = self.text_between(object, 0, count).await?;
        Ok((text, count))
    }

    /// The text between two offsets, in the application's units.
    pub(super) async fn text_between(
        &self,
        object: &ObjectRef,
        start: i32,
        end: i32,
    ) -> Result<String, CallError> {
        if end <= start {
            return Ok(String::new());
        }
        let range = (start, end.min(start.saturating_add(LONGEST_TEXT)));
        let text: String = self.call(object, TEXT, "GetText", &range).await?;
        self.keeps(text.len());
        Ok(text)
    }

    /// Attributes are worth a call where something that is used may be in them: hints of text fields everywhere,
    /// identifiers outside GTK, whose widgets report none.
    async fn attributes(
        &self,
        object: &ObjectRef,
        core: &Core,
    ) -> Result<HashMap<String, String>, CallError> {
        if self.toolkit.is_gtk() && !core.interfaces.editable_text {
            return Ok(HashMap::new());
        }
        let attributes: HashMap<String, String> =
            or_default(self.call(object, ACCESSIBLE, "GetAttributes", &()).await)?;
        self.keeps(attributes.values().map(String::len).sum());
        Ok(attributes)
    }
}

/// An optional question that the object refuses has no answer; silence and a lost bus stay errors.
pub(super) fn absent_if_refused<T>(answer: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(CallError::Rejected | CallError::Malformed) => Ok(None),
        Err(
            error @ (CallError::Gone | CallError::NoReply | CallError::Timeout | CallError::Lost),
        ) => Err(error),
    }
}

fn or_default<T: Default>(answer: Result<T, CallError>) -> Result<T, CallError> {
    Ok(absent_if_refused(answer)?.unwrap_or_default())
}
