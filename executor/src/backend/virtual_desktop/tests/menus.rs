//! Menus that open over the controls.

use maka_cu_protocol::roles;
use maka_cu_protocol::sets::MouseButton;

use super::*;

const RIGHT: Gesture = Gesture::Click {
    button: MouseButton::Right,
    count: 1,
};
const LEFT: Gesture = Gesture::Click {
    button: MouseButton::Left,
    count: 1,
};

fn with_menu() -> VirtualDesktop {
    app_with(&format!(
        "[[apps.windows.controls]]\nkind = \"list\"\nid = \"list\"\nlabel = \"List\"\nrows = [\"a\", \"b\"]\n\
         bounds = [10, 50, 150, 138]\n[[apps.windows.controls]]\nkind = \"context_menu\"\nid = \"menu\"\nin = \"list\"\n\
         [[apps.windows.controls]]\nkind = \"menu_item\"\nin = \"menu\"\ntitle = \"Copy\"\n{}\
         [[apps.windows.controls]]\nkind = \"menu_item\"\nin = \"menu\"\ntitle = \"Delete\"\nenabled = false\n{}",
        logs("on_press", "copied"),
        log(250)
    ))
}

fn menus(desktop: &VirtualDesktop) -> Vec<RawNode> {
    let nodes = tree(desktop, "Main").nodes;
    nodes
        .into_iter()
        .filter(|node| node.role == roles::MENU)
        .collect()
}

#[test]
fn a_context_menu_is_there_only_while_it_is_open() {
    let desktop = with_menu();
    assert!(menus(&desktop).is_empty());
    let list = node(&desktop, "Main", roles::LIST, "List");
    assert_eq!(list.actions, [ElementVerb::ShowMenu]);
    verb(&desktop, &list, ElementVerb::ShowMenu).unwrap();
    assert_eq!(menus(&desktop).len(), 1);
    let copy = node(&desktop, "Main", roles::MENU_ITEM, "Copy");
    assert_eq!(copy.actions, [ElementVerb::Press, ElementVerb::Pick]);
    assert!(copy.frame.is_some());
    let delete = node(&desktop, "Main", roles::MENU_ITEM, "Delete");
    assert!(!delete.enabled);
    verb(&desktop, &copy, ElementVerb::Pick).unwrap();
    assert_eq!(logged(&desktop), "copied");
    assert!(menus(&desktop).is_empty());
    assert!(
        reread(&desktop, &copy).is_none(),
        "its items stop answering"
    );

    verb(&desktop, &list, ElementVerb::ShowMenu).unwrap();
    let menu = menus(&desktop).remove(0);
    assert_eq!(menu.actions, [ElementVerb::Cancel]);
    verb(&desktop, &menu, ElementVerb::Cancel).unwrap();
    assert!(menus(&desktop).is_empty());
}

#[test]
fn a_right_click_opens_the_menu_where_it_was() {
    let desktop = with_menu();
    let closed = desktop
        .capture_window(window(&desktop, "Main").key, &soon())
        .unwrap();
    gesture(&desktop, RIGHT, 60.0, 90.0);
    let frame = menus(&desktop)[0].frame.unwrap();
    assert_eq!((frame.x(), frame.y()), (60.0, 90.0));
    assert_eq!(node(&desktop, "Main", roles::ROW, "b").selected, Some(true));
    let open = desktop
        .capture_window(window(&desktop, "Main").key, &soon())
        .unwrap();
    assert!(open != closed);
    gesture(&desktop, LEFT, 20.0, 60.0);
    assert!(menus(&desktop).is_empty(), "a click beside it closes it");
    assert_eq!(
        node(&desktop, "Main", roles::ROW, "b").selected,
        Some(true),
        "and does nothing else"
    );
    gesture(&desktop, RIGHT, 60.0, 90.0);
    gesture(&desktop, LEFT, 70.0, 100.0);
    assert_eq!(logged(&desktop), "copied");
    gesture(&desktop, RIGHT, 300.0, 200.0);
    assert!(menus(&desktop).is_empty(), "nothing there has a menu");
}

#[test]
fn a_pop_up_button_shows_what_was_picked() {
    let desktop = app_with(&format!(
        "{}{}",
        control(
            "pop_up_button",
            50,
            &format!(
                "id = \"size\"\nlabel = \"Size\"\nchoices = [\"Small\", \"Large\"]\n{}",
                logs("on_change", "{size}")
            )
        ),
        log(90)
    ));
    let button = node(&desktop, "Main", roles::POP_UP_BUTTON, "Size");
    assert_eq!(value(&button), Some("Small"));
    assert_eq!(button.actions, [ElementVerb::Press, ElementVerb::ShowMenu]);
    press(&desktop, &button).unwrap();
    press(&desktop, &node(&desktop, "Main", roles::MENU_ITEM, "Large")).unwrap();
    assert_eq!(value(&reread(&desktop, &button).unwrap()), Some("Large"));
    assert_eq!(logged(&desktop), "Large");
    gesture(&desktop, LEFT, 20.0, 60.0);
    gesture(&desktop, LEFT, 20.0, 90.0);
    assert_eq!(value(&reread(&desktop, &button).unwrap()), Some("Small"));
}

#[test]
fn one_radio_button_of_a_container_is_chosen() {
    let desktop = app_with(&format!(
        "{}{}",
        control("radio_button", 50, "title = \"Red\"\nchecked = true"),
        control("radio_button", 90, "title = \"Blue\"")
    ));
    let chosen = |name: &str| node(&desktop, "Main", roles::RADIO_BUTTON, name).selected;
    press(
        &desktop,
        &node(&desktop, "Main", roles::RADIO_BUTTON, "Blue"),
    )
    .unwrap();
    assert_eq!((chosen("Red"), chosen("Blue")), (Some(false), Some(true)));
}

#[test]
fn an_open_menu_takes_every_key() {
    use maka_cu_protocol::keys::{Key, Modifiers, NamedKey};

    let desktop = app_with(&format!(
        "{}[[apps.windows.controls]]\nkind = \"context_menu\"\nid = \"menu\"\nin = \"f\"\n\
         [[apps.windows.controls]]\nkind = \"menu_item\"\nin = \"menu\"\ntitle = \"Cut\"\nenabled = false\n\
         [[apps.windows.controls]]\nkind = \"menu_item\"\nin = \"menu\"\ntitle = \"Copy\"\n{}{}",
        control(
            "text_field",
            50,
            "id = \"f\"\nlabel = \"F\"\nfocused = true"
        ),
        logs("on_press", "copied"),
        log(90)
    ));
    let field = node(&desktop, "Main", roles::TEXT_FIELD, "F");
    let send = |command: KeyCommand| {
        let done = desktop.keys(&field.node_ref, &command, InputRoute::Window, &soon());
        done.unwrap();
    };
    let strike = |key: NamedKey| {
        send(KeyCommand::Chord {
            key: Key::Named(key),
            modifiers: Modifiers::NONE,
        });
    };
    verb(&desktop, &field, ElementVerb::ShowMenu).unwrap();
    send(KeyCommand::Type(AppText::new("x")));
    strike(NamedKey::Escape);
    assert!(menus(&desktop).is_empty());
    assert_eq!(value(&reread(&desktop, &field).unwrap()), Some(""));

    verb(&desktop, &field, ElementVerb::ShowMenu).unwrap();
    let copy = node(&desktop, "Main", roles::MENU_ITEM, "Copy");
    assert_eq!(copy.selected, Some(false));
    strike(NamedKey::Down);
    assert_eq!(
        reread(&desktop, &copy).unwrap().selected,
        Some(true),
        "what is disabled is skipped"
    );
    strike(NamedKey::Return);
    assert_eq!(logged(&desktop), "copied");
    assert!(menus(&desktop).is_empty());
}
