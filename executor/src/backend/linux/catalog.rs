//! The desktop entries of this machine, and the names of running processes that follow from them (one rule for every
//! list: see [`Catalog::app_of`]).

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::entry::{Entry, id_of, parse};

/// A desktop entry is text of a few kilobytes, translations included.
const LONGEST_ENTRY: u64 = 256 * 1024;
/// Folders below `applications` that are searched: vendors nest one, two at most.
const DEEPEST: usize = 4;
const MOST_ENTRIES: usize = 4096;

/// Programs that run other programs: that one of them runs says nothing about which application it is.
const CARRIERS: [&str; 27] = [
    "ash",
    "bash",
    "busybox",
    "bwrap",
    "csh",
    "dash",
    "dbus-launch",
    "electron",
    "env",
    "fish",
    "flatpak",
    "gjs",
    "java",
    "ksh",
    "mono",
    "node",
    "perl",
    "php",
    "ruby",
    "setsid",
    "sh",
    "snap",
    "sudo",
    "tclsh",
    "tcsh",
    "wine",
    "zsh",
];

/// An entry with its place.
#[derive(Clone, Debug)]
pub(super) struct Application {
    /// The desktop-entry id, without the ending.
    pub(super) id: String,
    pub(super) path: PathBuf,
    pub(super) entry: Entry,
    /// The program it starts, with links resolved; `None` when it is not installed.
    pub(super) executable: Option<PathBuf>,
}

impl Application {
    /// The name for people.
    pub(super) fn name(&self) -> &str {
        if self.entry.name.is_empty() {
            &self.id
        } else {
            &self.entry.name
        }
    }
}

/// All applications at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Catalog {
    applications: Vec<Application>,
}

impl Catalog {
    /// The application whose program this is: exactly one entry must name it, and it must not be a carrier of others.
    pub(super) fn app_of(&self, executable: &Path) -> Option<&Application> {
        if is_carrier(executable) {
            return None;
        }
        let mut named = self
            .applications
            .iter()
            .filter(|one| one.executable.as_deref() == Some(executable));
        match (named.next(), named.next()) {
            (Some(application), None) => Some(application),
            (None, _) | (Some(_), Some(_)) => None,
        }
    }

    /// The application of this id.
    pub(super) fn by_id(&self, id: &str) -> Option<&Application> {
        self.applications.iter().find(|one| one.id == id)
    }

    /// Every application that answers to this id or name. An id wins over names.
    pub(super) fn named(&self, name: &str) -> Vec<&Application> {
        match self.by_id(name) {
            Some(application) => vec![application],
            None => self
                .applications
                .iter()
                .filter(|one| one.entry.name == name)
                .collect(),
        }
    }

    fn new(applications: Vec<Application>) -> Self {
        Self { applications }
    }
}

/// Whether processes of this program are known by what they run rather than by what they are.
pub(super) fn is_carrier(executable: &Path) -> bool {
    let Some(name) = executable.file_name().and_then(OsStr::to_str) else {
        return true;
    };
    // Interpreters carry their version: python3.11, php8.2.
    let stem = name.trim_end_matches(|character: char| {
        character.is_ascii_digit() || matches!(character, '.' | '-')
    });
    CARRIERS.contains(&stem)
        || CARRIERS.contains(&name)
        || stem.starts_with("python")
        || stem.starts_with("qemu-")
}

/// Reads the catalog; what did not change since the last reading is not parsed again.
#[derive(Debug, Default)]
pub(super) struct Reading {
    parsed: HashMap<PathBuf, (Stamp, Option<Entry>)>,
}

/// What tells that a file is still the one that was parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(data: &Metadata) -> Self {
        Self {
            inode: data.ino(),
            length: data.len(),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }
}

impl Reading {
    /// The applications of now, in the folders of `XDG_DATA_HOME` and `XDG_DATA_DIRS`; an id that is in an earlier
    /// folder hides the later ones.
    pub(super) fn catalog(&mut self) -> Catalog {
        let mut files = BTreeMap::new();
        for folder in data_folders() {
            collect(&folder.join("applications"), "", 0, &mut files);
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let mut parsed = HashMap::new();
        let mut applications = Vec::new();
        for (id, path_of_entry) in files {
            let Ok(data) = fs::metadata(&path_of_entry) else {
                continue;
            };
            let stamp = Stamp::of(&data);
            let entry = match self.parsed.remove(&path_of_entry) {
                Some((known, entry)) if known == stamp => entry,
                Some(_) | None => read_entry(&path_of_entry),
            };
            if let Some(entry) = entry.as_ref().filter(|entry| !entry.hidden) {
                applications.push(Application {
                    id,
                    executable: entry
                        .exec
                        .first()
                        .and_then(|program| resolve(program, &path)),
                    path: path_of_entry.clone(),
                    entry: entry.clone(),
                });
            }
            parsed.insert(path_of_entry, (stamp, entry));
        }
        self.parsed = parsed;
        Catalog::new(applications)
    }
}

fn data_folders() -> Vec<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let home = set("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    let shared = set("XDG_DATA_DIRS").unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    // Relative folders are to be ignored (XDG Base Directory Specification).
    home.into_iter()
        .chain(env::split_paths(&shared))
        .filter(|path| path.is_absolute())
        .collect()
}

fn collect(folder: &Path, prefix: &str, depth: usize, files: &mut BTreeMap<String, PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let file_name = entry.file_name();
        let Some(name) = file_name.to_str() else {
            continue;
        };
        let relative = format!("{prefix}{name}");
        let path = entry.path();
        if let Some(id) = id_of(&relative) {
            if files.len() < MOST_ENTRIES {
                files.entry(id).or_insert(path);
            }
        } else if depth < DEEPEST && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&path, &format!("{relative}/"), depth + 1, files);
        }
    }
}

fn read_entry(path: &Path) -> Option<Entry> {
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(LONGEST_ENTRY).read_to_string(&mut text).ok()?;
    parse(&text)
}

/// The file that a command's first word names.
pub(super) fn resolve(program: &str, path: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let found = if program.contains('/') {
        Some(PathBuf::from(program))
            .filter(|path| path.is_absolute())
            .filter(is_program)
    } else {
        env::split_paths(path)
            .map(|folder| folder.join(program))
            .find(is_program)
    };
    fs::canonicalize(found?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(id: &str, name: &str, executable: &str) -> Application {
        let entry = parse(&format!(
            "[Desktop Entry]\nType=Application\nName={name}\nExec=x\n"
        ))
        .unwrap();
        Application {
            id: id.into(),
            path: PathBuf::new(),
            entry,
            executable: Some(executable.into()),
        }
    }

    #[test]
    fn a_process_has_a_name_only_when_one_entry_names_its_program() {
        let catalog = Catalog::new(vec![
            application("org.example.Notes", "Notes", "/usr/bin/notes"),
            application("a.Office", "Writer", "/opt/office"),
            application("b.Office", "Calc", "/opt/office"),
            application("script", "Script", "/usr/bin/python3.11"),
        ]);
        let id = |path: &str| catalog.app_of(Path::new(path)).map(|one| one.id.as_str());
        assert_eq!(id("/usr/bin/notes"), Some("org.example.Notes"));
        assert_eq!(id("/opt/office"), None);
        assert_eq!(id("/usr/bin/python3.11"), None);
        assert_eq!(id("/usr/bin/other"), None);
    }

    #[test]
    fn names_are_exact() {
        let catalog = Catalog::new(vec![
            application("one", "Notes", "/1"),
            application("two", "Notes", "/2"),
            application("Notes2", "two", "/3"),
        ]);
        let ids = |name: &str| {
            catalog
                .named(name)
                .iter()
                .map(|one| one.id.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids("Notes"), ["one", "two"]);
        assert_eq!(ids("two"), ["two"]);
        assert_eq!(ids("notes"), Vec::<String>::new());
        assert_eq!(ids(""), Vec::<String>::new());
    }

    #[test]
    fn carriers_are_recognised_with_their_versions() {
        for carrier in [
            "/bin/sh",
            "/usr/bin/python3.11",
            "/usr/bin/python",
            "/usr/bin/node",
            "/usr/bin/php8.2",
            "/",
        ] {
            assert!(is_carrier(Path::new(carrier)), "{carrier}");
        }
        for program in ["/usr/bin/zenity", "/usr/bin/notes", "/usr/bin/shotwell"] {
            assert!(!is_carrier(Path::new(program)), "{program}");
        }
    }
}
