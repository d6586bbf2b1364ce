//! Controls in a scenario: one flat table for every kind, and which keys each kind takes.
//!
//! The table is flat, with `kind` as an ordinary key, because a TOML array of tables cannot nest to any depth in a
//! readable way; a control names its container with `in` instead.

use std::time::Duration;

use maka_cu_protocol::keys::Key;
use serde::Deserialize;
use toml::Spanned;

use super::effect::{Place, RawEffect};
use super::kind::Kind;
use super::{Cause, Checker, Waiting, content_area, generate};
use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::{
    Behavior, Behaviors, ButtonPart, CLAMPED_CHARS, Content, ControlId, ControlSpec, FocusBehavior,
    LabelStyle, Mistake, Recycled, Shortcut, WindowSpec, row_bounds,
};

/// Most rows or nested groups that one control generates.
const MAX_GENERATED: usize = 40_000;

/// Most choices of one pop-up button.
const MAX_CHOICES: usize = 24;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawControl {
    kind: Spanned<Kind>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default, rename = "in")]
    container: Option<String>,
    #[serde(default)]
    bounds: Option<[i32; 4]>,
    #[serde(default)]
    identifier: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    placeholder: Option<String>,
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default)]
    focused: bool,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    style: Option<LabelStyle>,
    #[serde(default)]
    default: Option<bool>,
    #[serde(default)]
    cancel: Option<bool>,
    #[serde(default)]
    checked: Option<bool>,
    #[serde(default)]
    choices: Option<Vec<String>>,
    #[serde(default)]
    chosen: Option<usize>,
    #[serde(default)]
    percent: Option<u8>,
    #[serde(default)]
    shortcut: Option<String>,
    #[serde(default)]
    max_chars: Option<usize>,
    #[serde(default)]
    rows: Option<Vec<String>>,
    #[serde(default)]
    generated_rows: Option<usize>,
    #[serde(default)]
    selected: Option<usize>,
    #[serde(default)]
    recycled: Option<bool>,
    #[serde(default)]
    number: Option<f64>,
    #[serde(default)]
    min: Option<f64>,
    #[serde(default)]
    max: Option<f64>,
    #[serde(default)]
    step: Option<f64>,
    #[serde(default)]
    nested_groups: Option<usize>,
    #[serde(default)]
    generated_nodes: Option<usize>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    cyclic: Option<bool>,
    #[serde(default)]
    press: Option<Behavior>,
    #[serde(default)]
    write: Option<RawWrite>,
    #[serde(default)]
    focus: Option<FocusBehavior>,
    #[serde(default)]
    keys: Option<Behavior>,
    #[serde(default)]
    scroll: Option<Behavior>,
    #[serde(default)]
    slow_ms: u32,
    #[serde(default)]
    restless_ms: Option<u32>,
    #[serde(default)]
    on_press: Option<Vec<RawEffect>>,
    #[serde(default)]
    on_change: Option<Vec<RawEffect>>,
    #[serde(default)]
    on_open: Option<Vec<RawEffect>>,
    #[serde(default)]
    on_hover: Option<Vec<RawEffect>>,
}

/// [`Behavior`] and one more word, which is a limit rather than a behavior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawWrite {
    Works,
    Ignored,
    Clamped,
    Refused,
    Unknown,
    Hangs,
    Vanishes,
}

impl RawWrite {
    const fn behavior(self) -> Behavior {
        match self {
            Self::Works | Self::Clamped => Behavior::Works,
            Self::Ignored => Behavior::Ignored,
            Self::Refused => Behavior::Refused,
            Self::Unknown => Behavior::Unknown,
            Self::Hangs => Behavior::Hangs,
            Self::Vanishes => Behavior::Vanishes,
        }
    }
}

const fn yes() -> bool {
    true
}

impl Checker<'_> {
    /// Checks one control, adds it and what it generates to `window`, and returns its effects for later.
    pub(super) fn control(
        &mut self,
        place: Place,
        window: &mut WindowSpec,
        raw: RawControl,
    ) -> Result<Vec<Waiting>, Mistake> {
        let span = raw.kind.span();
        let kind = *raw.kind.get_ref();
        let window_index = place.window.expect("the caller numbers the window");
        let name = raw
            .id
            .clone()
            .unwrap_or_else(|| format!("controls[{}]", window.controls.len()));
        let field = |key: &str| format!("{}/{name}.{key}", window.id);
        self.check_keys(&raw, &field)?;
        if let Some(key) = missing_key(&raw) {
            return Err(self.invalid(
                &span,
                field(key),
                format!("a control of this kind needs `{key}`"),
            ));
        }
        let parent = self.container(window, window_index, &raw, &field)?;
        let bounds = match raw.bounds {
            None => Rect::new(0, 0, 0, 0),
            Some([x, y, width, height]) => {
                let bounds = Rect::new(x, y, width, height);
                let sides = 1..=4_096;
                let near = -4_096..=4_096;
                let sane = sides.contains(&width)
                    && sides.contains(&height)
                    && near.contains(&x)
                    && near.contains(&y);
                if !sane || !content_area(window).contains_rect(bounds) {
                    let Rect {
                        x,
                        y,
                        width,
                        height,
                    } = content_area(window);
                    let advice = format!(
                        "write [x, y, width, height] inside the window's content, which is [{x}, {y}, {width}, {height}]"
                    );
                    return Err(self.invalid(&span, field("bounds"), advice));
                }
                bounds
            }
        };
        let index = window.controls.len();
        let control = ControlId {
            window: window_index,
            control: index,
        };
        if let Some(id) = &raw.id {
            if id.is_empty() || id.contains(['/', '{', '}']) {
                return Err(self.invalid(
                    &span,
                    field("id"),
                    "write a name without `/`, `{` and `}`",
                ));
            }
            if self
                .names
                .controls
                .insert((window_index, id.clone()), control)
                .is_some()
            {
                return Err(self.invalid(
                    &span,
                    field("id"),
                    "another control of this window has this id already",
                ));
            }
        }
        if raw.focused && window.controls.iter().any(|other| other.focused) {
            return Err(self.invalid(
                &span,
                field("focused"),
                "only one control of a window has the focus",
            ));
        }
        let restless = raw.restless_ms.filter(|period| *period > 0);
        let spec = ControlSpec {
            id: raw.id.clone(),
            parent,
            bounds,
            identifier: raw.identifier.clone(),
            title: raw.title.clone(),
            label: raw.label.clone(),
            placeholder: raw.placeholder.clone(),
            enabled: raw.enabled,
            focused: raw.focused,
            content: self.content(&raw, &field)?,
            behavior: Behaviors {
                press: raw.press.unwrap_or_default(),
                write: raw.write.map_or(Behavior::Works, RawWrite::behavior),
                focus: raw.focus.unwrap_or_default(),
                keys: raw.keys.unwrap_or_default(),
                scroll: raw.scroll.unwrap_or_default(),
            },
            max_chars: match raw.write {
                Some(RawWrite::Clamped) => Some(raw.max_chars.unwrap_or(CLAMPED_CHARS)),
                Some(_) | None => raw.max_chars,
            },
            shortcut: self.shortcut(&raw, &field)?,
            slow: self.delay(&span, &field("slow_ms"), raw.slow_ms)?,
            restless: restless.map(|period| Duration::from_millis(u64::from(period))),
            cyclic: raw.cyclic.unwrap_or(false),
            on_press: Vec::new(),
            on_change: Vec::new(),
            on_open: Vec::new(),
            on_hover: Vec::new(),
        };
        let counts = [
            ("generated_rows", raw.generated_rows),
            ("nested_groups", raw.nested_groups),
            ("generated_nodes", raw.generated_nodes),
        ];
        for (key, count) in counts {
            if count.is_some_and(|count| count > MAX_GENERATED) {
                let advice = format!("generate at most {MAX_GENERATED}");
                return Err(self.invalid(&span, field(key), advice));
            }
        }
        let generated = (1..=raw.generated_rows.unwrap_or(0)).map(|number| format!("Row {number}"));
        let rows: Vec<String> = raw
            .rows
            .unwrap_or_default()
            .into_iter()
            .chain(generated)
            .collect();
        if raw.selected.is_some_and(|selected| selected >= rows.len()) {
            return Err(self.invalid(
                &span,
                field("selected"),
                "write the index of a row, the first being 0",
            ));
        }
        window.menu_bar |= kind == Kind::Menu;
        window.controls.push(spec);
        let rows = match &mut window.controls[index].content {
            Content::List {
                recycled: Some(recycled),
            } => {
                recycled.rows = rows;
                Vec::new()
            }
            _ => rows,
        };
        for (row, title) in rows.into_iter().enumerate() {
            let content = Content::Row {
                selected: raw.selected == Some(row),
            };
            let bounds = row_bounds(bounds, row);
            window.controls.push(ControlSpec {
                title: Some(title),
                ..ControlSpec::plain(Some(index), bounds, content)
            });
        }
        for level in 0..raw.nested_groups.unwrap_or(0) {
            window.controls.push(ControlSpec::plain(
                Some(index + level),
                bounds,
                Content::Group,
            ));
        }
        let nodes = raw.generated_nodes.unwrap_or(0);
        generate::tree(&mut window.controls, index, nodes, raw.seed.unwrap_or(1));
        let causes = [
            (Cause::Press, raw.on_press),
            (Cause::Change, raw.on_change),
            (Cause::Open, raw.on_open),
            (Cause::Hover, raw.on_hover),
        ];
        let waiting = causes.into_iter().filter_map(|(cause, effects)| {
            Some(Waiting {
                place,
                control,
                cause,
                effects: effects?,
            })
        });
        Ok(waiting.collect())
    }

    /// Refuses a key that has no meaning for the control's kind, so that a typing error cannot pass unnoticed.
    fn check_keys(&self, raw: &RawControl, field: &dyn Fn(&str) -> String) -> Result<(), Mistake> {
        let kind = *raw.kind.get_ref();
        let keys = [
            ("bounds", raw.bounds.is_some(), !kind.is_menu()),
            ("placeholder", raw.placeholder.is_some(), kind.is_text()),
            ("value", raw.value.is_some(), kind.is_text()),
            ("style", raw.style.is_some(), kind == Kind::Label),
            ("default", raw.default.is_some(), kind == Kind::Button),
            ("cancel", raw.cancel.is_some(), kind == Kind::Button),
            (
                "checked",
                raw.checked.is_some(),
                matches!(kind, Kind::CheckBox | Kind::RadioButton),
            ),
            ("choices", raw.choices.is_some(), kind == Kind::PopUpButton),
            ("chosen", raw.chosen.is_some(), kind == Kind::PopUpButton),
            ("percent", raw.percent.is_some(), kind == Kind::Progress),
            ("shortcut", raw.shortcut.is_some(), kind.is_pressed()),
            ("max_chars", raw.max_chars.is_some(), kind.is_text()),
            ("recycled", raw.recycled.is_some(), kind == Kind::List),
            ("focused", raw.focused, kind.is_focused()),
            ("rows", raw.rows.is_some(), kind == Kind::List),
            (
                "generated_rows",
                raw.generated_rows.is_some(),
                kind == Kind::List,
            ),
            ("selected", raw.selected.is_some(), kind == Kind::List),
            ("number", raw.number.is_some(), kind == Kind::Slider),
            ("min", raw.min.is_some(), kind == Kind::Slider),
            ("max", raw.max.is_some(), kind == Kind::Slider),
            ("step", raw.step.is_some(), kind == Kind::Slider),
            (
                "nested_groups",
                raw.nested_groups.is_some(),
                kind == Kind::Group,
            ),
            (
                "generated_nodes",
                raw.generated_nodes.is_some(),
                kind == Kind::Group,
            ),
            ("seed", raw.seed.is_some(), raw.generated_nodes.is_some()),
            ("cyclic", raw.cyclic.is_some(), kind.is_container()),
            ("press", raw.press.is_some(), kind.is_acted_on()),
            ("on_press", raw.on_press.is_some(), kind.is_pressed()),
            ("write", raw.write.is_some(), kind.is_written()),
            ("focus", raw.focus.is_some(), kind.is_focused()),
            ("keys", raw.keys.is_some(), kind.is_focused()),
            ("scroll", raw.scroll.is_some(), kind.scrolls()),
            ("on_change", raw.on_change.is_some(), kind.changes()),
            ("on_open", raw.on_open.is_some(), kind == Kind::List),
            ("on_hover", raw.on_hover.is_some(), !kind.is_menu()),
        ];
        match keys.into_iter().find(|(_, given, legal)| *given && !legal) {
            Some((key, ..)) => {
                let advice = "a control of this kind does not take this key; remove it";
                Err(self.invalid(&raw.kind.span(), field(key), advice))
            }
            None => Ok(()),
        }
    }

    /// The container named by `in`.
    fn container(
        &self,
        window: &WindowSpec,
        window_index: usize,
        raw: &RawControl,
        field: &dyn Fn(&str) -> String,
    ) -> Result<Option<usize>, Mistake> {
        let kind = *raw.kind.get_ref();
        let found = match &raw.container {
            None if kind == Kind::MenuItem => None,
            None => return Ok(None),
            Some(name) => self
                .names
                .controls
                .get(&(window_index, name.clone()))
                .map(|id| id.control),
        };
        let fits = |index: &usize| match window.controls[*index].content {
            Content::Menu | Content::ContextMenu if kind == Kind::MenuItem => true,
            Content::Menu | Content::MenuItem | Content::ContextMenu | Content::MenuBar => false,
            _ if kind == Kind::ContextMenu => true,
            Content::Group | Content::Panel => !kind.is_menu(),
            Content::Window(_)
            | Content::Label(_)
            | Content::Image
            | Content::Progress { .. }
            | Content::Button { .. }
            | Content::Link
            | Content::TextField { .. }
            | Content::SecureField { .. }
            | Content::TextArea { .. }
            | Content::CheckBox { .. }
            | Content::RadioButton { .. }
            | Content::PopUpButton { .. }
            | Content::List { .. }
            | Content::Row { .. }
            | Content::Slider { .. } => false,
        };
        match found.filter(fits) {
            Some(index) => Ok(Some(index)),
            None => {
                let advice = match kind {
                    Kind::MenuItem | Kind::Menu => {
                        "a `menu_item` stands in a `menu` or `context_menu` that is written above it; a `menu` stands in nothing"
                    }
                    Kind::ContextMenu => {
                        "write the id of the control that the menu belongs to, written above"
                    }
                    _ => {
                        "write the id of a `group` or `panel` of this window that is written above"
                    }
                };
                Err(self.invalid(&raw.kind.span(), field("in"), advice))
            }
        }
    }

    /// The key that presses the control, such as `command+s`.
    fn shortcut(
        &self,
        raw: &RawControl,
        field: &dyn Fn(&str) -> String,
    ) -> Result<Option<Shortcut>, Mistake> {
        let Some(text) = &raw.shortcut else {
            return Ok(None);
        };
        let parse = || {
            let mut words: Vec<&str> = text.split('+').collect();
            let key = Key::parse(words.pop()?)?;
            let mut shortcut = Shortcut {
                key,
                shift: false,
                option: false,
            };
            let mut commands = false;
            for word in words {
                match word {
                    "command" | "control" => commands = true,
                    "shift" => shortcut.shift = true,
                    "option" => shortcut.option = true,
                    _ => return None,
                }
            }
            // A printable key alone belongs to whoever types.
            (commands || matches!(key, Key::Named(_))).then_some(shortcut)
        };
        parse().map(Some).ok_or_else(|| {
            let advice = "write a key of the wire behind `command+`, with `shift+` or `option+` between, e.g. `command+shift+s`";
            self.invalid(&raw.kind.span(), field("shortcut"), advice)
        })
    }

    fn content(
        &self,
        raw: &RawControl,
        field: &dyn Fn(&str) -> String,
    ) -> Result<Content, Mistake> {
        let value = raw.value.clone().unwrap_or_default();
        Ok(match *raw.kind.get_ref() {
            Kind::Group => Content::Group,
            Kind::Panel => Content::Panel,
            Kind::Label => Content::Label(raw.style.unwrap_or(LabelStyle::Body)),
            Kind::Image => Content::Image,
            Kind::Progress => match raw.percent.unwrap_or(0) {
                percent @ 0..=100 => Content::Progress { percent },
                101.. => {
                    let advice = "write 0 to 100";
                    return Err(self.invalid(&raw.kind.span(), field("percent"), advice));
                }
            },
            Kind::Link => Content::Link,
            Kind::Button => Content::Button {
                part: match (raw.default, raw.cancel) {
                    (Some(true), Some(true)) => {
                        let advice = "a button is the default one or the cancel one, not both";
                        return Err(self.invalid(&raw.kind.span(), field("cancel"), advice));
                    }
                    (Some(true), _) => ButtonPart::Default,
                    (_, Some(true)) => ButtonPart::Cancel,
                    _ => ButtonPart::Plain,
                },
            },
            Kind::TextField => Content::TextField { value },
            Kind::SecureField => Content::SecureField { value },
            Kind::TextArea => Content::TextArea { value },
            Kind::CheckBox => Content::CheckBox {
                checked: raw.checked.unwrap_or(false),
            },
            Kind::RadioButton => Content::RadioButton {
                chosen: raw.checked.unwrap_or(false),
            },
            Kind::PopUpButton => {
                let choices = raw.choices.clone().unwrap_or_default();
                let chosen = raw.chosen.unwrap_or(0);
                if chosen >= choices.len() || choices.len() > MAX_CHOICES {
                    let advice = format!(
                        "write 1 to {MAX_CHOICES} choices, and the index of one of them, the first being 0"
                    );
                    return Err(self.invalid(&raw.kind.span(), field("choices"), advice));
                }
                Content::PopUpButton { choices, chosen }
            }
            Kind::List => Content::List {
                recycled: raw.recycled.unwrap_or(false).then(|| Recycled {
                    rows: Vec::new(),
                    selected: raw.selected,
                }),
            },
            Kind::Menu => Content::Menu,
            Kind::MenuItem => Content::MenuItem,
            Kind::ContextMenu => Content::ContextMenu,
            Kind::Slider => {
                let (min, max) = (raw.min.unwrap_or(0.0), raw.max.unwrap_or(100.0));
                let step = raw.step.unwrap_or(1.0);
                let value = raw.number.unwrap_or(min);
                let finite = [min, max, step, value]
                    .iter()
                    .all(|number| number.is_finite());
                if !finite || min >= max || step <= 0.0 || !(min..=max).contains(&value) {
                    let advice =
                        "write finite numbers with min < max, step > 0 and min <= number <= max";
                    return Err(self.invalid(&raw.kind.span(), field("number"), advice));
                }
                Content::Slider {
                    value,
                    min,
                    max,
                    step,
                }
            }
        })
    }
}

/// The first key that the control's kind cannot do without and that is absent.
fn missing_key(raw: &RawControl) -> Option<&'static str> {
    let kind = *raw.kind.get_ref();
    let titled = matches!(
        kind,
        Kind::Label
            | Kind::Button
            | Kind::Link
            | Kind::CheckBox
            | Kind::RadioButton
            | Kind::Menu
            | Kind::MenuItem
    );
    if !kind.is_menu() && raw.bounds.is_none() {
        return Some("bounds");
    }
    if kind == Kind::PopUpButton && raw.choices.is_none() {
        return Some("choices");
    }
    (titled && raw.title.is_none()).then_some("title")
}
