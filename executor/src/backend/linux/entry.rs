//! Desktop entries: what can be launched, and under which name it is known.
//!
//! The parts of the Desktop Entry Specification 1.5 that a launcher needs; everything here is pure. Localised names are
//! not read: a name must mean the same on every machine.

use std::collections::HashMap;

/// What an entry says. The names in it come from files of the system, not from running applications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// The command, quotes and escapes resolved, field codes still in it.
    pub(super) exec: Vec<String>,
    pub(super) icon: Option<String>,
    pub(super) folder: Option<String>,
    pub(super) terminal: bool,
    /// Deleted by the user.
    pub(super) hidden: bool,
}

/// Reads an entry of type `Application`. `None` for other types and for what is not a usable entry.
pub(super) fn parse(text: &str) -> Option<Entry> {
    let mut values: HashMap<&str, &str> = HashMap::new();
    let mut in_entry = false;
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        if line.starts_with('[') {
            // Only the first group of that name counts; actions and vendor groups follow it.
            in_entry = line.trim_end() == "[Desktop Entry]" && values.is_empty();
        } else if let Some((key, value)) = line
            .split_once('=')
            .filter(|_| in_entry && !line.starts_with('#'))
        {
            values.entry(key.trim_end()).or_insert(value.trim_start());
        }
    }
    let text = |key: &str| {
        values
            .get(key)
            .map(|value| unescape(value))
            .filter(|value| !value.is_empty())
    };
    let is_true = |key: &str| {
        values
            .get(key)
            .is_some_and(|value| value.trim_end() == "true")
    };
    let hidden = is_true("Hidden");
    if values.get("Type").map(|kind| kind.trim_end()) != Some("Application") && !hidden {
        return None;
    }
    let exec = text("Exec").map(|exec| split_command(&exec));
    let exec = match exec {
        Some(Some(words)) if !words.is_empty() => words,
        // A deleted entry need not hold anything else.
        _ if hidden => Vec::new(),
        _ => return None,
    };
    Some(Entry {
        name: text("Name").unwrap_or_default(),
        exec,
        icon: text("Icon"),
        folder: text("Path"),
        terminal: is_true("Terminal"),
        hidden,
    })
}

/// The id of an entry: its path below the `applications` folder with `-` for `/`, without the ending.
pub(super) fn id_of(relative_path: &str) -> Option<String> {
    let id = relative_path.strip_suffix(".desktop")?.replace('/', "-");
    (!id.is_empty()).then_some(id)
}

impl Entry {
    /// The command line for a launch without files: codes for files vanish, those for the entry itself are filled in.
    /// `path` is the entry's own file.
    pub(super) fn command(&self, path: &str) -> Vec<String> {
        let mut words = Vec::new();
        for word in &self.exec {
            match word.as_str() {
                "%f" | "%F" | "%u" | "%U" | "%d" | "%D" | "%n" | "%N" | "%v" | "%m" => {}
                "%i" => {
                    if let Some(icon) = &self.icon {
                        words.extend(["--icon".to_owned(), icon.clone()]);
                    }
                }
                word => words.push(self.expand(word, path)),
            }
        }
        words
    }

    fn expand(&self, word: &str, path: &str) -> String {
        let mut expanded = String::with_capacity(word.len());
        let mut characters = word.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                expanded.push(character);
                continue;
            }
            match characters.next() {
                Some('%') => expanded.push('%'),
                Some('c') => expanded.push_str(&self.name),
                Some('k') => expanded.push_str(path),
                // Codes for files, deprecated and unknown ones stand for nothing here.
                Some(_) | None => {}
            }
        }
        expanded
    }
}

/// Escapes of string values. An unknown one stays as it is: the command has escapes of its own.
fn unescape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.trim_end().chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('s') => text.push(' '),
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('\\') => text.push('\\'),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}

/// Words of a command: separated by blanks, quoted as a whole by double quotes, in which a backslash protects `"`,
/// `` ` ``, `$` and itself. `None` when a quote is left open.
fn split_command(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if quoted => {
                let next = characters.next()?;
                let word = word.get_or_insert_default();
                if !matches!(next, '"' | '`' | '$' | '\\') {
                    word.push('\\');
                }
                word.push(next);
            }
            character if character.is_ascii_whitespace() && !quoted => words.extend(word.take()),
            character => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    (!quoted).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_parsed() {
        let text = "# comment\n[Desktop Entry]\nType=Application\nName=Notes\nName[de]=Notizen\n\
                    Exec=notes --new %U\nIcon=notes\nPath=/srv\nTerminal=false\n\n[Desktop Action x]\nExec=other\n";
        let entry = parse(text).unwrap();
        assert_eq!(entry.name, "Notes");
        assert_eq!(entry.exec, ["notes", "--new", "%U"]);
        assert_eq!(entry.folder.as_deref(), Some("/srv"));
        assert!(!entry.terminal && !entry.hidden);
        for text in [
            "",
            "[Desktop Entry]\nType=Link\nURL=x\n",
            "[Desktop Entry]\nType=Application\nName=x\n",
            "[Desktop Entry]\nType=Application\nName=x\nExec=\"open quote\n",
            "Type=Application\nExec=x\n",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert!(parse("[Desktop Entry]\nHidden=true\n").unwrap().hidden);
    }

    #[test]
    fn commands_are_split_and_filled_in() {
        let rows: &[(&str, &[&str])] = &[
            ("prog %f", &["prog"]),
            ("prog --file=%f x", &["prog", "--file=", "x"]),
            ("prog %i %c", &["prog", "--icon", "pic", "My App"]),
            ("prog 100%% %k", &["prog", "100%", "/e.desktop"]),
            (
                r#""/opt/my app/run" "a \"b\" \$c" """#,
                &["/opt/my app/run", r#"a "b" $c"#, ""],
            ),
            ("prog   a\tb", &["prog", "a", "b"]),
            (
                r#"sh -c "echo \\"hi\\" > /tmp/o""#,
                &["sh", "-c", "echo \"hi\" > /tmp/o"],
            ),
        ];
        for (exec, expected) in rows {
            let exec = exec.replace('\t', "\\t");
            let text =
                format!("[Desktop Entry]\nType=Application\nName=My App\nIcon=pic\nExec={exec}\n");
            assert_eq!(
                parse(&text).unwrap().command("/e.desktop"),
                *expected,
                "{exec}"
            );
        }
    }

    #[test]
    fn ids_follow_the_path() {
        assert_eq!(
            id_of("org.example.Notes.desktop").as_deref(),
            Some("org.example.Notes")
        );
        assert_eq!(id_of("kde/notes.desktop").as_deref(), Some("kde-notes"));
        assert_eq!(id_of("notes.txt"), None);
        assert_eq!(id_of(".desktop"), None);
    }
}
