//! Points, keys and window actions through the whole path, on the embedded desktop: what was meant happens, where it was
//! meant to, and what may not happen is refused by name.

use integration_tests::{
    client::{Client, element, first, on_element, on_focus, on_point, reason},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::{
    DispatchRequest, DispatchResult, Effect, Element, FocusPolicy, ImageDelivery, MoveWindow,
    ObserveAfter, Outcome, Path, Point, PointerClick, PointerDrag, PointerMove, PressKey, Scroll,
    SelectText, Snapshot, TypeText, VerificationMethod, dispatch_request::Action,
};

async fn desktop() -> (GatewayProcess, Client, String) {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    (gateway, agent, session_id)
}

/// The same request with a settled frame asked for.
fn seen(request: DispatchRequest) -> DispatchRequest {
    DispatchRequest {
        observe_after: Some(ObserveAfter {
            image: ImageDelivery::Reference.into(),
            settle: true,
            menu: None,
        }),
        ..request
    }
}

/// The pixel of the snapshot's picture in the middle of an element.
fn middle(snapshot: &Snapshot, element: &Element) -> (f64, f64) {
    let frame = element.frame_window.as_ref().expect("it has a place");
    let scale = snapshot.image.as_ref().expect("a picture").scale;
    (
        (frame.x + frame.width / 2.0) * scale,
        (frame.y + frame.height / 2.0) * scale,
    )
}

fn done(result: Result<DispatchResult, tonic::Status>, path: Path) -> (DispatchResult, Snapshot) {
    let result = result.expect("allowed");
    assert_eq!(result.outcome(), Outcome::Ok, "{:?}", result.error);
    assert_eq!(result.path(), path);
    let snapshot = result.snapshot.clone().expect("a frame was asked for");
    (result, snapshot)
}

#[tokio::test]
async fn a_click_at_a_pixel_presses_what_is_there() {
    let (gateway, agent, session_id) = desktop().await;
    let frame = agent.snapshot_app(&session_id, "org.maka.Settings").await;
    let frame = frame.expect("a frame");
    let box_ = element(&frame, "AXCheckBox", "Start at login");
    assert_eq!(box_.selected, Some(false));
    let click = Action::PointerClick(PointerClick::default());
    let request = seen(on_point(
        &session_id,
        "1",
        &frame,
        middle(&frame, box_),
        click,
    ));
    let (result, after) = done(agent.dispatch(request).await, Path::CgEventPid);
    assert_eq!(result.effect(), Effect::Confirmed, "the tree changed");
    let verification = result.verification.expect("always there");
    assert_eq!(verification.method(), VerificationMethod::TreeDelta);
    assert_eq!(
        element(&after, "AXCheckBox", "Start at login").selected,
        Some(true)
    );

    // A drag along the slider moves it.
    let slider = first(&after, "AXSlider");
    let (before, place) = (slider.value.clone(), middle(&after, slider));
    let mut request = on_point(&session_id, "2", &after, (place.0 + 60.0, place.1), {
        Action::PointerDrag(PointerDrag {})
    });
    if let Some(maka_proto::v1::dispatch_request::Target::Point(point)) = &mut request.target {
        point.start = Some(Point {
            x: place.0,
            y: place.1,
        });
    }
    let (_, last) = done(agent.dispatch(seen(request)).await, Path::CgEventPid);
    assert_ne!(first(&last, "AXSlider").value, before);
    gateway.stop().await;
}

#[tokio::test]
async fn keys_go_to_the_element_that_was_named() {
    let (gateway, agent, session_id) = desktop().await;
    let frame = agent.snapshot_app(&session_id, "org.maka.Notes").await;
    let frame = frame.expect("a frame");
    let title = element(&frame, "AXTextField", "Title");
    let type_ = |text: &str| Action::TypeText(TypeText { text: text.into() });
    if !title.focused {
        let request = on_focus(
            &session_id,
            "require",
            &frame,
            title,
            FocusPolicy::Require,
            type_("x"),
        );
        let refused = agent.dispatch(request).await.expect("allowed");
        assert_eq!(refused.outcome(), Outcome::Refused);
        assert_eq!(refused.error.expect("why").code, "focus_changed");
    }
    let all = Action::PressKey(PressKey {
        key: "cmd+a".into(),
        modifiers: Vec::new(),
    });
    let acquire = FocusPolicy::Acquire;
    let request = on_focus(&session_id, "all", &frame, title, acquire, all);
    let (_, frame) = done(agent.dispatch(seen(request)).await, Path::CgEventPid);
    let title = element(&frame, "AXTextField", "Title");
    assert!(title.focused);
    let request = on_focus(
        &session_id,
        "type",
        &frame,
        title,
        acquire,
        type_("Grüße, 世界"),
    );
    let (result, frame) = done(agent.dispatch(seen(request)).await, Path::CgEventPid);
    assert_eq!(
        element(&frame, "AXTextField", "Title").value.as_deref(),
        Some("Grüße, 世界"),
        "everything was selected, so it was replaced"
    );
    assert_eq!(result.effect(), Effect::Confirmed);
    let verification = result.verification.expect("always there");
    assert_eq!(verification.method(), VerificationMethod::ValueReadback);

    let title = element(&frame, "AXTextField", "Title");
    let select = Action::SelectText(SelectText {
        text: "世界".into(),
    });
    let request = on_element(&session_id, "select", &frame, title, select);
    let (result, frame) = done(agent.dispatch(request).await, Path::AxAttribute);
    assert_eq!(result.effect(), Effect::Confirmed);
    let selected = frame.selected_text.expect("it is told");
    assert_eq!(selected.text, "世界");
    gateway.stop().await;
}

#[tokio::test]
async fn a_window_is_moved_and_says_so() {
    let (gateway, agent, session_id) = desktop().await;
    let frame = agent.snapshot_app(&session_id, "org.maka.Notes").await;
    let frame = frame.expect("a frame");
    let root = frame.elements.first().expect("the root");
    let bounds = frame.target.as_ref().expect("a target").bounds_screen;
    let bounds = bounds.expect("its bounds");
    let (x, y) = (bounds.x + 24.0, bounds.y + 12.0);
    let action = Action::MoveWindow(MoveWindow {
        position_screen: Some(Point { x, y }),
    });
    let request = on_element(&session_id, "move", &frame, root, action);
    let (result, after) = done(agent.dispatch(request).await, Path::AxAttribute);
    assert_eq!(result.effect(), Effect::Confirmed);
    let bounds = after.target.expect("a target").bounds_screen;
    let bounds = bounds.expect("its bounds");
    assert_eq!((bounds.x, bounds.y), (x, y));
    gateway.stop().await;
}

/// C1, C2 kind: the pointer of the person at the desktop is moved for nobody who was not allowed to.
#[tokio::test]
async fn the_pointer_stays_where_it_is() {
    let (gateway, agent, session_id) = desktop().await;
    let frame = agent.snapshot_app(&session_id, "org.maka.Notes").await;
    let frame = frame.expect("a frame");
    let action = Action::PointerMove(PointerMove {});
    let request = on_point(&session_id, "move", &frame, (5.0, 5.0), action);
    match agent.dispatch(request).await {
        Ok(refused) => {
            assert_eq!(refused.outcome(), Outcome::Refused);
            assert_eq!(refused.path(), Path::None);
        }
        Err(status) => assert!(!reason(&status).is_empty(), "{status:?}"),
    }
    gateway.stop().await;
}

/// A list goes by itself, without the wheel: the tier is demanded, and the executor is held to it.
#[tokio::test]
async fn a_list_scrolls_by_pages() {
    let lists = include_str!("../../executor/examples/desktops/lists.toml");
    let options = GatewayOptions::new(Executor::Scenario(lists.to_owned()));
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, "org.example.Lists").await;
    let frame = frame.expect("a frame");
    let list = element(&frame, "AXList", "Messages");
    let action = Action::Scroll(Scroll {
        direction: maka_proto::v1::ScrollDirection::Down.into(),
        pages: Some(1.0),
    });
    let request = on_element(&session_id, "scroll", &frame, list, action);
    let (result, _) = done(agent.dispatch(request).await, Path::AxAction);
    assert_eq!(result.effect(), Effect::Confirmed, "other rows are in view");
    gateway.stop().await;
}
