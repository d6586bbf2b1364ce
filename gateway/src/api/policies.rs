//! `maka.gateway.v1.Policies`.

use std::{sync::Arc, time::Duration};

use maka_policy_host::{judge::ModuleInfo, judge::SetInfo, module::Mode};
use maka_proto::v1::{self, policies_server::Policies};
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Response, Status, Streaming};

use super::{
    Edge, answered, caller, deadline,
    decode::{policies as decode, violations::Violations},
    encode::policies as encode,
};
use crate::{
    config::policy::DEFAULT_SET,
    error::CallError,
    plane::{
        Asked, Wanted,
        fault::{Fault, FaultCode},
    },
};

/// How long a policy may take to arrive when its caller gives no deadline.
const UPLOAD_PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct PoliciesService(pub(super) Arc<Edge>);

#[tonic::async_trait]
impl Policies for PoliciesService {
    async fn get_generation(
        &self,
        _request: Request<v1::GetGenerationRequest>,
    ) -> Result<Response<v1::GetGenerationResponse>, Status> {
        let judge = &self.0.judge;
        let position = judge.log().position();
        let log_head = v1::DecisionLogHead {
            count: position.count,
            head_hash: position
                .head
                .map(|head| head.to_string())
                .unwrap_or_default(),
        };
        // In this order: a view is never older than the sets that are shown with it.
        let active = judge.active();
        let view = self.0.plane.view();
        let sets = active.as_ref().map_or(&[][..], |active| &active.sets);
        let default = sets.iter().find(|set| set.name == DEFAULT_SET);
        Ok(Response::new(v1::GetGenerationResponse {
            // A generation without sets refuses everything, which is what 0 says.
            generation: active
                .as_ref()
                .filter(|active| !active.sets.is_empty())
                .map_or(0, |active| active.generation),
            set_digest: default
                .map(|set| set.digest.to_string())
                .unwrap_or_default(),
            modules: default
                .map(|set| set.modules.iter().map(module).collect())
                .unwrap_or_default(),
            log_head: Some(log_head),
            sets: sets.iter().map(|it| set(it, &view.called)).collect(),
            last_change: view.last.as_ref().map(encode::last_change),
            unmonitored: judge.unmonitored(),
            stale: view.stale,
            change_count: judge.generation(),
        }))
    }

    async fn list(
        &self,
        request: Request<v1::ListPoliciesRequest>,
    ) -> Result<Response<v1::ListPoliciesResponse>, Status> {
        let caller = caller(request.extensions())?;
        let listed = async { Ok(self.0.plane.list().await?) };
        let (policies, set_names) = answered("ListPolicies", &caller, listed).await?;
        Ok(Response::new(v1::ListPoliciesResponse {
            policies: policies.into_iter().map(encode::known).collect(),
            set_names,
        }))
    }

    async fn load(
        &self,
        request: Request<Streaming<v1::LoadPolicyRequest>>,
    ) -> Result<Response<v1::LoadPolicyResponse>, Status> {
        let caller = caller(request.extensions())?;
        let until = deadline::context(request.extensions())
            .deadline
            .unwrap_or_else(|| Instant::now() + UPLOAD_PATIENCE);
        let file = upload(&self.0, request.into_inner(), until).await?;
        let loaded = async { Ok(self.0.plane.load(file).await?) };
        let (policy, known) = answered("LoadPolicy", &caller, loaded).await?;
        tracing::info!(principal = %caller.principal, digest = %policy.digest, known, "a policy was loaded");
        Ok(Response::new(v1::LoadPolicyResponse {
            policy: Some(encode::known(policy)),
            known,
        }))
    }

    async fn activate(
        &self,
        request: Request<v1::ActivatePolicyRequest>,
    ) -> Result<Response<v1::ActivatePolicyResponse>, Status> {
        let caller = caller(request.extensions())?;
        let v1::ActivatePolicyRequest {
            set,
            expected_generation,
            modules,
            floor_settings_json,
            from_configuration,
        } = request.into_inner();
        let mut violations = Violations::default();
        let wanted = if from_configuration {
            if !modules.is_empty() || !floor_settings_json.is_empty() {
                violations.add(
                    "from_configuration",
                    "must be false when modules or floor settings are named",
                );
            }
            Some(Wanted::Configuration)
        } else {
            decode::modules(&mut violations, "modules", modules)
                .zip(decode::settings(
                    &mut violations,
                    "floor_settings_json",
                    &floor_settings_json,
                ))
                .map(|(modules, floor_settings)| Wanted::Set {
                    modules,
                    floor_settings,
                })
        };
        let wanted = violations.finish(wanted)?;
        self.change(&caller, "ActivatePolicy", set, expected_generation, wanted)
            .await
    }

    async fn deactivate(
        &self,
        request: Request<v1::DeactivatePolicyRequest>,
    ) -> Result<Response<v1::ActivatePolicyResponse>, Status> {
        let caller = caller(request.extensions())?;
        let v1::DeactivatePolicyRequest {
            set,
            expected_generation,
        } = request.into_inner();
        self.change(
            &caller,
            "DeactivatePolicy",
            set,
            expected_generation,
            Wanted::Nothing,
        )
        .await
    }

    async fn evaluate(
        &self,
        request: Request<v1::EvaluatePolicyRequest>,
    ) -> Result<Response<v1::EvaluatePolicyResponse>, Status> {
        let caller = caller(request.extensions())?;
        let v1::EvaluatePolicyRequest {
            fixture,
            set,
            candidate,
        } = request.into_inner();
        let mut violations = Violations::default();
        let asked = match candidate {
            None => Some(Asked::Active(named(set))),
            Some(v1::PolicyCandidate {
                modules,
                floor_settings_json,
            }) => decode::modules(&mut violations, "candidate.modules", modules)
                .zip(decode::settings(
                    &mut violations,
                    "candidate.floor_settings_json",
                    &floor_settings_json,
                ))
                .map(|(modules, floor_settings)| Asked::Candidate {
                    modules,
                    floor_settings,
                }),
        };
        let asked = violations.finish(asked)?;
        let answer = async { Ok(self.0.plane.ask(fixture, asked).await?) };
        let answer = answered("EvaluatePolicy", &caller, answer).await?;
        Ok(Response::new(v1::EvaluatePolicyResponse {
            set_digest: answer.set.to_string(),
            calls: answer.lines.into_iter().map(encode::line).collect(),
        }))
    }
}

impl PoliciesService {
    async fn change(
        &self,
        caller: &crate::session::caller::Caller,
        method: &'static str,
        name: String,
        expected: u64,
        wanted: Wanted,
    ) -> Result<Response<v1::ActivatePolicyResponse>, Status> {
        let name = named(name);
        let principal = caller.principal.as_str();
        tracing::info!(%principal, set = name.escape_default().to_string(), method, "an operator changes policies");
        let changed = async { Ok(self.0.plane.set(principal, &name, expected, wanted).await?) };
        let generation = answered(method, caller, changed).await?;
        let active = self.0.judge.active();
        let view = self.0.plane.view();
        let now = active.iter().flat_map(|active| &active.sets);
        Ok(Response::new(v1::ActivatePolicyResponse {
            generation,
            set: now
                .filter(|it| it.name == name)
                .map(|it| set(it, &view.called))
                .next(),
        }))
    }
}

/// The whole file behind its header. At most two arrive at the same time, so that their bytes are bounded as well.
async fn upload(
    edge: &Edge,
    mut parts: Streaming<v1::LoadPolicyRequest>,
    until: Instant,
) -> Result<Vec<u8>, Status> {
    use v1::load_policy_request::Part;
    let fault = |code: FaultCode| super::status::status_of(&CallError::from(Fault::from(code)));
    let _room = edge
        .plane
        .upload_room()
        .ok_or_else(|| fault(FaultCode::ChangeRunning))?;
    let whole = async {
        let mismatch = || fault(FaultCode::UploadMismatch);
        let Some(v1::LoadPolicyRequest {
            part: Some(Part::Header(v1::LoadPolicyHeader { size, digest })),
        }) = parts.message().await?
        else {
            return Err(mismatch());
        };
        let mut violations = Violations::default();
        if !(1..=crate::plane::MAX_UPLOAD).contains(&size) {
            violations.add("header.size", "must be 1 to 33554432");
        }
        let digest = decode::digest(&mut violations, "header.digest", &digest);
        let digest = violations.finish(digest)?;
        let mut file = Vec::new();
        while let Some(v1::LoadPolicyRequest { part }) = parts.message().await? {
            let Some(Part::Chunk(chunk)) = part else {
                return Err(mismatch());
            };
            if (file.len() + chunk.len()) as u64 > size {
                return Err(mismatch());
            }
            file.extend_from_slice(&chunk);
        }
        if file.len() as u64 != size || maka_policy_host::digest::Digest::of(&file) != digest {
            return Err(mismatch());
        }
        Ok(file)
    };
    timeout_at(until, whole).await.unwrap_or_else(|_| {
        Err(super::status::status_of(&CallError::Deadline {
            stage: None,
        }))
    })
}

fn named(set: String) -> String {
    if set.is_empty() {
        DEFAULT_SET.to_owned()
    } else {
        set
    }
}

fn set(set: &SetInfo, called: &[String]) -> v1::PolicySet {
    let origin = if called.contains(&set.name) {
        v1::PolicySetOrigin::Call
    } else {
        v1::PolicySetOrigin::Configuration
    };
    v1::PolicySet {
        name: set.name.clone(),
        digest: set.digest.to_string(),
        modules: set.modules.iter().map(module).collect(),
        origin: origin.into(),
    }
}

fn module(module: &ModuleInfo) -> v1::PolicyModule {
    v1::PolicyModule {
        name: module.name.clone(),
        version: module.version.clone(),
        digest: module.digest.to_string(),
        mode: mode(module.mode).into(),
    }
}

pub(super) const fn mode(mode: Mode) -> v1::PolicyMode {
    match mode {
        Mode::Enforce => v1::PolicyMode::Enforce,
        Mode::Monitor => v1::PolicyMode::Monitor,
    }
}
