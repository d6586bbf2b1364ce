//! Scrolling what a node shows, by an action or by a scroll bar's value; never by the wheel.
//!
//! Pages of a web page offer actions for it, GTK and Qt have scroll bars. A bar is a child of the pane it moves (in Qt in a
//! filler of its own, in GTK 4 with its value in a child of its own), so a node is scrolled by its own bars, else by those
//! of the one pane inside it, else by those of the nearest pane around it. Lists and tables of Qt hide their bars from
//! everybody.

use futures_util::future::join_all;
use maka_cu_protocol::action::Pages;
use maka_cu_protocol::sets::{Direction, ElementVerb, Path};

use super::bus::{CallError, ObjectRef};
use super::frame::{Extents, Toolkit};
use super::input::{Attempt, not_actionable, outcome};
use super::reader::{ACTION, Core, Reader, TEXT, VALUE, absent_if_refused};
use super::vocabulary::{ROLE_FILLER, ROLE_SCROLL_BAR, State, action_for};
use crate::backend::perform::{PerformError, Performed};

/// How far up a pane or an action is looked for. Web pages are deep, and a question costs a few milliseconds.
const LEVELS_UP: usize = 24;
/// How far down a pane is looked for.
const LEVELS_DOWN: usize = 3;
/// Nodes that the search down looks at.
const NODES_DOWN: usize = 64;
/// A pane has a content and two bars; what has more children than this holds rows.
const PARTS_OF_A_PANE: usize = 16;
/// Most times that an action for one page is performed. The time limit of an action comes first.
const MOST_STEPS: f64 = 200.0;

/// Scrolls by so many pages.
pub(super) async fn scroll(
    attempt: &Attempt<'_>,
    direction: Direction,
    pages: Pages,
) -> Result<Performed, PerformError> {
    if let Some((object, index)) = offered(attempt, direction).await? {
        return step(attempt, &object, index, pages).await;
    }
    let axis = Axis::of(direction);
    let bar = nearest_bar(attempt, axis).await.map_err(not_actionable)?;
    let bar = bar.ok_or(PerformError::NotActionable)?;
    attempt
        .write_number(&bar.object, bar.target(direction, pages.get()))
        .await
}

/// The mechanism that [`scroll`] would use; `None` where there is nothing to scroll.
pub(super) async fn mechanism(attempt: &Attempt<'_>, direction: Direction) -> Option<Path> {
    if offered(attempt, direction).await.ok()?.is_some() {
        return Some(Path::AxAction);
    }
    let bar = nearest_bar(attempt, Axis::of(direction)).await.ok()?;
    bar.map(|_| Path::AxAttribute)
}

/// The node itself, or the nearest around it, that offers to scroll, and the index of that action.
async fn offered(
    attempt: &Attempt<'_>,
    direction: Direction,
) -> Result<Option<(ObjectRef, i32)>, PerformError> {
    match attempt.node.context.toolkit {
        // None of their controls offers such an action.
        Toolkit::Gtk3 | Toolkit::Gtk4 | Toolkit::Qt => return Ok(None),
        Toolkit::Chromium | Toolkit::ScreenBased => {}
    }
    let verb = match direction {
        Direction::Up => ElementVerb::ScrollUp,
        Direction::Down => ElementVerb::ScrollDown,
        Direction::Left => ElementVerb::ScrollLeft,
        Direction::Right => ElementVerb::ScrollRight,
    };
    let (reader, node) = (&attempt.reader, attempt.node);
    let around = node.ancestors().map(|ancestor| &ancestor.object);
    for object in std::iter::once(&node.object).chain(around.take(LEVELS_UP)) {
        let core = reader.core(object).await.map_err(not_actionable)?;
        let actions = reader
            .actions(object, core.interfaces)
            .await
            .map_err(not_actionable)?;
        let names = actions.iter().map(String::as_str);
        let index = action_for(node.context.toolkit, core.role, names, verb);
        if let Some(index) = index.and_then(|index| i32::try_from(index).ok()) {
            return Ok(Some((object.clone(), index)));
        }
    }
    Ok(None)
}

/// Performs an action for one page as often as there are whole pages, at least once.
async fn step(
    attempt: &Attempt<'_>,
    object: &ObjectRef,
    index: i32,
    pages: Pages,
) -> Result<Performed, PerformError> {
    let path = Path::AxAction;
    let mut left = pages.get().round().clamp(1.0, MOST_STEPS);
    let mut done = false;
    while left >= 1.0 {
        if done && attempt.deadline.is_over() {
            return Err(PerformError::Unknown { path });
        }
        let answer = attempt.send(object, ACTION, "DoAction", &index).await;
        match outcome(path, answer) {
            Ok(_) => done = true,
            Err(_) if done => return Err(PerformError::Unknown { path }),
            Err(error) => return Err(error),
        }
        left -= 1.0;
    }
    Ok(Performed::by(path))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Vertical,
    Horizontal,
}

impl Axis {
    const fn of(direction: Direction) -> Self {
        match direction {
            Direction::Up | Direction::Down => Self::Vertical,
            Direction::Left | Direction::Right => Self::Horizontal,
        }
    }

    /// The axis of a bar: as its states say, in Qt as its shape says.
    fn of_bar(core: &Core, extents: Extents) -> Option<Self> {
        match (
            core.states.has(State::Vertical),
            core.states.has(State::Horizontal),
        ) {
            (true, false) => Some(Self::Vertical),
            (false, true) => Some(Self::Horizontal),
            (true, true) | (false, false) if extents.height > extents.width => Some(Self::Vertical),
            (true, true) | (false, false) if extents.height < extents.width => {
                Some(Self::Horizontal)
            }
            (true, true) | (false, false) => None,
        }
    }

    fn length(self, extents: Extents) -> f64 {
        match self {
            Self::Vertical => extents.height.into(),
            Self::Horizontal => extents.width.into(),
        }
    }
}

/// A scroll bar that can move.
#[derive(Clone, Debug)]
struct Bar {
    /// What has the value.
    object: ObjectRef,
    low: f64,
    high: f64,
    now: f64,
    /// What the pane shows at one time.
    page: f64,
}

impl Bar {
    fn target(&self, direction: Direction, pages: f64) -> f64 {
        let distance = pages * self.page;
        let target = match direction {
            Direction::Up | Direction::Left => self.now - distance,
            Direction::Down | Direction::Right => self.now + distance,
        };
        target.clamp(self.low, self.high)
    }
}

async fn nearest_bar(attempt: &Attempt<'_>, axis: Axis) -> Result<Option<Bar>, CallError> {
    let (reader, node) = (&attempt.reader, attempt.node);
    if let Some(bar) = bar_inside(reader, &node.object, axis).await? {
        return Ok(Some(bar));
    }
    for ancestor in node.ancestors().take(LEVELS_UP) {
        if let [bar] = bars_of(reader, &ancestor.object, axis).await?.as_slice() {
            return Ok(Some(bar.clone()));
        }
    }
    Ok(None)
}

/// The bar of the node or of the one pane inside it. Where several panes are at the same level, none is meant.
async fn bar_inside(
    reader: &Reader<'_>,
    object: &ObjectRef,
    axis: Axis,
) -> Result<Option<Bar>, CallError> {
    let mut level = vec![object.clone()];
    let mut left = NODES_DOWN;
    for _ in 0..=LEVELS_DOWN {
        level.truncate(left);
        left -= level.len();
        let found = join_all(level.iter().map(|object| bars_of(reader, object, axis))).await;
        let mut bars = Vec::new();
        for found in found {
            bars.extend(found?);
        }
        match bars.as_slice() {
            [] => {}
            [bar] => return Ok(Some(bar.clone())),
            [_, _, ..] => return Ok(None),
        }
        let below = join_all(level.iter().map(|object| reader.children(object))).await;
        level = Vec::new();
        for below in below {
            level.extend(below?);
        }
        if level.is_empty() || left == 0 {
            break;
        }
    }
    Ok(None)
}

/// The bars of this axis that belong to a pane and can move.
async fn bars_of(reader: &Reader<'_>, pane: &ObjectRef, axis: Axis) -> Result<Vec<Bar>, CallError> {
    let parts = reader.children(pane).await?;
    if parts.len() > PARTS_OF_A_PANE {
        return Ok(Vec::new());
    }
    let looked = join_all(parts.iter().map(|part| bar_in(reader, pane, part, axis))).await;
    let mut bars = Vec::new();
    for bar in looked {
        // A part that went away or does not tell is no bar.
        bars.extend(absent_if_refused(bar)?.flatten());
    }
    Ok(bars)
}

async fn bar_in(
    reader: &Reader<'_>,
    pane: &ObjectRef,
    part: &ObjectRef,
    axis: Axis,
) -> Result<Option<Bar>, CallError> {
    let core = reader.core(part).await?;
    let in_filler = reader.toolkit == Toolkit::Qt && core.role == ROLE_FILLER;
    let (bar, core) = if in_filler {
        let Some(child) = reader.children(part).await?.into_iter().next() else {
            return Ok(None);
        };
        let core = reader.core(&child).await?;
        (child, core)
    } else {
        (part.clone(), core)
    };
    if core.role != ROLE_SCROLL_BAR {
        return Ok(None);
    }
    let with_value = if core.interfaces.value {
        bar.clone()
    } else {
        match reader.children(&bar).await?.into_iter().next() {
            Some(range) => range,
            None => return Ok(None),
        }
    };
    let kind = Some(reader.toolkit.coordinate_type());
    let Some(extents) = reader.extents(&bar, kind).await? else {
        return Ok(None);
    };
    if Axis::of_bar(&core, extents) != Some(axis) {
        return Ok(None);
    }
    let value = async |name| number(reader, &with_value, name).await;
    let (low, high) = (value("MinimumValue").await?, value("MaximumValue").await?);
    let (now, step) = (
        value("CurrentValue").await?,
        value("MinimumIncrement").await?,
    );
    let length = axis.length(extents);
    let line = if reader.toolkit == Toolkit::Qt && step == 1.0 {
        line_height(reader, pane).await?
    } else {
        None
    };
    // GTK 4 counts to the end of the content, all others to the last place where a page begins.
    let high = if reader.toolkit == Toolkit::Gtk4 {
        high - length
    } else {
        high
    };
    let page = page(length, line);
    Ok((length > 0.0 && high > low).then_some(Bar {
        object: with_value,
        low,
        high,
        now,
        page,
    }))
}

/// What a pane of this length shows, in the units of its bar: points, or lines where a line has a height.
fn page(length: f64, line: Option<f64>) -> f64 {
    match line {
        Some(line) if line > 0.0 => (length / line).floor().max(1.0),
        Some(_) | None => length,
    }
}

/// The height of a line. A plain text edit of Qt counts lines, not points.
async fn line_height(reader: &Reader<'_>, pane: &ObjectRef) -> Result<Option<f64>, CallError> {
    let body = (0, reader.toolkit.coordinate_type());
    let first = reader
        .call::<_, (i32, i32, i32, i32)>(pane, TEXT, "GetCharacterExtents", &body)
        .await;
    Ok(absent_if_refused(first)?.map(|(_, _, _, height)| height.into()))
}

async fn number(
    reader: &Reader<'_>,
    object: &ObjectRef,
    name: &'static str,
) -> Result<f64, CallError> {
    let value = reader.property(object, VALUE, name).await?;
    let value = f64::try_from(value).map_err(|_| CallError::Malformed)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(CallError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(now: f64) -> Bar {
        Bar {
            object: ObjectRef::new(":1.1", "/bar"),
            low: 0.0,
            high: 900.0,
            now,
            page: 150.0,
        }
    }

    #[test]
    fn a_bar_moves_by_pages_and_stops_at_its_ends() {
        let rows = [
            (0.0, Direction::Down, 1.0, 150.0),
            (0.0, Direction::Right, 0.5, 75.0),
            (0.0, Direction::Up, 1.0, 0.0),
            (800.0, Direction::Down, 1.0, 900.0),
            (800.0, Direction::Left, 2.0, 500.0),
            (10.0, Direction::Down, f64::MAX, 900.0),
        ];
        for (now, direction, pages, expected) in rows {
            assert_eq!(bar(now).target(direction, pages), expected, "{direction:?}");
        }
    }

    #[test]
    fn a_page_is_what_is_shown() {
        assert_eq!(page(157.0, None), 157.0);
        assert_eq!(page(50.0, Some(17.0)), 2.0);
        assert_eq!(page(10.0, Some(17.0)), 1.0);
        assert_eq!(page(50.0, Some(0.0)), 50.0);
    }
}
