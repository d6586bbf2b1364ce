//! Walks every row of the table, and compares `docs/clients.md` with it.

use std::{collections::BTreeSet, fmt::Write as _, path::PathBuf};

use maka_cu_host::{
    error::Breach, failure::StartFailure, options::ExecutableDigest, selection::NoBackend,
};
use maka_cu_protocol::sets::{Permission, ReleaseReason, RequestStage};
use maka_policy_host::{codes::DenyCode, id::IdSource};

use super::*;
use crate::error::ApprovalRequired;
use crate::plane::fault::{DETAILS, Fault};

const DOCUMENT: &str = include_str!("../../../../docs/clients.md");

fn refusal(code: DenyCode) -> Box<Refusal> {
    Box::new(Refusal {
        code: code.as_str().to_owned(),
        sentence: code.sentence().to_owned(),
        class: code.class(),
        retry: code.retry(),
        kind: code.kind(),
        decision_id: IdSource::try_new().unwrap().next(1),
        generation: 3,
        asks: Vec::new(),
    })
}

/// The refusal of a call that needs approval, as sessions make it of what the policy says.
fn policy(code: DenyCode) -> CallError {
    match code.kind() {
        RefusalKind::ApprovalRequired => approval_required(code),
        RefusalKind::InvalidFacts
        | RefusalKind::StaleFacts
        | RefusalKind::Denied
        | RefusalKind::Overloaded => CallError::Policy(refusal(code)),
    }
}

fn approval_required(code: DenyCode) -> CallError {
    CallError::ApprovalRequired(Box::new(ApprovalRequired {
        refusal: *refusal(code),
        approval: None,
    }))
}

fn lifecycle(code: LifecycleCode, stage: RequestStage, cause: LifecycleCause) -> CallError {
    CallError::Lifecycle {
        code,
        stage,
        generation: 4,
        release_reason: Some(ReleaseReason::ChildExit),
        cause: Box::new(cause),
        decision_id: Some("d".into()),
    }
}

fn held(state: SessionState) -> CallError {
    CallError::Held { state, wait: None }
}

/// Every error of the gateway itself and of the executor, with its place as the contract states it.
fn fault(code: FaultCode) -> (CallError, Code, &'static str) {
    let (status, retry) = match code {
        FaultCode::SetUnknown | FaultCode::PolicyUnknown => (Code::NotFound, "never"),
        FaultCode::GenerationChanged | FaultCode::StoreUnusable | FaultCode::Refused => {
            (Code::FailedPrecondition, "never")
        }
        FaultCode::ChangeRunning => (Code::ResourceExhausted, "after_delay"),
        FaultCode::StoreFull => (Code::ResourceExhausted, "never"),
        FaultCode::UploadMismatch | FaultCode::FixtureUnusable => (Code::InvalidArgument, "never"),
        FaultCode::Unrecorded => (Code::PermissionDenied, "never"),
    };
    (Fault::from(code).into(), status, retry)
}

fn rows() -> Vec<(CallError, Code, &'static str)> {
    let mut rows = vec![
        (
            CallError::Malformed {
                field: "max_elements",
                rule: "above the limit",
            },
            Code::InvalidArgument,
            "never",
        ),
        (CallError::SessionUnknown, Code::NotFound, "never"),
        (CallError::SessionForeign, Code::PermissionDenied, "never"),
        (CallError::SessionEnded, Code::NotFound, "never"),
        (
            CallError::SessionQuarantined,
            Code::PermissionDenied,
            "never",
        ),
        (
            held(SessionState::InterventionDebounce),
            Code::FailedPrecondition,
            "after_delay",
        ),
        (
            held(SessionState::ScreenLocked),
            Code::FailedPrecondition,
            "after_delay",
        ),
        (
            held(SessionState::BlockedUrl),
            Code::FailedPrecondition,
            "never",
        ),
        (
            held(SessionState::UserStopped),
            Code::FailedPrecondition,
            "never",
        ),
        (
            CallError::Limit(Limit::SessionsOfPrincipal),
            Code::ResourceExhausted,
            "never",
        ),
        (
            CallError::Limit(Limit::SessionsInTotal),
            Code::ResourceExhausted,
            "after_delay",
        ),
        (
            CallError::Limit(Limit::CallsInSession),
            Code::ResourceExhausted,
            "after_delay",
        ),
        (
            CallError::Limit(Limit::KeysInSession),
            Code::ResourceExhausted,
            "never",
        ),
        (
            CallError::Limit(Limit::SnapshotsInSession),
            Code::ResourceExhausted,
            "never",
        ),
        (
            CallError::Limit(Limit::ImagesAtOnce),
            Code::ResourceExhausted,
            "after_delay",
        ),
        (
            CallError::Limit(Limit::WatchersOfPrincipal),
            Code::ResourceExhausted,
            "never",
        ),
        (
            CallError::Limit(Limit::LogReaders),
            Code::ResourceExhausted,
            "never",
        ),
        (CallError::LogUnreadable, Code::FailedPrecondition, "never"),
        (
            CallError::Approval(ApprovalError::Unknown),
            Code::NotFound,
            "never",
        ),
        (
            CallError::Approval(ApprovalError::Settled),
            Code::FailedPrecondition,
            "never",
        ),
        (
            CallError::Approval(ApprovalError::Own),
            Code::PermissionDenied,
            "never",
        ),
        (
            CallError::Capture(CaptureRefusal::NoKey),
            Code::FailedPrecondition,
            "never",
        ),
        (
            CallError::Capture(CaptureRefusal::Running),
            Code::ResourceExhausted,
            "after_delay",
        ),
        (
            CallError::Capture(CaptureRefusal::Unrecorded),
            Code::FailedPrecondition,
            "never",
        ),
        (
            CallError::Capture(CaptureRefusal::NoEntropy),
            Code::FailedPrecondition,
            "never",
        ),
        (CallError::KeyConflict, Code::AlreadyExists, "never"),
        (CallError::ImageUnknown, Code::NotFound, "after_observe"),
        (
            CallError::ImageUnreadable,
            Code::FailedPrecondition,
            "after_observe",
        ),
        (
            CallError::ImageTooLarge,
            Code::FailedPrecondition,
            "after_observe",
        ),
        (
            CallError::Deadline { stage: None },
            Code::DeadlineExceeded,
            "after_delay",
        ),
        (
            CallError::Deadline {
                stage: Some(RequestStage::Queued),
            },
            Code::DeadlineExceeded,
            "after_delay",
        ),
        (CallError::Cancelled, Code::Cancelled, "never"),
        (
            CallError::Unsupported {
                decision_id: "d".into(),
            },
            Code::FailedPrecondition,
            "never",
        ),
        (
            CallError::Starting { generation: 1 },
            Code::Unavailable,
            "after_delay",
        ),
        (
            lifecycle(
                LifecycleCode::ServiceUnavailable,
                RequestStage::Queued,
                LifecycleCause::Disposed,
            ),
            Code::Unavailable,
            "after_delay",
        ),
        (
            lifecycle(
                LifecycleCode::ServiceUnavailable,
                RequestStage::Queued,
                LifecycleCause::Busy,
            ),
            Code::ResourceExhausted,
            "after_delay",
        ),
        (
            lifecycle(
                LifecycleCode::ServiceMismatch,
                RequestStage::Queued,
                LifecycleCause::Violation,
            ),
            Code::FailedPrecondition,
            "never",
        ),
        (
            lifecycle(
                LifecycleCode::Aborted,
                RequestStage::Queued,
                LifecycleCause::Cancelled,
            ),
            Code::Cancelled,
            "never",
        ),
        (
            lifecycle(
                LifecycleCode::OutcomeUnknown,
                RequestStage::Delivered,
                LifecycleCause::Violation,
            ),
            Code::Aborted,
            "now",
        ),
        (
            lifecycle(
                LifecycleCode::OutcomeUnknown,
                RequestStage::Delivered,
                LifecycleCause::RequestTimeout,
            ),
            Code::DeadlineExceeded,
            "after_delay",
        ),
        (
            CallError::Rpc {
                number: -32602,
                generation: 4,
                decision_id: None,
            },
            Code::Internal,
            "never",
        ),
        (
            CallError::Protocol {
                generation: 4,
                decision_id: None,
            },
            Code::FailedPrecondition,
            "never",
        ),
    ];
    for reason in [
        NoBackend::UnknownBackend,
        NoBackend::PlatformUnsupported,
        NoBackend::BinaryPathMissing,
        NoBackend::DigestMissing,
        NoBackend::DigestMalformed,
        NoBackend::ConstructionFailed,
    ] {
        rows.push((
            CallError::NoBackend {
                reason: reason.as_str(),
            },
            Code::Unavailable,
            "after_delay",
        ));
    }
    for code in DomainCode::ALL.iter().copied() {
        let (status, retry) = match code.as_str() {
            "app_not_found" => (Code::NotFound, "new_target"),
            "window_gone" => (Code::NotFound, "after_observe"),
            "timeout" => (Code::DeadlineExceeded, "after_delay"),
            "aborted" => (Code::Cancelled, "never"),
            "screen_locked" | "physical_input_active" | "image_write_failed" => {
                (Code::FailedPrecondition, "after_delay")
            }
            "permission_missing"
            | "unsupported_action"
            | "not_implemented"
            | "element_not_actionable"
            | "invalid_point"
            | "response_too_large"
            | "dispatch_refused" => (Code::FailedPrecondition, "never"),
            _ => (Code::FailedPrecondition, "after_observe"),
        };
        let fault = DomainFault {
            permission: Some(Permission::Accessibility),
            ..DomainFault::of(code)
        };
        rows.push((
            CallError::Refused {
                fault,
                decision_id: Some("d".into()),
            },
            status,
            retry,
        ));
    }
    rows.extend(FaultCode::ALL.map(fault));
    rows
}

/// Every refusal of a policy, of its engine and of the log.
fn refusals() -> Vec<CallError> {
    let admitted = DenyCode::all().map(policy);
    admitted
        .chain(DenyCode::all().map(|code| CallError::Withheld(refusal(code))))
        .collect()
}

fn check(error: &CallError, code: Code, retry: &str) {
    let status = status_of(error);
    let reason = error.reason();
    assert_eq!(status.code(), code, "{reason}");
    assert_eq!(status.message(), error.to_string(), "{reason}");
    let details = status.get_error_details();
    let info = details
        .error_info()
        .unwrap_or_else(|| panic!("{reason}: no ErrorInfo"));
    assert_eq!(
        (info.reason.as_str(), info.domain.as_str()),
        (reason, error.domain().as_str())
    );
    assert_eq!(info.metadata["retry"], retry, "{reason}");
    assert_eq!(
        info.metadata.get("decision_id").map(String::as_str),
        error.decision_id(),
        "{reason}"
    );
    assert_eq!(
        details.retry_info().is_some(),
        retry == "after_delay",
        "{reason}"
    );
    assert_eq!(
        details.bad_request().is_some(),
        matches!(error, CallError::Malformed { .. }),
        "{reason}"
    );
}

#[test]
fn every_error_has_its_place() {
    for (error, code, retry) in rows() {
        check(&error, code, retry);
    }
}

/// A refusal is never UNAVAILABLE: client libraries repeat that by themselves.
#[test]
fn every_refusal_has_its_place() {
    for error in refusals() {
        let refusal = match &error {
            CallError::Policy(refusal) | CallError::Withheld(refusal) => refusal,
            CallError::ApprovalRequired(required) => &required.refusal,
            other => panic!("{other:?}"),
        };
        let code = match refusal.kind {
            RefusalKind::InvalidFacts => Code::InvalidArgument,
            RefusalKind::StaleFacts | RefusalKind::ApprovalRequired => Code::FailedPrecondition,
            RefusalKind::Denied => Code::PermissionDenied,
            RefusalKind::Overloaded => Code::ResourceExhausted,
        };
        check(&error, code, refusal.retry.as_str());
        let details = status_of(&error).get_error_details();
        let metadata = &details.error_info().unwrap().metadata;
        assert_eq!(metadata["class"], refusal.class.as_str());
        assert_eq!(metadata["generation"], "3");
    }
}

/// A client branches on one reason; which policy asks, and for what, is beside it.
#[test]
fn an_approval_that_is_needed_has_one_reason() {
    let status = status_of(&approval_required(
        DenyCode::parse("global_pointer_approval").unwrap(),
    ));
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!(info.reason, "approval_required");
    assert_eq!(info.metadata["code"], "global_pointer_approval");
    assert_eq!(info.metadata["operator_key"], "allow_global_pointer");
    assert!(
        !info.metadata.contains_key("approval_id"),
        "nobody was asked"
    );
}

/// The operator's key that a refusal comes from is named in it.
#[test]
fn refusals_name_their_operator_key() {
    for (code, key) in [
        ("global_pointer_forbidden", Some("allow_global_pointer")),
        ("synthetic_input_off", Some("input.synthetic")),
        ("snapshot_spent", None),
    ] {
        let error = CallError::Policy(refusal(DenyCode::parse(code).unwrap()));
        let details = status_of(&error).get_error_details();
        let metadata = &details.error_info().unwrap().metadata;
        assert_eq!(
            metadata.get("operator_key").map(String::as_str),
            key,
            "{code}"
        );
    }
}

/// Metadata tells how far a call had come, of which generation, and which permission is missing (C8).
#[test]
fn metadata_applies_to_its_error() {
    let metadata = |error: &CallError| {
        status_of(error)
            .get_error_details()
            .error_info()
            .unwrap()
            .metadata
            .clone()
    };
    let lost = metadata(&lifecycle(
        LifecycleCode::OutcomeUnknown,
        RequestStage::Delivered,
        LifecycleCause::Violation,
    ));
    assert_eq!(
        (lost["stage"].as_str(), lost["generation"].as_str()),
        ("delivered", "4")
    );
    assert_eq!(lost["release_reason"], "child_exit");
    let fault = DomainFault {
        permission: Some(Permission::ScreenRecording),
        ..DomainFault::of(DomainCode::PermissionMissing)
    };
    let missing = metadata(&CallError::Refused {
        fault,
        decision_id: None,
    });
    assert_eq!(missing["permission"], "screen_recording");
    assert_eq!(
        metadata(&CallError::Rpc {
            number: -32002,
            generation: 2,
            decision_id: None
        })["rpc_code"],
        "-32002"
    );
}

/// The edge's own refusals.
fn edge_rows() -> Vec<Status> {
    let unknown = Unauthenticated::ALL.map(unauthenticated);
    unknown
        .into_iter()
        .chain([forbidden(), unimplemented(), unreadable(), too_large()])
        .collect()
}

#[test]
fn the_edge_refuses_with_details() {
    for status in edge_rows() {
        let details = status.get_error_details();
        let info = details
            .error_info()
            .expect("every status carries ErrorInfo");
        assert_eq!(
            (info.domain.as_str(), info.metadata["retry"].as_str()),
            ("gateway.maka", "never")
        );
        assert!(!status.message().is_empty() && !info.reason.is_empty());
    }
}

/// One line of the document's table.
fn line(status: &Status) -> String {
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    let code = format!("{:?}", status.code());
    let mut shouted = String::new();
    for (index, character) in code.chars().enumerate() {
        if index > 0 && character.is_uppercase() {
            shouted.push('_');
        }
        shouted.push(character.to_ascii_uppercase());
    }
    let (reason, domain, retry) = (&info.reason, &info.domain, &info.metadata["retry"]);
    format!(
        "| `{reason}` | `{domain}` | {shouted} | {retry} | {} |",
        status.message()
    )
}

/// `docs/clients.md` prints this table and nothing else. When it differs, the assertion shows the right text.
#[test]
fn the_document_prints_the_table() {
    let errors = rows().into_iter().map(|(error, _, _)| status_of(&error));
    let refusals = DenyCode::all().map(|code| status_of(&policy(code)));
    let lines: BTreeSet<String> = edge_rows()
        .into_iter()
        .chain(errors)
        .chain(refusals)
        .map(|status| line(&status))
        .collect();
    let mut expected = String::from(
        "| reason | domain | status | retry | sentence |\n| --- | --- | --- | --- | --- |\n",
    );
    for line in lines {
        writeln!(expected, "{line}").unwrap();
    }
    assert!(
        block("errors") == expected,
        "docs/clients.md has to print:\n{expected}"
    );
}

/// The words behind `policy_refused`, sorted.
#[test]
fn the_document_lists_why_policies_are_refused() {
    let mut expected = String::from("| code | meaning |\n| --- | --- |\n");
    for (word, meaning) in DETAILS {
        writeln!(expected, "| `{word}` | {meaning} |").unwrap();
    }
    assert!(DETAILS.is_sorted());
    assert!(
        block("policy_refused") == expected,
        "docs/clients.md has to print:\n{expected}"
    );
}

/// Every reason for a failed start that is not a passing state of one executor.
fn failures() -> Vec<StartFailure> {
    let path = || PathBuf::from("/x");
    let source = || std::io::Error::other("x");
    vec![
        StartFailure::BinaryMissing { path: path() },
        StartFailure::NotRegular { path: path() },
        StartFailure::NotExecutable { path: path() },
        StartFailure::WrongFormat { path: path() },
        StartFailure::Unreadable {
            path: path(),
            source: source(),
        },
        StartFailure::WrongDigest {
            expected: ExecutableDigest::from_bytes([0; 32]),
            actual: ExecutableDigest::from_bytes([1; 32]),
        },
        StartFailure::UnsafeInPlace { path: path() },
        StartFailure::MissingInterpreter,
        StartFailure::StateDirNoexec { path: path() },
        StartFailure::StateDirUnsafe { path: path() },
        StartFailure::StateDir {
            path: path(),
            source: source(),
        },
        StartFailure::ImageDirRelative { path: path() },
        StartFailure::ImageDirForeign { path: path() },
        StartFailure::ImageDirInUse { path: path() },
        StartFailure::ImageDir {
            path: path(),
            source: source(),
        },
        StartFailure::Spawn { source: source() },
        StartFailure::VersionMismatch,
        StartFailure::HandshakeRefused,
        StartFailure::HandshakeViolation {
            breach: Breach::BadLines,
        },
        StartFailure::HandshakeRpc { code: -32601 },
        StartFailure::HelloTimeout,
        StartFailure::Lost {
            reason: ReleaseReason::ChildExit,
            exit: None,
        },
    ]
}

/// The failure codes of `GetStatus` are listed with what to do about each.
#[test]
fn the_document_lists_the_failures() {
    let mut lines: Vec<String> = failures()
        .iter()
        .map(|failure| format!("| `{}` | {} |", failure.reason(), failure.remedy()))
        .collect();
    // Made only from a real exit status, which a table has not.
    lines.push("| `exited_early` | Run the executor's doctor command; its own messages say what is missing. |".to_owned());
    lines.sort();
    let mut expected = String::from("| code | advice |\n| --- | --- |\n");
    for line in lines {
        writeln!(expected, "{line}").unwrap();
    }
    assert!(
        block("failures") == expected,
        "docs/clients.md has to print:\n{expected}"
    );
}

/// What the document prints between two markers.
fn block(name: &str) -> &'static str {
    DOCUMENT
        .split_once(&format!("<!-- {name} -->\n"))
        .and_then(|(_, rest)| rest.split_once(&format!("<!-- /{name} -->")))
        .map(|(block, _)| block)
        .expect("the document has both markers")
}
