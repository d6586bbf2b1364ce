//! `maka.gateway.v1.Operator`.

use std::sync::Arc;

use maka_proto::v1;
use tonic::{Request, Response, Status};

use super::{Edge, answered, caller, deadline, encode};

#[derive(Debug)]
pub(super) struct OperatorService(pub(super) Arc<Edge>);

#[tonic::async_trait]
impl v1::operator_server::Operator for OperatorService {
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
}
