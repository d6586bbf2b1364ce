//! `Cache.GetItems`: many accessibles in one answer.
//!
//! The list is incomplete in every toolkit that has it (GTK 3 lists only what somebody has asked for before) and absent
//! in Qt, so it only saves questions: what is not in it is asked for one by one. The application makes it when asked;
//! it is not a memory of ours and cannot be stale.

use std::collections::HashMap;
use std::time::Duration;

use super::accessibility::{WireRef, object_ref};
use super::bus::{Bus, ObjectRef};
use super::reader::Core;
use super::vocabulary::{Interfaces, States};

/// An application that needs longer is asked node by node.
pub(super) const PATIENCE: Duration = Duration::from_millis(300);

const CACHE: &str = "org.a11y.atspi.Cache";
const CACHE_PATH: &str = "/org/a11y/atspi/cache";

/// Longest list that is kept.
const MOST_ITEMS: usize = 50_000;

/// Object, application, parent, index in parent, child count, interfaces, name, role, description, states.
type Item = (
    WireRef,
    WireRef,
    WireRef,
    i32,
    i32,
    Vec<String>,
    String,
    u32,
    String,
    Vec<u32>,
);

/// One accessible of the list.
pub(super) struct CachedCore {
    pub(super) core: Core,
    /// Present when the list holds every child of it.
    pub(super) children: Option<Vec<ObjectRef>>,
}

/// The list of the application that owns `object`; empty when it has none or does not answer in time.
pub(super) async fn items(
    bus: &Bus,
    object: &ObjectRef,
    patience: Duration,
) -> HashMap<ObjectRef, CachedCore> {
    let cache = ObjectRef {
        bus_name: object.bus_name.clone(),
        path: CACHE_PATH.into(),
    };
    // Qt answers in an older form, which does not fit the type and so counts as no list; its list is empty anyway.
    match bus
        .call::<_, Vec<Item>>(&cache, CACHE, "GetItems", &(), patience)
        .await
    {
        Ok(items) if items.len() <= MOST_ITEMS => index(items),
        // More than any walk would use: reading what is needed costs less memory.
        Ok(_) | Err(_) => HashMap::new(),
    }
}

fn index(items: Vec<Item>) -> HashMap<ObjectRef, CachedCore> {
    let mut children: HashMap<ObjectRef, Vec<(i32, ObjectRef)>> = HashMap::new();
    let mut cores = Vec::with_capacity(items.len());
    for (object, _, parent, place, child_count, interfaces, name, role, description, states) in
        items
    {
        let Some(object) = object_ref(object) else {
            continue;
        };
        if let Some(parent) = object_ref(parent) {
            children
                .entry(parent)
                .or_default()
                .push((place, object.clone()));
        }
        let core = Core {
            role,
            states: States::from_words(&states),
            interfaces: Interfaces::from_names(interfaces.iter().map(String::as_str)),
            name,
            description,
        };
        cores.push((object, child_count, core));
    }
    cores
        .into_iter()
        .map(|(object, child_count, core)| {
            let children = complete(children.remove(&object).unwrap_or_default(), child_count);
            (object, CachedCore { core, children })
        })
        .collect()
}

/// The children in order, if they are exactly as many as announced and stand at the places 0, 1, 2 and so on.
fn complete(mut children: Vec<(i32, ObjectRef)>, count: i32) -> Option<Vec<ObjectRef>> {
    children.sort_by_key(|(place, _)| *place);
    let whole = usize::try_from(count).ok() == Some(children.len())
        && children
            .iter()
            .zip(0..)
            .all(|((place, _), expected)| *place == expected);
    whole.then(|| children.into_iter().map(|(_, object)| object).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_child_lists_are_used() {
        let object = |path: &str| ObjectRef::new(":1.1", path);
        let rows = [
            (vec![], 0, Some(vec![])),
            (vec![(1, "/b"), (0, "/a")], 2, Some(vec!["/a", "/b"])),
            (vec![(0, "/a")], 2, None),
            (vec![(0, "/a"), (2, "/c")], 2, None),
            (vec![(0, "/a"), (0, "/b")], 2, None),
            (vec![(-1, "/a")], 1, None),
            (vec![], -1, None),
            (vec![], 3, None),
        ];
        for (children, count, expected) in rows {
            let children = children
                .into_iter()
                .map(|(place, path)| (place, object(path)))
                .collect();
            let expected = expected.map(|paths| paths.into_iter().map(object).collect::<Vec<_>>());
            assert_eq!(complete(children, count), expected, "{count}");
        }
    }
}
