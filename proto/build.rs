//! Compiles `maka/gateway/v1/*.proto` with protox, so that no protoc is needed anywhere, and keeps the
//! descriptor set for server reflection.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

/// One file per service; `common.proto` holds what services share.
const FILES: [&str; 5] = [
    "maka/gateway/v1/common.proto",
    "maka/gateway/v1/computer_use.proto",
    "maka/gateway/v1/events.proto",
    "maka/gateway/v1/operator.proto",
    "maka/gateway/v1/policies.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=maka");
    let descriptors = protox::compile(FILES, ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?).join("maka_gateway_v1.bin");
    fs::write(out, descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        // Text that a person typed or saw must not reach a log by way of `{:?}`: these types write
        // `Debug` by hand in src/redact.rs.
        .skip_debug(REDACTED)
        .compile_fds(descriptors)?;
    Ok(())
}

/// Messages that carry application text, typed text, image bytes or settings of policies; the list of `src/redact.rs`.
const REDACTED: [&str; 20] = [
    "maka.gateway.v1.ActivatePolicyRequest",
    "maka.gateway.v1.App",
    "maka.gateway.v1.Approval",
    "maka.gateway.v1.Element",
    "maka.gateway.v1.EvaluatePolicyRequest",
    "maka.gateway.v1.Image",
    "maka.gateway.v1.LaunchAppRequest",
    "maka.gateway.v1.Launched",
    "maka.gateway.v1.LaunchedWindow",
    "maka.gateway.v1.MenuRequest",
    "maka.gateway.v1.ModuleChoice",
    "maka.gateway.v1.PolicyCandidate",
    "maka.gateway.v1.PressKey",
    "maka.gateway.v1.ReadImageResponse",
    "maka.gateway.v1.SelectText",
    "maka.gateway.v1.SelectedText",
    "maka.gateway.v1.SetValue",
    "maka.gateway.v1.SnapshotTarget",
    "maka.gateway.v1.TypeText",
    "maka.gateway.v1.Window",
];
