//! `maka-policy inspect`.

use serde_json::json;

use super::support::{Folder, allowing, manifest, run};

#[test]
fn the_floor_is_described_in_full() {
    let ran = run(&["inspect", "prebuilt:maka-floor"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    for part in [
        "maka-floor 0.1.0\n",
        "abi          maka:policy@1\n",
        "hooks        admit-dispatch, admit-cdp, review-result\n",
        "imports      none\n",
        "\n  snap.state       The quoted snapshot is live.\n",
        "  snapshot_spent (retry: after_observe)\n    An action has used this snapshot already.",
        "  /global_pointer  enum [\"grant\",\"approval\"]  default \"grant\"\n",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert_eq!(ran.err, "");
}

#[test]
fn json_says_the_same() {
    let value = run(&["inspect", "prebuilt:maka-floor", "--json"]).json();
    assert_eq!(value["schema"], "maka.policy.inspect/1");
    assert_eq!(value["name"], "maka-floor");
    assert_eq!(
        value["digest"],
        maka_policy_host::prebuilt::floor_digest().to_string()
    );
    assert_eq!(value["imports"], json!([]));
    assert_eq!(value["exports"], json!(["maka:policy/hooks@1.0.0"]));
    assert_eq!(value["settings"][0]["pointer"], "/global_pointer");
    assert_eq!(value["settings"][0]["default"], "grant");
    assert_eq!(value["rules"].as_array().unwrap().len(), 24);
}

/// What a policy asks for is shown whether or not it would be given.
#[test]
fn a_policy_that_asks_for_too_much_is_still_described() {
    let folder = Folder::new();
    let mut greedy = manifest();
    greedy["facts"] = json!(["typed-text"]);
    greedy["limits"]["fuel"] = json!(199_000_000);
    greedy["settings_schema"] = json!({"type": "object", "required": ["hours"], "properties": {
        "hours": {"type": "object", "properties": {"open": {"type": "integer", "minimum": 0, "default": 8}}}
    }});
    greedy["fixtures_digest"] = json!(format!("sha256:{}", "0".repeat(64)));
    let file = folder.write("greedy.wasm", allowing(&greedy));
    let ran = run(&["inspect", &file]);
    assert_eq!(ran.status, 0, "{ran:?}");
    for part in [
        "facts        typed-text\n",
        "199000000 fuel, 2 MiB\n",
        "fixtures     sha256:0000",
        "  /hours  type \"object\"  required\n",
        "  /hours/open  type \"integer\"  minimum 0  default 8\n",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
}

#[test]
fn what_is_not_there_is_bad_input() {
    for (words, reason) in [
        (&["inspect", "no-such-file.wasm"][..], "cannot be read"),
        (&["inspect", "/dev"], "not a regular file"),
        (&["inspect", "prebuilt:nothing"], "`prebuilt:maka-floor`"),
        (&["inspect"], "Usage"),
        (
            &["inspect", "prebuilt:maka-floor", "--max-fuel", "1"],
            "policy limit `fuel`",
        ),
    ] {
        let ran = run(words);
        assert_eq!(ran.status, 2, "{words:?}");
        assert!(ran.err.contains(reason), "{words:?}: {ran:?}");
        assert_eq!(ran.out, "");
    }
}

/// The help of every command says what it does, in its own words.
#[test]
fn help_teaches() {
    let ran = run(&["--help"]);
    assert_eq!(ran.status, 0);
    assert!(ran.out.contains("Exit codes: 0 passed"), "{}", ran.out);
    for (command, part) in [
        ("inspect", "Print what a policy says about itself"),
        ("check", "Say whether a gateway would load a policy"),
        ("run", "Explain one call"),
        ("test", "Run fixtures against a policy"),
        ("bench", "Measure what calls cost"),
        ("keygen", "Make a pair of keys"),
        (
            "sign",
            "Put a policy that passes its fixtures into a signed bundle",
        ),
        ("verify", "Check the signature of a bundle"),
        ("log", "Look at a decision log"),
    ] {
        let ran = run(&[command, "--help"]);
        assert_eq!(ran.status, 0);
        assert!(ran.out.starts_with(part), "{command}: {}", ran.out);
    }
    let ran = run(&["test", "--help"]);
    assert!(
        ran.out.contains("schema: maka.policy.fixture/1"),
        "{}",
        ran.out
    );
}
