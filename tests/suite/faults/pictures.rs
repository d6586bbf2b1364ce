//! Pictures that are not what the executor says of them: no byte of them reaches a caller, and what happened stays true.

use maka_proto::v1::{Image, ImageAbsence, ImageDelivery, ReadImageRequest};
use serde_json::{Value, json};

use super::{Bench, Then, said, status_line};

struct Row {
    /// A lie of the fake's script.
    lie: &'static str,
    /// How a fetch by reference ends.
    fetched: &'static str,
    /// How an action ends whose picture was wanted inline; the rest is the absence of the picture or of the frame.
    inline: &'static str,
    then: Then,
}

const DISBELIEVED: &str = "FailedPrecondition executor.protocol/protocol_violation";
const UNREADABLE: &str = "FailedPrecondition gateway.maka/capture_failed";

fn rows() -> Vec<Row> {
    // The picture was a lie, which ended the executor and so the frame; the action is as done as before.
    let disbelieved = |lie| Row {
        lie,
        fetched: DISBELIEVED,
        inline: "OK CONFIRMED no frame: capture_failed",
        then: Then::New,
    };
    let unreadable = |lie| Row {
        lie,
        fetched: UNREADABLE,
        inline: "OK CONFIRMED, Unreadable",
        then: Then::Same,
    };
    vec![
        disbelieved("link"),
        disbelieved("fifo"),
        disbelieved("device"),
        disbelieved("folder"),
        disbelieved("hash"),
        disbelieved("length"),
        disbelieved("growing"),
        unreadable("gone"),
        Row {
            inline: "OK CONFIRMED, TooLargeForInline",
            ..unreadable("too_large")
        },
        // No lie: exactly the frame budget.
        Row {
            fetched: "8388608 bytes",
            inline: "OK CONFIRMED, TooLargeForInline",
            ..unreadable("as_large_as_may_be")
        },
    ]
}

fn rule(key: &str, lie: &str) -> Value {
    json!({
        "method": "dispatch.element",
        "params": { "/toolCallId": key },
        "steps": [{ "picture": lie }],
    })
}

/// Issue 3, "Trust frames"; field report G2; spec maka-cu §12.3 row 37, §12.6 rows 71 and 72: the outcome of an action does not
/// depend on its picture, and a picture is delivered whole and as announced, or not at all.
#[tokio::test]
async fn a_picture_is_as_announced_or_not_there() {
    let rules: Vec<Value> = rows()
        .iter()
        .flat_map(|row| {
            [
                rule(&format!("{}, fetched", row.lie), row.lie),
                rule(&format!("{}, inline", row.lie), row.lie),
            ]
        })
        .collect();
    let bench = Bench::start(rules.into()).await;
    for row in rows() {
        let name = format!("{}, fetched", row.lie);
        let before = bench.ready_after(0).await;
        let frame = bench.frame().await;
        let result = bench.agent.dispatch(bench.write(&name, &frame)).await;
        assert_eq!(said(&result), "OK CONFIRMED", "{name}");
        let fresh = result.expect("ok").snapshot.expect("a frame");
        let image = fresh.image.expect("a reference");
        assert_eq!(fetch(&bench, &image).await, row.fetched, "{name}");
        bench.goes_on(&name, before, row.then, &frame).await;

        let name = format!("{}, inline", row.lie);
        let before = bench.ready_after(0).await;
        let frame = bench.frame().await;
        let mut request = bench.write(&name, &frame);
        if let Some(after) = &mut request.observe_after {
            after.image = ImageDelivery::Inline.into();
        }
        let result = bench.agent.dispatch(request).await;
        let mut line = said(&result);
        if let Some(fresh) = result.expect("a result").snapshot {
            let absence = ImageAbsence::try_from(fresh.image_absence).expect("a known word");
            line = format!("{line}, {absence:?}");
            assert!(
                fresh.image.is_none_or(|image| image.data.is_empty()),
                "{name}"
            );
        }
        assert_eq!(line, row.inline, "{name}");
        assert_eq!(bench.sent(&name), 1, "{name}: sent once");
        bench.goes_on(&name, before, row.then, &frame).await;
    }
    bench.gateway.stop().await;
}

/// A path that leads out of the folder is a lie in the answer itself.
#[tokio::test]
async fn a_picture_elsewhere_is_a_lie() {
    let lies = ["outside", "winding"];
    let rules: Vec<Value> = lies.iter().map(|lie| rule(lie, lie)).collect();
    let bench = Bench::start(rules.into()).await;
    for lie in lies {
        let before = bench.ready_after(0).await;
        let frame = bench.frame().await;
        let result = bench.agent.dispatch(bench.write(lie, &frame)).await;
        assert_eq!(
            said(&result),
            "UNKNOWN UNVERIFIABLE outcome_unknown PROTOCOL_VIOLATION",
            "{lie}"
        );
        bench.goes_on(lie, before, Then::New, &frame).await;
    }
    bench.gateway.stop().await;
}

/// How fetching ends; the number of bytes when it succeeds.
async fn fetch(bench: &Bench, image: &Image) -> String {
    let request = ReadImageRequest {
        session_id: bench.session_id.clone(),
        image_id: image.image_id.clone(),
    };
    let mut client = bench.agent.computer_use.clone();
    let mut chunks = match client.read_image(request).await {
        Ok(chunks) => chunks.into_inner(),
        Err(status) => return status_line(&status),
    };
    let mut bytes = 0;
    loop {
        match chunks.message().await {
            Ok(Some(chunk)) => bytes += chunk.data.len(),
            Ok(None) => return format!("{bytes} bytes"),
            Err(status) => {
                assert_eq!(bytes, 0, "not a byte before the whole is known");
                return status_line(&status);
            }
        }
    }
}
