//! What an author writes instead, for every reason for which a policy is refused.

use maka_policy_host::codes::{DenyCode, HostCode};
use maka_policy_host::manifest::ManifestError;
use maka_policy_host::module::LoadError;
use maka_policy_host::schema::SchemaError;

/// A reason with its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// A stable word for the reason.
    pub code: &'static str,
    /// The place at fault, a JSON pointer into manifest or settings; empty where there is none.
    pub place: String,
    /// What to write or do instead.
    pub instead: &'static str,
}

impl Advice {
    /// The advice for this refusal.
    #[must_use]
    pub fn of(error: &LoadError) -> Self {
        let plain = |code, instead| Self {
            code,
            place: String::new(),
            instead,
        };
        match error {
            LoadError::Pin => plain(
                "pin",
                "pin the digest that `maka-policy inspect` prints for this file",
            ),
            LoadError::TooLarge => plain(
                "too_large",
                "build with opt-level = \"s\", lto = true and strip = true; if it has to be this large, the operator has to \
                 raise the limit (--max-module-mib here)",
            ),
            LoadError::Manifest(error) => manifest(error),
            LoadError::NameMismatch => plain(
                "name",
                "configure the policy under the name in its manifest",
            ),
            LoadError::Compile(_) => plain(
                "compile",
                "build the component again; it needs no threads, SIMD, 64-bit memory, exceptions or garbage collection",
            ),
            LoadError::CompileTimeout => plain(
                "compile_time",
                "make the component smaller: fewer dependencies, opt-level = \"s\"",
            ),
            LoadError::CompileThread(_) => {
                plain("compile_thread", "free resources of this machine")
            }
            LoadError::Imports => plain(
                "imports",
                "build for wasm32-unknown-unknown, which gives no clock, files, environment or random numbers; time and \
                 counters are facts of each call (head.now-unix-ms, head.meter)",
            ),
            LoadError::Exports => plain(
                "exports",
                "export the interface maka:policy/hooks@1.0.0 and nothing else: the world `policy` of policy-wasm/wit/policy.wit",
            ),
            LoadError::World(_) => plain(
                "world",
                "generate the bindings from the unchanged policy-wasm/wit/policy.wit; a field or case more or less is another contract",
            ),
            LoadError::Canonical(_) => {
                plain("settings", "write settings that are less deeply nested")
            }
            LoadError::Schema(SchemaError::Settings(at)) => Self {
                code: "settings",
                place: at.clone(),
                instead: "give settings that fit the schema, with --settings FILE; `maka-policy inspect` lists them",
            },
            LoadError::Schema(SchemaError::Schema(at)) => Self {
                code: "settings_schema",
                place: at.clone(),
                instead: "use only type, properties, required, additionalProperties: false, items, enum, minimum, maximum, \
                          default, title and description in settings_schema",
            },
            LoadError::SettingsTooLarge => plain("settings", "write settings of at most 64 KiB"),
            LoadError::Settings { pointer, .. } => Self {
                code: "settings",
                place: pointer.clone(),
                instead: "change the settings at that place; the policy's own `prepare` refuses them",
            },
            LoadError::Prepare(code) => Self {
                code: "prepare",
                ..fault(*code, "`prepare`")
            },
            LoadError::FirstDecision(code) => Self {
                code: "first_decision",
                ..fault(*code, "a hook, for a plain `observe`,")
            },
            LoadError::TooMany => plain("too_many", "load fewer policies together"),
            LoadError::NameTwice => plain(
                "name_twice",
                "name each policy once; `maka-floor` is always there and is not named",
            ),
        }
    }

    /// The lines that follow a reason.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut lines = String::new();
        if !self.place.is_empty() {
            lines.push_str("  where:   ");
            lines.push_str(&self.place);
            lines.push('\n');
        }
        lines.push_str("  instead: ");
        lines.push_str(self.instead);
        lines.push('\n');
        lines
    }
}

fn manifest(error: &ManifestError) -> Advice {
    let plain = |code, instead| Advice {
        code,
        place: String::new(),
        instead,
    };
    match error {
        ManifestError::NotComponent => plain(
            "not_component",
            "turn the core module into a component (ComponentEncoder of the crate wit-component); if it is one, the file is damaged",
        ),
        ManifestError::Missing => plain(
            "manifest_missing",
            "append manifest.json as the custom section maka-policy-manifest, on the outermost level of the component",
        ),
        ManifestError::Ambiguous => plain(
            "manifest_twice",
            "append the section maka-policy-manifest once; build the component again instead of adding to it",
        ),
        ManifestError::Json(_) => plain(
            "manifest_json",
            "write every key of maka.policy.manifest/1 and no other: schema, name, version, abi, hooks, facts, rules, denials, \
             obligations, settings_schema, limits, and fixtures_digest if there are fixtures",
        ),
        ManifestError::Field(pointer) => Advice {
            code: "manifest_field",
            place: (*pointer).to_owned(),
            instead: field(pointer),
        },
        ManifestError::FactNotGranted => Advice {
            code: "fact_not_granted",
            place: "/facts".to_owned(),
            instead: "leave the fact out, or have the operator grant it (--grant-fact here)",
        },
        ManifestError::LimitExceeded => Advice {
            code: "limits",
            place: "/limits".to_owned(),
            instead: "ask for at most 20000000 fuel and 16 MiB, or have the operator raise the limits (--max-fuel and \
                      --max-memory-mib here)",
        },
    }
}

/// What a field of the manifest has to look like.
fn field(pointer: &str) -> &'static str {
    match pointer {
        "/schema" => "write \"schema\": \"maka.policy.manifest/1\"",
        "/abi" => "write \"abi\": \"maka:policy@1\"; this is the one contract that this host has",
        "/name" | "/version" => "use 1 to 64 characters of a-z, 0-9, . _ - / +",
        "/hooks" => {
            "declare at least one of admit-dispatch, admit-cdp and review-result, each once"
        }
        "/facts" => "ask only for typed-text; every other fact is there without asking",
        "/rules" => {
            "give each rule an id of its own (a-z, 0-9, . _ - / +) and a doc of one plain line, 1 to 200 ASCII characters without braces"
        }
        "/denials" => {
            "give each denial a code of its own that is not a built-in one, a sentence of one plain line (1 to 200 ASCII characters \
             without braces), and retry never, now, after_observe, after_approval, after_delay, after_resume or new_target"
        }
        "/obligations" => {
            "declare only redact, drop-image, max-bytes, only-paths, no-follow-up and mark-sensitive"
        }
        "/limits" => "ask for more than zero fuel and memory",
        "/fixtures_digest" => "write `sha256:` and 64 lower-case hex digits, or leave the key out",
        "" => "keep the manifest under 256 KiB",
        // The pointers are the host's, and a new one still has the pointer to say where.
        _ => "see the manifest section of policy-wasm/README.md",
    }
}

/// What to do about a policy that fails on its own.
fn fault(code: HostCode, place: &str) -> Advice {
    let instead = match code {
        HostCode::PolicyTrap => {
            "do not panic, index out of bounds or recurse without a bound: return a verdict that denies"
        }
        HostCode::PolicyFuel => {
            "do less, or ask for more fuel in /limits/fuel; a typical decision takes some 13000 units"
        }
        HostCode::PolicyTimeout => "do less: it ran longer than the wall limit",
        HostCode::PolicyMemory => "use less memory, or ask for more in /limits/memory_mib",
        HostCode::PolicyBusy => {
            "let the component have at most 4 core instances, 2 memories and 4 tables"
        }
        HostCode::PolicyBadOutput => {
            "return only codes of the manifest or of the floor, rule numbers of the rule table, and obligations that the manifest declares"
        }
        HostCode::PolicyAbsent
        | HostCode::FactsInvalid
        | HostCode::FactsChanged
        | HostCode::PolicyInternal
        | HostCode::ObligationFailed
        | HostCode::ObligationConflict
        | HostCode::AuditUnavailable
        | HostCode::DuplicateAction
        | HostCode::ApprovalUnavailable
        | HostCode::ApprovalRejected
        | HostCode::ApprovalsPending
        | HostCode::ExecutorUntrusted => {
            "this is not the policy's fault: try again, and report it if it stays"
        }
    };
    Advice {
        code: "fault",
        place: format!("{place} ends with {}", DenyCode::Host(code).as_str()),
        instead,
    }
}
