//! What is accepted, and how each mistake is answered.

use std::path::Path;

use super::*;
use crate::{config::principals::Credential, principal::Role};

const SAMPLE: &str = include_str!("../../../deploy/gateway.toml");
const HEX: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("gateway.toml"), text)
}

/// The documented sample is a configuration, and it names every section.
#[test]
fn the_sample_is_accepted() {
    let config = parse(SAMPLE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.principals.0.len(), 2);
    assert_eq!(config.principals.0[1].role, Role::Agent);
    assert!(matches!(
        config.principals.0[1].credential,
        Credential::UnixUser(_)
    ));
    assert!(config.executor.is_some() && config.policy.is_some());
}

/// K6: what is left out is off, closed or absent; nothing widens authority by default.
#[test]
fn defaults_are_closed() {
    let config = parse("state_dir = \"/s\"\n").unwrap();
    assert!(!config.dev && !config.allow_global_pointer && !config.input.synthetic);
    assert!(config.executor.is_none() && config.policy.is_none() && config.principals.0.is_empty());
    assert_eq!(config.socket_path(), Some("/s/maka-gateway.sock".into()));
    assert_eq!(
        config.listen.tcp().unwrap().0,
        "127.0.0.1:50051".parse().unwrap()
    );
    assert_eq!(config.audit_path(), Path::new("/s/decisions.jsonl"));
    assert_eq!(config.image_dir(), Path::new("/s/images"));
    assert_eq!(config.audit.fsync, Fsync::Batch);
}

/// Each mistake names its line and its key, and says what to write. K10: so does an address that others reach.
#[test]
fn mistakes_are_named() {
    let principal =
        |rest: &str| format!("state_dir = \"/s\"\n[[principals]]\nname = \"a\"\n{rest}");
    let twice = |second: &str| principal(&format!("unix_uid = 1\n[[principals]]\n{second}"));
    let module = |rest: &str| {
        format!(
            "state_dir = \"/s\"\n[[policy.modules]]\nname = \"m\"\npath = \"/m\"\nsha256 = \"{HEX}\"\n{rest}"
        )
    };
    let rows: Vec<(&str, String, usize, Option<&str>, &str)> = vec![
        ("no state folder", "dev = true\n".into(), 1, None, "missing field `state_dir`"),
        ("unknown key", "state_dir = \"/s\"\nstate = 1\n".into(), 2, Some("state"), "unknown field"),
        ("unknown key in a section", "state_dir = \"/s\"\n[executor]\npth = \"/x\"\n".into(), 3, Some("executor.pth"), "expected"),
        ("unknown section", "state_dir = \"/s\"\n[tls]\n".into(), 2, Some("tls"), "unknown field"),
        ("display without extent", "state_dir = \"/s\"\n[[displays]]\nid = \"1\"\nx = 0.0\ny = 0.0\nwidth = 0.0\nheight = 9.0\nscale_factor = 1.0\n".into(), 2, Some("displays"), "extent"),
        ("unknown key of a display", "state_dir = \"/s\"\n[[displays]]\nname = \"1\"\n".into(), 3, Some("displays.name"), "unknown field"),
        ("relative path", "state_dir = \"s\"\n".into(), 1, Some("state_dir"), "absolute"),
        ("not TOML", "state_dir = /s\n".into(), 1, Some("state_dir"), ""),
        ("any address", "state_dir = \"/s\"\n[listen]\ntcp = \"0.0.0.0:50051\"\n".into(), 3, Some("listen.tcp"), "TLS"),
        ("a routable address", "state_dir = \"/s\"\n[listen]\ntcp = \"[2001:db8::1]:1\"\n".into(), 3, Some("listen.tcp"), "loopback"),
        ("a host name", "state_dir = \"/s\"\n[listen]\ntcp = \"localhost:1\"\n".into(), 3, Some("listen.tcp"), "IP address"),
        ("no listener", "state_dir = \"/s\"\n[listen]\n".into(), 2, Some("listen"), "names no listener"),
        ("no credential", principal(""), 2, Some("principals"), "maka-gateway token"),
        ("two credentials", principal(&format!("unix_uid = 1\ntoken_sha256 = \"{HEX}\"\n")), 2, Some("principals"), "one credential"),
        ("operator by user", principal("unix_uid = 1\nrole = \"operator\"\n"), 2, Some("principals"), "token only"),
        ("unknown role", principal("role = \"root\"\n"), 4, Some("principals.role"), "expected one of"),
        ("unknown grant", principal("unix_uid = 1\ngrants = [\"all\"]\n"), 5, Some("principals.grants"), "global-pointer"),
        ("short digest", principal("token_sha256 = \"00\"\n"), 4, Some("principals.token_sha256"), "64 lower-case"),
        ("prefixed digest", principal(&format!("token_sha256 = \"sha256:{HEX}\"\n")), 4, Some("principals.token_sha256"), "64 lower-case"),
        ("same name", twice("name = \"a\"\nunix_uid = 2\n"), 2, Some("principals"), "same name"),
        ("same user", twice("name = \"b\"\nunix_uid = 1\n"), 2, Some("principals"), "same credential"),
        ("bad name", "state_dir = \"/s\"\n[[principals]]\nname = \"A b\"\n".into(), 3, Some("principals.name"), "a-z"),
        ("negative user", principal("unix_uid = -1\n"), 4, Some("principals.unix_uid"), "user id"),
        ("unknown back end", "state_dir = \"/s\"\n[executor]\nback_end = \"x11\"\n".into(), 3, Some("executor.back_end"), "`virtual`"),
        ("a number too large", "state_dir = \"/s\"\n[executor]\ntimeout_ms = 0\n".into(), 3, Some("executor.timeout_ms"), "1 to 600000"),
        ("a bad variable", "state_dir = \"/s\"\n[executor]\nenv = { \"A=B\" = \"x\" }\n".into(), 3, Some("executor.env"), "letters"),
        ("a variable that is no string", "state_dir = \"/s\"\n[executor]\nenv = { A = 1 }\n".into(), 3, Some("executor.env"), "strings"),
        ("the floor named again", "state_dir = \"/s\"\n[[policy.modules]]\nname = \"maka-floor\"\npath = \"/m\"\nsha256 = \"".to_owned() + HEX + "\"\n", 2, Some("policy.modules"), "built in"),
        ("a module twice", module(&format!("[[policy.modules]]\nname = \"m\"\npath = \"/n\"\nsha256 = \"{HEX}\"\n")), 2, Some("policy.modules"), "same name"),
        ("a module without pin", "state_dir = \"/s\"\n[[policy.modules]]\nname = \"m\"\npath = \"/m\"\n".into(), 2, Some("policy.modules"), "missing field `sha256`"),
        ("a module by two files", "state_dir = \"/s\"\n[[policy.modules]]\nname = \"m\"\npath = \"/m\"\nbundle = \"/b\"\n".into(), 2, Some("policy.modules"), "one file"),
        ("an unknown set", "state_dir = \"/s\"\n[[principals]]\nname = \"p\"\nunix_uid = 1\npolicy_set = \"strict\"\n".into(), 5, Some("policy_set"), "no policy set has this name"),
        ("the default set again", "state_dir = \"/s\"\n[[policy.sets]]\nname = \"default\"\n".into(), 2, Some("policy.sets"), "section itself"),
        ("a set twice", "state_dir = \"/s\"\n[[policy.sets]]\nname = \"a\"\n[[policy.sets]]\nname = \"a\"\n".into(), 2, Some("policy.sets"), "same name"),
        ("a bundle of nobody", "state_dir = \"/s\"\n[[policy.modules]]\nname = \"m\"\nbundle = \"/b\"\n".into(), 4, Some("bundle"), "signers"),
        ("an unsigned module where a signature is required", format!("state_dir = \"/s\"\n[policy]\nrequire_signature = true\n[[policy.modules]]\nname = \"m\"\npath = \"/m\"\nsha256 = \"{HEX}\"\n"), 3, Some("require_signature"), "has no signature"),
        ("no key", "state_dir = \"/s\"\n[[policy.signers]]\nname = \"a\"\nkey = \"00\"\n".into(), 4, Some("policy.signers.key"), "64 lower-case"),
        ("an unknown fact", module("grant_facts = [\"screen\"]\n"), 6, Some("policy.modules.grant_facts"), "typed-text"),
        ("too much fuel", module("max_fuel = 200000001\n"), 6, Some("policy.modules.max_fuel"), "200000000"),
        ("too much time to compile", module("max_compile_s = 61\n"), 6, Some("policy.modules.max_compile_s"), "1 to 60"),
        ("unknown fsync", "state_dir = \"/s\"\n[audit]\nfsync = \"always\"\n".into(), 3, Some("audit.fsync"), "`batch`"),
        ("no sessions", "state_dir = \"/s\"\n[session]\nmax_total = 0\n".into(), 3, Some("session.max_total"), "1 to 4096"),
    ];
    for (row, text, expected_line, expected_key, says) in rows {
        let Err(ConfigError::Invalid {
            file,
            line,
            key,
            problem,
        }) = parse(&text)
        else {
            panic!("{row}: accepted");
        };
        assert_eq!(file, Path::new("gateway.toml"), "{row}");
        assert_eq!(
            (line, key.as_deref()),
            (expected_line, expected_key),
            "{row}: {problem}"
        );
        assert!(problem.contains(says), "{row}: {problem}");
    }
}

/// A value may be a secret: neither an error nor `Debug` quotes the variables for the executor.
#[test]
fn secrets_of_the_configuration_are_not_printed() {
    let text =
        "state_dir = \"/s\"\n[executor]\nenv = { TOKEN = \"canary-7\", \"1\" = \"canary-8\" }\n";
    let error = parse(text).unwrap_err().to_string();
    assert!(!error.contains("canary"), "{error}");
    let text = "state_dir = \"/s\"\n[executor]\nenv = { TOKEN = \"canary-7\" }\nargs = [\"--key=canary-9\"]\n\
                [[policy.modules]]\nname = \"m\"\npath = \"/m\"\nsha256 = \"";
    let config = parse(&format!(
        "{text}{HEX}\"\nsettings = {{ key = \"canary-10\" }}\n"
    ))
    .unwrap();
    let printed = format!("{config:?}");
    assert!(
        printed.contains("TOKEN") && !printed.contains("canary"),
        "{printed}"
    );
}

/// Settings of a module reach it as JSON.
#[test]
fn settings_become_json() {
    let text = format!(
        "state_dir = \"/s\"\n[[policy.modules]]\nname = \"m\"\npath = \"/m\"\nsha256 = \"{HEX}\"\n\
         settings = {{ open = \"08:00\", days = [1, 2] }}\n"
    );
    let config = parse(&text).unwrap();
    let settings = config.policy.unwrap().modules.0[0].settings.to_json();
    assert_eq!(
        settings,
        serde_json::json!({"days": [1, 2], "open": "08:00"})
    );
}
