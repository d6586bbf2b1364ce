//! The state of one session and what it does with a call: look the key up, judge, send, settle, review.
//!
//! Owned by one task, which runs one call at a time: nothing of the session changes between judging and sending but by
//! time or with the executor, which is checked when the permit is used, and the next call is judged on the settled
//! mirror.

mod act;
mod admit;
mod dispatch;
mod launch;
mod read;
mod release;
mod shown;

pub(crate) use dispatch::request_of_dispatch;
pub(crate) use launch::request_of_launch;

use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use maka_cu_host::CallError as ExecutorError;
use maka_cu_host::displays::Display;
use maka_cu_host::error::LifecycleCause;
use maka_cu_host::frame::{FrameError, Geometry, geometry};
use maka_cu_host::status::Negotiated;
use maka_cu_protocol::domain::DomainCode;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::image::ImageRef;
use maka_cu_protocol::json::{Reason, Violation};
use maka_cu_protocol::method::Method;
use maka_cu_protocol::results::Answer;
use maka_cu_protocol::sets;
use maka_cu_protocol::snapshot::{DisplayInfo, Snapshot};
use maka_policy_host::judge::Judge;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::{DomainFault, EndedSession, Frame, ImageAbsence, Picture};
use super::call::{ImageDelivery, Turn};
use super::caller::Caller;
use super::held::HeldButtons;
use super::image::{self, INLINE_MAX_BYTES, Source, Stored};
use super::index::Owners;
use super::keys::Keys;
use super::meter::Meter;
use super::mirror::{Budget, Mirror, NewRow, PictureSize};
use super::outcome;
use super::secret::RequestSecret;
use super::shared::Shared;
use super::state::Happening;
use crate::error::CallError;
use crate::events::Events;
use crate::forward::{Forward, Sending};
use crate::policy::{self, actions::TextKey, standing::StandingWatch};

/// How long the executor may take to begin a session.
const BEGIN_PATIENCE: Duration = Duration::from_secs(3);

/// How long the executor may take for each step of letting go of a held button.
const RELEASE_PATIENCE: Duration = Duration::from_secs(3);

/// How long the executor may take to end a session.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// What every session of the gateway works with.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) forward: Forward,
    pub(crate) events: Events,
    pub(crate) judge: Arc<Judge>,
    pub(crate) owners: Arc<Owners>,
    pub(crate) budget: Budget,
    pub(crate) held: HeldButtons,
    pub(crate) displays: Arc<[Display]>,
    pub(crate) policy: StandingWatch,
    pub(crate) secret: RequestSecret,
    pub(crate) synthetic_input: bool,
}

/// Who calls, and how long and whether the answer is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) connection: Option<&'a CancellationToken>,
    pub(crate) turn: Option<&'a Turn>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancel: &'a CancellationToken,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Core {
    id: SessionId,
    /// The id as the index of all sessions' snapshots shares it.
    indexed_id: Arc<SessionId>,
    parts: Parts,
    shared: Arc<Shared>,
    mirror: Mirror,
    keys: Keys,
    meter: Meter,
    text_key: TextKey,
    /// The generation that the mirror and the images are of.
    generation: u64,
    /// The displays as the last snapshot had them.
    displays: Vec<Display>,
    /// Burials of the session's status that the mirror has followed.
    burials: u64,
    /// The generation that was lost, or could not be reached, while it let go of what this session holds.
    release_failed: u64,
    quarantined: bool,
}

impl Core {
    pub(crate) fn new(id: SessionId, parts: Parts, shared: Arc<Shared>, text_key: TextKey) -> Self {
        let mirror = Mirror::new(id.as_str().to_owned(), parts.budget.clone());
        Self {
            indexed_id: Arc::new(id.clone()),
            id,
            parts,
            shared,
            mirror,
            keys: Keys::default(),
            meter: Meter::default(),
            text_key,
            generation: 0,
            displays: Vec::new(),
            burials: 0,
            release_failed: 0,
            quarantined: false,
        }
    }

    /// A ready executor. Rows and images of an earlier one die here.
    async fn ready(&mut self, context: Context<'_>) -> Result<Arc<Negotiated>, CallError> {
        let negotiated = self
            .parts
            .forward
            .ready(context.cancel)
            .await
            .map_err(outcome::not_ready)?;
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(CallError::Cancelled),
            () = self.parts.policy.settled() => {}
        }
        self.adopt(&negotiated);
        self.release_lost(&negotiated).await;
        Ok(negotiated)
    }

    /// Whether the session may observe now.
    ///
    /// # Errors
    /// The state that holds it up.
    fn may_observe(&mut self) -> Result<(), CallError> {
        let now = Instant::now();
        let may = {
            let machine = self.shared.machine();
            machine
                .may_observe(now)
                .map_err(|state| (state, machine.quiet_in(now)))
        };
        self.follow_status();
        may.map_err(|(state, wait)| CallError::Held { state, wait })
    }

    /// Whether the session may act now.
    ///
    /// # Errors
    /// The state that holds it up.
    fn may_act(&mut self) -> Result<(), CallError> {
        let now = Instant::now();
        let may = {
            let machine = self.shared.machine();
            machine
                .may_act(now)
                .map_err(|state| (state, machine.quiet_in(now)))
        };
        self.follow_status();
        may.map_err(|(state, wait)| CallError::Held { state, wait })
    }

    /// Whether the session may still be told anything.
    ///
    /// # Errors
    /// The state that it will never leave.
    fn still_open(&mut self) -> Result<(), CallError> {
        let state = self.shared.machine().state(Instant::now());
        self.follow_status();
        if state.is_final() {
            Err(CallError::Held { state, wait: None })
        } else {
            Ok(())
        }
    }

    /// Something that the session itself found out.
    fn happened(&mut self, what: Happening) {
        if what == Happening::Observed {
            self.shared.set_observed(self.generation);
        }
        self.shared.happened(what);
        self.follow_status();
    }

    /// What an executor's refusal says about the desktop.
    fn refused_for(&mut self, code: DomainCode) {
        if code == DomainCode::ScreenLocked {
            self.happened(Happening::FoundLocked);
        } else if code == DomainCode::PhysicalInputActive {
            self.happened(Happening::Intervened);
        }
    }

    /// Buries the frames that the session's status has made worthless.
    fn follow_status(&mut self) {
        let (state, burials) = {
            let machine = self.shared.machine();
            (machine.state(Instant::now()), machine.burials())
        };
        self.parts.events.session_state(&self.id, state);
        if burials != self.burials {
            self.burials = burials;
            self.mirror.supersede_all();
        }
    }

    /// Goes over to the executor that is there now, if it is another one.
    fn adopt(&mut self, negotiated: &Negotiated) {
        let generation = negotiated.generation;
        if generation != self.generation {
            if self.generation != 0 {
                self.happened(Happening::ServiceLost);
            }
            let limits = negotiated.handshake.limits;
            let live_max = usize::try_from(limits.snapshots_per_session).unwrap_or(usize::MAX);
            self.mirror.begin_generation(
                generation,
                live_max,
                Duration::from_millis(limits.snapshot_ttl_ms),
            );
            self.images().clear();
            self.generation = generation;
            self.publish();
        }
    }

    /// Lets the executor know this session. Comes after the judgement, so that a refused call sends nothing at all.
    ///
    /// The caller can not cancel it and its deadline does not end it: an executor that was stopped half-way may know
    /// the session while we do not, and would reject every later begin.
    async fn begin(&mut self) -> Result<(), CallError> {
        if self.shared.begun() == self.generation {
            return Ok(());
        }
        let sending = own_message(&self.id, BEGIN_PATIENCE, self.generation);
        let begun = self.parts.forward.begin_session(&self.id, sending).await;
        match begun {
            Ok(maka_cu_host::Answer {
                value: Answer::Done(_),
                generation,
            }) => {
                self.shared.set_begun(generation);
                Ok(())
            }
            Ok(maka_cu_host::Answer {
                value: Answer::Refused(refusal),
                ..
            }) => Err(CallError::Refused {
                fault: DomainFault::from(&refusal),
                decision_id: None,
            }),
            // The executor was lost; the call itself was not sent.
            Err(ExecutorError::Lifecycle(error))
                if error.possibly_delivered()
                    || matches!(error.cause, LifecycleCause::WrongGeneration) =>
            {
                Err(CallError::Starting {
                    generation: error.generation,
                })
            }
            Err(error) => Err(outcome::executor_error(&error, None)),
        }
    }

    fn sending(&self, context: Context<'_>, extra: Duration) -> Sending {
        Sending {
            session: Some(self.id.clone()),
            deadline: context.deadline,
            extra,
            cancel: context.cancel.clone(),
            generation: None,
        }
    }

    /// Takes a snapshot of an answer into the mirror and makes what the caller gets of it, without the picture's bytes.
    /// The picture can be fetched when it is added to the images, which comes after the review.
    ///
    /// # Errors
    /// When the executor used an id twice; it is ended for it. What such an id stands for is not known.
    fn register(
        &mut self,
        snapshot: Snapshot,
        delivery: ImageDelivery,
        negotiated: &Negotiated,
        method: Method,
    ) -> Result<(Frame, Option<Stored>), CallError> {
        let now = Instant::now();
        let ttl = Duration::from_millis(negotiated.handshake.limits.snapshot_ttl_ms);
        // The clock of the answer is the executor's; a future time would lengthen the life of a frame.
        let age = Duration::from_millis(unix_ms().saturating_sub(snapshot.captured_at.0)).min(ttl);
        let expires_unix_ms = unix_ms().saturating_add(millis(ttl.saturating_sub(age)));
        let expires = now + ttl.saturating_sub(age);
        let elements = snapshot
            .all_elements()
            .map(|element| (element.token.as_str().to_owned(), policy::element(element)));
        let is_new = self.mirror.insert(
            NewRow {
                id: snapshot.snapshot_id.clone(),
                window: snapshot.target.window(),
                target: Some(policy::target(&snapshot.target)),
                window_digest: snapshot.window_digest,
                truncated: snapshot.truncated.elements || snapshot.truncated.depth,
                bounds: snapshot.target.bounds,
                displays: snapshot
                    .displays
                    .iter()
                    .map(|display| display.logical_bounds)
                    .collect(),
                picture: snapshot
                    .image
                    .as_ref()
                    .filter(|image| geometry(image, snapshot.target.bounds) == Geometry::Consistent)
                    .map(|image| PictureSize {
                        width_px: image.width_px,
                        height_px: image.height_px,
                        scale: image.scale,
                    }),
                age,
                elements: elements.collect(),
            },
            now,
        );
        if !is_new {
            let generation = negotiated.generation;
            let reused = Violation::of("snapshot.snapshotId", Reason::Contradiction);
            self.parts
                .forward
                .report_violation(generation, method, reused);
            return Err(CallError::Protocol {
                generation,
                decision_id: None,
            });
        }
        self.displays = snapshot.displays.iter().map(display).collect();
        self.parts.owners.note(
            &snapshot.snapshot_id,
            &self.indexed_id,
            negotiated.generation,
        );
        let image = snapshot.image.as_ref().map(|image| {
            let frame = Some(snapshot.snapshot_id.clone());
            let shows = frame.map(|id| (id, snapshot.target.bounds));
            Stored::new(source(image, negotiated), shows, expires)
        });
        let absence = match (delivery, &image) {
            (ImageDelivery::None, _) => Some(ImageAbsence::NotRequested),
            (ImageDelivery::Reference | ImageDelivery::Inline, None) => {
                Some(match snapshot.image_absence {
                    Some(sets::ImageAbsence::NotOffered) => ImageAbsence::NotOffered,
                    None => ImageAbsence::OmittedByExecutor,
                })
            }
            (ImageDelivery::Reference | ImageDelivery::Inline, Some(_)) => None,
        };
        let image = image.filter(|_| delivery != ImageDelivery::None);
        let frame = Frame {
            snapshot: Arc::new(snapshot),
            expires_unix_ms,
            picture: Picture {
                info: image.as_ref().map(|image| image.info.clone()),
                data: None,
                absence,
            },
        };
        Ok((frame, image))
    }

    /// Fills in the bytes of a picture that is wanted inline.
    ///
    /// # Errors
    /// When the file is not what the executor said; the executor is ended for it.
    async fn inline(
        &self,
        picture: &mut Picture,
        image: Option<&Stored>,
        delivery: ImageDelivery,
        method: Method,
    ) -> Result<(), CallError> {
        let (ImageDelivery::Inline, Some(image)) = (delivery, image) else {
            return Ok(());
        };
        let source = image.source.clone();
        if source.image.byte_length > INLINE_MAX_BYTES {
            picture.absence = Some(ImageAbsence::TooLargeForInline);
            return Ok(());
        }
        let generation = source.generation;
        let read = tokio::task::spawn_blocking(move || image::read(&source)).await;
        match read {
            Ok(Ok(frame)) => {
                picture.info = picture.info.take().map(|info| info.seen(&frame));
                picture.data = Some(frame.bytes);
            }
            Ok(Err(FrameError::Violation(violation))) => {
                self.parts
                    .forward
                    .report_violation(generation, method, violation);
                return Err(CallError::Protocol {
                    generation,
                    decision_id: None,
                });
            }
            // A reader that panicked has read nothing.
            Ok(Err(FrameError::Unreadable | FrameError::TooLarge)) | Err(_) => {
                picture.absence = Some(ImageAbsence::Unreadable);
            }
        }
        Ok(())
    }

    fn images(&self) -> std::sync::MutexGuard<'_, super::image::Images> {
        self.shared
            .images
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the outside which frames live, and drops the images of those that do not.
    pub(crate) fn publish(&mut self) {
        let now = Instant::now();
        self.mirror.expire(now);
        self.images()
            .retain(now, |snapshot| self.mirror.holds(snapshot));
        self.shared.set_live(self.generation, self.mirror.live());
    }

    /// What became of the session's keys. To be taken when no further call is run.
    pub(crate) fn take_keys(&mut self) -> Keys {
        std::mem::take(&mut self.keys)
    }

    /// Ends the session at the executor, if that one still knows it, and says what was dropped. What it holds is let go
    /// of first.
    pub(crate) async fn end(mut self) -> EndedSession {
        self.release_at_end().await;
        self.shared.set_over();
        self.publish();
        let held = EndedSession {
            released_snapshots: u32::try_from(self.mirror.live().len()).unwrap_or(u32::MAX),
            released_images: 0,
        };
        let begun = self.shared.begun();
        if begun == 0 || begun != self.parts.forward.generation() {
            return EndedSession::default();
        }
        let sending = own_message(&self.id, END_PATIENCE, begun);
        match self.parts.forward.end_session(&self.id, sending).await {
            Ok(maka_cu_host::Answer {
                value: Answer::Done(ended),
                ..
            }) => EndedSession {
                released_snapshots: ended.released.snapshots,
                released_images: ended.released.images,
            },
            // A dead executor holds nothing, and a session that does not end dies with its executor.
            Ok(_) | Err(_) => held,
        }
    }
}

/// A message of the gateway itself to one executor, whose successor knows nothing of what it is about; under nobody's deadline
/// but its own.
fn own_message(session: &SessionId, patience: Duration, generation: u64) -> Sending {
    Sending {
        session: Some(session.clone()),
        deadline: Some(Instant::now() + patience),
        extra: Duration::ZERO,
        cancel: CancellationToken::new(),
        generation: Some(generation),
    }
}

fn display(display: &DisplayInfo) -> Display {
    Display {
        id: display.display_id.clone(),
        bounds: display.logical_bounds,
        scale_factor: display.scale_factor,
    }
}

fn source(image: &ImageRef, negotiated: &Negotiated) -> Source {
    Source {
        image_dir: negotiated.image_dir.clone(),
        image: image.clone(),
        generation: negotiated.generation,
    }
}

/// Milliseconds since the Unix epoch.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, millis)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
