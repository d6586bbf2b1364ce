use proptest::prelude::*;

use super::*;

const TTL: Duration = Duration::from_secs(120);
const LIVE_MAX: usize = 3;

fn id(name: &str) -> SnapshotId {
    SnapshotId::try_new(name).unwrap()
}

fn by(number: u8) -> Fingerprint {
    Fingerprint::from_digest(maka_policy_host::digest::Digest::of(&[number]))
}

fn row(name: &str, window: u32) -> NewRow {
    let element = ElementRow {
        token: format!("el_{name}"),
        digest: "sha256:x".into(),
        role: "AXButton".into(),
        actions: vec!["press".into()],
        enabled: true,
        secure: false,
        frame: Some(maka_policy_host::facts::Rect {
            x: 10.0,
            y: 10.0,
            width: 20.0,
            height: 10.0,
        }),
    };
    NewRow {
        id: id(name),
        window: WindowKey {
            pid: 42,
            window_id: window,
        },
        target: Some(Target {
            pid: 42,
            process_start: 0,
            window_id: window,
            app_id: "org.example.Editor".into(),
            page: None,
        }),
        window_digest: Digest::of(b"window"),
        truncated: false,
        bounds: ScreenRect::try_new(100.0, 200.0, 400.0, 300.0).unwrap(),
        picture: Some(PictureSize {
            width_px: 400,
            height_px: 200,
            scale: 2.0,
        }),
        displays: Vec::new(),
        age: Duration::ZERO,
        elements: HashMap::from([(element.token.clone(), element)]),
    }
}

struct Bench {
    mirror: Mirror,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let mut mirror = Mirror::new("s".into(), Budget::default());
        mirror.begin_generation(1, LIVE_MAX, TTL);
        Self {
            mirror,
            now: Instant::now(),
        }
    }

    fn observe(&mut self, name: &str, window: u32) {
        self.mirror.insert(row(name, window), self.now);
    }

    fn state(&mut self, name: &str) -> Option<SnapshotState> {
        self.mirror
            .look(&id(name), self.now)
            .map(|look| look.row.state)
    }

    fn dispatch(&mut self, name: &str, settlement: Settlement) {
        self.mirror.reserve(&id(name), by(1));
        self.mirror.settle(&id(name), settlement, self.now);
    }
}

/// A1: a token dies with its snapshot, and a snapshot with its successor.
#[test]
fn a_newer_snapshot_of_a_window_supersedes_the_older() {
    let mut bench = Bench::new();
    bench.observe("one", 7);
    bench.observe("other", 8);
    bench.observe("two", 7);
    assert_eq!(bench.state("one"), Some(SnapshotState::Superseded));
    assert_eq!(bench.state("other"), Some(SnapshotState::Live));
    assert_eq!(bench.state("two"), Some(SnapshotState::Live));
    assert!(bench.mirror.element(&id("one"), "el_one").is_none());
    assert!(bench.mirror.element(&id("two"), "el_two").is_some());
    // A3: a token that the snapshot does not have is not there, whatever other snapshots have.
    assert!(bench.mirror.element(&id("two"), "el_one").is_none());
}

/// A8: frames die with the executor that took them, whatever they were before.
#[test]
fn a_new_generation_kills_every_row() {
    let mut bench = Bench::new();
    for (name, window) in [("live", 1), ("old", 2), ("new", 2), ("spent", 3)] {
        bench.observe(name, window);
    }
    bench.dispatch("spent", Settlement::Spent);
    bench.mirror.begin_generation(2, LIVE_MAX, TTL);
    for name in ["live", "old", "new", "spent"] {
        let look = bench.mirror.look(&id(name), bench.now).unwrap();
        assert_eq!(
            (look.row.state, look.row.generation),
            (SnapshotState::OtherGeneration, 1),
            "{name}"
        );
    }
    bench.observe("live", 1);
    assert_eq!(
        bench.state("live"),
        Some(SnapshotState::OtherGeneration),
        "an id is never used twice"
    );
}

#[test]
fn rows_die_by_age_and_by_number() {
    let mut bench = Bench::new();
    for (name, window) in [("one", 1), ("two", 2), ("three", 3), ("four", 4)] {
        bench.observe(name, window);
    }
    assert_eq!(bench.state("one"), Some(SnapshotState::Evicted));
    bench.now += TTL - Duration::from_millis(1);
    assert_eq!(bench.state("two"), Some(SnapshotState::Live));
    bench.now += Duration::from_millis(1);
    assert_eq!(bench.state("two"), Some(SnapshotState::Expired));
    assert_eq!(
        bench.state("one"),
        Some(SnapshotState::Evicted),
        "the first reason stays"
    );
    assert_eq!(bench.state("never"), None);
}

/// A sealed frame is spent at once and for good, while what it shows is held until it would have died.
#[test]
fn a_sealed_row_is_spent_and_still_held() {
    let mut bench = Bench::new();
    bench.observe("one", 1);
    bench.mirror.seal(&id("one"), by(1));
    assert_eq!(bench.state("one"), Some(SnapshotState::Spent));
    assert!(bench.mirror.holds(&id("one")) && bench.mirror.live().is_empty());
    bench.mirror.reserve(&id("one"), by(2));
    bench
        .mirror
        .settle(&id("one"), Settlement::LiveAgain, bench.now);
    assert_eq!(
        bench.state("one"),
        Some(SnapshotState::Spent),
        "nothing frees it"
    );
    bench.now += TTL;
    assert_eq!(
        bench.state("one"),
        Some(SnapshotState::Spent),
        "the first reason stays"
    );
    assert!(!bench.mirror.holds(&id("one")));
}

/// A frame that was old when it arrived does not live longer for that.
#[test]
fn age_at_arrival_counts() {
    let mut bench = Bench::new();
    bench.mirror.insert(
        NewRow {
            age: TTL - Duration::from_secs(1),
            ..row("late", 1)
        },
        bench.now,
    );
    assert_eq!(bench.state("late"), Some(SnapshotState::Live));
    bench.now += Duration::from_secs(1);
    assert_eq!(bench.state("late"), Some(SnapshotState::Expired));
}

/// design.md §5.1, every line of it.
#[test]
fn the_answer_settles_a_reserved_row() {
    let rows = [
        (Settlement::Spent, SnapshotState::Spent),
        (Settlement::LiveAgain, SnapshotState::Live),
        (
            Settlement::Dead(SnapshotState::Expired),
            SnapshotState::Expired,
        ),
        (
            Settlement::of_refusal(DomainCode::OutcomeUnknown),
            SnapshotState::Spent,
        ),
        (
            Settlement::of_refusal(DomainCode::Aborted),
            SnapshotState::Live,
        ),
        (
            Settlement::of_refusal(DomainCode::ElementChanged),
            SnapshotState::Live,
        ),
        (
            Settlement::of_refusal(DomainCode::DispatchRefused),
            SnapshotState::Live,
        ),
        (
            Settlement::of_refusal(DomainCode::ElementDigestMismatch),
            SnapshotState::Evicted,
        ),
        (
            Settlement::of_refusal(DomainCode::SnapshotUnknown),
            SnapshotState::Evicted,
        ),
        (
            Settlement::of_refusal(DomainCode::SnapshotEvicted),
            SnapshotState::Evicted,
        ),
        (
            Settlement::of_refusal(DomainCode::SnapshotExpired),
            SnapshotState::Expired,
        ),
        (
            Settlement::of_refusal(DomainCode::SnapshotSuperseded),
            SnapshotState::Superseded,
        ),
        (
            Settlement::of_refusal(DomainCode::SnapshotSpent),
            SnapshotState::Spent,
        ),
    ];
    for (settlement, expected) in rows {
        let mut bench = Bench::new();
        bench.observe("one", 1);
        bench.mirror.reserve(&id("one"), by(9));
        let look = bench.mirror.look(&id("one"), bench.now).unwrap();
        assert_eq!(
            (look.row.state, look.spent_by),
            (SnapshotState::Spent, Some(by(9))),
            "reserved reads as spent"
        );
        bench.mirror.settle(&id("one"), settlement, bench.now);
        let look = bench.mirror.look(&id("one"), bench.now).unwrap();
        assert_eq!(look.row.state, expected, "{settlement:?}");
        assert_eq!(
            look.spent_by.is_some(),
            expected == SnapshotState::Spent,
            "{settlement:?}"
        );
    }
}

/// A repeated action is told from another one by a fingerprint that covers what the frame showed: death forgets none
/// of it.
#[test]
fn a_dead_row_remembers_what_it_showed() {
    let mut bench = Bench::new();
    bench.observe("one", 1);
    let shown = |bench: &mut Bench| {
        let row = bench.mirror.look(&id("one"), bench.now).unwrap().row;
        (
            row.target,
            row.window_digest,
            row.truncated,
            row.epoch,
            row.owner_session,
        )
    };
    let before = shown(&mut bench);
    bench.dispatch("one", Settlement::Spent);
    assert_eq!(bench.state("one"), Some(SnapshotState::Spent));
    assert_eq!(shown(&mut bench), before);
}

/// A refusal revives only what did not die while its answer was awaited.
#[test]
fn what_died_while_reserved_stays_dead() {
    type Kill = fn(&mut Bench);
    let rows: [(&str, Kill, SnapshotState); 3] = [
        (
            "superseded",
            |bench| bench.observe("newer", 1),
            SnapshotState::Superseded,
        ),
        ("expired", |bench| bench.now += TTL, SnapshotState::Expired),
        (
            "restarted",
            |bench| bench.mirror.begin_generation(2, LIVE_MAX, TTL),
            SnapshotState::OtherGeneration,
        ),
    ];
    for (name, kill, expected) in rows {
        let mut bench = Bench::new();
        bench.observe("one", 1);
        bench.mirror.reserve(&id("one"), by(1));
        kill(&mut bench);
        bench.mirror.expire(bench.now);
        bench
            .mirror
            .settle(&id("one"), Settlement::LiveAgain, bench.now);
        assert_eq!(bench.state("one"), Some(expected), "{name}");
    }
}

#[test]
fn a_row_that_changes_has_another_version() {
    let mut bench = Bench::new();
    bench.observe("one", 1);
    let version = |bench: &mut Bench| bench.mirror.look(&id("one"), bench.now).unwrap().version;
    let fresh = version(&mut bench);
    assert_eq!(fresh, version(&mut bench), "looking changes nothing");
    bench.mirror.reserve(&id("one"), by(1));
    let reserved = version(&mut bench);
    bench
        .mirror
        .settle(&id("one"), Settlement::LiveAgain, bench.now);
    let revived = version(&mut bench);
    bench.observe("two", 1);
    let dead = version(&mut bench);
    assert!(fresh < reserved && reserved < revived && revived < dead);
}

#[test]
fn points_convert_with_the_quoted_frame() {
    let mut bench = Bench::new();
    bench.observe("one", 1);
    let center = bench.mirror.center_of(&id("one"), "el_one").unwrap();
    assert_eq!((center.x(), center.y()), (120.0, 215.0));
    let point = ImagePoint::try_new(20.0, 40.0).unwrap();
    let screen = bench.mirror.screen_point(&id("one"), point).unwrap();
    assert_eq!((screen.x(), screen.y()), (110.0, 220.0));
    // The picture is 400 by 200 pixels.
    for (x, y, is_pixel) in [
        (0.0, 0.0, true),
        (399.5, 199.5, true),
        (400.0, 0.0, false),
        (0.0, 200.0, false),
        (-0.5, 0.0, false),
        (0.0, -1.0, false),
    ] {
        let on_picture = ImagePoint::try_new(x, y)
            .is_ok_and(|point| bench.mirror.is_on_screen(&id("one"), point));
        assert_eq!(on_picture, is_pixel, "{x} {y}");
    }
    assert!(!bench.mirror.is_on_screen(&id("never"), point));
    assert_eq!(bench.mirror.center_of(&id("one"), "el_none"), None);
}

/// B2, B6: a pixel that no display shows is not one to act on: beside the screen, in a gap between displays, of a
/// minimised window. Displays may lie left of and above the first one.
#[test]
fn a_pixel_has_to_be_on_a_display() {
    let rect = |x, y, width, height| ScreenRect::try_new(x, y, width, height).unwrap();
    let displays = vec![
        rect(0.0, 0.0, 1920.0, 1080.0),
        rect(1920.0, -360.0, 2560.0, 1440.0),
        rect(-1920.0, -200.0, 1920.0, 1080.0),
    ];
    let rows = [
        // The window's origin, a pixel at scale 2, whether a display shows it.
        ((100.0, 200.0), (10.0, 10.0), true),
        ((3000.0, -200.0), (0.0, 0.0), true),
        ((-1200.0, -30.0), (0.0, 0.0), true),
        ((500.0, -100.0), (0.0, 0.0), false),
        ((500.0, -50.0), (0.0, 120.0), true),
        ((-32000.0, -32000.0), (1.0, 1.0), false),
        ((4470.0, 0.0), (30.0, 0.0), false),
    ];
    for (index, ((x, y), (px, py), expected)) in rows.into_iter().enumerate() {
        let mut bench = Bench::new();
        let new = NewRow {
            bounds: rect(x, y, 400.0, 300.0),
            displays: displays.clone(),
            ..row("one", 1)
        };
        assert!(bench.mirror.insert(new, bench.now));
        let point = ImagePoint::try_new(px, py).unwrap();
        assert_eq!(
            bench.mirror.is_on_screen(&id("one"), point),
            expected,
            "{index}"
        );
    }
}

/// The shared budget is given back with the rows, and a mirror over it keeps one row at most.
#[test]
fn element_rows_share_a_budget() {
    let budget = Budget::default();
    let mut mirror = Mirror::new("s".into(), budget.clone());
    mirror.begin_generation(1, LIVE_MAX, TTL);
    let now = Instant::now();
    assert!(mirror.insert(row("one", 1), now));
    assert!(!mirror.insert(row("one", 1), now), "an id is given once");
    assert!(budget.0.load(Ordering::Relaxed) > 0);
    budget.take(TOTAL_MAX_BYTES);
    mirror.insert(row("two", 2), now);
    assert_eq!(
        mirror.look(&id("one"), now).unwrap().row.state,
        SnapshotState::Evicted
    );
    assert_eq!(
        mirror.look(&id("two"), now).unwrap().row.state,
        SnapshotState::Live
    );
    budget.give_back(TOTAL_MAX_BYTES);
    drop(mirror);
    assert_eq!(budget.0.load(Ordering::Relaxed), 0);
}

#[derive(Clone, Debug)]
enum Command {
    Observe { name: u8, window: u32 },
    Reserve { name: u8 },
    Settle { name: u8, settlement: Settlement },
    Wait { seconds: u64 },
    Restart,
}

fn command() -> impl Strategy<Value = Command> {
    let settlement = prop_oneof![
        Just(Settlement::Spent),
        Just(Settlement::LiveAgain),
        Just(Settlement::Dead(SnapshotState::Expired)),
        Just(Settlement::Dead(SnapshotState::Evicted)),
    ];
    prop_oneof![
        4 => (0u8..12, 0u32..5).prop_map(|(name, window)| Command::Observe { name, window }),
        2 => (0u8..12).prop_map(|name| Command::Reserve { name }),
        2 => (0u8..12, settlement).prop_map(|(name, settlement)| Command::Settle { name, settlement }),
        1 => (0u64..90).prop_map(|seconds| Command::Wait { seconds }),
        1 => Just(Command::Restart),
    ]
}

proptest! {
    /// No order of commands breaks the mirror: bounds hold, an id is never forgotten, the dead stay dead, and what one
    /// window shows is live at most once.
    #[test]
    fn no_command_order_breaks_the_mirror(commands in prop::collection::vec(command(), 1..80)) {
        let mut bench = Bench::new();
        let mut generation = 1;
        let mut seen: HashMap<u8, SnapshotState> = HashMap::new();
        let name = |number: u8| format!("snap_{number}");
        for command in commands {
            match command {
                Command::Observe { name: number, window } => {
                    bench.observe(&name(number), window);
                    seen.entry(number).or_insert(SnapshotState::Live);
                }
                Command::Reserve { name: number } => bench.mirror.reserve(&id(&name(number)), by(number)),
                Command::Settle { name: number, settlement } => {
                    bench.mirror.settle(&id(&name(number)), settlement, bench.now);
                }
                Command::Wait { seconds } => bench.now += Duration::from_secs(seconds),
                Command::Restart => {
                    generation += 1;
                    bench.mirror.begin_generation(generation, LIVE_MAX, TTL);
                }
            }
            let reserved: Vec<_> = bench.mirror.rows.values().filter(|row| !row.is_live()).map(|row| row.new.id.clone()).collect();
            for (number, last) in &mut seen {
                let state = bench.state(&name(*number));
                prop_assert!(state.is_some(), "a known id reads as never seen");
                let state = state.unwrap();
                let was_final = !matches!(*last, SnapshotState::Live);
                if was_final {
                    prop_assert!(state == *last || state == SnapshotState::OtherGeneration, "{last:?} became {state:?}");
                }
                // A reserved row reads as spent and may still come back.
                *last = if reserved.contains(&id(&name(*number))) { SnapshotState::Live } else { state };
            }
            let live: Vec<_> = bench.mirror.rows.values().filter(|row| row.is_live()).collect();
            prop_assert!(live.len() <= LIVE_MAX);
            let mut windows: Vec<_> = live.iter().map(|row| row.new.window).collect();
            windows.sort_unstable();
            windows.dedup();
            prop_assert_eq!(windows.len(), live.len(), "two live rows of one window");
            prop_assert_eq!(bench.mirror.live().len(), live.len());
        }
    }
}
