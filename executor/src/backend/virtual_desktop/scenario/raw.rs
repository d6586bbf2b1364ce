//! Scenario TOML: its shapes, and the checks that turn them into the types of the parent module.
//!
//! Keys and types are checked by the TOML reader (an unknown key is refused and the known ones are named), everything
//! that needs a second look (names that must exist, ranges, keys that only some kinds of control have) here.

mod control;
mod desktop;
mod effect;
mod generate;
mod kind;

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::{
    AppSpec, Color, ControlId, InputRule, LaunchBehavior, Mistake, Scenario, TITLE_BAR_HEIGHT,
    WindowRule, WindowRules, WindowSpec, WindowStyle,
};
use crate::backend::virtual_desktop::rect::Rect;
use control::RawControl;
use desktop::{RawDisplay, RawOffers, RawTime};
use effect::{Place, RawEffect};

/// Largest coordinate, in points: far beyond any display, far below overflow.
const MAX_COORDINATE: i32 = 32_768;
/// Smallest and largest window side, in points.
const WINDOW_SIDE: std::ops::RangeInclusive<i32> = 80..=4_096;
/// Most displays, applications, and windows.
const MAX_COUNT: usize = 64;
/// Most controls of all windows, generated ones included.
const MAX_CONTROLS: usize = 50_000;
/// Longest delay, in milliseconds.
const MAX_DELAY_MS: u32 = 600_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScenario {
    #[serde(default)]
    displays: Vec<RawDisplay>,
    #[serde(default)]
    permissions: RawPermissions,
    #[serde(default)]
    screen_locked: bool,
    #[serde(default)]
    user_active: bool,
    #[serde(default)]
    time: RawTime,
    #[serde(default)]
    step_ms: Option<Spanned<u32>>,
    #[serde(default)]
    offers: RawOffers,
    apps: Vec<RawApp>,
    #[serde(default)]
    events: Vec<RawEffect>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPermissions {
    #[serde(default = "yes")]
    accessibility: bool,
    #[serde(default = "yes")]
    screen_recording: bool,
}

impl Default for RawPermissions {
    fn default() -> Self {
        Self {
            accessibility: true,
            screen_recording: true,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawApp {
    app_id: Spanned<String>,
    name: String,
    #[serde(default)]
    accent: Option<Spanned<String>>,
    #[serde(default)]
    running: bool,
    #[serde(default = "yes")]
    launchable: bool,
    #[serde(default)]
    single_instance: bool,
    #[serde(default)]
    takes_foreground: bool,
    #[serde(default = "opens")]
    launch: LaunchBehavior,
    #[serde(default)]
    window_delay_ms: u32,
    #[serde(default)]
    windows: Vec<RawWindow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWindow {
    id: Spanned<String>,
    title: String,
    bounds: [i32; 4],
    #[serde(default = "standard")]
    style: WindowStyle,
    #[serde(default)]
    layer: i32,
    #[serde(default = "yes")]
    open: bool,
    #[serde(default)]
    menu_bar: bool,
    #[serde(default = "obeys", rename = "move")]
    moving: WindowRule,
    #[serde(default = "obeys", rename = "resize")]
    resizing: WindowRule,
    #[serde(default = "obeys", rename = "minimize")]
    minimizing: WindowRule,
    #[serde(default)]
    min_size: Option<[i32; 2]>,
    #[serde(default)]
    max_size: Option<[i32; 2]>,
    #[serde(default)]
    lag_ms: u32,
    #[serde(default = "background")]
    input: InputRule,
    #[serde(default)]
    modal_for: Option<String>,
    #[serde(default)]
    controls: Vec<RawControl>,
}

const fn yes() -> bool {
    true
}

const fn opens() -> LaunchBehavior {
    LaunchBehavior::Opens
}

const fn obeys() -> WindowRule {
    WindowRule::Works
}

const fn background() -> InputRule {
    InputRule::Background
}

const fn standard() -> WindowStyle {
    WindowStyle::Standard
}

/// Reads and checks a whole scenario.
pub(super) fn parse(text: &str) -> Result<Scenario, Mistake> {
    let raw: RawScenario = toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().replace('\n', ", ");
        Mistake {
            line: line_of(text, &span),
            field: named_field(&message)
                .or_else(|| key_at(text, &span))
                .unwrap_or_else(|| "scenario".to_owned()),
            advice: message,
        }
    })?;
    Checker {
        text,
        names: Names::default(),
    }
    .scenario(raw)
}

/// Where a name points; filled while windows are read, used when effects are.
#[derive(Default)]
struct Names {
    /// Application ids.
    apps: HashMap<String, usize>,
    /// Window ids.
    windows: HashMap<String, usize>,
    /// Control ids, which are unique within a window.
    controls: HashMap<(usize, String), ControlId>,
}

struct Checker<'a> {
    text: &'a str,
    names: Names,
}

impl Checker<'_> {
    fn scenario(mut self, raw: RawScenario) -> Result<Scenario, Mistake> {
        let displays = self.displays(&raw.displays)?;
        if raw.apps.is_empty() || raw.apps.len() > MAX_COUNT {
            return Err(self.invalid(
                &(0..0),
                "apps",
                format!("write 1 to {MAX_COUNT} [[apps]] tables"),
            ));
        }
        let mut apps = Vec::new();
        let mut windows = Vec::new();
        let mut waiting = Vec::new();
        let mut modal = Vec::new();
        for (app, raw_app) in raw.apps.into_iter().enumerate() {
            apps.push(self.app(app, &raw_app)?);
            for raw_window in raw_app.windows {
                let place = Place {
                    app: Some(app),
                    window: Some(windows.len()),
                };
                if let Some(blocked) = &raw_window.modal_for {
                    modal.push((windows.len(), blocked.clone(), raw_window.id.span()));
                }
                let (window, effects) = self.window(place, raw_window)?;
                windows.push(window);
                waiting.extend(effects);
            }
        }
        if windows.len() > MAX_COUNT {
            return Err(self.invalid(
                &(0..0),
                "apps.windows",
                format!("write at most {MAX_COUNT} windows in all"),
            ));
        }
        if windows
            .iter()
            .map(|window| window.controls.len())
            .sum::<usize>()
            > MAX_CONTROLS
        {
            let advice = format!("at most {MAX_CONTROLS} controls fit; generate fewer");
            return Err(self.invalid(&(0..0), "apps.windows.controls", advice));
        }
        for (window, blocked, span) in modal {
            let found = self.names.windows.get(&blocked).copied();
            let of_app =
                |other: &usize| *other != window && windows[*other].app == windows[window].app;
            windows[window].rules.modal_for = Some(found.filter(of_app).ok_or_else(|| {
                let field = format!("windows.{}.modal_for", windows[window].id);
                self.invalid(
                    &span,
                    field,
                    "write the id of another window of this application",
                )
            })?);
        }
        // Effects come last, because they may name a window that stands further down in the file.
        for pending in waiting {
            let effects = self.effects(pending.place, pending.effects, &windows)?;
            let control = &mut windows[pending.control.window].controls[pending.control.control];
            match pending.cause {
                Cause::Press => control.on_press = effects,
                Cause::Change => control.on_change = effects,
                Cause::Open => control.on_open = effects,
                Cause::Hover => control.on_hover = effects,
            }
        }
        let events = self.effects(
            Place {
                app: None,
                window: None,
            },
            raw.events,
            &windows,
        )?;
        Ok(Scenario {
            displays,
            accessibility: raw.permissions.accessibility,
            screen_recording: raw.permissions.screen_recording,
            screen_locked: raw.screen_locked,
            user_active: raw.user_active,
            time: self.time(raw.time, raw.step_ms.as_ref())?,
            offers: self.offers(&raw.offers)?,
            apps,
            windows,
            events,
        })
    }

    fn app(&mut self, index: usize, raw: &RawApp) -> Result<AppSpec, Mistake> {
        let span = raw.app_id.span();
        let app_id = raw.app_id.get_ref();
        if app_id.is_empty() || app_id.starts_with("pid:") {
            let advice = "write an application id such as `org.example.Notes`";
            return Err(self.invalid(&span, "apps.app_id", advice));
        }
        if self.names.apps.insert(app_id.clone(), index).is_some() {
            return Err(self.invalid(
                &span,
                "apps.app_id",
                "another application has this id already",
            ));
        }
        if raw.name.is_empty() {
            return Err(self.invalid(&span, "apps.name", "write the name that a person sees"));
        }
        let accent = match &raw.accent {
            None => Color::rgb(0x3b, 0x6e, 0xd8),
            Some(accent) => color(accent.get_ref()).ok_or_else(|| {
                self.invalid(
                    &accent.span(),
                    "apps.accent",
                    "write a color as `#rrggbb`, e.g. `#3b6ed8`",
                )
            })?,
        };
        Ok(AppSpec {
            app_id: app_id.clone(),
            name: raw.name.clone(),
            accent,
            running: raw.running,
            launchable: raw.launchable,
            single_instance: raw.single_instance,
            takes_foreground: raw.takes_foreground,
            launch: raw.launch,
            window_delay: self.delay(&span, "apps.window_delay_ms", raw.window_delay_ms)?,
        })
    }

    fn window(
        &mut self,
        place: Place,
        raw: RawWindow,
    ) -> Result<(WindowSpec, Vec<Waiting>), Mistake> {
        let span = raw.id.span();
        let id = raw.id.get_ref().clone();
        let index = place.window.expect("the caller numbers the window");
        if id.is_empty() || id.contains('/') {
            return Err(self.invalid(&span, "windows.id", "write a name without `/`"));
        }
        if self.names.windows.insert(id.clone(), index).is_some() {
            return Err(self.invalid(&span, "windows.id", "another window has this id already"));
        }
        let [x, y, width, height] = raw.bounds;
        let field = format!("windows.{id}.bounds");
        if x.abs() > MAX_COORDINATE || y.abs() > MAX_COORDINATE {
            return Err(self.invalid(
                &span,
                field,
                "write [x, y, width, height] with x and y within 32768 of 0",
            ));
        }
        if !WINDOW_SIDE.contains(&width) || !WINDOW_SIDE.contains(&height) {
            return Err(self.invalid(
                &span,
                field,
                "write a width and a height of 80 to 4096 points",
            ));
        }
        let rules = self.rules(&span, &id, &raw)?;
        let mut window = WindowSpec {
            id,
            rules,
            app: place.app.expect("the caller numbers the application"),
            title: raw.title,
            style: raw.style,
            bounds: Rect::new(x, y, width, height),
            layer: raw.layer,
            open: raw.open,
            menu_bar: raw.menu_bar,
            controls: Vec::new(),
        };
        let mut waiting = Vec::new();
        for control in raw.controls {
            waiting.extend(self.control(place, &mut window, control)?);
        }
        Ok((window, waiting))
    }

    fn rules(
        &self,
        span: &Range<usize>,
        id: &str,
        raw: &RawWindow,
    ) -> Result<WindowRules, Mistake> {
        let [min_size, max_size] = [
            raw.min_size.unwrap_or([*WINDOW_SIDE.start(); 2]),
            raw.max_size.unwrap_or([*WINDOW_SIDE.end(); 2]),
        ];
        let in_order = (0..2).all(|side| {
            WINDOW_SIDE.contains(&min_size[side])
                && WINDOW_SIDE.contains(&max_size[side])
                && min_size[side] <= max_size[side]
        });
        if !in_order {
            let advice = "write [width, height], each 80 to 4096 points and not above `max_size`";
            return Err(self.invalid(span, format!("windows.{id}.min_size"), advice));
        }
        if raw.minimizing == WindowRule::Clamped {
            let advice = "write `works`, `fixed`, `ignored`, `refused` or `unknown`";
            return Err(self.invalid(span, format!("windows.{id}.minimize"), advice));
        }
        Ok(WindowRules {
            moving: raw.moving,
            resizing: raw.resizing,
            minimizing: raw.minimizing,
            min_size,
            max_size,
            lag: self.delay(span, &format!("windows.{id}.lag_ms"), raw.lag_ms)?,
            input: raw.input,
            modal_for: None,
        })
    }

    fn delay(
        &self,
        span: &Range<usize>,
        field: &str,
        milliseconds: u32,
    ) -> Result<Duration, Mistake> {
        if milliseconds > MAX_DELAY_MS {
            return Err(self.invalid(
                span,
                field,
                format!("write at most {MAX_DELAY_MS} milliseconds"),
            ));
        }
        Ok(Duration::from_millis(u64::from(milliseconds)))
    }

    fn invalid(
        &self,
        span: &Range<usize>,
        field: impl Into<String>,
        advice: impl Into<String>,
    ) -> Mistake {
        Mistake {
            line: line_of(self.text, span),
            field: field.into(),
            advice: advice.into(),
        }
    }
}

/// Effects that wait until every name of the file is known.
struct Waiting {
    place: Place,
    control: ControlId,
    cause: Cause,
    effects: Vec<RawEffect>,
}

/// What sets a control's effects off.
enum Cause {
    Press,
    Change,
    Open,
    Hover,
}

/// The area in which a window's controls may lie, in window-local points.
fn content_area(window: &WindowSpec) -> Rect {
    let Rect { width, height, .. } = window.bounds;
    Rect::new(0, TITLE_BAR_HEIGHT, width, height - TITLE_BAR_HEIGHT)
}

fn color(text: &str) -> Option<Color> {
    let digits = text
        .strip_prefix('#')
        .filter(|digits| digits.len() == 6 && digits.is_ascii())?;
    let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    Some(Color::rgb(part(0)?, part(2)?, part(4)?))
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().get(..span.start).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The field that the TOML reader's message is about, if it says so.
fn named_field(message: &str) -> Option<String> {
    let (kind, rest) = message.split_once(" field `")?;
    matches!(kind, "missing" | "unknown" | "duplicate")
        .then(|| rest.split('`').next())
        .flatten()
        .map(str::to_owned)
}

/// The key of the value at a place in the text: what stands before the nearest `=` on its line.
fn key_at(text: &str, span: &Range<usize>) -> Option<String> {
    let before = text.get(..span.start)?;
    let line = before.rsplit('\n').next()?;
    let key = line.trim_end().strip_suffix('=')?.trim_end();
    let start = key.rfind([' ', ',', '{', '\t']).map_or(0, |at| at + 1);
    (start < key.len()).then(|| key[start..].to_owned())
}
