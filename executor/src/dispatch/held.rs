//! Buttons that an action left down, and their release when their session ends.
//!
//! A host that ends a session without releasing, or that goes away, must not leave the desktop with a button down: the
//! next person's click would be a drag. The release goes where the press went.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maka_cu_protocol::ids::WindowKey;

use crate::backend::Backend;
use crate::backend::input::{Gesture, InputRoute, PointCommand};
use crate::deadline::Deadline;
use crate::dispatch::plan::Performance;
use crate::session::SessionHandle;

/// Time for one release.
const RELEASE_BUDGET: Duration = Duration::from_secs(1);

/// The buttons that may be down, one for a session: there is one pointer button that can be held.
#[derive(Debug, Default)]
pub struct HeldButtons(Mutex<HashMap<SessionHandle, Held>>);

#[derive(Debug, Clone, Copy)]
struct Held {
    window: WindowKey,
    press: PointCommand,
    route: InputRoute,
}

impl HeldButtons {
    /// Remembers a press that may have happened and forgets it after whatever lets go of the button.
    pub fn note(
        &self,
        session: &SessionHandle,
        window: WindowKey,
        command: &PointCommand,
        route: InputRoute,
        performance: Performance,
    ) {
        let happened = match performance {
            Performance::Done(_) | Performance::Unknown { .. } => true,
            Performance::NotActionable
            | Performance::TimedOut
            | Performance::Aborted
            | Performance::Failed { .. } => false,
        };
        let certain = matches!(performance, Performance::Done(_));
        match command.gesture {
            Gesture::Press if happened => {
                let held = Held {
                    window,
                    press: *command,
                    route,
                };
                self.table().insert(session.clone(), held);
            }
            Gesture::Release | Gesture::Click { .. } | Gesture::Drag { .. } if certain => {
                self.table().remove(session);
            }
            Gesture::Press
            | Gesture::Release
            | Gesture::Click { .. }
            | Gesture::Drag { .. }
            | Gesture::Move
            | Gesture::Scroll { .. } => {}
        }
    }

    /// Lets go of what a session holds. A window that is gone holds nothing any more.
    pub fn release(&self, backend: &dyn Backend, session: &SessionHandle) {
        let held = self.table().remove(session);
        if let Some(held) = held {
            held.release(backend);
        }
    }

    /// Lets go of everything.
    pub fn release_all(&self, backend: &dyn Backend) {
        let all: Vec<Held> = self.table().drain().map(|(_, held)| held).collect();
        for held in all {
            held.release(backend);
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<SessionHandle, Held>> {
        // Every change is one call, so a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn release(self, backend: &dyn Backend) {
        let release = PointCommand {
            gesture: Gesture::Release,
            at: self.press.at,
        };
        let deadline = Deadline::within(RELEASE_BUDGET);
        match backend.point(self.window, &release, self.route, &deadline) {
            Ok(_) => tracing::info!("a button that was left down was released"),
            Err(error) => tracing::warn!(%error, "a button that was left down was not released"),
        }
    }
}
