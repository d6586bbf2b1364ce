//! Test: trees that no toolkit should offer. A small program of our own stands on a real accessibility bus and answers as
//! it pleases.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use maka_desktop::{Desktop, DesktopOptions};
use tokio::runtime::Runtime;
use zbus::message::Type;
use zbus::wire::{OwnedObjectPath, Variant};
use zbus::{Connection, MessageStream};

use super::bus::{Bus, CALL_TIMEOUT, CallError, ObjectRef};
use super::display::Area;
use super::frame::{Placement, Toolkit};
use super::locate::menu_bar;
use super::node::{AccessibleNode, WindowContext};
use super::reader::{MOST_KEPT, Reader};
use super::vocabulary::ROLE_MENU_BAR;
use super::walk::walk;
use crate::backend::error::BackendError;
use crate::backend::tree::{RawTree, WalkBudget, WalkScope};
use crate::deadline::Deadline;

/// Of a walk.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of one call where a node never answers, so that the test has to wait for it: the longest that an honest answer may
/// take on a machine that is busy with other tests.
const PATIENCE_WITH_SILENCE: Duration = Duration::from_secs(5);

/// The children of node `n`, or `None` when it never answers.
type Shape = fn(u32) -> Option<Vec<u32>>;

/// Answers the calls of `stream`, which has to be there before anybody knows the connection's name: a call that comes
/// before is dropped.
async fn serve(connection: Connection, mut stream: MessageStream, shape: Shape) {
    while let Some(Ok(message)) = stream.next().await {
        if message.message_type() != Type::MethodCall {
            continue;
        }
        let header = message.header();
        let path = header.path().map(ToString::to_string).unwrap_or_default();
        let Some(children) = path
            .rsplit('/')
            .next()
            .and_then(|name| shape(name.parse().ok()?))
        else {
            continue;
        };
        let member = header.member().map(ToString::to_string).unwrap_or_default();
        let own_name = connection.unique_name().unwrap().to_string();
        let sent = match member.as_str() {
            "GetRole" => {
                let number = path.rsplit('/').next().unwrap_or_default();
                let role = if number == "34" { ROLE_MENU_BAR } else { 20 };
                connection.reply(&header, &role).await
            }
            "GetState" if path.ends_with("/900001") => {
                let refused = "org.freedesktop.DBus.Error.UnknownMethod";
                connection.reply_error(&header, refused, &"no").await
            }
            "GetState" if path.ends_with("/900002") => connection.reply(&header, &"no state").await,
            "GetState" if path.ends_with("/900003") => {
                let gone = "org.freedesktop.DBus.Error.UnknownObject";
                connection.reply_error(&header, gone, &"no").await
            }
            "GetState" => {
                connection
                    .reply(&header, &vec![1_u32 << 25 | 1 << 24, 0])
                    .await
            }
            "GetInterfaces" => {
                connection
                    .reply(&header, &vec!["org.a11y.atspi.Accessible"])
                    .await
            }
            "Get" => {
                let (_, name): (String, String) = message.body().deserialize().unwrap();
                let long = path.starts_with("/n/800");
                let value = match name.as_str() {
                    // What it claims, which in one case is not what it then tells.
                    "ChildCount" if path.ends_with("/700000") => Variant::from(3),
                    "ChildCount" => Variant::from(i32::try_from(children.len()).unwrap()),
                    "Name" if long => Variant::from("x".repeat(MOST_KEPT / 64)),
                    _ => Variant::from("x"),
                };
                connection.reply(&header, &value).await
            }
            "GetChildAtIndex" => {
                let index: i32 = message.body().deserialize().unwrap();
                let child = children[usize::try_from(index).unwrap()];
                let path = OwnedObjectPath::try_from(format!("/n/{child}")).unwrap();
                connection.reply(&header, &(own_name.clone(), path)).await
            }
            "GetChildren" => {
                let path = |child| OwnedObjectPath::try_from(format!("/n/{child}")).unwrap();
                let children: Vec<_> = children
                    .into_iter()
                    .map(|child| (own_name.clone(), path(child)))
                    .collect();
                connection.reply(&header, &children).await
            }
            _ => {
                connection
                    .reply_error(&header, "org.freedesktop.DBus.Error.UnknownMethod", &"no")
                    .await
            }
        };
        sent.unwrap();
    }
}

/// A window of a program that answers with this shape.
fn root_of(name: &str) -> Arc<AccessibleNode> {
    Arc::new(AccessibleNode {
        object: ObjectRef::new(name, "/n/0"),
        context: Arc::new(WindowContext {
            window: 1,
            toolkit: Toolkit::Gtk3,
        }),
        parent: None,
        in_menu: false,
    })
}

/// Walks a tree of this shape, of which every node answers, from node 0.
fn walked(shape: Shape, budget: impl FnOnce() -> WalkBudget) -> RawTree {
    walked_within(PATIENCE, shape, budget).unwrap()
}

/// Walks a tree with this time limit for one call.
fn walked_within(
    patience: Duration,
    shape: Shape,
    budget: impl FnOnce() -> WalkBudget,
) -> Result<RawTree, BackendError> {
    read(patience, shape, budget, async |reader, root, budget| {
        let area = Area {
            x: 0,
            y: 0,
            width: 100,
            height: 100,
        };
        let placement = Placement::new(Toolkit::Gtk3, area, None, None);
        walk(reader, root, placement, &WalkScope::Everything, budget).await
    })
}

/// Reads from a program of this shape.
fn read<T>(
    patience: Duration,
    shape: Shape,
    budget: impl FnOnce() -> WalkBudget,
    question: impl AsyncFnOnce(&Reader<'_>, &Arc<AccessibleNode>, &WalkBudget) -> T,
) -> T {
    let desktop = Desktop::start(DesktopOptions {
        window_manager: None,
        ..DesktopOptions::default()
    })
    .unwrap();
    let runtime = Runtime::new().unwrap();
    let answer = runtime.block_on(async {
        let builder = zbus::connection::Builder::address(desktop.accessibility_bus());
        let server = builder.build().await.unwrap();
        let name = server.unique_name().unwrap().to_string();
        let calls = MessageStream::from(&server);
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(serve(server, calls, shape));
        let bus = Bus::connect(desktop.accessibility_bus()).await.unwrap();
        let root = root_of(&name);
        let budget = budget();
        let reader =
            Reader::new(&bus, Toolkit::Gtk3, budget.deadline.clone()).with_patience(patience);
        question(&reader, &root, &budget).await
    });
    runtime.shutdown_background();
    desktop.stop();
    answer
}

fn budget(max_elements: usize, max_depth: usize) -> WalkBudget {
    WalkBudget {
        max_elements,
        max_depth,
        deadline: Deadline::within(PATIENCE),
    }
}

/// F3: a tree 20,000 levels deep is cut at the allowed depth and says so.
#[test]
fn a_bottomless_tree_is_cut_by_depth() {
    let tree = walked(
        |node| {
            Some(if node < 20_000 {
                vec![node + 1]
            } else {
                vec![]
            })
        },
        || budget(1500, 64),
    );
    assert_eq!(
        (
            tree.nodes.len(),
            tree.truncated_depth,
            tree.truncated_elements
        ),
        (64, true, false)
    );
    assert!(
        tree.nodes
            .iter()
            .enumerate()
            .all(|(index, node)| node.depth == index)
    );
    assert_eq!(tree.nodes[63].ancestor_roles.len(), 8);
}

/// F3, the neighbour: however deep one may go, depth costs no stack.
#[test]
fn depth_costs_no_stack() {
    let tree = walked(|node| Some(vec![node + 1]), || budget(3000, usize::MAX));
    assert_eq!((tree.nodes.len(), tree.truncated_elements), (3000, true));
}

/// F3: a node that names its ancestor, itself or its sibling as its child is taken once.
#[test]
fn a_tree_that_contains_itself_ends() {
    let tree = walked(
        |node| {
            Some(match node {
                0 => vec![1, 2, 1],
                1 => vec![0, 1, 2],
                _ => vec![0],
            })
        },
        || budget(1500, 64),
    );
    assert_eq!((tree.nodes.len(), tree.truncated_elements), (3, true));
}

/// However many children a program claims, of whatever role, no more are remembered than there is room for.
#[test]
fn a_crowd_of_children_is_cut() {
    let rows: [(Shape, usize, usize); 3] = [
        // Read one by one, and not all of them.
        (
            |node| {
                Some(if node == 0 {
                    (1..5000).collect()
                } else {
                    vec![]
                })
            },
            1500,
            1500,
        ),
        (
            |node| {
                Some(if node == 0 {
                    (1..5000).collect()
                } else {
                    vec![]
                })
            },
            100_000,
            2001,
        ),
        // Each of a few has many.
        (
            |node| {
                Some(if node < 40 {
                    (node * 40 + 1..node * 40 + 41).collect()
                } else {
                    vec![]
                })
            },
            100,
            100,
        ),
    ];
    for (shape, most, expected) in rows {
        let tree = walked(shape, || budget(most, 64));
        assert_eq!(
            (tree.nodes.len(), tree.truncated_elements),
            (expected, true),
            "{most}"
        );
    }
    // A lie about the number is cut when it comes out.
    let shape: Shape = |node| {
        Some(match node {
            0 => vec![700_000],
            700_000 => (1..5000).collect(),
            _ => vec![],
        })
    };
    let tree = walked(shape, || budget(100_000, 64));
    assert_eq!((tree.nodes.len(), tree.truncated_elements), (2002, true));
}

/// A level that is not read any more is cut by depth, and not by the number of its nodes.
#[test]
fn a_crowd_below_the_last_level_is_cut_by_depth() {
    let tree = walked(
        |node| {
            Some(if node == 0 {
                (1..50).collect()
            } else {
                vec![1000 + node, 2000 + node]
            })
        },
        || budget(60, 2),
    );
    let cut = (tree.truncated_depth, tree.truncated_elements);
    assert_eq!((tree.nodes.len(), cut), (50, (true, false)));
}

/// A program that tells more than can be kept is not asked any further.
#[test]
fn endless_text_ends_the_walk() {
    let shape: Shape = |node| {
        Some(match node {
            0 => (800_000..800_200).collect(),
            _ => vec![],
        })
    };
    let tree = walked(shape, || budget(1500, 64));
    assert!(tree.truncated_elements);
    assert!(tree.nodes.len() < 200, "{}", tree.nodes.len());
}

/// F1, the neighbour: a child that refuses to tell what it is, or tells nonsense, is there and was not read; one that is gone
/// leaves nothing out.
#[test]
fn a_child_that_cannot_be_read_is_reported() {
    let rows: [(Shape, bool); 3] = [
        (
            |node| Some(if node == 0 { vec![900_001] } else { vec![] }),
            true,
        ),
        (
            |node| Some(if node == 0 { vec![900_002] } else { vec![] }),
            true,
        ),
        (
            |node| Some(if node == 0 { vec![900_003] } else { vec![] }),
            false,
        ),
    ];
    for (index, (shape, cut)) in rows.into_iter().enumerate() {
        let tree = walked(shape, || budget(1500, 64));
        assert_eq!(
            (tree.nodes.len(), tree.truncated_elements),
            (1, cut),
            "{index}"
        );
    }
}

/// F1: nodes that never answer cost their time limit and are reported as left out; the rest is there.
#[test]
fn silent_nodes_are_left_out_and_reported() {
    let tree = walked_within(
        PATIENCE_WITH_SILENCE,
        |node| match node {
            0 => Some(vec![1, 2, 3]),
            2 => None,
            _ => Some(vec![]),
        },
        || budget(1500, 64),
    )
    .unwrap();
    assert!(tree.truncated_elements);
    assert!(tree.nodes.len() < 4 && !tree.nodes.is_empty());
}

/// A menu bar is found beside controls that never answer, and one that may be below such a control is not called absent.
#[test]
fn a_menu_bar_is_looked_for_side_by_side() {
    let rows: [(Shape, _); 3] = [
        (
            |node| match node {
                0 => Some(vec![1, 34]),
                1 => None,
                _ => Some(vec![]),
            },
            Ok(Some("/n/34".into())),
        ),
        (
            |node| match node {
                0 => Some(vec![1, 2]),
                1 => None,
                _ => Some(vec![]),
            },
            Err(CallError::Timeout),
        ),
        (|_| Some(vec![]), Ok(None)),
    ];
    for (shape, expected) in rows {
        let found = read(
            PATIENCE_WITH_SILENCE,
            shape,
            || budget(1500, 64),
            async |reader, root, _| menu_bar(reader, &root.object).await,
        );
        assert_eq!(found.map(|bar| bar.map(|bar| bar.path)), expected);
    }
}

/// F1: a program that answers nothing at all is given up after its time limit, not after the walk's.
#[test]
fn a_silent_program_is_given_up() {
    assert_eq!(
        walked_within(CALL_TIMEOUT, |_| None, || budget(1500, 64)).unwrap_err(),
        BackendError::Timeout
    );
}
