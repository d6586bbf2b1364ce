//! Choosing a back end and taking its desktop.

use std::sync::Arc;

use super::doctor::{Finding, Note, StartRefusal};
use super::{Backend, BackendKind};
use crate::command_line::DesktopOptions;

/// Takes the desktop that the options name; without a name the real one of this session, never the virtual one.
///
/// # Errors
/// [`StartRefusal`] says what is missing and what to do.
pub fn open(options: &DesktopOptions) -> Result<Arc<dyn Backend>, StartRefusal> {
    let kind = choose(options)?;
    match kind {
        BackendKind::VirtualDesktop => {
            let desktop = super::virtual_desktop::VirtualDesktop::open(options.desktop.as_deref())?;
            Ok(Arc::new(desktop))
        }
        BackendKind::Linux => open_linux(),
        BackendKind::Wayland => open_wayland(),
        BackendKind::Macos => Err(not_built(kind)),
    }
}

/// As [`open`], with a pointer beside the person's. Only an X11 desktop can have one.
///
/// # Errors
/// [`StartRefusal`], also when there can be none: what was asked for is not silently left out.
pub fn open_with_second_pointer(
    options: &DesktopOptions,
) -> Result<Arc<dyn Backend>, StartRefusal> {
    match choose(options)? {
        BackendKind::Linux => open_linux_with_second_pointer(),
        kind @ (BackendKind::VirtualDesktop | BackendKind::Wayland | BackendKind::Macos) => {
            Err(StartRefusal {
                missing: format!("the back end `{kind}` has no second pointer"),
                remedy: "leave out `--second-pointer`".to_owned(),
            })
        }
    }
}

/// What stands between this process and the desktop that the options name.
///
/// # Errors
/// [`StartRefusal`] when no back end of that kind is part of this build.
pub fn diagnose(options: &DesktopOptions) -> Result<(BackendKind, Vec<Finding>), StartRefusal> {
    let kind = choose(options)?;
    let findings = match kind {
        BackendKind::VirtualDesktop => super::virtual_desktop::diagnose(options.desktop.as_deref()),
        BackendKind::Linux => diagnose_linux()?,
        BackendKind::Wayland => diagnose_wayland()?,
        BackendKind::Macos => return Err(not_built(kind)),
    };
    Ok((kind, findings))
}

/// What is worth knowing about applications on a desktop of this kind, as far as it can be told from here.
#[must_use]
pub fn notes(kind: BackendKind) -> Vec<Note> {
    match kind {
        BackendKind::Linux => notes_linux(),
        BackendKind::Wayland => notes_wayland(),
        BackendKind::VirtualDesktop | BackendKind::Macos => Vec::new(),
    }
}

/// Whether a back end of this kind is part of this build.
#[must_use]
pub const fn is_built(kind: BackendKind) -> bool {
    match kind {
        BackendKind::VirtualDesktop => true,
        BackendKind::Linux | BackendKind::Wayland => cfg!(target_os = "linux"),
        BackendKind::Macos => false,
    }
}

fn choose(options: &DesktopOptions) -> Result<BackendKind, StartRefusal> {
    options
        .back_end
        .or_else(platform)
        .ok_or_else(|| StartRefusal {
            missing: "this platform has no desktop back end".to_owned(),
            remedy: "name the embedded desktop with `--back-end virtual`".to_owned(),
        })
}

#[cfg(target_os = "linux")]
fn platform() -> Option<BackendKind> {
    Some(super::linux::kind_of_session())
}

#[cfg(not(target_os = "linux"))]
const fn platform() -> Option<BackendKind> {
    if cfg!(target_os = "macos") {
        Some(BackendKind::Macos)
    } else {
        None
    }
}

fn not_built(kind: BackendKind) -> StartRefusal {
    StartRefusal {
        missing: format!("the back end `{kind}` is not part of this build"),
        remedy: "name the embedded desktop with `--back-end virtual`".to_owned(),
    }
}

#[cfg(target_os = "linux")]
fn open_linux() -> Result<Arc<dyn Backend>, StartRefusal> {
    Ok(Arc::new(super::linux::LinuxDesktop::open()?))
}

#[cfg(target_os = "linux")]
fn open_linux_with_second_pointer() -> Result<Arc<dyn Backend>, StartRefusal> {
    let desktop = super::linux::LinuxDesktop::open_with_second_pointer()?;
    Ok(Arc::new(desktop))
}

#[cfg(not(target_os = "linux"))]
fn open_linux_with_second_pointer() -> Result<Arc<dyn Backend>, StartRefusal> {
    Err(not_built(BackendKind::Linux))
}

#[cfg(not(target_os = "linux"))]
fn open_linux() -> Result<Arc<dyn Backend>, StartRefusal> {
    Err(not_built(BackendKind::Linux))
}

#[cfg(target_os = "linux")]
fn open_wayland() -> Result<Arc<dyn Backend>, StartRefusal> {
    Ok(Arc::new(super::linux::WaylandDesktop::open()?))
}

#[cfg(target_os = "linux")]
fn diagnose_linux() -> Result<Vec<Finding>, StartRefusal> {
    Ok(super::linux::diagnose())
}

#[cfg(target_os = "linux")]
fn diagnose_wayland() -> Result<Vec<Finding>, StartRefusal> {
    Ok(super::linux::diagnose_wayland())
}

#[cfg(target_os = "linux")]
fn notes_linux() -> Vec<Note> {
    super::linux::notes()
}

#[cfg(target_os = "linux")]
fn notes_wayland() -> Vec<Note> {
    super::linux::notes_wayland()
}

#[cfg(not(target_os = "linux"))]
fn open_linux() -> Result<Arc<dyn Backend>, StartRefusal> {
    Err(not_built(BackendKind::Linux))
}

#[cfg(not(target_os = "linux"))]
fn open_wayland() -> Result<Arc<dyn Backend>, StartRefusal> {
    Err(not_built(BackendKind::Wayland))
}

#[cfg(not(target_os = "linux"))]
fn diagnose_linux() -> Result<Vec<Finding>, StartRefusal> {
    Err(not_built(BackendKind::Linux))
}

#[cfg(not(target_os = "linux"))]
fn diagnose_wayland() -> Result<Vec<Finding>, StartRefusal> {
    Err(not_built(BackendKind::Wayland))
}

#[cfg(not(target_os = "linux"))]
const fn notes_linux() -> Vec<Note> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
const fn notes_wayland() -> Vec<Note> {
    Vec::new()
}
