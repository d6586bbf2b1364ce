//! Bundles: a policy with its manifest, its fixtures and a signature in one file.
//!
//! A bundle is a tar file with `policy.wasm`, `manifest.json`, `fixtures/…` in the order of their names, and `signature`.
//! There is one form for given contents: a file that differs from it in a single byte is refused, so that nothing can be
//! hidden in headers, in padding, or after the end. The signature covers the name and the digest of every part.
//!
//! **Invariant:** nothing of a bundle is compiled before its signature is known to be good.

use std::io::{Cursor, Read as _};

use serde::Deserialize;

use crate::digest::Digest;
use crate::key::{PublicKey, SecretKey, hex, unhex};
use crate::manifest;
use crate::prebuilt;

const POLICY: &str = "policy.wasm";
const MANIFEST: &str = "manifest.json";
const FIXTURES: &str = "fixtures/";
const SIGNATURE: &str = "signature";
/// The first line of what is signed: no signature for anything else can be taken for one of a bundle.
const MESSAGE: &str = "maka.policy.bundle/1";
const SIGNATURE_SCHEMA: &str = "maka.policy.signature/1";
/// The largest bundle: a policy at its ceiling, with fixtures.
pub const MAX_BYTES: u64 = 32 << 20;
/// The most parts.
const MAX_PARTS: usize = 1_024;
/// The longest name of a fixture: what a tar header holds without extensions.
const MAX_NAME: usize = 64;

/// The digest that a manifest states as `fixtures_digest`: of the names and contents of all fixtures, in the order of
/// their names.
#[must_use]
pub fn fixtures_digest(fixtures: &[(String, Vec<u8>)]) -> Digest {
    let mut sorted: Vec<_> = fixtures.iter().collect();
    sorted.sort();
    let mut message = String::from("maka.policy.fixtures/1\n");
    for (name, content) in sorted {
        message.push_str(&format!("{} {name}\n", Digest::of(content)));
    }
    Digest::of(message.as_bytes())
}

/// Why a bundle is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// It is not in the one form.
    #[error(
        "the file is not a bundle as `maka-policy sign` writes it; get it again from its author"
    )]
    Form,
    /// A part has a name that is not used in bundles.
    #[error("a fixture has a name that a bundle cannot hold; use 1 to 64 of a-z, A-Z, 0-9, . _ -")]
    Name,
    /// It is too large, or has too many parts.
    #[error("the bundle would be larger than 32 MiB, or have more than 1024 parts")]
    TooLarge,
    /// The policy has no manifest.
    #[error("the policy has no manifest that can be read")]
    NoManifest,
    /// Its manifest is not that of the policy.
    #[error("manifest.json is not the manifest in policy.wasm")]
    Manifest,
    /// Its fixtures are not those that its manifest names.
    #[error(
        "the fixtures are not those that the manifest of the policy names by `fixtures_digest`"
    )]
    Fixtures,
    /// It was signed with a key that is not trusted.
    #[error("the bundle is signed with a key that is not among those that are trusted")]
    Untrusted,
    /// Its signature is wrong.
    #[error(
        "the signature is not good for these contents: the bundle was changed after it was signed"
    )]
    Signature,
}

/// The contents of a bundle, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    policy: Vec<u8>,
    fixtures: Vec<(String, Vec<u8>)>,
}

/// A bundle whose signature is good.
#[derive(Debug, Clone)]
pub struct Verified {
    /// The component.
    pub policy: Vec<u8>,
    /// The fixtures that came with it, by name.
    pub fixtures: Vec<(String, Vec<u8>)>,
    /// The key that signed it.
    pub key: PublicKey,
}

impl Bundle {
    /// Puts a bundle together, in which the manifest of the policy names these fixtures. Fixtures are named without a folder.
    /// The floor is taken as it is: it is known by its digest.
    ///
    /// # Errors
    ///
    /// When the policy has no manifest or names other fixtures, a name cannot be used, or it gets too large.
    pub fn of(policy: &[u8], fixtures: Vec<(String, Vec<u8>)>) -> Result<Self, BundleError> {
        let manifest = manifest::section(policy).map_err(|_| BundleError::NoManifest)?;
        let is_floor = Digest::of(policy) == prebuilt::floor_digest();
        if is_floor || stated_fixtures(manifest)?.is_some() {
            let bundle = Self::new(policy.to_vec(), fixtures)?;
            bundle.check_fixtures()?;
            return Ok(bundle);
        }
        // The text stays the author's; one key is added before the brace that ends it.
        let end = manifest.trim_ascii_end().len();
        let text = manifest[..end]
            .strip_suffix(b"}")
            .ok_or(BundleError::NoManifest)?;
        let digest = fixtures_digest(&fixtures);
        let named = [
            text.trim_ascii_end(),
            format!(",\n  \"fixtures_digest\": \"{digest}\"\n}}").as_bytes(),
            &manifest[end..],
        ]
        .concat();
        let policy =
            manifest::replace_section(policy, &named).map_err(|_| BundleError::NoManifest)?;
        Self::new(policy, fixtures)
    }

    /// The component, with the manifest that names its fixtures.
    #[must_use]
    pub fn policy(&self) -> &[u8] {
        &self.policy
    }

    fn new(policy: Vec<u8>, mut fixtures: Vec<(String, Vec<u8>)>) -> Result<Self, BundleError> {
        manifest::section(&policy).map_err(|_| BundleError::NoManifest)?;
        fixtures.sort();
        let is_unique = fixtures.windows(2).all(|pair| pair[0].0 != pair[1].0);
        if !is_unique || !fixtures.iter().all(|(name, _)| is_name(name)) {
            return Err(BundleError::Name);
        }
        let bytes = fixtures.iter().map(|(_, content)| content.len());
        let bytes = bytes.sum::<usize>() + policy.len();
        // Leave room for the manifest, which is there twice, and for headers.
        if bytes as u64 > MAX_BYTES / 2 + MAX_BYTES / 4 || fixtures.len() > MAX_PARTS {
            return Err(BundleError::TooLarge);
        }
        Ok(Self { policy, fixtures })
    }

    /// The bundle as a file, signed.
    ///
    /// # Errors
    ///
    /// When it gets too large.
    pub fn sign(&self, key: &SecretKey) -> Result<Vec<u8>, BundleError> {
        let signature = key.sign(self.message()?.as_bytes());
        self.file(&signature_line(&key.public(), &signature))
    }

    /// Reads a bundle that one of these keys signed.
    ///
    /// # Errors
    ///
    /// When it is not in its one form, or not signed by one of the keys.
    pub fn verify(file: &[u8], keys: &[PublicKey]) -> Result<Verified, BundleError> {
        let (bundle, stated, signature) = read(file)?;
        let (by, signature) = parse_signature(&signature).ok_or(BundleError::Form)?;
        let line = signature_line_of(by, &signature);
        if bundle.file(&line)? != file {
            // Said by itself, because an author can run into it; every other deviation is somebody's work.
            return Err(if stated == bundle.manifest()? {
                BundleError::Form
            } else {
                BundleError::Manifest
            });
        }
        let key = keys
            .iter()
            .find(|key| key.to_string() == by)
            .ok_or(BundleError::Untrusted)?;
        if !key.has_signed(bundle.message()?.as_bytes(), &signature) {
            return Err(BundleError::Signature);
        }
        bundle.check_fixtures()?;
        Ok(Verified {
            policy: bundle.policy,
            fixtures: bundle.fixtures,
            key: *key,
        })
    }

    /// A manifest need not name its fixtures; one that does names these.
    fn check_fixtures(&self) -> Result<(), BundleError> {
        match stated_fixtures(self.manifest()?)? {
            Some(stated) if stated != fixtures_digest(&self.fixtures) => Err(BundleError::Fixtures),
            Some(_) | None => Ok(()),
        }
    }

    fn manifest(&self) -> Result<&[u8], BundleError> {
        manifest::section(&self.policy).map_err(|_| BundleError::NoManifest)
    }

    fn parts(&self) -> Result<Vec<(String, &[u8])>, BundleError> {
        let mut parts = vec![
            (POLICY.to_owned(), self.policy.as_slice()),
            (MANIFEST.to_owned(), self.manifest()?),
        ];
        for (name, content) in &self.fixtures {
            parts.push((format!("{FIXTURES}{name}"), content));
        }
        Ok(parts)
    }

    /// What is signed. Names have no line feed, so no two bundles share it.
    fn message(&self) -> Result<String, BundleError> {
        let mut message = format!("{MESSAGE}\n");
        for (name, content) in self.parts()? {
            message.push_str(&format!("{} {name}\n", Digest::of(content)));
        }
        Ok(message)
    }

    fn file(&self, signature: &str) -> Result<Vec<u8>, BundleError> {
        let mut parts = self.parts()?;
        parts.push((SIGNATURE.to_owned(), signature.as_bytes()));
        let mut tar = tar::Builder::new(Vec::new());
        for (name, content) in parts {
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            header.set_entry_type(tar::EntryType::Regular);
            tar.append_data(&mut header, &name, content)
                .map_err(|_| BundleError::Form)?;
        }
        let file = tar.into_inner().map_err(|_| BundleError::Form)?;
        if file.len() as u64 > MAX_BYTES {
            return Err(BundleError::TooLarge);
        }
        Ok(file)
    }
}

/// Takes a file apart: the contents, the stated manifest and the signature. The caller compares the whole with its one
/// form, so that this has to be safe, not strict.
fn read(file: &[u8]) -> Result<(Bundle, Vec<u8>, String), BundleError> {
    let mut archive = tar::Archive::new(Cursor::new(file));
    let (mut policy, mut manifest, mut signature) = (None, None, None);
    let mut fixtures = Vec::new();
    for entry in archive.entries().map_err(|_| BundleError::Form)?.raw(true) {
        let mut entry = entry.map_err(|_| BundleError::Form)?;
        let name =
            String::from_utf8(entry.path_bytes().into_owned()).map_err(|_| BundleError::Form)?;
        let mut content = Vec::new();
        // An entry can state any size; there is no more to read than the file has.
        entry
            .by_ref()
            .take(MAX_BYTES)
            .read_to_end(&mut content)
            .map_err(|_| BundleError::Form)?;
        match name.as_str() {
            POLICY => policy = Some(content),
            MANIFEST => manifest = Some(content),
            SIGNATURE => signature = String::from_utf8(content).ok(),
            other => match other.strip_prefix(FIXTURES) {
                Some(name) if fixtures.len() < MAX_PARTS => {
                    fixtures.push((name.to_owned(), content))
                }
                Some(_) | None => return Err(BundleError::Form),
            },
        }
    }
    let (Some(policy), Some(manifest), Some(signature)) = (policy, manifest, signature) else {
        return Err(BundleError::Form);
    };
    Ok((Bundle::new(policy, fixtures)?, manifest, signature))
}

/// What a manifest names as its fixtures.
fn stated_fixtures(manifest: &[u8]) -> Result<Option<Digest>, BundleError> {
    #[derive(Deserialize)]
    struct Stated {
        fixtures_digest: Option<String>,
    }
    let Stated { fixtures_digest } =
        serde_json::from_slice(manifest).map_err(|_| BundleError::NoManifest)?;
    fixtures_digest
        .map(|text| text.parse().map_err(|_| BundleError::Fixtures))
        .transpose()
}

fn signature_line(key: &PublicKey, signature: &[u8; 64]) -> String {
    signature_line_of(&key.to_string(), signature)
}

fn signature_line_of(key: &str, signature: &[u8; 64]) -> String {
    format!("{SIGNATURE_SCHEMA} {key} {}\n", hex(signature))
}

/// The key that is said to have signed, and the signature.
fn parse_signature(line: &str) -> Option<(&str, [u8; 64])> {
    let rest = line.strip_suffix('\n')?.strip_prefix(SIGNATURE_SCHEMA)?;
    let (key, signature) = rest.strip_prefix(' ')?.split_once(' ')?;
    Some((key, unhex(signature)?))
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}
