//! §12.6 row 65: every field of every answer, dropped, `null` and mistyped.

use maka_cu_protocol::{
    generic::GenericSnapshot,
    json::{Json, Reason, Violation},
    results::{self, Answer, dispatch, lists},
};
use serde_json::{Value, json};

use crate::samples;

/// How a reader treats one field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// Dropped, null and mistyped are violations of exactly this field.
    Required,
    /// Dropped and null are absent; mistyped is a violation of exactly this field.
    Optional,
    /// Whatever it is, the answer is accepted; its members, if it has some, have rules of their own.
    Loose,
    /// Whatever it or its members are, the answer is accepted.
    Ignored,
    /// Dropped or null breaks a rule about several fields: some violation, of another field.
    Elsewhere,
}

/// Every field path of a message, spelled as a violation spells it; of an array, the first item stands for all.
fn paths(value: &Value, prefix: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if prefix.is_empty() {
                    name.clone()
                } else {
                    format!("{prefix}.{name}")
                };
                found.push(path.clone());
                paths(value, &path, found);
            }
        }
        Value::Array(items) => {
            if let Some(first) = items.first() {
                found.push(format!("{prefix}[0]"));
                paths(first, &format!("{prefix}[0]"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn pointer(path: &str) -> String {
    format!(
        "/{}",
        path.replace("[", ".").replace("]", "").replace('.', "/")
    )
}

fn dropped(sample: &Value, path: &str) -> Value {
    let mut copy = sample.clone();
    let pointer = pointer(path);
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    copy.pointer_mut(parent)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove(name);
    copy
}

pub(crate) fn replaced(sample: &Value, path: &str, new: Value) -> Value {
    let mut copy = sample.clone();
    *copy.pointer_mut(&pointer(path)).unwrap() = new;
    copy
}

fn mistyped(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => json!("x"),
        Value::String(_) => json!(7),
        Value::Array(_) => json!({}),
        Value::Object(_) => json!([]),
    }
}

/// Walks the matrix. `rules` names the fields that are not simply required.
fn check<T>(sample: &Value, read: impl Fn(&Value) -> Result<T, Violation>, rules: &[(&str, Rule)]) {
    read(sample).unwrap_or_else(|violation| panic!("the sample itself: {violation}"));
    let mut found = Vec::new();
    paths(sample, "", &mut found);
    for (path, _) in rules {
        assert!(
            found.iter().any(|found| found == path),
            "the sample has no field {path}"
        );
    }
    for path in &found {
        let ignored = |ignored: &&(&str, Rule)| {
            ignored.1 == Rule::Ignored
                && (path == ignored.0 || path.starts_with(&format!("{}.", ignored.0)))
        };
        let rule = match rules
            .iter()
            .find(ignored)
            .or_else(|| rules.iter().find(|(named, _)| named == path))
        {
            Some((_, rule)) => *rule,
            None => Rule::Required,
        };
        let original = sample.pointer(&pointer(path)).unwrap();
        let mut attempts = vec![("null", replaced(sample, path, Value::Null))];
        if !path.ends_with(']') {
            attempts.push(("dropped", dropped(sample, path)));
        }
        for (how, message) in attempts {
            let result = read(&message).err();
            match rule {
                Rule::Required => {
                    let violation = result.unwrap_or_else(|| panic!("{path} {how} was accepted"));
                    assert_eq!(&violation.field, path, "{path} {how}: {violation}");
                }
                Rule::Optional | Rule::Loose | Rule::Ignored => {
                    assert_eq!(result, None, "{path} {how}")
                }
                Rule::Elsewhere => assert!(result.is_some(), "{path} {how} was accepted"),
            }
        }
        let result = read(&replaced(sample, path, mistyped(original))).err();
        match rule {
            Rule::Loose | Rule::Ignored => assert_eq!(result, None, "{path} mistyped"),
            Rule::Required | Rule::Optional | Rule::Elsewhere => {
                let violation = result.unwrap_or_else(|| panic!("{path} mistyped was accepted"));
                assert_eq!(&violation.field, path, "{path} mistyped: {violation}");
            }
        }
    }
}

/// The optional fields of a snapshot below `prefix`.
fn snapshot_rules(prefix: &str) -> Vec<(String, Rule)> {
    let mut rules = vec![
        ("target.appName", Rule::Optional),
        ("target.title", Rule::Optional),
        ("target.displayId", Rule::Optional),
        ("focusedElementToken", Rule::Optional),
        ("selectedText", Rule::Optional),
        ("image", Rule::Optional),
        ("difference", Rule::Optional),
        ("menu", Rule::Optional),
        // One unnumbered element among numbered ones is found at its neighbour.
        ("elements[0].stableId", Rule::Elsewhere),
    ]
    .into_iter()
    .map(|(field, rule)| (field.to_owned(), rule))
    .collect::<Vec<_>>();
    for list in ["elements", "menu.elements"] {
        for field in [
            "subrole",
            "axIdentifier",
            "title",
            "label",
            "value",
            "placeholder",
            "selected",
        ] {
            rules.push((format!("{list}[0].{field}"), Rule::Optional));
        }
    }
    rules.push(("elements[0].frame".to_owned(), Rule::Optional));
    rules.push(("menu.elements[0].stableId".to_owned(), Rule::Optional));
    rules
        .into_iter()
        .map(|(field, rule)| (format!("{prefix}{field}"), rule))
        .collect()
}

fn borrowed(rules: &[(String, Rule)]) -> Vec<(&str, Rule)> {
    rules
        .iter()
        .map(|(field, rule)| (field.as_str(), *rule))
        .collect()
}

#[test]
fn observe() {
    let read = |value: &Value| results::read_observe(value, &samples::observe_expectation());
    check(
        &samples::observed(),
        read,
        &borrowed(&snapshot_rules("snapshot.")),
    );
}

#[test]
fn generic_snapshot() {
    let rules = snapshot_rules("snapshot.");
    // Without a snapshot the answer is read as a picture, which then lacks its own fields.
    let mut rules = borrowed(&rules);
    rules.push(("snapshot", Rule::Elsewhere));
    check(
        &samples::observed(),
        Answer::<GenericSnapshot>::read,
        &rules,
    );
}

#[test]
fn dispatch_both_arms() {
    let call = samples::call_id();
    let read =
        |value: &Value| dispatch::read_dispatch(value, &samples::dispatch_expectation(&call));
    let rules = snapshot_rules("snapshot.");
    let mut rules = borrowed(&rules);
    rules.extend([("settle", Rule::Optional), ("snapshot", Rule::Optional)]);
    check(&samples::dispatched(), read, &rules);

    let detail = [
        "changed",
        "wouldRequirePath",
        "permission",
        "bytes",
        "limit",
    ]
    .map(|key| format!("error.detail.{key}"));
    let mut rules: Vec<_> = detail
        .iter()
        .map(|field| (field.as_str(), Rule::Optional))
        .collect();
    rules.push(("error.detail", Rule::Loose));
    check(&samples::dispatch_refused(), read, &rules);
}

#[test]
fn lists_and_launch() {
    let rest = ["appName", "title", "bounds", "displayId"].map(|key| format!("windows[0].{key}"));
    let rules: Vec<_> = rest
        .iter()
        .map(|field| (field.as_str(), Rule::Ignored))
        .collect();
    check(&samples::window_list(), lists::read_window_list, &rules);

    let rules = [
        ("apps[0].name", Rule::Optional),
        ("apps[0].running", Rule::Ignored),
    ];
    check(&samples::app_list(), lists::read_app_list, &rules);

    let rules = [
        ("name", Rule::Optional),
        ("windows[0].title", Rule::Optional),
    ];
    check(&samples::launched(), results::read_launch, &rules);
}

#[test]
fn captures_and_sessions() {
    let dir = std::path::Path::new(samples::IMAGE_DIR);
    check(
        &samples::captured(),
        |value: &Value| results::read_screen_capture(value, dir, None),
        &[],
    );
    check(&samples::session_ended(), results::read_session_end, &[]);
    check(&json!({"ok": true}), results::read_session_begin, &[]);
    let refused = json!({"ok": false, "error": {"code": "permission_missing", "message": "x"}});
    check(&refused, results::read_session_begin, &[]);
}

#[test]
fn hello() {
    let rules = [
        ("executor.commit", Rule::Optional),
        ("capabilities.genericMethods", Rule::Optional),
        ("limits.treeWalkCeilingMs", Rule::Optional),
        ("limits.maxMenuElements", Rule::Optional),
        ("limits.menuWalkCeilingMs", Rule::Optional),
        ("limits.notALimitWeKnow", Rule::Ignored),
    ];
    check(&samples::hello_answer(), results::read_hello, &rules);
}

/// Every closed word of every answer, replaced by words that are not in its set: an error that names the field.
#[test]
fn words_outside_their_set() {
    type Read<'a> = &'a dyn Fn(&Value) -> Result<(), Violation>;
    let call = samples::call_id();
    let observe =
        |value: &Value| results::read_observe(value, &samples::observe_expectation()).map(|_| ());
    let dispatched = |value: &Value| {
        dispatch::read_dispatch(value, &samples::dispatch_expectation(&call)).map(|_| ())
    };
    let launch = |value: &Value| results::read_launch(value).map(|_| ());
    let hello = |value: &Value| results::read_hello(value).map(|_| ());
    let rows: [(Value, Read<'_>, &str); 5] = [
        (
            samples::observed(),
            &observe,
            "snapshot.image.format snapshot.elements[0].actions[0] snapshot.elements[0].truncated[0] \
             snapshot.menu.elements[0].actions[1] snapshot.difference.presentation \
             snapshot.difference.changes[1].kind",
        ),
        (
            samples::dispatched(),
            &dispatched,
            "outcome tier path effect verification.method settle.reason snapshot.image.format",
        ),
        (
            samples::dispatch_refused(),
            &dispatched,
            "outcome tier path effect verification.method error.code error.detail.changed[0] \
             error.detail.wouldRequirePath error.detail.permission",
        ),
        (samples::launched(), &launch, "waited.reason"),
        (
            samples::hello_answer(),
            &hello,
            "capabilities.elementActions[0] capabilities.pointActions[0] capabilities.keyActions[0] \
             capabilities.imageFormats[0] capabilities.genericMethods[0]",
        ),
    ];
    for (sample, read, fields) in rows {
        assert_eq!(read(&sample), Ok(()));
        for field in fields.split_whitespace() {
            for word in ["", "OK", "ok ", "__proto__", "constructor", "ax-action"] {
                let expected = Violation::of(field, Reason::OutOfSet);
                assert_eq!(
                    read(&replaced(&sample, field, json!(word))),
                    Err(expected),
                    "{field} = {word:?}"
                );
            }
        }
    }
}
