//! Room in memory for images on their way to callers. A caller that does not read keeps its room, so nobody may have all of
//! it: half is for everybody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::caller::PrincipalName;

/// Images whose bytes are in memory at a time, each of at most [`maka_cu_host::frame::FRAME_MAX_BYTES`]: until a caller
/// has taken them.
const IMAGES_AT_ONCE: usize = 8;

/// Of these, for one principal.
const IMAGES_OF_PRINCIPAL: usize = IMAGES_AT_ONCE / 2;

/// How long an image waits for room.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ImageRooms {
    all: Arc<Semaphore>,
    /// One for each principal that has had an image. Principals are configured, so there are not many.
    own: Arc<Mutex<HashMap<PrincipalName, Arc<Semaphore>>>>,
}

/// Room for one image, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct ImageRoom {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Default for ImageRooms {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(IMAGES_AT_ONCE)),
            own: Arc::default(),
        }
    }
}

impl ImageRooms {
    /// Room for an image of this principal; nothing when there is none in time.
    pub(crate) async fn enter(&self, principal: &PrincipalName) -> Option<ImageRoom> {
        let own = {
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            let rooms = own
                .entry(principal.clone())
                .or_insert_with(|| Arc::new(Semaphore::new(IMAGES_OF_PRINCIPAL)));
            Arc::clone(rooms)
        };
        let entered = async {
            // The principal's own first: what waits for that is not in anybody's way.
            let own = own.acquire_owned().await.ok()?;
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(ImageRoom {
                _all: all,
                _own: own,
            })
        };
        timeout(PATIENCE, entered).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One principal that never reads leaves room for others.
    #[tokio::test]
    async fn half_the_room_is_for_everybody_else() {
        let rooms = ImageRooms::default();
        let (greedy, other) = (PrincipalName::new("greedy"), PrincipalName::new("other"));
        let mut taken = Vec::new();
        for _ in 0..IMAGES_OF_PRINCIPAL {
            taken.push(rooms.enter(&greedy).await.unwrap());
        }
        let more = rooms.enter(&greedy);
        let mut more = std::pin::pin!(more);
        let now = std::future::poll_fn(|context| {
            std::task::Poll::Ready(more.as_mut().poll(context).is_pending())
        });
        assert!(now.await, "no more for one");
        let others: Vec<_> = [rooms.enter(&other).await, rooms.enter(&other).await].into();
        assert!(others.iter().all(Option::is_some));
        taken.pop();
        assert!(more.await.is_some(), "room that is given back is room");
    }
}
