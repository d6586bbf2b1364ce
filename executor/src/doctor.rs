//! The `doctor` subcommand: what stands between this process and a desktop, what can be done on it from here, and what is
//! worth knowing about its applications.
//!
//! It looks and changes nothing: no dialog is shown, nothing is started, raised or focused.

use std::io::{self, Write as _};

use maka_cu_protocol::handshake::Capabilities;

use crate::backend::desktop::{PermissionPrompt, Permissions};
use crate::backend::doctor::{Finding, Note, StartRefusal};
use crate::backend::{Backend, BackendKind, open};
use crate::cli::style::Style;
use crate::command_line::DoctorOptions;
use crate::deadline::Deadline;
use crate::executor::{LIST_BUDGET, offered};
use crate::exit::Exit;

mod report;

/// Everything that was found out.
#[derive(Debug)]
struct Examination {
    /// Which back end, if there is one.
    kind: Option<BackendKind>,
    /// What it needs.
    findings: Vec<Finding>,
    /// What is worth knowing.
    notes: Vec<Note>,
    /// What can be done; `None` when the desktop could not be taken.
    abilities: Option<Abilities>,
}

/// What can be done on a desktop from here, now.
#[derive(Debug)]
struct Abilities {
    capabilities: Capabilities,
    permissions: Option<Permissions>,
    locked: Option<bool>,
    displays: Option<usize>,
    windows: Option<usize>,
    applications: Option<usize>,
}

/// Prints the findings on stdout, which carries no protocol here.
#[must_use]
pub fn run(options: &DoctorOptions) -> Exit {
    let examination = examine(options);
    let report = if options.json {
        examination.as_json()
    } else {
        examination.as_text(Style::of(options.color))
    };
    // A reader that went away does not change what was found.
    drop(io::stdout().lock().write_all(report.as_bytes()));
    if examination.is_healthy() {
        Exit::Done
    } else {
        Exit::Unhealthy
    }
}

fn examine(options: &DoctorOptions) -> Examination {
    let (kind, findings) = match open::diagnose(&options.desktop) {
        Ok((kind, findings)) => (Some(kind), findings),
        Err(refusal) => (options.desktop.back_end, vec![missing("back end", refusal)]),
    };
    let mut examination = Examination {
        notes: kind.map_or_else(Vec::new, open::notes),
        kind,
        findings,
        abilities: None,
    };
    // One that needs something does not open, or opens to disappoint.
    match open::open(&options.desktop) {
        Ok(backend) => examination.look_at(&*backend),
        Err(_) if !examination.is_healthy() => {}
        Err(refusal) => examination.findings.push(missing("desktop", refusal)),
    }
    examination
}

fn missing(name: &'static str, refusal: StartRefusal) -> Finding {
    Finding {
        name,
        ok: false,
        found: refusal.missing,
        remedy: Some(refusal.remedy),
    }
}

impl Examination {
    fn is_healthy(&self) -> bool {
        self.findings.iter().all(|finding| finding.ok)
    }

    fn look_at(&mut self, backend: &dyn Backend) {
        let (abilities, findings) = Abilities::of(backend);
        self.findings.extend(findings);
        self.abilities = Some(abilities);
    }
}

impl Abilities {
    /// What the desktop answers now, and findings about what it withholds.
    fn of(backend: &dyn Backend) -> (Self, Vec<Finding>) {
        let within = || Deadline::within(LIST_BUDGET);
        let capabilities = offered(backend, false);
        let permissions = backend.permissions(PermissionPrompt::Never, &within()).ok();
        let locked = backend.screen_locked(&within()).ok();
        let windows = backend.windows(&within()).ok();
        let mut findings = vec![finding(
            "window list",
            windows.is_some(),
            ("answers", "does not answer"),
            "look at the log of the window server; a stopped one has to be started again",
        )];
        if let Some(permissions) = permissions {
            findings.push(finding(
                "accessibility permission",
                permissions.accessibility,
                ("granted", "missing: no controls can be read"),
                "grant it to the program that starts this one, in the system's privacy settings",
            ));
            // Where there are no pictures at all there is nothing to grant; a note says why.
            if !capabilities.image_formats.is_empty() {
                findings.push(finding(
                    "screen recording permission",
                    permissions.screen_recording,
                    ("granted", "missing: there are no pictures"),
                    "grant it to the program that starts this one, in the system's privacy settings",
                ));
            }
        }
        let abilities = Self {
            capabilities,
            permissions,
            locked,
            // None at all means that the desktop does not tell.
            displays: backend
                .displays(&within())
                .ok()
                .map(|all| all.len())
                .filter(|count| *count > 0),
            windows: windows.map(|all| all.len()),
            applications: backend.applications(&within()).ok().map(|all| all.len()),
        };
        (abilities, findings)
    }
}

fn finding(name: &'static str, ok: bool, (good, bad): (&str, &str), remedy: &str) -> Finding {
    Finding {
        name,
        ok,
        found: if ok { good } else { bad }.to_owned(),
        remedy: (!ok).then(|| remedy.to_owned()),
    }
}
