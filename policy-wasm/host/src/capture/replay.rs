//! Reading a capture, and asking its questions again.

use std::fmt;

use crate::bindings::exports::maka::policy::hooks as wit;
use crate::codes::{DenyCode, HostCode};
use crate::digest::Digest;
use crate::engine::Engine;
use crate::module::Mode;
use crate::set::PolicySet;
use crate::trial::Verdict;

use super::CaptureError;
use super::rows::{DecisionRow, Ended, FactsRow, Line, ModuleRow, Row, SetRow, Together};
use super::seal::{self, CaptureSecret};

/// A capture that was read.
#[derive(Debug)]
pub struct Capture {
    /// When it began.
    pub began_unix_ms: u64,
    /// The sets that judged.
    pub sets: Vec<RecordedSet>,
    /// The decisions, in order.
    pub decisions: Vec<Recorded>,
    /// Why it ended.
    pub ended: Ended,
    /// Decisions that are not in it, because too many waited.
    pub dropped: u64,
}

/// A set that judged.
#[derive(Debug)]
pub struct RecordedSet {
    /// The number of its generation.
    pub generation: u64,
    /// Its name.
    pub name: String,
    /// Its modules, the floor first.
    pub modules: Vec<RecordedModule>,
}

/// A module of a set.
pub struct RecordedModule {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its component.
    pub digest: Digest,
    /// Whether its answers counted.
    pub mode: Mode,
    /// Its settings.
    pub settings: serde_json::Value,
}

impl fmt::Debug for RecordedModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedModule")
            .field("name", &self.name)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// A decision.
pub struct Recorded {
    row: DecisionRow,
    /// Its place in [`Capture::sets`].
    pub set: usize,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded")
            .field("id", &self.row.id)
            .finish_non_exhaustive()
    }
}

/// What a set says now.
#[derive(Debug)]
pub struct Replayed {
    /// The combined answer.
    pub together: Together,
    /// What each enforcing module said.
    pub said: Vec<Line>,
}

impl Recorded {
    /// Its id in the decision log.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.row.id
    }

    /// The word for the hook.
    #[must_use]
    pub const fn hook(&self) -> &'static str {
        match self.row.facts {
            FactsRow::Dispatch(_) => "admit-dispatch",
            FactsRow::Review { .. } => "review-result",
        }
    }

    /// The method of the call.
    #[must_use]
    pub fn method(&self) -> &str {
        match &self.row.facts {
            FactsRow::Dispatch(facts) => &facts.head.method,
            FactsRow::Review { head, .. } => &head.method,
        }
    }

    /// What was done in the end.
    #[must_use]
    pub fn effective(&self) -> &str {
        &self.row.effective
    }

    /// What the set said; nothing when no module was asked.
    #[must_use]
    pub fn together(&self) -> Option<&Together> {
        self.row.together.as_ref()
    }

    /// What each enforcing module said.
    #[must_use]
    pub fn said(&self) -> &[Line] {
        &self.row.said
    }

    /// Whether asking again can be compared: modules were asked, and it was not the machine that ended one of them.
    #[must_use]
    pub fn is_comparable(&self) -> bool {
        let of_machine = [HostCode::PolicyTimeout, HostCode::PolicyBusy];
        let by_machine = |line: &Line| {
            of_machine
                .iter()
                .any(|code| line.code.as_deref() == Some(DenyCode::Host(*code).as_str()))
        };
        self.row.together.is_some() && !self.row.said.iter().any(by_machine)
    }
}

impl Capture {
    /// Reads a capture.
    ///
    /// # Errors
    ///
    /// When it is none, is not for this key, is not whole, or was changed.
    pub fn read(file: &[u8], secret: &CaptureSecret) -> Result<Self, CaptureError> {
        let mut began_unix_ms = None;
        let mut sets: Vec<RecordedSet> = Vec::new();
        let mut decisions = Vec::new();
        for frame in seal::open(file, secret)? {
            let row: Row = serde_json::from_slice(&frame).map_err(|_| CaptureError::Row)?;
            match row {
                Row::Begin { unix_ms } => began_unix_ms = Some(unix_ms),
                Row::Set(row) => sets.push(set(row)?),
                Row::Decision(row) => {
                    let set = sets
                        .iter()
                        .position(|set| set.generation == row.generation && set.name == row.set)
                        .ok_or(CaptureError::Row)?;
                    decisions.push(Recorded { row: *row, set });
                }
                Row::End {
                    reason,
                    decisions: count,
                    dropped,
                } => {
                    if count != decisions.len() as u64 {
                        return Err(CaptureError::Row);
                    }
                    return Ok(Self {
                        began_unix_ms: began_unix_ms.ok_or(CaptureError::Row)?,
                        sets,
                        decisions,
                        ended: reason,
                        dropped,
                    });
                }
            }
        }
        Err(CaptureError::Row)
    }
}

fn set(row: SetRow) -> Result<RecordedSet, CaptureError> {
    let modules = row.modules.into_iter().map(|row| {
        let ModuleRow {
            name,
            version,
            digest,
            monitor,
            settings,
        } = row;
        Ok(RecordedModule {
            name,
            version,
            digest: digest.parse().map_err(|_| CaptureError::Row)?,
            mode: if monitor {
                Mode::Monitor
            } else {
                Mode::Enforce
            },
            settings: serde_json::from_str(&settings).map_err(|_| CaptureError::Row)?,
        })
    });
    Ok(RecordedSet {
        generation: row.generation,
        name: row.name,
        modules: modules.collect::<Result<_, _>>()?,
    })
}

/// Asks the enforcing modules of a set about a decision of a capture.
///
/// `was` is the set that judged it: rules that a module named on admission are told on review to the module of the same name.
#[must_use]
pub fn replay(
    engine: &Engine,
    set: &PolicySet,
    was: &RecordedSet,
    recorded: &Recorded,
) -> Replayed {
    let left = engine.limits().total_budget();
    let is_repeated = recorded.row.is_repeated;
    let mut said = Vec::new();
    let mut verdicts = Vec::new();
    // Nobody else uses the engine of a replay, so that there always is a place.
    let _place = engine.place();
    for module in set.modules().iter().filter(|it| it.mode() == Mode::Enforce) {
        let (verdict, rules, fuel) = match &recorded.row.facts {
            FactsRow::Dispatch(facts) => {
                let said = module.admit_dispatch(engine, facts, left);
                (Verdict::Admit(said.opinion), said.rules, said.fuel)
            }
            FactsRow::Review {
                head,
                admitted_rules,
                subject,
            } => {
                let place = was.modules.iter().position(|it| it.name == module.name());
                let admitted = place.and_then(|place| admitted_rules.get(place));
                let facts = wit::Review {
                    head: head.clone(),
                    admitted_rules: admitted.cloned().unwrap_or_default(),
                    subject: subject.clone(),
                };
                let said = module.review(engine, &facts, left);
                (Verdict::Review(said.opinion), said.rules, said.fuel)
            }
        };
        said.push(Line::of(module, verdict.clone(), rules, fuel, is_repeated));
        verdicts.push(verdict);
    }
    Replayed {
        together: Together::of(set, verdicts, is_repeated),
        said,
    }
}
