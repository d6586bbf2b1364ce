//! The decision log on a real file system, with what goes wrong there.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use super::corpus::click;
use super::support::{Bench, call, given, shared};
use crate::judge::{Answer, Judge, JudgeOptions, Released};
use crate::log::{ControlKind, DecisionLog, Fsync, LogError, LogOptions, VerifyError, verify};
use crate::set::PolicySet;

const FSYNC: [Fsync; 3] = [Fsync::Batch, Fsync::Each, Fsync::Never];

fn of(fsync: Fsync) -> LogOptions {
    LogOptions {
        fsync,
        rotation: None,
    }
}

fn open(path: &Path) -> DecisionLog {
    DecisionLog::open(path, LogOptions::default()).unwrap().0
}

#[test]
fn records_form_a_chain_that_is_continued() {
    for fsync in FSYNC {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (log, opened) = DecisionLog::open(&path, of(fsync)).unwrap();
        assert_eq!((opened.records, opened.torn_bytes), (0, 0));
        log.control(ControlKind::Hello, None);
        log.control(ControlKind::SessionBegin, Some("s"));
        let position = log.position();
        assert_eq!(
            (position.count, log.unlogged(), log.is_available()),
            (2, 0, true)
        );
        drop(log);
        let (log, opened) = DecisionLog::open(&path, of(fsync)).unwrap();
        assert_eq!((opened.records, log.position()), (2, position));
        log.control(ControlKind::SessionEnd, Some("s"));
        assert_eq!(verify(&path).unwrap(), log.position());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

/// K9: a changed, removed or inserted line is found; a cut tail is found with a position that was kept elsewhere.
#[test]
fn tampering_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = open(&path);
    for _ in 0..5 {
        log.control(ControlKind::SessionBegin, Some("s"));
    }
    let anchor = log.position();
    drop(log);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let broken_at = |lines: &[&str]| {
        let other = folder.path().join("other");
        fs::write(
            &other,
            lines
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>(),
        )
        .unwrap();
        match verify(&other) {
            Ok(position) => Err(position),
            Err(VerifyError::Broken(at)) => Ok(at),
            Err(error @ (VerifyError::Read(_) | VerifyError::Anchor(_))) => panic!("{error}"),
        }
    };
    let edited = lines[1].replace("session_begin", "session_end");
    assert_eq!(
        broken_at(&[lines[0], &edited, lines[2], lines[3], lines[4]]),
        Ok(3)
    );
    assert_eq!(broken_at(&[lines[0], lines[2], lines[3], lines[4]]), Ok(2));
    assert_eq!(broken_at(&[lines[1], lines[2]]), Ok(1));
    assert_eq!(broken_at(&[lines[0], lines[0], lines[1]]), Ok(2));
    assert_eq!(broken_at(&["not a record"]), Ok(1));
    let cut = broken_at(&lines[..4]).unwrap_err();
    assert_ne!(cut, anchor);
    assert_eq!(broken_at(&lines).unwrap_err(), anchor);
}

/// A line that a dying process left half written is cut off, said so, and the chain goes on from the last whole one.
#[test]
fn a_torn_tail_is_cut_off() {
    let whole = |path: &Path| {
        let log = open(path);
        log.control(ControlKind::Hello, None);
        log.position()
    };
    for torn in [
        &b"{"[..],
        b"{\"schema\":\"maka.policy.decision/1\",\"seq\":2",
        b"\0\0\0\0",
        "\u{fffd}".as_bytes(),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        whole(&path);
        fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(torn)
            .unwrap();
        let (log, opened) = DecisionLog::open(&path, LogOptions::default()).unwrap();
        assert_eq!((opened.records, opened.torn_bytes), (1, torn.len() as u64));
        assert_eq!(verify(&path).unwrap(), log.position());
        assert!(fs::read_to_string(&path).unwrap().contains("tail_cut"));
    }
    // The very first record can be torn as well.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    fs::write(&path, "{\"sch").unwrap();
    let (log, opened) = DecisionLog::open(&path, LogOptions::default()).unwrap();
    assert_eq!(
        (opened.records, opened.torn_bytes, log.position().count),
        (0, 5, 1)
    );
}

#[test]
fn what_is_no_log_of_ours_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let refused = |path: &Path| {
        DecisionLog::open(path, LogOptions::default())
            .map(|_| ())
            .unwrap_err()
    };
    fs::write(&path, "a diary\n").unwrap();
    assert!(matches!(refused(&path), LogError::Corrupt));
    fs::write(&path, vec![b'x'; 200_000]).unwrap();
    assert!(matches!(refused(&path), LogError::Corrupt));
    assert!(matches!(refused(Path::new("/dev/full")), LogError::NotOurs));
    assert!(matches!(refused(folder.path()), LogError::Io { .. }));
    assert!(matches!(
        refused(&folder.path().join("no/such/folder")),
        LogError::Io { .. }
    ));
    // A pipe would be waited for; both the writer and the reader of old records say no at once.
    let pipe = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    assert!(matches!(crate::log::scan(&pipe, 1), Err(LogError::NotOurs)));
    fs::write(&path, "").unwrap();
    let linked = folder.path().join("linked");
    fs::hard_link(&path, &linked).unwrap();
    assert!(matches!(refused(&path), LogError::NotOurs));
    fs::remove_file(&linked).unwrap();
    symlink(&path, &linked).unwrap();
    assert!(matches!(refused(&linked), LogError::NotOurs));
    // A file others can read is closed to them; a second writer is kept out.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let first = open(&path);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(matches!(refused(&path), LogError::InUse));
    drop(first);
    open(&path);
}

/// No record, no permit and no release; a new file makes it work again.
#[test]
fn a_log_that_takes_nothing_refuses_everything() {
    let (engine, floor) = shared();
    let folder = tempfile::tempdir().unwrap();
    let log = open(&folder.path().join("log"));
    let judge = Judge::try_new(engine.clone(), log.into(), JudgeOptions::default()).unwrap();
    judge
        .activate(vec![
            PolicySet::new(engine, "default", floor, vec![]).unwrap(),
        ])
        .unwrap();
    let permit = judge
        .admit_dispatch(&given(&click()), call(&click()))
        .unwrap();
    let count = judge.log().position().count;
    judge.log().fail_sync();
    let refusal = judge
        .admit_dispatch(&given(&click()), call(&click()))
        .unwrap_err();
    assert_eq!(refusal.code, "audit_unavailable");
    let review = judge.review(
        permit.receipt(),
        Answer::Read {
            ok: true,
            fresh: None,
        },
    );
    assert_eq!(
        (review.disposition, review.refusal.unwrap().code.as_str()),
        (Released::Withhold, "audit_unavailable")
    );
    judge.log().control(ControlKind::ReleaseHeld, None);
    assert_eq!(
        (judge.log().position().count, judge.log().unlogged()),
        (count, 1)
    );
    assert!(!judge.log().is_available());
    let second = folder.path().join("second");
    judge.log().replace(&second).unwrap();
    drop(
        judge
            .admit_dispatch(&given(&click()), call(&click()))
            .unwrap(),
    );
    assert_eq!(verify(&second).unwrap(), judge.log().position());
}

/// The name of the helper below, for a process of its own.
const CHILD: &str = "tests::logging::child";

/// Not a test by itself: what the tests below run in another process, because a limit on file sizes and a kill concern
/// the whole process. Writes until it cannot, saying each record it has written.
#[test]
fn child() {
    let Some(path) = std::env::var_os("MAKA_TEST_LOG") else {
        return;
    };
    let log = open(Path::new(&path));
    let mut out = std::io::stdout();
    for _ in 0..100_000 {
        log.control(
            ControlKind::SessionBegin,
            Some("a session with a name of some length"),
        );
        if log.unlogged() > 0 {
            break;
        }
        writeln!(out, "wrote {}", log.position().count).unwrap();
        out.flush().unwrap();
    }
    writeln!(out, "refused after {}", log.position().count).unwrap();
}

fn last_number(line: &str, words: &str) -> Option<u64> {
    line.strip_prefix(words)?.trim().parse().ok()
}

/// K9: on a full disk the record that does not fit is cut off again and the log stays whole.
#[test]
fn a_record_that_does_not_fit_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    // A limit on the size of files makes `write` short, as a full disk does.
    let output = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact \"$1\" --nocapture --test-threads 1",
        ])
        .arg(std::env::current_exe().unwrap())
        .arg(CHILD)
        .env("MAKA_TEST_LOG", &path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let count = text
        .lines()
        .find_map(|line| last_number(line, "refused after "))
        .unwrap_or_else(|| panic!("{text}"));
    assert!(count > 3);
    assert_eq!(verify(&path).unwrap().count, count);
    assert!(fs::read(&path).unwrap().ends_with(b"\n"));
}

/// K9: whatever was reported as written is there after a kill, and the log opens again.
#[test]
fn a_killed_process_has_written_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0_u64..20 {
        let path = folder.path().join(format!("log-{round}"));
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", CHILD, "--nocapture", "--test-threads", "1"])
            .env("MAKA_TEST_LOG", &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let wrote = lines
            .map_while(Result::ok)
            .filter_map(|line| last_number(&line, "wrote "));
        let said = wrote.take(1 + round as usize * 7).last().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        let (log, opened) = DecisionLog::open(&path, LogOptions::default()).unwrap();
        assert!(
            opened.records >= said,
            "{} records, {said} said",
            opened.records
        );
        assert_eq!(verify(&path).unwrap(), log.position());
    }
}

/// Many writers at once: every record is there once, and the chain holds.
#[test]
fn writers_take_turns() {
    let bench = Bench::new(vec![]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    drop(bench.admit(&click()).unwrap());
                }
            });
        }
    });
    let admitted = bench
        .records()
        .iter()
        .filter(|record| record["effective"] == "allow")
        .count();
    assert_eq!(admitted, 200);
    assert_eq!(
        verify(&bench.folder.path().join("log")).unwrap(),
        bench.judge.log().position()
    );
}
