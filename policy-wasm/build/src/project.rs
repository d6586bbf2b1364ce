//! The project of an author: one package that becomes one policy.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::compiler::{Compiler, Job};
use crate::component;
use crate::error::BuildError;

/// A project, as cargo understands it.
#[derive(Debug)]
pub struct Project {
    manifest: PathBuf,
    folder: PathBuf,
    name: String,
    module: String,
    /// Packages that lie elsewhere on this machine, with their folders.
    elsewhere: Vec<(PathBuf, String)>,
    locked: bool,
}

impl Project {
    /// Looks at the package in `folder`. Its dependencies are fetched where they are not there yet.
    ///
    /// # Errors
    ///
    /// When there is none, or it makes no policy.
    pub fn open(compiler: &Compiler, folder: &Path, locked: bool) -> Result<Self, BuildError> {
        let folder = folder.canonicalize().map_err(|source| BuildError::Read {
            path: folder.to_owned(),
            source,
        })?;
        let manifest = folder.join("Cargo.toml");
        let unsuitable = || BuildError::NoProject(folder.clone());
        if !manifest.is_file() {
            return Err(unsuitable());
        }
        let metadata = compiler.metadata(&manifest, locked)?;
        let packages = metadata["packages"].as_array().ok_or_else(unsuitable)?;
        let is_here =
            |package: &&Value| package["manifest_path"].as_str().map(Path::new) == Some(&manifest);
        let package = packages.iter().find(is_here).ok_or_else(unsuitable)?;
        let name = package["name"].as_str().ok_or_else(unsuitable)?;
        let target = cdylib(package).ok_or_else(unsuitable)?;
        let elsewhere = packages
            .iter()
            .filter(|package| package["source"].is_null())
            .filter_map(|package| {
                let place = Path::new(package["manifest_path"].as_str()?).parent()?;
                let name = package["name"].as_str()?;
                (!place.starts_with(&folder)).then(|| (place.to_owned(), format!("/{name}")))
            })
            .collect();
        Ok(Self {
            name: name.to_owned(),
            module: format!("{}.wasm", target.replace('-', "_")),
            manifest,
            folder,
            elsewhere,
            locked,
        })
    }

    /// The name of its package.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Builds the component. Cargo speaks on the terminal; `target_dir` is where it works.
    ///
    /// # Errors
    ///
    /// When the project does not compile, is no policy, or would tell the name of a folder of this machine.
    pub fn build(&self, compiler: &Compiler, target_dir: &Path) -> Result<Vec<u8>, BuildError> {
        let modules = compiler.build(&Job {
            manifest: &self.manifest,
            target_dir,
            remaps: self.elsewhere.clone(),
            locked: self.locked,
        })?;
        let path = modules.join(&self.module);
        let module = std::fs::read(&path).map_err(|source| BuildError::Read { path, source })?;
        let component = component::encode(&module)?;
        let mut folders = vec![self.folder.clone()];
        folders.extend(self.elsewhere.iter().map(|(place, _)| place.clone()));
        folders.extend(std::env::home_dir());
        component::check_leaks(&component, &folders)?;
        Ok(component)
    }
}

/// The name of the package's library, if it is one that makes a module.
fn cdylib(package: &Value) -> Option<&str> {
    let is_cdylib = |target: &&Value| {
        let kinds = target["crate_types"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib"))
    };
    package["targets"].as_array()?.iter().find(is_cdylib)?["name"].as_str()
}
