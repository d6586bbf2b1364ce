//! Checks settings against the schema of a manifest.
//!
//! The schema is the part of JSON Schema that settings need: `type`, `properties`, `required`, `additionalProperties`,
//! `items`, `enum`, `minimum`, `maximum`, and the annotations `default`, `title` and `description`. A schema that uses
//! anything else is refused rather than half understood. An object takes no key that it does not name.

use serde_json::Value;

use crate::canonical::MAX_DEPTH;

/// What does not fit. The pointer names a place in the settings, or in the schema when that is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The settings do not have the form the policy declares.
    #[error("the settings do not fit the schema of the policy at `{0}`")]
    Settings(String),
    /// The schema says something that is not understood here.
    #[error("the settings schema of the policy is not understood at `{0}`")]
    Schema(String),
}

/// Checks `settings` against `schema`.
///
/// # Errors
///
/// The first place that does not fit.
pub fn check(schema: &Value, settings: &Value) -> Result<(), SchemaError> {
    walk(schema, settings, "", 0)
}

fn walk(schema: &Value, value: &Value, at: &str, depth: usize) -> Result<(), SchemaError> {
    let misfit = || SchemaError::Settings(at.to_owned());
    let unclear = || SchemaError::Schema(at.to_owned());
    if depth > MAX_DEPTH {
        return Err(unclear());
    }
    for (keyword, rule) in schema.as_object().ok_or_else(unclear)? {
        let fits = match keyword.as_str() {
            "default" | "title" | "description" => true,
            "type" => is_type(rule.as_str().ok_or_else(unclear)?, value).ok_or_else(unclear)?,
            "enum" => rule.as_array().ok_or_else(unclear)?.contains(value),
            "minimum" => {
                let least = rule.as_f64().ok_or_else(unclear)?;
                value.as_f64().is_none_or(|number| number >= least)
            }
            "maximum" => {
                let most = rule.as_f64().ok_or_else(unclear)?;
                value.as_f64().is_none_or(|number| number <= most)
            }
            "required" => {
                let names = rule.as_array().ok_or_else(unclear)?;
                names
                    .iter()
                    .all(|name| name.as_str().is_some_and(|name| value.get(name).is_some()))
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    walk(rule, item, &format!("{at}/{index}"), depth + 1)?;
                }
                true
            }
            "properties" => {
                rule.as_object().ok_or_else(unclear)?;
                true
            }
            // Said or not, unknown keys are refused.
            "additionalProperties" => {
                if rule != &Value::Bool(false) {
                    return Err(unclear());
                }
                true
            }
            _ => return Err(unclear()),
        };
        if !fits {
            return Err(misfit());
        }
    }
    for (key, member) in value.as_object().into_iter().flatten() {
        let Some(rule) = schema
            .get("properties")
            .and_then(|properties| properties.get(key))
        else {
            return Err(SchemaError::Settings(member_at(at, key)));
        };
        walk(rule, member, &member_at(at, key), depth + 1)?;
    }
    Ok(())
}

/// The JSON pointer of a member. A key is whatever somebody wrote, so that a long one is not repeated.
fn member_at(at: &str, key: &str) -> String {
    if key.len() > 64 || key.chars().any(char::is_control) {
        return format!("{at}/?");
    }
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn is_type(name: &str, value: &Value) -> Option<bool> {
    Some(match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_named() {
        let schema = json!({"type": "object", "required": ["open"], "additionalProperties": false, "properties": {
            "open": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "hours": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 23}},
        }});
        let settings = |at: &str| Err(SchemaError::Settings(at.to_owned()));
        let rows = [
            (json!({"open": "a", "hours": [0, 23]}), Ok(())),
            (json!({}), settings("")),
            (json!([]), settings("")),
            (json!({"open": "a", "more": 1}), settings("/more")),
            (json!({"open": "a", "m/~": 1}), settings("/m~1~0")),
            (json!({"open": "a", "m\n": 1}), settings("/?")),
            (json!({"open": "c"}), settings("/open")),
            (json!({"open": "a", "hours": [1, 24]}), settings("/hours/1")),
            (json!({"open": "a", "hours": [1.5]}), settings("/hours/0")),
        ];
        for (value, expected) in rows {
            assert_eq!(check(&schema, &value), expected, "{value}");
        }
        for bad in [
            json!({"oneOf": []}),
            json!({"type": "date"}),
            json!({"additionalProperties": true}),
            json!(true),
        ] {
            assert!(
                matches!(check(&bad, &json!({})), Err(SchemaError::Schema(_))),
                "{bad}"
            );
        }
    }
}
