//! The switches by which toolkits decide whether they answer on the accessibility bus, as this environment has them, and
//! what a Wayland session leaves out.
//!
//! An application reads them once, when it starts. What is seen here is what an application gets that is started from here;
//! one that runs already may have been told something else.

use std::env;

use zbus::wire::Variant;

use super::bus::{Bus, CALL_TIMEOUT, CallError, ObjectRef};
use super::doctor::{runtime, session_bus_address};
use crate::backend::BackendKind;
use crate::backend::doctor::Note;

const X11_INSTEAD: &str =
    "log in to an X11 session, or start a private desktop with `maka-desktop run --`";

/// Looks at every switch.
pub(super) fn notes(kind: BackendKind) -> Vec<Note> {
    let mut notes = vec![status_note(accessibility_is_on())];
    let variable = |name: &str| env::var(name).ok();
    notes.extend(switches(variable));
    notes.extend(limits(kind, variable));
    notes
}

/// What cannot be had in a session of this kind, why, and what to do about it.
fn limits(kind: BackendKind, variable: impl Fn(&str) -> Option<String>) -> Vec<Note> {
    let is_set = |name: &str| variable(name).is_some_and(|found| !found.is_empty());
    match kind {
        BackendKind::Linux if is_set("WAYLAND_DISPLAY") => vec![note(
            "Wayland",
            "this session is a Wayland session: only windows of X programs are seen",
            Some(
                "see all of them with `--back-end wayland`, or start programs with X, as with GDK_BACKEND=x11 and QT_QPA_PLATFORM=xcb",
            ),
        )],
        BackendKind::Wayland => {
            let mut notes = vec![
                note(
                    "pictures",
                    "none: a compositor shows no program the windows of another",
                    Some(X11_INSTEAD),
                ),
                note(
                    "points and keys",
                    "none: no Wayland protocol brings input to one window of another program",
                    Some("operate controls instead, or log in to an X11 session"),
                ),
                note(
                    "places of windows",
                    "not known, and windows cannot be moved, resized or minimised: the compositor alone knows and does that",
                    None,
                ),
            ];
            if is_set("DISPLAY") {
                notes.push(note(
                    "Xwayland",
                    "X programs are seen here as far as they are accessible",
                    Some("their pictures, and nothing of other programs, come with `--back-end linux`"),
                ));
            }
            notes
        }
        BackendKind::Linux | BackendKind::Macos | BackendKind::VirtualDesktop => Vec::new(),
    }
}

/// The switches in the environment.
fn switches(variable: impl Fn(&str) -> Option<String>) -> Vec<Note> {
    let is = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
    let qt = if is("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1") {
        note("Qt switch", "on", None)
    } else {
        note(
            "Qt switch",
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON is not set: Qt programs may show no controls",
            Some("set QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1 where they are started"),
        )
    };
    let gtk3 = if is("NO_AT_BRIDGE", "1") {
        note(
            "GTK 3 switch",
            "NO_AT_BRIDGE=1 switches it off: GTK 3 programs show no controls",
            Some("unset NO_AT_BRIDGE where they are started"),
        )
    } else {
        note("GTK 3 switch", "on", None)
    };
    let gtk4 = if is("GTK_A11Y", "none") {
        note(
            "GTK 4 switch",
            "GTK_A11Y=none switches it off: GTK 4 programs show no controls",
            Some("unset GTK_A11Y where they are started"),
        )
    } else {
        note("GTK 4 switch", "on", None)
    };
    vec![qt, gtk3, gtk4]
}

fn status_note(is_on: Result<bool, CallError>) -> Note {
    const NAME: &str = "accessibility switch";
    const SWITCH_ON: &str = "switch it on before they start: busctl --user set-property org.a11y.Bus /org/a11y/bus org.a11y.Status IsEnabled b true";
    match is_on {
        Ok(true) => note(NAME, "on", None),
        Ok(false) => note(
            NAME,
            "off: browsers and Electron programs show no controls",
            Some(SWITCH_ON),
        ),
        Err(_) => note(
            NAME,
            "nobody on the session bus tells; browsers may show no controls",
            Some("start inside a session that has one: `maka-desktop run --`"),
        ),
    }
}

/// `org.a11y.Status.IsEnabled`, which browsers ask when they start.
fn accessibility_is_on() -> Result<bool, CallError> {
    let address = session_bus_address().ok_or(CallError::Lost)?;
    let runtime = runtime().map_err(|_| CallError::Lost)?;
    let asked = runtime.block_on(async {
        let bus = Bus::connect(&address).await?;
        let status = ObjectRef::new("org.a11y.Bus", "/org/a11y/bus");
        // Asking must not start what is looked for.
        if !bus.is_owned("org.a11y.Bus").await? {
            return Err(CallError::Gone);
        }
        bus.property(&status, "org.a11y.Status", "IsEnabled", CALL_TIMEOUT)
            .await
    });
    // The connection's tasks end with it; nothing is waited for.
    runtime.shutdown_background();
    match *asked? {
        Variant::Bool(is_on) => Ok(is_on),
        _ => Err(CallError::Malformed),
    }
}

fn note(name: &'static str, found: &str, advice: Option<&str>) -> Note {
    Note {
        name,
        found: found.to_owned(),
        advice: advice.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes of the switches that have advice, for an environment of these variables.
    fn advised(variables: &[(&str, &str)]) -> Vec<&'static str> {
        let look = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let notes = switches(look).into_iter();
        notes
            .filter(|note| note.advice.is_some())
            .map(|note| note.name)
            .collect()
    }

    #[test]
    fn each_switch_is_read_as_its_toolkit_reads_it() {
        let on = ("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1");
        assert_eq!(advised(&[]), ["Qt switch"]);
        assert!(advised(&[on, ("NO_AT_BRIDGE", "0"), ("GTK_A11Y", "")]).is_empty());
        assert_eq!(
            advised(&[on, ("NO_AT_BRIDGE", "1"), ("GTK_A11Y", "none"),]),
            ["GTK 3 switch", "GTK 4 switch"]
        );
    }

    #[test]
    fn what_a_session_leaves_out_is_said() {
        use BackendKind::{Linux, VirtualDesktop, Wayland};
        let check = |kind, set: &[&str], expected: &[&str]| {
            let variable = |name: &str| set.contains(&name).then(|| "x".to_owned());
            let notes = limits(kind, variable);
            let names: Vec<_> = notes.iter().map(|note| note.name).collect();
            assert_eq!(names, expected, "{kind} {set:?}");
        };
        let always = ["pictures", "points and keys", "places of windows"];
        let [pictures, points, places] = always;
        check(Linux, &["DISPLAY"], &[]);
        check(Linux, &["DISPLAY", "WAYLAND_DISPLAY"], &["Wayland"]);
        check(Wayland, &["WAYLAND_DISPLAY"], &always);
        check(
            Wayland,
            &["DISPLAY", "WAYLAND_DISPLAY"],
            &[pictures, points, places, "Xwayland"],
        );
        check(VirtualDesktop, &["WAYLAND_DISPLAY"], &[]);
    }
}
