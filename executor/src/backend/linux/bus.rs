//! D-Bus calls, raw: the only place that knows the D-Bus library.
//!
//! No proxies and no property caches, ever. A cached proxy reads all properties of an interface at once
//! (`Properties.GetAll`), and that call on `org.a11y.atspi.Accessible` makes Qt 5.15 and Qt 6.4 programs crash. There is
//! no function here by which it could be made: a property is read alone, by [`Bus::property`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use zbus::wire::{DynamicType, OwnedVariant, Type, Variant};
use zbus::{Connection, fdo};

const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// The time one call may take, unless less is left.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_millis(500);

/// One remote object. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ObjectRef {
    pub(super) bus_name: Arc<str>,
    pub(super) path: Arc<str>,
}

/// Numbers only: names on a bus and object paths are not application text.
impl fmt::Debug for ObjectRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.bus_name, self.path)
    }
}

impl ObjectRef {
    pub(super) fn new(bus_name: &str, path: &str) -> Self {
        Self {
            bus_name: bus_name.into(),
            path: path.into(),
        }
    }
}

/// Why a call gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// Nobody there to take the call: it was not delivered.
    Gone,
    /// The object answered with an error.
    Rejected,
    /// The program went away while it had the call: it may have acted on it.
    NoReply,
    /// No answer in time: it may have acted, or act later.
    Timeout,
    /// The bus itself is gone.
    Lost,
    /// An answer of another shape than asked for.
    Malformed,
}

/// One connection.
#[derive(Clone, Debug)]
pub(super) struct Bus {
    connection: Connection,
}

impl Bus {
    /// Connects to `address` within [`CALL_TIMEOUT`] times four.
    pub(super) async fn connect(address: &str) -> Result<Self, CallError> {
        let building = zbus::connection::Builder::address(address).build();
        let built = timeout(CALL_TIMEOUT * 4, building)
            .await
            .map_err(|_| CallError::Timeout)?;
        Ok(Self {
            connection: built.map_err(|_| CallError::Lost)?,
        })
    }

    /// Whether the connection has ended.
    pub(super) fn is_lost(&self) -> bool {
        self.connection.is_closed()
    }

    /// One call.
    pub(super) async fn call<B, R>(
        &self,
        object: &ObjectRef,
        interface: &'static str,
        method: &'static str,
        body: &B,
        patience: Duration,
    ) -> Result<R, CallError>
    where
        B: Serialize + DynamicType + Sync,
        R: DeserializeOwned + Type,
    {
        let call = self.connection.call_method(
            Some(&*object.bus_name),
            &*object.path,
            Some(interface),
            method,
            body,
        );
        let reply = timeout(patience, call)
            .await
            .map_err(|_| CallError::Timeout)?
            .map_err(|error| classify(&error))?;
        reply
            .body()
            .deserialize::<R>()
            .map_err(|_| CallError::Malformed)
    }

    /// One property, by `Get`.
    pub(super) async fn property(
        &self,
        object: &ObjectRef,
        interface: &'static str,
        name: &'static str,
        patience: Duration,
    ) -> Result<OwnedVariant, CallError> {
        self.call(object, PROPERTIES, "Get", &(interface, name), patience)
            .await
    }

    /// Writes one property.
    pub(super) async fn set_property(
        &self,
        object: &ObjectRef,
        interface: &'static str,
        name: &'static str,
        value: Variant<'_>,
        patience: Duration,
    ) -> Result<(), CallError> {
        self.call(
            object,
            PROPERTIES,
            "Set",
            &(interface, name, value),
            patience,
        )
        .await
    }

    /// A question to the bus itself.
    pub(super) async fn ask_bus<R>(&self, method: &'static str, name: &str) -> Result<R, CallError>
    where
        R: DeserializeOwned + Type,
    {
        let bus = ObjectRef::new("org.freedesktop.DBus", "/org/freedesktop/DBus");
        self.call(&bus, "org.freedesktop.DBus", method, &name, CALL_TIMEOUT)
            .await
    }

    /// Whether somebody owns the name. Asking this first keeps a question from starting a service.
    pub(super) async fn is_owned(&self, name: &str) -> Result<bool, CallError> {
        self.ask_bus("NameHasOwner", name).await
    }
}

fn classify(error: &zbus::Error) -> CallError {
    match error {
        zbus::Error::FDO(error) => match &**error {
            fdo::Error::ServiceUnknown(_)
            | fdo::Error::NameHasNoOwner(_)
            | fdo::Error::UnknownObject(_)
            | fdo::Error::Disconnected(_) => CallError::Gone,
            fdo::Error::NoReply(_) => CallError::NoReply,
            fdo::Error::Timeout(_) | fdo::Error::TimedOut(_) => CallError::Timeout,
            _ => CallError::Rejected,
        },
        zbus::Error::MethodError(..) => CallError::Rejected,
        zbus::Error::InputOutput(_) | zbus::Error::Connection(..) => CallError::Lost,
        // The library's own list is open; what is left are answers that do not fit.
        _ => CallError::Malformed,
    }
}

#[cfg(test)]
mod tests {
    /// Linux desktop notes §3, trap 1: the call that crashes Qt programs must not exist in this back end.
    #[test]
    fn no_source_reads_all_properties() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/backend/linux");
        // Assembled here so that this test does not find itself.
        let forbidden = [
            ["\"Get", "All\""].concat(),
            ["zbus::", "Proxy"].concat(),
            ["zbus::", "proxy"].concat(),
        ];
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            for word in &forbidden {
                assert!(!text.contains(word), "{} holds {word}", path.display());
            }
        }
    }
}
