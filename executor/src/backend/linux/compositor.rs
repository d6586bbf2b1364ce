//! The Wayland compositor, as far as it concerns us: whether it is there, and when it ends.
//!
//! Not one request is sent to it. Its protocols let a program do nothing with the windows of others; the connection is held
//! because it ends with the session.

use std::env;
use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::backend::doctor::StartRefusal;

/// A compositor that takes no connection by then is stopped.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The compositor of this environment. The connection ends when this is dropped.
#[derive(Debug)]
pub(super) struct Compositor {
    connection: UnixStream,
    lost: CancellationToken,
}

impl Compositor {
    /// Connects to the one that `WAYLAND_DISPLAY` names.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn connect() -> Result<Self, StartRefusal> {
        let socket = socket(|name| env::var_os(name).map(PathBuf::from)).ok_or_else(|| {
            refusal("there is no Wayland compositor: WAYLAND_DISPLAY or XDG_RUNTIME_DIR is not set")
        })?;
        let lost = CancellationToken::new();
        let end_of_thread = lost.clone().drop_guard();
        // Room for the one answer: the thread never waits for a caller that gave up.
        let (sender, receiver) = sync_channel(1);
        let watching = thread::Builder::new()
            .name("wayland".to_owned())
            .spawn(move || {
                let _end_of_thread = end_of_thread;
                let connected = UnixStream::connect(socket)
                    .and_then(|stream| Ok((stream.try_clone()?, stream)));
                match connected {
                    Ok((ours, theirs)) => {
                        if sender.send(Some(theirs)).is_ok() {
                            until_it_ends(ours);
                        }
                    }
                    // Nobody listens after the time-out.
                    Err(_) => drop(sender.send(None)),
                }
            });
        if watching.is_err() {
            return Err(refusal("no thread could be made for the compositor"));
        }
        match receiver.recv_timeout(CONNECT_TIMEOUT) {
            Ok(Some(connection)) => Ok(Self { connection, lost }),
            Ok(None) => Err(refusal(
                "the Wayland compositor that WAYLAND_DISPLAY names cannot be reached",
            )),
            Err(_) => Err(refusal(
                "the Wayland compositor that WAYLAND_DISPLAY names does not answer",
            )),
        }
    }

    /// Fires when it has ended.
    pub(super) fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }
}

impl Drop for Compositor {
    fn drop(&mut self) {
        // The thread ends by this; an error means that the connection has ended already.
        drop(self.connection.shutdown(Shutdown::Both));
    }
}

/// A compositor sends nothing to a client that never asked, so all that is read here is the end.
fn until_it_ends(mut stream: UnixStream) {
    let mut sink = [0; 64];
    loop {
        match stream.read(&mut sink) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Whether this is a Wayland session, as programs are told.
pub(super) fn is_named() -> bool {
    env::var_os("WAYLAND_DISPLAY").is_some_and(|name| !name.is_empty())
}

/// Where it listens: a name in the runtime folder, or a whole path (`wl_display_connect`).
fn socket(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
    let display = set("WAYLAND_DISPLAY")?;
    if display.is_absolute() {
        return Some(display);
    }
    Some(set("XDG_RUNTIME_DIR")?.join(display))
}

fn refusal(missing: &str) -> StartRefusal {
    StartRefusal {
        missing: missing.to_owned(),
        remedy:
            "set WAYLAND_DISPLAY and XDG_RUNTIME_DIR to those of the session that is to be driven"
                .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_where_clients_look_for_it() {
        let check = |display: Option<&str>, folder: Option<&str>, expected: Option<&str>| {
            let found = socket(|name| match name {
                "WAYLAND_DISPLAY" => display.map(PathBuf::from),
                "XDG_RUNTIME_DIR" => folder.map(PathBuf::from),
                _ => None,
            });
            assert_eq!(found, expected.map(PathBuf::from), "{display:?} {folder:?}");
        };
        check(
            Some("wayland-1"),
            Some("/run/me"),
            Some("/run/me/wayland-1"),
        );
        check(Some("/tmp/w"), None, Some("/tmp/w"));
        check(Some("wayland-1"), None, None);
        check(Some(""), Some("/run/me"), None);
        check(None, Some("/run/me"), None);
    }
}
