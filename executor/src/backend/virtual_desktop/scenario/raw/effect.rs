//! Effects in a scenario: what they are called, which keys each takes, and what their targets may be.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::Checker;
use crate::backend::virtual_desktop::scenario::{
    Behavior, Change, Content, ControlId, Effect, Mistake, Template, TemplatePart, WindowSpec,
};

/// Most effects of one cause.
const MAX_EFFECTS: usize = 32;

/// An effect as it is written.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEffect {
    effect: Spanned<EffectKind>,
    #[serde(default)]
    target: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    to: Option<[i32; 2]>,
    #[serde(default)]
    size: Option<[i32; 2]>,
    #[serde(default)]
    behavior: Option<Behavior>,
    #[serde(default)]
    delay_ms: u32,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EffectKind {
    Noop,
    SetText,
    SetLabel,
    SetWindowTitle,
    Toggle,
    Enable,
    Disable,
    Remove,
    AppendRow,
    SetBehavior,
    Focus,
    MoveWindow,
    ResizeWindow,
    RaiseWindow,
    MinimizeWindow,
    RestoreWindow,
    OpenWindow,
    CloseWindow,
    ExitApp,
    ReplaceProcess,
    LockScreen,
    UnlockScreen,
    UserInput,
}

impl EffectKind {
    /// Whether it takes `text`.
    const fn takes_text(self) -> bool {
        match self {
            Self::SetText | Self::SetLabel | Self::SetWindowTitle | Self::AppendRow => true,
            Self::Noop
            | Self::Toggle
            | Self::Enable
            | Self::Disable
            | Self::Remove
            | Self::SetBehavior
            | Self::Focus
            | Self::MoveWindow
            | Self::ResizeWindow
            | Self::RaiseWindow
            | Self::MinimizeWindow
            | Self::RestoreWindow
            | Self::OpenWindow
            | Self::CloseWindow
            | Self::ExitApp
            | Self::ReplaceProcess
            | Self::LockScreen
            | Self::UnlockScreen
            | Self::UserInput => false,
        }
    }
}

/// Where an effect is written: what a target without a window, or no target at all, refers to.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The application around it.
    pub(super) app: Option<usize>,
    /// The window around it.
    pub(super) window: Option<usize>,
}

impl Checker<'_> {
    /// Checks a list of effects once all names are known.
    pub(super) fn effects(
        &self,
        place: Place,
        raw: Vec<RawEffect>,
        windows: &[WindowSpec],
    ) -> Result<Vec<Effect>, Mistake> {
        if let Some(extra) = raw.get(MAX_EFFECTS) {
            let advice = format!("write at most {MAX_EFFECTS} effects");
            return Err(self.invalid(&extra.effect.span(), "effect", advice));
        }
        raw.into_iter()
            .map(|effect| self.effect(place, &effect, windows))
            .collect()
    }

    fn effect(
        &self,
        place: Place,
        raw: &RawEffect,
        windows: &[WindowSpec],
    ) -> Result<Effect, Mistake> {
        let span = raw.effect.span();
        let kind = *raw.effect.get_ref();
        if kind.takes_text() != raw.text.is_some() {
            let advice = if kind.takes_text() {
                "write the new text"
            } else {
                "this effect takes none; remove it"
            };
            return Err(self.invalid(&span, "text", advice));
        }
        if matches!(kind, EffectKind::MoveWindow) != raw.to.is_some() {
            let advice = "`move_window`, and no other effect, takes the new position [x, y]";
            return Err(self.invalid(&span, "to", advice));
        }
        if matches!(kind, EffectKind::ResizeWindow) != raw.size.is_some() {
            let advice = "`resize_window`, and no other effect, takes the new size [width, height]";
            return Err(self.invalid(&span, "size", advice));
        }
        if matches!(kind, EffectKind::SetBehavior) != raw.behavior.is_some() {
            let advice = "`set_behavior`, and no other effect, takes the new behavior";
            return Err(self.invalid(&span, "behavior", advice));
        }
        let template = || self.template(&span, place, raw.text.as_deref().unwrap_or_default());
        let control = || self.target_control(&span, place, raw.target.as_deref(), windows);
        let window = || self.target_window(&span, place, raw.target.as_deref());
        let app = || self.target_app(&span, place, raw.target.as_deref());
        let change = match kind {
            EffectKind::Noop => Change::Noop,
            EffectKind::SetText => Change::SetText(control()?.0, template()?),
            EffectKind::SetLabel => Change::SetLabel(control()?.0, template()?),
            EffectKind::SetWindowTitle => Change::SetWindowTitle(window()?, template()?),
            EffectKind::Toggle => {
                let (id, content) = control()?;
                if !matches!(content, Content::CheckBox { .. }) {
                    return Err(self.invalid(
                        &span,
                        "target",
                        "name a control of kind `check_box`",
                    ));
                }
                Change::Toggle(id)
            }
            EffectKind::Enable => Change::SetEnabled(control()?.0, true),
            EffectKind::Disable => Change::SetEnabled(control()?.0, false),
            EffectKind::Remove => Change::Remove(control()?.0),
            EffectKind::AppendRow => {
                let (id, content) = control()?;
                if !matches!(content, Content::List { .. }) {
                    return Err(self.invalid(&span, "target", "name a control of kind `list`"));
                }
                Change::AppendRow(id, template()?)
            }
            EffectKind::MoveWindow => {
                let [x, y] = raw.to.unwrap_or_default();
                if x.abs() > super::MAX_COORDINATE || y.abs() > super::MAX_COORDINATE {
                    return Err(self.invalid(&span, "to", "write [x, y], each within 32768 of 0"));
                }
                Change::MoveWindow(window()?, x, y)
            }
            EffectKind::ResizeWindow => {
                let [width, height] = raw.size.unwrap_or_default();
                let sides = super::WINDOW_SIDE;
                if !sides.contains(&width) || !sides.contains(&height) {
                    let advice = "write [width, height], each 80 to 4096 points";
                    return Err(self.invalid(&span, "size", advice));
                }
                Change::ResizeWindow(window()?, width, height)
            }
            EffectKind::SetBehavior => {
                Change::SetBehavior(control()?.0, raw.behavior.unwrap_or_default())
            }
            EffectKind::Focus => {
                let (id, content) = control()?;
                if !content.is_focusable() {
                    let advice = "name a control that can have the focus";
                    return Err(self.invalid(&span, "target", advice));
                }
                Change::Focus(id)
            }
            EffectKind::RaiseWindow => Change::RaiseWindow(window()?),
            EffectKind::MinimizeWindow => Change::MinimizeWindow(window()?),
            EffectKind::RestoreWindow => Change::RestoreWindow(window()?),
            EffectKind::OpenWindow => Change::OpenWindow(window()?),
            EffectKind::CloseWindow => Change::CloseWindow(window()?),
            EffectKind::ExitApp => Change::ExitApp(app()?),
            EffectKind::ReplaceProcess => Change::ReplaceProcess(app()?),
            EffectKind::LockScreen => Change::SetLocked(true),
            EffectKind::UnlockScreen => Change::SetLocked(false),
            EffectKind::UserInput => Change::UserInput,
        };
        Ok(Effect {
            delay: self.delay(&span, "delay_ms", raw.delay_ms)?,
            change,
        })
    }

    fn target_control<'w>(
        &self,
        span: &Range<usize>,
        place: Place,
        target: Option<&str>,
        windows: &'w [WindowSpec],
    ) -> Result<(ControlId, &'w Content), Mistake> {
        let id = target
            .and_then(|target| self.find_control(place, target))
            .ok_or_else(|| {
                self.invalid(
                    span,
                    "target",
                    "write the id of a control of this window, or `window/control`",
                )
            })?;
        Ok((id, &windows[id.window].controls[id.control].content))
    }

    fn target_window(
        &self,
        span: &Range<usize>,
        place: Place,
        target: Option<&str>,
    ) -> Result<usize, Mistake> {
        match target {
            Some(target) => self.names.windows.get(target).copied(),
            None => place.window,
        }
        .ok_or_else(|| self.invalid(span, "target", "write the id of a window"))
    }

    fn target_app(
        &self,
        span: &Range<usize>,
        place: Place,
        target: Option<&str>,
    ) -> Result<usize, Mistake> {
        match target {
            Some(target) => self.names.apps.get(target).copied(),
            None => place.app,
        }
        .ok_or_else(|| self.invalid(span, "target", "write the app_id of an application"))
    }

    fn find_control(&self, place: Place, name: &str) -> Option<ControlId> {
        let (window, control) = match name.split_once('/') {
            Some((window, control)) => (*self.names.windows.get(window)?, control),
            None => (place.window?, name),
        };
        self.names
            .controls
            .get(&(window, control.to_owned()))
            .copied()
    }

    /// Splits `Saved: {title}` at its holes; `{{` and `}}` stand for the braces themselves.
    fn template(&self, span: &Range<usize>, place: Place, text: &str) -> Result<Template, Mistake> {
        let advice = "between braces stands the id of a control; write `{{` for a brace";
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            let after = &rest[at + 1..];
            if let Some(after) = after.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let hole = (brace == "{").then(|| after.split_once('}')).flatten();
            let Some((name, after)) = hole else {
                return Err(self.invalid(span, "text", advice));
            };
            let id = self
                .find_control(place, name)
                .ok_or_else(|| self.invalid(span, "text", advice))?;
            if !literal.is_empty() {
                parts.push(TemplatePart::Text(std::mem::take(&mut literal)));
            }
            parts.push(TemplatePart::Control(id));
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(TemplatePart::Text(literal));
        }
        Ok(Template(parts))
    }
}
