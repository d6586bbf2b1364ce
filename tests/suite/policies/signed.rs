//! Bundles: what is signed by somebody the operator knows, and nothing else.

use std::{fs, path::Path, process::Command};

use integration_tests::{
    binaries,
    client::{metadata, reason},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use tempfile::TempDir;

use super::guest::{Does, guest};
use super::plane::{activate, generation, load, module, prebuilt};

const CASE: &str = "schema: maka.policy.fixture/1\nname: look\ncall: {hook: admit-dispatch, method: observe}\nexpect: {decision: allow, rules: []}\n";

fn maka_policy(folder: &Path, words: &[&str]) -> String {
    let ran = Command::new(binaries::path("maka-policy"))
        .args(words)
        .current_dir(folder)
        .output()
        .expect("maka-policy runs");
    assert!(ran.status.success(), "{words:?}: {ran:?}");
    String::from_utf8(ran.stdout).expect("text")
}

/// A folder with two pairs of keys and a bundle by each of them.
fn signed(policy: &[u8]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    fs::create_dir(path.join("fixtures")).expect("a folder");
    fs::write(path.join("fixtures/look.yaml"), CASE).expect("a fixture");
    fs::write(path.join("good.wasm"), policy).expect("a policy");
    for key in ["known", "stranger"] {
        maka_policy(path, &["keygen", key]);
        let out = format!("{key}.bundle");
        let words = [
            "sign",
            "good.wasm",
            "--fixtures",
            "fixtures",
            "--key",
            key,
            "--out",
            &out,
        ];
        maka_policy(path, &words);
    }
    folder
}

fn signer(folder: &Path) -> String {
    let line = fs::read_to_string(folder.join("known.pub")).expect("the key");
    let key = line.trim().rsplit(' ').next().expect("the last word");
    format!("[[policy.signers]]\nname = \"acme\"\nkey = \"{key}\"\n")
}

/// With `require_signature` a bare component is refused, a bundle of a stranger is, one that was changed is; one that is
/// good is loaded, its fixtures are run, and it judges.
#[tokio::test]
async fn only_what_a_known_signer_signed_is_taken() {
    let good = guest("good", "1", Does::Allow);
    let folder = signed(&good);
    let bundle = |name: &str| fs::read(folder.path().join(name)).expect("a bundle");
    let mut options = GatewayOptions::new(Executor::Virtual);
    options.policy_keys = "require_signature = true".into();
    options.sections = signer(folder.path());
    let gateway = GatewayProcess::serving(options).await;

    let mut changed = bundle("known.bundle");
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    let rows = [
        ("bare", good.clone(), "unsigned"),
        ("a stranger", bundle("stranger.bundle"), "signer_unknown"),
    ];
    for (row, file, code) in rows {
        let refused = load(&gateway, &file).await.unwrap_err();
        assert_eq!(reason(&refused), "gateway.maka/policy_refused", "{row}");
        assert_eq!(metadata(&refused, "code").as_deref(), Some(code), "{row}");
    }
    let refused = load(&gateway, &changed).await.unwrap_err();
    assert_eq!(reason(&refused), "gateway.maka/policy_refused", "changed");

    let loaded = load(&gateway, &bundle("known.bundle"))
        .await
        .expect("loaded");
    let policy = loaded.policy.expect("the policy");
    assert_eq!((policy.signer.as_str(), policy.fixtures), ("acme", 1));
    let choice = maka_proto::v1::ModuleChoice {
        digest: policy.digest.clone(),
        ..Default::default()
    };
    activate(&gateway, "", vec![choice])
        .await
        .expect("activated");
    let now = generation(&gateway).await;
    assert_eq!(now.modules[1].digest, policy.digest);
    // What is part of the product needs no signature.
    activate(&gateway, "", vec![module(&prebuilt("deny-all"))])
        .await
        .expect("activated");
    gateway.stop().await;
}

/// A bundle of the configuration, and the digest that signing wrote into its manifest.
#[tokio::test]
async fn a_configured_bundle_is_checked_before_it_judges() {
    let folder = signed(&guest("good", "1", Does::Allow));
    let path = folder.path();
    let shown = maka_policy(
        path,
        &["verify", "known.bundle", "--key", "known.pub", "--json"],
    );
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let mut options = GatewayOptions::new(Executor::Virtual);
    options.sections = format!(
        "{}[[policy.modules]]\nname = \"good\"\nbundle = \"{}\"\n",
        signer(path),
        path.join("known.bundle").display()
    );
    let gateway = GatewayProcess::serving(options.clone()).await;
    let now = generation(&gateway).await;
    assert_eq!(now.modules[1].digest.as_str(), shown["digest"]);
    let kept = gateway.stop().await;
    fs::copy(path.join("stranger.bundle"), path.join("known.bundle")).expect("copied");
    let gateway = GatewayProcess::start_in(kept, options).await;
    let (status, kept) = gateway.ended().await;
    let log = fs::read_to_string(kept.path().join("gateway.log")).expect("the log");
    assert!(!status.success() && log.contains("signer_unknown"), "{log}");
}
