//! Reading and writing JSON by one declaration per type.
//!
//! Owns the [`Json`] trait, the [`Violation`] that names the offending field, and the two declarative macros
//! (`closed_set!`, `record!`) from which every reader and its writer come together, so that the two cannot drift apart.
//!
//! Rules that hold for every reader here: no default is invented for a required field; `null` in an optional place means
//! absent, and nothing is ever *written* as `null`; whole numbers stay within the range in which every JSON
//! implementation agrees (±2⁵³−1, RFC 8259 §6); unknown keys are ignored; no error carries the value it refused.

use std::fmt;

use serde_json::{Map, Value};

/// Largest whole number that every JSON implementation reads back unchanged (RFC 8259 §6).
pub const MAX_WHOLE: u64 = (1 << 53) - 1;

/// Why a field was refused. A closed set: no variant holds a value that came over the wire.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
pub enum Reason {
    /// The field is required and absent.
    #[error("is required and absent")]
    Missing,
    /// Not an object.
    #[error("must be an object")]
    NotObject,
    /// Not an array.
    #[error("must be an array")]
    NotArray,
    /// Not a string.
    #[error("must be a string")]
    NotString,
    /// Not a boolean.
    #[error("must be true or false")]
    NotBool,
    /// Not a finite number.
    #[error("must be a finite number")]
    NotNumber,
    /// Not a whole number inside the field's range.
    #[error("must be a whole number within its range")]
    NotWhole,
    /// A string that must have content is empty.
    #[error("must not be empty")]
    Empty,
    /// Not a member of the field's closed set.
    #[error("is not a member of its closed set")]
    OutOfSet,
    /// Outside the allowed range.
    #[error("is outside its allowed range")]
    OutOfRange,
    /// Not `sha256:` and 64 lower-case hexadecimal digits.
    #[error("must be `sha256:` and 64 lower-case hex digits")]
    NotDigest,
    /// Not an absolute path without parent steps.
    #[error("must be an absolute path without parent steps")]
    NotAbsolutePath,
    /// An image path that is not inside the image directory.
    #[error("is outside the image directory")]
    OutsideImageDir,
    /// Present where the other fields forbid it.
    #[error("is not allowed together with the other fields")]
    NotAllowed,
    /// Two fields state things that cannot both be true.
    #[error("contradicts another field")]
    Contradiction,
    /// A path that does not belong to the tier beside it.
    #[error("is not a legal path of its tier")]
    IllegalPair,
    /// The global pointer was used without permission.
    #[error("uses the global pointer without permission")]
    GlobalPointer,
    /// Not the value that the request carried.
    #[error("differs from what the request said")]
    Mismatch,
    /// An identifier that must be unique appears twice.
    #[error("appears more than once")]
    Duplicate,
    /// Names something that the same message does not contain.
    #[error("names something that is not there")]
    Dangling,
}

/// A message that breaks the protocol: which field, and why.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("field `{field}` {reason}")]
pub struct Violation {
    /// Dotted protocol field name, for example `snapshot.elements[3].token`. Empty means the message as a whole.
    pub field: String,
    /// What is wrong with it.
    pub reason: Reason,
}

impl Violation {
    /// A violation of the value being read, without a name yet.
    #[must_use]
    pub const fn here(reason: Reason) -> Self {
        Self {
            field: String::new(),
            reason,
        }
    }

    /// A violation of the named field.
    #[must_use]
    pub fn of(field: &str, reason: Reason) -> Self {
        Self {
            field: field.to_owned(),
            reason,
        }
    }

    /// The same violation, seen from the object that holds `name`.
    #[must_use]
    pub fn at(self, name: &str) -> Self {
        let field = match self.field.as_bytes().first() {
            None => name.to_owned(),
            Some(b'[') => format!("{name}{}", self.field),
            Some(_) => format!("{name}.{}", self.field),
        };
        Self { field, ..self }
    }

    /// The same violation, seen from the array that holds the value at `index`.
    #[must_use]
    pub fn at_index(self, index: usize) -> Self {
        self.at(&format!("[{index}]"))
    }
}

/// A type with exactly one JSON form.
pub trait Json: Sized {
    /// Reads the value strictly.
    ///
    /// # Errors
    /// A [`Violation`] that names the field, relative to this value.
    fn read(value: &Value) -> Result<Self, Violation>;

    /// Writes the value. `Value::Null` means "absent" and is left out by whoever holds the field.
    fn write(&self) -> Value;

    /// What an absent key means; an error unless the type is optional.
    ///
    /// # Errors
    /// [`Reason::Missing`] for every type that is not optional.
    fn absent() -> Result<Self, Violation> {
        Err(Violation::here(Reason::Missing))
    }
}

/// The keys of one JSON object, read by name.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The keys of `value`.
    ///
    /// # Errors
    /// [`Reason::NotObject`] when it is anything else.
    pub fn of(value: &'a Value) -> Result<Self, Violation> {
        value
            .as_object()
            .map(|map| Self { map })
            .ok_or(Violation::here(Reason::NotObject))
    }

    /// Reads the key `name`; the type says whether it may be absent.
    ///
    /// # Errors
    /// A [`Violation`] that starts with `name`.
    pub fn get<T: Json>(&self, name: &str) -> Result<T, Violation> {
        match self.map.get(name) {
            Some(value) => T::read(value),
            None => T::absent(),
        }
        .map_err(|violation| violation.at(name))
    }

    /// Reads the key `name`, or takes `default` when it is absent or `null`. Only for fields whose default the
    /// protocol itself names.
    ///
    /// # Errors
    /// A [`Violation`] that starts with `name` when the key is there and unreadable.
    pub fn get_or<T: Json>(&self, name: &str, default: T) -> Result<T, Violation> {
        Ok(self.get::<Option<T>>(name)?.unwrap_or(default))
    }

    /// Reads a key that the protocol tells the reader to ignore unless it is usable.
    #[must_use]
    pub fn lenient<T: Json>(&self, name: &str) -> Option<T> {
        self.map.get(name).and_then(|value| T::read(value).ok())
    }

    /// Whether the key is present with something other than `null`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// The raw value of a key, if present and not `null`.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }
}

impl fmt::Debug for Fields<'_> {
    /// Prints no key and no value: both may hold application text.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Fields")
            .field("keys", &self.map.len())
            .finish_non_exhaustive()
    }
}

/// Collects the keys of an object, leaving out what is absent.
#[derive(Default)]
pub struct ObjectWriter {
    map: Map<String, Value>,
}

impl ObjectWriter {
    /// An object without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key, unless the value is absent.
    #[must_use]
    pub fn with<T: Json>(mut self, name: &str, value: &T) -> Self {
        self.put(name, value.write());
        self
    }

    /// Adds a key holding a fixed word.
    #[must_use]
    pub fn word(mut self, name: &str, word: &'static str) -> Self {
        self.put(name, Value::String(word.to_owned()));
        self
    }

    /// Adds every key of another written object.
    #[must_use]
    pub fn merge(mut self, other: Value) -> Self {
        if let Value::Object(other) = other {
            self.map.extend(other);
        }
        self
    }

    /// The finished object.
    #[must_use]
    pub fn finish(self) -> Value {
        Value::Object(self.map)
    }

    fn put(&mut self, name: &str, value: Value) {
        if !value.is_null() {
            self.map.insert(name.to_owned(), value);
        }
    }
}

impl fmt::Debug for ObjectWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ObjectWriter")
            .field("keys", &self.map.len())
            .finish_non_exhaustive()
    }
}

/// A whole number as JSON means it (`5` and `5.0` are the same number), within ±[`MAX_WHOLE`].
#[must_use]
pub fn whole(value: &Value) -> Option<i64> {
    const BOUND: i64 = MAX_WHOLE.cast_signed();
    let number = value.as_number()?;
    let whole = match number.as_i64() {
        Some(whole) => whole,
        None if number.is_u64() => return None,
        None => {
            let float = number.as_f64()?;
            if float.fract() != 0.0 || float.abs() > BOUND as f64 {
                return None;
            }
            whole_part(float)
        }
    };
    (-BOUND..=BOUND).contains(&whole).then_some(whole)
}

/// A finite number as JSON, written without a fraction when it has none.
#[must_use]
pub fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() <= MAX_WHOLE as f64 {
        Value::from(whole_part(value))
    } else {
        Value::from(value)
    }
}

/// The whole part of a number that is known to lie within ±[`MAX_WHOLE`].
#[expect(
    clippy::cast_possible_truncation,
    reason = "dropping the fraction is the purpose, and the range fits"
)]
const fn whole_part(number: f64) -> i64 {
    number as i64
}

impl Json for bool {
    fn read(value: &Value) -> Result<Self, Violation> {
        value.as_bool().ok_or(Violation::here(Reason::NotBool))
    }

    fn write(&self) -> Value {
        Value::Bool(*self)
    }
}

impl Json for f64 {
    fn read(value: &Value) -> Result<Self, Violation> {
        value
            .as_f64()
            .filter(|number| number.is_finite())
            .ok_or(Violation::here(Reason::NotNumber))
    }

    fn write(&self) -> Value {
        number(*self)
    }
}

impl Json for u32 {
    fn read(value: &Value) -> Result<Self, Violation> {
        whole(value)
            .and_then(|whole| whole.try_into().ok())
            .ok_or(Violation::here(Reason::NotWhole))
    }

    fn write(&self) -> Value {
        Value::from(*self)
    }
}

impl Json for u64 {
    fn read(value: &Value) -> Result<Self, Violation> {
        whole(value)
            .and_then(|whole| whole.try_into().ok())
            .ok_or(Violation::here(Reason::NotWhole))
    }

    fn write(&self) -> Value {
        Value::from(*self)
    }
}

impl Json for i64 {
    fn read(value: &Value) -> Result<Self, Violation> {
        whole(value).ok_or(Violation::here(Reason::NotWhole))
    }

    fn write(&self) -> Value {
        Value::from(*self)
    }
}

impl Json for String {
    fn read(value: &Value) -> Result<Self, Violation> {
        value
            .as_str()
            .map(str::to_owned)
            .ok_or(Violation::here(Reason::NotString))
    }

    fn write(&self) -> Value {
        Value::String(self.clone())
    }
}

impl<T: Json> Json for Option<T> {
    fn read(value: &Value) -> Result<Self, Violation> {
        if value.is_null() {
            Ok(None)
        } else {
            T::read(value).map(Some)
        }
    }

    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Null, Json::write)
    }

    fn absent() -> Result<Self, Violation> {
        Ok(None)
    }
}

impl<T: Json> Json for Vec<T> {
    fn read(value: &Value) -> Result<Self, Violation> {
        let items = value.as_array().ok_or(Violation::here(Reason::NotArray))?;
        let read = |(index, item)| T::read(item).map_err(|violation| violation.at_index(index));
        items.iter().enumerate().map(read).collect()
    }

    fn write(&self) -> Value {
        Value::Array(self.iter().map(Json::write).collect())
    }
}

impl<T: Json> Json for Box<T> {
    fn read(value: &Value) -> Result<Self, Violation> {
        T::read(value).map(Self::new)
    }

    fn write(&self) -> Value {
        (**self).write()
    }

    fn absent() -> Result<Self, Violation> {
        T::absent().map(Self::new)
    }
}

/// Declares a closed set of wire words: the enum, `ALL`, `as_str`, `parse`, `Display` and its JSON form.
macro_rules! closed_set {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub enum $name { $( $(#[$variant_meta])* #[doc = concat!(" Wire word `", $word, "`.")] $variant, )+ }

        impl $name {
            /// Every member, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The member with exactly this word; `None` for anything else (matching is case-sensitive).
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl $crate::json::Json for $name {
            fn read(value: &serde_json::Value) -> Result<Self, $crate::json::Violation> {
                use $crate::json::{Reason, Violation};
                let word = value.as_str().ok_or(Violation::here(Reason::OutOfSet))?;
                Self::parse(word).ok_or(Violation::here(Reason::OutOfSet))
            }

            fn write(&self) -> serde_json::Value {
                serde_json::Value::String(self.as_str().to_owned())
            }
        }
    };
}
pub(crate) use closed_set;

/// Declares a JSON object type: the struct, its reader and its writer.
///
/// A field is `name: Type = "wireName"`, optionally followed by `or <default>` (the protocol names a default) or by
/// `lenient` (the protocol tells readers to ignore what they cannot use; the type is then an `Option`). A final
/// `=> check` names a function run on every value that was read.
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* pub $field:ident : $type:ty = $wire:literal $(or $default:expr)? $(, $lenient:ident)? ; )*
        }
        $(=> $check:expr)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $( $(#[$field_meta])* pub $field: $type, )* }

        impl $crate::json::Json for $name {
            fn read(value: &serde_json::Value) -> Result<Self, $crate::json::Violation> {
                let fields = $crate::json::Fields::of(value)?;
                let record = Self { $( $field: $crate::json::record!(@read fields, $wire $(or $default)? $(, $lenient)?), )* };
                $( let check: fn(&Self) -> Result<(), $crate::json::Violation> = $check; check(&record)?; )?
                Ok(record)
            }

            fn write(&self) -> serde_json::Value {
                $crate::json::ObjectWriter::new() $(.with($wire, &self.$field))* .finish()
            }
        }
    };
    (@read $fields:ident, $wire:literal) => { $fields.get($wire)? };
    (@read $fields:ident, $wire:literal or $default:expr) => { $fields.get_or($wire, $default)? };
    (@read $fields:ident, $wire:literal, lenient) => { $fields.lenient($wire) };
}
pub(crate) use record;
