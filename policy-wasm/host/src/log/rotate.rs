//! Goes over to a new file when one is full.
//!
//! The new file gets its first record before it takes the old one's name, so that at every moment the chain can be continued
//! from what is there: a death between the two renames is finished when the log is opened again.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use super::file::{self, State};
use super::record::{self, ControlKind};
use super::sync::Syncer;
use super::{AuditUnavailable, Fsync, LogPosition, Rotation, names};
use crate::digest::Digest;

/// After a failure the file grows by so much before another one is tried.
const PATIENCE: u64 = 1 << 20;

/// Begins a new file. When that cannot be done the old one is gone on with, and grows.
///
/// # Errors
///
/// When the log can be continued in neither.
pub(super) fn rotate(
    state: &mut State,
    syncer: &Syncer,
    fsync: Fsync,
    rotation: Rotation,
) -> Result<(), AuditUnavailable> {
    if !state.is_in_place() {
        state.displaced = true;
        return Err(AuditUnavailable);
    }
    if fsync != Fsync::Never
        && let Err(error) = state.file.sync_data()
    {
        state.broken = true;
        tracing::error!(%error, "the decision log cannot be forced to the disk; everything is refused until it is replaced");
        return Err(AuditUnavailable);
    }
    match begin(state, fsync) {
        Ok(fresh) => follow(state, syncer, fresh, rotation),
        Err(error) => {
            tracing::warn!(%error, path = %state.path.display(), "the decision log is full and no new file can be begun; it goes on");
            state.rotate_at = state.bytes + PATIENCE;
            drop(fs::remove_file(names::next(&state.path)));
            Ok(())
        }
    }
}

/// The new file, locked, with its first record, under its first name.
fn begin(state: &State, fsync: Fsync) -> std::io::Result<State> {
    let next = names::next(&state.path);
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(&next)?;
    file::lock(&file).map_err(std::io::Error::other)?;
    let chain = state.chain();
    let line = record::control(chain, ControlKind::LogRotated, None);
    (&file).write_all(&line)?;
    if fsync != Fsync::Never {
        file.sync_data()?;
    }
    Ok(State {
        path: state.path.clone(),
        file,
        first: chain.seq,
        bytes: line.len() as u64,
        rotate_at: 0,
        position: LogPosition {
            count: chain.seq,
            head: Some(Digest::of(&line[..line.len() - 1])),
        },
        refused: false,
        displaced: false,
        broken: false,
    })
}

/// Gives both files their names.
fn follow(
    state: &mut State,
    syncer: &Syncer,
    fresh: State,
    rotation: Rotation,
) -> Result<(), AuditUnavailable> {
    let (path, next) = (state.path.clone(), names::next(&state.path));
    let full = names::archive(&path, state.first, state.position.count);
    let renamed = if full.exists() {
        Err(std::io::ErrorKind::AlreadyExists.into())
    } else {
        fs::rename(&path, &full)
    };
    if let Err(error) = renamed {
        tracing::warn!(%error, path = %full.display(), "the full decision log cannot be renamed; it goes on");
        state.rotate_at = state.bytes + PATIENCE;
        drop(fs::remove_file(next));
        return Ok(());
    }
    // From here on the new file is the log, whatever its name: opening it again finishes this.
    let named = fs::rename(&next, &path)
        .and_then(|()| names::sync_folder(&path))
        .and_then(|()| syncer.watch(&fresh.file));
    *state = fresh;
    if let Err(error) = named {
        state.broken = true;
        tracing::error!(%error, path = %path.display(), "the new decision log cannot be used; everything is refused until the gateway is restarted");
        return Err(AuditUnavailable);
    }
    tracing::info!(full = %full.display(), "the decision log goes on in a new file");
    prune(&path, rotation.keep_files);
    Ok(())
}

/// Removes the oldest files that nobody wants to keep. One that cannot be removed stays, which is no reason to refuse.
fn prune(path: &std::path::Path, keep_files: Option<u32>) {
    let (Some(keep), Ok(files)) = (keep_files, names::archives(path)) else {
        return;
    };
    let surplus = files.len().saturating_sub(keep as usize);
    for file in &files[..surplus] {
        match fs::remove_file(&file.path) {
            Ok(()) => tracing::info!(file = %file.path.display(), "an old decision log is removed"),
            Err(error) => {
                tracing::warn!(%error, file = %file.path.display(), "an old decision log cannot be removed");
            }
        }
    }
}
