//! `new`: the project of a policy, ready to be built and tested.
//!
//! The SDK is not on a registry. This program carries its source, and puts it into the project, so that a project builds
//! on any machine and its contract is the one that this program checks against. An author with a checkout can name that
//! instead.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use maka_policy_host::prebuilt::Prebuilt;

use crate::command_line::{Language, NewArguments};
use crate::error::InputError;
use crate::report::{Exit, Report};

/// The SDK with the contract beside it, as `sdk/` and `wit/` lie in `policy-wasm`.
const SDK: &[(&str, &str)] = &[
    ("sdk/Cargo.toml", include_str!("../../sdk/Cargo.toml")),
    ("sdk/src/lib.rs", include_str!("../../sdk/src/lib.rs")),
    (
        "sdk/src/bindings.rs",
        include_str!("../../sdk/src/bindings.rs"),
    ),
    ("sdk/src/export.rs", include_str!("../../sdk/src/export.rs")),
    ("sdk/src/facts.rs", include_str!("../../sdk/src/facts.rs")),
    (
        "sdk/src/manifest.rs",
        include_str!("../../sdk/src/manifest.rs"),
    ),
    ("sdk/src/policy.rs", include_str!("../../sdk/src/policy.rs")),
    (
        "sdk/src/settings.rs",
        include_str!("../../sdk/src/settings.rs"),
    ),
    (
        "sdk/src/testing.rs",
        include_str!("../../sdk/src/testing.rs"),
    ),
    (
        "sdk/src/verdict.rs",
        include_str!("../../sdk/src/verdict.rs"),
    ),
    ("wit/policy.wit", include_str!("../../wit/policy.wit")),
];

/// The folder of the SDK in a project.
const VENDOR: &str = "maka";

/// The versions that the product's own policies are built with. Cargo drops what a project does not use.
const LOCK: &str = include_str!("../../Cargo.lock");

/// The files of a project, with places to fill in.
const RUST: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        include_str!("../templates/rust/Cargo.toml.in"),
    ),
    (
        "manifest.json",
        include_str!("../templates/rust/manifest.json.in"),
    ),
    ("src/lib.rs", include_str!("../templates/rust/lib.rs.in")),
    (
        "fixtures/launch.yaml",
        include_str!("../templates/rust/launch.yaml.in"),
    ),
    ("README.md", include_str!("../templates/rust/README.md.in")),
    (".gitignore", include_str!("../templates/rust/gitignore.in")),
];

/// The SDK for JavaScript, with the contract beside it.
const SDK_JAVASCRIPT: &[(&str, &str)] = &[
    ("sdk-js/sdk.js", include_str!("../../sdk-js/sdk.js")),
    ("sdk-js/build.mjs", include_str!("../../sdk-js/build.mjs")),
    ("wit/policy.wit", include_str!("../../wit/policy.wit")),
];

/// What npm installs in a project, as the conformance policy is built with.
const LOCK_JAVASCRIPT: &str = include_str!("../../conformance/javascript/package-lock.json");

/// The files of a project in JavaScript. The fixtures are those of the project in Rust: the rule is the same.
const JAVASCRIPT: &[(&str, &str)] = &[
    (
        "package.json",
        include_str!("../templates/javascript/package.json.in"),
    ),
    (
        "build.mjs",
        include_str!("../templates/javascript/build.mjs.in"),
    ),
    (
        "manifest.json",
        include_str!("../templates/javascript/manifest.json.in"),
    ),
    (
        "src/policy.js",
        include_str!("../templates/javascript/policy.js.in"),
    ),
    (
        "fixtures/launch.yaml",
        include_str!("../templates/rust/launch.yaml.in"),
    ),
    (
        "README.md",
        include_str!("../templates/javascript/README.md.in"),
    ),
    (
        ".gitignore",
        include_str!("../templates/javascript/gitignore.in"),
    ),
];

/// What `check` and `test` are told about the larger limits of a component that carries an engine.
const ENGINE_FLAGS: &str = " --max-module-mib 16 --max-memory-mib 32 --max-fuel 100000000";

/// Words that cargo or Rust take for something else.
const TAKEN: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "maka",
    "maka-policy-sdk",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "serde",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// The name of a policy that can also be the name of a folder and of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectName(String);

impl FromStr for ProjectName {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let parts = text.split('-');
        let is_plain = parts.clone().all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        });
        let begins = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase());
        if !is_plain || !begins || text.len() > 48 {
            return Err(InputError::ProjectName);
        }
        if TAKEN.contains(&text) || text == Prebuilt::Floor.name() {
            return Err(InputError::ProjectNameTaken(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl ProjectName {
    /// The name of the type that implements the policy: `my-policy` is `MyPolicy`.
    fn type_name(&self) -> String {
        let words = self.0.split('-').map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        });
        words.collect()
    }
}

/// What a project in one language is made of.
struct Parts {
    files: &'static [(&'static str, &'static str)],
    sdk: &'static [(&'static str, &'static str)],
    lock: (&'static str, &'static str),
    flags: &'static str,
}

/// Makes a project.
///
/// # Errors
///
/// When the folder is there already, or cannot be written, or the named SDK is none.
pub fn run(arguments: &NewArguments) -> Result<Report, InputError> {
    let folder = PathBuf::from(&arguments.name.0);
    let parts = match arguments.language {
        Language::Rust => Parts {
            files: RUST,
            sdk: SDK,
            lock: ("Cargo.lock", LOCK),
            flags: "",
        },
        Language::JavaScript if arguments.sdk.is_some() => return Err(InputError::SdkOfRust),
        Language::JavaScript => Parts {
            files: JAVASCRIPT,
            sdk: SDK_JAVASCRIPT,
            lock: ("package-lock.json", LOCK_JAVASCRIPT),
            flags: ENGINE_FLAGS,
        },
    };
    let sdk = match &arguments.sdk {
        Some(path) => sdk_in(path)?,
        None => format!("{VENDOR}/sdk"),
    };
    let write = |path: PathBuf, content: &str| write(&path, content);
    // Whatever is there already is somebody's work.
    fs::create_dir(&folder).map_err(|source| InputError::Write {
        path: folder.clone(),
        source,
    })?;
    let row = if arguments.sdk.is_some() {
        String::new()
    } else {
        for (name, content) in parts.sdk {
            write(folder.join(VENDOR).join(name), content)?;
        }
        format!("| `{VENDOR}/` | the SDK and the contract, as `maka-policy` carries them |\n")
    };
    for (name, template) in parts.files {
        let content = template
            .replace("@SDKROW@\n", &row)
            .replace("@SDK@", &sdk)
            .replace("@NAME@", &arguments.name.0)
            .replace("@TYPE@", &arguments.name.type_name());
        write(folder.join(name), &content)?;
    }
    let (lock, content) = parts.lock;
    write(folder.join(lock), content)?;
    let flags = parts.flags;
    let name = &arguments.name.0;
    let out = format!(
        "created: {name}\n\nnext:\n  cd {name}\n  maka-policy build\n  maka-policy check {name}.wasm{flags}\n  \
         maka-policy test {name}.wasm fixtures --coverage --min 100 --mutate{flags}\n"
    );
    Ok(Report::new(out, Exit::Passed))
}

/// The folder of an SDK as cargo is told it: absolute, because the project may move.
fn sdk_in(path: &Path) -> Result<String, InputError> {
    let folder = path.canonicalize().map_err(|source| InputError::Read {
        path: path.to_owned(),
        source,
    })?;
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|source| InputError::Read {
        path: manifest,
        source,
    })?;
    let plain = folder.to_str().filter(|name| !name.contains(['"', '\\']));
    match plain {
        Some(name) if text.contains("name = \"maka-policy-sdk\"") => Ok(name.to_owned()),
        Some(_) | None => Err(InputError::NotSdk {
            path: path.to_owned(),
        }),
    }
}

fn write(path: &Path, content: &str) -> Result<(), InputError> {
    let failed = |source| InputError::Write {
        path: path.to_owned(),
        source,
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, content).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_for_folder_package_and_policy() {
        for good in ["hours", "my-policy", "a1", "no-2nd-click"] {
            assert!(good.parse::<ProjectName>().is_ok(), "{good}");
        }
        let long = "x".repeat(49);
        for bad in [
            "",
            "-",
            "a-",
            "-a",
            "a--b",
            "My",
            "my_policy",
            "a/b",
            "../x",
            "1a",
            "a.b",
            "fn",
            "test",
            "maka",
            "maka-floor",
            &long,
            "ä",
        ] {
            assert!(bad.parse::<ProjectName>().is_err(), "{bad}");
        }
        let name: ProjectName = "no-2nd-click".parse().unwrap();
        assert_eq!(name.type_name(), "No2ndClick");
    }

    /// A file of the SDK that a project does not get would be missed there only.
    #[test]
    fn the_whole_sdk_is_carried() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/src");
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| format!("sdk/src/{}", entry.unwrap().file_name().display()))
            .collect();
        files.sort();
        let mut carried: Vec<_> = SDK
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .filter(|name| name.starts_with("sdk/src/"))
            .collect();
        carried.sort();
        assert_eq!(files, carried);
    }
}
