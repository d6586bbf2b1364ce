//! `maka.gateway.v1.Policies`.

use std::sync::Arc;

use maka_policy_host::{judge::ModuleInfo, module::Mode};
use maka_proto::v1::{self, policies_server::Policies};
use tonic::{Request, Response, Status};

use super::Edge;

#[derive(Debug)]
pub(super) struct PoliciesService(pub(super) Arc<Edge>);

#[tonic::async_trait]
impl Policies for PoliciesService {
    async fn get_generation(
        &self,
        _request: Request<v1::GetGenerationRequest>,
    ) -> Result<Response<v1::GetGenerationResponse>, Status> {
        let position = self.0.judge.log().position();
        let log_head = v1::DecisionLogHead {
            count: position.count,
            head_hash: position
                .head
                .map(|head| head.to_string())
                .unwrap_or_default(),
        };
        let active = self.0.judge.active();
        // There is one set; a later issue gives principals sets of their own.
        let set = active.as_ref().and_then(|active| active.sets.first());
        Ok(Response::new(v1::GetGenerationResponse {
            generation: active.as_ref().map_or(0, |active| active.generation),
            set_digest: set.map(|set| set.digest.to_string()).unwrap_or_default(),
            modules: set
                .map(|set| set.modules.iter().map(module).collect())
                .unwrap_or_default(),
            log_head: Some(log_head),
        }))
    }
}

fn module(module: &ModuleInfo) -> v1::PolicyModule {
    let mode = match module.mode {
        Mode::Enforce => v1::PolicyMode::Enforce,
        Mode::Monitor => v1::PolicyMode::Monitor,
    };
    v1::PolicyModule {
        name: module.name.clone(),
        version: module.version.clone(),
        digest: module.digest.to_string(),
        mode: mode.into(),
    }
}
