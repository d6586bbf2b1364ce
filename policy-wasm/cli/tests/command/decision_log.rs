//! `maka-policy log verify`.

use maka_policy_host::log::{ControlKind, DecisionLog, LogOptions};

use super::support::{Folder, Ran, run};

/// A log of four records, and its position.
fn log(folder: &Folder) -> (String, String) {
    let path = folder.path().join("decisions.jsonl");
    let (log, _) = DecisionLog::open(&path, LogOptions::default()).expect("the folder is ours");
    for session in ["a", "b", "c", "d"] {
        log.control(ControlKind::SessionBegin, Some(session));
    }
    let position = log.position();
    let head = position.head.expect("it has records");
    let path = path.to_str().expect("temporary paths are plain").to_owned();
    (path, format!("{}:{head}", position.count))
}

fn verify(words: &[&str]) -> Ran {
    run(&[&["log", "verify"], words].concat())
}

/// K9: a record that was edited or removed is found, and with a kept position also a cut end and a rewritten file.
#[test]
fn what_was_changed_is_found() {
    let folder = Folder::new();
    let (file, position) = log(&folder);
    let ran = verify(&[&file]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(
        ran.out.ends_with(&format!("position {position}\n")),
        "{ran:?}"
    );
    assert_eq!(verify(&[&file, "--anchor", &position]).status, 0);
    let value = verify(&[&file, "--json"]).json();
    assert_eq!(value["whole"], true);
    assert_eq!(value["position"], *position);

    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let count = lines.len();
    let edited = text.replacen("\"session\":\"b\"", "\"session\":\"x\"", 1);
    assert_ne!(edited, text);
    let removed = [&lines[..1], &lines[2..]].concat().concat();
    let cut = lines[..count - 1].concat();
    for (name, text, alone, anchored) in [
        ("edited", edited, 1, 1),
        ("removed", removed, 1, 1),
        ("cut", cut, 0, 1),
        ("emptied", String::new(), 0, 1),
    ] {
        let file = folder.write(name, text);
        let ran = verify(&[&file]);
        assert_eq!(ran.status, alone, "{name}: {ran:?}");
        let ran = verify(&[&file, "--anchor", &position]);
        assert_eq!(
            (ran.status, ran.out.as_str()),
            (anchored, ""),
            "{name}: {ran:?}"
        );
        assert!(
            ran.err.starts_with("not whole: the decision log was "),
            "{name}: {ran:?}"
        );
        assert_eq!(
            verify(&[&file, "--anchor", &position, "--json"]).json()["whole"],
            false
        );
    }

    // Another log of the same length is whole by itself.
    let other = Folder::new();
    let (rewritten, _) = log(&other);
    let ran = verify(&[&rewritten, "--anchor", &position]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(
        ran.err
            .contains(&format!("record {count} is missing or not the one")),
        "{ran:?}"
    );
    // A log that goes on after the kept position still holds it.
    let (longer, _) = DecisionLog::open(file.as_ref(), LogOptions::default()).unwrap();
    longer.control(ControlKind::SessionEnd, Some("a"));
    assert_eq!(verify(&[&file, "--anchor", &position]).status, 0);
}

#[test]
fn what_cannot_be_read_is_bad_input() {
    let folder = Folder::new();
    let file = folder.write("log", "");
    for (words, reason) in [
        (&["no-such-file"][..], "cannot be read"),
        (&["/dev"], "cannot be verified"),
        (
            &[&file, "--anchor", "4"],
            "a position is the number of a record",
        ),
    ] {
        let ran = verify(words);
        assert_eq!(ran.status, 2, "{words:?}: {ran:?}");
        assert!(ran.err.contains(reason), "{words:?}: {ran:?}");
    }
}
