//! From a file to a component that may be compiled: size, digest and signature come first.
//!
//! **Invariant:** nothing is compiled whose digest or signature is not the one that was asked for.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
    sync::Arc,
};

use maka_policy_host::{
    bundle::{self, Bundle},
    digest::Digest,
    key::PublicKey,
    limits::MAX_MODULE_BYTES,
    manifest::{Ceiling, KNOWN_FACTS, Manifest},
    prebuilt,
};

use super::fault::{Fault, FaultCode};
use crate::config::{
    policy::{ModuleConfig, ModuleFile, Signers},
    value::Sha256,
};

/// A component with what came with it.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) digest: Digest,
    /// Of its bundle; none for a bare component.
    pub(crate) fixtures: Vec<(String, Vec<u8>)>,
    /// The operator's name for the key that signed its bundle.
    pub(crate) signer: Option<String>,
}

/// Whose work is taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    pub(crate) signers: Signers,
    pub(crate) require_signature: bool,
}

impl Trust {
    /// Reads a file that is a component or a bundle, as what it is.
    pub(crate) fn open(&self, file: Vec<u8>) -> Result<Component, Fault> {
        // A component begins with its magic, a tar file with the name of its first part.
        if file.starts_with(b"\0asm") {
            if self.require_signature {
                return Err(Fault::refused("unsigned"));
            }
            let digest = Digest::of(&file);
            return Ok(Component {
                bytes: file.into(),
                digest,
                fixtures: Vec::new(),
                signer: None,
            });
        }
        self.bundle(&file)
    }

    fn bundle(&self, file: &[u8]) -> Result<Component, Fault> {
        let keys: Vec<PublicKey> = self.signers.0.iter().map(|signer| signer.key).collect();
        let verified = Bundle::verify(file, &keys)?;
        let signer = self
            .signers
            .0
            .iter()
            .find(|signer| signer.key == verified.key)
            .map(|signer| signer.name.as_str().to_owned());
        Ok(Component {
            digest: Digest::of(&verified.policy),
            bytes: verified.policy.into(),
            fixtures: verified.fixtures,
            signer,
        })
    }
}

/// The component of a configured module, which is exactly the one that was configured.
pub(crate) fn configured(trust: &Trust, module: &ModuleConfig) -> Result<Component, Fault> {
    let name = module.name.as_str();
    let unreadable = |source| {
        Fault::refused("unreadable")
            .of(name)
            .because(Unreadable { source })
    };
    let pinned = |component: Component, pin: &Sha256| {
        if component.digest.as_bytes() == pin.0.as_bytes() {
            Ok(component)
        } else {
            Err(Fault::refused("pin").of(name))
        }
    };
    match &module.source {
        ModuleFile::Component { path, sha256 } => {
            let bytes = read(path.as_path(), MAX_MODULE_BYTES).map_err(unreadable)?;
            let digest = Digest::of(&bytes);
            pinned(
                Component {
                    bytes: bytes.into(),
                    digest,
                    fixtures: Vec::new(),
                    signer: None,
                },
                sha256,
            )
        }
        ModuleFile::Bundle { path, sha256 } => {
            let file = read(path.as_path(), bundle::MAX_BYTES).map_err(unreadable)?;
            let component = trust.bundle(&file).map_err(|fault| fault.of(name))?;
            match sha256 {
                Some(pin) => pinned(component, pin),
                None => Ok(component),
            }
        }
    }
}

/// A file of a policy that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the file of the policy cannot be read")]
struct Unreadable {
    #[source]
    source: io::Error,
}

/// Reads a regular file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for a writer, for ever.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// The manifest of a component, whatever it asks for.
pub(crate) fn manifest(component: &Component) -> Result<Manifest, Fault> {
    let facts: Vec<_> = KNOWN_FACTS.iter().map(|fact| (*fact).to_owned()).collect();
    Manifest::read(
        &component.bytes,
        Ceiling {
            facts: &facts,
            fuel: maka_policy_host::limits::MAX_FUEL,
            memory_bytes: maka_policy_host::limits::MAX_MEMORY_BYTES,
            owns_built_in: component.digest == prebuilt::floor_digest(),
        },
    )
    .map_err(|error| {
        Fault::refused(error.code())
            .at(error.pointer())
            .because(error)
    })
}

/// A digest that a caller names.
pub(crate) fn digest(text: &str) -> Result<Digest, Fault> {
    text.parse()
        .map_err(|_| Fault::from(FaultCode::PolicyUnknown))
}
