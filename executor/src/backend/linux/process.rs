//! The process table, read live from `/proc`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::backend::desktop::ProcessStart;

/// Longest status line that is read. The kernel's is below 500 bytes.
const LONGEST_STAT: usize = 4096;
/// Most of an environment that is read. The kernel allows programs about this much by default.
const LONGEST_ENVIRONMENT: u64 = 2 * 1024 * 1024;

/// One process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) session: u32,
    /// In clock ticks since boot (field 22). Together with the pid it names one process for good.
    pub(super) start: ProcessStart,
    /// Ended and not yet reaped.
    pub(super) zombie: bool,
    /// The kernel's name of at most 15 bytes.
    pub(super) name: String,
}

/// Reads one process, or `None` when there is none of that id.
pub(super) fn process(pid: u32) -> Option<Process> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&line).filter(|process| process.pid == pid)
}

/// Every process that can be seen.
pub(super) fn processes() -> Vec<Process> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(process)
        .filter(|process| !process.zombie)
        .collect()
}

/// The file that the process runs, with links resolved; `None` for another user's process or a kernel thread.
pub(super) fn executable(pid: u32) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    // The kernel marks a replaced file, as after an upgrade; the program is still the one of that path.
    match path
        .to_str()
        .and_then(|text| text.strip_suffix(" (deleted)"))
    {
        Some(text) => Some(Path::new(text).to_path_buf()),
        None => Some(path),
    }
}

/// Whether the process was started with this variable in its environment. No for another user's process, and for an
/// environment beyond what is read.
pub(super) fn was_given(pid: u32, variable: &str) -> bool {
    let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) else {
        return false;
    };
    let mut environment = Vec::new();
    if file
        .take(LONGEST_ENVIRONMENT)
        .read_to_end(&mut environment)
        .is_err()
    {
        return false;
    }
    environment
        .split(|byte| *byte == 0)
        .filter_map(|entry| entry.strip_prefix(variable.as_bytes()))
        .any(|rest| rest.first() == Some(&b'='))
}

/// How long the process has been running, in clock ticks, which are hundredths of a second on every Linux.
pub(super) fn age_ticks(process: &Process) -> Option<u64> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an uptime is small and positive"
    )]
    let now = (seconds * 100.0) as u64;
    Some(now.saturating_sub(process.start.0))
}

/// Field numbers are those of `proc(5)`. The second field is the name in parentheses and may itself hold spaces and
/// parentheses, so the rest is counted from the last one.
fn parse_stat(line: &[u8]) -> Option<Process> {
    let line = &line[..line.len().min(LONGEST_STAT)];
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(&line[..open])
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(&line[close + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Process {
        pid,
        name,
        zombie: matches!(field(3)?, "Z" | "X"),
        parent: field(4)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        start: ProcessStart(field(22)?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_are_parsed_also_with_odd_names() {
        let line = b"77 (a) b (c) S 12 77 70 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 9 9 9\n";
        let process = parse_stat(line).unwrap();
        assert_eq!(
            process,
            Process {
                pid: 77,
                parent: 12,
                session: 70,
                start: ProcessStart(987_654),
                zombie: false,
                name: "a) b (c".to_owned(),
            }
        );
        for line in [
            &b""[..],
            b"77",
            b"77 (x",
            b"77 (x) S 1",
            b") 1 (",
            b"x (y) S 1 1 1",
        ] {
            assert_eq!(parse_stat(line), None, "{line:?}");
        }
    }

    #[test]
    fn the_environment_is_that_of_the_start() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env("MAKA_TEST_GIVEN", "1")
            .spawn()
            .unwrap();
        let given = |name| was_given(child.id(), name);
        // Before the child has become the program it is a copy of this one.
        let started = (0..3000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            given("MAKA_TEST_GIVEN")
        });
        let others = given("MAKA_TEST_GIV") || given("MAKA_TEST_GIVEN=1");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(started && !others);
        assert!(!was_given(u32::MAX, "PATH"));
    }

    #[test]
    fn this_process_is_found() {
        let own = std::process::id();
        let process = process(own).unwrap();
        assert!(!process.zombie);
        assert!(processes().iter().any(|one| one.pid == own));
        assert_eq!(executable(own).unwrap(), std::env::current_exe().unwrap());
        assert!(age_ticks(&process).is_some());
    }
}
