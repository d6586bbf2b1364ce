//! The words that executor and policies share, each a closed set on both sides: matched without a wildcard, so that a
//! new member on either side stops the build here.

use maka_cu_protocol::sets as cu;
use maka_policy_host::facts;
use maka_policy_host::log::LoggedOutcome;

/// Tiers.
pub(crate) const fn tier(tier: cu::Tier) -> facts::Tier {
    match tier {
        cu::Tier::Ax => facts::Tier::Ax,
        cu::Tier::SemanticBackground => facts::Tier::SemanticBackground,
        cu::Tier::CoordinateBackground => facts::Tier::CoordinateBackground,
    }
}

/// Paths.
pub(crate) const fn path(path: cu::Path) -> facts::Path {
    match path {
        cu::Path::AxAction => facts::Path::AxAction,
        cu::Path::AxAttribute => facts::Path::AxAttribute,
        cu::Path::AxSelect => facts::Path::AxSelect,
        cu::Path::CgEventPid => facts::Path::CgEventPid,
        cu::Path::SkylightPid => facts::Path::SkylightPid,
        cu::Path::CgEventGlobal => facts::Path::CgEventGlobal,
        cu::Path::None => facts::Path::None,
    }
}

/// Outcomes.
pub(crate) const fn outcome(outcome: cu::Outcome) -> facts::Outcome {
    match outcome {
        cu::Outcome::Ok => facts::Outcome::Ok,
        cu::Outcome::Refused => facts::Outcome::Refused,
        cu::Outcome::Failed => facts::Outcome::Failed,
        cu::Outcome::Unknown => facts::Outcome::Unknown,
    }
}

/// Effects.
pub(crate) const fn effect(effect: cu::Effect) -> facts::Effect {
    match effect {
        cu::Effect::Confirmed => facts::Effect::Confirmed,
        cu::Effect::Unverifiable => facts::Effect::Unverifiable,
        cu::Effect::SuspectedNoop => facts::Effect::SuspectedNoop,
    }
}

/// Outcomes, read back from the decision log.
pub(crate) const fn logged_outcome(outcome: LoggedOutcome) -> cu::Outcome {
    match outcome {
        LoggedOutcome::Ok => cu::Outcome::Ok,
        LoggedOutcome::Refused | LoggedOutcome::NotForwarded => cu::Outcome::Refused,
        LoggedOutcome::Failed => cu::Outcome::Failed,
        LoggedOutcome::Unknown => cu::Outcome::Unknown,
    }
}

/// Tiers, read back from the decision log.
pub(crate) const fn logged_tier(tier: facts::Tier) -> cu::Tier {
    match tier {
        facts::Tier::Ax => cu::Tier::Ax,
        facts::Tier::SemanticBackground => cu::Tier::SemanticBackground,
        facts::Tier::CoordinateBackground => cu::Tier::CoordinateBackground,
    }
}

/// Paths, read back from the decision log.
pub(crate) const fn logged_path(path: facts::Path) -> cu::Path {
    match path {
        facts::Path::AxAction => cu::Path::AxAction,
        facts::Path::AxAttribute => cu::Path::AxAttribute,
        facts::Path::AxSelect => cu::Path::AxSelect,
        facts::Path::CgEventPid => cu::Path::CgEventPid,
        facts::Path::SkylightPid => cu::Path::SkylightPid,
        facts::Path::CgEventGlobal => cu::Path::CgEventGlobal,
        facts::Path::None => cu::Path::None,
    }
}

/// Effects, read back from the decision log.
pub(crate) const fn logged_effect(effect: facts::Effect) -> cu::Effect {
    match effect {
        facts::Effect::Confirmed => cu::Effect::Confirmed,
        facts::Effect::Unverifiable => cu::Effect::Unverifiable,
        facts::Effect::SuspectedNoop => cu::Effect::SuspectedNoop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both sides spell every word alike, so that a log, a fact and a wire line name the same thing.
    #[test]
    fn both_sides_spell_alike() {
        for word in cu::Tier::ALL {
            assert_eq!(word.as_str(), tier(*word).as_str());
            assert_eq!(*word, logged_tier(tier(*word)));
        }
        for word in cu::Path::ALL {
            assert_eq!(word.as_str(), path(*word).as_str());
            assert_eq!(*word, logged_path(path(*word)));
        }
        for word in cu::Outcome::ALL {
            assert_eq!(word.as_str(), outcome(*word).as_str());
            assert_eq!(*word, logged_outcome(outcome(*word).into()));
        }
        for word in cu::Effect::ALL {
            assert_eq!(word.as_str(), effect(*word).as_str());
            assert_eq!(*word, logged_effect(effect(*word)));
        }
    }
}
