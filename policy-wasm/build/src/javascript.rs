//! The project of an author in JavaScript: npm has its compiler, and a script of its `package.json` makes the component.
//!
//! This module owns how npm is called and what the component is called. How the component is made is up to the script
//! `build`, which gets the file to write; it deliberately does not look into it, so a project can put a bundler or another
//! compiler before it.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::component;
use crate::error::BuildError;
use crate::process;

/// The largest component that is read: twice what a gateway accepts at most.
const MAX_BYTES: u64 = 32 << 20;
/// The largest manifest that is read; the host accepts less.
const MANIFEST_BYTES: u64 = 1 << 20;

/// A project with a `package.json`.
#[derive(Debug)]
pub struct JavaScript {
    folder: PathBuf,
    name: String,
    manifest: Vec<u8>,
}

impl JavaScript {
    /// Whether the folder holds such a project. One that is a Rust package too is a Rust package.
    #[must_use]
    pub fn is_in(folder: &Path) -> bool {
        folder.join("package.json").is_file() && !folder.join("Cargo.toml").is_file()
    }

    /// Looks at the project in `folder`.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or its manifest says no name that a file can have.
    pub fn open(folder: &Path) -> Result<Self, BuildError> {
        let folder = folder.canonicalize().map_err(|source| BuildError::Read {
            path: folder.to_owned(),
            source,
        })?;
        let path = folder.join("manifest.json");
        let manifest = read(&path, MANIFEST_BYTES)?;
        let named = serde_json::from_slice::<Value>(&manifest).ok();
        let name = named
            .as_ref()
            .and_then(|value| value["name"].as_str())
            .filter(|name| is_file_name(name))
            .ok_or(BuildError::Unnamed(path))?
            .to_owned();
        Ok(Self {
            folder,
            name,
            manifest,
        })
    }

    /// The name of the policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Builds the component. npm speaks on the terminal. What the lock file names is installed first, unless something is
    /// installed already; install scripts of packages do not run.
    ///
    /// # Errors
    ///
    /// When there is no npm, the script fails or makes no component, or the component would tell the name of a folder of
    /// this machine.
    pub fn build(&self) -> Result<Vec<u8>, BuildError> {
        if !self.folder.join("node_modules").is_dir() {
            self.npm(&["ci", "--ignore-scripts", "--no-audit", "--no-fund"], None)?;
        }
        let work = self.folder.join("target");
        let raw = work.join("component.wasm");
        fs::create_dir_all(&work).map_err(|source| BuildError::Read {
            path: work.clone(),
            source,
        })?;
        // What an earlier build left must not be taken for what this one makes.
        match fs::remove_file(&raw) {
            Ok(()) => {}
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(BuildError::Read { path: raw, source }),
        }
        self.npm(&["run", "--silent", "build", "--"], Some(&raw))?;
        let component = component::wrap(&read(&raw, MAX_BYTES)?, &self.manifest)?;
        let folders: Vec<_> = [self.folder.clone()]
            .into_iter()
            .chain(std::env::home_dir())
            .collect();
        component::check_leaks(&component, &folders)?;
        Ok(component)
    }

    fn npm(&self, words: &[&str], file: Option<&Path>) -> Result<(), BuildError> {
        let mut command = process::clean("npm", None);
        command.args(words).args(file).current_dir(&self.folder);
        match process::run(&mut command) {
            Err(BuildError::Start { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Err(BuildError::NoNpm)
            }
            result => result,
        }
    }
}

/// A name that stays in its folder.
fn is_file_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, BuildError> {
    let failed = |source| BuildError::Read {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(BuildError::TooLarge {
            path: path.to_owned(),
            limit,
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_policy_stays_in_its_folder() {
        for (name, taken) in [
            ("my-policy", true),
            ("a_1", true),
            ("", false),
            ("../x", false),
            ("a/b", false),
            ("a.b", false),
        ] {
            assert_eq!(is_file_name(name), taken, "{name}");
        }
    }

    #[test]
    fn a_project_is_known_by_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(!JavaScript::is_in(path));
        fs::write(path.join("package.json"), "{}").unwrap();
        assert!(JavaScript::is_in(path));
        assert!(matches!(
            JavaScript::open(path),
            Err(BuildError::Read { .. })
        ));
        fs::write(path.join("manifest.json"), r#"{"name": "../up"}"#).unwrap();
        assert!(matches!(
            JavaScript::open(path),
            Err(BuildError::Unnamed(_))
        ));
        fs::write(path.join("manifest.json"), r#"{"name": "mine"}"#).unwrap();
        assert_eq!(JavaScript::open(path).unwrap().name(), "mine");
        fs::write(path.join("Cargo.toml"), "").unwrap();
        assert!(!JavaScript::is_in(path));
    }
}
