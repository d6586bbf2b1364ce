//! The `doctor` subcommand: what stands between this process and a desktop.

use std::io::{self, Write};

use serde_json::json;

use crate::backend::BackendKind;
use crate::backend::doctor::Finding;
use crate::backend::open;
use crate::command_line::DoctorOptions;
use crate::exit::Exit;

/// Prints the findings on stdout, which carries no protocol here.
#[must_use]
pub fn run(options: &DoctorOptions) -> Exit {
    let (kind, findings) = match open::diagnose(&options.desktop) {
        Ok((kind, findings)) => (Some(kind), findings),
        Err(refusal) => {
            let finding = Finding {
                name: "back end",
                ok: false,
                found: refusal.missing,
                remedy: Some(refusal.remedy),
            };
            (options.desktop.back_end, vec![finding])
        }
    };
    let report = if options.json {
        as_json(kind, &findings)
    } else {
        as_text(kind, &findings)
    };
    // A reader that went away does not change what was found.
    drop(io::stdout().lock().write_all(report.as_bytes()));
    if findings.iter().all(|finding| finding.ok) {
        Exit::Done
    } else {
        Exit::Unhealthy
    }
}

fn as_text(kind: Option<BackendKind>, findings: &[Finding]) -> String {
    let mut text = format!("back end: {}\n", kind.map_or("none", BackendKind::as_str));
    for finding in findings {
        let mark = if finding.ok { "ok  " } else { "FAIL" };
        text.push_str(&format!("{mark} {}: {}\n", finding.name, finding.found));
        if let Some(remedy) = &finding.remedy {
            text.push_str(&format!("     {remedy}\n"));
        }
    }
    text
}

fn as_json(kind: Option<BackendKind>, findings: &[Finding]) -> String {
    let written: Vec<_> = findings
        .iter()
        .map(|finding| {
            let mut object =
                json!({ "name": finding.name, "ok": finding.ok, "found": finding.found });
            if let Some(remedy) = &finding.remedy {
                object["remedy"] = remedy.as_str().into();
            }
            object
        })
        .collect();
    let mut report =
        json!({ "ok": findings.iter().all(|finding| finding.ok), "findings": written });
    if let Some(kind) = kind {
        report["backEnd"] = kind.as_str().into();
    }
    format!("{report}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_to_do() {
        let findings = [
            Finding {
                name: "X display",
                ok: false,
                found: "none".to_owned(),
                remedy: Some("set DISPLAY".to_owned()),
            },
            Finding {
                name: "scenario",
                ok: true,
                found: "built in".to_owned(),
                remedy: None,
            },
        ];
        let text = as_text(Some(BackendKind::Linux), &findings);
        assert_eq!(
            text,
            "back end: linux\nFAIL X display: none\n     set DISPLAY\nok   scenario: built in\n"
        );
        let report: serde_json::Value = serde_json::from_str(&as_json(None, &findings)).unwrap();
        assert_eq!(report["ok"], false);
        assert!(report.get("backEnd").is_none(), "absent is absent");
        assert_eq!(report["findings"][0]["remedy"], "set DISPLAY");
        assert!(report["findings"][1].get("remedy").is_none());
    }
}
