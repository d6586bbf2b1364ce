//! Large answers: what the gateway itself takes for a tree of 2,000 nodes, and a picture of 2 MB by `ReadImage`.

use std::{fs, path::Path, time::Instant};

use integration_tests::gateway::{Executor, GatewayOptions, GatewayProcess};
use maka_cu_host::{CallOptions, MakaCuService, Options};
use maka_cu_protocol::{
    ids::{AppId, Digest, SessionId},
    method::Method,
    params::{ObserveParams, ObserveTarget, SessionBeginParams},
    results,
    sets::CaptureScope,
};
use serde_json::json;
use tempfile::TempDir;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::distribution::{Distribution, Report};

const APP: &str = "org.example.Notes";
const SAMPLES: usize = 100;
/// Beside the few that the window has anyway.
const NODES: u32 = 1990;

/// The same observation through the gateway and through the supervisor alone; the difference is the gateway's own.
pub(crate) async fn of_a_large_tree(report: &mut Report) {
    // An executor is held to the limit that it announces.
    let announced = json!({"method": "host.hello", "steps": [
        {"patched": {"set": {"/limits/maxElements": 2 * NODES}}},
    ]});
    let script = json!({"world": {"extra_elements": NODES}, "rules": [announced]});
    let direct = observe_directly(&script).await;
    let mut options = GatewayOptions::new(Executor::Fake(script));
    options.log_level = "info";
    let gateway = GatewayProcess::serving(options).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let mut whole = Distribution::default();
    for _ in 0..SAMPLES {
        let began = Instant::now();
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        whole.push(began.elapsed());
        assert!(frame.elements.len() > 1990, "{}", frame.elements.len());
    }
    gateway.stop().await;
    report.times("Snapshot of 2,000 nodes, through the gateway", &whole);
    report.times("observe of 2,000 nodes, by the supervisor alone", &direct);
    let own = whole.median().saturating_sub(direct.median());
    let own = own.as_secs_f64() * 1e3;
    report.value("  the gateway's own time", own, "ms", "≤ 10 ms");
}

/// The executor's own time, with reading and checking its answer.
async fn observe_directly(script: &serde_json::Value) -> Distribution {
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("script.json"), script.to_string()).expect("written");
    let fake = integration_tests::binaries::path("fake-executor");
    let mut options = Options::new(fake, path("state"), path("images"), "bench");
    options.executor_args = vec!["--script".into(), path("script.json").into()];
    let service = MakaCuService::try_new(options).expect("a service");
    service.ensure_started().await.expect("ready");
    let session = SessionId::try_new("s_bench").expect("an id");
    let begin = SessionBeginParams {
        session: session.clone(),
        capture_scope: CaptureScope::Window,
    };
    let begun = service.call(
        Method::SessionBegin,
        begin.to_value(),
        CallOptions::default(),
    );
    begun.await.expect("begun");
    let target = ObserveTarget::App(AppId::try_new(APP).expect("an id"));
    let params = ObserveParams {
        include_image: true,
        ..ObserveParams::new(session, target)
    };
    let images = path("images");
    let mut samples = Distribution::default();
    for _ in 0..SAMPLES {
        let began = Instant::now();
        let reader = |result: &serde_json::Value| {
            let expected = results::ObserveExpectation {
                image_dir: &images,
                image: false,
                window: None,
            };
            results::read_observe(result, &expected)
        };
        let observed = service.call_typed(
            Method::Observe,
            params.to_value(),
            CallOptions::default(),
            reader,
        );
        observed.await.expect("observed");
        samples.push(began.elapsed());
    }
    service.dispose().await;
    samples
}

pub(crate) async fn of_a_large_picture(report: &mut Report) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("state/images/noise.png");
    let scale = 3.25;
    let (width, height) = (1040, 650);
    let bytes = noise(width, height);
    let script = json!({"rules": [{
        "method": "observe",
        "steps": [{"patched": {"set": {
            "/snapshot/image/path": path,
            "/snapshot/image/byteLength": bytes.len(),
            "/snapshot/image/sha256": Digest::of(&bytes).to_string(),
            "/snapshot/image/widthPx": width,
            "/snapshot/image/heightPx": height,
            "/snapshot/image/scale": scale,
        }}}],
    }]});
    let mut options = GatewayOptions::new(Executor::Fake(script));
    options.log_level = "info";
    let gateway = GatewayProcess::start_in(folder, options).await;
    gateway.wait_for(ServingStatus::Serving).await;
    write(&path, &bytes);
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let image = frame.image.expect("a reference");
    let mut samples = Distribution::default();
    for _ in 0..SAMPLES {
        let began = Instant::now();
        let read = agent.read_image(&session_id, &image).await;
        samples.push(began.elapsed());
        assert_eq!(read.expect("the picture").len(), bytes.len());
    }
    gateway.stop().await;
    let megabytes = bytes.len() as f64 / 1e6;
    report.times(
        &format!("ReadImage of {megabytes:.1} MB, verified"),
        &samples,
    );
    let median = samples.median().as_secs_f64() * 1e3;
    report.value("  median", median, "ms", "≤ 15 ms");
}

fn write(path: &Path, bytes: &[u8]) {
    // The image folder was purged at the start; from here on it is the executor's, and this file with it.
    fs::write(path, bytes).expect("the picture");
}

/// A picture that does not compress.
fn noise(width: u32, height: u32) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let pixels: Vec<u8> = (0..width * height * 3)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        })
        .collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().expect("a header");
    writer.write_image_data(&pixels).expect("pixels");
    writer.finish().expect("an end");
    bytes
}
