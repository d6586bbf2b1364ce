//! Which kind of session this environment is in, for whoever names no back end.

use super::compositor;
use super::doctor::connect;
use crate::backend::BackendKind;

/// What `DISPLAY` leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum XDisplay {
    /// Nothing that can be used.
    None,
    /// A server that is itself a client of a Wayland compositor.
    Xwayland,
    /// A server with a screen of its own.
    Real,
}

/// The back end that a bare command drives here.
#[must_use]
pub(super) fn kind() -> BackendKind {
    // Without a compositor there is nothing to choose, and a refusal says best what the X display lacks.
    if !compositor::is_named() {
        return BackendKind::Linux;
    }
    choose(match connect() {
        Ok(screen) if screen.extensions.xwayland => XDisplay::Xwayland,
        Ok(_) => XDisplay::Real,
        Err(_) => XDisplay::None,
    })
}

/// Beside a compositor. An X server with a screen of its own was named on purpose, as by `maka-desktop`. Through Xwayland
/// only X programs are seen, and to miss most of what a person sees without a word is worse than to have no pictures.
const fn choose(display: XDisplay) -> BackendKind {
    match display {
        XDisplay::Real => BackendKind::Linux,
        XDisplay::Xwayland | XDisplay::None => BackendKind::Wayland,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_a_compositor_only_a_screen_of_its_own_counts() {
        assert_eq!(choose(XDisplay::Real), BackendKind::Linux);
        assert_eq!(choose(XDisplay::Xwayland), BackendKind::Wayland);
        assert_eq!(choose(XDisplay::None), BackendKind::Wayland);
    }
}
