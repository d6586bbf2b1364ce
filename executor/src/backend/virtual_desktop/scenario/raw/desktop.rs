//! What belongs to the whole desktop: its time, the actions on offer, its displays.

use std::collections::HashSet;
use std::time::Duration;

use maka_cu_protocol::sets::{ElementActionKind, KeyActionKind, PointActionKind};
use serde::Deserialize;
use toml::Spanned;

use super::{Checker, MAX_COORDINATE, MAX_DELAY_MS};
use crate::backend::virtual_desktop::rect::Rect;
use crate::backend::virtual_desktop::scenario::{DisplaySpec, Mistake, Offers, TimeSpec};

/// Smallest and largest display side, in points.
const DISPLAY_SIDE: std::ops::RangeInclusive<i32> = 64..=8_192;

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RawTime {
    #[default]
    Wall,
    Stepped,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOffers {
    #[serde(default)]
    elements: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    points: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    keys: Option<Vec<Spanned<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDisplay {
    id: Spanned<String>,
    size: [i32; 2],
    #[serde(default)]
    origin: [i32; 2],
    #[serde(default = "one")]
    scale: u8,
}

const fn one() -> u8 {
    1
}

impl Checker<'_> {
    /// How time passes.
    pub(super) fn time(
        &self,
        time: RawTime,
        step: Option<&Spanned<u32>>,
    ) -> Result<TimeSpec, Mistake> {
        let millis = step.map_or(100, |step| *step.get_ref());
        match (time, step) {
            (RawTime::Wall, None) => Ok(TimeSpec::Wall),
            (RawTime::Stepped, _) if (1..=MAX_DELAY_MS).contains(&millis) => {
                Ok(TimeSpec::Stepped(Duration::from_millis(u64::from(millis))))
            }
            (RawTime::Wall, Some(step)) => {
                let advice = "only `time = \"stepped\"` has steps; remove it";
                Err(self.invalid(&step.span(), "step_ms", advice))
            }
            (RawTime::Stepped, step) => {
                let span = step.map_or(0..0, Spanned::span);
                let advice = format!("write 1 to {MAX_DELAY_MS} milliseconds");
                Err(self.invalid(&span, "step_ms", advice))
            }
        }
    }

    /// Which actions are offered.
    pub(super) fn offers(&self, raw: &RawOffers) -> Result<Offers, Mistake> {
        let (points, keys) = (PointActionKind::ALL, KeyActionKind::ALL);
        Ok(Offers {
            elements: self.words(
                "offers.elements",
                raw.elements.as_deref(),
                ElementActionKind::ALL,
                ElementActionKind::as_str,
            )?,
            points: self.words(
                "offers.points",
                raw.points.as_deref(),
                points,
                PointActionKind::as_str,
            )?,
            keys: self.words(
                "offers.keys",
                raw.keys.as_deref(),
                keys,
                KeyActionKind::as_str,
            )?,
        })
    }

    /// The members of a set that a list of words names; all of them without a list.
    fn words<T: Copy>(
        &self,
        field: &str,
        words: Option<&[Spanned<String>]>,
        all: &[T],
        word_of: impl Fn(T) -> &'static str,
    ) -> Result<Vec<T>, Mistake> {
        let Some(words) = words else {
            return Ok(all.to_vec());
        };
        let found = words.iter().map(|word| {
            let found = all.iter().find(|kind| word_of(**kind) == word.get_ref());
            found.copied().ok_or_else(|| {
                let known: Vec<_> = all.iter().map(|kind| word_of(*kind)).collect();
                let advice = format!("write some of `{}`", known.join("`, `"));
                self.invalid(&word.span(), field, advice)
            })
        });
        found.collect()
    }

    /// The displays, or the one that there is without any.
    pub(super) fn displays(&self, raw: &[RawDisplay]) -> Result<Vec<DisplaySpec>, Mistake> {
        if raw.is_empty() {
            return Ok(vec![DisplaySpec {
                id: "1".to_owned(),
                bounds: Rect::new(0, 0, 1280, 800),
                scale: 1,
            }]);
        }
        if raw.len() > 8 {
            return Err(self.invalid(&raw[8].id.span(), "displays", "write at most 8 displays"));
        }
        let mut seen = HashSet::new();
        let mut displays: Vec<DisplaySpec> = Vec::new();
        for display in raw {
            let span = display.id.span();
            let id = display.id.get_ref();
            if id.is_empty() || !seen.insert(id.as_str()) {
                return Err(self.invalid(
                    &span,
                    "displays.id",
                    "write a name that no other display has",
                ));
            }
            if !display.size.iter().all(|side| DISPLAY_SIDE.contains(side)) {
                return Err(self.invalid(
                    &span,
                    "displays.size",
                    "write [width, height], each 64 to 8192 points",
                ));
            }
            if !display
                .origin
                .iter()
                .all(|value| value.abs() <= MAX_COORDINATE)
            {
                return Err(self.invalid(
                    &span,
                    "displays.origin",
                    "write [x, y], each within 32768 of 0",
                ));
            }
            if !matches!(display.scale, 1 | 2) {
                return Err(self.invalid(&span, "displays.scale", "write 1 or 2"));
            }
            if displays.is_empty() && display.origin != [0, 0] {
                let advice = "the first display is the main one: its origin is [0, 0]";
                return Err(self.invalid(&span, "displays.origin", advice));
            }
            let [x, y] = display.origin;
            let [width, height] = display.size;
            let bounds = Rect::new(x, y, width, height);
            if displays
                .iter()
                .any(|other| other.bounds.overlap(bounds) > 0)
            {
                let advice = "this display lies on another one; move it beside";
                return Err(self.invalid(&span, "displays.origin", advice));
            }
            displays.push(DisplaySpec {
                id: id.clone(),
                bounds,
                scale: display.scale,
            });
        }
        Ok(displays)
    }
}
