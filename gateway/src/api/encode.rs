//! From what a session answers to messages. Absent stays absent; nothing is upgraded, rounded or guessed.

pub(crate) mod approval;
pub(crate) mod events;
pub(crate) mod lists;
pub(crate) mod outcome;
pub(crate) mod policies;
pub(crate) mod scalar;
pub(crate) mod snapshot;
pub(crate) mod status;

#[cfg(test)]
mod tests;
