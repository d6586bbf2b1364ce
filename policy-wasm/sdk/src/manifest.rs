//! Looks things up in a manifest while a policy is compiled.
//!
//! A verdict names rules by their index in the manifest, and a refusal by its code. Both are looked up by name here, in
//! constant evaluation, so that a name which the manifest does not have stops the build and costs nothing at run time.
//! This is no check of the manifest: the host does that, and `maka-policy check` shows what it says.

/// A rule of the manifest. Made by [`rule!`](crate::rule).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule(u16);

impl Rule {
    /// The index in the manifest.
    #[must_use]
    pub const fn index(self) -> u16 {
        self.0
    }

    /// The rule with this id.
    ///
    /// ```
    /// # use maka_policy_sdk::manifest::Rule;
    /// const RULE: Rule = Rule::of(r#"{"rules": [{"id": "hours.day"}]}"#, "hours.day");
    /// # assert_eq!(RULE.index(), 0);
    /// ```
    ///
    /// ```compile_fail
    /// # use maka_policy_sdk::manifest::Rule;
    /// const RULE: Rule = Rule::of(r#"{"rules": [{"id": "hours.day"}]}"#, "hours.dya");
    /// ```
    ///
    /// # Panics
    ///
    /// When the manifest has none; in a constant, that is a compile error.
    #[must_use]
    pub const fn of(manifest: &str, id: &str) -> Self {
        match position(manifest.as_bytes(), b"rules", b"id", id.as_bytes()) {
            Some(index) => Self(index),
            None => panic!("manifest.json has no rule with this id"),
        }
    }
}

/// A code of the manifest's `denials`. Made by [`code!`](crate::code).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(&'static str);

impl Code {
    /// Refuses an action that this contract does not know. The gateway owns this code and its sentence.
    pub const ACTION_UNKNOWN: Self = Self("action_unknown");

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The code of this name.
    ///
    /// ```compile_fail
    /// # use maka_policy_sdk::manifest::Code;
    /// const CODE: Code = Code::of(r#"{"denials": [{"code": "closed"}]}"#, "closde");
    /// ```
    ///
    /// # Panics
    ///
    /// When the manifest has none; in a constant, that is a compile error.
    #[must_use]
    pub const fn of(manifest: &str, code: &'static str) -> Self {
        match position(manifest.as_bytes(), b"denials", b"code", code.as_bytes()) {
            Some(_) => Self(code),
            None => panic!("manifest.json has no denial with this code"),
        }
    }
}

/// The hooks that a manifest declares, as bits in the order of the contract.
///
/// # Panics
///
/// When the manifest has no `hooks`; in a constant, that is a compile error.
#[doc(hidden)]
#[must_use]
pub const fn hooks(manifest: &str) -> u8 {
    let bytes = manifest.as_bytes();
    let mut at = match member(bytes, b"hooks") {
        Some(at) => at + 1,
        None => panic!("manifest.json has no hooks"),
    };
    let mut hooks = 0;
    while bytes[at] != b']' {
        if bytes[at] == b'"' {
            let end = string_end(bytes, at);
            hooks |= hook(bytes, at + 1, end);
            at = end;
        }
        at += 1;
    }
    hooks
}

const fn hook(bytes: &[u8], start: usize, end: usize) -> u8 {
    if is_text(bytes, start, end, b"admit-dispatch") {
        1
    } else if is_text(bytes, start, end, b"admit-cdp") {
        2
    } else if is_text(bytes, start, end, b"review-result") {
        4
    } else {
        panic!("manifest.json declares a hook that the contract does not have")
    }
}

/// The number of the row in the list `table` whose member `key` is `name`.
const fn position(bytes: &[u8], table: &[u8], key: &[u8], name: &[u8]) -> Option<u16> {
    let Some(mut at) = member(bytes, table) else {
        return None;
    };
    let mut depth = 0_u32;
    let mut row = 0_u16;
    // `at` is at the bracket that opens the list.
    loop {
        match bytes[at] {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return None;
                }
                if depth == 1 {
                    row += 1;
                }
            }
            b'"' => {
                let end = string_end(bytes, at);
                if depth == 2 && is_text(bytes, at + 1, end, key) {
                    let mut value = end + 1;
                    while is_space(bytes[value]) {
                        value += 1;
                    }
                    // Otherwise this is a value that happens to be spelled like the key.
                    if bytes[value] == b':' {
                        value += 1;
                        while is_space(bytes[value]) {
                            value += 1;
                        }
                        if bytes[value] == b'"' {
                            let value_end = string_end(bytes, value);
                            if is_text(bytes, value + 1, value_end, name) {
                                return Some(row);
                            }
                        }
                    }
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
}

/// Where the value of a member of the outermost object begins.
const fn member(bytes: &[u8], key: &[u8]) -> Option<usize> {
    let mut depth = 0_u32;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b'"' => {
                let end = string_end(bytes, at);
                let mut after = end + 1;
                while after < bytes.len() && is_space(bytes[after]) {
                    after += 1;
                }
                let is_key = depth == 1 && after < bytes.len() && bytes[after] == b':';
                if is_key && is_text(bytes, at + 1, end, key) {
                    after += 1;
                    while after < bytes.len() && is_space(bytes[after]) {
                        after += 1;
                    }
                    return Some(after);
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The quotation mark that ends the string which begins at `at`.
const fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while bytes[end] != b'"' {
        if bytes[end] == b'\\' {
            end += 1;
        }
        end += 1;
    }
    end
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

const fn is_text(bytes: &[u8], start: usize, end: usize, text: &[u8]) -> bool {
    if end - start != text.len() {
        return false;
    }
    let mut at = 0;
    while at < text.len() {
        if bytes[start + at] != text[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The manifest of the package that is being compiled: `manifest.json` beside its `Cargo.toml`.
#[macro_export]
macro_rules! manifest {
    () => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/manifest.json"))
    };
}

/// The rule of the manifest with this id. An id that the manifest does not have does not compile.
#[macro_export]
macro_rules! rule {
    ($id:literal) => {
        const { $crate::manifest::Rule::of($crate::manifest!(), $id) }
    };
}

/// The refusal of the manifest with this code. A code that the manifest does not have does not compile.
#[macro_export]
macro_rules! code {
    ($code:literal) => {
        const { $crate::manifest::Code::of($crate::manifest!(), $code) }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{
      "name": "rules", "x": {"rules": [{"id": "not.this"}]}, "note": "\"id\": [{",
      "rules": [
        {"id": "a.one", "doc": "id"},
        {"doc": "Braces ]} in a \"string\".", "id" : "b.two", "more": [{"id": "inner"}]},
        {"id": "c.three", "doc": "Third."}
      ],
      "denials": [{"code": "no", "sentence": "code", "retry": "never"}],
      "hooks": ["admit-dispatch" , "review-result"]
    }"#;

    #[test]
    fn names_become_indexes() {
        const SECOND: Rule = Rule::of(MANIFEST, "b.two");
        assert_eq!(SECOND.index(), 1);
        assert_eq!(Rule::of(MANIFEST, "a.one").index(), 0);
        assert_eq!(Rule::of(MANIFEST, "c.three").index(), 2);
        assert_eq!(Code::of(MANIFEST, "no").as_str(), "no");
        assert_eq!(hooks(MANIFEST), 1 | 4);
    }

    /// In a constant each of these would stop the build.
    #[test]
    fn other_names_are_not_found() {
        for id in ["not.this", "inner", "id", "a.on", "a.one ", "rules", ""] {
            assert!(
                position(MANIFEST.as_bytes(), b"rules", b"id", id.as_bytes()).is_none(),
                "{id}"
            );
        }
        assert!(position(MANIFEST.as_bytes(), b"denials", b"code", b"yes").is_none());
        assert!(position(b"{}", b"rules", b"id", b"a").is_none());
        assert!(position(br#"{"rules": []}"#, b"rules", b"id", b"a").is_none());
    }
}
