//! The call that is judged and forwarded.

use serde_json::Value;

use crate::canonical::{self, CanonicalError};

/// Members that say who asks, which attempt it is and what is wanted afterwards, not what is to be done. Snapshot and
/// digests are left in the fingerprint by their own fields.
const NOT_ACTION: &[&str] = &["session", "toolCallId", "snapshotId", "observeAfter"];

/// An executor method with its parameters in canonical form. It is no authority to send anything: see
/// [`Permit`](crate::permit::Permit).
#[derive(Clone, PartialEq, Eq)]
pub struct ExecutorCall {
    method: &'static str,
    params: String,
    action: String,
}

impl std::fmt::Debug for ExecutorCall {
    // The parameters can hold typed text.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecutorCall")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl ExecutorCall {
    /// Fixes the text that is judged and forwarded. The envelope around it is the sender's.
    ///
    /// # Errors
    ///
    /// When the parameters are nested too deep.
    pub fn new(method: &'static str, params: &Value) -> Result<Self, CanonicalError> {
        let action = match params {
            Value::Object(members) => {
                let kept = members
                    .iter()
                    .filter(|(key, _)| !NOT_ACTION.contains(&key.as_str()));
                canonical::text(&Value::Object(
                    kept.map(|(key, member)| (key.clone(), member.clone()))
                        .collect(),
                ))?
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => canonical::text(params)?,
        };
        Ok(Self {
            method,
            params: canonical::text(params)?,
            action,
        })
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// The parameters: exactly what was judged.
    #[must_use]
    pub fn params(&self) -> &str {
        &self.params
    }

    /// Method and parameters, for the sender.
    #[must_use]
    pub fn into_parts(self) -> (&'static str, String) {
        (self.method, self.params)
    }

    /// What is to be done, without what changes from one attempt to the next: an input of the fingerprint.
    pub(crate) fn action(&self) -> &str {
        &self.action
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_action_does_not_depend_on_the_attempt() {
        let call = |id: &str, count: u32| {
            let params = json!({"toolCallId": id, "session": "s", "action": {"kind": "click", "count": count}});
            ExecutorCall::new("dispatch.element", &params).unwrap()
        };
        assert_eq!(call("a", 1).action(), call("b", 1).action());
        assert_ne!(call("a", 1).action(), call("a", 2).action());
        assert_eq!(
            call("a", 1).params(),
            r#"{"action":{"count":1,"kind":"click"},"session":"s","toolCallId":"a"}"#
        );
        assert_eq!(
            format!("{:?}", call("a", 1)),
            r#"ExecutorCall { method: "dispatch.element", .. }"#
        );
    }
}
