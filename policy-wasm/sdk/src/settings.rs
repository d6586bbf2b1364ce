//! Settings, from canonical JSON to the type of a policy.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::contract::SettingsError;

/// The settings of a policy that has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// Settings that do not make sense, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    pointer: String,
    code: String,
}

impl Misfit {
    /// `pointer` is a JSON pointer, such as `/open`; `code` is a word or a few that say what is wrong there.
    #[must_use]
    pub fn at(pointer: impl Into<String>, code: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            code: code.into(),
        }
    }
}

impl From<Misfit> for SettingsError {
    fn from(misfit: Misfit) -> Self {
        let Misfit { pointer, code } = misfit;
        Self { pointer, code }
    }
}

/// Reads settings.
///
/// # Errors
///
/// The first place that does not fit the type.
pub fn parse<T: DeserializeOwned>(json: &str) -> Result<T, Misfit> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let value = serde_path_to_error::deserialize(&mut reader)
        // What serde says can hold the value, which is not for logs: the place has to do.
        .map_err(|error| Misfit::at(pointer(error.path()), "does_not_fit"))?;
    reader.end().map_err(|_| Misfit::at("", "not_one_value"))?;
    Ok(value)
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        let part = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.replace('~', "~0").replace('/', "~1"),
            // The variant of an enum is no place in the JSON of its own, and what is unknown has none.
            Segment::Enum { .. } | Segment::Unknown => continue,
        };
        pointer.push('/');
        pointer.push_str(&part);
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Hours {
        #[serde(default)]
        days: Vec<u8>,
        open: Option<String>,
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_pointer() {
        let hours = parse::<Hours>(r#"{"days":[1,2],"open":"08:00"}"#);
        assert_eq!(hours.map(|hours| hours.days), Ok(vec![1, 2]));
        for (json, pointer) in [
            (r#"{"days":[1,"two"]}"#, "/days/1"),
            (r#"{"open":8}"#, "/open"),
            (r#"{"closed":8}"#, "/closed"),
            ("[]", ""),
            ("{} {}", ""),
        ] {
            let misfit = parse::<Hours>(json).expect_err(json);
            assert_eq!(misfit.pointer, pointer, "{json}");
            assert!(!misfit.code.contains("two"), "{}", misfit.code);
        }
        assert_eq!(parse("{}"), Ok(NoSettings {}));
        assert!(parse::<NoSettings>(r#"{"a":1}"#).is_err());
    }
}
