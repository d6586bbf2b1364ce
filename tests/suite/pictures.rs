//! Pictures of any size reach a client with default limits: by reference, in chunks (G1).

use std::fs;

use integration_tests::gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE};
use maka_cu_protocol::ids::Digest;
use maka_proto::v1::{ImageAbsence, ImageDelivery, SnapshotRequest, snapshot_request};
use serde_json::json;
use tempfile::TempDir;
use tonic_health::pb::health_check_response::ServingStatus;

const APP: &str = "org.example.Notes";
/// Above the 4 MiB that gRPC clients take by default.
const LENGTH: usize = 6_242_911;

#[tokio::test]
async fn a_picture_above_the_message_limit_arrives_in_chunks() {
    let folder = TempDir::new().expect("a folder");
    let images = folder.path().join("state/images");
    // The header of a picture of 320 × 200; what follows is never decoded on the way.
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x01\x40\0\0\0\xc8\x08\x02\0\0\0".to_vec();
    bytes.extend((bytes.len()..LENGTH).map(|index| (index % 251) as u8));
    let path = images.join("big.png");
    let script = json!({
        "rules": [{
            "method": "observe",
            "steps": [{"patched": {"set": {
                "/snapshot/image/path": path,
                "/snapshot/image/byteLength": LENGTH,
                "/snapshot/image/sha256": Digest::of(&bytes).to_string(),
            }}}],
        }],
    });
    let gateway =
        GatewayProcess::start_in(folder, GatewayOptions::new(Executor::Fake(script))).await;
    gateway.wait_for(ServingStatus::Serving).await;
    // The image directory was purged at the start; from here on it is the executor's, and this file with it.
    fs::write(&path, &bytes).expect("the picture");

    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let image = frame.image.expect("a reference");
    assert!(image.data.is_empty());
    let read = tokio::time::timeout(PATIENCE, agent.read_image(&session_id, &image))
        .await
        .expect("in time")
        .expect("the picture");
    assert_eq!(read.len(), LENGTH);
    assert!(read == bytes, "the bytes are the file's");

    // Asked for inline, the reference still comes, and the answer names the way to the bytes.
    let inline = agent
        .computer_use
        .clone()
        .snapshot(SnapshotRequest {
            session_id: session_id.clone(),
            image: ImageDelivery::Inline.into(),
            target: Some(snapshot_request::Target::AppId(APP.into())),
            ..Default::default()
        })
        .await
        .expect("an answer below the message limit")
        .into_inner()
        .snapshot
        .expect("a frame");
    assert_eq!(
        inline.image_absence,
        i32::from(ImageAbsence::TooLargeForInline)
    );
    assert!(
        inline
            .image
            .is_some_and(|image| image.data.is_empty() && !image.image_id.is_empty())
    );
    gateway.stop().await;
}

/// A file that is not what the executor said it was ends the executor, and no byte of it is delivered.
#[tokio::test]
async fn a_picture_that_differs_from_its_hash_is_not_delivered() {
    let script = json!({
        "rules": [{
            "method": "observe",
            "process": 1,
            "steps": [{"patched": {"set": {
                "/snapshot/image/sha256": Digest::of(b"something else").to_string(),
            }}}],
        }],
    });
    let gateway = GatewayProcess::serving(GatewayOptions::new(Executor::Fake(script))).await;
    let agent = gateway.agent();
    let session_id = agent.begin().await;
    let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
    let image = frame.image.expect("a reference");
    let refused = agent
        .read_image(&session_id, &image)
        .await
        .expect_err("not believed");
    assert!(
        integration_tests::client::details(&refused)
            .error_info()
            .is_some(),
        "{refused:?}"
    );
    let renewed = tokio::time::timeout(PATIENCE, async {
        while agent.snapshot_app(&session_id, APP).await.is_err() {}
    });
    assert!(renewed.await.is_ok(), "no new executor came");
    gateway.stop().await;
}
