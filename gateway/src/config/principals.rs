//! Section `[[principals]]`: who may call, by bearer token or by the Unix user of the peer.

use maka_cu_protocol::ids::Digest;
use serde::{Deserialize, Deserializer, de};

use super::value::{Name, Sha256};
use crate::principal::Role;

/// The principals: distinct names, distinct tokens, distinct users.
#[derive(Clone, Debug, Default)]
pub struct Principals(pub Vec<PrincipalConfig>);

/// One principal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PrincipalConfig {
    /// Its name, in records and in `ListSessions`.
    pub name: Name,
    /// What it may call.
    pub role: Role,
    /// How it is known.
    pub credential: Credential,
    /// What it may do that others may not.
    pub grants: Vec<Grant>,
    /// The policy set that judges it; absent: `default`.
    pub policy_set: Option<Name>,
}

/// Authority that a policy asks for by name and that only the configuration gives.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// Actions that move the system pointer, where `allow_global_pointer` permits them at all.
    GlobalPointer,
    /// Writing into password fields.
    SecureField,
}

impl Grant {
    /// The word that policies see.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GlobalPointer => "global-pointer",
            Self::SecureField => "secure-field",
        }
    }
}

/// How a principal is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Credential {
    /// It sends a bearer token with this SHA-256.
    Token(Digest),
    /// It is the peer of the Unix socket, by user id.
    UnixUser(u32),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Name,
    #[serde(default)]
    role: Role,
    token_sha256: Option<Sha256>,
    unix_uid: Option<UnixUser>,
    #[serde(default)]
    grants: Vec<Grant>,
    policy_set: Option<Name>,
}

/// A user id, or `self` for the user that runs the gateway.
struct UnixUser(u32);

impl<'de> Deserialize<'de> for UnixUser {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let refused = || {
            de::Error::custom(
                "write a user id such as `1000`, or `\"self\"` for the user of the gateway",
            )
        };
        match toml::Value::deserialize(deserializer).map_err(|_| refused())? {
            toml::Value::Integer(id) => u32::try_from(id).map(Self).map_err(|_| refused()),
            toml::Value::String(word) if word == "self" => {
                Ok(Self(nix::unistd::Uid::current().as_raw()))
            }
            toml::Value::String(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_)
            | toml::Value::Table(_) => Err(refused()),
        }
    }
}

impl<'de> Deserialize<'de> for PrincipalConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Entry {
            name,
            role,
            token_sha256,
            unix_uid,
            grants,
            policy_set,
        } = Entry::deserialize(deserializer)?;
        let credential = match (token_sha256, unix_uid) {
            (Some(Sha256(digest)), None) => Credential::Token(digest),
            (None, Some(UnixUser(uid))) => Credential::UnixUser(uid),
            (None, None) => {
                return Err(de::Error::custom(
                    "a principal needs a credential; write `token_sha256` (see `maka-gateway token`) or `unix_uid`",
                ));
            }
            (Some(_), Some(_)) => {
                return Err(de::Error::custom(
                    "a principal has one credential; write `token_sha256` or `unix_uid` and give the other its own entry",
                ));
            }
        };
        // The programs that agents drive run as the desktop's user: a role that may do everything must not follow from that.
        if role == Role::Operator && matches!(credential, Credential::UnixUser(_)) {
            return Err(de::Error::custom(
                "an operator is known by a token only; write `token_sha256`",
            ));
        }
        Ok(Self {
            name,
            role,
            credential,
            grants,
            policy_set,
        })
    }
}

impl<'de> Deserialize<'de> for Principals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let principals = Vec::<PrincipalConfig>::deserialize(deserializer)?;
        for (index, principal) in principals.iter().enumerate() {
            if principals[..index]
                .iter()
                .any(|earlier| earlier.name == principal.name)
            {
                return Err(de::Error::custom(
                    "two principals have the same name; name each once",
                ));
            }
            if principals[..index]
                .iter()
                .any(|earlier| earlier.credential == principal.credential)
            {
                return Err(de::Error::custom(
                    "two principals have the same credential; give each its own",
                ));
            }
        }
        Ok(Self(principals))
    }
}
