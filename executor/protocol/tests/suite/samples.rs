//! Valid messages in their wire spelling, written by hand from the protocol text: a second opinion beside the writers.

use std::path::Path;

use maka_cu_protocol::{
    ids::ToolCallId,
    results::{ObserveExpectation, dispatch::DispatchExpectation},
};
use serde_json::{Value, json};

/// Where the samples' images lie.
pub(crate) const IMAGE_DIR: &str = "/abs/images";

/// A well-formed hash.
pub(crate) const HASH: &str =
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

pub(crate) fn image() -> Value {
    json!({
        "path": "/abs/images/i1.png", "format": "png", "widthPx": 1800, "heightPx": 1200, "byteLength": 9000,
        "sha256": HASH, "scale": 2.0
    })
}

pub(crate) fn element(token: &str, stable_id: u64, parent: Option<&str>) -> Value {
    let mut element = json!({
        "token": token, "stableId": stable_id, "depth": u32::from(parent.is_some()), "role": "AXButton",
        "subrole": "", "axIdentifier": "id", "title": "Save", "label": "", "value": "", "placeholder": "p",
        "enabled": true, "focused": false, "selected": false,
        "frame": {"x": 1.5, "y": 2, "width": 30, "height": 20},
        "actions": ["press", "show_menu"], "digest": HASH, "truncated": ["title"]
    });
    if let Some(parent) = parent {
        element["parentToken"] = json!(parent);
    }
    element
}

pub(crate) fn snapshot() -> Value {
    json!({
        "snapshotId": "snap_1", "capturedAt": 1_700_000_000_000_u64,
        "target": {
            "pid": 5021, "windowId": 318, "appId": "org.example.Notes", "appName": "Notes", "title": "Untitled",
            "bounds": {"x": -40, "y": 60, "width": 900, "height": 600}, "layer": 0, "zIndex": 7, "displayId": "1"
        },
        "windowDigest": HASH, "focusedElementToken": "el_2",
        "selectedText": {"text": "abc", "truncated": false},
        "image": image(),
        "displays": [{
            "displayId": "1", "logicalBounds": {"x": 0, "y": 0, "width": 1440, "height": 900},
            "sourceBoundsPx": {"x": 0, "y": 0, "width": 2880, "height": 1800}, "scaleFactor": 2
        }],
        "obscuringRects": [{"x": 0, "y": 0, "width": 10, "height": 10}],
        "elements": [element("el_1", 0, None), element("el_2", 21, Some("el_1"))],
        "truncated": {"elements": false, "depth": true},
        "difference": {
            "baseSnapshotId": "snap_0", "presentation": "difference",
            "changes": [
                {"kind": "remove", "path": [0, 0], "stableId": 5},
                {"kind": "update", "path": [0, 0], "stableId": 21, "token": "el_2"}
            ],
            "removedStableIdRanges": [{"start": 5, "end": 7}]
        },
        "menu": {"elements": [menu_element()], "truncated": {"elements": false, "depth": false}}
    })
}

fn menu_element() -> Value {
    let mut element = element("el_m", 900, None);
    element.as_object_mut().unwrap().remove("frame");
    element
}

pub(crate) fn observed() -> Value {
    json!({"ok": true, "snapshot": snapshot()})
}

pub(crate) fn observe_expectation() -> ObserveExpectation<'static> {
    ObserveExpectation {
        image_dir: Path::new(IMAGE_DIR),
        image: false,
        window: None,
    }
}

pub(crate) fn dispatched() -> Value {
    json!({
        "ok": true, "toolCallId": "call_1", "outcome": "ok", "tier": "ax", "path": "ax_action", "effect": "confirmed",
        "verification": {"method": "tree_delta", "observedChange": true},
        "settle": {"waitedMs": 412, "quiesced": true, "reason": "quiesced"}, "snapshot": snapshot()
    })
}

pub(crate) fn dispatch_refused() -> Value {
    json!({
        "ok": false, "toolCallId": "call_1", "outcome": "refused", "tier": "ax", "path": "none",
        "effect": "unverifiable", "verification": {"method": "none", "observedChange": false},
        "error": {
            "code": "element_changed", "message": "Some sentence.",
            "detail": {
                "changed": ["value"], "wouldRequirePath": "cg_event_global", "permission": "accessibility",
                "bytes": 10, "limit": 5
            }
        }
    })
}

/// What the samples of dispatch results answer.
pub(crate) fn dispatch_expectation(tool_call_id: &ToolCallId) -> DispatchExpectation<'_> {
    DispatchExpectation {
        tool_call_id,
        allow_global_pointer: false,
        pid: Some(5021),
        image_dir: Path::new(IMAGE_DIR),
        tier: None,
        path: None,
    }
}

pub(crate) fn call_id() -> ToolCallId {
    ToolCallId::try_new("call_1").unwrap()
}

pub(crate) fn window_list() -> Value {
    json!({"ok": true, "windows": [{
        "pid": 5021, "windowId": 318, "appId": "org.example.Notes", "appName": "Notes", "title": "Untitled",
        "bounds": {"x": 40, "y": 60, "width": 900, "height": 600}, "layer": 0, "zIndex": 7, "onScreen": true,
        "displayId": "1"
    }]})
}

pub(crate) fn app_list() -> Value {
    json!({"ok": true, "apps": [
        {"appId": "org.example.Notes", "pid": 5021, "name": "Notes", "windowCount": 2, "running": true}
    ]})
}

pub(crate) fn launched() -> Value {
    json!({
        "ok": true, "pid": 5021, "appId": "org.example.Notes", "name": "Notes", "foregroundTaken": false,
        "windows": [{"windowId": 318, "title": "Untitled"}], "waited": {"ms": 1850, "reason": "window_appeared"}
    })
}

pub(crate) fn captured() -> Value {
    json!({"ok": true, "image": image(), "displayId": "1", "capturedAt": 5})
}

pub(crate) fn session_ended() -> Value {
    json!({"ok": true, "released": {"snapshots": 3, "images": 3, "streams": 0}})
}

pub(crate) fn hello_answer() -> Value {
    json!({
        "ok": true, "protocol": "maka.cu/2", "executor": {"name": "maka-cu", "version": "0.1.0", "commit": "abc"},
        "pid": 77,
        "capabilities": {
            "captureStream": false, "elementActions": ["click", "set_value"], "pointActions": ["move"],
            "keyActions": ["type"], "imageFormats": ["png"], "genericMethods": ["host.dispatch"]
        },
        "limits": {
            "snapshotsPerSession": 8, "snapshotTtlMs": 120_000, "maxElements": 1500, "maxDepth": 64,
            "maxTextChars": 500, "maxResponseBytes": 1_048_576, "settleCeilingMs": 2500, "shutdownGraceMs": 3000,
            "imageDirBudgetBytes": 268_435_456, "treeWalkCeilingMs": 6000, "maxMenuElements": 500,
            "menuWalkCeilingMs": 1500, "notALimitWeKnow": 0
        }
    })
}
