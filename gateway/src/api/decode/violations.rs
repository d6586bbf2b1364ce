//! The bad fields of one request.

use tonic::Status;

use crate::api::status;

/// One bad field.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Violation {
    /// Its path in the proto, for example `point.start.x`.
    pub(crate) field: String,
    /// What holds for it. Never quotes the value.
    pub(crate) rule: &'static str,
}

/// All bad fields that were found.
#[derive(Debug, Default)]
pub(crate) struct Violations(Vec<Violation>);

impl Violations {
    /// Notes a bad field.
    pub(crate) fn add(&mut self, field: impl Into<String>, rule: &'static str) {
        self.0.push(Violation {
            field: field.into(),
            rule,
        });
    }

    /// Notes a bad field and stands for its missing value.
    pub(crate) fn refuse<T>(&mut self, field: impl Into<String>, rule: &'static str) -> Option<T> {
        self.add(field, rule);
        None
    }

    /// The decoded value, when nothing was bad.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with one field violation for each bad field.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Status> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            Some(_) | None => {
                debug_assert!(
                    !self.0.is_empty(),
                    "a value is missing only where a field is bad"
                );
                Err(status::malformed(self))
            }
        }
    }
}

impl IntoIterator for Violations {
    type Item = Violation;
    type IntoIter = std::vec::IntoIter<Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
