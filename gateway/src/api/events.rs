//! `maka.gateway.v1.Events`: what happens, as a stream that its reader's pace bounds.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use maka_proto::v1;
use tokio::time::{Sleep, sleep_until};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use super::{
    Edge, answered, caller, deadline,
    decode::{scalar, violations::Violations},
    encode, status,
};
use crate::{error::CallError, events::Watcher, session::caller::Reach};

#[derive(Debug)]
pub(super) struct EventsService(pub(super) Arc<Edge>);

#[tonic::async_trait]
impl v1::events_server::Events for EventsService {
    type WatchStream = Watched;

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let caller = caller(request.extensions())?;
        let context = deadline::context(request.extensions());
        let session = match &request.get_ref().session_id {
            Some(session) => {
                let mut violations = Violations::default();
                let session = scalar::session_id(&mut violations, session);
                Some(violations.finish(session)?)
            }
            None => None,
        };
        let approver = request.get_ref().approver;
        if approver && caller.reach != Reach::All {
            return Err(status::forbidden());
        }
        let watcher = answered("Watch", &caller, async {
            if approver {
                self.0.events.watch_to_approve(&caller, session)
            } else {
                self.0.events.watch(&caller, session)
            }
        })
        .await?;
        Ok(Response::new(Watched {
            watcher: Some(watcher),
            deadline: context.deadline.map(|at| Box::pin(sleep_until(at))),
        }))
    }
}

/// The messages of one watcher, made as they are sent: whoever does not read makes none.
#[derive(Debug)]
pub(super) struct Watched {
    /// Nothing once the deadline has passed.
    watcher: Option<Watcher>,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Stream for Watched {
    type Item = Result<v1::Event, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(watcher) = &mut self.watcher else {
            return Poll::Ready(None);
        };
        let next = Pin::new(watcher).poll_next(context);
        // Looked at in any case, so that events without a pause do not carry the stream past its deadline.
        let is_late = self
            .deadline
            .as_mut()
            .is_some_and(|deadline| deadline.as_mut().poll(context).is_ready());
        if is_late {
            self.watcher = None;
            let late = status::status_of(&CallError::Deadline { stage: None });
            return Poll::Ready(Some(Err(late)));
        }
        next.map(|event| event.map(|event| Ok(encode::events::event(event))))
    }
}
