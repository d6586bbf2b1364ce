//! Ids for windows that no window server numbers.
//!
//! A number is made of the accessible's address on the bus, so that every process of ours calls a window the same: what
//! `list-apps` prints, `snapshot --window` finds. It belongs to the window for as long as its application lists it, and as
//! long as the application lives no other one gets it: whoever quotes the id of a window that closed is told that it is
//! gone, whatever has opened since at the same address.
//!
//! An application that is busy does not answer. Its windows stay as it last told them, as an X server keeps the last title
//! and size of a program that hangs; they go when it leaves the bus or answers without them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use super::bus::ObjectRef;
use super::toplevels::TopLevel;

/// What one application answered.
pub(super) struct Told {
    pub(super) bus_name: Arc<str>,
    pub(super) pid: u32,
    /// `None` when it did not answer.
    pub(super) windows: Option<Vec<TopLevel>>,
}

/// A window with its number. Holds application text; has no `Debug`.
#[derive(Clone)]
pub(super) struct KnownWindow {
    pub(super) id: u32,
    pub(super) pid: u32,
    pub(super) top: TopLevel,
    /// Which one it was of all that were ever seen.
    order: u64,
    /// The latest listing that saw it.
    seen: u64,
}

/// The numbers that were given out.
#[derive(Default)]
pub(super) struct WindowIds(Mutex<Table>);

impl std::fmt::Debug for WindowIds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("WindowIds")
    }
}

#[derive(Default)]
struct Table {
    /// Listings that were begun.
    listings: u64,
    /// Windows that were ever seen.
    windows_seen: u64,
    windows: HashMap<ObjectRef, KnownWindow>,
    /// Every number that was given out, with the application that it was for. Goes with the application, whose address is
    /// never used again.
    given: HashMap<u32, Arc<str>>,
}

impl WindowIds {
    /// Begins a listing. Several may run at the same time; each says when it began.
    pub(super) fn begin(&self) -> u64 {
        let mut table = self.lock();
        table.listings += 1;
        table.listings
    }

    /// Takes what everybody on the bus told in this listing, and gives the windows there are, the latest one first.
    pub(super) fn settle(&self, listing: u64, told: Vec<Told>) -> Vec<KnownWindow> {
        let mut table = self.lock();
        let present: HashSet<Arc<str>> = told.iter().map(|one| Arc::clone(&one.bus_name)).collect();
        let silent: HashSet<Arc<str>> = told
            .iter()
            .filter(|one| one.windows.is_none())
            .map(|one| Arc::clone(&one.bus_name))
            .collect();
        for one in told {
            let own = |top: &TopLevel| top.object.bus_name == one.bus_name;
            // Who names a window of another program is not believed to be its owner.
            for top in one.windows.into_iter().flatten().filter(own) {
                table.note(listing, one.pid, top);
            }
        }
        // A window that a later listing has seen already is newer than this answer.
        table
            .windows
            .retain(|object, window| window.seen >= listing || silent.contains(&object.bus_name));
        let Table { windows, given, .. } = &mut *table;
        given.retain(|_, owner| {
            present.contains(owner) || windows.keys().any(|object| object.bus_name == *owner)
        });
        let mut windows: Vec<KnownWindow> = windows.values().cloned().collect();
        windows.sort_by_key(|window| std::cmp::Reverse(window.order));
        windows
    }

    /// The window with this number, as it was last told.
    pub(super) fn find(&self, id: u32, pid: u32) -> Option<KnownWindow> {
        let table = self.lock();
        let mut windows = table.windows.values();
        let found = windows.find(|window| window.id == id && window.pid == pid);
        found.cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // A panic elsewhere leaves whole entries behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn note(&mut self, listing: u64, pid: u32, top: TopLevel) {
        if let Some(known) = self.windows.get_mut(&top.object) {
            if known.seen <= listing {
                known.seen = listing;
                known.top = top;
            }
            return;
        }
        let object = top.object.clone();
        let mut id = number(&object);
        while self.given.contains_key(&id) {
            id = next(id);
        }
        self.given.insert(id, Arc::clone(&object.bus_name));
        self.windows_seen += 1;
        let known = KnownWindow {
            id,
            pid,
            top,
            order: self.windows_seen,
            seen: listing,
        };
        self.windows.insert(object, known);
    }
}

/// Short enough to be typed, and wide enough that two windows hardly ever meet.
const LARGEST: u32 = 0x00ff_ffff;

/// The number that a window gets unless it is taken.
fn number(object: &ObjectRef) -> u32 {
    let mut hash = Sha256::new();
    hash.update(object.bus_name.as_bytes());
    hash.update(object.path.as_bytes());
    let hash = hash.finalize();
    let number = u32::from_be_bytes([0, hash[0], hash[1], hash[2]]);
    number.max(1)
}

/// The number to try after this one. There are many more numbers than windows.
const fn next(id: u32) -> u32 {
    if id < LARGEST { id + 1 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::super::frame::Toolkit;
    use super::super::vocabulary::States;
    use super::*;

    fn top(bus_name: &str, path: &str, name: &str) -> TopLevel {
        TopLevel {
            object: ObjectRef::new(bus_name, path),
            toolkit: Toolkit::Gtk3,
            role: 23,
            states: States::default(),
            name: name.to_owned(),
            extents: None,
        }
    }

    fn told(bus_name: &str, pid: u32, windows: Option<&[(&str, &str)]>) -> Told {
        let tops = |windows: &[(&str, &str)]| {
            let tops = windows.iter().map(|(path, name)| top(bus_name, path, name));
            tops.collect()
        };
        Told {
            bus_name: bus_name.into(),
            pid,
            windows: windows.map(tops),
        }
    }

    fn list(ids: &WindowIds, told: Vec<Told>) -> Vec<(u32, String)> {
        let listing = ids.begin();
        let windows = ids.settle(listing, told).into_iter();
        windows.map(|window| (window.id, window.top.name)).collect()
    }

    fn names(windows: &[(u32, String)]) -> Vec<&str> {
        windows.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn a_number_stays_with_its_window_and_is_not_given_again() {
        let ids = WindowIds::default();
        let two: &[_] = &[("/w/1", "one"), ("/w/2", "two")];
        let first = list(&ids, vec![told(":1.5", 7, Some(two))]);
        assert_eq!(names(&first), ["two", "one"], "the latest first");
        let [(closed, _), (stays, _)] = first[..] else {
            panic!("{first:?}")
        };
        // Another title is no other window.
        let again = list(&ids, vec![told(":1.5", 7, Some(&[("/w/1", "other")]))]);
        assert_eq!(again, [(stays, "other".to_owned())]);
        // One that closed and whose path is in use again is a new one.
        let reopened = list(&ids, vec![told(":1.5", 7, Some(two))]);
        assert_eq!(reopened[1], (stays, "one".to_owned()));
        let new = reopened[0].0;
        assert_ne!(new, closed);
        assert!(ids.find(closed, 7).is_none() && ids.find(new, 7).is_some());
        assert!(ids.find(new, 8).is_none(), "of another process");
        // Another process of ours gives the same number.
        assert_eq!(
            list(&WindowIds::default(), vec![told(":1.5", 7, Some(two))]),
            first
        );
    }

    /// A program that hangs keeps its windows until it leaves the bus.
    #[test]
    fn silence_is_no_end() {
        let ids = WindowIds::default();
        let one: &[_] = &[("/w/1", "one")];
        let answered = vec![told(":1.5", 7, Some(one)), told(":1.6", 8, None)];
        let answered = list(&ids, answered);
        assert_eq!(names(&answered), ["one"]);
        assert_eq!(list(&ids, vec![told(":1.5", 7, None)]), answered);
        assert!(list(&ids, Vec::new()).is_empty(), "it has left");
        let table = ids.lock();
        assert!(
            table.windows.is_empty() && table.given.is_empty(),
            "nothing is kept"
        );
    }

    #[test]
    fn a_program_cannot_claim_the_windows_of_another() {
        let ids = WindowIds::default();
        let mut liar = told(":1.4", 6, Some(&[("/w/9", "own")]));
        let claimed = top(":1.5", "/w/1", "one");
        liar.windows.as_mut().unwrap().push(claimed);
        let honest = told(":1.5", 7, Some(&[("/w/1", "one")]));
        let listing = ids.begin();
        let windows = ids.settle(listing, vec![liar, honest]);
        let owners: Vec<_> = windows.iter().map(|it| (it.pid, &*it.top.name)).collect();
        assert_eq!(owners, [(7, "one"), (6, "own")]);
    }

    /// Of two listings at the same time, the one that began first and ends last takes nothing back.
    #[test]
    fn an_old_answer_changes_nothing() {
        let ids = WindowIds::default();
        let (old, new) = (ids.begin(), ids.begin());
        let both: &[_] = &[("/w/1", "new title"), ("/w/2", "two")];
        ids.settle(new, vec![told(":1.5", 7, Some(both))]);
        let late = ids.settle(old, vec![told(":1.5", 7, Some(&[("/w/1", "title")]))]);
        let late: Vec<_> = late.iter().map(|it| it.top.name.as_str()).collect();
        assert_eq!(late, ["two", "new title"]);
    }

    #[test]
    fn numbers_are_never_nothing_and_go_round() {
        assert_eq!((next(1), next(LARGEST)), (2, 1));
        let number = number(&ObjectRef::new(":1.5", "/w/1"));
        assert!((1..=LARGEST).contains(&number));
    }
}
