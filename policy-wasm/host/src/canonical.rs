//! Canonical JSON: one text per value, and a strict reader for texts that come from outside.
//!
//! What is judged is what is forwarded, so a call is reduced to one text before it is judged and that text is what
//! travels on: object keys sorted by their bytes, no white space, numbers as `serde_json` prints them. The reader refuses
//! what two parsers could read in two ways: a key that occurs twice, and depth without end. Numbers are finite and text
//! is valid Unicode by JSON's own grammar.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How deep objects and arrays may be nested.
pub const MAX_DEPTH: usize = 32;

/// Why a value has no canonical text.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// It is not JSON, an object has a key twice, or it is too deep.
    #[error("the text is not JSON that can be judged")]
    Parse(#[source] serde_json::Error),
    /// It is nested too deep.
    #[error("the value is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Reads a text from outside.
///
/// # Errors
///
/// When it is not JSON, when an object has a key twice, and when it is nested deeper than [`MAX_DEPTH`].
pub fn parse(text: &str) -> Result<Value, CanonicalError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict { depth: 0 }
        .deserialize(&mut reader)
        .map_err(CanonicalError::Parse)?;
    reader.end().map_err(CanonicalError::Parse)?;
    Ok(value)
}

/// The canonical text of a value.
///
/// # Errors
///
/// [`CanonicalError::TooDeep`].
pub fn text(value: &Value) -> Result<String, CanonicalError> {
    let mut out = String::new();
    write(value, 0, &mut out)?;
    Ok(out)
}

fn write(value: &Value, depth: usize, out: &mut String) -> Result<(), CanonicalError> {
    if depth > MAX_DEPTH {
        return Err(CanonicalError::TooDeep);
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, depth + 1, out)?;
            }
            out.push(']');
        }
        Value::Object(members) => {
            // The map of `serde_json` is sorted only while nobody in the build turns on `preserve_order`.
            let mut keys: Vec<_> = members.iter().collect();
            keys.sort_unstable_by_key(|(key, _)| key.as_bytes());
            out.push('{');
            for (at, (key, member)) in keys.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                write(member, depth + 1, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn write_string(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).expect("a string always serialises"));
}

/// Builds a [`Value`] and refuses what `serde_json` lets pass.
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(&self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom("nested too deep"));
        }
        Ok(Self {
            depth: self.depth + 1,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self.deeper()?)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom("a key occurs twice"));
            }
            let member = members.next_value_seed(self.deeper()?)?;
            object.insert(key, member);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_two_parsers_could_read_in_two_ways_is_refused() {
        for bad in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"x":[{"a":1,"a":1}]}"#,
            "1e999",
            "NaN",
            "{} {}",
            "",
            "{\"a\":1,}",
            "\"\\ud800\"",
            &"[".repeat(100_000),
        ] {
            assert!(parse(bad).is_err(), "{}", &bad[..bad.len().min(40)]);
        }
    }

    #[test]
    fn depth_is_bounded_on_both_sides() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let value = parse(&nested(MAX_DEPTH)).unwrap();
        assert_eq!(text(&value).unwrap(), nested(MAX_DEPTH));
        assert!(parse(&nested(MAX_DEPTH + 1)).is_err());
        assert!(matches!(
            text(&Value::Array(vec![value])),
            Err(CanonicalError::TooDeep)
        ));
    }

    #[test]
    fn keys_are_sorted_and_white_space_is_gone() {
        let value = parse(
            " { \"b\" : [ 1 , 2.50 , -0.0 ] , \"a\" : { \"é\" : null , \"z\" : \"\\u0041\\/\" } } ",
        )
        .unwrap();
        assert_eq!(
            text(&value).unwrap(),
            r#"{"a":{"z":"A/","é":null},"b":[1,2.5,-0.0]}"#
        );
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>()
                .prop_filter("finite", |f| f.is_finite())
                .prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reading_the_text_gives_the_value_and_the_same_text(value in values()) {
            let once = text(&value).unwrap();
            let again = parse(&once).unwrap();
            prop_assert_eq!(text(&again).unwrap(), once);
            prop_assert_eq!(again, value);
        }

        #[test]
        fn no_text_panics(input in ".{0,64}") {
            if let Ok(value) = parse(&input) {
                text(&value).unwrap();
            }
        }
    }
}
