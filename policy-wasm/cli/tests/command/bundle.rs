//! `maka-policy keygen`, `sign` and `verify`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::support::{Folder, Ran, run_in};

const FLOOR: &str = "prebuilt:maka-floor";

const CASE: &str = "schema: maka.policy.fixture/1
name: spent
mirror: [{id: s1, state: spent}]
call: {hook: admit-dispatch, method: dispatch.element, claim: {snapshot: s1, element: e1, element_digest: d1}}
expect: {decision: deny, code: snapshot_spent, rules: [snap.state]}
";

/// A folder with a pair of keys and a fixture.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("fixtures/spent.yaml", CASE);
    let ran = run_in(folder.path(), &["keygen", "key"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    folder
}

fn sign(folder: &Path, out: &str) -> Ran {
    run_in(
        folder,
        &[
            "sign",
            FLOOR,
            "--fixtures",
            "fixtures",
            "--key",
            "key",
            "--out",
            out,
        ],
    )
}

fn verify(folder: &Path, bundle: &str, key: &str) -> Ran {
    run_in(folder, &["verify", bundle, "--key", key])
}

#[test]
fn what_was_signed_is_verified() {
    let folder = folder();
    let path = folder.path();
    let mode = std::fs::metadata(path.join("key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(sign(path, "floor.bundle").status, 0);
    // The same contents and key give the same bytes.
    assert_eq!(sign(path, "again.bundle").status, 0);
    let read = |name: &str| std::fs::read(path.join(name)).unwrap();
    assert_eq!(read("floor.bundle"), read("again.bundle"));
    let ran = verify(path, "floor.bundle", "key.pub");
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(
        ran.out
            .starts_with("verified: maka-floor 0.1.0 with 1 fixture files\npolicy sha256:"),
        "{ran:?}"
    );
    // One of several keys is enough.
    assert_eq!(run_in(path, &["keygen", "other"]).status, 0);
    let words = [
        "verify",
        "floor.bundle",
        "--key",
        "other.pub",
        "--key",
        "key.pub",
        "--json",
    ];
    let value = run_in(path, &words).json();
    assert_eq!(
        value["digest"],
        maka_policy_host::prebuilt::floor_digest().to_string()
    );
    let untrusted = verify(path, "floor.bundle", "other.pub");
    assert_eq!((untrusted.status, untrusted.out.as_str()), (2, ""));
    assert!(
        untrusted.err.contains("not among those that are trusted"),
        "{untrusted:?}"
    );
}

/// Every byte of a bundle counts: whichever is changed, cut off or added, it is refused.
#[test]
fn a_bundle_that_was_changed_is_refused() {
    let folder = folder();
    let path = folder.path();
    assert_eq!(sign(path, "good").status, 0);
    let good = std::fs::read(path.join("good")).unwrap();
    let find = |text: &[u8]| {
        let found = good.windows(text.len()).position(|window| window == text);
        found.unwrap()
    };
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let longer = [&good[..], &[0; 512]].concat();
    let rows = [
        ("name", flipped(0)),
        ("mode", flipped(104)),
        ("modified", flipped(140)),
        ("component", flipped(512 + 5_000)),
        ("fixture", flipped(find(b"name: spent\n"))),
        ("fixture name", flipped(find(b"fixtures/spent.yaml") + 10)),
        (
            "signature",
            flipped(find(b"maka.policy.signature/1 ") + 100),
        ),
        ("manifest", flipped(find(b"manifest.json") + 512 + 30)),
        ("padding", flipped(good.len() - 1)),
        ("longer", longer),
        ("shorter", good[..good.len() - 512].to_vec()),
        ("half", good[..good.len() / 2].to_vec()),
        ("empty", Vec::new()),
        ("text", b"not a bundle".to_vec()),
    ];
    for (name, bytes) in rows {
        folder.write("changed", bytes);
        let ran = verify(path, "changed", "key.pub");
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{name}: {ran:?}");
        assert!(
            ran.err.contains("the bundle `changed` is refused"),
            "{name}: {ran:?}"
        );
    }
}

#[test]
fn only_what_passes_its_fixtures_is_signed() {
    let folder = folder();
    let path = folder.path();
    folder.write(
        "fixtures/wrong.yaml",
        CASE.replace("snapshot_spent", "snapshot_expired"),
    );
    let ran = sign(path, "wrong.bundle");
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(
        ran.out
            .contains("expected snapshot_expired, got snapshot_spent"),
        "{ran:?}"
    );
    assert!(!path.join("wrong.bundle").exists());
}

#[test]
fn keys_and_bundles_are_neither_overwritten_nor_left_open() {
    let folder = folder();
    let path = folder.path();
    let key = std::fs::read(path.join("key")).unwrap();
    assert_eq!(run_in(path, &["keygen", "key"]).status, 2);
    assert_eq!(std::fs::read(path.join("key")).unwrap(), key);
    assert_eq!(sign(path, "key.pub").status, 2);
    std::fs::set_permissions(path.join("key"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let open = sign(path, "a.bundle");
    assert_eq!(open.status, 2);
    assert!(
        open.err.contains("others can read this secret key"),
        "{open:?}"
    );
    std::fs::set_permissions(path.join("key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(sign(path, "a.bundle").status, 0);
    // The two kinds of key are not mistaken for each other.
    let ran = verify(path, "a.bundle", "key");
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("holds no public key"), "{ran:?}");
    assert_eq!(run_in(path, &["verify", "a.bundle"]).status, 2);
}
