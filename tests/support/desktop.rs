//! A private Linux desktop with test programs on it: a real `zenity --entry` behind a desktop entry, and GTK
//! windows of a known size and content.

use std::{
    fs,
    path::{Path, PathBuf},
};

use maka_desktop::{Desktop, DesktopOptions};

/// App id of the entry that wraps `zenity --entry`.
pub const ZENITY_ENTRY: &str = "org.example.ZenityEntry";
/// App id of a GTK window with 500 elements.
pub const BIG_WINDOW: &str = "org.example.BigWindow";
/// App id of a GTK window with 1,500 elements.
pub const VERY_BIG_WINDOW: &str = "org.example.VeryBigWindow";
/// App id of a GTK window of 1280x800 pixels full of text and color.
pub const PICTURE: &str = "org.example.Picture";
/// App id of a GTK window that covers the whole display with one color.
pub const COVER: &str = "org.example.Cover";

/// A running desktop; everything on it ends with it.
#[derive(Debug)]
pub struct LinuxDesktop {
    desktop: Desktop,
    answer: PathBuf,
}

/// Starts a desktop and puts the test programs on it.
///
/// # Errors
/// What is missing, and what to install, in words.
pub fn start() -> Result<LinuxDesktop, String> {
    let desktop = Desktop::start(DesktopOptions::default()).map_err(|error| error.to_string())?;
    let applications = desktop.applications_dir();
    let answer = desktop.dir().join("zenity-answer.txt");
    let python = |script: &str, arguments: &str| {
        let script = crate::binaries::workspace_root()
            .join("tests/fixtures/gtk")
            .join(script);
        format!("/usr/bin/python3 \"{}\"{arguments}", script.display())
    };
    let entries = [
        (
            ZENITY_ENTRY,
            format!(
                "sh -c \"exec zenity --entry --title=Question --text='What is your name?' > '{}'\"",
                answer.display()
            ),
        ),
        (BIG_WINDOW, python("big_window.py", " 500")),
        (VERY_BIG_WINDOW, python("big_window.py", " 1500")),
        (PICTURE, python("picture.py", "")),
        (COVER, python("cover.py", "")),
    ];
    for (id, exec) in entries {
        write_entry(&applications, id, &exec).map_err(|error| error.to_string())?;
    }
    Ok(LinuxDesktop { desktop, answer })
}

fn write_entry(applications: &Path, id: &str, exec: &str) -> std::io::Result<()> {
    fs::create_dir_all(applications)?;
    fs::write(
        applications.join(format!("{id}.desktop")),
        format!("[Desktop Entry]\nType=Application\nName={id}\nExec={exec}\n"),
    )
}

impl LinuxDesktop {
    /// Variables that lead a program to this desktop.
    #[must_use]
    pub fn env(&self) -> Vec<(String, String)> {
        self.desktop.env()
    }

    /// What `zenity` printed; empty until it ended with OK.
    #[must_use]
    pub fn answer(&self) -> String {
        fs::read_to_string(&self.answer).unwrap_or_default()
    }

    /// Ends the desktop and everything on it.
    pub fn stop(self) {
        self.desktop.stop();
    }
}
