//! Controls in a scenario: one flat table for every kind, and which keys each kind takes.
//!
//! The table is flat, with `kind` as an ordinary key, because a TOML array of tables cannot nest to any depth in a
//! readable way; a control names its container with `in` instead.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::effect::{Place, RawEffect};
use super::{Cause, Checker, Waiting, content_area};
use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::{
    Content, ControlId, ControlSpec, LabelStyle, PressBehavior, ScenarioError, WindowSpec,
    WriteBehavior, row_bounds,
};

/// Most rows or nested groups that one control generates.
const MAX_GENERATED: usize = 40_000;

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
    checked: Option<bool>,
    #[serde(default)]
    rows: Option<Vec<String>>,
    #[serde(default)]
    generated_rows: Option<usize>,
    #[serde(default)]
    selected: Option<usize>,
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
    cyclic: Option<bool>,
    #[serde(default)]
    press: Option<PressBehavior>,
    #[serde(default)]
    write: Option<WriteBehavior>,
    #[serde(default)]
    slow_ms: u32,
    #[serde(default)]
    restless_ms: Option<u32>,
    #[serde(default)]
    on_press: Option<Vec<RawEffect>>,
    #[serde(default)]
    on_change: Option<Vec<RawEffect>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Group,
    Panel,
    Label,
    Button,
    TextField,
    SecureField,
    TextArea,
    CheckBox,
    List,
    Slider,
    Menu,
    MenuItem,
}

impl Kind {
    const fn is_text(self) -> bool {
        matches!(self, Self::TextField | Self::SecureField | Self::TextArea)
    }

    const fn is_pressed(self) -> bool {
        matches!(self, Self::Button | Self::CheckBox | Self::MenuItem)
    }

    const fn is_written(self) -> bool {
        self.is_text() || matches!(self, Self::Slider)
    }

    const fn is_container(self) -> bool {
        matches!(self, Self::Group | Self::Panel)
    }

    const fn is_menu(self) -> bool {
        matches!(self, Self::Menu | Self::MenuItem)
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
    ) -> Result<Vec<Waiting>, ScenarioError> {
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
            press: raw.press.unwrap_or(PressBehavior::Works),
            write: raw.write.unwrap_or(WriteBehavior::Works),
            slow: self.delay(&span, &field("slow_ms"), raw.slow_ms)?,
            restless: restless.map(|period| Duration::from_millis(u64::from(period))),
            cyclic: raw.cyclic.unwrap_or(false),
            on_press: Vec::new(),
            on_change: Vec::new(),
        };
        for count in [raw.generated_rows, raw.nested_groups]
            .into_iter()
            .flatten()
        {
            if count > MAX_GENERATED {
                let advice = format!("generate at most {MAX_GENERATED}");
                return Err(self.invalid(&span, field("generated_rows"), advice));
            }
        }
        let rows = raw.rows.unwrap_or_default();
        if raw
            .selected
            .is_some_and(|selected| selected >= rows.len() + raw.generated_rows.unwrap_or(0))
        {
            return Err(self.invalid(
                &span,
                field("selected"),
                "write the index of a row, the first being 0",
            ));
        }
        window.menu_bar |= kind.is_menu();
        window.controls.push(spec);
        let generated = (1..=raw.generated_rows.unwrap_or(0)).map(|number| format!("Row {number}"));
        for (row, title) in rows.into_iter().chain(generated).enumerate() {
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
        let causes = [(Cause::Press, raw.on_press), (Cause::Change, raw.on_change)];
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
    fn check_keys(
        &self,
        raw: &RawControl,
        field: &dyn Fn(&str) -> String,
    ) -> Result<(), ScenarioError> {
        let kind = *raw.kind.get_ref();
        let keys = [
            ("bounds", raw.bounds.is_some(), !kind.is_menu()),
            ("placeholder", raw.placeholder.is_some(), kind.is_text()),
            ("value", raw.value.is_some(), kind.is_text()),
            ("style", raw.style.is_some(), kind == Kind::Label),
            ("default", raw.default.is_some(), kind == Kind::Button),
            ("checked", raw.checked.is_some(), kind == Kind::CheckBox),
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
            ("cyclic", raw.cyclic.is_some(), kind.is_container()),
            ("press", raw.press.is_some(), kind.is_pressed()),
            ("on_press", raw.on_press.is_some(), kind.is_pressed()),
            ("write", raw.write.is_some(), kind.is_written()),
            ("on_change", raw.on_change.is_some(), kind.is_written()),
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
    ) -> Result<Option<usize>, ScenarioError> {
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
            Content::Menu => kind == Kind::MenuItem,
            Content::Group | Content::Panel => !kind.is_menu(),
            Content::Window(_)
            | Content::Label(_)
            | Content::Button { .. }
            | Content::TextField { .. }
            | Content::SecureField { .. }
            | Content::TextArea { .. }
            | Content::CheckBox { .. }
            | Content::List
            | Content::Row { .. }
            | Content::MenuBar
            | Content::MenuItem
            | Content::Slider { .. } => false,
        };
        match found.filter(fits) {
            Some(index) => Ok(Some(index)),
            None => {
                let advice = if kind.is_menu() {
                    "a `menu_item` stands in a `menu` that is written above it; a `menu` stands in nothing"
                } else {
                    "write the id of a `group` or `panel` of this window that is written above"
                };
                Err(self.invalid(&raw.kind.span(), field("in"), advice))
            }
        }
    }

    fn content(
        &self,
        raw: &RawControl,
        field: &dyn Fn(&str) -> String,
    ) -> Result<Content, ScenarioError> {
        let value = raw.value.clone().unwrap_or_default();
        Ok(match *raw.kind.get_ref() {
            Kind::Group => Content::Group,
            Kind::Panel => Content::Panel,
            Kind::Label => Content::Label(raw.style.unwrap_or(LabelStyle::Body)),
            Kind::Button => Content::Button {
                default: raw.default.unwrap_or(false),
            },
            Kind::TextField => Content::TextField { value },
            Kind::SecureField => Content::SecureField { value },
            Kind::TextArea => Content::TextArea { value },
            Kind::CheckBox => Content::CheckBox {
                checked: raw.checked.unwrap_or(false),
            },
            Kind::List => Content::List,
            Kind::Menu => Content::Menu,
            Kind::MenuItem => Content::MenuItem,
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
        Kind::Label | Kind::Button | Kind::CheckBox | Kind::Menu | Kind::MenuItem
    );
    if !kind.is_menu() && raw.bounds.is_none() {
        return Some("bounds");
    }
    (titled && raw.title.is_none()).then_some("title")
}
