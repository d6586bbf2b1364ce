//! One caller in the storm: a session, its newest frame, its keys, and a seeded choice of what to do next.

use std::sync::Arc;
use std::time::Duration;

use integration_tests::{
    client::{Client, click, element, on_element, on_point, reason, set_value},
    gateway::PATIENCE,
    seeded::Seeded,
};
use maka_proto::v1::{
    self, BeginSessionRequest, CaptureScreenRequest, DispatchRequest, DispatchResult,
    EndSessionRequest, FocusPolicy, FocusTarget, ImageDelivery, LaunchAppRequest,
    LaunchAppResponse, ListAppsRequest, ListWindowsRequest, ObserveAfter, Outcome, PointSpace,
    PointTarget, PointerButton, PointerClick, SnapshotRequest, Tier, TypeText, dispatch_request,
    snapshot_request,
};
use tokio::time::timeout;
use tonic::{Request, Response, Status};

use super::APP;
use super::book::{ActionKey, Book, Ended};

/// Keys a caller can come back to.
const KEYS: usize = 64;

/// A call with a key.
#[derive(Clone, Debug)]
enum Action {
    Dispatch(DispatchRequest),
    Launch(LaunchAppRequest),
}

impl Action {
    fn key(&self) -> ActionKey {
        match self {
            Self::Dispatch(request) => ActionKey {
                session: request.session_id.clone(),
                key: request.tool_call_id.clone(),
                wait_for_window_ms: None,
            },
            Self::Launch(request) => ActionKey {
                session: request.session_id.clone(),
                key: request.tool_call_id.clone(),
                wait_for_window_ms: request.wait_for_window_ms,
            },
        }
    }
}

/// How long the caller wants to wait.
#[derive(Clone, Copy, Debug)]
enum Waits {
    /// As long as it takes.
    Long,
    /// Tells the gateway a deadline.
    Until(Duration),
    /// Goes away without a word.
    DropsAfter(Duration),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Driver {
    number: u64,
    client: Client,
    seeded: Seeded,
    book: Arc<Book>,
    session: String,
    frame: Option<v1::Snapshot>,
    keys: Vec<Action>,
    made: u32,
    /// Whether the next button goes up.
    pressed: bool,
}

impl Driver {
    pub(super) fn new(number: u64, client: Client, seeded: Seeded, book: Arc<Book>) -> Self {
        Self {
            number,
            client,
            seeded,
            book,
            session: String::new(),
            frame: None,
            keys: Vec::new(),
            made: 0,
            pressed: false,
        }
    }

    /// What a caller does when nothing is wrong; everything must succeed. Ends with no session.
    pub(super) async fn calm_round(&mut self) {
        if !self.session.is_empty() {
            self.end().await;
        }
        self.begin().await;
        let frame = self.client.snapshot_app(&self.session, APP).await;
        let frame = frame.unwrap_or_else(|status| panic!("{status:?}\n{}", self.book.tail()));
        let image = frame.image.clone().expect("a picture");
        let read = self.client.read_image(&self.session, &image).await;
        read.unwrap_or_else(|status| panic!("{status:?}\n{}", self.book.tail()));
        let key = self.next_key();
        let field = element(&frame, "AXTextField", "Name");
        let request = on_element(&self.session, &key, &frame, field, set_value(&key));
        let result = self.client.dispatch(request).await;
        let result = result.unwrap_or_else(|status| panic!("{status:?}\n{}", self.book.tail()));
        assert_eq!(result.outcome(), Outcome::Ok, "{}", self.book.tail());
        self.end().await;
    }

    /// Asks for every key again: each has the outcome that it had.
    pub(super) async fn repeat_everything(&mut self) {
        for action in self.keys.clone() {
            self.act(action, Waits::Long).await;
        }
    }

    /// One thing drawn from the seed.
    pub(super) async fn random_call(&mut self) {
        if self.session.is_empty() {
            self.begin().await;
        }
        match self.seeded.below(100) {
            0..=21 => self.snapshot().await,
            22..=54 => {
                let action = self.dispatch();
                match action {
                    Some(action) => self.act_and_keep(action).await,
                    None => self.snapshot().await,
                }
            }
            55..=60 => {
                let action = self.launch();
                self.act_and_keep(action).await;
            }
            61..=72 => self.list().await,
            73..=79 => self.read_image().await,
            80..=83 => self.capture().await,
            84..=91 => self.repeat().await,
            92..=95 => self.twice_at_once().await,
            _ => {
                self.end().await;
                self.begin().await;
            }
        }
    }

    fn next_key(&mut self) -> String {
        self.made += 1;
        format!("{}.{}", self.number, self.made)
    }

    fn waits(&mut self) -> Waits {
        match self.seeded.below(10) {
            0..=2 => Waits::Long,
            3..=7 => Waits::Until(self.seeded.millis(300, 2500)),
            _ => Waits::DropsAfter(self.seeded.millis(0, 60)),
        }
    }

    async fn begin(&mut self) {
        let mut client = self.client.computer_use.clone();
        let begun = client.begin_session(BeginSessionRequest {}).await;
        let begun = begun.unwrap_or_else(|status| panic!("{status:?}\n{}", self.book.tail()));
        self.session = begun.into_inner().session_id;
        self.frame = None;
        self.book
            .note(format!("{} begins {}", self.number, self.session));
    }

    async fn end(&mut self) {
        let request = EndSessionRequest {
            session_id: std::mem::take(&mut self.session),
        };
        let mut client = self.client.computer_use.clone();
        let ended = self
            .call("end", Waits::Long, request, async |request| {
                client.end_session(request).await
            })
            .await;
        if let Some(Err(status)) = ended {
            self.explained("end", &status);
        }
        self.frame = None;
    }

    async fn snapshot(&mut self) {
        let image = *self.seeded.pick(&[
            ImageDelivery::Reference,
            ImageDelivery::Reference,
            ImageDelivery::None,
            ImageDelivery::Inline,
        ]);
        let request = SnapshotRequest {
            session_id: self.session.clone(),
            target: Some(snapshot_request::Target::AppId(APP.into())),
            image: image.into(),
            ..Default::default()
        };
        let (waits, mut client) = (self.waits(), self.client.computer_use.clone());
        let answer = self
            .call("snapshot", waits, request, async |request| {
                client.snapshot(request).await
            })
            .await;
        match answer {
            Some(Ok(answer)) => self.frame = answer.snapshot,
            Some(Err(status)) => self.explained("snapshot", &status),
            None => {}
        }
    }

    async fn list(&mut self) {
        let waits = self.waits();
        let mut client = self.client.computer_use.clone();
        let session_id = self.session.clone();
        let answer = if self.seeded.chance(500) {
            let request = ListAppsRequest {
                session_id,
                ..ListAppsRequest::default()
            };
            self.call("apps", waits, request, async |request| {
                client.list_apps(request).await
            })
            .await
            .map(|answer| answer.map(drop))
        } else {
            let request = ListWindowsRequest { session_id };
            self.call("windows", waits, request, async |request| {
                client.list_windows(request).await
            })
            .await
            .map(|answer| answer.map(drop))
        };
        if let Some(Err(status)) = answer {
            self.explained("list", &status);
        }
    }

    async fn capture(&mut self) {
        let request = CaptureScreenRequest {
            session_id: self.session.clone(),
            display_id: None,
            image: ImageDelivery::Reference.into(),
        };
        let (waits, mut client) = (self.waits(), self.client.computer_use.clone());
        let answer = self
            .call("capture", waits, request, async |request| {
                client.capture_screen(request).await
            })
            .await;
        if let Some(Err(status)) = answer {
            self.explained("capture", &status);
        }
    }

    /// The client compares length and hash by itself: bytes that differ from what was announced fail the test.
    async fn read_image(&mut self) {
        let Some(image) = self.frame.as_ref().and_then(|frame| frame.image.clone()) else {
            return self.snapshot().await;
        };
        self.book.note(format!("{} reads an image", self.number));
        let read = timeout(PATIENCE, self.client.read_image(&self.session, &image)).await;
        let read = read.unwrap_or_else(|_| panic!("no end of an image\n{}", self.book.tail()));
        self.book.ended();
        if let Err(status) = read {
            self.explained("image", &status);
        }
    }

    fn dispatch(&mut self) -> Option<Action> {
        // Now and then with a frame that was used before: what is refused must not be sent either.
        let frame = if self.seeded.chance(150) {
            self.frame.clone()?
        } else {
            self.frame.take()?
        };
        let key = self.next_key();
        let field = element(&frame, "AXTextField", "Name");
        let mut request = match self.seeded.below(7) {
            0 => DispatchRequest {
                tier: Tier::CoordinateBackground.into(),
                target: Some(dispatch_request::Target::Focus(FocusTarget {
                    token: field.token.clone(),
                    expect_digest: field.digest.clone(),
                    policy: FocusPolicy::Require.into(),
                })),
                ..on_element(
                    &self.session,
                    &key,
                    &frame,
                    field,
                    dispatch_request::Action::TypeText(TypeText { text: key.clone() }),
                )
            },
            1 if frame.image.is_some() => DispatchRequest {
                tier: Tier::CoordinateBackground.into(),
                target: Some(dispatch_request::Target::Point(PointTarget {
                    x: 20.0,
                    y: 20.0,
                    space: PointSpace::ImagePx.into(),
                    expect_window_digest: frame.window_digest.clone(),
                    ..Default::default()
                })),
                ..on_element(
                    &self.session,
                    &key,
                    &frame,
                    field,
                    dispatch_request::Action::PointerClick(PointerClick::default()),
                )
            },
            2 => {
                let save = element(&frame, "AXButton", "Save");
                on_element(&self.session, &key, &frame, save, click())
            }
            3 | 4 if frame.image.is_some() => {
                self.pressed = !self.pressed;
                let down = self.pressed;
                let button = dispatch_request::Action::PointerButton(PointerButton { down });
                on_point(&self.session, &key, &frame, (20.0, 10.0), button)
            }
            _ => on_element(&self.session, &key, &frame, field, set_value(&key)),
        };
        let image = *self.seeded.pick(&[
            ImageDelivery::Reference,
            ImageDelivery::None,
            ImageDelivery::Inline,
        ]);
        request.observe_after = self.seeded.chance(800).then_some(ObserveAfter {
            image: image.into(),
            settle: self.seeded.chance(500),
            menu: None,
        });
        Some(Action::Dispatch(request))
    }

    fn launch(&mut self) -> Action {
        let key = self.next_key();
        Action::Launch(LaunchAppRequest {
            session_id: self.session.clone(),
            tool_call_id: key,
            app: APP.into(),
            wait_for_window_ms: Some(1 + self.made * 8 + u32::try_from(self.number).expect("few")),
            turn: None,
        })
    }

    async fn act_and_keep(&mut self, action: Action) {
        if self.keys.len() == KEYS {
            self.keys.remove(0);
        }
        self.keys.push(action.clone());
        let waits = self.waits();
        self.act(action.clone(), waits).await;
        // As a client library would: at once, while the key is still warm.
        if self.seeded.chance(300) {
            let waits = self.waits();
            self.act(action, waits).await;
        }
    }

    async fn repeat(&mut self) {
        if self.keys.is_empty() {
            return self.list().await;
        }
        let action = self.seeded.pick(&self.keys).clone();
        let waits = self.waits();
        self.act(action, waits).await;
    }

    /// The same request from two connections at once.
    async fn twice_at_once(&mut self) {
        let Some(action) = self.dispatch() else {
            return self.snapshot().await;
        };
        self.keys.push(action.clone());
        self.book.at_once(action.key());
        let (one, two) = (self.waits(), self.waits());
        let (one, two) = tokio::join!(self.ask(action.clone(), one), self.ask(action.clone(), two));
        for ended in [one, two] {
            self.book.action(action.key(), ended);
        }
    }

    async fn act(&mut self, action: Action, waits: Waits) {
        let key = action.key();
        let ended = self.ask(action, waits).await;
        self.book.action(key, ended);
    }

    async fn ask(&self, action: Action, waits: Waits) -> Ended {
        let key = action.key().key;
        let mut client = self.client.computer_use.clone();
        match action {
            Action::Dispatch(request) => {
                let answer = self
                    .call(
                        &format!("dispatch {key}"),
                        waits,
                        request,
                        async |request| client.dispatch(request).await,
                    )
                    .await;
                self.ended(answer, dispatched)
            }
            Action::Launch(request) => {
                let answer = self
                    .call(&format!("launch {key}"), waits, request, async |request| {
                        client.launch_app(request).await
                    })
                    .await;
                self.ended(answer, launched)
            }
        }
    }

    fn ended<T>(&self, answer: Option<Result<T, Status>>, read: impl FnOnce(T) -> Ended) -> Ended {
        match answer {
            None => Ended::GaveUp,
            Some(Ok(result)) => read(result),
            Some(Err(status)) if is_of_the_client(&status) => Ended::GaveUp,
            Some(Err(status)) => {
                self.explained("action", &status);
                Ended::Status {
                    reason: reason(&status),
                }
            }
        }
    }

    /// Makes a call; nothing when the caller went away. The first law: it ends.
    async fn call<Q, A>(
        &self,
        what: &str,
        waits: Waits,
        message: Q,
        call: impl AsyncFnOnce(Request<Q>) -> Result<Response<A>, Status>,
    ) -> Option<Result<A, Status>> {
        self.book.note(format!("{} {what} {waits:?}", self.number));
        let mut request = Request::new(message);
        let answer = match waits {
            Waits::Long => timeout(PATIENCE, call(request)).await,
            Waits::Until(deadline) => {
                request.set_timeout(deadline);
                timeout(PATIENCE, call(request)).await
            }
            Waits::DropsAfter(pause) => match timeout(pause, call(request)).await {
                Ok(answer) => Ok(answer),
                Err(_) => {
                    self.book.note(format!("{} dropped {what}", self.number));
                    self.book.ended();
                    return None;
                }
            },
        };
        let answer = answer
            .unwrap_or_else(|_| panic!("{} {what} never ends\n{}", self.number, self.book.tail()));
        self.book.ended();
        let said = match &answer {
            Ok(_) => "answered".to_owned(),
            Err(status) => reason(status),
        };
        self.book.note(format!("{} {what}: {said}", self.number));
        Some(answer.map(Response::into_inner))
    }

    /// Every status that is the gateway's says why.
    fn explained(&self, what: &str, status: &Status) {
        let info = integration_tests::client::details(status)
            .error_info()
            .is_some();
        assert!(
            info || is_of_the_client(status),
            "{what}: a status without a reason: {status:?}\n{}",
            self.book.tail()
        );
        // The one rejection in the storm; any other would mean that the gateway asked for something unusable.
        let rejected = integration_tests::client::metadata(status, "rpc_code");
        assert!(
            rejected.as_deref().is_none_or(|code| code == "-32603"),
            "{what} of {}: rejected by the executor ({rejected:?}): {status:?}\n{}",
            self.session,
            self.book.tail()
        );
    }
}

/// The timer of the client library speaks without a reason.
fn is_of_the_client(status: &Status) -> bool {
    let info = integration_tests::client::details(status)
        .error_info()
        .is_some();
    !info
        && matches!(
            status.code(),
            tonic::Code::Cancelled | tonic::Code::DeadlineExceeded
        )
}

fn dispatched(result: DispatchResult) -> Ended {
    Ended::Result {
        is_ok: result.outcome() == Outcome::Ok,
        is_replayed: result.replayed,
        line: format!(
            "{:?} {:?} {:?} {:?} {:?} {}",
            result.outcome(),
            result.tier(),
            result.path(),
            result.effect(),
            result.error.as_ref().map(|error| &error.code),
            result.decision_id
        ),
    }
}

fn launched(result: LaunchAppResponse) -> Ended {
    Ended::Result {
        is_ok: result.outcome() == Outcome::Ok,
        is_replayed: result.replayed,
        line: format!(
            "{:?} {:?} {}",
            result.outcome(),
            result.error.as_ref().map(|error| &error.code),
            result.decision_id
        ),
    }
}
