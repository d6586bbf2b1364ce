//! Lists that are longer than what they show.

use maka_cu_protocol::action::Pages;
use maka_cu_protocol::keys::{Key, Modifiers, NamedKey};
use maka_cu_protocol::roles;
use maka_cu_protocol::sets::{Direction, MouseButton};

use super::*;

/// Five rows in view.
fn list(keys: &str) -> VirtualDesktop {
    app_with(&format!(
        "[[apps.windows.controls]]\nkind = \"list\"\nid = \"list\"\nlabel = \"List\"\nfocused = true\n\
         bounds = [10, 50, 200, 138]\n{keys}\n{}",
        log(250)
    ))
}

fn list_node(desktop: &VirtualDesktop) -> RawNode {
    node(desktop, "Main", roles::LIST, "List")
}

fn scroll(
    desktop: &VirtualDesktop,
    direction: Direction,
    pages: f64,
) -> Result<Performed, PerformError> {
    let command = ElementCommand::Scroll {
        direction,
        pages: Pages::new(pages).unwrap(),
    };
    desktop.perform(&list_node(desktop).node_ref, &command, &soon())
}

/// Titles of the rows that lie inside the list.
fn in_view(desktop: &VirtualDesktop) -> Vec<String> {
    let frame = list_node(desktop).frame.unwrap();
    let nodes = tree(desktop, "Main").nodes;
    let rows = nodes.iter().filter(|node| node.role == roles::ROW);
    let inside = rows.filter(|row| {
        let row = row.frame.unwrap();
        row.y() >= frame.y() && row.y() + row.height() <= frame.y() + frame.height()
    });
    inside.map(|row| title(row).to_owned()).collect()
}

fn rows(range: std::ops::RangeInclusive<u32>) -> Vec<String> {
    range.map(|number| format!("Row {number}")).collect()
}

#[test]
fn a_list_scrolls_by_what_it_shows() {
    let desktop = list("generated_rows = 30");
    let done = Ok(Performed::by(Path::AxAction));
    assert_eq!(in_view(&desktop), rows(1..=5));
    assert_eq!(scroll(&desktop, Direction::Down, 1.0), done);
    assert_eq!(in_view(&desktop), rows(6..=10));
    scroll(&desktop, Direction::Down, 0.4).unwrap();
    assert_eq!(in_view(&desktop), rows(8..=12));
    scroll(&desktop, Direction::Up, 0.001).unwrap();
    assert_eq!(in_view(&desktop), rows(7..=11), "at least a row");
    scroll(&desktop, Direction::Down, 1e300).unwrap();
    assert_eq!(in_view(&desktop), rows(26..=30));
    assert_eq!(
        scroll(&desktop, Direction::Down, 1.0),
        done,
        "the end is no error"
    );
    assert_eq!(
        scroll(&desktop, Direction::Left, 1.0),
        Err(PerformError::NotActionable)
    );
    verb(&desktop, &list_node(&desktop), ElementVerb::ScrollUp).unwrap();
    assert_eq!(in_view(&desktop), rows(21..=25));
    let row = node(&desktop, "Main", roles::ROW, "Row 2");
    assert!(row.actions.contains(&ElementVerb::ScrollToVisible));
    verb(&desktop, &row, ElementVerb::ScrollToVisible).unwrap();
    assert_eq!(in_view(&desktop), rows(2..=6));
    let picture = |desktop: &VirtualDesktop| {
        desktop
            .capture_window(window(desktop, "Main").key, &soon())
            .unwrap()
    };
    assert!(picture(&desktop) != picture(&list("generated_rows = 30")));
}

#[test]
fn a_short_list_offers_no_scrolling() {
    let desktop = list("rows = [\"a\", \"b\"]");
    assert!(list_node(&desktop).actions.is_empty());
    let row = node(&desktop, "Main", roles::ROW, "a");
    assert_eq!(row.actions, [ElementVerb::Press]);
}

/// Spec §3.6: the rows of a recycled list stand for other content after scrolling, with the same node.
#[test]
fn a_recycled_list_reuses_its_rows() {
    let desktop = list("generated_rows = 10000\nrecycled = true\nselected = 2");
    let all = tree(&desktop, "Main").nodes;
    assert_eq!(all.iter().filter(|node| node.role == roles::ROW).count(), 5);
    let third = node(&desktop, "Main", roles::ROW, "Row 3");
    assert_eq!(third.selected, Some(true));
    scroll(&desktop, Direction::Down, 1.0).unwrap();
    assert_eq!(in_view(&desktop), rows(6..=10));
    let now = reread(&desktop, &third).unwrap();
    assert_eq!((title(&now), now.selected), ("Row 8", Some(false)));
    assert_eq!(now.frame, third.frame);
    press(&desktop, &now).unwrap();
    scroll(&desktop, Direction::Up, 1.0).unwrap();
    assert_eq!(reread(&desktop, &third).unwrap().selected, Some(false));
    scroll(&desktop, Direction::Down, 1.0).unwrap();
    assert_eq!(
        node(&desktop, "Main", roles::ROW, "Row 8").selected,
        Some(true)
    );
}

#[test]
fn arrows_move_the_selection_into_view() {
    for recycled in [false, true] {
        let keys = format!(
            "generated_rows = 30\nselected = 0\nrecycled = {recycled}\n{}",
            logs("on_change", "changed")
        );
        let desktop = list(&keys);
        let strike = |key: NamedKey| {
            let chord = KeyCommand::Chord {
                key: Key::Named(key),
                modifiers: Modifiers::NONE,
            };
            let node = list_node(&desktop).node_ref;
            desktop
                .keys(&node, &chord, InputRoute::Window, &soon())
                .unwrap();
        };
        let selected = || {
            let nodes = tree(&desktop, "Main").nodes;
            let row = nodes.iter().find(|node| node.selected == Some(true));
            row.map(|row| title(row).to_owned())
        };
        for _ in 0..6 {
            strike(NamedKey::Down);
        }
        assert_eq!(selected().as_deref(), Some("Row 7"), "{recycled}");
        assert_eq!(in_view(&desktop), rows(3..=7));
        strike(NamedKey::End);
        assert_eq!(selected().as_deref(), Some("Row 30"));
        strike(NamedKey::Home);
        assert_eq!(in_view(&desktop), rows(1..=5));
        assert_eq!(logged(&desktop), "changed");
        strike(NamedKey::PageDown);
        assert_eq!(in_view(&desktop), rows(6..=10));
    }
}

#[test]
fn a_row_opens_by_action_double_click_and_return() {
    let keys = format!("rows = [\"a\", \"b\"]\n{}", logs("on_open", "opened"));
    let by_action = list(&keys);
    let row = node(&by_action, "Main", roles::ROW, "b");
    assert_eq!(row.actions, [ElementVerb::Press, ElementVerb::Open]);
    verb(&by_action, &row, ElementVerb::Open).unwrap();
    assert_eq!(logged(&by_action), "opened");

    let by_click = list(&keys);
    let double = Gesture::Click {
        button: MouseButton::Left,
        count: 2,
    };
    gesture(&by_click, double, 50.0, 90.0);
    assert_eq!(logged(&by_click), "opened");
    assert_eq!(
        node(&by_click, "Main", roles::ROW, "b").selected,
        Some(true)
    );

    let by_key = list(&keys);
    press(&by_key, &node(&by_key, "Main", roles::ROW, "a")).unwrap();
    let chord = KeyCommand::Chord {
        key: Key::Named(NamedKey::Return),
        modifiers: Modifiers::NONE,
    };
    let node = list_node(&by_key).node_ref;
    by_key
        .keys(&node, &chord, InputRoute::Window, &soon())
        .unwrap();
    assert_eq!(logged(&by_key), "opened");
}

#[test]
fn a_text_area_scrolls_by_lines() {
    let text = (1..=20)
        .map(|line| format!("line {line}\\n"))
        .collect::<String>();
    let desktop = app_with(&format!(
        "[[apps.windows.controls]]\nkind = \"text_area\"\nlabel = \"Area\"\nvalue = \"{text}\"\n\
         bounds = [10, 50, 200, 100]\n"
    ));
    let area = node(&desktop, "Main", roles::TEXT_AREA, "Area");
    assert_eq!(
        area.actions,
        [ElementVerb::ScrollUp, ElementVerb::ScrollDown]
    );
    let picture = || {
        desktop
            .capture_window(window(&desktop, "Main").key, &soon())
            .unwrap()
    };
    let top = picture();
    verb(&desktop, &area, ElementVerb::ScrollDown).unwrap();
    assert!(picture() != top);
    verb(&desktop, &area, ElementVerb::ScrollUp).unwrap();
    assert!(picture() == top);
}

/// What is typed at the end of a long text is in the picture.
#[test]
fn a_text_area_follows_its_caret() {
    let desktop = app_with(
        "[[apps.windows.controls]]\nkind = \"text_area\"\nlabel = \"Area\"\nfocused = true\nbounds = [10, 50, 200, 100]\n",
    );
    let area = node(&desktop, "Main", roles::TEXT_AREA, "Area");
    let type_in = |text: &str| {
        let text = KeyCommand::Type(AppText::new(text));
        desktop
            .keys(&area.node_ref, &text, InputRoute::Window, &soon())
            .unwrap();
        desktop
            .capture_window(window(&desktop, "Main").key, &soon())
            .unwrap()
    };
    let before = type_in(&"line\n".repeat(20));
    assert!(type_in("seen") != before);
    write(&desktop, &area, "one line").unwrap();
    let short = type_in("!");
    assert!(
        type_in("!") != short,
        "a text that became short is shown from its start"
    );
}
