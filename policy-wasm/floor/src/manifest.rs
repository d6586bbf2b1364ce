//! The manifest, written out from the tables so that neither can drift from the other.

use std::fmt::Write as _;

use crate::denials::Denial;
use crate::rules::Rule;
use crate::settings::Settings;

/// The name of the floor, in configuration and in the decision log.
pub const NAME: &str = "maka-floor";

/// The manifest as JSON: what the custom section `maka-policy-manifest` of the component holds.
#[must_use]
pub fn json() -> String {
    let mut text = format!(
        "{{\n  \"schema\": \"maka.policy.manifest/1\",\n  \"name\": \"{NAME}\",\n  \"version\": \"{}\",\n  \"abi\": \"maka:policy@1\",\n  \
         \"hooks\": [\"admit-dispatch\", \"admit-cdp\", \"review-result\"],\n  \"facts\": [],\n  \"rules\": [",
        env!("CARGO_PKG_VERSION")
    );
    for (at, rule) in Rule::ALL.iter().enumerate() {
        write!(
            text,
            "{}\n    {{\"id\": \"{}\", \"doc\": \"{}\"}}",
            comma(at),
            rule.id(),
            rule.doc()
        )
        .expect("writing to a string");
    }
    text.push_str("\n  ],\n  \"denials\": [");
    for (at, denial) in Denial::ALL.iter().enumerate() {
        write!(
            text,
            "{}\n    {{\"code\": \"{}\", \"sentence\": \"{}\", \"retry\": \"{}\"}}",
            comma(at),
            denial.code(),
            denial.sentence(),
            denial.retry().as_str()
        )
        .expect("writing to a string");
    }
    write!(
        text,
        "\n  ],\n  \"obligations\": [],\n  \"settings_schema\": {},\n  \"limits\": {{\"fuel\": 20000000, \"memory_mib\": 16}}\n}}\n",
        Settings::SCHEMA
    )
    .expect("writing to a string");
    text
}

fn comma(at: usize) -> &'static str {
    if at == 0 { "" } else { "," }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No text of the tables needs escaping, is too long, or can carry a value.
    #[test]
    fn the_tables_are_plain_text() {
        let texts = Denial::ALL
            .iter()
            .map(|d| d.sentence())
            .chain(Rule::ALL.iter().map(|r| r.doc()));
        for text in texts {
            assert!(text.len() <= 200, "{text}");
            assert!(
                text.bytes()
                    .all(|b| (0x20..0x7f).contains(&b) && !matches!(b, b'"' | b'\\' | b'{' | b'}')),
                "{text}"
            );
            assert!(text.ends_with('.'), "{text}");
        }
    }

    #[test]
    fn the_manifest_is_json_and_names_every_rule_and_denial() {
        let value: serde_json::Value = serde_json::from_str(&json()).unwrap();
        assert_eq!(value["rules"].as_array().unwrap().len(), Rule::ALL.len());
        assert_eq!(
            value["denials"].as_array().unwrap().len(),
            Denial::ALL.len()
        );
        assert_eq!(
            value["settings_schema"]["properties"]["global_pointer"]["default"],
            "grant"
        );
        for (index, rule) in Rule::ALL.iter().enumerate() {
            assert_eq!(usize::from(rule.index()), index);
            assert_eq!(value["rules"][index]["id"], rule.id());
        }
    }
}
