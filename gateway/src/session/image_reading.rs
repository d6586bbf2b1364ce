//! Reading an image, and the right to go on reading it.
//!
//! The bytes are read and verified once, then they travel at the caller's pace. A caller may take its time; its session and the
//! executor that made the image may be gone before it is through. INVARIANT: no byte leaves after that, as none would to a call
//! that begins then.

use std::sync::PoisonError;

use maka_cu_host::frame::FrameError;
use maka_cu_protocol::ids::SessionId;
use maka_cu_protocol::method::Method;
use tokio::time::Instant;

use super::answer::{ImageBytes, ImageId};
use super::call::CallContext;
use super::caller::Caller;
use super::entry::until;
use super::{Entry, Sessions, image};
use crate::error::{CallError, Limit};

/// What the right to an image hangs on, asked for again before every piece of it.
#[derive(Clone, Debug)]
pub(crate) struct ImageRight {
    sessions: Sessions,
    caller: Caller,
    session: SessionId,
    generation: u64,
}

impl ImageRight {
    /// Whether the caller may have more of the image.
    ///
    /// # Errors
    /// What a call that begins now would be told: the session has ended, or the executor whose image it is.
    pub(crate) fn check(&self) -> Result<(), CallError> {
        let entry = self.sessions.find(&self.caller, &self.session)?;
        self.sessions.is_of_now(self.generation)?;
        // A session whose image is being taken is in use.
        entry.shared.touch();
        Ok(())
    }
}

impl Sessions {
    /// The bytes of an image, verified. Does not wait behind the session's calls.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn read_image(
        &self,
        caller: &Caller,
        session: &SessionId,
        image_id: &ImageId,
        context: CallContext,
    ) -> Result<ImageBytes, CallError> {
        let entry = self.find(caller, session)?;
        let _counted = entry.shared.enter();
        let stored = stored(&entry, image_id)?;
        let (generation, info) = (stored.source.generation, stored.info.clone());
        self.is_of_now(generation)?;
        let right = ImageRight {
            sessions: self.clone(),
            caller: caller.clone(),
            session: session.clone(),
            generation,
        };
        let read = async {
            let room = self.0.images.enter(&caller.principal).await;
            let room = room.ok_or(CallError::Limit(Limit::ImagesAtOnce))?;
            // The room goes with the reader: a caller that leaves does not stop it.
            let read = tokio::task::spawn_blocking(move || {
                image::read(&stored.source).map(|frame| (frame, room))
            })
            .await;
            match read {
                Ok(Ok((frame, room))) => Ok(ImageBytes {
                    info: info.seen(&frame),
                    data: frame.bytes,
                    right: Some(right),
                    _room: Some(room),
                }),
                Ok(Err(FrameError::TooLarge)) => Err(CallError::ImageTooLarge),
                Ok(Err(FrameError::Violation(violation))) => {
                    let forward = &self.0.parts.forward;
                    forward.report_violation(generation, Method::Observe, violation);
                    Err(CallError::Protocol {
                        generation,
                        decision_id: None,
                    })
                }
                // A reader that panicked has read nothing.
                Ok(Err(FrameError::Unreadable)) | Err(_) => Err(CallError::ImageUnreadable),
            }
        };
        until(context.deadline, read).await
    }

    /// An image dies with the executor that made it, also before its session has heard of that.
    fn is_of_now(&self, generation: u64) -> Result<(), CallError> {
        if self.0.parts.forward.generation() == generation {
            Ok(())
        } else {
            Err(CallError::ImageUnknown)
        }
    }
}

fn stored(entry: &Entry, image_id: &ImageId) -> Result<image::Stored, CallError> {
    let images = entry.shared.images.lock();
    let images = images.unwrap_or_else(PoisonError::into_inner);
    images
        .find(image_id, Instant::now())
        .ok_or(CallError::ImageUnknown)
}
