//! A launch in two steps: ask the system, then watch what comes of it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::desktop::{RunningApp, WindowInfo};

/// A launch that was requested. Only the back end that made it can look inside.
#[derive(Clone)]
pub struct LaunchTicket(Arc<dyn Any + Send + Sync>);

impl LaunchTicket {
    /// Wraps what the back end needs to recognise the launched process and its windows.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(launch: T) -> Self {
        Self(Arc::new(launch))
    }

    /// The back end's value, or `None` when another kind of back end made this ticket.
    #[must_use]
    pub fn downcast<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for LaunchTicket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LaunchTicket")
    }
}

/// How far a launch has come.
#[derive(Debug, Clone)]
pub enum LaunchProgress {
    /// No process has registered yet.
    Starting,
    /// The process exists.
    Running {
        /// The process that owns the windows, or will own them as far as is known.
        app: RunningApp,
        /// Its layer-0 windows, front to back; empty while it has none.
        windows: Vec<WindowInfo>,
    },
    /// What was started has ended and nothing took its place.
    Exited,
}
