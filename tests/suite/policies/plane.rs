//! Short names for the calls of `Policies`.

use integration_tests::{
    binaries,
    gateway::{Executor, GatewayOptions, GatewayProcess, Policy, Role},
};
use maka_cu_protocol::ids::Digest;
use maka_proto::v1::{self, load_policy_request::Part};
use tonic::Status;

pub(super) const APP: &str = "org.maka.Notes";

/// A committed component.
pub(super) fn prebuilt(name: &str) -> Vec<u8> {
    let path = binaries::workspace_root().join(format!("policy-wasm/prebuilt/{name}.wasm"));
    std::fs::read(path).expect("a committed component")
}

pub(super) fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", Digest::of(bytes).to_hex())
}

/// A module by its bytes, without settings.
pub(super) fn module(bytes: &[u8]) -> v1::ModuleChoice {
    v1::ModuleChoice {
        digest: digest_of(bytes),
        ..v1::ModuleChoice::default()
    }
}

pub(super) async fn gateway(policy: Policy) -> GatewayProcess {
    let mut options = GatewayOptions::new(Executor::Virtual);
    options.policy = policy;
    GatewayProcess::serving(options).await
}

pub(super) async fn generation(gateway: &GatewayProcess) -> v1::GetGenerationResponse {
    let mut policies = gateway.client(Role::Author).policies;
    let answer = policies.get_generation(v1::GetGenerationRequest {}).await;
    answer.expect("a generation").into_inner()
}

/// Activates a set on what is active now.
pub(super) async fn activate(
    gateway: &GatewayProcess,
    set: &str,
    modules: Vec<v1::ModuleChoice>,
) -> Result<v1::ActivatePolicyResponse, Status> {
    let expected_generation = generation(gateway).await.change_count;
    let request = v1::ActivatePolicyRequest {
        set: set.into(),
        expected_generation,
        modules,
        ..v1::ActivatePolicyRequest::default()
    };
    let mut policies = gateway.client(Role::Operator).policies;
    Ok(policies.activate(request).await?.into_inner())
}

/// Loads a file as an author.
pub(super) async fn load(
    gateway: &GatewayProcess,
    file: &[u8],
) -> Result<v1::LoadPolicyResponse, Status> {
    load_parts(gateway, parts(file.len() as u64, &digest_of(file), file)).await
}

/// A header, and a file in pieces.
pub(super) fn parts(size: u64, digest: &str, file: &[u8]) -> Vec<Part> {
    let header = v1::LoadPolicyHeader {
        size,
        digest: digest.to_owned(),
    };
    let chunks = file
        .chunks(100_000)
        .map(|chunk| Part::Chunk(chunk.to_vec()));
    std::iter::once(Part::Header(header))
        .chain(chunks)
        .collect()
}

pub(super) async fn load_parts(
    gateway: &GatewayProcess,
    parts: Vec<Part>,
) -> Result<v1::LoadPolicyResponse, Status> {
    let messages = parts
        .into_iter()
        .map(|part| v1::LoadPolicyRequest { part: Some(part) })
        .collect::<Vec<_>>();
    let mut policies = gateway.client(Role::Author).policies;
    Ok(policies
        .load(tokio_stream::iter(messages))
        .await?
        .into_inner())
}

/// The records of changes in the decision log.
pub(super) fn changes(gateway: &GatewayProcess) -> Vec<serde_json::Value> {
    let records = gateway.decisions().into_iter();
    records
        .filter(|record| record["schema"] == "maka.policy.reload/1")
        .collect()
}
