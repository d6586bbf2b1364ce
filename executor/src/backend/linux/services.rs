//! What the back ends of every Linux session share: the accessibility bus, the session bus, the applications, and the
//! small runtime that drives calls to both buses.
//!
//! Nothing here knows a window server.

use std::sync::Arc;

use maka_cu_protocol::sets::{Path, Permission};
use maka_cu_protocol::text::AppText;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::accessibility::{Accessibility, Addresses};
use super::apps::{Apps, Launch};
use super::bus::{Bus, CallError};
use super::lock::SessionBus;
use super::node::{AccessibleNode, LinuxNode};
use super::{doctor, input, process, selection};
use crate::backend::desktop::{ProcessStart, WindowInfo};
use crate::backend::doctor::StartRefusal;
use crate::backend::error::BackendError;
use crate::backend::launch::{LaunchProgress, LaunchTicket};
use crate::backend::perform::{ElementCommand, PerformError, Performed};
use crate::backend::tree::NodeRef;
use crate::deadline::Deadline;

/// See the module text.
#[derive(Debug)]
pub(super) struct Services {
    pub(super) accessibility: Accessibility,
    pub(super) apps: Apps,
    session: SessionBus,
    /// `None` only while it is being dropped.
    runtime: Option<Runtime>,
}

impl Services {
    /// Connects to the accessibility bus.
    ///
    /// # Errors
    /// When it is not there or its registry does not answer.
    pub(super) fn start(addresses: Addresses) -> Result<Self, StartRefusal> {
        let accessibility = Accessibility::new(addresses);
        let runtime = doctor::runtime()?;
        if !runtime.block_on(accessibility.answers()) {
            runtime.shutdown_background();
            return Err(doctor::no_accessibility());
        }
        Ok(Self {
            accessibility,
            apps: Apps::default(),
            session: SessionBus::default(),
            runtime: Some(runtime),
        })
    }

    /// Runs bus calls on the calling thread. Each has its own time limit.
    pub(super) fn block_on<T>(&self, calls: impl Future<Output = T>) -> T {
        self.runtime
            .as_ref()
            .expect("it is there until the drop")
            .block_on(calls)
    }

    /// As [`Self::block_on`], with the deadline as the limit of all calls together.
    pub(super) fn within<T>(
        &self,
        deadline: &Deadline,
        calls: impl Future<Output = T>,
    ) -> Result<T, BackendError> {
        let left = deadline.remaining();
        // The timer needs the runtime, so it is made inside.
        self.block_on(async {
            tokio::select! {
                biased;
                answer = timeout(left, calls) => answer.map_err(|_| BackendError::Timeout),
                () = deadline.cancelled() => Err(BackendError::Timeout),
            }
        })
    }

    /// The accessibility bus.
    pub(super) fn bus(&self, deadline: &Deadline) -> Result<Arc<Bus>, BackendError> {
        self.within(deadline, self.accessibility.bus())?
            .map_err(no_bus)
    }

    /// See [`crate::backend::Backend::accessibility_permitted`].
    pub(super) fn answers(&self, deadline: &Deadline) -> Result<bool, BackendError> {
        self.within(deadline, self.accessibility.answers())
    }

    /// See [`crate::backend::Backend::screen_locked`].
    pub(super) fn screen_locked(&self, deadline: &Deadline) -> Result<bool, BackendError> {
        let address = doctor::session_bus_address();
        let locked = self.session.is_locked(address.as_deref());
        self.within(deadline, locked)?.map_err(|error| {
            tracing::warn!(?error, "the session bus cannot be asked for a lock");
            match error {
                CallError::Timeout => BackendError::Timeout,
                CallError::Lost
                | CallError::Gone
                | CallError::Rejected
                | CallError::NoReply
                | CallError::Malformed => BackendError::CaptureFailed,
            }
        })
    }

    /// Starts an application; `windows` are those of now.
    pub(super) fn launch(
        &self,
        name: &str,
        windows: &[WindowInfo],
    ) -> Result<LaunchTicket, BackendError> {
        Ok(LaunchTicket::new(self.apps.launch(name, windows)?))
    }

    /// How far a launch has come, by the windows of now.
    pub(super) fn launch_progress(
        &self,
        ticket: &LaunchTicket,
        windows: &[WindowInfo],
    ) -> Result<LaunchProgress, BackendError> {
        let launch = ticket
            .downcast::<Launch>()
            .ok_or(BackendError::Unsupported)?;
        Ok(self.apps.progress(launch, windows))
    }

    /// Performs one command on an accessible, once.
    pub(super) fn perform(
        &self,
        node: &AccessibleNode,
        command: &ElementCommand,
        deadline: &Deadline,
    ) -> Result<Performed, PerformError> {
        let bus = self.bus(deadline).map_err(|_| PerformError::TimedOut)?;
        self.block_on(input::perform(&bus, node, command, deadline))
    }

    /// See [`crate::backend::Backend::mechanism`].
    pub(super) fn mechanism(
        &self,
        node: &NodeRef,
        command: &ElementCommand,
        deadline: &Deadline,
    ) -> Result<Option<Path>, BackendError> {
        match node.downcast().ok_or(BackendError::Unsupported)? {
            LinuxNode::Window(_) | LinuxNode::Silent(_) => Ok(Some(command.usual_path())),
            LinuxNode::Accessible(node) => {
                let bus = self.bus(deadline)?;
                Ok(self.block_on(input::mechanism(&bus, node, command, deadline)))
            }
        }
    }

    /// See [`crate::backend::Backend::selected_text`].
    pub(super) fn selected_text(
        &self,
        node: &NodeRef,
        deadline: &Deadline,
    ) -> Result<Option<AppText>, BackendError> {
        match node.downcast().ok_or(BackendError::Unsupported)? {
            LinuxNode::Window(_) | LinuxNode::Silent(_) => Ok(None),
            LinuxNode::Accessible(node) => {
                let bus = self.bus(deadline)?;
                self.block_on(selection::selected(&bus, node, deadline))
            }
        }
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        // Waiting for a runtime inside another one is not allowed, and there is nothing to wait for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// See [`crate::backend::Backend::process_start`].
pub(super) fn process_start(pid: u32) -> Option<ProcessStart> {
    process::process(pid)
        .filter(|process| !process.zombie)
        .map(|process| process.start)
}

/// A bus that is not there means that nobody's controls can be read.
pub(super) fn no_bus(error: CallError) -> BackendError {
    match error {
        CallError::Lost => BackendError::PermissionMissing(Permission::Accessibility),
        CallError::Timeout => BackendError::Timeout,
        CallError::Gone | CallError::Rejected | CallError::NoReply | CallError::Malformed => {
            BackendError::CaptureFailed
        }
    }
}
