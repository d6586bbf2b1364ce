//! Who may call what: every method of the contract, for every role and for nobody, over real gRPC.

use integration_tests::{
    gateway::{Executor, GatewayOptions, GatewayProcess, Role},
    raw,
};
use maka_proto::v1::WatchDecisionsRequest;
use prost::Message as _;
use tonic::Code;

/// The roles that may call a method. A method that is not named here fails the test, so that adding one means
/// deciding.
fn allowed(method: &str) -> &'static [Role] {
    match method.rsplit('/').next().unwrap_or_default() {
        "GetStatus" | "ListSessions" | "Watch" => &[Role::Agent, Role::Viewer, Role::Operator],
        "CheckPermissions" | "BeginSession" | "EndSession" | "ListApps" | "LaunchApp"
        | "ListWindows" | "Snapshot" | "Dispatch" | "CaptureScreen" | "ReadImage" => {
            &[Role::Agent, Role::Operator]
        }
        "GetGeneration" | "List" | "Load" | "Evaluate" => &[Role::Author, Role::Operator],
        "Activate" | "Deactivate" | "RestartExecutor" | "ReportHostEvent" | "WatchDecisions"
        | "CaptureDecisions" | "ListApprovals" | "ResolveApproval" | "ClearQuarantine" => {
            &[Role::Operator]
        }
        unknown => panic!("no row for {unknown}"),
    }
}

/// A request that is answered at once. Most methods say at once what an empty one lacks.
fn body(method: &str) -> Vec<u8> {
    if method.ends_with("/WatchDecisions") {
        let request = WatchDecisionsRequest {
            from: Some(1),
            until_now: true,
        };
        return request.encode_to_vec();
    }
    Vec::new()
}

#[tokio::test]
async fn each_method_answers_its_roles_and_refuses_the_others() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let methods = raw::methods();
    assert!(methods.len() >= 15, "{methods:?}");
    for method in &methods {
        let nobody = raw::call(gateway.channel(), method, None, Vec::new()).await;
        assert_eq!(
            nobody.err().map(|status| status.code()),
            Some(Code::Unauthenticated),
            "{method}"
        );
        let stranger = raw::call(gateway.channel(), method, Some("not-a-token"), Vec::new()).await;
        assert_eq!(
            stranger.err().map(|status| status.code()),
            Some(Code::Unauthenticated),
            "{method}"
        );
        for role in Role::ALL {
            let answer =
                raw::call(gateway.channel(), method, Some(&role.token()), body(method)).await;
            let code = answer.err().map(|status| status.code());
            if allowed(method).contains(&role) {
                assert!(
                    !matches!(code, Some(Code::PermissionDenied | Code::Unauthenticated)),
                    "{role:?} may call {method}, got {code:?}"
                );
            } else {
                assert_eq!(
                    code,
                    Some(Code::PermissionDenied),
                    "{role:?} may not call {method}"
                );
            }
        }
    }
    gateway.stop().await;
}

/// A session belongs to the principal that began it; another one with the same role cannot use it.
#[tokio::test]
async fn a_session_of_somebody_else_is_refused() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let session_id = gateway.client(Role::Operator).begin().await;
    let refused = gateway
        .agent()
        .snapshot_app(&session_id, "org.maka.Notes")
        .await
        .expect_err("the operator's session");
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    gateway.stop().await;
}
