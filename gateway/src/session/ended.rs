//! What became of the keys of sessions that ended in this process.
//!
//! A session takes its frames and its order with it, but a caller whose call was cut off by the end of its session may
//! still ask what became of that call. The outcomes stay, without frames, until newer ones need the room; what was
//! dropped reads as a session that never was, and so never acts either. What an earlier process did is in
//! [`super::history`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use maka_cu_protocol::ids::{SessionId, ToolCallId};
use maka_policy_host::digest::Digest;

use super::answer::{DispatchOutcome, LaunchOutcome};
use super::caller::{Caller, PrincipalName};
use super::keys::{Keys, Known, Stored};
use crate::error::CallError;

/// Keys remembered over all ended sessions: at least those of one session that used all it may have.
const KEYS_MAX: usize = 2 * super::keys::KEYS_MAX;

/// See the module. Short critical sections, never across an await.
#[derive(Debug, Default)]
pub(crate) struct Ended(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    by_id: HashMap<SessionId, Left>,
    oldest_first: VecDeque<SessionId>,
    keys: usize,
}

#[derive(Debug)]
struct Left {
    owner: PrincipalName,
    keys: Keys,
}

impl Ended {
    /// Takes over the keys of a session that ended. The oldest sessions give way.
    pub(crate) fn keep(&self, session: SessionId, owner: PrincipalName, mut keys: Keys) {
        if keys.is_empty() {
            return;
        }
        keys.drop_frames();
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.keys += keys.len();
        sessions.oldest_first.push_back(session.clone());
        sessions.by_id.insert(session, Left { owner, keys });
        while sessions.keys > KEYS_MAX {
            let Some(oldest) = sessions.oldest_first.pop_front() else {
                break;
            };
            let dropped = sessions.by_id.remove(&oldest);
            sessions.keys -= dropped.map_or(0, |left| left.keys.len());
        }
    }

    /// The outcome of this dispatch of an ended session.
    ///
    /// # Errors
    /// [`CallError::SessionUnknown`] when nothing is known about session or key.
    pub(crate) fn dispatch(
        &self,
        caller: &Caller,
        session: &SessionId,
        key: &ToolCallId,
        request: Digest,
    ) -> Result<DispatchOutcome, CallError> {
        match self.find(caller, session, key, request)? {
            Stored::Dispatch(outcome) => Ok(DispatchOutcome {
                replayed: true,
                ..*outcome
            }),
            Stored::Launch(_) => Err(CallError::KeyConflict),
        }
    }

    /// The outcome of this launch, likewise.
    ///
    /// # Errors
    /// As [`Ended::dispatch`].
    pub(crate) fn launch(
        &self,
        caller: &Caller,
        session: &SessionId,
        key: &ToolCallId,
        request: Digest,
    ) -> Result<LaunchOutcome, CallError> {
        match self.find(caller, session, key, request)? {
            Stored::Launch(outcome) => Ok(LaunchOutcome {
                replayed: true,
                ..*outcome
            }),
            Stored::Dispatch(_) => Err(CallError::KeyConflict),
        }
    }

    fn find(
        &self,
        caller: &Caller,
        session: &SessionId,
        key: &ToolCallId,
        request: Digest,
    ) -> Result<Stored, CallError> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = sessions
            .by_id
            .get(session)
            .ok_or(CallError::SessionUnknown)?;
        if left.owner != caller.principal {
            return Err(CallError::SessionForeign);
        }
        match left.keys.look(key, request) {
            Known::Ended(stored) => Ok(stored),
            Known::Taken => Err(CallError::KeyConflict),
            Known::Free | Known::Full => Err(CallError::SessionUnknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::session::caller::Reach;
    use crate::session::outcome;

    fn caller(name: &str) -> Caller {
        Caller {
            principal: PrincipalName::new(name),
            policy_set: "default".into(),
            grants: Arc::new([]),
            reach: Reach::Own,
        }
    }

    fn key(number: usize) -> ToolCallId {
        ToolCallId::try_new(format!("call_{number}")).unwrap()
    }

    fn session(number: usize) -> SessionId {
        SessionId::try_new(format!("s_{number}")).unwrap()
    }

    fn full(request: Digest) -> Keys {
        let mut keys = Keys::default();
        for number in 0..super::super::keys::KEYS_MAX {
            let lost = outcome::launch_lost(String::new(), None);
            keys.keep(&key(number), request, Stored::Launch(Box::new(lost)));
        }
        keys
    }

    #[test]
    fn keys_outlive_their_session_until_newer_ones_need_the_room() {
        let (ended, request) = (Ended::default(), Digest::of(b"request"));
        let owner = PrincipalName::new("owner");
        let look = |who: &str, number: usize, request| {
            ended.launch(&caller(who), &session(number), &key(0), request)
        };
        for number in 0..2 {
            ended.keep(session(number), owner.clone(), full(request));
        }
        ended.keep(session(9), owner.clone(), Keys::default());
        assert!(look("owner", 0, request).is_ok() && look("owner", 1, request).is_ok());
        assert!(matches!(
            look("other", 0, request),
            Err(CallError::SessionForeign)
        ));
        assert!(matches!(
            look("owner", 0, Digest::of(b"other")),
            Err(CallError::KeyConflict)
        ));
        let as_dispatch = ended.dispatch(&caller("owner"), &session(0), &key(0), request);
        assert!(matches!(as_dispatch, Err(CallError::KeyConflict)));
        ended.keep(session(2), owner, full(request));
        assert!(matches!(
            look("owner", 0, request),
            Err(CallError::SessionUnknown)
        ));
        assert!(look("owner", 1, request).is_ok() && look("owner", 2, request).is_ok());
    }
}
