//! `maka.gateway.v1.Operator`.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt as _};
use maka_policy_host::capture::Ended;
use maka_proto::v1;
use tonic::{Request, Response, Status};

use super::{
    Edge, answered, caller, deadline,
    decode::{scalar, violations::Violations},
    encode,
    status::status_of,
};
use crate::{
    approval::Resolution,
    captures::{self, Piece, Summary},
    session::host_event::HostEvent,
};

#[derive(Debug)]
pub(super) struct OperatorService(pub(super) Arc<Edge>);

#[tonic::async_trait]
impl v1::operator_server::Operator for OperatorService {
    type WatchDecisionsStream =
        Pin<Box<dyn Stream<Item = Result<v1::DecisionLogRecord, Status>> + Send>>;

    type CaptureDecisionsStream =
        Pin<Box<dyn Stream<Item = Result<v1::CaptureDecisionsResponse, Status>> + Send>>;

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

    async fn capture_decisions(
        &self,
        request: Request<v1::CaptureDecisionsRequest>,
    ) -> Result<Response<Self::CaptureDecisionsStream>, Status> {
        let caller = caller(request.extensions())?;
        let duration = Duration::from_secs(request.get_ref().seconds.into());
        let mut violations = Violations::default();
        let duration = if duration.is_zero() || duration > captures::MAX_DURATION {
            violations.refuse("seconds", "must be 1 to 3600")
        } else {
            Some(duration)
        };
        let duration = violations.finish(duration)?;
        let begun = async {
            let principal = caller.principal.to_string();
            self.0.captures.begin(&principal, duration)
        };
        let pieces = answered("CaptureDecisions", &caller, begun).await?;
        let pieces = pieces.map(|piece| match piece {
            Ok(Piece { bytes, summary }) => Ok(v1::CaptureDecisionsResponse {
                piece: bytes,
                summary: summary.map(summarised),
            }),
            Err(error) => Err(status_of(&error)),
        });
        Ok(Response::new(Box::pin(pieces)))
    }

    async fn list_approvals(
        &self,
        request: Request<v1::ListApprovalsRequest>,
    ) -> Result<Response<v1::ListApprovalsResponse>, Status> {
        let mut violations = Violations::default();
        let session = match request.into_inner().session_id {
            None => Some(None),
            Some(text) => scalar::session_id(&mut violations, &text).map(Some),
        };
        let session = violations.finish(session)?;
        let (approvals, counts) = self.0.sessions.approvals().list();
        let of_session = approvals.iter().filter(|approval| {
            session
                .as_ref()
                .is_none_or(|session| approval.wanted.session == *session)
        });
        Ok(Response::new(v1::ListApprovalsResponse {
            approvals: of_session.map(encode::approval::approval).collect(),
            counts: Some(encode::approval::counts(counts)),
        }))
    }

    async fn resolve_approval(
        &self,
        request: Request<v1::ResolveApprovalRequest>,
    ) -> Result<Response<v1::ResolveApprovalResponse>, Status> {
        let caller = caller(request.extensions())?;
        let v1::ResolveApprovalRequest {
            approval_id,
            resolution,
        } = request.into_inner();
        let mut violations = Violations::default();
        let id = scalar::approval_id(&mut violations, &approval_id);
        let resolution = self::resolution(&mut violations, resolution);
        let (id, resolution) = violations.finish(id.zip(resolution))?;
        let resolve = async {
            let approvals = self.0.sessions.approvals();
            approvals.resolve(&caller, &id, resolution)
        };
        let approval = answered("ResolveApproval", &caller, resolve).await?;
        tracing::info!(principal = %caller.principal, approval = id.as_str(), ?resolution, "decided");
        Ok(Response::new(v1::ResolveApprovalResponse {
            approval: Some(encode::approval::approval(&approval)),
        }))
    }

    async fn clear_quarantine(
        &self,
        request: Request<v1::ClearQuarantineRequest>,
    ) -> Result<Response<v1::ClearQuarantineResponse>, Status> {
        let caller = caller(request.extensions())?;
        let mut violations = Violations::default();
        let session = scalar::session_id(&mut violations, &request.get_ref().session_id);
        let session = violations.finish(session)?;
        let clear = async { self.0.sessions.clear_quarantine(&caller, &session) };
        let was_quarantined = answered("ClearQuarantine", &caller, clear).await?;
        Ok(Response::new(v1::ClearQuarantineResponse {
            was_quarantined,
        }))
    }
}

fn summarised(summary: Summary) -> v1::CaptureSummary {
    let end = match summary.ended {
        Ended::Time => v1::CaptureEnd::Time,
        Ended::Full => v1::CaptureEnd::Full,
        Ended::Shutdown => v1::CaptureEnd::Shutdown,
        // Nobody is there to be told.
        Ended::Abandoned => v1::CaptureEnd::Unspecified,
    };
    v1::CaptureSummary {
        end: end.into(),
        decisions: summary.decisions,
        dropped: summary.dropped,
    }
}

fn resolution(violations: &mut Violations, number: i32) -> Option<Resolution> {
    match v1::ApprovalResolution::try_from(number) {
        Ok(v1::ApprovalResolution::Approve) => Some(Resolution::Approve),
        Ok(v1::ApprovalResolution::Reject) => Some(Resolution::Reject),
        Ok(v1::ApprovalResolution::Unspecified) => {
            violations.refuse("resolution", scalar::REQUIRED)
        }
        Err(_) => violations.refuse("resolution", scalar::UNKNOWN_MEMBER),
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
