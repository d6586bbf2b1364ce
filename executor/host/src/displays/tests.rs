//! Spec 10.1 and 12.4 row 49: the rules, rule by rule, and what lies between them.

use super::*;

/// A display as `(id, x, y, width, height, scale)`.
type Row = (&'static str, f64, f64, f64, f64, f64);

/// A display of the answer as `(id, its place in the picture)`.
type Place = (&'static str, [f64; 4]);

const PRIMARY: &str = "1";

fn display((id, x, y, width, height, scale_factor): Row) -> Display {
    Display {
        id: DisplayId::try_new(id).unwrap(),
        bounds: ScreenRect::try_new(x, y, width, height).unwrap(),
        scale_factor,
    }
}

fn resolve(rows: &[Row], (width, height): (u32, u32)) -> Vec<DisplayInfo> {
    let displays: Vec<_> = rows.iter().copied().map(display).collect();
    let primary = DisplayId::try_new(PRIMARY).unwrap();
    resolve_display_snapshots(&displays, &primary, PixelSize { width, height })
}

#[track_caller]
fn check(name: &str, rows: &[Row], screenshot: (u32, u32), expected: &[Place]) {
    let answer = resolve(rows, screenshot);
    let seen: Vec<_> = answer
        .iter()
        .map(|info| {
            let place = info.source_bounds_px;
            (
                info.display_id.as_str(),
                [place.x(), place.y(), place.width(), place.height()],
            )
        })
        .collect();
    assert_eq!(seen, expected, "{name}");
    // Whatever the rule, an answer repeats what it was told about the display.
    for info in &answer {
        let told = rows
            .iter()
            .copied()
            .map(display)
            .find(|told| told.id == info.display_id)
            .unwrap();
        assert_eq!(
            (info.logical_bounds, info.scale_factor),
            (told.bounds, told.scale_factor),
            "{name}"
        );
    }
}

#[test]
fn one_display() {
    let at_1x: Row = ("1", 0.0, 0.0, 1440.0, 900.0, 1.0);
    let at_2x: Row = ("1", 0.0, 0.0, 1440.0, 900.0, 2.0);
    let whole = |width, height| ("1", [0.0, 0.0, width, height]);
    check("1x", &[at_1x], (1440, 900), &[whole(1440.0, 900.0)]);
    check("2x", &[at_2x], (2880, 1800), &[whole(2880.0, 1800.0)]);
    // Field report B1's neighbour: a scale that is claimed and not there leads nowhere.
    check("a claimed 2x that is 1x", &[at_2x], (1440, 900), &[]);
    check("a claimed 1x that is 2x", &[at_1x], (2880, 1800), &[]);
    check("one pixel too narrow", &[at_1x], (1439, 900), &[]);
    check("one pixel too high", &[at_1x], (1440, 901), &[]);
    check("turned by a quarter", &[at_1x], (900, 1440), &[]);
    check("no picture", &[at_1x], (0, 0), &[]);
    check(
        "away from the origin",
        &[("1", -1920.0, -200.0, 1920.0, 1080.0, 1.0)],
        (1920, 1080),
        &[whole(1920.0, 1080.0)],
    );
}

#[test]
fn without_exactly_one_primary_there_is_nothing() {
    let other: Row = ("2", 0.0, 0.0, 1440.0, 900.0, 1.0);
    let primary: Row = ("1", 0.0, 0.0, 1440.0, 900.0, 1.0);
    check("no displays", &[], (1440, 900), &[]);
    check("only another one", &[other], (1440, 900), &[]);
    check(
        "ids are text: `01` is not `1`",
        &[("01", 0.0, 0.0, 1440.0, 900.0, 1.0)],
        (1440, 900),
        &[],
    );
    check("twice", &[primary, primary], (1440, 900), &[]);
}

/// Field reports B2 and B6: displays left of and above the primary one are in the picture where they are.
#[test]
fn displays_of_one_scale_share_a_picture() {
    let primary: Row = ("1", 0.0, 0.0, 1920.0, 1080.0, 1.0);
    check(
        "beside",
        &[primary, ("2", 1920.0, 0.0, 1920.0, 1080.0, 1.0)],
        (3840, 1080),
        &[
            ("1", [0.0, 0.0, 1920.0, 1080.0]),
            ("2", [1920.0, 0.0, 1920.0, 1080.0]),
        ],
    );
    check(
        "left and above, in the order given",
        &[("2", -1920.0, -200.0, 1920.0, 1080.0, 1.0), primary],
        (3840, 1280),
        &[
            ("2", [0.0, 0.0, 1920.0, 1080.0]),
            ("1", [1920.0, 200.0, 1920.0, 1080.0]),
        ],
    );
    check(
        "of unequal size, with gaps",
        &[primary, ("2", 1920.0, -360.0, 2560.0, 1440.0, 1.0)],
        (4480, 1440),
        &[
            ("1", [0.0, 360.0, 1920.0, 1080.0]),
            ("2", [1920.0, 0.0, 2560.0, 1440.0]),
        ],
    );
    check(
        "at 2x, negative origin",
        &[
            ("1", 0.0, 0.0, 1440.0, 900.0, 2.0),
            ("2", -1000.0, -100.0, 1000.0, 800.0, 2.0),
        ],
        (4880, 2000),
        &[
            ("1", [2000.0, 200.0, 2880.0, 1800.0]),
            ("2", [0.0, 0.0, 2000.0, 1600.0]),
        ],
    );
    check(
        "mirrors cover each other",
        &[primary, ("2", 0.0, 0.0, 1920.0, 1080.0, 1.0)],
        (1920, 1080),
        &[
            ("1", [0.0, 0.0, 1920.0, 1080.0]),
            ("2", [0.0, 0.0, 1920.0, 1080.0]),
        ],
    );
}

#[test]
fn a_picture_of_the_primary_alone() {
    let displays: [Row; 2] = [
        ("2", -1920.0, 0.0, 1920.0, 1080.0, 1.0),
        ("1", 0.0, 0.0, 1440.0, 900.0, 1.0),
    ];
    check(
        "of several",
        &displays,
        (1440, 900),
        &[("1", [0.0, 0.0, 1440.0, 900.0])],
    );
    check(
        "of another one: its size is known, its place is not",
        &displays,
        (1920, 1080),
        &[],
    );
    check("of neither and not of both", &displays, (3360, 1081), &[]);
    check("of both, one pixel off", &displays, (3359, 1080), &[]);
    check(
        "of both",
        &displays,
        (3360, 1080),
        &[
            ("2", [0.0, 0.0, 1920.0, 1080.0]),
            ("1", [1920.0, 0.0, 1440.0, 900.0]),
        ],
    );
}

#[test]
fn mixed_scales_keep_the_primary_only() {
    let displays: [Row; 2] = [
        ("1", 0.0, 0.0, 1440.0, 900.0, 2.0),
        ("2", 1440.0, 0.0, 1920.0, 1080.0, 1.0),
    ];
    check(
        "the primary's picture",
        &displays,
        (2880, 1800),
        &[("1", [0.0, 0.0, 2880.0, 1800.0])],
    );
    check("the other's picture", &displays, (1920, 1080), &[]);
    check("a picture of both at 1x", &displays, (3360, 1080), &[]);
    check("a picture of both at 2x", &displays, (6720, 2160), &[]);
    check(
        "factors that nearly agree do not",
        &[
            ("1", 0.0, 0.0, 100.0, 100.0, 1.0),
            ("2", 100.0, 0.0, 100.0, 100.0, 1.000_000_1),
        ],
        (200, 100),
        &[],
    );
}

#[test]
fn pixels_are_rounded_to_the_nearest() {
    let row = |width: f64, scale: f64| -> [Row; 1] { [("1", 0.0, 0.0, width, 100.0, scale)] };
    let place = |width: f64, height: f64| ("1", [0.0, 0.0, width, height]);
    // One display meets the rule of the common box, whose places are not rounded.
    check("down", &row(100.4, 1.0), (100, 100), &[place(100.4, 100.0)]);
    check(
        "half up",
        &row(100.5, 1.0),
        (101, 100),
        &[place(100.5, 100.0)],
    );
    check("not down", &row(100.5, 1.0), (100, 100), &[]);
    check(
        "1.25",
        &row(1536.0, 1.25),
        (1920, 125),
        &[place(1920.0, 125.0)],
    );
    check(
        "the box is rounded, not its parts",
        &[
            ("1", 0.0, 0.0, 100.4, 100.0, 1.0),
            ("2", 100.4, 0.0, 100.4, 100.0, 1.0),
        ],
        (201, 100),
        &[
            ("1", [0.0, 0.0, 100.4, 100.0]),
            ("2", [100.4, 0.0, 100.4, 100.0]),
        ],
    );
    check(
        "the primary's own pixels are whole",
        &[
            ("1", 0.0, 0.0, 100.4, 100.0, 1.0),
            ("2", 100.4, 0.0, 100.4, 100.0, 2.0),
        ],
        (100, 100),
        &[place(100.0, 100.0)],
    );
}

#[test]
fn descriptions_that_contradict_themselves_prove_nothing() {
    let good: Row = ("1", 0.0, 0.0, 100.0, 100.0, 1.0);
    let alone: &[Place] = &[("1", [0.0, 0.0, 100.0, 100.0])];
    let rows: [(&str, Row); 5] = [
        ("no width", ("2", 0.0, 0.0, 0.0, 100.0, 1.0)),
        ("negative height", ("2", 0.0, 0.0, 100.0, -100.0, 1.0)),
        ("no scale", ("2", 0.0, 0.0, 100.0, 100.0, 0.0)),
        (
            "a scale that is no number",
            ("2", 0.0, 0.0, 100.0, 100.0, f64::NAN),
        ),
        (
            "a box too large for numbers",
            ("2", f64::MAX, 0.0, f64::MAX, 100.0, 1.0),
        ),
    ];
    for (name, other) in rows {
        check(name, &[good, other], (100, 100), alone);
        let (_, x, y, width, height, scale) = other;
        check(name, &[("1", x, y, width, height, scale)], (100, 100), &[]);
    }
    let twice: Row = ("2", 0.0, 0.0, 50.0, 50.0, 1.0);
    check("one name for two", &[good, twice, twice], (100, 100), alone);
    check(
        "all negative",
        &[("1", 0.0, 0.0, -10.0, -10.0, -10.0)],
        (100, 100),
        &[],
    );
}

/// Field reports B2 and B6: signed points are taken as they are; gaps and the place of put-away windows are on no display.
#[test]
fn points_are_on_a_display_or_on_none() {
    let displays = resolve(
        &[
            ("1", 0.0, 0.0, 1920.0, 1080.0, 1.0),
            ("2", 1920.0, -360.0, 2560.0, 1440.0, 1.0),
            ("3", -1920.0, -200.0, 1920.0, 1080.0, 1.0),
        ],
        (6400, 1440),
    );
    assert_eq!(displays.len(), 3);
    let rows = [
        (3000.0, -200.0, true),
        (-1200.0, -30.0, true),
        (0.0, 0.0, true),
        (500.0, -100.0, false),
        (4480.0, 0.0, false),
        (-32000.0, -32000.0, false),
    ];
    for (x, y, expected) in rows {
        let point = ScreenPoint::try_new(x, y).unwrap();
        assert_eq!(is_on_a_display(&displays, point), expected, "({x}, {y})");
        assert!(
            !is_on_a_display(&[], point),
            "an empty answer takes no point"
        );
    }
}
