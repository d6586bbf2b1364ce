//! Policies that came by `Policies.Load`, in `<state>/policies`, by the digest of their component.
//!
//! A file is what was sent, a component or a bundle; whatever is read from here is hashed and, for a bundle, its
//! signature checked again, each time. The store is bounded in number and bytes. When it is full, the policy that was
//! loaded first among those that no set uses makes room; a policy that a set uses is never dropped.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use maka_policy_host::{bundle, digest::Digest};

use super::{
    fault::{Fault, FaultCode},
    source::{self, Component, Trust},
};

/// The most policies.
pub(crate) const MAX_POLICIES: usize = 64;
/// The most bytes of all of them.
pub(crate) const MAX_BYTES: u64 = 256 << 20;
/// The ending of a stored policy.
const ENDING: &str = "policy";

/// What is known of a stored policy without reading it again.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) digest: Digest,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) signer: Option<String>,
    pub(crate) fixtures: usize,
    bytes: u64,
}

/// The folder and what is in it, in the order of loading.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    policies: Vec<Stored>,
}

impl Store {
    /// Opens the folder; it is made by the first policy. Files that are not what they are named for are left out.
    pub(crate) fn open(state_dir: &Path, trust: &Trust) -> Result<Self, Fault> {
        let folder = state_dir.join("policies");
        let mut found = Vec::new();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    folder,
                    policies: Vec::new(),
                });
            }
            Err(error) => return Err(unusable(error)),
        };
        for entry in entries {
            let path = entry.map_err(unusable)?.path();
            if path.extension().is_none_or(|ending| ending != ENDING) {
                continue;
            }
            let loaded_at = path.metadata().and_then(|metadata| metadata.modified());
            let read = source::read(&path, bundle::MAX_BYTES).map_err(unusable);
            let stored = read.and_then(|file| {
                let bytes = file.len() as u64;
                stored(&trust.open(file)?, bytes)
            });
            match (stored, loaded_at) {
                (Ok(stored), Ok(at)) if path == path_of(&folder, stored.digest) => {
                    found.push((at, stored));
                }
                (Ok(_) | Err(_), _) => {
                    tracing::warn!(file = %path.display(), "a stored policy is not usable and is left out");
                }
            }
        }
        found.sort_by_key(|(at, _)| *at);
        Ok(Self {
            folder,
            policies: found.into_iter().map(|(_, stored)| stored).collect(),
        })
    }

    /// What is stored, in the order of loading.
    pub(crate) fn policies(&self) -> &[Stored] {
        &self.policies
    }

    /// The stored policy of this digest.
    pub(crate) fn get(&self, digest: Digest) -> Option<&Stored> {
        self.policies.iter().find(|stored| stored.digest == digest)
    }

    /// Reads a policy, and checks it as if it came now. Nothing when there never was one.
    pub(crate) fn read(&self, trust: &Trust, digest: Digest) -> Result<Option<Component>, Fault> {
        let path = path_of(&self.folder, digest);
        let file = match source::read(&path, bundle::MAX_BYTES) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(error)),
        };
        let component = trust.open(file)?;
        if component.digest == digest {
            Ok(Some(component))
        } else {
            Err(Fault::refused("pin"))
        }
    }

    /// Keeps a policy. Those of `used` stay whatever it costs.
    pub(crate) fn keep(
        &mut self,
        component: &Component,
        file: &[u8],
        used: &[Digest],
    ) -> Result<Stored, Fault> {
        let fresh = stored(component, file.len() as u64)?;
        while self.policies.len() >= MAX_POLICIES
            || self.policies.iter().map(|old| old.bytes).sum::<u64>() + fresh.bytes > MAX_BYTES
        {
            let Some(oldest) = self
                .policies
                .iter()
                .position(|old| !used.contains(&old.digest))
            else {
                return Err(FaultCode::StoreFull.into());
            };
            let gone = self.policies.remove(oldest);
            fs::remove_file(path_of(&self.folder, gone.digest)).map_err(unusable)?;
            tracing::info!(digest = %gone.digest, "a loaded policy made room for another");
        }
        write(&self.folder, &path_of(&self.folder, fresh.digest), file).map_err(unusable)?;
        self.policies.push(fresh.clone());
        Ok(fresh)
    }
}

fn stored(component: &Component, bytes: u64) -> Result<Stored, Fault> {
    let manifest = source::manifest(component)?;
    Ok(Stored {
        digest: component.digest,
        name: manifest.name,
        version: manifest.version,
        signer: component.signer.clone(),
        fixtures: component.fixtures.len(),
        bytes,
    })
}

fn path_of(folder: &Path, digest: Digest) -> PathBuf {
    let text = digest.to_string();
    let hex = text.strip_prefix("sha256:").unwrap_or(&text);
    folder.join(format!("{hex}.{ENDING}"))
}

pub(crate) fn unusable(error: io::Error) -> Fault {
    Fault::from(FaultCode::StoreUnusable).because(error)
}

/// Writes a file whole or not at all: it is there, with these contents, after a crash at any time.
pub(crate) fn write(folder: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let unfinished = folder.join("unfinished");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use maka_policy_host::{manifest, prebuilt::Prebuilt};

    use super::*;

    /// A policy of this version: the same code, another digest.
    fn policy(version: usize) -> (Component, Vec<u8>) {
        let bytes = Prebuilt::AllowAll.bytes();
        let section = std::str::from_utf8(manifest::section(bytes).unwrap()).unwrap();
        let key = section.find("\"version\"").unwrap();
        let value = key + section[key..].find(':').unwrap() + 1;
        let end = value + section[value..].find(',').unwrap();
        let changed = format!("{} \"v{version}\"{}", &section[..value], &section[end..]);
        let file = manifest::replace_section(bytes, changed.as_bytes()).unwrap();
        (Trust::default().open(file.clone()).unwrap(), file)
    }

    /// A full store makes room for what comes by dropping what was loaded first and is not in use; what is in use stays.
    #[test]
    fn a_full_store_makes_room_or_says_that_it_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let trust = Trust::default();
        let mut store = Store::open(folder.path(), &trust).unwrap();
        let mut digests = Vec::new();
        for version in 0..MAX_POLICIES {
            let (component, file) = policy(version);
            store.keep(&component, &file, &[]).unwrap();
            digests.push(component.digest);
        }
        let (component, file) = policy(MAX_POLICIES);
        let full = store.keep(&component, &file, &digests).unwrap_err();
        assert_eq!(full.code, FaultCode::StoreFull);
        // The first is in use, so the second goes.
        store.keep(&component, &file, &digests[..1]).unwrap();
        assert_eq!(store.policies().len(), MAX_POLICIES);
        assert!(store.get(digests[0]).is_some() && store.get(digests[1]).is_none());
        assert!(store.read(&trust, digests[1]).unwrap().is_none());
        let again = Store::open(folder.path(), &trust).unwrap();
        assert_eq!(again.policies().len(), MAX_POLICIES);
        let kept = again.read(&trust, component.digest).unwrap().unwrap();
        assert_eq!(kept.digest, component.digest);
    }

    /// K6: what lies in the store is what its name says, or it is not there; when it is asked for, it is an error.
    #[test]
    fn what_was_changed_in_the_store_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let trust = Trust::default();
        let mut store = Store::open(folder.path(), &trust).unwrap();
        let ((one, file), (_, other)) = (policy(1), policy(2));
        store.keep(&one, &file, &[]).unwrap();
        fs::write(path_of(&store.folder, one.digest), other).unwrap();
        let refused = store.read(&trust, one.digest).unwrap_err();
        assert_eq!(refused.detail, Some("pin"));
        assert!(
            Store::open(folder.path(), &trust)
                .unwrap()
                .policies()
                .is_empty()
        );
        let strict = Trust {
            require_signature: true,
            ..Trust::default()
        };
        fs::write(path_of(&store.folder, one.digest), file).unwrap();
        let refused = store.read(&strict, one.digest).unwrap_err();
        assert_eq!(refused.detail, Some("unsigned"));
    }
}
