//! Refusals: the `ok:false` arm (§1.2, §1.3). Codes, enums and numbers only.

use serde_json::{Map, Value};

use crate::{
    domain::DomainCode,
    json::{Fields, Json, ObjectWriter, Reason, Violation},
    sets::{ChangedInput, Path, Permission},
};

/// What goes with a code: enums and numbers, never text.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Detail {
    /// Which digest inputs changed.
    pub changed: Vec<ChangedInput>,
    /// The forbidden path that would have been needed.
    pub would_require_path: Option<Path>,
    /// The permission that is missing.
    pub permission: Option<Permission>,
    /// The size that was too large, in bytes.
    pub bytes: Option<u64>,
    /// The limit it broke, in bytes.
    pub limit: Option<u64>,
}

impl Json for Detail {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        Ok(Self {
            changed: fields.get_or("changed", Vec::new())?,
            would_require_path: fields.get("wouldRequirePath")?,
            permission: fields.get("permission")?,
            bytes: fields.get("bytes")?,
            limit: fields.get("limit")?,
        })
    }

    fn write(&self) -> Value {
        ObjectWriter::new()
            .with(
                "changed",
                &(!self.changed.is_empty()).then(|| self.changed.clone()),
            )
            .with("wouldRequirePath", &self.would_require_path)
            .with("permission", &self.permission)
            .with("bytes", &self.bytes)
            .with("limit", &self.limit)
            .finish()
    }
}

/// A refusal: a code from the closed set and what goes with it. The peer's sentence is checked for being there and then
/// dropped: a reader writes its own, chosen by the code.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("refused with `{code}`")]
pub struct Refusal {
    /// Why.
    pub code: DomainCode,
    /// What goes with it.
    pub detail: Detail,
}

impl Refusal {
    /// A refusal without detail.
    #[must_use]
    pub fn new(code: DomainCode) -> Self {
        Self {
            code,
            detail: Detail::default(),
        }
    }

    /// `element_changed` and its kind, naming the inputs.
    #[must_use]
    pub fn changed(code: DomainCode, changed: Vec<ChangedInput>) -> Self {
        Self {
            code,
            detail: Detail {
                changed,
                ..Detail::default()
            },
        }
    }

    /// `dispatch_refused` because only a forbidden path would do.
    #[must_use]
    pub fn would_require(path: Path) -> Self {
        let detail = Detail {
            would_require_path: Some(path),
            ..Detail::default()
        };
        Self {
            code: DomainCode::DispatchRefused,
            detail,
        }
    }

    /// `permission_missing`, naming the permission.
    #[must_use]
    pub fn permission(permission: Permission) -> Self {
        let detail = Detail {
            permission: Some(permission),
            ..Detail::default()
        };
        Self {
            code: DomainCode::PermissionMissing,
            detail,
        }
    }

    /// `response_too_large`, with the size and the limit.
    #[must_use]
    pub fn too_large(bytes: u64, limit: u64) -> Self {
        let detail = Detail {
            bytes: Some(bytes),
            limit: Some(limit),
            ..Detail::default()
        };
        Self {
            code: DomainCode::ResponseTooLarge,
            detail,
        }
    }
}

impl From<DomainCode> for Refusal {
    fn from(code: DomainCode) -> Self {
        Self::new(code)
    }
}

impl Json for Refusal {
    fn read(value: &Value) -> Result<Self, Violation> {
        let fields = Fields::of(value)?;
        let code = fields.get("code")?;
        if fields.get::<String>("message")?.is_empty() {
            return Err(Violation::of("message", Reason::Empty));
        }
        let detail = match fields.raw("detail") {
            Some(detail @ Value::Object(_)) => {
                Detail::read(detail).map_err(|violation| violation.at("detail"))?
            }
            // §7 keeps the detail only if it is an object.
            _ => Detail::default(),
        };
        Ok(Self { code, detail })
    }

    fn write(&self) -> Value {
        let error = ObjectWriter::new()
            .with("code", &self.code)
            .word("message", self.code.sentence());
        let detail = self.detail.write();
        if detail.as_object().is_none_or(Map::is_empty) {
            return error.finish();
        }
        error
            .merge(Value::Object(Map::from_iter([(
                "detail".to_owned(),
                detail,
            )])))
            .finish()
    }
}
