//! Which session a snapshot id was handed to, over the whole gateway: the difference between "never heard of it" and
//! "it belongs to someone else". The newest [`OWNERS_MAX`] ids are known; an older one reads as never seen, which is
//! refused just the same.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use maka_cu_protocol::ids::{SessionId, SnapshotId};

use super::remembered::Remembered;

/// Ids remembered over all sessions; the oldest is dropped for a new one.
pub(crate) const OWNERS_MAX: usize = 16_384;

/// See the module. Short critical sections, never across an await.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_id: HashMap<Remembered, (Arc<SessionId>, u64)>,
    oldest_first: VecDeque<Remembered>,
}

impl Owners {
    /// Notes that `session` got this id from this generation. The first owner of an id stays its owner.
    pub(crate) fn note(&self, id: &SnapshotId, session: &Arc<SessionId>, generation: u64) {
        let id = Remembered::new(id.as_str());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.by_id.contains_key(&id) {
            return;
        }
        if known.oldest_first.len() >= OWNERS_MAX
            && let Some(oldest) = known.oldest_first.pop_front()
        {
            known.by_id.remove(&oldest);
        }
        known.by_id.insert(id, (Arc::clone(session), generation));
        known.oldest_first.push_back(id);
    }

    /// The session that got this id, and the generation that made it.
    pub(crate) fn owner(&self, id: &SnapshotId) -> Option<(Arc<SessionId>, u64)> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .by_id
            .get(&Remembered::new(id.as_str()))
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_ids_are_known_and_keep_their_owner() {
        let owners = Owners::default();
        let session = |name: &str| Arc::new(SessionId::try_new(name).unwrap());
        let id = |number: usize| SnapshotId::try_new(format!("snap_{number}")).unwrap();
        for number in 0..=OWNERS_MAX {
            owners.note(&id(number), &session("a"), 1);
        }
        owners.note(&id(OWNERS_MAX), &session("b"), 2);
        assert_eq!(owners.owner(&id(0)), None);
        assert_eq!(owners.owner(&id(OWNERS_MAX)), Some((session("a"), 1)));
    }
}
