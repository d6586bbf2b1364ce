//! Laws: writing then reading is identity for every type, and no JSON value panics a reader.

use std::{fmt::Debug, num::NonZeroU32};

use maka_cu_protocol::{
    digest::{ElementDigestInput, changed_inputs, element_digest, value_digest, window_digest},
    generic::*,
    handshake::{Handshake, HelloParams, HostIdentity},
    json::Json,
    method::Method,
    params::*,
    results::{dispatch::*, lists::*, *},
    sets::*,
};
use proptest::{collection::vec, option::of, prelude::*};
use serde_json::{Map, Value};

use crate::strategies::*;

/// Written, sent as text, parsed and read: the same value, and no key holds `null`.
fn round_trip<T: Json + PartialEq + Debug>(value: &T) -> Result<(), TestCaseError> {
    let written = value.write();
    prop_assert!(no_null(&written), "{}", written);
    let parsed: Value = serde_json::from_slice(&serde_json::to_vec(&written).unwrap()).unwrap();
    let read = T::read(&parsed);
    prop_assert_eq!(read.as_ref(), Ok(value));
    Ok(())
}

fn no_null(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter().all(no_null),
        Value::Object(fields) => fields.values().all(no_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn anchors() -> impl Strategy<Value = GenericAnchor> {
    prop_oneof![
        snapshot_id().prop_map(GenericAnchor::Snapshot),
        any::<u32>().prop_map(GenericAnchor::OnlyLiveOf)
    ]
}

fn generic_routes() -> impl Strategy<Value = GenericRoute> {
    let element = (
        token(),
        digest(),
        member(Strictness::ALL),
        member(OcclusionPolicy::ALL),
        element_action(),
    );
    let key = (token(), digest(), member(FocusPolicy::ALL), key_action());
    let points = prop_oneof![
        (screen_point(), of(screen_point()))
            .prop_map(|(point, start)| GenericPoint::Screen { point, start }),
        (image_point(), of(image_point()))
            .prop_map(|(point, start)| GenericPoint::Image { point, start }),
    ];
    let point = (
        points,
        of(digest()),
        member(OcclusionPolicy::ALL),
        point_action(),
    );
    prop_oneof![
        element.prop_map(|(token, expect_digest, strictness, occlusion, action)| {
            GenericRoute::Element {
                token,
                expect_digest,
                strictness,
                occlusion,
                action,
            }
        }),
        key.prop_map(
            |(focus_token, expect_digest, policy, action)| GenericRoute::Key {
                focus_token,
                expect_digest,
                policy,
                action
            }
        ),
        point.prop_map(
            |(point, expect_window_digest, occlusion, action)| GenericRoute::Point {
                point: without_stray_start(point, &action),
                expect_window_digest,
                occlusion,
                action
            }
        ),
    ]
}

/// Only a drag has a start.
fn without_stray_start(
    point: GenericPoint,
    action: &maka_cu_protocol::action::PointAction,
) -> GenericPoint {
    if *action == maka_cu_protocol::action::PointAction::Drag {
        return point;
    }
    match point {
        GenericPoint::Screen { point, .. } => GenericPoint::Screen { point, start: None },
        GenericPoint::Image { point, .. } => GenericPoint::Image { point, start: None },
    }
}

fn bounds() -> impl Strategy<Value = Option<NonZeroU32>> {
    of(any::<NonZeroU32>())
}

fn endings() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Done),
        refusal().prop_map(Ending::Refused),
        refusal().prop_map(Ending::Failed),
        refusal().prop_map(Ending::Unknown),
    ]
}

fn frames() -> impl Strategy<Value = PostFrame> {
    prop_oneof![
        Just(PostFrame::None),
        snapshot().prop_map(|snapshot| PostFrame::Taken(Box::new(snapshot))),
        refusal().prop_map(|refusal| PostFrame::Failed(refusal.code)),
    ]
}

fn dispatch_answers() -> impl Strategy<Value = DispatchAnswer> {
    let pairs: Vec<(Tier, Path)> = Tier::ALL
        .iter()
        .flat_map(|tier| Path::ALL.iter().map(move |path| (*tier, *path)))
        .filter(|(tier, path)| tier.allows(*path))
        .collect();
    let facts = (
        proptest::sample::select(pairs),
        member(Effect::ALL),
        member(VerificationMethod::ALL),
        any::<bool>(),
    );
    let settles = of((millis(), any::<bool>(), member(SettleReason::ALL)));
    (
        tool_call_id(),
        endings(),
        facts,
        settles,
        frames(),
        of(member(Method::ALL)),
    )
        .prop_map(
            |(
                tool_call_id,
                ending,
                ((tier, path), effect, method, observed_change),
                settle,
                frame,
                routed_to,
            )| {
                let confirmed_without_effect =
                    effect == Effect::Confirmed && ending != Ending::Done;
                DispatchAnswer {
                    tool_call_id,
                    effect: if confirmed_without_effect {
                        Effect::Unverifiable
                    } else {
                        effect
                    },
                    ending,
                    tier,
                    path,
                    verification: Verification {
                        method,
                        observed_change,
                    },
                    settle: settle.map(|(waited_ms, quiesced, reason)| Settle {
                        waited_ms,
                        quiesced,
                        reason,
                    }),
                    frame,
                    routed_to,
                }
            },
        )
}

fn windows() -> impl Strategy<Value = WindowEntry> {
    let rest = (
        of(app_text()),
        of(app_text()),
        of(screen_rect()),
        of(display_id()),
    );
    (
        window_key(),
        app_id(),
        signed(),
        signed(),
        any::<bool>(),
        rest,
    )
        .prop_map(
            |(window, app_id, layer, z_index, on_screen, (app_name, title, bounds, display_id))| {
                WindowEntry {
                    pid: window.pid,
                    window_id: window.window_id,
                    app_id,
                    layer,
                    z_index,
                    on_screen,
                    app_name,
                    title,
                    bounds,
                    display_id,
                }
            },
        )
}

fn apps() -> impl Strategy<Value = AppEntry> {
    (
        app_id(),
        any::<u32>(),
        any::<u32>(),
        of(app_text()),
        of(any::<bool>()),
    )
        .prop_map(|(app_id, pid, window_count, name, running)| AppEntry {
            app_id,
            pid,
            window_count,
            name,
            running,
        })
}

fn launches() -> impl Strategy<Value = Launched> {
    let windows = vec((any::<u32>(), of(app_text())), 0..3);
    (
        any::<u32>(),
        app_id(),
        of(app_text()),
        any::<bool>(),
        windows,
        millis(),
        member(WaitedReason::ALL),
    )
        .prop_map(
            |(pid, app_id, name, foreground_taken, windows, ms, reason)| Launched {
                pid,
                app_id,
                name,
                foreground_taken,
                windows: windows
                    .into_iter()
                    .map(|(window_id, title)| LaunchedWindow { window_id, title })
                    .collect(),
                waited: Waited { ms, reason },
            },
        )
}

fn captures() -> impl Strategy<Value = ScreenCaptured> {
    (image(), display_id(), millis()).prop_map(|(image, display_id, captured_at)| ScreenCaptured {
        image,
        display_id,
        captured_at,
    })
}

fn generic_snapshots() -> impl Strategy<Value = GenericSnapshot> {
    prop_oneof![
        snapshot().prop_map(|snapshot| GenericSnapshot::Snapshot(Box::new(snapshot))),
        (image(), target(), millis()).prop_map(|(image, target, captured_at)| {
            GenericSnapshot::Window(WindowImage {
                image,
                target,
                captured_at,
            })
        }),
        captures().prop_map(GenericSnapshot::Screen),
    ]
}

/// Any JSON, shallow but wide enough to reach every reader's branches by the names of real fields.
fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    let names = proptest::sample::select(vec![
        "ok",
        "error",
        "code",
        "message",
        "detail",
        "snapshot",
        "elements",
        "token",
        "kind",
        "action",
        "target",
        "x",
        "y",
        "path",
        "tier",
        "windows",
        "apps",
        "limits",
        "menu",
        "scope",
        "title",
        "difference",
        "changes",
        "session",
    ]);
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((names.clone(), inner), 0..6).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
}

macro_rules! identities {
    ($($name:ident: $strategy:expr;)+) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(64))]
            $( #[test] fn $name(value in $strategy) { round_trip(&value)?; } )+
        }
    };
}

identities! {
    snapshots: snapshot();
    handshakes: handshake().prop_map(Answer::<Handshake>::Done);
    refused_answers: refusal().prop_map(Answer::<Handshake>::Refused);
    dispatch_results: dispatch_answers();
    window_lists: vec(windows(), 0..3).prop_map(|windows| Answer::Done(WindowList { windows }));
    app_lists: vec(apps(), 0..3).prop_map(|apps| Answer::Done(AppList { apps }));
    launch_results: launches().prop_map(Answer::Done);
    screen_captures: captures().prop_map(Answer::Done);
    generic_snapshot_results: generic_snapshots().prop_map(Answer::Done);
    permissions: (any::<bool>(), any::<bool>(), of(member(ScreenRecordingProbe::ALL))).prop_map(
        |(accessibility, screen_recording, screen_recording_probe)| {
            Answer::Done(Permissions { accessibility, screen_recording, screen_recording_probe })
        });
    session_ends: (any::<u32>(), any::<u32>(), any::<u32>()).prop_map(|(snapshots, images, streams)| {
        Answer::Done(SessionEnded { released: Released { snapshots, images, streams } })
    });
    stream_starts: (stream_id(), any::<u32>(), millis()).prop_map(|(stream_id, ring_frames, ttl_ms)| {
        Answer::Done(CaptureStarted { stream_id, ring_frames, ttl_ms })
    });
    stream_frames: (whole(), whole(), vec((whole(), millis(), image()), 0..2), of(any::<bool>())).prop_map(
        |(seq, dropped, frames, timed_out)| {
            let frame = |(seq, captured_at, image)| CapturedFrame { seq, captured_at, image };
            CapturedFrames { seq, dropped, frames: frames.into_iter().map(frame).collect(), timed_out }
        });
    stream_stops: whole().prop_map(|frames| CaptureStopped { released: ReleasedFrames { frames } });

    hello_params: (of((text(), text())), 1_u32.., absolute_path(), any::<bool>()).prop_map(
        |(host, host_pid, image_dir, allow_global_pointer)| HelloParams {
            protocol: "maka.cu/2".to_owned(),
            host: host.map(|(name, version)| HostIdentity { name, version }),
            host_pid,
            image_dir,
            allow_global_pointer,
        });
    session_begins: (session_id(), member(CaptureScope::ALL))
        .prop_map(|(session, capture_scope)| SessionBeginParams { session, capture_scope });
    launches_asked: (session_id(), some_text(), of(millis()))
        .prop_map(|(session, app, wait_for_window_ms)| LaunchParams { session, app, wait_for_window_ms });
    observations_asked: (session_id(), observe_target(), any::<bool>(), bounds(), bounds(), bounds(), of(menu_scope()))
        .prop_map(|(session, target, include_image, max_elements, max_depth, max_text_chars, menu)| ObserveParams {
            session, target, include_image, max_elements, max_depth, max_text_chars, menu,
        });
    element_dispatches: (
        (session_id(), snapshot_id(), tool_call_id(), token(), digest()),
        (member(Strictness::ALL), member(OcclusionPolicy::ALL), element_action(), of(observe_after())),
    ).prop_map(|(ids, rest)| {
        let (session, snapshot_id, tool_call_id, element_token, expect_element_digest) = ids;
        let (strictness, occlusion_policy, action, observe_after) = rest;
        DispatchElementParams {
            session, snapshot_id, tool_call_id, element_token, expect_element_digest, strictness, occlusion_policy,
            action, observe_after,
        }
    });
    key_dispatches: (
        (session_id(), snapshot_id(), tool_call_id(), token(), digest()),
        (member(FocusPolicy::ALL), key_action(), of(observe_after())),
    ).prop_map(|(ids, (focus_policy, action, observe_after))| {
        let (session, snapshot_id, tool_call_id, focus_token, expect_element_digest) = ids;
        DispatchKeyParams {
            session, snapshot_id, tool_call_id, focus_token, expect_element_digest, focus_policy, action, observe_after,
        }
    });
    point_dispatches: (
        (session_id(), snapshot_id(), tool_call_id(), digest(), image_point(), of(image_point())),
        (member(OcclusionPolicy::ALL), point_action(), of(observe_after())),
    ).prop_map(|(ids, (occlusion_policy, action, observe_after))| {
        let (session, snapshot_id, tool_call_id, expect_window_digest, point, start_point) = ids;
        let start_point = start_point.filter(|_| action == maka_cu_protocol::action::PointAction::Drag);
        DispatchPointParams {
            session, snapshot_id, tool_call_id, expect_window_digest, point, start_point, space: Space::ImagePx,
            occlusion_policy, action, observe_after,
        }
    });
    screen_captures_asked: (session_id(), of(display_id()))
        .prop_map(|(session, display_id)| ScreenCaptureParams { session, display_id });
    streams_asked: (session_id(), observe_target(), finite(), member(ImageFormat::ALL))
        .prop_map(|(session, target, max_fps, format)| CaptureStartParams { session, target, max_fps, format });
    stream_reads: (stream_id(), whole(), millis())
        .prop_map(|(stream_id, since_seq, timeout_ms)| CaptureNextParams { stream_id, since_seq, timeout_ms });
    generic_dispatches: (
        (tool_call_id(), session_id(), member(Tier::ALL), of(member(Path::ALL))),
        (of(member(Effect::ALL)), of(member(VerificationMethod::ALL)), generic_routes(), anchors(), of(observe_after())),
    ).prop_map(|((tool_call_id, session, tier, path), rest)| {
        let (wished_effect, wished_verification, route, anchor, observe_after) = rest;
        let path = path.filter(|path| *path != Path::None && tier.allows(*path));
        GenericDispatchParams {
            tool_call_id, session, tier, path, wished_effect, wished_verification, route, anchor, observe_after,
        }
    });
    generic_snapshots_asked: (
        session_id(),
        prop_oneof![
            observe_target().prop_map(GenericTarget::Target),
            any::<u32>().prop_map(GenericTarget::Pid),
            Just(GenericTarget::Unnamed),
        ],
        any::<bool>(),
        (bounds(), bounds(), bounds(), of(menu_scope()), of(display_id())),
    ).prop_map(|(session, target, include_tree, (max_elements, max_depth, max_text_chars, menu, display_id))| {
        GenericSnapshotParams {
            session, target, include_tree, include_image: true, max_elements, max_depth, max_text_chars, menu,
            display_id,
        }
    });
}

/// Reads `value` with every reader there is.
fn read_everything(value: &Value) {
    macro_rules! read {
        ($($type:ty),+ $(,)?) => { $( if let Ok(read) = <$type>::read(value) { drop(read.write()); } )+ };
    }
    read! {
        HelloParams, SessionBeginParams, SessionEndParams, WindowListParams, AppsListParams, LaunchParams,
        ObserveParams, DispatchElementParams, DispatchKeyParams, DispatchPointParams, ScreenCaptureParams,
        PermissionsCheckParams, CaptureStartParams, CaptureNextParams, CaptureStopParams, GenericDispatchParams,
        GenericSnapshotParams, Answer<Handshake>, Answer<Done>, Answer<SessionEnded>, Answer<WindowList>,
        Answer<AppList>, Answer<Launched>, Answer<Observed>, Answer<ScreenCaptured>, Answer<Permissions>,
        Answer<GenericSnapshot>, Answer<CaptureStarted>, Answer<CapturedFrames>, Answer<CaptureStopped>,
        DispatchAnswer, maka_cu_protocol::rpc::RpcError,
    }
    drop(Envelope::read(value.clone()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_json_panics_a_reader(value in json_values()) {
        read_everything(&value);
    }

    /// One field of a valid message replaced by anything: an error or a value, never a panic.
    #[test]
    fn no_damaged_message_panics_a_reader(value in json_values(), pick in any::<prop::sample::Index>()) {
        for sample in [crate::samples::observed(), crate::samples::dispatched(), crate::samples::hello_answer()] {
            let mut pointers = Vec::new();
            collect(&sample, String::new(), &mut pointers);
            let mut damaged = sample.clone();
            *damaged.pointer_mut(pick.get(&pointers).as_str()).unwrap() = value.clone();
            read_everything(&damaged);
        }
    }

    /// The canonical form takes any text, and a difference is reported exactly when the digests differ.
    #[test]
    fn digests_and_changes_agree(first in digest_inputs(), second in digest_inputs()) {
        let changed = changed_inputs(&first, &second);
        prop_assert_eq!(changed.is_empty(), element_digest(&first) == element_digest(&second), "{:?}", changed);
        prop_assert!(changed_inputs(&first, &first).is_empty());
    }

    /// The order in which elements are read does not matter; their number does.
    #[test]
    fn window_digests_sort(digests in vec(digest(), 0..5), bounds in screen_rect(), title in of(text())) {
        let mut reversed = digests.clone();
        reversed.reverse();
        let digest = window_digest(digests.clone(), bounds, title.as_deref());
        prop_assert_eq!(digest, window_digest(reversed, bounds, title.as_deref()));
        if let Some(first) = digests.first() {
            let doubled = digests.iter().copied().chain([*first]);
            prop_assert_ne!(digest, window_digest(doubled, bounds, title.as_deref()));
        }
    }
}

fn collect(value: &Value, prefix: String, pointers: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(name, value)| collect(value, format!("{prefix}/{name}"), pointers));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| collect(value, format!("{prefix}/{index}"), pointers));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    pointers.push(prefix);
}

fn digest_inputs() -> impl Strategy<Value = ElementDigestInput> {
    let few = || proptest::sample::select(vec!["a", "b", "a\",\"b", "null", ""]);
    let texts = (few(), of(few()), of(few()), of(few()), of(few()), of(few()));
    let actions = vec(member(&[ElementVerb::Press, ElementVerb::Cancel]), 0..2);
    let rest = (of(window_rect()), actions, vec(few(), 0..10), 0_u32..2);
    (texts, rest).prop_map(
        |((role, subrole, ax_identifier, title, label, value), rest)| {
            let (frame, actions, ancestor_roles, sibling_index) = rest;
            ElementDigestInput {
                role: role.to_owned(),
                subrole: subrole.map(str::to_owned),
                ax_identifier: ax_identifier.map(Into::into),
                title: title.map(Into::into),
                label: label.map(Into::into),
                value_digest: value.map(value_digest),
                frame,
                actions,
                ancestor_roles: ancestor_roles.into_iter().map(str::to_owned).collect(),
                sibling_index,
            }
        },
    )
}
