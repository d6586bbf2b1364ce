//! The gRPC edge: who calls, what the message says, and how the answer is told.
//!
//! Each method decodes its message completely, asks the session, and encodes what it answers; nothing is decided
//! here. Dropping a call drops its future, and that cancels what it started. The edge owns no state of its own.

mod app_pages;
pub mod authenticate;
mod computer_use;
mod deadline;
mod decode;
mod encode;
mod events;
mod image_chunks;
mod operator;
mod policies;
pub mod status;
mod unread;

use std::{sync::Arc, time::Instant};

use maka_policy_host::judge::Judge;
use maka_proto::v1::{
    computer_use_server::ComputerUseServer, events_server::EventsServer,
    operator_server::OperatorServer, policies_server::PoliciesServer,
};
use tonic::{Extensions, Status};

use self::{
    computer_use::ComputerUseService, events::EventsService, operator::OperatorService,
    policies::PoliciesService, status::Unauthenticated,
};
use crate::{
    captures::Captures,
    decisions::Decisions,
    error::CallError,
    events::Events,
    forward::Forward,
    plane::Plane,
    principal::{Principal, Role},
    session::{
        Sessions,
        caller::{Caller, PrincipalName, Reach},
    },
};

/// Largest request: the longest typed text, an action around it, and room for what protobuf adds.
const MAX_REQUEST_BYTES: usize = 256 * 1024;
/// Largest answer: below what clients accept by default. Larger pictures travel by `ReadImage`.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// What the services share.
#[derive(Debug)]
pub struct Edge {
    /// Where calls about the desktop go.
    pub sessions: Sessions,
    /// What watchers watch.
    pub events: Events,
    /// For the status of the executor only.
    pub forward: Forward,
    /// For `GetStatus` and `Policies` only.
    pub judge: Arc<Judge>,
    /// Captures of facts, for operators.
    pub captures: Captures,
    /// The decision log, for operators who follow it.
    pub decisions: Decisions,
    /// Which policies there are and which judge.
    pub plane: Plane,
    /// What the configuration says and `GetStatus` repeats.
    pub settings: EdgeSettings,
}

/// What the configuration says and `GetStatus` repeats.
#[derive(Clone, Copy, Debug)]
pub struct EdgeSettings {
    /// What drives the desktop.
    pub back_end: &'static str,
    /// Operator's key.
    pub allow_global_pointer: bool,
    /// Operator's key.
    pub synthetic_input: bool,
}

/// The service `maka.gateway.v1.ComputerUse`.
#[must_use]
pub fn computer_use(
    edge: Arc<Edge>,
) -> ComputerUseServer<impl maka_proto::v1::computer_use_server::ComputerUse> {
    ComputerUseServer::new(ComputerUseService(edge))
        .max_decoding_message_size(MAX_REQUEST_BYTES)
        .max_encoding_message_size(MAX_ANSWER_BYTES)
}

/// The service `maka.gateway.v1.Events`.
#[must_use]
pub fn events(edge: Arc<Edge>) -> EventsServer<impl maka_proto::v1::events_server::Events> {
    EventsServer::new(EventsService(edge))
        .max_decoding_message_size(MAX_REQUEST_BYTES)
        .max_encoding_message_size(MAX_ANSWER_BYTES)
}

/// The service `maka.gateway.v1.Operator`.
#[must_use]
pub fn operator(edge: Arc<Edge>) -> OperatorServer<impl maka_proto::v1::operator_server::Operator> {
    OperatorServer::new(OperatorService(edge))
        .max_decoding_message_size(MAX_REQUEST_BYTES)
        .max_encoding_message_size(MAX_ANSWER_BYTES)
}

/// The service `maka.gateway.v1.Policies`.
#[must_use]
pub fn policies(edge: Arc<Edge>) -> PoliciesServer<impl maka_proto::v1::policies_server::Policies> {
    PoliciesServer::new(PoliciesService(edge))
        .max_decoding_message_size(MAX_REQUEST_BYTES)
        .max_encoding_message_size(MAX_ANSWER_BYTES)
}

/// The caller as sessions know it.
fn caller(extensions: &Extensions) -> Result<Caller, Status> {
    // The layer puts the principal there; without it nobody gets here.
    let principal = extensions
        .get::<Principal>()
        .ok_or_else(|| status::unauthenticated(Unauthenticated::Missing))?;
    Ok(Caller {
        principal: PrincipalName::new(&principal.name),
        policy_set: Arc::clone(&principal.policy_set),
        grants: Arc::clone(&principal.grants),
        reach: match principal.role {
            Role::Agent | Role::Author => Reach::Own,
            Role::Viewer => Reach::SeeAll,
            Role::Operator => Reach::All,
        },
    })
}

/// Waits for the answer and writes the one event of the call.
async fn answered<T>(
    method: &'static str,
    caller: &Caller,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, Status> {
    let began = Instant::now();
    let answer = call.await;
    let (principal, ms) = (&caller.principal, began.elapsed().as_millis());
    match answer {
        Ok(answer) => {
            tracing::debug!(method, %principal, ms, "answered");
            Ok(answer)
        }
        Err(error) => {
            let decision_id = error.decision_id().unwrap_or_default();
            let domain = error.domain().as_str();
            tracing::debug!(method, %principal, ms, domain, reason = error.reason(), decision_id, "no result");
            Err(status::status_of(&error))
        }
    }
}
