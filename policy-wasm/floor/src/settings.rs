//! The floor's one setting, and the form in which it is handed to each decision.
//!
//! The host hands settings over as canonical JSON, so the few texts that mean something can be compared whole. That
//! keeps a JSON parser, and everything that can be got wrong in one, out of the floor.

/// How a caller without the grant `global-pointer` may move the global pointer, where the handshake allows it at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GlobalPointer {
    /// Not at all.
    #[default]
    Grant,
    /// With a person's approval of that one action.
    Approval,
}

/// The settings of the floor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// What happens without the grant.
    pub global_pointer: GlobalPointer,
}

/// What is wrong with the settings, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsError {
    /// A JSON pointer.
    pub pointer: &'static str,
    /// What is wrong.
    pub code: &'static str,
}

impl std::fmt::Display for SettingsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "floor settings are not accepted at `{}`: {}",
            self.pointer, self.code
        )
    }
}

impl std::error::Error for SettingsError {}

impl Settings {
    /// The JSON schema that the manifest carries.
    pub const SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"global_pointer":{"enum":["grant","approval"],"default":"grant"}}}"#;

    /// Reads canonical JSON.
    ///
    /// # Errors
    ///
    /// Anything but the texts that [`SCHEMA`](Self::SCHEMA) describes, in canonical form.
    pub fn parse(canonical: &str) -> Result<Self, SettingsError> {
        match canonical {
            "{}" | r#"{"global_pointer":"grant"}"# => Ok(Self {
                global_pointer: GlobalPointer::Grant,
            }),
            r#"{"global_pointer":"approval"}"# => Ok(Self {
                global_pointer: GlobalPointer::Approval,
            }),
            other if other.starts_with(r#"{"global_pointer":"#) => Err(SettingsError {
                pointer: "/global_pointer",
                code: "not_in_schema",
            }),
            _ => Err(SettingsError {
                pointer: "",
                code: "not_in_schema",
            }),
        }
    }

    /// The form that each decision gets.
    #[must_use]
    pub fn to_prepared(self) -> Vec<u8> {
        match self.global_pointer {
            GlobalPointer::Grant => vec![0],
            GlobalPointer::Approval => vec![1],
        }
    }

    /// Reads that form. Bytes that [`to_prepared`](Self::to_prepared) does not make mean the strictest settings.
    #[must_use]
    pub fn from_prepared(bytes: &[u8]) -> Self {
        match bytes {
            [1] => Self {
                global_pointer: GlobalPointer::Approval,
            },
            _ => Self::default(),
        }
    }
}
