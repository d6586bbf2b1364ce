//! From a path the executor named to an open regular file inside the image folder, or to nothing.
//!
//! INVARIANT: no component below the image folder is reached through a link, symbolic or hard. The path is walked descriptor by
//! descriptor, so nothing that is swapped meanwhile changes what was checked.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use maka_cu_protocol::json::Reason;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

use super::{FrameError, violation};

/// Opens the regular file at `path`, which has to lie below `folder`. Neither a pipe nor a device delays the opening.
pub(super) fn regular_file(folder: &Path, path: &Path) -> Result<File, FrameError> {
    let file = walk(folder, path)?;
    let metadata = file.metadata().map_err(|_| FrameError::Unreadable)?;
    // A second name may lie anywhere. None is left of a file that was deleted since it was opened; its bytes are the same.
    if metadata.is_file() && metadata.nlink() <= 1 {
        Ok(file)
    } else {
        Err(outside())
    }
}

fn outside() -> FrameError {
    violation("image.path", Reason::OutsideImageDir)
}

fn walk(folder: &Path, path: &Path) -> Result<File, FrameError> {
    let steps = path.strip_prefix(folder).map_err(|_| outside())?;
    let mut steps = steps.components().peekable();
    let common = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let mut here = open(folder, common | OFlag::O_DIRECTORY, Mode::empty())
        .map_err(|_| FrameError::Unreadable)?;
    while let Some(step) = steps.next() {
        let Component::Normal(name) = step else {
            return Err(outside());
        };
        let kind = if steps.peek().is_some() {
            OFlag::O_DIRECTORY
        } else {
            OFlag::O_NONBLOCK | OFlag::O_NOCTTY
        };
        here = step_into(&here, Path::new(name), common | kind)?;
        if steps.peek().is_none() {
            return Ok(File::from(here));
        }
    }
    Err(outside())
}

fn step_into(here: &OwnedFd, name: &Path, flags: OFlag) -> Result<OwnedFd, FrameError> {
    openat(here, name, flags, Mode::empty()).map_err(|errno| match errno {
        // A link, a file where a folder should be, a socket, or a device nobody answers for.
        Errno::ELOOP | Errno::ENOTDIR | Errno::ENXIO | Errno::ENODEV => outside(),
        _ => FrameError::Unreadable,
    })
}
