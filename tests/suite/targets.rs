//! Which window is observed: exactly the one that is named, or none.

use integration_tests::{
    client::reason,
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::{ListWindowsRequest, WindowRef};
use tonic::Code;

/// Spec maka-cu §12.3 row 40. A window belongs to its process: the pair names exactly that window, also one that is not in front; a
/// pair that does not agree names none, and no other window of either is taken for it. An application is named by its id and by
/// nothing else.
#[tokio::test]
async fn a_pair_that_does_not_agree_names_no_window() {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let request = ListWindowsRequest {
        session_id: session_id.clone(),
    };
    let listed = agent.computer_use.clone().list_windows(request).await;
    let windows = listed.expect("windows").into_inner().windows;
    let pair = |index: usize| windows[index].window.expect("always there");
    let other = windows
        .iter()
        .position(|window| window.app_id != windows[0].app_id)
        .expect("another application");
    for (window, listed) in windows.iter().map(|it| (it.window.expect("a pair"), it)) {
        let frame = agent.snapshot_window(&session_id, window).await;
        let target = frame.expect("a frame").target.expect("always there");
        assert_eq!(target.window, Some(window));
        assert_eq!(target.app_id, listed.app_id);
    }
    let crossed = WindowRef {
        pid: pair(other).pid,
        window_id: pair(0).window_id,
    };
    let nowhere = WindowRef {
        window_id: windows
            .iter()
            .filter_map(|it| it.window)
            .map(|it| it.window_id)
            .max()
            .expect("windows")
            + 1,
        ..pair(0)
    };
    for window in [crossed, nowhere] {
        let refused = agent.snapshot_window(&session_id, window).await;
        let refused = refused.expect_err("no such window");
        assert_eq!(refused.code(), Code::NotFound, "{window:?}");
        assert_eq!(
            reason(&refused),
            "executor.protocol/window_gone",
            "{window:?}"
        );
    }
    let name = windows[0].app_name.as_deref().expect("a name");
    assert_ne!(name, windows[0].app_id);
    let refused = agent.snapshot_app(&session_id, name).await;
    let refused = refused.expect_err("a name is no id");
    assert_eq!(refused.code(), Code::NotFound);
    gateway.stop().await;
}
