//! `inspect`: what a policy says about itself. Nothing of it runs.

use std::fmt::Write as _;

use maka_policy_host::digest::Digest;
use maka_policy_host::manifest::{ABI, Manifest};
use maka_policy_host::module::Surface;
use serde_json::{Value, json};

use crate::command_line::InspectArguments;
use crate::error::InputError;
use crate::report::{Exit, Report, plain};
use crate::workbench::Workbench;

/// Carries out the command.
///
/// # Errors
///
/// When the policy cannot be read, or has no manifest that can be understood.
pub fn run(arguments: &InspectArguments) -> Result<Report, InputError> {
    let bench = Workbench::new(&arguments.load)?;
    let bytes = bench.read(&arguments.policy)?;
    let manifest = bench.manifest(&arguments.policy, &bytes)?;
    let surface = bench.surface(&arguments.policy, bytes.clone())?;
    let inspected = Inspected {
        manifest: &manifest,
        surface: &surface,
        digest: Digest::of(&bytes),
        bytes: bytes.len(),
    };
    let out = if arguments.json {
        format!("{:#}\n", inspected.json())
    } else {
        inspected.text()
    };
    Ok(Report::new(out, Exit::Passed))
}

struct Inspected<'a> {
    manifest: &'a Manifest,
    surface: &'a Surface,
    digest: Digest,
    bytes: usize,
}

/// One setting that the schema describes.
struct Setting<'a> {
    pointer: String,
    required: bool,
    schema: &'a Value,
}

impl Inspected<'_> {
    fn json(&self) -> Value {
        let manifest = self.manifest;
        let rules: Vec<_> = manifest
            .rules
            .iter()
            .map(|rule| json!({"id": rule.id, "doc": rule.doc}))
            .collect();
        let denials: Vec<_> = manifest
            .denials
            .iter()
            .map(|row| json!({"code": row.code, "sentence": row.sentence, "retry": row.retry.as_str()}))
            .collect();
        let settings: Vec<_> = settings(&manifest.settings_schema)
            .iter()
            .map(|setting| {
                json!({
                    "pointer": setting.pointer, "required": setting.required,
                    "default": setting.schema.get("default"), "schema": setting.schema,
                })
            })
            .collect();
        json!({
            "schema": "maka.policy.inspect/1",
            "name": manifest.name, "version": manifest.version, "abi": ABI,
            "digest": self.digest.to_string(), "bytes": self.bytes,
            "hooks": manifest.hooks.iter().map(|hook| hook.as_str()).collect::<Vec<_>>(),
            "facts": manifest.facts, "rules": rules, "denials": denials,
            "obligations": manifest.obligations.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(),
            "settings": settings, "settings_schema": manifest.settings_schema,
            "limits": {"fuel": manifest.fuel, "memory_bytes": manifest.memory_bytes},
            "fixtures_digest": manifest.fixtures_digest.map(|digest| digest.to_string()),
            "imports": self.surface.imports, "exports": self.surface.exports,
        })
    }

    fn text(&self) -> String {
        let manifest = self.manifest;
        let hooks: Vec<_> = manifest.hooks.iter().map(|hook| hook.as_str()).collect();
        let obligations: Vec<_> = manifest
            .obligations
            .iter()
            .map(|kind| kind.as_str())
            .collect();
        let fixtures = manifest
            .fixtures_digest
            .map_or_else(|| "no digest".to_owned(), |digest| digest.to_string());
        let escaped = |names: &[String]| names.iter().map(|name| plain(name)).collect::<Vec<_>>();
        let rows = [
            ("digest", self.digest.to_string()),
            ("size", format!("{} bytes", self.bytes)),
            ("abi", ABI.to_owned()),
            ("hooks", or_none(&hooks)),
            ("facts", or_none(&manifest.facts)),
            ("obligations", or_none(&obligations)),
            ("imports", or_none(&escaped(&self.surface.imports))),
            ("exports", or_none(&escaped(&self.surface.exports))),
            (
                "limits",
                format!(
                    "{} fuel, {} MiB",
                    manifest.fuel,
                    manifest.memory_bytes >> 20
                ),
            ),
            ("fixtures", fixtures),
        ];
        let mut text = format!("{} {}\n", manifest.name, manifest.version);
        for (label, value) in rows {
            push(&mut text, format_args!("{label:<12} {value}\n"));
        }
        let width = manifest.rules.iter().map(|rule| rule.id.len()).max();
        push(&mut text, format_args!("\nrules\n"));
        for rule in &manifest.rules {
            let width = width.unwrap_or_default();
            push(
                &mut text,
                format_args!("  {:<width$}  {}\n", rule.id, rule.doc),
            );
        }
        none_if(&mut text, manifest.rules.is_empty());
        push(&mut text, format_args!("\ndenials\n"));
        for row in &manifest.denials {
            push(
                &mut text,
                format_args!(
                    "  {} (retry: {})\n    {}\n",
                    row.code,
                    row.retry.as_str(),
                    row.sentence
                ),
            );
        }
        none_if(&mut text, manifest.denials.is_empty());
        push(&mut text, format_args!("\nsettings\n"));
        let settings = settings(&manifest.settings_schema);
        for setting in &settings {
            push(&mut text, format_args!("  {}\n", setting.text()));
        }
        none_if(&mut text, settings.is_empty());
        text
    }
}

impl Setting<'_> {
    fn text(&self) -> String {
        let mut text = self.pointer.clone();
        for keyword in [
            "type",
            "enum",
            "minimum",
            "maximum",
            "default",
            "description",
        ] {
            if let Some(value) = self.schema.get(keyword) {
                push(&mut text, format_args!("  {keyword} {value}"));
            }
        }
        if self.required {
            text.push_str("  required");
        }
        text
    }
}

/// Every property of the schema, nested ones under their pointers.
fn settings(schema: &Value) -> Vec<Setting<'_>> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), schema)];
    while let Some((pointer, schema)) = open.pop() {
        let required = |key: &str| {
            schema
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|names| names.iter().any(|name| name == key))
        };
        for (key, property) in schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
            open.push((pointer.clone(), property));
            found.push(Setting {
                pointer,
                required: required(key),
                schema: property,
            });
        }
    }
    found.sort_by(|left, right| left.pointer.cmp(&right.pointer));
    found
}

fn or_none<T: AsRef<str>>(items: &[T]) -> String {
    if items.is_empty() {
        return "none".to_owned();
    }
    let items: Vec<_> = items.iter().map(AsRef::as_ref).collect();
    items.join(", ")
}

fn none_if(text: &mut String, empty: bool) {
    if empty {
        text.push_str("  none\n");
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string");
}
