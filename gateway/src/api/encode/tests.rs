//! What an answer says on the wire: nothing upgraded, nothing null, no path of this machine.

use std::sync::Arc;

use maka_cu_protocol::{
    domain::DomainCode,
    geometry::ScreenRect,
    ids::{AppId, Digest, DisplayId, SnapshotId, ToolCallId},
    image::{AbsolutePath, ImageRef},
    results::dispatch::Verification,
    sets::{
        ChangedInput, Effect, ImageFormat, Outcome, Path, Permission, ReleaseReason, Tier,
        VerificationMethod,
    },
    snapshot::{Snapshot, SnapshotTarget, Truncation},
};
use maka_proto::v1;
use prost::Message as _;

use super::*;
use crate::session::answer::{
    DispatchOutcome, DomainFault, Frame, ImageAbsence, ImageId, ImageInfo, LaunchOutcome, Picture,
    ScreenPicture,
};

fn outcome(outcome: Outcome, effect: Effect) -> DispatchOutcome {
    DispatchOutcome {
        tool_call_id: ToolCallId::try_new("call_1").unwrap(),
        outcome,
        tier: Tier::Ax,
        path: Path::AxAction,
        effect,
        verification: Verification {
            method: VerificationMethod::ActionResult,
            observed_change: false,
        },
        settle: None,
        error: None,
        frame: None,
        observation_error: None,
        decision_id: "d".into(),
        resolved_screen_point: None,
        withheld: false,
        release_reason: None,
        dry_run: false,
        replayed: false,
    }
}

/// M5: an `ok` whose effect nobody saw stays one; no pair of outcome and effect is turned into another.
#[test]
fn outcome_and_effect_travel_as_they_are() {
    for was in Outcome::ALL.iter().copied() {
        for effect in Effect::ALL.iter().copied() {
            let result = super::outcome::dispatch(outcome(was, effect));
            let words = (
                result.outcome().as_str_name(),
                result.effect().as_str_name(),
            );
            let expected_outcome = format!("OUTCOME_{}", was.as_str().to_uppercase());
            let expected_effect = format!("EFFECT_{}", effect.as_str().to_uppercase());
            assert_eq!(words, (expected_outcome.as_str(), expected_effect.as_str()));
            let verification = result.verification.unwrap();
            assert_eq!(verification.method(), v1::VerificationMethod::ActionResult);
            assert!(!verification.observed_change);
            assert!(result.error.is_none() && result.snapshot.is_none() && result.settle.is_none());
        }
    }
}

/// C8: a refusal names the permission that is missing, and its sentence is the code's own.
#[test]
fn faults_carry_what_a_caller_needs() {
    let fault = DomainFault {
        changed: vec![ChangedInput::Value, ChangedInput::SiblingIndex],
        would_require: Some(Path::CgEventGlobal),
        permission: Some(Permission::ScreenRecording),
        ..DomainFault::of(DomainCode::PermissionMissing)
    };
    let error = scalar::fault(&fault);
    assert_eq!(error.code, "permission_missing");
    assert_eq!(error.sentence, DomainCode::PermissionMissing.sentence());
    assert_eq!(error.changed, ["value", "siblingIndex"]);
    assert_eq!(error.would_require(), v1::Path::CgEventGlobal);
    assert_eq!(error.permission.as_deref(), Some("screen_recording"));
}

/// M2: an unknown launch says so as a result, with the reason its generation ended.
#[test]
fn an_unknown_launch_is_a_result() {
    let response = super::outcome::launch(LaunchOutcome {
        outcome: Outcome::Unknown,
        error: Some(DomainFault::of(DomainCode::OutcomeUnknown)),
        launched: None,
        decision_id: "d".into(),
        withheld: false,
        release_reason: Some(ReleaseReason::RequestTimeout),
        replayed: true,
    });
    assert!(response.replayed);
    assert_eq!(response.outcome(), v1::Outcome::Unknown);
    assert_eq!(response.release_reason(), v1::ReleaseReason::RequestTimeout);
    assert_eq!(response.error.unwrap().code, "outcome_unknown");
    assert!(response.launched.is_none());
}

fn info() -> ImageInfo {
    ImageInfo {
        image_id: ImageId::new("img_1"),
        format: ImageFormat::Png,
        width_px: 2,
        height_px: 1,
        byte_length: 3,
        sha256: Digest::of(b"png"),
        scale: 1.0,
        uniform: None,
        size_mismatch: false,
    }
}

fn bare_snapshot() -> Snapshot {
    Snapshot {
        snapshot_id: SnapshotId::try_new("snap_1").unwrap(),
        captured_at: maka_cu_protocol::ids::Millis(5),
        target: SnapshotTarget {
            pid: 7,
            window_id: 9,
            app_id: AppId::try_new("pid:7").unwrap(),
            app_name: None,
            title: None,
            bounds: ScreenRect::try_new(-10.0, 0.0, 20.0, 10.0).unwrap(),
            layer: 0,
            z_index: 3,
            display_id: None,
        },
        window_digest: Digest::of(b"w"),
        focused_element_token: None,
        selected_text: None,
        image: Some(ImageRef {
            path: AbsolutePath::try_new("/secret/place/1.png").unwrap(),
            format: ImageFormat::Png,
            width_px: 2,
            height_px: 1,
            byte_length: 3,
            sha256: Digest::of(b"png"),
            scale: 1.0,
        }),
        image_absence: None,
        displays: Vec::new(),
        obscuring_rects: Vec::new(),
        elements: Vec::new(),
        truncated: Truncation {
            elements: false,
            depth: true,
        },
        difference: None,
        menu: None,
    }
}

/// Absent stays absent, a cut is never silent, and the image's path stays in the gateway.
#[test]
fn a_bare_frame_holds_only_what_is_there() {
    let picture = Picture {
        info: Some(info()),
        data: None,
        absence: Some(ImageAbsence::TooLargeForInline),
    };
    let frame = Frame {
        snapshot: Arc::new(bare_snapshot()),
        expires_unix_ms: 9,
        picture,
    };
    let snapshot = super::snapshot::frame(frame);
    let target = snapshot.target.clone().unwrap();
    assert_eq!(
        target.window,
        Some(v1::WindowRef {
            pid: 7,
            window_id: 9
        })
    );
    assert_eq!(target.bounds_screen.unwrap().x, -10.0);
    assert!(target.app_name.is_none() && target.title.is_none() && target.display_id.is_none());
    assert!(
        snapshot.selected_text.is_none()
            && snapshot.menu.is_none()
            && snapshot.focused_element_token.is_none()
    );
    assert_eq!(
        snapshot.truncated,
        Some(v1::Truncation {
            elements: false,
            depth: true
        })
    );
    assert_eq!(
        (snapshot.captured_unix_ms, snapshot.expires_unix_ms),
        (5, 9)
    );
    assert_eq!(
        snapshot.image_absence(),
        v1::ImageAbsence::TooLargeForInline
    );
    let image = snapshot.image.clone().unwrap();
    assert_eq!(
        (image.image_id.as_str(), image.byte_length, image.data.len()),
        ("img_1", 3, 0)
    );
    let bytes = snapshot.encode_to_vec();
    assert!(!bytes.windows(6).any(|window| window == b"secret"));
}

/// C10: a picture that could not be had is absent with its reason, never an empty picture.
#[test]
fn a_missing_picture_says_why() {
    let picture = Picture {
        info: None,
        data: None,
        absence: Some(ImageAbsence::OmittedByExecutor),
    };
    let screen = ScreenPicture {
        picture,
        display_id: DisplayId::try_new("1").unwrap(),
        captured_unix_ms: 5,
        displays: Vec::new(),
    };
    let response = super::snapshot::screen(screen, "d".into());
    assert_eq!(response.image, None);
    assert_eq!(
        response.image_absence(),
        v1::ImageAbsence::OmittedByExecutor
    );
    assert_eq!(
        scalar::image_absence(ImageAbsence::NotOffered),
        v1::ImageAbsence::NotOffered
    );
}

#[test]
fn numbers_outside_the_message_keep_their_side() {
    assert_eq!(scalar::layer(25), 25);
    assert_eq!(scalar::layer(i64::MAX), i32::MAX);
    assert_eq!(scalar::layer(i64::MIN), i32::MIN);
    assert_eq!(scalar::unix_ms(u64::MAX), i64::MAX);
}
