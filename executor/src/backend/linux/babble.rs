//! Test: a program on the accessibility bus that answers at random: sometimes what was asked for, sometimes another type,
//! an error, far too much, or nothing.
//!
//! Whatever it says, a walk ends, keeps to its budget and leaves a tree that holds together. `MAKA_SOAK_SEED` begins the long
//! form, which is a part of `cargo xtask soak fuzz`.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use maka_desktop::{Desktop, DesktopOptions};
use serde::Serialize;
use tokio::runtime::Runtime;
use zbus::message::{Header, Type};
use zbus::wire::{DynamicType, OwnedObjectPath, Variant};
use zbus::{Connection, MessageStream};

use super::bus::{Bus, ObjectRef};
use super::display::Area;
use super::frame::{Placement, Toolkit};
use super::node::{AccessibleNode, WindowContext};
use super::reader::Reader;
use super::walk::walk;
use crate::backend::tree::{RawTree, WalkBudget, WalkScope};
use crate::deadline::Deadline;

/// Programs, one after another, and how many in the long form.
const PROGRAMS: u64 = 24;
const PROGRAMS_OF_THE_LONG_FORM: u64 = 400;
/// For one call: most are answered at once, and those that never are must not cost the test minutes.
const PATIENCE: Duration = Duration::from_millis(100);
/// For one walk.
const WALK: Duration = Duration::from_millis(600);
const MAX_ELEMENTS: usize = 200;
const MAX_DEPTH: usize = 12;

/// Numbers that look random and are the same for the same seed (the increments of splitmix64).
#[derive(Clone, Debug)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        let count = u64::try_from(among.len()).unwrap();
        among[usize::try_from(self.below(count)).unwrap()]
    }

    /// A number of the kind that breaks arithmetic.
    fn number(&mut self) -> i32 {
        let small = i32::try_from(self.below(2_000)).unwrap() - 500;
        self.pick(&[i32::MIN, i32::MAX, -1, 0, 1, small, small, small])
    }

    fn text(&mut self) -> String {
        let word = self.pick(&[
            "",
            "click",
            "x\u{7}y",
            "\u{1b}[31m",
            "שלום",
            "👩‍👩‍👧",
            "press",
            "e\u{301}",
        ]);
        let times = self.pick(&[1, 1, 1, 2, 40, 5_000]);
        word.repeat(times)
    }

    fn object(&mut self, own: &str) -> (String, OwnedObjectPath) {
        let name = match self.below(20) {
            0 => ":9.999".to_owned(),
            1 => String::new(),
            _ => own.to_owned(),
        };
        let path = format!("/n/{}", self.below(300));
        (name, OwnedObjectPath::try_from(path).unwrap())
    }

    fn objects(&mut self, own: &str) -> Vec<(String, OwnedObjectPath)> {
        let count = self.pick(&[0, 0, 1, 2, 3, 7, 400]);
        (0..count).map(|_| self.object(own)).collect()
    }
}

async fn reply<T>(connection: &Connection, header: &Header<'_>, body: T)
where
    T: Serialize + DynamicType,
{
    // A caller that has given up is no matter.
    drop(connection.reply(header, &body).await);
}

async fn serve(connection: Connection, mut calls: MessageStream, mut chance: Chance) {
    let own = connection.unique_name().unwrap().to_string();
    while let Some(Ok(message)) = calls.next().await {
        if message.message_type() != Type::MethodCall {
            continue;
        }
        let header = message.header();
        let member = header.member().map(ToString::to_string).unwrap_or_default();
        let path = header.path().map(ToString::to_string).unwrap_or_default();
        // The window itself mostly makes sense, or there would be nothing to walk.
        let mood = if path == "/n/0" {
            99
        } else {
            chance.below(400)
        };
        match mood {
            // Nothing, ever.
            0 => continue,
            8..16 => {
                let error = chance.pick(&[
                    "org.freedesktop.DBus.Error.UnknownMethod",
                    "org.freedesktop.DBus.Error.UnknownObject",
                    "org.freedesktop.DBus.Error.Failed",
                    "org.freedesktop.DBus.Error.NoReply",
                ]);
                drop(connection.reply_error(&header, error, &"no").await);
                continue;
            }
            // Something else than what was asked for.
            2..8 => {
                match chance.below(5) {
                    0 => reply(&connection, &header, ()).await,
                    1 => reply(&connection, &header, chance.next()).await,
                    2 => reply(&connection, &header, chance.text()).await,
                    3 => reply(&connection, &header, vec![chance.text()]).await,
                    _ => reply(&connection, &header, (true, f64::NAN)).await,
                }
                continue;
            }
            _ => {}
        }
        match member.as_str() {
            "GetRole" => {
                let role = chance.pick(&[0_u32, 12, 23, 32, 33, 34, 40, 60, 61, 79, 129, u32::MAX]);
                reply(&connection, &header, role).await;
            }
            "GetState" => {
                let showing = 1 << 25 | 1 << 24;
                let states = match chance.below(12) {
                    0 if path != "/n/0" => {
                        let count = chance.pick(&[0, 1, 2, 9]);
                        (0..count).map(|_| chance.pick(&[u32::MAX, 0])).collect()
                    }
                    _ => vec![showing, 0],
                };
                reply(&connection, &header, states).await;
            }
            "GetInterfaces" => {
                let all = [
                    "Accessible",
                    "Action",
                    "Component",
                    "Text",
                    "Value",
                    "Selection",
                    "Table",
                ];
                let offered: Vec<String> = all
                    .into_iter()
                    .filter(|_| chance.below(3) > 0)
                    .map(|name| format!("org.a11y.atspi.{name}"))
                    .collect();
                reply(&connection, &header, offered).await;
            }
            "Get" => {
                let asked: Result<(String, String), _> = message.body().deserialize();
                let name = asked.map(|(_, name)| name).unwrap_or_default();
                let value = match (name.as_str(), chance.below(30)) {
                    (_, 0) => Variant::from(chance.pick(&[f64::NAN, f64::INFINITY, -0.0, 1e300])),
                    (_, 1) => Variant::from(chance.text()),
                    (_, 2) => Variant::from(chance.number()),
                    ("ChildCount", _) if path == "/n/0" => Variant::from(12_i32),
                    ("ChildCount" | "NActions" | "CharacterCount" | "CaretOffset", _) => {
                        Variant::from(chance.pick(&[0_i32, 1, 2, 3, 5]))
                    }
                    ("CurrentValue" | "MinimumValue" | "MaximumValue", _) => Variant::from(3.5),
                    _ => Variant::from(chance.text()),
                };
                reply(&connection, &header, value).await;
            }
            "GetChildAtIndex" => reply(&connection, &header, chance.object(&own)).await,
            "GetChildren" if path == "/n/0" => {
                let children: Vec<_> = (0..12).map(|_| chance.object(&own)).collect();
                reply(&connection, &header, children).await;
            }
            "GetChildren" => reply(&connection, &header, chance.objects(&own)).await,
            "GetExtents" => {
                let place = (
                    chance.number(),
                    chance.number(),
                    chance.number(),
                    chance.number(),
                );
                reply(&connection, &header, (place,)).await;
            }
            "GetText" | "GetName" => reply(&connection, &header, chance.text()).await,
            _ => reply(&connection, &header, chance.number()).await,
        }
    }
}

/// What must hold of a tree, whoever told it.
fn check(tree: &RawTree, seed: u64) {
    assert!((1..=MAX_ELEMENTS).contains(&tree.nodes.len()), "{seed}");
    for (index, node) in tree.nodes.iter().enumerate() {
        let depth = node.parent.map_or(0, |parent| {
            assert!(parent < index, "{seed}: a parent comes first");
            tree.nodes[parent].depth + 1
        });
        assert_eq!(node.depth, depth, "{seed}");
        assert_eq!(node.parent.is_none(), index == 0, "{seed}: one root");
        assert!(depth < MAX_DEPTH, "{seed}");
        assert!(!node.role.is_empty(), "{seed}");
        assert_eq!(node.ancestor_roles.len(), depth.min(8), "{seed}");
        assert!(
            !node.secure || node.value.is_none(),
            "{seed}: a password is not read"
        );
    }
}

#[test]
fn whatever_a_program_says_a_walk_holds_together() {
    let long = env::var("MAKA_SOAK_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let first: u64 = long.unwrap_or(0);
    let programs = if long.is_some() {
        PROGRAMS_OF_THE_LONG_FORM
    } else {
        PROGRAMS
    };
    let desktop = Desktop::start(DesktopOptions {
        window_manager: None,
        ..DesktopOptions::default()
    })
    .unwrap();
    let runtime = Runtime::new().unwrap();
    let (mut whole, mut nodes) = (0, 0);
    for seed in (0..programs).map(|number| first.wrapping_add(number)) {
        let toolkits = [
            Toolkit::Gtk3,
            Toolkit::Gtk4,
            Toolkit::Qt,
            Toolkit::Chromium,
            Toolkit::ScreenBased,
        ];
        let toolkit = Chance(seed).pick(&toolkits);
        let walked = runtime.block_on(async {
            let builder = zbus::connection::Builder::address(desktop.accessibility_bus());
            let server = builder.build().await.unwrap();
            let name = server.unique_name().unwrap().to_string();
            let calls = MessageStream::from(&server);
            let mut tasks = tokio::task::JoinSet::new();
            tasks.spawn(serve(server, calls, Chance(seed)));
            let bus = Bus::connect(desktop.accessibility_bus()).await.unwrap();
            let root = Arc::new(AccessibleNode {
                object: ObjectRef::new(&name, "/n/0"),
                context: Arc::new(WindowContext { window: 1, toolkit }),
                parent: None,
                in_menu: false,
            });
            let area = Area {
                x: 0,
                y: 0,
                width: 100,
                height: 100,
            };
            let placement = Placement::new(toolkit, area, None, None);
            let budget = WalkBudget {
                max_elements: MAX_ELEMENTS,
                max_depth: MAX_DEPTH,
                deadline: Deadline::within(WALK),
            };
            let reader =
                Reader::new(&bus, toolkit, budget.deadline.clone()).with_patience(PATIENCE);
            walk(&reader, &root, placement, &WalkScope::Everything, &budget).await
        });
        // A root that does not answer is a window that is gone, or a time-out.
        if let Ok(tree) = walked {
            check(&tree, seed);
            whole += 1;
            nodes += tree.nodes.len();
        }
    }
    runtime.shutdown_background();
    desktop.stop();
    // A walk that gives up at the first answer would pass everything above.
    assert!(
        whole > programs / 4 && nodes > 500,
        "{whole} of {programs} programs were read, {nodes} nodes"
    );
}
