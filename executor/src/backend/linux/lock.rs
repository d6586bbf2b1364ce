//! Whether a screen lock is up, as the lockers themselves say it.
//!
//! X has no notion of a locked screen. The known lockers answer on the session bus, and a name that nobody owns belongs
//! to no running locker. A locker that answers nowhere cannot be seen from here.
//!
//! INVARIANT: only a desktop without a session bus, and a bus that answers, can make a screen count as unlocked. A bus that is
//! configured and silent is an error, and whatever needs an unlocked screen is refused.

use std::sync::{Arc, Mutex, PoisonError};

use super::bus::{Bus, CALL_TIMEOUT, CallError, ObjectRef};

/// Name, path and interface are the same word with other separators for each.
const LOCKERS: [(&str, &str); 4] = [
    (
        "org.freedesktop.ScreenSaver",
        "/org/freedesktop/ScreenSaver",
    ),
    ("org.gnome.ScreenSaver", "/org/gnome/ScreenSaver"),
    ("org.cinnamon.ScreenSaver", "/org/cinnamon/ScreenSaver"),
    ("org.mate.ScreenSaver", "/org/mate/ScreenSaver"),
];

/// The session bus, where the lockers are. Connected when it is first asked, and again when it was lost.
#[derive(Debug, Default)]
pub(super) struct SessionBus {
    held: Mutex<Option<Arc<Bus>>>,
}

impl SessionBus {
    /// Whether the screen is locked; `address` is that of the session bus, if one is configured.
    ///
    /// # Errors
    /// When the bus, or one that is configured, cannot be asked.
    pub(super) async fn is_locked(&self, address: Option<&str>) -> Result<bool, CallError> {
        match address {
            Some(address) => is_locked(&*self.connected(address).await?).await,
            // No bus, no locker that could be asked.
            None => Ok(false),
        }
    }

    async fn connected(&self, address: &str) -> Result<Arc<Bus>, CallError> {
        let held = lock(&self.held).clone();
        if let Some(bus) = held.filter(|bus| !bus.is_lost()) {
            return Ok(bus);
        }
        let bus = Arc::new(Bus::connect(address).await?);
        *lock(&self.held) = Some(Arc::clone(&bus));
        Ok(bus)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // It holds a whole value or none, also after a panic elsewhere.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks every running locker. One that is there and does not answer counts as a lock: what cannot be known must not be
/// taken for free.
async fn is_locked(session: &Bus) -> Result<bool, CallError> {
    for (name, path) in LOCKERS {
        if !session.is_owned(name).await? {
            continue;
        }
        let locker = ObjectRef::new(name, path);
        match session
            .call::<_, bool>(&locker, name, "GetActive", &(), CALL_TIMEOUT)
            .await
        {
            Ok(true) | Err(CallError::Timeout) => return Ok(true),
            Err(CallError::Lost) => return Err(CallError::Lost),
            // A service of that name that does not know the question is no locker: browsers register it to inhibit. One that
            // ended meanwhile locks nothing any more.
            Ok(false)
            | Err(
                CallError::Gone | CallError::Rejected | CallError::NoReply | CallError::Malformed,
            ) => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use maka_desktop::{Desktop, DesktopOptions};
    use tokio::runtime::Runtime;

    use super::*;

    /// Nobody on the bus locks; no bus locks nothing; a bus that cannot be asked says neither.
    #[test]
    fn a_bus_that_does_not_answer_is_not_an_unlocked_screen() {
        let desktop = Desktop::start(DesktopOptions {
            window_manager: None,
            ..DesktopOptions::default()
        })
        .unwrap();
        let of_bus = |(name, address): (String, String)| {
            (name == "DBUS_SESSION_BUS_ADDRESS").then_some(address)
        };
        let address = desktop.env().into_iter().find_map(of_bus).unwrap();
        // Takes connections into its backlog and says nothing.
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("bus");
        let _mute = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let mute = format!("unix:path={}", socket.display());
        let nowhere = format!("unix:path={}", folder.path().join("none").display());

        let runtime = Runtime::new().unwrap();
        let session = SessionBus::default();
        let asked = |address| runtime.block_on(session.is_locked(address));
        assert_eq!(asked(None), Ok(false));
        assert_eq!(asked(Some(mute.as_str())), Err(CallError::Timeout));
        assert_eq!(asked(Some(nowhere.as_str())), Err(CallError::Lost));
        assert_eq!(asked(Some(address.as_str())), Ok(false));
        desktop.stop();
        assert!(asked(Some(address.as_str())).is_err(), "the bus has ended");
        runtime.shutdown_background();
    }
}
