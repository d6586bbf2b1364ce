//! Supervises one `maka.cu/2` executor as a child process.
//!
//! Owns the child: which file runs ([`options`], `executable`), how it is made and ended (`process`), what it is asked and what it
//! answers, when it is started again, and what everybody is told about it ([`event`], [`status`]). It knows nothing of policy, of
//! gRPC, or of what the methods mean; readers of answers come from `maka-cu-protocol` and are handed in by the caller.
//!
//! Beside the child, what every host of one needs: [`selection`] says whether there is an executor at all, [`displays`] which displays
//! a picture shows, [`frame`] whether an image file may be believed, and [`overlay`] shows a person what is being done.
//!
//! # What callers can rely on
//! - Every call ends exactly once, at the latest one cancel grace after its deadline.
//! - Delivered work is never sent again. A request that cannot be proved unread ends as `outcome_unknown`.
//! - Errors come in three kinds that never mix: [`MakaCuLifecycleError`], [`MakaCuRpcError`], [`MakaCuProtocolViolation`].
//! - Generations only grow; a new executor is made only after the old one is reaped and its helpers are killed.
//! - Every queue is bounded: the mailbox (callers wait), requests in flight (refused as busy), the child's output (the child waits),
//!   events (the oldest are lost and counted).
//! - No error text and no log line holds anything the executor said.
//!
//! # Example
//! ```no_run
//! use maka_cu_host::{CallOptions, MakaCuService, Options};
//! use maka_cu_protocol::method::Method;
//! use maka_cu_protocol::results::lists::read_app_list;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options::new("/opt/maka/maka-cu", "/var/lib/maka", "/var/lib/maka/images", "1.0.0");
//! let service = MakaCuService::try_new(options)?;
//! let negotiated = service.ensure_started().await?;
//! println!("generation {} can {:?}", negotiated.generation, negotiated.handshake.capabilities);
//!
//! let apps = service.call_typed(Method::AppsList, serde_json::json!({}), CallOptions::default(), read_app_list).await?;
//! println!("{} applications", apps.value.into_result()?.apps.len());
//! service.dispose().await;
//! # Ok(())
//! # }
//! ```
//!
//! Three programs under `examples/` do more and run as they stand: `capabilities` starts an executor and prints what it can do,
//! `bound_click` clicks a button of the process that was looked at, and `cancelled_scroll` gives up a scroll that waits behind a slow
//! call.

pub mod environment;
pub mod options;

pub mod error;
pub mod event;
pub mod failure;
pub mod selection;

pub mod displays;
pub mod frame;
pub mod overlay;

pub mod service;
pub mod status;

mod budget;
mod executable;
pub mod image_dir;
mod pending;
mod process;
mod stderr_tail;
mod streams;
mod supervisor;

pub use displays::resolve_display_snapshots;
pub use error::{CallError, MakaCuLifecycleError, MakaCuProtocolViolation, MakaCuRpcError};
pub use event::{Event, EventStream};
pub use options::Options;
pub use process::ExitCause;
pub use selection::select_backend;
pub use service::{Answer, CallOptions, MakaCuService};
pub use status::{Negotiated, Status};
pub use stderr_tail::StderrExcerpt;
