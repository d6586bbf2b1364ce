//! How long a Snapshot takes through the whole path: the embedded desktop's dialog, and, where a Linux desktop
//! can be started, a real `zenity` and a window of 500 elements.

use std::time::Instant;

use integration_tests::{
    client::{Client, reason},
    desktop::{BIG_WINDOW, ZENITY_ENTRY},
    gateway::{Executor, GatewayOptions, GatewayProcess},
};
use maka_proto::v1::{
    ImageDelivery, LaunchAppRequest, SnapshotRequest, WindowRef, snapshot_request,
};

use crate::distribution::{Distribution, Report};

const SAMPLES: usize = 50;

pub(crate) async fn embedded(report: &mut Report) {
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Virtual)).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let window = launch(&agent, &session_id, "org.maka.TestEntry").await;
    for (what, image) in [
        ("tree", ImageDelivery::None),
        ("tree and picture", ImageDelivery::Reference),
    ] {
        let name = format!("Snapshot of the embedded dialog, {what}");
        measure(report, &name, &agent, (&session_id, window), image).await;
    }
    gateway.stop().await;
}

/// Needs the programs of a Linux desktop; says what is missing where they are not there.
pub(crate) async fn real_programs(report: &mut Report) {
    let desktop = match integration_tests::desktop::start() {
        Ok(desktop) => desktop,
        Err(why) => {
            report.left_out("Snapshot of zenity and of 500 elements", &why);
            return;
        }
    };
    let gateway =
        GatewayProcess::serving(GatewayOptions::new(Executor::Linux(desktop.env()))).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    for (app, what) in [
        (ZENITY_ENTRY, "zenity --entry"),
        (BIG_WINDOW, "a GTK window of 500 elements"),
    ] {
        let window = launch(&agent, &session_id, app).await;
        for (detail, image) in [
            ("tree", ImageDelivery::None),
            ("tree and picture", ImageDelivery::Reference),
        ] {
            let name = format!("Snapshot of {what}, {detail}");
            measure(report, &name, &agent, (&session_id, window), image).await;
        }
    }
    gateway.stop().await;
    desktop.stop();
}

async fn launch(agent: &Client, session_id: &str, app: &str) -> WindowRef {
    let request = LaunchAppRequest {
        session_id: session_id.into(),
        tool_call_id: app.into(),
        app: app.into(),
        wait_for_window_ms: Some(20_000),
        turn: None,
    };
    let answer = agent
        .computer_use
        .clone()
        .launch_app(request)
        .await
        .expect("launched")
        .into_inner();
    let launched = answer
        .launched
        .unwrap_or_else(|| panic!("{app} did not start: {:?}", answer.error));
    WindowRef {
        pid: launched.pid,
        window_id: launched.windows[0].window_id,
    }
}

/// Observes again and again and reports the times, or why that was not possible.
async fn measure(
    report: &mut Report,
    name: &str,
    agent: &Client,
    (session_id, window): (&str, WindowRef),
    image: ImageDelivery,
) {
    let mut samples = Distribution::default();
    for _ in 0..SAMPLES {
        let request = SnapshotRequest {
            session_id: session_id.into(),
            image: image.into(),
            target: Some(snapshot_request::Target::Window(window)),
            ..Default::default()
        };
        let began = Instant::now();
        if let Err(status) = agent.computer_use.clone().snapshot(request).await {
            report.left_out(name, &format!("a look failed: {}", reason(&status)));
            return;
        }
        samples.push(began.elapsed());
    }
    report.times(name, &samples);
}
