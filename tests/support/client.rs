//! A gRPC client for tests: bearer token on every call, and short names for the calls of the usual loop.

use std::time::Duration;

use maka_cu_protocol::ids::Digest;
use maka_proto::v1::{
    self, BeginSessionRequest, DispatchRequest, DispatchResult, ElementTarget, ImageDelivery,
    ObserveAfter, SnapshotRequest, Tier, WatchRequest, WindowRef,
    computer_use_client::ComputerUseClient, dispatch_request, events_client::EventsClient,
    operator_client::OperatorClient, policies_client::PoliciesClient, snapshot_request,
};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::Channel,
};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::{events::Watching, gateway::PATIENCE};

/// Adds a bearer token, or nothing for an anonymous caller.
#[derive(Clone)]
pub struct Bearer(Option<MetadataValue<Ascii>>);

impl std::fmt::Debug for Bearer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Bearer(<redacted>)")
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request
                .metadata_mut()
                .insert("authorization", value.clone());
        }
        Ok(request)
    }
}

/// The channel of a [`Client`].
pub type Authorized = InterceptedService<Channel, Bearer>;

/// One principal's view of a gateway.
#[derive(Clone, Debug)]
pub struct Client {
    /// `maka.gateway.v1.ComputerUse`.
    pub computer_use: ComputerUseClient<Authorized>,
    /// `maka.gateway.v1.Events`.
    pub events: EventsClient<Authorized>,
    /// `maka.gateway.v1.Operator`.
    pub operator: OperatorClient<Authorized>,
    /// `maka.gateway.v1.Policies`.
    pub policies: PoliciesClient<Authorized>,
}

impl Client {
    /// A client on `channel` with `token`.
    #[must_use]
    pub fn new(channel: &Channel, token: Option<&str>) -> Self {
        let bearer = Bearer(token.map(|token| {
            format!("Bearer {token}")
                .parse()
                .expect("test tokens are visible ASCII")
        }));
        Self {
            computer_use: ComputerUseClient::with_interceptor(channel.clone(), bearer.clone()),
            events: EventsClient::with_interceptor(channel.clone(), bearer.clone()),
            operator: OperatorClient::with_interceptor(channel.clone(), bearer.clone()),
            policies: PoliciesClient::with_interceptor(channel.clone(), bearer),
        }
    }

    /// Begins a session.
    pub async fn begin(&self) -> String {
        let mut client = self.computer_use.clone();
        let answer = client
            .begin_session(BeginSessionRequest {})
            .await
            .expect("a session begins");
        answer.into_inner().session_id
    }

    /// Watches everything this principal may see.
    pub async fn watch(&self) -> Watching {
        let answer = self.events.clone().watch(WatchRequest::default()).await;
        Watching::new(answer.expect("the watch begins").into_inner())
    }

    /// Ends a session.
    pub async fn end(&self, session_id: &str) {
        let request = v1::EndSessionRequest {
            session_id: session_id.into(),
        };
        let ended = self.computer_use.clone().end_session(request).await;
        ended.expect("the session ends");
    }

    /// What a session may do, as `ListSessions` says.
    pub async fn session_state(&self, session_id: &str) -> v1::SessionState {
        self.session(session_id).await.state()
    }

    /// Waits until so many calls of a session are queued or under way.
    pub async fn queued(&self, session_id: &str, calls: u32) {
        let queued = tokio::time::timeout(PATIENCE, async {
            while self.session(session_id).await.calls_in_flight < calls {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        assert!(queued.await.is_ok(), "never {calls} calls at once");
    }

    async fn session(&self, session_id: &str) -> v1::Session {
        let request = v1::ListSessionsRequest {};
        let listed = self.computer_use.clone().list_sessions(request).await;
        let sessions = listed.expect("a list").into_inner().sessions;
        let mut sessions = sessions.into_iter();
        let session = sessions.find(|session| session.session_id == session_id);
        session.expect("the session is listed")
    }

    /// Observes the frontmost window of `app_id`.
    ///
    /// # Errors
    /// The gateway's status.
    pub async fn snapshot_app(
        &self,
        session_id: &str,
        app_id: &str,
    ) -> Result<v1::Snapshot, Status> {
        self.snapshot(session_id, snapshot_request::Target::AppId(app_id.into()))
            .await
    }

    /// Observes exactly `window`.
    ///
    /// # Errors
    /// The gateway's status.
    pub async fn snapshot_window(
        &self,
        session_id: &str,
        window: WindowRef,
    ) -> Result<v1::Snapshot, Status> {
        self.snapshot(session_id, snapshot_request::Target::Window(window))
            .await
    }

    async fn snapshot(
        &self,
        session_id: &str,
        target: snapshot_request::Target,
    ) -> Result<v1::Snapshot, Status> {
        let request = SnapshotRequest {
            session_id: session_id.into(),
            image: ImageDelivery::Reference.into(),
            target: Some(target),
            ..Default::default()
        };
        let answer = self
            .computer_use
            .clone()
            .snapshot(request)
            .await?
            .into_inner();
        Ok(answer.snapshot.expect("a snapshot answer holds a snapshot"))
    }

    /// Dispatches `request` as it stands.
    ///
    /// # Errors
    /// The gateway's status.
    pub async fn dispatch(&self, request: DispatchRequest) -> Result<DispatchResult, Status> {
        Ok(self
            .computer_use
            .clone()
            .dispatch(request)
            .await?
            .into_inner())
    }

    /// Fetches an image by reference and checks its length and hash.
    ///
    /// # Errors
    /// The gateway's status.
    pub async fn read_image(&self, session_id: &str, image: &v1::Image) -> Result<Vec<u8>, Status> {
        let request = v1::ReadImageRequest {
            session_id: session_id.into(),
            image_id: image.image_id.clone(),
        };
        let mut chunks = self
            .computer_use
            .clone()
            .read_image(request)
            .await?
            .into_inner();
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.message().await? {
            assert_eq!(chunk.offset, bytes.len() as u64, "chunks come in order");
            assert!(chunk.data.len() <= 256 * 1024, "chunks are at most 256 KiB");
            bytes.extend_from_slice(&chunk.data);
        }
        assert_eq!(bytes.len() as u64, image.byte_length);
        assert_eq!(Digest::of(&bytes).to_string(), image.sha256);
        Ok(bytes)
    }
}

/// The first element of `role` whose title or label is `text`.
#[must_use]
pub fn element<'a>(snapshot: &'a v1::Snapshot, role: &str, text: &str) -> &'a v1::Element {
    find(snapshot, role, Some(text))
}

/// The first element of `role`.
#[must_use]
pub fn first<'a>(snapshot: &'a v1::Snapshot, role: &str) -> &'a v1::Element {
    find(snapshot, role, None)
}

fn find<'a>(snapshot: &'a v1::Snapshot, role: &str, text: Option<&str>) -> &'a v1::Element {
    snapshot
        .elements
        .iter()
        .find(|element| {
            element.role == role
                && text.is_none_or(|text| {
                    element.title.as_deref() == Some(text) || element.label.as_deref() == Some(text)
                })
        })
        .unwrap_or_else(|| {
            let roles: Vec<&str> = snapshot
                .elements
                .iter()
                .map(|element| element.role.as_str())
                .collect();
            panic!("no {role} {text:?} among {roles:?}")
        })
}

/// A dispatch of `action` to `element` of `snapshot`, with a fresh snapshot asked for.
#[must_use]
pub fn on_element(
    session_id: &str,
    tool_call_id: &str,
    snapshot: &v1::Snapshot,
    element: &v1::Element,
    action: dispatch_request::Action,
) -> DispatchRequest {
    DispatchRequest {
        session_id: session_id.into(),
        tool_call_id: tool_call_id.into(),
        tier: Tier::Ax.into(),
        snapshot_id: snapshot.snapshot_id.clone(),
        target: Some(dispatch_request::Target::Element(ElementTarget {
            token: element.token.clone(),
            expect_digest: element.digest.clone(),
            ..Default::default()
        })),
        action: Some(action),
        observe_after: Some(ObserveAfter {
            image: ImageDelivery::Reference.into(),
            settle: true,
            menu: None,
        }),
        ..Default::default()
    }
}

/// A dispatch of `action` to whatever has, or is to get, the keyboard focus.
#[must_use]
pub fn on_focus(
    session_id: &str,
    tool_call_id: &str,
    snapshot: &v1::Snapshot,
    element: &v1::Element,
    policy: v1::FocusPolicy,
    action: dispatch_request::Action,
) -> DispatchRequest {
    DispatchRequest {
        session_id: session_id.into(),
        tool_call_id: tool_call_id.into(),
        tier: Tier::CoordinateBackground.into(),
        snapshot_id: snapshot.snapshot_id.clone(),
        target: Some(dispatch_request::Target::Focus(v1::FocusTarget {
            token: element.token.clone(),
            expect_digest: element.digest.clone(),
            policy: policy.into(),
        })),
        action: Some(action),
        ..DispatchRequest::default()
    }
}

/// A dispatch of `action` to a pixel of `snapshot`'s picture; a drag starts near its upper left corner.
#[must_use]
pub fn on_point(
    session_id: &str,
    tool_call_id: &str,
    snapshot: &v1::Snapshot,
    (x, y): (f64, f64),
    action: dispatch_request::Action,
) -> DispatchRequest {
    let is_drag = matches!(action, dispatch_request::Action::PointerDrag(_));
    DispatchRequest {
        session_id: session_id.into(),
        tool_call_id: tool_call_id.into(),
        tier: Tier::CoordinateBackground.into(),
        snapshot_id: snapshot.snapshot_id.clone(),
        target: Some(dispatch_request::Target::Point(v1::PointTarget {
            x,
            y,
            start: is_drag.then_some(v1::Point { x: 2.0, y: 2.0 }),
            space: v1::PointSpace::ImagePx.into(),
            expect_window_digest: snapshot.window_digest.clone(),
            ..v1::PointTarget::default()
        })),
        action: Some(action),
        ..DispatchRequest::default()
    }
}

/// A left click.
#[must_use]
pub fn click() -> dispatch_request::Action {
    dispatch_request::Action::Click(v1::Click::default())
}

/// A text to write.
#[must_use]
pub fn set_value(value: &str) -> dispatch_request::Action {
    dispatch_request::Action::SetValue(v1::SetValue {
        value: value.into(),
    })
}

/// The error details of a status.
#[must_use]
pub fn details(status: &Status) -> ErrorDetails {
    status.get_error_details()
}

/// `domain/reason` of a status, or what is there instead.
#[must_use]
pub fn reason(status: &Status) -> String {
    match details(status).error_info() {
        Some(info) => format!("{}/{}", info.domain, info.reason),
        None => format!("no ErrorInfo: {:?} {}", status.code(), status.message()),
    }
}

/// One entry of ErrorInfo's metadata.
#[must_use]
pub fn metadata(status: &Status, key: &str) -> Option<String> {
    details(status)
        .error_info()
        .and_then(|info| info.metadata.get(key).cloned())
}
