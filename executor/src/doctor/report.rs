//! An examination in words and as JSON.

use maka_cu_protocol::json::Json as _;
use serde_json::{Map, Value, json};

use super::{Abilities, Examination};
use crate::backend::{BackendKind, open};
use crate::cli::style::{Ink, Style};

impl Examination {
    /// For a person: what is missing first catches the eye, what to do about it stands below it.
    pub(super) fn as_text(&self, style: Style) -> String {
        let mut text = String::new();
        let name = self.kind.map_or("none", BackendKind::as_str);
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        line(format!("back end: {}", style.paint(Ink::Bold, name)));
        for finding in &self.findings {
            let mark = match finding.ok {
                true => style.paint(Ink::Good, "ok  "),
                false => style.paint(Ink::Bad, "FAIL"),
            };
            line(format!("{mark} {}: {}", finding.name, finding.found));
            if let Some(remedy) = &finding.remedy {
                line(format!("     {remedy}"));
            }
        }
        for note in &self.notes {
            line(format!(
                "{} {}: {}",
                style.paint(Ink::State, "note"),
                note.name,
                note.found
            ));
            if let Some(advice) = &note.advice {
                line(format!("     {}", style.paint(Ink::Dim, advice)));
            }
        }
        if let Some(abilities) = &self.abilities {
            line(String::new());
            line(style.paint(Ink::Bold, "what can be done here"));
            for (name, found) in abilities.rows() {
                line(format!("  {name}: {found}"));
            }
        }
        line(String::new());
        line(style.paint(Ink::Bold, "back ends of this build"));
        for kind in BackendKind::ALL {
            line(format!("  {kind}: {}", presence(kind)));
        }
        text
    }

    /// For a program: one object on one line. What is not known is absent.
    pub(super) fn as_json(&self) -> String {
        let findings = self.findings.iter().map(|finding| {
            object([
                ("name", Some(finding.name.into())),
                ("ok", Some(finding.ok.into())),
                ("found", Some(finding.found.as_str().into())),
                ("remedy", finding.remedy.as_deref().map(Value::from)),
            ])
        });
        let notes = self.notes.iter().map(|note| {
            object([
                ("name", Some(note.name.into())),
                ("found", Some(note.found.as_str().into())),
                ("advice", note.advice.as_deref().map(Value::from)),
            ])
        });
        let built = BackendKind::ALL
            .into_iter()
            .filter(|kind| open::is_built(*kind));
        let report = object([
            ("ok", Some(self.is_healthy().into())),
            ("backEnd", self.kind.map(|kind| kind.as_str().into())),
            ("findings", Some(findings.collect())),
            ("notes", Some(notes.collect())),
            ("abilities", self.abilities.as_ref().map(Abilities::as_json)),
            ("built", Some(built.map(BackendKind::as_str).collect())),
        ]);
        format!("{report}\n")
    }
}

impl Abilities {
    fn rows(&self) -> Vec<(&'static str, String)> {
        fn words<T: std::fmt::Display>(all: &[T]) -> String {
            let words: Vec<_> = all.iter().map(T::to_string).collect();
            if words.is_empty() {
                "none".to_owned()
            } else {
                words.join(", ")
            }
        }
        let capabilities = &self.capabilities;
        let mut rows = vec![
            ("actions on elements", words(&capabilities.element_actions)),
            ("actions at points", words(&capabilities.point_actions)),
            ("keys", words(&capabilities.key_actions)),
            ("pictures", words(&capabilities.image_formats)),
        ];
        if let Some(permissions) = self.permissions {
            let probe = permissions.screen_recording_probe;
            rows.push(("probe of the pixels", probe.to_string()));
        }
        let counted = |count: Option<usize>| {
            count.map_or_else(|| "not known".to_owned(), |count| count.to_string())
        };
        let seen = format!(
            "displays {}, windows {}, applications {}",
            counted(self.displays),
            counted(self.windows),
            counted(self.applications)
        );
        rows.push(("seen now", seen));
        let locked = match self.locked {
            Some(true) => "locked: nothing can be done until a person unlocks it",
            Some(false) => "not locked",
            None => "whether it is locked cannot be told",
        };
        rows.push(("screen", locked.to_owned()));
        rows
    }

    fn as_json(&self) -> Value {
        let permissions = self.permissions.map(|permissions| {
            json!({
                "accessibility": permissions.accessibility,
                "screenRecording": permissions.screen_recording,
                "screenRecordingProbe": permissions.screen_recording_probe.as_str(),
            })
        });
        object([
            ("capabilities", Some(self.capabilities.write())),
            ("permissions", permissions),
            ("locked", self.locked.map(Value::from)),
            ("displays", self.displays.map(Value::from)),
            ("windows", self.windows.map(Value::from)),
            ("applications", self.applications.map(Value::from)),
        ])
    }
}

const fn presence(kind: BackendKind) -> &'static str {
    match (kind, open::is_built(kind)) {
        (BackendKind::VirtualDesktop, _) => {
            "always there; never chosen by itself, only by `--back-end virtual`"
        }
        (BackendKind::Linux, true) => {
            "an X11 desktop; chosen without `--back-end` where DISPLAY has a screen of its own"
        }
        (BackendKind::Wayland, true) => {
            "controls only; chosen without `--back-end` in any other session with a WAYLAND_DISPLAY"
        }
        (BackendKind::Macos, true) => {
            "the real desktop of this platform; chosen without `--back-end`"
        }
        (BackendKind::Linux | BackendKind::Wayland | BackendKind::Macos, false) => {
            "not part of this build"
        }
    }
}

fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let there = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(Map::from_iter(there))
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::handshake::Capabilities;
    use maka_cu_protocol::sets::ElementActionKind;

    use super::*;
    use crate::backend::doctor::{Finding, Note};

    fn examination() -> Examination {
        Examination {
            kind: Some(BackendKind::Linux),
            findings: vec![
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
            ],
            notes: vec![Note {
                name: "Qt switch",
                found: "off".to_owned(),
                advice: Some("switch it on".to_owned()),
            }],
            abilities: None,
        }
    }

    #[test]
    fn a_report_says_what_to_do() {
        let text = examination().as_text(Style::PLAIN);
        assert!(
            text.starts_with(
                "back end: linux\n\
                 FAIL X display: none\n     set DISPLAY\n\
                 ok   scenario: built in\n\
                 note Qt switch: off\n     switch it on\n\n\
                 back ends of this build\n"
            ),
            "{text}"
        );
        let report: Value = serde_json::from_str(&examination().as_json()).unwrap();
        assert_eq!(report["ok"], false);
        assert_eq!(report["findings"][0]["remedy"], "set DISPLAY");
        assert!(
            report["findings"][1].get("remedy").is_none(),
            "absent is absent"
        );
        assert_eq!(report["notes"][0]["advice"], "switch it on");
        assert!(report.get("abilities").is_none());
    }

    #[test]
    fn what_is_not_offered_is_said_as_well() {
        let abilities = Abilities {
            capabilities: Capabilities {
                element_actions: vec![ElementActionKind::Click, ElementActionKind::SetValue],
                ..Capabilities::default()
            },
            permissions: None,
            locked: Some(true),
            displays: Some(1),
            windows: None,
            applications: Some(2),
        };
        let rows = abilities.rows();
        assert_eq!(rows[0].1, "click, set_value");
        assert_eq!(rows[1].1, "none");
        assert_eq!(rows[4].1, "displays 1, windows not known, applications 2");
        assert!(rows[5].1.starts_with("locked"));
        let report = abilities.as_json();
        assert_eq!(
            report["capabilities"]["elementActions"],
            json!(["click", "set_value"])
        );
        assert!(report.get("windows").is_none() && report.get("permissions").is_none());
    }
}
