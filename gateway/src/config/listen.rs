//! Section `[listen]`: the Unix socket and the loopback TCP address.

use serde::{Deserialize, Deserializer, de};

use super::value::{AbsolutePath, LoopbackAddress};

/// Where the gateway listens.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum ListenConfig {
    /// No section: `maka-gateway.sock` in the state folder and `127.0.0.1:50051`.
    #[default]
    Default,
    /// Exactly these; at least one.
    Named {
        /// The socket's path.
        unix: Option<AbsolutePath>,
        /// The address.
        tcp: Option<LoopbackAddress>,
    },
}

impl ListenConfig {
    /// The TCP address, when one is served.
    #[must_use]
    pub fn tcp(&self) -> Option<LoopbackAddress> {
        match self {
            Self::Default => Some(LoopbackAddress(([127, 0, 0, 1], 50051).into())),
            Self::Named { tcp, .. } => *tcp,
        }
    }
}

impl<'de> Deserialize<'de> for ListenConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Section {
            unix: Option<AbsolutePath>,
            tcp: Option<LoopbackAddress>,
        }
        let Section { unix, tcp } = Section::deserialize(deserializer)?;
        if unix.is_none() && tcp.is_none() {
            return Err(de::Error::custom(
                "names no listener; write `unix`, `tcp` or both, or leave the section out for the defaults",
            ));
        }
        Ok(Self::Named { unix, tcp })
    }
}
