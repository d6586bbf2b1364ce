//! What the system says about a process: whether it runs, its children, descriptors, threads, memory. Reads `/proc`; where there is
//! none, nothing runs and nothing is held.

use std::fs;
use std::path::PathBuf;

/// Whether a process runs, zombies not counted.
#[must_use]
pub fn runs(pid: i32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// Whether a process has ended and nobody has asked how.
#[must_use]
pub fn is_zombie(pid: i32) -> bool {
    state(pid) == Some('Z')
}

/// Whether every thread of a process has stopped.
#[must_use]
pub fn is_stopped(pid: i32) -> bool {
    let mut tasks = fs::read_dir(of(pid, "task")).into_iter().flatten();
    tasks.all(|task| {
        let stat = task.and_then(|task| fs::read_to_string(task.path().join("stat")));
        stat.is_ok_and(|stat| state_in(&stat) == Some('T'))
    })
}

fn state(pid: i32) -> Option<char> {
    state_in(&fs::read_to_string(of(pid, "stat")).ok()?)
}

fn state_in(stat: &str) -> Option<char> {
    // The name before it is in parentheses and may hold anything, parentheses included.
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// The children of a process, zombies included.
#[must_use]
pub fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(of(pid, "task"))
        .into_iter()
        .flatten()
        .flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect()
}

/// How many descriptors a process holds.
#[must_use]
pub fn descriptors(pid: i32) -> usize {
    fs::read_dir(of(pid, "fd")).map_or(0, Iterator::count)
}

/// How many threads a process has.
#[must_use]
pub fn threads(pid: i32) -> usize {
    fs::read_dir(of(pid, "task")).map_or(0, Iterator::count)
}

/// How much memory of a process is resident, in KiB.
#[must_use]
pub fn resident_kib(pid: i32) -> u64 {
    let status = fs::read_to_string(of(pid, "status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or_default()
}

fn of(pid: i32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}
