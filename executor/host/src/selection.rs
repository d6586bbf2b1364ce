//! Whether there is a back end at all. Fails closed.
//!
//! A back end is chosen only when the platform is supported, a path and a digest are configured, and the service can be made.
//! Nothing is discovered, downloaded or taken unpinned; anything else is no back end, with the reason.

use std::path::PathBuf;

use thiserror::Error;

use crate::options::{ExecutableDigest, Options};
use crate::service::MakaCuService;

/// The one back end there is.
#[doc(alias = "CU_BACKEND_IDS")]
pub const BACKEND_ID: &str = "maka-cu";

/// The id reported when there is none.
pub const NO_BACKEND_ID: &str = "none";

/// What a composition knows about the back end it wants.
#[derive(Debug, Clone, Default)]
pub struct BackendRequest {
    /// The wished id; [`BACKEND_ID`] when absent.
    pub backend: Option<String>,
    /// The operating system, as in [`std::env::consts::OS`].
    pub platform: String,
    /// The systems for which an executor exists.
    pub supported: Vec<String>,
    /// The executor's path.
    pub binary_path: Option<PathBuf>,
    /// The executor's digest: 64 lower-case hexadecimal digits.
    pub expected_digest: Option<String>,
}

/// The choice.
#[derive(Debug)]
pub enum Selection {
    /// The executor.
    MakaCu(Box<MakaCuService>),
    /// None, and why: every call has to be refused.
    None(NoBackend),
}

impl Selection {
    /// [`BACKEND_ID`] or [`NO_BACKEND_ID`].
    #[must_use]
    pub const fn id(&self) -> &'static str {
        match self {
            Self::MakaCu(_) => BACKEND_ID,
            Self::None(_) => NO_BACKEND_ID,
        }
    }
}

/// Why there is no back end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoBackend {
    /// An id that names no back end.
    #[error("the configured back end does not exist")]
    UnknownBackend,
    /// No executor exists for this operating system.
    #[error("this platform is not supported")]
    PlatformUnsupported,
    /// No path.
    #[error("no path of an executor is configured")]
    BinaryPathMissing,
    /// No digest.
    #[error("no digest of the executor is configured")]
    DigestMissing,
    /// A digest that is none.
    #[error("the configured digest is not 64 lower-case hexadecimal digits")]
    DigestMalformed,
    /// The service could not be made.
    #[error("the supervisor could not be made")]
    ConstructionFailed,
}

impl NoBackend {
    /// A closed token, for example `platform_unsupported`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownBackend => "unknown_backend",
            Self::PlatformUnsupported => "platform_unsupported",
            Self::BinaryPathMissing => "binary_path_missing",
            Self::DigestMissing => "digest_missing",
            Self::DigestMalformed => "digest_malformed",
            Self::ConstructionFailed => "construction_failed",
        }
    }
}

/// Chooses the back end. `options` gets the path and the digest and completes them.
///
/// # Panics
/// Outside a tokio runtime, like [`MakaCuService::try_new`].
#[doc(alias = "selectComputerUseBackend")]
pub fn select_backend(
    request: &BackendRequest,
    options: impl FnOnce(PathBuf, ExecutableDigest) -> Options,
) -> Selection {
    match judge(request) {
        Ok((path, digest)) => {
            // The judged values win over whatever `options` makes of them: an unpinned service cannot come out of here.
            let options = Options {
                binary_path: path.clone(),
                expected_digest: Some(digest),
                ..options(path, digest)
            };
            match MakaCuService::try_new(options) {
                Ok(service) => Selection::MakaCu(Box::new(service)),
                Err(_) => Selection::None(NoBackend::ConstructionFailed),
            }
        }
        Err(reason) => Selection::None(reason),
    }
}

fn judge(request: &BackendRequest) -> Result<(PathBuf, ExecutableDigest), NoBackend> {
    if request.backend.as_deref().unwrap_or(BACKEND_ID) != BACKEND_ID {
        return Err(NoBackend::UnknownBackend);
    }
    if !request.supported.contains(&request.platform) {
        return Err(NoBackend::PlatformUnsupported);
    }
    let path = request
        .binary_path
        .clone()
        .ok_or(NoBackend::BinaryPathMissing)?;
    let digest = request
        .expected_digest
        .as_deref()
        .ok_or(NoBackend::DigestMissing)?;
    Ok((
        path,
        digest.parse().map_err(|_| NoBackend::DigestMalformed)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> BackendRequest {
        BackendRequest {
            backend: None,
            platform: "linux".to_owned(),
            supported: vec!["linux".to_owned(), "macos".to_owned()],
            binary_path: Some(PathBuf::from("/opt/maka-cu")),
            expected_digest: Some("0".repeat(64)),
        }
    }

    async fn check(change: impl FnOnce(&mut BackendRequest), expected: &str) {
        let mut request = good();
        change(&mut request);
        let selection = select_backend(&request, |path, _| {
            let mut options = Options::new("/elsewhere", "/state", "/images", "1");
            assert_eq!(path, PathBuf::from("/opt/maka-cu"));
            options.expected_digest = None;
            options
        });
        let seen = match &selection {
            Selection::MakaCu(service) => {
                let options = service.options();
                assert_eq!(options.binary_path, PathBuf::from("/opt/maka-cu"));
                assert!(options.expected_digest.is_some());
                selection.id()
            }
            Selection::None(reason) => reason.as_str(),
        };
        assert_eq!(seen, expected);
    }

    /// Spec 10.4: everything but the complete, pinned request is no back end.
    #[tokio::test]
    async fn only_a_complete_pinned_request_is_chosen() {
        check(|_| {}, "maka-cu").await;
        check(|it| it.backend = Some("maka-cu".to_owned()), "maka-cu").await;
        check(
            |it| it.backend = Some("another".to_owned()),
            "unknown_backend",
        )
        .await;
        check(|it| it.backend = Some(String::new()), "unknown_backend").await;
        check(
            |it| it.platform = "windows".to_owned(),
            "platform_unsupported",
        )
        .await;
        check(|it| it.supported.clear(), "platform_unsupported").await;
        check(|it| it.binary_path = None, "binary_path_missing").await;
        check(|it| it.expected_digest = None, "digest_missing").await;
        check(
            |it| it.expected_digest = Some("F".repeat(64)),
            "digest_malformed",
        )
        .await;
        check(
            |it| it.expected_digest = Some(format!("sha256:{}", "0".repeat(64))),
            "digest_malformed",
        )
        .await;
    }
}
