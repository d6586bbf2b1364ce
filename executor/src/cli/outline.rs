//! A snapshot as an outline for a person: one line an element, in the order in which an agent gets them.

use maka_cu_protocol::element::Element;
use maka_cu_protocol::geometry::WindowRect;
use maka_cu_protocol::sets::TextField;
use maka_cu_protocol::snapshot::{Snapshot, Truncation};
use maka_cu_protocol::text::AppText;

use super::plain::{bare, quoted};
use super::style::{Ink, Style};
use crate::backend::desktop::WindowInfo;

/// Columns for one text of an element.
const COLUMNS: usize = 60;

/// Levels whose branches are drawn; what is deeper says how deep.
const BRANCHES: usize = 32;

/// The window, its elements, its menu if it was looked at, what the bounds cut, and which other ordinary windows its
/// application has among these.
#[must_use]
pub fn outline(snapshot: &Snapshot, windows: &[WindowInfo], style: Style) -> String {
    let mut text = head(snapshot, style);
    text.push_str(&tree(&snapshot.elements, style));
    let cut = cut(snapshot.truncated, "the tree");
    if let Some(menu) = &snapshot.menu {
        text.push('\n');
        text.push_str(&style.paint(Ink::Bold, "Menu"));
        text.push('\n');
        match menu.elements.is_empty() {
            true => text.push_str("the application has none\n"),
            false => text.push_str(&tree(&menu.elements, style)),
        }
    }
    text.push('\n');
    let count = snapshot.elements.len();
    text.push_str(&format!("{count} elements{cut}\n"));
    if let Some(menu) = &snapshot.menu {
        let cut = self::cut(menu.truncated, "the menu");
        text.push_str(&format!("{} in the menu{cut}\n", menu.elements.len()));
    }
    if let Some(selected) = &snapshot.selected_text {
        let shown = quoted(selected.text.as_str(), COLUMNS);
        text.push_str(&format!("selected text: {shown}\n"));
    }
    for other in others(snapshot, windows) {
        let title = match &other.title {
            Some(title) => quoted(title.as_str(), COLUMNS),
            None => "without a title".to_owned(),
        };
        let window = format!("--window {}", other.key.window_id);
        text.push_str(&format!("also: {window}  {title}\n"));
    }
    text
}

fn others<'a>(
    snapshot: &Snapshot,
    windows: &'a [WindowInfo],
) -> impl Iterator<Item = &'a WindowInfo> + use<'a> {
    let (shown, app_id) = (snapshot.target.window(), snapshot.target.app_id.clone());
    windows
        .iter()
        .filter(move |window| window.app_id == app_id && window.key != shown && window.layer == 0)
}

fn head(snapshot: &Snapshot, style: Style) -> String {
    let target = &snapshot.target;
    let title = match &target.title {
        Some(title) => quoted(title.as_str(), COLUMNS),
        None => "a window without a title".to_owned(),
    };
    let app = bare(target.app_id.as_str(), COLUMNS);
    let bounds = target.bounds;
    let mut place = format!(
        "pid {}, window {}, {}×{} points",
        target.pid,
        target.window_id,
        bounds.width(),
        bounds.height()
    );
    // Without displays there is no screen that it could have a place on.
    if !snapshot.displays.is_empty() {
        place.push_str(&format!(" at {},{}", bounds.x(), bounds.y()));
    }
    format!(
        "{}  {app}\n{}\n\n",
        style.paint(Ink::Bold, &title),
        style.paint(Ink::Dim, &place)
    )
}

fn cut(truncated: Truncation, what: &str) -> String {
    match (truncated.elements, truncated.depth) {
        (false, false) => String::new(),
        (true, false) => format!("; {what} has more than is shown"),
        (false, true) => format!("; {what} is deeper than is shown"),
        (true, true) => format!("; {what} has more, and is deeper, than is shown"),
    }
}

fn tree(elements: &[Element], style: Style) -> String {
    let widest = elements
        .iter()
        .filter_map(|element| element.stable_id)
        .max();
    let digits = widest.map_or(0, |id| id.to_string().len());
    let last = last_of_their_level(elements);
    // For each level above an element, whether more comes there.
    let mut goes_on: Vec<bool> = Vec::new();
    let mut text = String::new();
    for (element, is_last) in elements.iter().zip(last) {
        let depth = element.depth as usize;
        goes_on.resize(depth, false);
        let number = element
            .stable_id
            .map_or_else(String::new, |id| id.to_string());
        let number = format!("{number:>digits$}");
        let branches = style.paint(Ink::Dim, &branches(&goes_on, is_last));
        let line = describe(element, style);
        let number = style.paint(Ink::Number, &number);
        text.push_str(format!("{number} {branches}{line}").trim_end());
        text.push('\n');
        goes_on.push(!is_last);
    }
    text
}

/// Whether an element is the last child of its parent, from the depths of a list in depth-first order.
fn last_of_their_level(elements: &[Element]) -> Vec<bool> {
    let mut seen: Vec<bool> = Vec::new();
    let mut last: Vec<bool> = elements
        .iter()
        .rev()
        .map(|element| {
            let depth = element.depth as usize;
            // What is deeper belongs to children of another parent from here on.
            seen.resize(depth + 1, false);
            !std::mem::replace(&mut seen[depth], true)
        })
        .collect();
    last.reverse();
    last
}

fn branches(goes_on: &[bool], is_last: bool) -> String {
    let Some((_, above)) = goes_on.split_first() else {
        return String::new();
    };
    if above.len() > BRANCHES {
        return format!("(level {}) ", goes_on.len());
    }
    let mut drawn: String = above
        .iter()
        .map(|more| if *more { "│ " } else { "  " })
        .collect();
    drawn.push_str(if is_last { "└ " } else { "├ " });
    drawn
}

/// An element in one line: role, texts, states, what it offers, where it is.
fn describe(element: &Element, style: Style) -> String {
    let mut parts = vec![style.paint(Ink::Role, &role(element))];
    let mut quote = |lead: &str, text: &Option<AppText>, field: Option<TextField>| {
        if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
            let shown = quoted(text.as_str(), COLUMNS);
            let more = field.is_some_and(|field| element.truncated.contains(&field));
            let more = if more { "…" } else { "" };
            parts.push(style.paint(Ink::Quote, &format!("{lead}{shown}{more}")));
        }
    };
    quote("", &element.title, Some(TextField::Title));
    quote("label ", &element.label, Some(TextField::Label));
    quote("= ", &element.value, Some(TextField::Value));
    quote("hint ", &element.placeholder, Some(TextField::Placeholder));
    quote("id ", &element.ax_identifier, None);
    if element.is_secure() {
        parts.push("= (not shown)".to_owned());
    }
    let states = [
        element.focused.then_some("focused"),
        (!element.enabled).then_some("disabled"),
        element
            .selected
            .map(|selected| if selected { "selected" } else { "not selected" }),
    ];
    let states = states.into_iter().flatten();
    parts.extend(states.map(|state| style.paint(Ink::State, state)));
    if !element.actions.is_empty() {
        let actions: Vec<_> = element
            .actions
            .iter()
            .map(|action| action.as_str())
            .collect();
        parts.push(style.paint(Ink::Action, &format!("[{}]", actions.join(" "))));
    }
    if let Some(frame) = element.frame {
        parts.push(style.paint(Ink::Dim, &place(frame)));
    }
    parts.join(" ")
}

/// The role without the prefix that all of them have, and the subrole where it says more.
fn role(element: &Element) -> String {
    let short = |role: &str| bare(role.strip_prefix("AX").unwrap_or(role), COLUMNS);
    match element.subrole.as_deref() {
        Some(subrole) if subrole != element.role.as_str() => {
            format!("{}/{}", short(element.role.as_str()), short(subrole))
        }
        Some(_) | None => short(element.role.as_str()),
    }
}

fn place(frame: WindowRect) -> String {
    let [x, y, width, height] = frame.rounded();
    format!("{width}×{height} at {x},{y}")
}

#[cfg(test)]
mod tests {
    use maka_cu_protocol::ids::{Digest, ElementToken};
    use maka_cu_protocol::roles::Role;
    use maka_cu_protocol::sets::ElementVerb;

    use super::*;

    fn element(stable_id: u64, depth: u32, role: &str, title: &str) -> Element {
        Element {
            token: ElementToken::try_new(format!("el_{stable_id}")).unwrap(),
            stable_id: Some(stable_id),
            parent_token: None,
            depth,
            role: Role::new(role).unwrap(),
            subrole: None,
            ax_identifier: None,
            title: Some(AppText::new(title)),
            label: None,
            value: None,
            placeholder: None,
            enabled: true,
            focused: false,
            selected: None,
            frame: None,
            actions: Vec::new(),
            digest: Digest::of(b""),
            truncated: Vec::new(),
        }
    }

    #[test]
    fn branches_join_what_belongs_together() {
        let elements = [
            element(0, 0, "AXWindow", "Form"),
            element(1, 1, "AXGroup", "a"),
            element(12, 2, "AXButton", "b"),
            element(3, 2, "AXGroup", "c"),
            element(4, 3, "AXButton", "d"),
            element(5, 1, "AXButton", "e"),
        ];
        assert_eq!(
            tree(&elements, Style::PLAIN),
            " 0 Window \"Form\"\n \
              1 ├ Group \"a\"\n\
             12 │ ├ Button \"b\"\n \
              3 │ └ Group \"c\"\n \
              4 │   └ Button \"d\"\n \
              5 └ Button \"e\"\n"
        );
    }

    #[test]
    fn a_line_says_everything_and_stays_a_line() {
        let mut field = element(1, 1, "AXTextField", "Na\u{1b}[2Jme");
        field.subrole = Some("AXSearchField".to_owned());
        field.label = Some(AppText::new("who\nare you"));
        field.value = Some(AppText::new("שלום"));
        field.placeholder = Some(AppText::new(""));
        field.ax_identifier = Some(AppText::new("name"));
        field.focused = true;
        field.enabled = false;
        field.selected = Some(false);
        field.actions = vec![ElementVerb::Press, ElementVerb::ShowMenu];
        field.frame = WindowRect::try_new(20.4, 50.0, 300.0, 24.0).ok();
        field.truncated = vec![TextField::Value];
        assert_eq!(
            describe(&field, Style::PLAIN),
            "TextField/SearchField \"Na\\u{1b}[2Jme\" label \"who\\nare you\" = \"\u{2068}שלום\u{2069}\"… \
             id \"name\" focused disabled not selected [press show_menu] 300×24 at 20,50"
        );
    }

    #[test]
    fn a_password_is_said_to_be_hidden() {
        let mut field = element(1, 1, "AXTextField", "Password");
        field.subrole = Some("AXSecureTextField".to_owned());
        assert!(describe(&field, Style::PLAIN).contains("= (not shown)"));
    }

    /// A tree of any depth stays readable and is drawn in linear time.
    #[test]
    fn what_is_very_deep_says_its_level() {
        let elements: Vec<_> = (0..2_000)
            .map(|depth| element(u64::from(depth), depth, "AXGroup", ""))
            .collect();
        let text = tree(&elements, Style::PLAIN);
        assert_eq!(text.lines().count(), 2_000);
        assert!(text.lines().all(|line| line.chars().count() < 120));
        assert!(
            text.ends_with("(level 1999) Group\n"),
            "{}",
            &text[text.len() - 60..]
        );
    }
}
