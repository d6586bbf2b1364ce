//! Which requests run side by side and which one after the other (spec §1.6).
//!
//! A lane runs at most one job; jobs of one lane run in the order in which they were read. A lane exists only while it has
//! work, so naming many windows leaves nothing behind. The number of waiting jobs is bounded by the server, which
//! refuses a request beyond [`MAX_PENDING`].

use std::collections::{HashMap, VecDeque};

use maka_cu_protocol::ids::WindowKey;

/// How many requests may be unanswered at one time. One more is answered `timeout` at once: nothing was done for it.
pub const MAX_PENDING: usize = 256;

/// A queue with its own order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaneKey {
    /// Sessions, permissions and lists.
    Control,
    /// Everything about one window.
    Target(WindowKey),
    /// Launches, screen captures, and what names no window yet.
    Misc,
}

/// The waiting jobs of every busy lane.
#[derive(Debug)]
pub struct Lanes<J> {
    /// What waits behind the running job of each busy lane.
    busy: HashMap<LaneKey, VecDeque<J>>,
    /// Running and waiting jobs of all lanes.
    jobs: usize,
}

impl<J> Default for Lanes<J> {
    fn default() -> Self {
        Self {
            busy: HashMap::new(),
            jobs: 0,
        }
    }
}

impl<J> Lanes<J> {
    /// How many jobs run or wait, those whose request was cancelled while they ran included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.jobs
    }

    /// Whether no job runs or waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.jobs == 0
    }

    /// Gives a job to a lane. `Some(job)` when it can start now; the lane then counts as busy until
    /// [`Lanes::finish`].
    #[must_use]
    pub fn submit(&mut self, lane: LaneKey, job: J) -> Option<J> {
        self.jobs += 1;
        match self.busy.get_mut(&lane) {
            Some(waiting) => {
                waiting.push_back(job);
                None
            }
            None => {
                self.busy.insert(lane, VecDeque::new());
                Some(job)
            }
        }
    }

    /// The running job of a lane ended; gives the next one to start, if any.
    #[must_use]
    pub fn finish(&mut self, lane: LaneKey) -> Option<J> {
        let next = self.busy.get_mut(&lane)?.pop_front();
        self.jobs -= 1;
        if next.is_none() {
            self.busy.remove(&lane);
        }
        next
    }

    /// Takes out every job that has not started.
    pub fn drain(&mut self) -> Vec<J> {
        let waiting: Vec<J> = self.busy.values_mut().flat_map(std::mem::take).collect();
        self.jobs -= waiting.len();
        waiting
    }

    /// Takes the waiting jobs that match out of one lane. A running one stays.
    pub fn withdraw(&mut self, lane: LaneKey, matches: impl Fn(&J) -> bool) {
        if let Some(waiting) = self.busy.get_mut(&lane) {
            let before = waiting.len();
            waiting.retain(|job| !matches(job));
            self.jobs -= before - waiting.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lane_is_fifo_and_lanes_are_independent() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.submit(LaneKey::Control, 1), Some(1));
        assert_eq!(lanes.submit(LaneKey::Control, 2), None);
        assert_eq!(lanes.submit(LaneKey::Control, 3), None);
        assert_eq!(lanes.submit(LaneKey::Misc, 4), Some(4));
        assert_eq!(lanes.finish(LaneKey::Control), Some(2));
        assert_eq!(lanes.finish(LaneKey::Misc), None);
        assert_eq!(lanes.finish(LaneKey::Control), Some(3));
        assert_eq!(lanes.finish(LaneKey::Control), None);
        assert!(
            lanes.busy.is_empty() && lanes.is_empty(),
            "an idle lane leaves nothing behind"
        );
    }

    #[test]
    fn draining_keeps_the_running_jobs_lane_busy() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.submit(LaneKey::Misc, 1), Some(1));
        assert_eq!(lanes.submit(LaneKey::Misc, 2), None);
        assert_eq!(lanes.submit(LaneKey::Misc, 3), None);
        lanes.withdraw(LaneKey::Misc, |job| *job == 3);
        assert_eq!(lanes.len(), 2);
        assert_eq!(lanes.drain(), [2]);
        assert_eq!(lanes.len(), 1);
        assert_eq!(lanes.finish(LaneKey::Misc), None);
        assert!(lanes.is_empty());
    }
}
