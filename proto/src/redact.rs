//! `Debug` for the messages that carry application text, typed text, image bytes or settings of policies: the message's name
//! and nothing else. `build.rs` lists the same messages so that prost writes no `Debug` for them.

use std::fmt;

use crate::v1;

macro_rules! redacted {
    ($($message:ident),+ $(,)?) => {
        $(impl fmt::Debug for v1::$message {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($message)).finish_non_exhaustive()
            }
        })+
    };
}

redacted!(
    ActivatePolicyRequest,
    App,
    Approval,
    Element,
    EvaluatePolicyRequest,
    Image,
    LaunchAppRequest,
    Launched,
    LaunchedWindow,
    MenuRequest,
    ModuleChoice,
    PolicyCandidate,
    PressKey,
    ReadImageResponse,
    SelectText,
    SelectedText,
    SetValue,
    SnapshotTarget,
    TypeText,
    Window,
);

#[cfg(test)]
mod tests {
    use super::v1;

    /// E10: what a person typed or saw never reaches a log line by way of `{:?}`.
    #[test]
    fn debug_of_a_dispatch_holds_no_typed_text() {
        let request = v1::DispatchRequest {
            tool_call_id: "call-1".into(),
            action: Some(v1::dispatch_request::Action::SetValue(v1::SetValue {
                value: "hunter2-canary".into(),
            })),
            ..Default::default()
        };
        let printed = format!("{request:?}");
        assert!(printed.contains("call-1"), "{printed}");
        assert!(!printed.contains("hunter2"), "{printed}");
    }

    /// A policy may keep a secret in its settings.
    #[test]
    fn debug_of_an_activation_holds_no_settings() {
        let choice = v1::ModuleChoice {
            settings_json: "canary".into(),
            ..Default::default()
        };
        let candidate = v1::PolicyCandidate {
            modules: vec![choice.clone()],
            floor_settings_json: "canary".into(),
        };
        let request = v1::ActivatePolicyRequest {
            floor_settings_json: "canary".into(),
            modules: vec![choice],
            ..Default::default()
        };
        let question = v1::EvaluatePolicyRequest {
            candidate: Some(candidate.clone()),
            ..Default::default()
        };
        let printed = format!("{candidate:?} {request:?} {question:?}");
        assert!(!printed.contains("canary"), "{printed}");
    }

    #[test]
    fn debug_of_a_snapshot_holds_no_application_text() {
        let snapshot = v1::Snapshot {
            elements: vec![v1::Element {
                token: "el_1".into(),
                value: Some("canary".into()),
                ..Default::default()
            }],
            ..Default::default()
        };
        assert!(!format!("{snapshot:?}").contains("canary"));
    }
}
