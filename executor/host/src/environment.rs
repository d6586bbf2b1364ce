//! The environment an executor is given.
//!
//! Owns the allow-list: an executor needs to find the desktop, the session bus and a home, and nothing else of what the host
//! happens to carry (tokens, cloud credentials, proxies). It reads no file and sets nothing in the host itself.
//!
//! INVARIANT: values never appear in `Debug`, because an operator may well pass a secret through `extra`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// Variables passed through when the host has them.
const ALLOWED: [&str; 11] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TZ",
    "TMPDIR",
    "DISPLAY",
    "XAUTHORITY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "AT_SPI_BUS_ADDRESS",
];

/// Families of variables passed through when the host has them: locale categories and the desktop's base directories.
const ALLOWED_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// The complete environment of a child: what it contains is what the child sees.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ChildEnvironment {
    variables: BTreeMap<OsString, OsString>,
}

impl ChildEnvironment {
    /// The allowed part of this process's environment, then `extra`, which wins.
    #[must_use]
    pub fn from_host(extra: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self::from_vars(std::env::vars_os(), extra)
    }

    /// As [`ChildEnvironment::from_host`], from variables given by the caller.
    #[must_use]
    pub fn from_vars(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        extra: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let inherited = variables.into_iter().filter(|(name, _)| is_allowed(name));
        Self {
            variables: inherited.chain(extra).collect(),
        }
    }

    /// The variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl fmt::Debug for ChildEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

fn is_allowed(name: &OsStr) -> bool {
    // A name that is not UTF-8 is on no list.
    name.to_str().is_some_and(|name| {
        ALLOWED.contains(&name)
            || ALLOWED_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(names: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        names
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    /// Field report H21: secrets of the host stay with the host.
    #[test]
    fn only_the_allow_list_and_the_extras_remain() {
        let host = pairs(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
            ("DISPLAY", ":1"),
            ("API_TOKEN", "x"),
            ("AWS_SECRET", "y"),
            ("LD_PRELOAD", "z"),
            ("path", "lower case is another name"),
        ]);
        let environment =
            ChildEnvironment::from_vars(host, pairs(&[("DISPLAY", ":7"), ("EXTRA", "1")]));
        let seen: Vec<_> = environment
            .iter()
            .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
            .collect();
        let expected = [
            ("DISPLAY", ":7"),
            ("EXTRA", "1"),
            ("LC_ALL", "C"),
            ("PATH", "/bin"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn debug_shows_names_only() {
        let environment = ChildEnvironment::from_vars([], pairs(&[("EXTRA", "canary")]));
        assert_eq!(format!("{environment:?}"), r#"{"EXTRA"}"#);
    }
}
