//! Pictures of any size reach a client with default limits: by reference, in chunks (G1).

use std::fs;

use integration_tests::client::reason;
use integration_tests::gateway::{Executor, GatewayOptions, GatewayProcess, PATIENCE, Role};
use maka_cu_protocol::ids::Digest;
use maka_proto::v1::{
    ImageAbsence, ImageDelivery, ReadImageRequest, RestartExecutorRequest, SnapshotRequest,
    snapshot_request,
};
use serde_json::json;
use tempfile::TempDir;
use tonic_health::pb::health_check_response::ServingStatus;

const APP: &str = "org.example.Notes";
/// Above the 4 MiB that gRPC clients take by default.
const LENGTH: usize = 6_242_911;

/// A gateway whose executor shows a picture of [`LENGTH`] bytes.
async fn with_a_big_picture() -> (GatewayProcess, Vec<u8>) {
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
    (gateway, bytes)
}

#[tokio::test]
async fn a_picture_above_the_message_limit_arrives_in_chunks() {
    let (gateway, bytes) = with_a_big_picture().await;
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

/// A caller that takes its time loses the picture with its session or with the executor that made it, and is told what a call that
/// begins then is told.
#[tokio::test]
async fn a_picture_on_its_way_ends_with_its_session_and_its_executor() {
    for ends in ["the session", "the executor"] {
        let (gateway, bytes) = with_a_big_picture().await;
        let agent = gateway.agent();
        let session_id = agent.begin().await;
        let frame = agent.snapshot_app(&session_id, APP).await.expect("a frame");
        let request = ReadImageRequest {
            session_id: session_id.clone(),
            image_id: frame.image.expect("a reference").image_id,
        };
        let mut reader = agent.computer_use.clone();
        let begun = reader.read_image(request.clone()).await.expect("begun");
        let mut chunks = begun.into_inner();
        let first = chunks.message().await.expect("a chunk").expect("a chunk");
        let mut taken = first.data;
        // What lies in buffers on the way is less than half of the picture.
        if ends == "the session" {
            agent.end(&session_id).await;
        } else {
            let operator = gateway.client(Role::Operator).operator;
            let request = RestartExecutorRequest {};
            let restarted = operator.clone().restart_executor(request).await;
            restarted.expect("another executor");
        }
        let rest = async {
            loop {
                match chunks.message().await {
                    Ok(Some(chunk)) => taken.extend(chunk.data),
                    Ok(None) => panic!("{ends}: all {} bytes came", taken.len()),
                    Err(status) => return status,
                }
            }
        };
        let lost = tokio::time::timeout(PATIENCE, rest).await.expect("in time");
        let refused = reader.read_image(request).await.expect_err("nothing left");
        assert_eq!(lost.code(), refused.code(), "{ends}: {lost:?}");
        assert_eq!(reason(&lost), reason(&refused), "{ends}");
        let expected = match ends {
            "the session" => "gateway.maka/session_unknown",
            _ => "gateway.maka/image_unknown",
        };
        assert_eq!(reason(&lost), expected);
        assert!(taken.len() < LENGTH && bytes.starts_with(&taken), "{ends}");
        gateway.stop().await;
    }
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
