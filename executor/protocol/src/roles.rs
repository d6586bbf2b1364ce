//! Role names. Every back end speaks the AX names; this is the one table that turns AT-SPI role numbers into them.

use std::{borrow::Cow, fmt};

use serde_json::Value;

use crate::json::{Json, Reason, Violation};

/// Declares role name constants.
macro_rules! names {
    ($($name:ident = $text:literal),+ $(,)?) => {
        $( #[doc = concat!("The name `", $text, "`.")] pub const $name: &str = $text; )+
    };
}

names! {
    APPLICATION = "AXApplication", BUTTON = "AXButton", CELL = "AXCell", CHECK_BOX = "AXCheckBox",
    COLOR_WELL = "AXColorWell", COMBO_BOX = "AXComboBox", GROUP = "AXGroup", HEADING = "AXHeading",
    HELP_TAG = "AXHelpTag", IMAGE = "AXImage", INCREMENTOR = "AXIncrementor", LEVEL_INDICATOR = "AXLevelIndicator",
    LINK = "AXLink", LIST = "AXList", MENU = "AXMenu", MENU_BAR = "AXMenuBar", MENU_BAR_ITEM = "AXMenuBarItem",
    MENU_BUTTON = "AXMenuButton", MENU_ITEM = "AXMenuItem", OUTLINE = "AXOutline", POP_UP_BUTTON = "AXPopUpButton",
    PROGRESS_INDICATOR = "AXProgressIndicator", RADIO_BUTTON = "AXRadioButton", RADIO_GROUP = "AXRadioGroup",
    ROW = "AXRow", RULER = "AXRuler", SCROLL_AREA = "AXScrollArea", SCROLL_BAR = "AXScrollBar", SHEET = "AXSheet",
    SLIDER = "AXSlider", SPLITTER = "AXSplitter", SPLIT_GROUP = "AXSplitGroup", STATIC_TEXT = "AXStaticText",
    TABLE = "AXTable", TAB_GROUP = "AXTabGroup", TEXT_AREA = "AXTextArea", TEXT_FIELD = "AXTextField",
    TOOLBAR = "AXToolbar", UNKNOWN = "AXUnknown", WEB_AREA = "AXWebArea", WINDOW = "AXWindow",
}

// Subroles.
names! {
    CLOSE_BUTTON = "AXCloseButton", DIALOG = "AXDialog", FLOATING_WINDOW = "AXFloatingWindow",
    OUTLINE_ROW = "AXOutlineRow", SEARCH_FIELD = "AXSearchField", SECURE_TEXT_FIELD = "AXSecureTextField",
    SORT_BUTTON = "AXSortButton", STANDARD_WINDOW = "AXStandardWindow", SWITCH = "AXSwitch",
    SYSTEM_DIALOG = "AXSystemDialog", TAB_BUTTON = "AXTabButton", TOGGLE = "AXToggle",
}

/// A role name: never empty.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Role(Cow<'static, str>);

impl Role {
    /// One of the names above.
    ///
    /// # Panics
    /// When the name is empty, which is a fault of the caller's source text.
    #[must_use]
    pub const fn known(name: &'static str) -> Self {
        assert!(!name.is_empty(), "a role name has content");
        Self(Cow::Borrowed(name))
    }

    /// A name from a platform; `None` when it is empty.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        (!name.is_empty()).then_some(Self(Cow::Owned(name)))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Role({})", self.0)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Json for Role {
    fn read(value: &Value) -> Result<Self, Violation> {
        Self::new(String::read(value)?).ok_or(Violation::here(Reason::Empty))
    }

    fn write(&self) -> Value {
        Value::String(self.0.clone().into_owned())
    }
}

/// A role and the subrole that goes with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AxRole {
    /// Role name.
    pub role: &'static str,
    /// Subrole name.
    pub subrole: Option<&'static str>,
}

const fn plain(role: &'static str) -> AxRole {
    AxRole {
        role,
        subrole: None,
    }
}

const fn sub(role: &'static str, subrole: &'static str) -> AxRole {
    AxRole {
        role,
        subrole: Some(subrole),
    }
}

/// The AX names of an AT-SPI role number, as `org.a11y.atspi.Accessible.GetRole` returns it.
///
/// `multi_line` is the AT-SPI state of that name: text roles do not tell a field from an area. A number outside the table
/// is `AXUnknown`. The numbers are those of `AtspiRole` in at-spi2-core 2.46 (`atspi-constants.h`) and are never reused
/// by that project; `GetRoleName` is localised or differs by toolkit and must not be used instead.
#[must_use]
pub fn of_at_spi(role: u32, multi_line: bool) -> AxRole {
    let found = usize::try_from(role)
        .ok()
        .and_then(|role| AT_SPI.get(role))
        .copied()
        .unwrap_or(plain(UNKNOWN));
    if multi_line && found == plain(TEXT_FIELD) {
        plain(TEXT_AREA)
    } else {
        found
    }
}

const AT_SPI: [AxRole; 131] = [
    plain(UNKNOWN),                     // 0 invalid
    plain(STATIC_TEXT),                 // 1 accelerator label
    sub(WINDOW, DIALOG),                // 2 alert: message dialogs of GTK
    plain(IMAGE),                       // 3 animation
    plain(IMAGE),                       // 4 arrow
    plain(GROUP),                       // 5 calendar
    plain(GROUP),                       // 6 canvas
    plain(CHECK_BOX),                   // 7 check box
    plain(MENU_ITEM),                   // 8 check menu item
    plain(COLOR_WELL),                  // 9 color chooser
    sub(BUTTON, SORT_BUTTON),           // 10 column header
    plain(COMBO_BOX),                   // 11 combo box
    plain(TEXT_FIELD),                  // 12 date editor
    plain(IMAGE),                       // 13 desktop icon
    plain(GROUP),                       // 14 desktop frame
    plain(SLIDER),                      // 15 dial
    sub(WINDOW, DIALOG),                // 16 dialog
    plain(GROUP),                       // 17 directory pane
    plain(GROUP),                       // 18 drawing area
    sub(WINDOW, DIALOG),                // 19 file chooser
    plain(GROUP),                       // 20 filler
    plain(GROUP),                       // 21 focus traversable
    sub(WINDOW, DIALOG),                // 22 font chooser
    sub(WINDOW, STANDARD_WINDOW),       // 23 frame
    plain(GROUP),                       // 24 glass pane
    plain(WEB_AREA),                    // 25 html container
    plain(IMAGE),                       // 26 icon
    plain(IMAGE),                       // 27 image
    plain(GROUP),                       // 28 internal frame
    plain(STATIC_TEXT),                 // 29 label
    plain(GROUP),                       // 30 layered pane
    plain(LIST),                        // 31 list
    plain(ROW),                         // 32 list item
    plain(MENU),                        // 33 menu
    plain(MENU_BAR),                    // 34 menu bar
    plain(MENU_ITEM),                   // 35 menu item
    plain(GROUP),                       // 36 option pane
    sub(RADIO_BUTTON, TAB_BUTTON),      // 37 page tab
    plain(TAB_GROUP),                   // 38 page tab list
    plain(GROUP),                       // 39 panel
    sub(TEXT_FIELD, SECURE_TEXT_FIELD), // 40 password text
    plain(MENU),                        // 41 popup menu
    plain(PROGRESS_INDICATOR),          // 42 progress bar
    plain(BUTTON),                      // 43 push button
    plain(RADIO_BUTTON),                // 44 radio button
    plain(MENU_ITEM),                   // 45 radio menu item
    plain(GROUP),                       // 46 root pane
    plain(CELL),                        // 47 row header
    plain(SCROLL_BAR),                  // 48 scroll bar
    plain(SCROLL_AREA),                 // 49 scroll pane
    plain(SPLITTER),                    // 50 separator
    plain(SLIDER),                      // 51 slider
    plain(INCREMENTOR),                 // 52 spin button
    plain(SPLIT_GROUP),                 // 53 split pane
    plain(GROUP),                       // 54 status bar
    plain(TABLE),                       // 55 table
    plain(CELL),                        // 56 table cell
    sub(BUTTON, SORT_BUTTON),           // 57 table column header
    plain(CELL),                        // 58 table row header
    plain(MENU_ITEM),                   // 59 tearoff menu item
    plain(TEXT_AREA),                   // 60 terminal
    plain(TEXT_FIELD),                  // 61 text: a GTK 3 entry as well as a text view
    sub(CHECK_BOX, TOGGLE),             // 62 toggle button
    plain(TOOLBAR),                     // 63 tool bar
    plain(HELP_TAG),                    // 64 tool tip
    plain(OUTLINE),                     // 65 tree
    plain(OUTLINE),                     // 66 tree table
    plain(UNKNOWN),                     // 67 unknown
    plain(GROUP),                       // 68 viewport
    plain(WINDOW),                      // 69 window
    plain(UNKNOWN),                     // 70 extended
    plain(GROUP),                       // 71 header
    plain(GROUP),                       // 72 footer
    plain(GROUP),                       // 73 paragraph
    plain(RULER),                       // 74 ruler
    plain(APPLICATION),                 // 75 application
    plain(COMBO_BOX),                   // 76 autocomplete
    plain(TEXT_FIELD),                  // 77 edit bar
    plain(GROUP),                       // 78 embedded
    plain(TEXT_FIELD),                  // 79 entry
    plain(IMAGE),                       // 80 chart
    plain(STATIC_TEXT),                 // 81 caption
    plain(GROUP),                       // 82 document frame
    plain(HEADING),                     // 83 heading
    plain(GROUP),                       // 84 page
    plain(GROUP),                       // 85 section
    plain(GROUP),                       // 86 redundant object
    plain(GROUP),                       // 87 form
    plain(LINK),                        // 88 link
    plain(WINDOW),                      // 89 input method window
    plain(ROW),                         // 90 table row
    sub(ROW, OUTLINE_ROW),              // 91 tree item
    plain(GROUP),                       // 92 document spreadsheet
    plain(GROUP),                       // 93 document presentation
    plain(GROUP),                       // 94 document text
    plain(WEB_AREA),                    // 95 document web
    plain(GROUP),                       // 96 document email
    plain(GROUP),                       // 97 comment
    plain(LIST),                        // 98 list box
    plain(GROUP),                       // 99 grouping
    plain(IMAGE),                       // 100 image map
    plain(GROUP),                       // 101 notification
    plain(GROUP),                       // 102 info bar
    plain(LEVEL_INDICATOR),             // 103 level bar
    plain(GROUP),                       // 104 title bar
    plain(GROUP),                       // 105 block quote
    plain(GROUP),                       // 106 audio
    plain(GROUP),                       // 107 video
    plain(GROUP),                       // 108 definition
    plain(GROUP),                       // 109 article
    plain(GROUP),                       // 110 landmark
    plain(GROUP),                       // 111 log
    plain(GROUP),                       // 112 marquee
    plain(GROUP),                       // 113 math
    plain(LEVEL_INDICATOR),             // 114 rating
    plain(GROUP),                       // 115 timer
    plain(STATIC_TEXT),                 // 116 static
    plain(GROUP),                       // 117 math fraction
    plain(GROUP),                       // 118 math root
    plain(GROUP),                       // 119 subscript
    plain(GROUP),                       // 120 superscript
    plain(LIST),                        // 121 description list
    plain(GROUP),                       // 122 description term
    plain(GROUP),                       // 123 description value
    plain(GROUP),                       // 124 footnote
    plain(GROUP),                       // 125 content deletion
    plain(GROUP),                       // 126 content insertion
    plain(GROUP),                       // 127 mark
    plain(GROUP),                       // 128 suggestion
    plain(MENU_BUTTON),                 // 129 push button menu
    sub(CHECK_BOX, SWITCH),             // 130 switch: added after 2.46
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_numbers() {
        let rows = [
            (23, false, sub(WINDOW, STANDARD_WINDOW)),
            (16, false, sub(WINDOW, DIALOG)),
            (29, false, plain(STATIC_TEXT)),
            (40, false, sub(TEXT_FIELD, SECURE_TEXT_FIELD)),
            (40, true, sub(TEXT_FIELD, SECURE_TEXT_FIELD)),
            (43, false, plain(BUTTON)),
            (61, false, plain(TEXT_FIELD)),
            (61, true, plain(TEXT_AREA)),
            (79, false, plain(TEXT_FIELD)),
            (95, false, plain(WEB_AREA)),
            (116, false, plain(STATIC_TEXT)),
            (129, false, plain(MENU_BUTTON)),
            (131, false, plain(UNKNOWN)),
            (u32::MAX, true, plain(UNKNOWN)),
        ];
        for (number, multi_line, expected) in rows {
            assert_eq!(
                of_at_spi(number, multi_line),
                expected,
                "role number {number}"
            );
        }
    }
}
