//! `cargo xtask tutorial`: walks the tutorial of `policy-wasm/README.md` word for word, from an empty folder to a policy
//! that denies in a running gateway.
//!
//! Every `sh` block is run as it is printed, in one shell; the `text` block after it is what it has to print, line by
//! line, with `…` for what differs from machine to machine. So the tutorial cannot say what is no longer so.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::tools;
use crate::workspace::{Profile, binary, build, root, target_dir};

/// What `cargo xtask tutorial` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Use the programs that the tests use, instead of optimised ones.
    #[arg(long)]
    debug: bool,
}

/// What an author should need at most.
const AT_MOST: Duration = Duration::from_secs(600);

/// Stands between the outputs of two blocks.
const MARK: &str = "== end of block";

/// A block to run, with the lines that it has to print.
#[derive(Debug, Default)]
struct Block {
    script: String,
    expected: Vec<String>,
}

/// Walks the tutorial.
///
/// # Errors
/// When a command fails, prints something else, or all of them take longer than the tutorial promises.
pub(crate) fn tutorial(arguments: &Arguments) -> anyhow::Result<()> {
    let text = fs::read_to_string(root().join("policy-wasm/README.md"))?;
    let blocks = blocks(&text)?;
    let profile = Profile::from_debug_flag(arguments.debug);
    build(profile, &["maka-policy", "maka-gateway", "maka-cu"])?;
    tools::ensure()?;

    let folder = target_dir().join("tutorial");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let began = Instant::now();
    let output = Command::new("bash")
        .args(["-c", &script(&blocks)])
        .current_dir(&folder)
        .env("PATH", path(profile)?)
        // What policies have in common is built once for the tutorial and for `cargo xtask policy`.
        .env("MAKA_POLICY_TARGET_DIR", target_dir().join("policy"))
        .stdin(Stdio::null())
        .output()
        .context("bash cannot be started")?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    let parts: Vec<_> = said.split(MARK).collect();
    for (block, part) in blocks.iter().zip(&parts) {
        compare(block, part)?;
    }
    if !output.status.success() || parts.len() <= blocks.len() {
        bail!(
            "the tutorial ended with {} after {} of {} steps",
            output.status,
            parts.len() - 1,
            blocks.len()
        );
    }
    let took = began.elapsed();
    if took > AT_MOST {
        bail!(
            "the tutorial took {} s, and promises {}",
            took.as_secs(),
            AT_MOST.as_secs()
        );
    }
    println!("tutorial: {} steps in {} s", blocks.len(), took.as_secs());
    Ok(())
}

/// The programs of this build first, then grpcurl, then what is there anyway.
fn path(profile: Profile) -> anyhow::Result<std::ffi::OsString> {
    let programs = binary(profile, "maka-policy");
    let programs = programs.parent().context("a program lies in a folder")?;
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = [programs.to_owned(), tools::folder().join("venv/bin")]
        .into_iter()
        .chain(std::env::split_paths(&rest))
        .collect();
    Ok(std::env::join_paths(folders)?)
}

/// All blocks in one shell, which ends with everything it started.
fn script(blocks: &[Block]) -> String {
    let mut script =
        "set -euo pipefail\nexec 2>&1\ntrap 'jobs -p | xargs -r kill 2>/dev/null || true' EXIT\n"
            .to_owned();
    for block in blocks {
        script += &block.script;
        script += &format!("echo '{MARK}'\n");
    }
    script
}

/// The blocks of the section `## Tutorial`.
fn blocks(text: &str) -> anyhow::Result<Vec<Block>> {
    let section = text
        .split("\n## ")
        .find(|section| section.starts_with("Tutorial"))
        .context("policy-wasm/README.md has no tutorial")?;
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = None;
    for line in section.lines() {
        match (inside, line) {
            (None, "```sh") => {
                blocks.push(Block::default());
                inside = Some("sh");
            }
            (None, "```text") => inside = Some("text"),
            (None, _) => {}
            (Some(_), "```") => inside = None,
            (Some(kind), line) => {
                let block = blocks
                    .last_mut()
                    .context("output stands before any command")?;
                if kind == "sh" {
                    block.script += line;
                    block.script.push('\n');
                } else {
                    block.expected.push(line.to_owned());
                }
            }
        }
    }
    if blocks.is_empty() {
        bail!("the tutorial has no commands");
    }
    Ok(blocks)
}

/// Every expected line is there, in this order; others may stand between.
fn compare(block: &Block, said: &str) -> anyhow::Result<()> {
    let mut lines = said.lines();
    for expected in block.expected.iter().filter(|line| !line.trim().is_empty()) {
        if !lines.any(|line| fits(expected, line)) {
            bail!(
                "the tutorial says that this is printed, and it is not:\n  {expected}\nafter\n{}",
                block.script
            );
        }
    }
    Ok(())
}

/// Whether a line is as expected, where `…` stands for anything.
fn fits(expected: &str, line: &str) -> bool {
    let mut parts = expected.trim().split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.trim().strip_prefix(first) else {
        return false;
    };
    let mut is_open = false;
    for part in parts {
        is_open = true;
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
        if !part.is_empty() {
            is_open = false;
        }
    }
    is_open || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_stand_for_anything() {
        for (expected, line, held) in [
            ("built: a", "built: a", true),
            ("built: a", "built: ab", false),
            ("built: … bytes", "built: 12 bytes", true),
            ("built: … bytes", "built: 12 bytes more", false),
            ("built: …", "built: 12 bytes", true),
            ("a … b … c", "a 1 b 2 c", true),
            ("a … b … c", "a 1 c 2 b", false),
        ] {
            assert_eq!(fits(expected, line), held, "{expected} | {line}");
        }
    }

    #[test]
    fn the_tutorial_can_be_taken_apart() {
        let text = fs::read_to_string(root().join("policy-wasm/README.md")).unwrap();
        let blocks = blocks(&text).unwrap();
        assert!(
            blocks
                .iter()
                .filter(|block| !block.expected.is_empty())
                .count()
                > 4
        );
        let nothing = Block {
            script: String::new(),
            expected: vec!["never printed".to_owned()],
        };
        assert!(compare(&nothing, "something else").is_err());
    }
}
