//! Sections `[[displays]]`: the displays of the desktop, where its executor cannot tell.

use maka_cu_host::displays::Display;
use maka_cu_protocol::{geometry::ScreenRect, ids::DisplayId};
use serde::Deserialize;

/// One display.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "Fields")]
pub struct DisplayConfig(pub Display);

/// As it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    id: String,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    scale_factor: f64,
}

impl TryFrom<Fields> for DisplayConfig {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let id = DisplayId::try_new(fields.id)
            .map_err(|_| "a display without an id; write the id that the executor gives it")?;
        let is_sound = |number: f64| number.is_finite() && number > 0.0;
        if ![fields.width, fields.height, fields.scale_factor]
            .into_iter()
            .all(is_sound)
        {
            return Err(
                "a display without an extent; write its width and height in points and its scale factor, each above 0",
            );
        }
        let bounds = ScreenRect::try_new(fields.x, fields.y, fields.width, fields.height)
            .map_err(|_| "a display without a place; write x and y in points")?;
        Ok(Self(Display {
            id,
            bounds,
            scale_factor: fields.scale_factor,
        }))
    }
}
