//! The answer each request gets when no script says otherwise.

use maka_cu_protocol::action::{ElementAction, KeyAction};
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::generic::{GenericDispatchParams, GenericSnapshotParams};
use maka_cu_protocol::handshake::{Capabilities, ExecutorIdentity, Handshake, HelloParams, Limits};
use maka_cu_protocol::ids::{Millis, SessionId, SnapshotId, ToolCallId};
use maka_cu_protocol::json::Json;
use maka_cu_protocol::method::{Method, PROTOCOL};
use maka_cu_protocol::params::{
    DispatchElementParams, DispatchKeyParams, DispatchPointParams, LaunchParams, ObserveAfter,
    ObserveParams, ObserveTarget, ScreenCaptureParams, SessionBeginParams, SessionEndParams,
    WindowListParams,
};
use maka_cu_protocol::refusal::Refusal;
use maka_cu_protocol::results::dispatch::{
    DispatchAnswer, Ending, PostFrame, Settle, Verification,
};
use maka_cu_protocol::results::lists::{AppEntry, AppList, WindowEntry, WindowList};
use maka_cu_protocol::results::{
    Answer, Done, Launched, LaunchedWindow, Observed, Permissions, Released, ScreenCaptured,
    SessionEnded, Waited,
};
use maka_cu_protocol::rpc::{RpcCode, RpcError};
use maka_cu_protocol::sets::{
    Effect, ElementActionKind, ImageFormat, KeyActionKind, Path, PointActionKind,
    ScreenRecordingProbe, SettleMode, SettleReason, Tier, VerificationMethod, WaitedReason,
};
use maka_cu_protocol::text::AppText;
use serde_json::Value;

use crate::executor::Executor;
use crate::world::{self, World};

/// The default `result` or RPC error of a request.
pub(crate) fn answer(
    executor: &Executor,
    method: Method,
    params: &Value,
) -> Result<Value, RpcError> {
    match method {
        Method::HostHello => hello(executor, params),
        Method::SessionBegin => {
            let params = SessionBeginParams::from_value(params)?;
            if executor.world().begin(params.session) {
                done(Done)
            } else {
                Err(RpcError::invalid_params("session"))
            }
        }
        Method::SessionEnd => {
            let released = executor
                .world()
                .end(&SessionEndParams::from_value(params)?.session);
            let (snapshots, images) = (released.snapshots, released.images);
            done(SessionEnded {
                released: Released {
                    snapshots,
                    images,
                    streams: 0,
                },
            })
        }
        Method::WindowList => {
            let world = live(executor, &WindowListParams::from_value(params)?.session)?;
            done(WindowList {
                windows: vec![window(&world)],
            })
        }
        Method::AppsList => done(AppList { apps: vec![app()] }),
        Method::AppsLaunch => launch(executor, &LaunchParams::from_value(params)?),
        Method::Observe => observe(executor, &ObserveParams::from_value(params)?),
        Method::DispatchElement => {
            let params = DispatchElementParams::from_value(params)?;
            let mut world = live(executor, &params.session)?;
            Ok(element(&mut world, params).write())
        }
        Method::DispatchKey => {
            let params = DispatchKeyParams::from_value(params)?;
            let mut world = live(executor, &params.session)?;
            Ok(key(&mut world, params).write())
        }
        Method::DispatchPoint => {
            let params = DispatchPointParams::from_value(params)?;
            let mut world = live(executor, &params.session)?;
            Ok(point(&mut world, params).write())
        }
        Method::ScreenCapture => {
            let params = ScreenCaptureParams::from_value(params)?;
            if params
                .display_id
                .is_some_and(|display| display != world::display_id())
            {
                return Err(RpcError::invalid_params("displayId"));
            }
            let image = live(executor, &params.session)?.capture(&params.session);
            done(ScreenCaptured {
                image,
                display_id: world::display_id(),
                captured_at: world::now(),
            })
        }
        Method::PermissionsCheck => done(Permissions {
            accessibility: true,
            screen_recording: true,
            screen_recording_probe: Some(ScreenRecordingProbe::CaptureSucceeded),
        }),
        Method::CaptureStart | Method::CaptureNext | Method::CaptureStop => {
            refused(DomainCode::NotImplemented)
        }
        // Not advertised; a script that wants them answers them itself.
        Method::HostDispatch => {
            GenericDispatchParams::from_value(params)?;
            Err(RpcError::new(RpcCode::UnknownMethod))
        }
        Method::HostSnapshot => {
            GenericSnapshotParams::from_value(params)?;
            Err(RpcError::new(RpcCode::UnknownMethod))
        }
    }
}

/// A refusal of any method; a dispatch gets its full arm.
pub(crate) fn refusal(method: Method, params: &Value, code: DomainCode) -> Value {
    let tool_call_id = params
        .get("toolCallId")
        .and_then(Value::as_str)
        .and_then(|id| ToolCallId::try_new(id).ok());
    match tool_call_id {
        Some(id) if method.is_dispatch() => DispatchAnswer::refused(id, tier(method), code).write(),
        Some(_) | None => Answer::<Done>::Refused(Refusal::new(code)).write(),
    }
}

/// The handshake without the script's changes.
pub(crate) fn handshake() -> Handshake {
    Handshake {
        protocol: PROTOCOL.to_owned(),
        executor: ExecutorIdentity {
            name: "fake-executor".to_owned(),
            version: "1.0.0".to_owned(),
            commit: None,
        },
        pid: std::process::id(),
        capabilities: Capabilities {
            capture_stream: false,
            element_actions: ElementActionKind::ALL.to_vec(),
            point_actions: PointActionKind::ALL.to_vec(),
            key_actions: KeyActionKind::ALL.to_vec(),
            image_formats: vec![ImageFormat::Png],
            generic_methods: None,
        },
        limits: Limits::default(),
    }
}

fn hello(executor: &Executor, params: &Value) -> Result<Value, RpcError> {
    if !HelloParams::speaks_our_protocol(params)? {
        return Err(RpcError::version_mismatch());
    }
    let params = HelloParams::from_value(params)?;
    executor
        .world()
        .set_image_dir(params.image_dir.as_path().to_owned());
    let mut result = Answer::Done(handshake()).write();
    let script = &executor.script;
    for (part, changes) in [
        ("limits", &script.limits),
        ("capabilities", &script.capabilities),
    ] {
        for (name, value) in changes {
            result[part][name] = value.clone();
        }
    }
    Ok(result)
}

fn done<T: Json>(value: T) -> Result<Value, RpcError> {
    Ok(Answer::Done(value).write())
}

fn refused(code: DomainCode) -> Result<Value, RpcError> {
    Ok(Answer::<Done>::Refused(Refusal::new(code)).write())
}

fn live<'a>(
    executor: &'a Executor,
    session: &SessionId,
) -> Result<std::sync::MutexGuard<'a, World>, RpcError> {
    let world = executor.world();
    if world.is_live(session) {
        Ok(world)
    } else if world.is_ending() {
        Err(RpcError::new(RpcCode::ShuttingDown))
    } else {
        Err(RpcError::new(RpcCode::SessionUnknown))
    }
}

fn window(world: &World) -> WindowEntry {
    WindowEntry {
        pid: world::PID,
        window_id: world::WINDOW_ID,
        app_id: world::app_id(),
        layer: 0,
        z_index: 7,
        on_screen: true,
        app_name: Some(AppText::new(world::APP_NAME)),
        title: Some(AppText::new(world.title())),
        bounds: Some(world::bounds()),
        display_id: Some(world::display_id()),
    }
}

fn app() -> AppEntry {
    AppEntry {
        app_id: world::app_id(),
        pid: world::PID,
        window_count: 1,
        name: Some(AppText::new(world::APP_NAME)),
        running: Some(true),
    }
}

fn launch(executor: &Executor, params: &LaunchParams) -> Result<Value, RpcError> {
    let world = live(executor, &params.session)?;
    if params.app.as_str() != world::APP_ID && params.app.as_str() != world::APP_NAME {
        return refused(DomainCode::AppNotFound);
    }
    let reason = if params.wait_for_window_ms.is_some() {
        WaitedReason::WindowAppeared
    } else {
        WaitedReason::NotRequested
    };
    done(Launched {
        pid: world::PID,
        app_id: world::app_id(),
        name: Some(AppText::new(world::APP_NAME)),
        foreground_taken: false,
        windows: vec![LaunchedWindow {
            window_id: world::WINDOW_ID,
            title: Some(AppText::new(world.title())),
        }],
        waited: Waited {
            ms: Millis(1),
            reason,
        },
    })
}

fn observe(executor: &Executor, params: &ObserveParams) -> Result<Value, RpcError> {
    let mut world = live(executor, &params.session)?;
    params.check_limits(&Limits::default())?;
    match &params.target {
        ObserveTarget::App(app) if *app != world::app_id() => {
            return refused(DomainCode::AppNotFound);
        }
        ObserveTarget::Window(window)
            if window.pid != world::PID || window.window_id != world::WINDOW_ID =>
        {
            return refused(DomainCode::WindowGone);
        }
        ObserveTarget::App(_) | ObserveTarget::Window(_) => {}
    }
    let snapshot = world.observe(&params.session, params.include_image);
    done(Observed {
        snapshot: Box::new(snapshot),
    })
}

/// What a dispatch did.
struct Deed {
    tier: Tier,
    path: Path,
    changed: bool,
    method: VerificationMethod,
    effect: Effect,
}

fn element(world: &mut World, params: DispatchElementParams) -> DispatchAnswer {
    let DispatchElementParams {
        session,
        snapshot_id,
        tool_call_id,
        element_token,
        action,
        observe_after,
        ..
    } = params;
    let fit = world
        .check(&session, &snapshot_id)
        .and_then(|()| world.check_token(&session, &snapshot_id, &element_token));
    if let Err(code) = fit {
        return DispatchAnswer::refused(tool_call_id, Tier::Ax, code);
    }
    let settled = settles(observe_after.as_ref());
    let deed = match action {
        ElementAction::SetValue { value } => {
            let changed = world.write(value.as_str());
            let effect = if changed {
                Effect::Confirmed
            } else {
                Effect::SuspectedNoop
            };
            Deed {
                tier: Tier::Ax,
                path: Path::AxAttribute,
                changed,
                method: VerificationMethod::ValueReadback,
                effect,
            }
        }
        ElementAction::Click { .. }
        | ElementAction::SecondaryAction { .. }
        | ElementAction::Scroll { .. } => {
            let changed = world.press(&session, &snapshot_id, &element_token);
            seen(Tier::Ax, Path::AxAction, changed, settled)
        }
        ElementAction::SelectText { .. } => Deed {
            tier: Tier::Ax,
            path: Path::AxAttribute,
            changed: true,
            method: VerificationMethod::SelectionReadback,
            effect: Effect::Confirmed,
        },
        ElementAction::MoveWindow { .. }
        | ElementAction::ResizeWindow { .. }
        | ElementAction::MinimizeWindow => Deed {
            tier: Tier::Ax,
            path: Path::AxAttribute,
            changed: false,
            method: VerificationMethod::ValueReadback,
            effect: Effect::Unverifiable,
        },
    };
    finished(
        world,
        &session,
        &snapshot_id,
        tool_call_id,
        deed,
        observe_after.as_ref(),
    )
}

fn key(world: &mut World, params: DispatchKeyParams) -> DispatchAnswer {
    let DispatchKeyParams {
        session,
        snapshot_id,
        tool_call_id,
        focus_token,
        action,
        observe_after,
        ..
    } = params;
    let fit = world
        .check(&session, &snapshot_id)
        .and_then(|()| world.check_token(&session, &snapshot_id, &focus_token));
    if let Err(code) = fit {
        return DispatchAnswer::refused(tool_call_id, Tier::CoordinateBackground, code);
    }
    let (tier, path) = (Tier::CoordinateBackground, Path::CgEventPid);
    let deed = match action {
        KeyAction::Type { text } => {
            let changed = world.write(text.as_str());
            Deed {
                tier,
                path,
                changed,
                method: VerificationMethod::ValueReadback,
                effect: Effect::Confirmed,
            }
        }
        KeyAction::Key { .. } => {
            let changed = world.save();
            seen(tier, path, changed, settles(observe_after.as_ref()))
        }
    };
    finished(
        world,
        &session,
        &snapshot_id,
        tool_call_id,
        deed,
        observe_after.as_ref(),
    )
}

fn point(world: &mut World, params: DispatchPointParams) -> DispatchAnswer {
    let DispatchPointParams {
        session,
        snapshot_id,
        tool_call_id,
        observe_after,
        ..
    } = params;
    let tier = Tier::CoordinateBackground;
    if let Err(code) = world.check(&session, &snapshot_id) {
        return DispatchAnswer::refused(tool_call_id, tier, code);
    }
    let changed = world.save();
    let deed = seen(
        tier,
        Path::CgEventPid,
        changed,
        settles(observe_after.as_ref()),
    );
    finished(
        world,
        &session,
        &snapshot_id,
        tool_call_id,
        deed,
        observe_after.as_ref(),
    )
}

/// A deed judged by comparing the window before and after, when settling was asked for.
fn seen(tier: Tier, path: Path, changed: bool, settled: bool) -> Deed {
    let (method, effect) = match (settled, changed) {
        (true, true) => (VerificationMethod::TreeDelta, Effect::Confirmed),
        (true, false) => (VerificationMethod::TreeDelta, Effect::Unverifiable),
        (false, _) => (VerificationMethod::ActionResult, Effect::Unverifiable),
    };
    Deed {
        tier,
        path,
        changed: changed && settled,
        method,
        effect,
    }
}

fn finished(
    world: &mut World,
    session: &SessionId,
    snapshot: &SnapshotId,
    tool_call_id: ToolCallId,
    deed: Deed,
    observe_after: Option<&ObserveAfter>,
) -> DispatchAnswer {
    world.spend(session, snapshot);
    let frame = observe_after.map_or(PostFrame::None, |wish| {
        PostFrame::Taken(Box::new(world.observe(session, wish.include_image)))
    });
    let settle = if settles(observe_after) {
        Settle {
            waited_ms: Millis(1),
            quiesced: true,
            reason: SettleReason::Quiesced,
        }
    } else {
        Settle::NOT_REQUESTED
    };
    DispatchAnswer {
        tool_call_id,
        ending: Ending::Done,
        tier: deed.tier,
        path: deed.path,
        effect: deed.effect,
        verification: Verification {
            method: deed.method,
            observed_change: deed.changed,
        },
        settle: Some(settle),
        frame,
        routed_to: None,
    }
}

fn settles(observe_after: Option<&ObserveAfter>) -> bool {
    observe_after.is_some_and(|wish| wish.settle == SettleMode::Quiesce)
}

const fn tier(method: Method) -> Tier {
    match method {
        Method::DispatchKey | Method::DispatchPoint => Tier::CoordinateBackground,
        Method::DispatchElement
        | Method::HostDispatch
        | Method::HostHello
        | Method::SessionBegin
        | Method::SessionEnd
        | Method::WindowList
        | Method::AppsList
        | Method::AppsLaunch
        | Method::Observe
        | Method::ScreenCapture
        | Method::PermissionsCheck
        | Method::CaptureStart
        | Method::CaptureNext
        | Method::CaptureStop
        | Method::HostSnapshot => Tier::Ax,
    }
}
