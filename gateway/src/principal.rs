//! Who calls: principals, their roles and what each role may call.
//!
//! A principal is known by a bearer token, of which the gateway holds only the SHA-256, or by the user id of
//! the peer of the Unix socket. A caller that shows a token is judged by that token alone: a bad one never
//! falls back to the user id.

pub mod access;
pub mod token;

use std::{fmt, sync::Arc};

use maka_cu_protocol::ids::Digest;
use serde::Deserialize;
use subtle::{Choice, ConstantTimeEq as _};

use crate::config::{
    policy::DEFAULT_SET,
    principals::{Credential, Grant, PrincipalConfig, Principals},
    value::Name,
};

/// What a principal may call; the table is [`access::TABLE`].
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Drives the desktop in its own sessions.
    #[default]
    Agent,
    /// Looks at the gateway's state.
    Viewer,
    /// Works on policies.
    Author,
    /// Everything.
    Operator,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Viewer, Self::Author, Self::Operator];

    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Viewer => "viewer",
            Self::Author => "author",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// An authenticated caller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Principal {
    /// Its configured name.
    pub name: Arc<str>,
    /// What it may call.
    pub role: Role,
    /// Authority that policies ask for by name.
    pub grants: Arc<[String]>,
    /// The policy set that judges it.
    pub policy_set: Arc<str>,
}

impl Principal {
    /// The word that policies see for role `operator`.
    pub const ADMIN: &'static str = "admin";

    fn new(name: &str, role: Role, grants: &[Grant], policy_set: &str) -> Self {
        let mut words: Vec<String> = grants
            .iter()
            .map(|grant| grant.as_str().to_owned())
            .collect();
        if role == Role::Operator {
            words.push(Self::ADMIN.to_owned());
        }
        Self {
            name: name.into(),
            role,
            grants: words.into(),
            policy_set: policy_set.into(),
        }
    }
}

/// All principals, ready to be asked.
#[derive(Debug)]
pub struct Directory {
    by_token: Vec<(Digest, Principal)>,
    by_user: Vec<(u32, Principal)>,
}

impl Directory {
    /// Takes the configured principals.
    #[must_use]
    pub fn new(principals: &Principals) -> Self {
        let mut directory = Self {
            by_token: Vec::new(),
            by_user: Vec::new(),
        };
        for PrincipalConfig {
            name,
            role,
            credential,
            grants,
            policy_set,
        } in &principals.0
        {
            let set = policy_set.as_ref().map_or(DEFAULT_SET, Name::as_str);
            let principal = Principal::new(name.as_str(), *role, grants, set);
            match credential {
                Credential::Token(digest) => directory.by_token.push((*digest, principal)),
                Credential::UnixUser(uid) => directory.by_user.push((*uid, principal)),
            }
        }
        directory
    }

    /// The principal who holds this token. Takes the same time whichever token it is, or none.
    #[must_use]
    pub fn by_token(&self, token: &[u8]) -> Option<&Principal> {
        let shown = Digest::of(token);
        let mut found = None;
        for (digest, principal) in &self.by_token {
            let equal: Choice = digest.as_bytes().ct_eq(shown.as_bytes());
            if bool::from(equal) {
                found = Some(principal);
            }
        }
        found
    }

    /// The principal who is this user on the Unix socket.
    #[must_use]
    pub fn by_user(&self, uid: u32) -> Option<&Principal> {
        self.by_user
            .iter()
            .find(|(user, _)| *user == uid)
            .map(|(_, principal)| principal)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    #[test]
    fn a_token_names_its_principal_and_nothing_else_does() {
        let token = token::Token::generate();
        let text = format!(
            "state_dir = \"/s\"\n[[principals]]\nname = \"a\"\ntoken_sha256 = \"{}\"\n\
             [[principals]]\nname = \"u\"\nrole = \"viewer\"\nunix_uid = 7\n",
            token.digest().to_hex()
        );
        let config = Config::parse(Path::new("gateway.toml"), &text).unwrap();
        let directory = Directory::new(&config.principals);
        let found = directory.by_token(token.reveal().as_bytes()).unwrap();
        assert_eq!((&*found.name, found.role), ("a", Role::Agent));
        assert_eq!(directory.by_token(b""), None);
        assert_eq!(directory.by_token(&token.reveal().as_bytes()[1..]), None);
        assert_eq!(
            directory.by_token(token.digest().to_hex().as_bytes()),
            None,
            "the digest is not the token"
        );
        assert_eq!(
            directory.by_user(7).map(|principal| principal.role),
            Some(Role::Viewer)
        );
        assert_eq!(directory.by_user(8), None);
    }
}
