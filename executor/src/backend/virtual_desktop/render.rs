//! Pixels of the virtual desktop.
//!
//! [`window`] paints one window from its state alone, so that its picture is the same whether or not something lies
//! over it; [`display`] paints wallpaper and top bar and puts the windows over each other. Both are pure functions of
//! state, scale and time: the same state gives the same bytes, which is what makes a changed digest mean something.

pub(super) mod layout;

mod canvas;
mod control;
mod text;
mod theme;

use std::sync::Arc;
use std::time::Instant;

use tiny_skia::Pixmap;

use super::rect::Rect;
use super::scenario::{Content, DisplaySpec, TITLE_BAR_HEIGHT, WindowStyle};
use super::state::LiveWindow;
use canvas::{Align, Canvas, TextStyle};
use text::Weight;

/// Height of the bar at the top of the main display, in points.
const TOP_BAR_HEIGHT: i32 = 30;

/// The application whose name and menus the top bar shows.
pub(crate) struct Foreground {
    /// Its name.
    pub(crate) name: String,
    /// Its frontmost window, for the menus.
    pub(crate) window: Option<Arc<LiveWindow>>,
}

/// The pixels of one window, `scale` to the point.
///
/// `None` when the sizes are beyond what can be painted; a scenario's limits keep them below that.
pub(crate) fn window(window: &LiveWindow, scale: u8, now: Instant) -> Option<Pixmap> {
    let mut canvas = Canvas::new(window.bounds.width, window.bounds.height, scale)?;
    let whole = Rect::new(0, 0, window.bounds.width, window.bounds.height);
    canvas.fill(whole, theme::WINDOW);
    title_bar(&mut canvas, window, whole);
    for (id, node) in window.in_paint_order() {
        control::paint(&mut canvas, window, id, node, now);
    }
    canvas.stroke(whole, 0.0, theme::WINDOW_EDGE);
    Some(canvas.into_pixmap())
}

/// The pixels of a display with the given windows on it, front to back.
///
/// `None` as for [`window`].
pub(crate) fn display(
    spec: &DisplaySpec,
    windows: &[Arc<LiveWindow>],
    foreground: Option<&Foreground>,
    now: Instant,
) -> Option<Pixmap> {
    let mut canvas = Canvas::new(spec.bounds.width, spec.bounds.height, spec.scale)?;
    let whole = Rect::new(0, 0, spec.bounds.width, spec.bounds.height);
    canvas.gradient(whole, theme::WALLPAPER_TOP, theme::WALLPAPER_BOTTOM);
    for (index, live) in windows.iter().enumerate().rev() {
        let place = live.bounds.moved(-spec.bounds.x, -spec.bounds.y);
        if place.overlap(whole) > 0 {
            let pixels = window(live, spec.scale, now)?;
            canvas.shadow(
                place,
                theme::WINDOW_RADIUS,
                if index == 0 { 1.0 } else { 0.6 },
            );
            canvas.picture(&pixels, place, theme::WINDOW_RADIUS);
        }
    }
    if spec.bounds.x == 0 && spec.bounds.y == 0 {
        top_bar(&mut canvas, spec.bounds.width, foreground);
    }
    Some(canvas.into_pixmap())
}

fn title_bar(canvas: &mut Canvas, window: &LiveWindow, whole: Rect) {
    let bar = Rect::new(0, 0, whole.width, TITLE_BAR_HEIGHT);
    canvas.fill(bar, theme::TITLE_BAR);
    canvas.fill(
        Rect::new(0, TITLE_BAR_HEIGHT - 1, whole.width, 1),
        theme::LINE,
    );
    let title = TextStyle {
        size: 13.0,
        weight: Weight::Bold,
        color: theme::TITLE,
        align: Align::Center,
    };
    canvas.text(&window.title, bar.inset(1), title);
    let close = window.close_button();
    match window.style {
        WindowStyle::Standard => canvas.disc(close, theme::CLOSE),
        WindowStyle::Dialog | WindowStyle::Sheet => {}
    }
    canvas.cross(close.inset(6), theme::CLOSE_GLYPH);
}

fn top_bar(canvas: &mut Canvas, width: i32, foreground: Option<&Foreground>) {
    let bar = Rect::new(0, 0, width, TOP_BAR_HEIGHT);
    canvas.fill_translucent(bar, theme::TOP_BAR, 0.82);
    let Some(foreground) = foreground else { return };
    let name = TextStyle {
        size: 13.0,
        weight: Weight::Bold,
        color: theme::TOP_BAR_TEXT,
        align: Align::Left,
    };
    let mut x = 20;
    x += canvas.text(
        &foreground.name,
        Rect::new(x, 0, width - x, TOP_BAR_HEIGHT),
        name,
    ) + 22;
    let Some(window) = &foreground.window else {
        return;
    };
    let bar = window.menu_bar.and_then(|bar| window.node(bar));
    for id in bar.map(|bar| bar.children.as_slice()).unwrap_or_default() {
        let Some(node) = window.node(*id) else {
            continue;
        };
        if matches!(node.control.content, Content::Menu) && x < width {
            let title = node.control.title.as_deref().unwrap_or_default();
            let place = Rect::new(x, 0, width - x, TOP_BAR_HEIGHT);
            x += canvas.text(
                title,
                place,
                TextStyle {
                    weight: Weight::Regular,
                    ..name
                },
            ) + 22;
        }
    }
}
