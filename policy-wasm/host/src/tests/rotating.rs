//! A decision log that is spread over several files.

use std::fs;
use std::path::Path;

use crate::log::{
    Archive, ControlKind, DecisionLog, Fsync, LogError, LogOptions, Rotation, Verified,
    VerifyError, scan, verify, verify_all,
};

/// Small enough that a few records fill a file.
const FILE_BYTES: u64 = 600;

fn options(fsync: Fsync, keep_files: Option<u32>) -> LogOptions {
    let rotation = Rotation {
        max_file_bytes: FILE_BYTES,
        keep_files,
    };
    LogOptions {
        fsync,
        rotation: Some(rotation),
    }
}

fn open(path: &Path, keep_files: Option<u32>) -> DecisionLog {
    DecisionLog::open(path, options(Fsync::Never, keep_files))
        .unwrap()
        .0
}

fn write(log: &DecisionLog, count: usize) {
    for _ in 0..count {
        log.control(ControlKind::SessionBegin, Some("a session of some length"));
    }
    assert_eq!(log.unlogged(), 0);
}

/// Every record of the log, by its number, read in pieces.
fn read(log: &DecisionLog, from: u64) -> Vec<(u64, String)> {
    let until = log.position().count;
    let mut follower = log.follow(from);
    let mut records = Vec::new();
    while follower.next() <= until {
        let piece = follower.read(until, 300).unwrap();
        assert!(!piece.is_empty());
        records.extend(piece.into_iter().map(|record| (record.seq, record.line)));
    }
    records
}

/// One chain over all files, also after the log was opened again; each file begins with the record that says so.
#[test]
fn a_full_file_is_followed_by_another() {
    for fsync in [Fsync::Batch, Fsync::Each, Fsync::Never] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("decisions.jsonl");
        let (log, _) = DecisionLog::open(&path, options(fsync, None)).unwrap();
        write(&log, 20);
        let position = log.position();
        drop(log);
        let (log, opened) = DecisionLog::open(&path, options(fsync, None)).unwrap();
        assert_eq!(log.position(), position);
        assert!(opened.records < 20, "those of the last file");
        write(&log, 20);
        let position = log.position();

        let archives = Archive::list(&path).unwrap();
        assert!(archives.len() > 5, "{archives:?}");
        let mut next = 1;
        for archive in &archives {
            assert_eq!(archive.first, next);
            next = archive.last + 1;
            let text = fs::read_to_string(&archive.path).unwrap();
            assert_eq!(text.lines().count() as u64, next - archive.first);
            assert_eq!(text.contains("log_rotated"), archive.first > 1);
        }
        let expected = Verified {
            first: 1,
            files: archives.len() + 1,
            position,
        };
        assert_eq!(verify_all(&path, Some(position)).unwrap(), expected);
        assert_eq!(verify(&path).unwrap(), position);
        let numbers: Vec<_> = read(&log, 0).into_iter().map(|(seq, _)| seq).collect();
        assert_eq!(numbers, (1..=position.count).collect::<Vec<_>>());
    }
}

/// K9: a file that was changed or taken away from between the others is found.
#[test]
fn a_missing_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    write(&open(&path, None), 40);
    let archives = Archive::list(&path).unwrap();
    let third = &archives[2];
    let text = fs::read_to_string(&third.path).unwrap();

    fs::write(&third.path, text.replace("session_begin", "session_end")).unwrap();
    assert!(matches!(
        verify_all(&path, None),
        Err(VerifyError::Broken(_))
    ));
    fs::remove_file(&third.path).unwrap();
    assert!(matches!(
        verify_all(&path, None),
        Err(VerifyError::Broken(at)) if at == third.first
    ));
    fs::write(&third.path, &text).unwrap();
    verify_all(&path, None).unwrap();

    // The current file has to follow the newest full one, which the gateway looks at when it starts.
    let newest = archives.last().unwrap();
    let text = fs::read_to_string(&newest.path).unwrap();
    fs::write(&newest.path, text.replace("some length", "some  length")).unwrap();
    assert!(matches!(
        verify(&path),
        Err(VerifyError::Broken(at)) if at == newest.last + 1
    ));
    fs::write(&newest.path, text).unwrap();
    verify(&path).unwrap();

    // A log without its current file is not begun anew behind the old ones' back.
    let current = fs::read(&path).unwrap();
    for instead in [None, Some("")] {
        fs::remove_file(&path).unwrap();
        if let Some(text) = instead {
            fs::write(&path, text).unwrap();
        }
        let opened = DecisionLog::open(&path, options(Fsync::Never, None));
        assert!(matches!(opened, Err(LogError::Missing)), "{instead:?}");
        fs::write(&path, &current).unwrap();
    }
    drop(open(&path, None));
}

/// Old files go when nobody wants to keep them; what is left is whole and says where it begins.
#[test]
fn only_as_many_files_stay_as_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let log = open(&path, Some(2));
    write(&log, 40);
    let archives = Archive::list(&path).unwrap();
    assert_eq!(archives.len(), 2);
    let oldest = archives[0].first;
    assert!(oldest > 1);
    let verified = verify_all(&path, Some(log.position())).unwrap();
    assert_eq!((verified.first, verified.files), (oldest, 3));
    assert_eq!(read(&log, 1)[0].0, oldest);
    // What is left is no log of its own when its first lines are cut off.
    let text = fs::read_to_string(&archives[0].path).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    fs::write(&archives[0].path, rest).unwrap();
    assert!(matches!(
        verify_all(&path, None),
        Err(VerifyError::Broken(_))
    ));
}

/// Whatever a death in the middle of a change of files leaves, the log goes on where it stood.
#[test]
fn an_interrupted_change_of_files_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let next = folder.path().join("decisions.jsonl.next");
    let log = open(&path, None);
    write(&log, 20);
    let position = log.position();
    drop(log);

    // Before the first rename: the new file is there, and nobody needs it.
    fs::write(&next, "half a rec").unwrap();
    let log = open(&path, None);
    assert_eq!((log.position(), next.exists()), (position, false));
    drop(log);
    // Between the two.
    fs::rename(&path, &next).unwrap();
    let log = open(&path, None);
    assert_eq!((log.position(), next.exists()), (position, false));
    write(&log, 20);
    assert_eq!(verify_all(&path, None).unwrap().position, log.position());
}

/// When no new file can be begun the old one grows, and nothing is refused for that.
#[test]
fn a_log_that_cannot_change_files_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let log = open(&path, None);
    fs::create_dir(folder.path().join("decisions.jsonl.next")).unwrap();
    write(&log, 40);
    assert_eq!(Archive::list(&path).unwrap(), []);
    assert!(fs::metadata(&path).unwrap().len() > 2 * FILE_BYTES);
    assert_eq!(verify_all(&path, None).unwrap().position.count, 40);
}

/// Readers see every record once and in order while files change under them.
#[test]
fn readers_follow_the_writer() {
    const RECORDS: u64 = 600;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let log = open(&path, None);
    std::thread::scope(|scope| {
        for from in [1, 100] {
            let mut follower = log.follow(from);
            let log = &log;
            scope.spawn(move || {
                let mut expected = from;
                while expected <= RECORDS {
                    for record in follower.read(log.position().count, 1000).unwrap() {
                        assert_eq!(record.seq, expected);
                        let head =
                            format!("{{\"schema\":\"maka.policy.control/1\",\"seq\":{expected},");
                        assert!(record.line.starts_with(&head), "{}", record.line);
                        expected += 1;
                    }
                    std::thread::yield_now();
                }
            });
        }
        while log.position().count < RECORDS {
            write(&log, 1);
        }
    });
}

/// A key that was used just before the change is still known after a restart.
#[test]
fn calls_of_the_file_before_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let log = open(&path, None);
    write(&log, 3);
    assert_eq!(scan(&path, 10).unwrap().calls, []);
    let archives = Archive::list(&path).unwrap();
    let newest = archives
        .last()
        .map_or(path.clone(), |file| file.path.clone());
    drop(log);
    let decision = r#"{"schema":"maka.policy.decision/1","seq":1,"id":"d","hook":"admit-dispatch","tool_call":"k","effective":"allow"}"#;
    let text = fs::read_to_string(&newest).unwrap();
    let archive = folder
        .path()
        .join("decisions.000000000001-000000000009.jsonl");
    fs::write(&archive, format!("{decision}\n{text}")).unwrap();
    assert_eq!(scan(&path, 10).unwrap().calls.len(), 1);
}
