//! The accessibility bus: finding it, keeping a connection to it, and who is on it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use zbus::wire::OwnedObjectPath;

use super::bus::{Bus, CALL_TIMEOUT, CallError, ObjectRef};
use super::frame::Toolkit;

/// An accessible as D-Bus carries it: bus name and path.
pub(super) type WireRef = (String, OwnedObjectPath);

pub(super) const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";
pub(super) const APPLICATION: &str = "org.a11y.atspi.Application";
pub(super) const COMPONENT: &str = "org.a11y.atspi.Component";

const REGISTRY: &str = "org.a11y.atspi.Registry";
const ROOT_PATH: &str = "/org/a11y/atspi/accessible/root";
const NULL_PATH: &str = "/org/a11y/atspi/null";
/// Members of the bus that are asked who they are.
const MOST_APPLICATIONS: usize = 1024;
/// Processes remembered by bus name. When full it is emptied: it only saves questions.
const KNOWN_PIDS: usize = 1024;

/// Where the bus may be, in the order in which clients of AT-SPI look.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    /// `AT_SPI_BUS_ADDRESS`.
    pub(super) environment: Option<String>,
    /// The `AT_SPI_BUS` property of the root window, for displays of another session.
    pub(super) display: Option<String>,
    /// The session bus, where `org.a11y.Bus` tells it.
    pub(super) session_bus: Option<String>,
}

/// The connection, made anew when it was lost.
#[derive(Debug)]
pub(super) struct Accessibility {
    addresses: Addresses,
    bus: Mutex<Option<Arc<Bus>>>,
    /// Bus names are never used twice in the life of a bus, so these answers stay true.
    pids: Mutex<HashMap<Arc<str>, u32>>,
    /// What each connection draws with, as it said it once: it stays so, also while the program does not answer.
    toolkits: Mutex<HashMap<Arc<str>, Toolkit>>,
}

impl Accessibility {
    pub(super) fn new(addresses: Addresses) -> Self {
        Self {
            addresses,
            bus: Mutex::default(),
            pids: Mutex::default(),
            toolkits: Mutex::default(),
        }
    }

    /// The connection.
    ///
    /// # Errors
    /// [`CallError::Lost`] when there is no bus, [`CallError::Timeout`] when it does not answer.
    pub(super) async fn bus(&self) -> Result<Arc<Bus>, CallError> {
        let held = lock(&self.bus)
            .as_ref()
            .filter(|bus| !bus.is_lost())
            .cloned();
        if let Some(bus) = held {
            return Ok(bus);
        }
        let bus = Arc::new(self.connect().await?);
        listen(&bus).await;
        lock(&self.pids).clear();
        lock(&self.toolkits).clear();
        // Two callers may have connected at the same time; the later connection stays, the other ends with its user.
        *lock(&self.bus) = Some(Arc::clone(&bus));
        Ok(bus)
    }

    /// Whether the registry, which every accessible application reports to, answers.
    pub(super) async fn answers(&self) -> bool {
        let Ok(bus) = self.bus().await else {
            return false;
        };
        bus.property(&registry_root(), ACCESSIBLE, "ChildCount", CALL_TIMEOUT)
            .await
            .is_ok()
    }

    async fn connect(&self) -> Result<Bus, CallError> {
        let mut failure = CallError::Lost;
        for address in [
            self.addresses.environment.clone(),
            self.addresses.display.clone(),
        ]
        .into_iter()
        .flatten()
        {
            match Bus::connect(&address).await {
                Ok(bus) => return Ok(bus),
                Err(error) => failure = error,
            }
        }
        let Some(session) = &self.addresses.session_bus else {
            return Err(failure);
        };
        let session = Bus::connect(session).await?;
        let launcher = ObjectRef::new("org.a11y.Bus", "/org/a11y/bus");
        // The first call may have to start the launcher.
        let address: String = session
            .call(
                &launcher,
                "org.a11y.Bus",
                "GetAddress",
                &(),
                CALL_TIMEOUT * 4,
            )
            .await?;
        Bus::connect(&address).await
    }

    /// The root accessibles of everybody on the bus, each with its process.
    pub(super) async fn applications(&self, bus: &Bus) -> Result<Vec<(ObjectRef, u32)>, CallError> {
        let mut all: Vec<WireRef> = bus
            .call(
                &registry_root(),
                ACCESSIBLE,
                "GetChildren",
                &(),
                CALL_TIMEOUT * 2,
            )
            .await?;
        all.truncate(MOST_APPLICATIONS);
        let mut found = Vec::new();
        for object in all.into_iter().filter_map(object_ref) {
            // An application may leave during the enumeration: it is passed over.
            if let Some(pid) = self.pid_of(bus, &object.bus_name).await {
                found.push((object, pid));
            }
        }
        Ok(found)
    }

    /// What an application draws its windows with.
    ///
    /// # Errors
    /// [`CallError::Timeout`] when it does not answer and never did, [`CallError::Lost`].
    pub(super) async fn toolkit_of(
        &self,
        bus: &Bus,
        application: &ObjectRef,
    ) -> Result<Toolkit, CallError> {
        if let Some(known) = lock(&self.toolkits).get(&application.bus_name) {
            return Ok(*known);
        }
        let text = async |name| match bus
            .property(application, APPLICATION, name, CALL_TIMEOUT)
            .await
        {
            Ok(value) => Ok(String::try_from(value).ok()),
            Err(error @ (CallError::Timeout | CallError::Lost)) => Err(error),
            Err(
                CallError::Gone | CallError::Rejected | CallError::NoReply | CallError::Malformed,
            ) => Ok(None),
        };
        let (name, version) = (text("ToolkitName").await?, text("Version").await?);
        // Whoever is still starting may not know it yet.
        let is_told = [&name, &version]
            .map(|text| text.as_ref().is_some_and(|text| !text.is_empty()))
            == [true, true];
        let toolkit = Toolkit::recognise(&name.unwrap_or_default(), &version.unwrap_or_default());
        if is_told {
            let mut toolkits = lock(&self.toolkits);
            if toolkits.len() >= KNOWN_PIDS {
                toolkits.clear();
            }
            toolkits.insert(Arc::clone(&application.bus_name), toolkit);
        }
        Ok(toolkit)
    }

    /// The root accessibles of the process. Several when it registered more than once, none when it is not accessible.
    pub(super) async fn applications_of(
        &self,
        bus: &Bus,
        pid: u32,
    ) -> Result<Vec<ObjectRef>, CallError> {
        let mut all = self.applications(bus).await?;
        all.retain(|(_, owner)| *owner == pid);
        Ok(all.into_iter().map(|(object, _)| object).collect())
    }

    async fn pid_of(&self, bus: &Bus, bus_name: &Arc<str>) -> Option<u32> {
        if let Some(pid) = lock(&self.pids).get(bus_name) {
            return Some(*pid);
        }
        let pid: u32 = bus
            .ask_bus("GetConnectionUnixProcessID", bus_name)
            .await
            .ok()?;
        let mut pids = lock(&self.pids);
        if pids.len() >= KNOWN_PIDS {
            pids.clear();
        }
        pids.insert(Arc::clone(bus_name), pid);
        Some(pid)
    }
}

/// Tells applications that somebody reads: GTK 3 and Chromium keep no cache object before that. The narrowest event is
/// named; we do not subscribe to it, and the registration ends with the connection.
async fn listen(bus: &Bus) {
    let registry = ObjectRef::new(REGISTRY, "/org/a11y/atspi/registry");
    let registered = bus
        .call::<_, ()>(
            &registry,
            REGISTRY,
            "RegisterEvent",
            &"window:create",
            CALL_TIMEOUT,
        )
        .await;
    if registered.is_err() {
        tracing::debug!("the accessibility registry took no listener; trees are read node by node");
    }
}

/// `None` for the null reference.
pub(super) fn object_ref((bus_name, path): WireRef) -> Option<ObjectRef> {
    (!bus_name.is_empty() && path.as_str() != NULL_PATH)
        .then(|| ObjectRef::new(&bus_name, path.as_str()))
}

fn registry_root() -> ObjectRef {
    ObjectRef::new(REGISTRY, ROOT_PATH)
}

/// A panic elsewhere leaves whole values behind: each is replaced in one step.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
