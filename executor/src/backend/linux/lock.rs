//! Whether a screen lock is up, as the lockers themselves say it.
//!
//! X has no notion of a locked screen. The known lockers answer on the session bus, and a name that nobody owns belongs
//! to no running locker. A locker that answers nowhere cannot be seen from here.

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

/// Asks every running locker. One that is there and does not answer counts as a lock: what cannot be known must not be
/// taken for free.
pub(super) async fn is_locked(session: &Bus) -> bool {
    for (name, path) in LOCKERS {
        if !session.is_owned(name).await {
            continue;
        }
        match session
            .call::<_, bool>(
                &ObjectRef::new(name, path),
                name,
                "GetActive",
                &(),
                CALL_TIMEOUT,
            )
            .await
        {
            Ok(true) | Err(CallError::Timeout) => return true,
            // A service of that name that does not know the question is no locker: browsers register it to inhibit.
            Ok(false)
            | Err(
                CallError::Gone
                | CallError::Rejected
                | CallError::NoReply
                | CallError::Lost
                | CallError::Malformed,
            ) => {}
        }
    }
    false
}
