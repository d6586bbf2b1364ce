//! `maka.gateway.v1.ComputerUse`: decode, ask the session, encode.

use std::sync::Arc;

use maka_cu_protocol::domain::DomainCode;
use maka_policy_host::prebuilt;
use maka_proto::v1::{self, computer_use_server::ComputerUse};
use prost::Message as _;
use tonic::{Request, Response, Status};

use super::{
    Edge, MAX_ANSWER_BYTES, answered,
    app_pages::AppPage,
    caller, deadline,
    decode::{self, scalar, violations::Violations},
    encode,
    image_chunks::ImageChunks,
    status,
};
use crate::{
    error::CallError,
    forward::Backend,
    session::answer::{DomainFault, ImageId},
};

#[derive(Debug)]
pub(super) struct ComputerUseService(pub(super) Arc<Edge>);

#[tonic::async_trait]
impl ComputerUse for ComputerUseService {
    async fn get_status(
        &self,
        _request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        Ok(Response::new(self.0.status()))
    }

    async fn check_permissions(
        &self,
        request: Request<v1::CheckPermissionsRequest>,
    ) -> Result<Response<v1::CheckPermissionsResponse>, Status> {
        let caller = caller(request.extensions())?;
        let context = deadline::context(request.extensions());
        let permissions = answered(
            "CheckPermissions",
            &caller,
            self.0.sessions.check_permissions(context),
        )
        .await?;
        Ok(Response::new(encode::lists::permissions(permissions)))
    }

    async fn begin_session(
        &self,
        request: Request<v1::BeginSessionRequest>,
    ) -> Result<Response<v1::BeginSessionResponse>, Status> {
        let caller = caller(request.extensions())?;
        let session = answered("BeginSession", &caller, async {
            self.0.sessions.begin(&caller)
        })
        .await?;
        Ok(Response::new(v1::BeginSessionResponse {
            session_id: session.session_id.as_str().to_owned(),
            idle_ttl_ms: session.idle_ttl_ms,
        }))
    }

    async fn end_session(
        &self,
        request: Request<v1::EndSessionRequest>,
    ) -> Result<Response<v1::EndSessionResponse>, Status> {
        let caller = caller(request.extensions())?;
        let mut violations = Violations::default();
        let session = scalar::session_id(&mut violations, &request.get_ref().session_id);
        let session = violations.finish(session)?;
        let ended = answered(
            "EndSession",
            &caller,
            self.0.sessions.end(&caller, &session),
        )
        .await?;
        Ok(Response::new(v1::EndSessionResponse {
            released_snapshots: ended.released_snapshots,
            released_images: ended.released_images,
        }))
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<v1::ListSessionsResponse>, Status> {
        let caller = caller(request.extensions())?;
        let sessions = self
            .0
            .sessions
            .list(&caller)
            .iter()
            .map(encode::lists::session)
            .collect();
        Ok(Response::new(v1::ListSessionsResponse { sessions }))
    }

    async fn list_apps(
        &self,
        request: Request<v1::ListAppsRequest>,
    ) -> Result<Response<v1::ListAppsResponse>, Status> {
        let caller = caller(request.extensions())?;
        let context = deadline::context(request.extensions());
        let mut violations = Violations::default();
        let v1::ListAppsRequest {
            session_id,
            page_size,
            page_token,
            with_windows,
        } = request.into_inner();
        let session = scalar::session_id(&mut violations, &session_id);
        let page = AppPage::decode(&mut violations, page_size, &page_token, with_windows);
        let (session, page) = violations.finish(session.zip(page))?;
        let apps = answered(
            "ListApps",
            &caller,
            self.0.sessions.list_apps(&caller, &session, context),
        )
        .await?;
        let (of_page, next_page_token) = page.of(apps.value);
        let response = v1::ListAppsResponse {
            apps: of_page.iter().map(encode::lists::app).collect(),
            decision_id: apps.decision_id,
            next_page_token,
        };
        fitting(response, apps.max_bytes, |response| response.decision_id)
    }

    async fn launch_app(
        &self,
        request: Request<v1::LaunchAppRequest>,
    ) -> Result<Response<v1::LaunchAppResponse>, Status> {
        let caller = caller(request.extensions())?;
        let context = deadline::context(request.extensions());
        let (session, call) = decode::launch::launch(request.into_inner())?;
        let launched = answered(
            "LaunchApp",
            &caller,
            self.0.sessions.launch(&caller, &session, call, context),
        )
        .await?;
        let limit = limit(launched.max_bytes);
        let mut result = encode::outcome::launch(launched);
        // What happened is told in any case; only what was started is left out.
        if result.encoded_len() > limit {
            result.launched = None;
            result.withheld = true;
        }
        Ok(Response::new(result))
    }

    async fn list_windows(
        &self,
        request: Request<v1::ListWindowsRequest>,
    ) -> Result<Response<v1::ListWindowsResponse>, Status> {
        let caller = caller(request.extensions())?;
        let context = deadline::context(request.extensions());
        let mut violations = Violations::default();
        let session = scalar::session_id(&mut violations, &request.get_ref().session_id);
        let session = violations.finish(session)?;
        let windows = answered(
            "ListWindows",
            &caller,
            self.0.sessions.list_windows(&caller, &session, context),
        )
        .await?;
        let response = v1::ListWindowsResponse {
            windows: windows.value.iter().map(encode::lists::window).collect(),
            decision_id: windows.decision_id,
        };
        fitting(response, windows.max_bytes, |response| response.decision_id)
    }

    async fn snapshot(
        &self,
        request: Request<v1::SnapshotRequest>,
    ) -> Result<Response<v1::SnapshotResponse>, Status> {
        let caller = caller(request.extensions())?;
        let context = deadline::context(request.extensions());
        let (session, call) = decode::observe::snapshot(request.into_inner())?;
        let frame = answered(
            "Snapshot",
            &caller,
            self.0.sessions.snapshot(&caller, &session, call, context),
        )
        .await?;
        let response = v1::SnapshotResponse {
            snapshot: Some(encode::snapshot::frame(frame.value)),
            decision_id: frame.decision_id,
        };
        fitting(response, frame.max_bytes, |response| response.decision_id)
    }

    async fn dispatch(
        &self,
        request: Request<v1::DispatchRequest>,
    ) -> Result<Response<v1::DispatchResult>, Status> {
        let caller = caller(request.extensions())?;
        let context = deadline::context(request.extensions());
        let (session, call) = decode::dispatch::dispatch(request.into_inner())?;
        let outcome = answered(
            "Dispatch",
            &caller,
            self.0.sessions.dispatch(&caller, &session, call, context),
        )
        .await?;
        let limit = limit(outcome.max_bytes);
        let mut result = encode::outcome::dispatch(outcome);
        // What happened is told in any case; only the frame after it is left out.
        if result.encoded_len() > limit {
            result.snapshot = None;
            result.observation_error = Some(encode::scalar::fault(&DomainFault::of(
                DomainCode::ResponseTooLarge,
            )));
        }
        Ok(Response::new(result))
    }

    async fn capture_screen(
        &self,
        request: Request<v1::CaptureScreenRequest>,
    ) -> Result<Response<v1::CaptureScreenResponse>, Status> {
        let caller = caller(request.extensions())?;
        let context = deadline::context(request.extensions());
        let (session, call) = decode::observe::capture(request.get_ref())?;
        let screen = answered(
            "CaptureScreen",
            &caller,
            self.0
                .sessions
                .capture_screen(&caller, &session, call, context),
        )
        .await?;
        let max_bytes = screen.max_bytes;
        let response = encode::snapshot::screen(screen.value, screen.decision_id);
        fitting(response, max_bytes, |response| response.decision_id)
    }

    type ReadImageStream = tokio_stream::Iter<ImageChunks>;

    async fn read_image(
        &self,
        request: Request<v1::ReadImageRequest>,
    ) -> Result<Response<Self::ReadImageStream>, Status> {
        let caller = caller(request.extensions())?;
        let context = deadline::context(request.extensions());
        let v1::ReadImageRequest {
            session_id,
            image_id,
        } = request.get_ref();
        let mut violations = Violations::default();
        let session = scalar::session_id(&mut violations, session_id);
        let image_id = scalar::image_id(&mut violations, image_id);
        let (session, image_id): (_, ImageId) = violations.finish(session.zip(image_id))?;
        let image = answered(
            "ReadImage",
            &caller,
            self.0
                .sessions
                .read_image(&caller, &session, &image_id, context),
        );
        Ok(Response::new(tokio_stream::iter(ImageChunks::new(
            image.await?,
        ))))
    }
}

/// How long an answer may be that a policy limits.
fn limit(max_bytes: Option<u64>) -> usize {
    max_bytes
        .and_then(|max| usize::try_from(max).ok())
        .map_or(MAX_ANSWER_BYTES, |max| max.min(MAX_ANSWER_BYTES))
}

/// The answer of a read, if every client can take it and the policy lets it be so long; the framework would refuse it in
/// words of its own.
fn fitting<T: prost::Message>(
    response: T,
    max_bytes: Option<u64>,
    decision_id: impl FnOnce(T) -> String,
) -> Result<Response<T>, Status> {
    if response.encoded_len() <= limit(max_bytes) {
        return Ok(Response::new(response));
    }
    Err(status::status_of(&CallError::Refused {
        fault: DomainFault::of(DomainCode::ResponseTooLarge),
        decision_id: Some(decision_id(response)),
    }))
}

impl Edge {
    fn status(&self) -> v1::GetStatusResponse {
        let active = self.judge.active();
        let floor = active
            .as_ref()
            .map_or_else(prebuilt::floor_digest, |active| active.floor);
        let (backend, reason) = match self.forward.backend() {
            Backend::MakaCu => (maka_cu_host::selection::BACKEND_ID, ""),
            Backend::None(reason) => (maka_cu_host::selection::NO_BACKEND_ID, reason.as_str()),
        };
        let executor = self.forward.status();
        let executor = executor.as_ref();
        v1::GetStatusResponse {
            gateway_version: env!("CARGO_PKG_VERSION").to_owned(),
            backend: Some(v1::Backend {
                id: backend.to_owned(),
                reason: reason.to_owned(),
            }),
            executor_state: executor
                .map_or(v1::ExecutorState::Unavailable, |status| {
                    encode::scalar::executor_state(status.state)
                })
                .into(),
            generation: executor.map_or(0, |status| status.generation),
            restart_attempts: executor.map_or(0, |status| status.restart_attempts),
            last_failure: executor
                .and_then(|status| status.last_failure.as_deref())
                .map(encode::status::failure),
            executor: executor
                .and_then(|status| encode::status::executor(status, self.settings.back_end)),
            policy_generation: active.as_ref().map_or(0, |active| active.generation),
            floor_digest: floor.to_string(),
            operator_keys: Some(v1::OperatorKeys {
                allow_global_pointer: self.settings.allow_global_pointer,
                synthetic_input: self.settings.synthetic_input,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt as _;

    use super::*;

    #[test]
    fn an_answer_that_no_client_takes_is_refused_in_our_own_words() {
        let response = |bytes: usize| v1::ListAppsResponse {
            apps: Vec::new(),
            decision_id: "d".repeat(bytes),
            next_page_token: String::new(),
        };
        assert!(fitting(response(1), None, |response| response.decision_id).is_ok());
        assert!(fitting(response(1), Some(1), |response| response.decision_id).is_err());
        let status = fitting(response(MAX_ANSWER_BYTES), None, |_| "d_1".to_owned()).unwrap_err();
        let details = status.get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!(info.reason, "response_too_large");
        assert_eq!(
            info.metadata.get("decision_id").map(String::as_str),
            Some("d_1")
        );
    }
}
