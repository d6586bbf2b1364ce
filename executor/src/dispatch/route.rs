//! Which way synthetic input takes, and whether it may go at all (spec §3.8, §6.4, §10.5).

use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::refusal::Refusal;
use maka_cu_protocol::sets::Path;

use crate::backend::input::{InputRoute, Reach};
use crate::deadline::Deadline;
use crate::executor::{Executor, Fault};

/// Which mechanism a caller accepts. The specific methods accept any; a generic one may name the only one (spec §9.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    only: Option<Path>,
}

impl Terms {
    /// Whatever is legal.
    pub const ANY: Self = Self { only: None };

    /// This path and no other, or any.
    #[must_use]
    pub const fn only(path: Option<Path>) -> Self {
        Self { only: path }
    }

    /// Whether every path is accepted, so that nobody has to find out which it will be.
    #[must_use]
    pub const fn accept_any(self) -> bool {
        self.only.is_none()
    }

    /// Holds the path that would be taken to the terms.
    ///
    /// # Errors
    /// `dispatch_refused`, naming that path.
    pub fn check(self, path: Path) -> Result<(), Fault> {
        match self.only {
            Some(only) if only != path => Err(Refusal::would_require(path).into()),
            Some(_) | None => Ok(()),
        }
    }
}

/// The route that a reach leaves, given what the host permits.
///
/// # Errors
/// `dispatch_refused`, naming the path that would be needed and is not permitted, or without one when there is no way.
pub fn choose(reach: Reach, allow_global_pointer: bool) -> Result<InputRoute, Fault> {
    match (reach, allow_global_pointer) {
        (Reach::Window, _) => Ok(InputRoute::Window),
        (Reach::GlobalOnly, true) => Ok(InputRoute::Global),
        (Reach::GlobalOnly, false) => Err(Refusal::would_require(Path::CgEventGlobal).into()),
        (Reach::Never, _) => Err(DomainCode::DispatchRefused.into()),
    }
}

/// Keeps out of the way of a person at the desktop. Not to know whether there is one counts as yes.
///
/// # Errors
/// `physical_input_active`; `aborted` when the request was cancelled meanwhile.
pub fn keep_clear(executor: &Executor, deadline: &Deadline) -> Result<(), Fault> {
    match executor.backend().user_active(deadline) {
        Ok(false) => Ok(()),
        Ok(true) => Err(DomainCode::PhysicalInputActive.into()),
        Err(_) if deadline.is_cancelled() => Err(DomainCode::Aborted.into()),
        Err(error) => {
            tracing::warn!(%error, "a person's activity could not be read");
            Err(DomainCode::PhysicalInputActive.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec §12.5 row 54: a path that is not permitted is refused and named, never replaced by another.
    #[test]
    fn only_permission_opens_the_global_route() {
        let refused = |path| {
            Err(match path {
                Some(path) => Refusal::would_require(path).into(),
                None => DomainCode::DispatchRefused.into(),
            })
        };
        let rows = [
            (Reach::Window, false, Ok(InputRoute::Window)),
            (Reach::Window, true, Ok(InputRoute::Window)),
            (Reach::GlobalOnly, false, refused(Some(Path::CgEventGlobal))),
            (Reach::GlobalOnly, true, Ok(InputRoute::Global)),
            (Reach::Never, false, refused(None)),
            (Reach::Never, true, refused(None)),
        ];
        for (reach, allowed, expected) in rows {
            assert_eq!(choose(reach, allowed), expected, "{reach:?} {allowed}");
        }
    }
}
