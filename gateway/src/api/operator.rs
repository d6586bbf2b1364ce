//! `maka.gateway.v1.Operator`.

use std::{pin::Pin, sync::Arc};

use futures_util::{Stream, StreamExt as _};
use maka_proto::v1;
use tonic::{Request, Response, Status};

use super::{
    Edge, answered, caller, deadline,
    decode::{scalar, violations::Violations},
    encode,
    status::status_of,
};
use crate::session::host_event::HostEvent;

#[derive(Debug)]
pub(super) struct OperatorService(pub(super) Arc<Edge>);

#[tonic::async_trait]
impl v1::operator_server::Operator for OperatorService {
    type WatchDecisionsStream =
        Pin<Box<dyn Stream<Item = Result<v1::DecisionLogRecord, Status>> + Send>>;

    async fn restart_executor(
        &self,
        request: Request<v1::RestartExecutorRequest>,
    ) -> Result<Response<v1::RestartExecutorResponse>, Status> {
        let caller = caller(request.extensions())?;
        let context = deadline::context(request.extensions());
        tracing::info!(principal = %caller.principal, "an operator asks for a new executor");
        let restarted = answered(
            "RestartExecutor",
            &caller,
            self.0.sessions.restart_executor(context),
        )
        .await?;
        let file = self.0.forward.status().and_then(|status| status.pin);
        let executor =
            encode::status::introduced(&restarted, file.as_ref(), self.0.settings.back_end);
        Ok(Response::new(v1::RestartExecutorResponse {
            generation: restarted.generation,
            executor: Some(executor),
        }))
    }

    async fn report_host_event(
        &self,
        request: Request<v1::ReportHostEventRequest>,
    ) -> Result<Response<v1::ReportHostEventResponse>, Status> {
        let caller = caller(request.extensions())?;
        let v1::ReportHostEventRequest { event, session_id } = request.into_inner();
        let mut violations = Violations::default();
        let event = host_event(&mut violations, event);
        let session = match session_id {
            None => Some(None),
            Some(text) => scalar::session_id(&mut violations, &text).map(Some),
        };
        let (event, session) = violations.finish(event.zip(session))?;
        tracing::info!(principal = %caller.principal, event = event.as_str(), "an operator reports");
        let report = async { self.0.sessions.report(event, session.as_ref()) };
        let sessions = answered("ReportHostEvent", &caller, report).await?;
        Ok(Response::new(v1::ReportHostEventResponse {
            sessions: u32::try_from(sessions).unwrap_or(u32::MAX),
        }))
    }

    async fn watch_decisions(
        &self,
        request: Request<v1::WatchDecisionsRequest>,
    ) -> Result<Response<Self::WatchDecisionsStream>, Status> {
        let caller = caller(request.extensions())?;
        let context = deadline::context(request.extensions());
        let v1::WatchDecisionsRequest { from, until_now } = request.into_inner();
        tracing::info!(principal = %caller.principal, "an operator follows the decision log");
        let records = answered("WatchDecisions", &caller, async {
            self.0.decisions.read(from, until_now, context.deadline)
        })
        .await?;
        let records = records.map(|record| match record {
            Ok(record) => Ok(v1::DecisionLogRecord {
                sequence: record.sequence,
                json: record.line,
                missing: record.missing,
            }),
            Err(error) => Err(status_of(&error)),
        });
        Ok(Response::new(Box::pin(records)))
    }
}

fn host_event(violations: &mut Violations, number: i32) -> Option<HostEvent> {
    match v1::HostEvent::try_from(number) {
        Ok(v1::HostEvent::ScreenLocked) => Some(HostEvent::ScreenLocked),
        Ok(v1::HostEvent::ScreenUnlocked) => Some(HostEvent::ScreenUnlocked),
        Ok(v1::HostEvent::UserInputBegan) => Some(HostEvent::UserInputBegan),
        Ok(v1::HostEvent::UserInputEnded) => Some(HostEvent::UserInputEnded),
        Ok(v1::HostEvent::UserStopped) => Some(HostEvent::UserStopped),
        Ok(v1::HostEvent::UrlBlocked) => Some(HostEvent::UrlBlocked),
        Ok(v1::HostEvent::Unspecified) => violations.refuse("event", scalar::REQUIRED),
        Err(_) => violations.refuse("event", scalar::UNKNOWN_MEMBER),
    }
}
