//! Listening: a Unix socket that only its owner can open, and a loopback TCP address with `TCP_NODELAY`.
//!
//! The socket is bound inside a fresh folder that only the owner can enter, set to 0600 and then linked into
//! place, so that no umask ever opens it, not even for a moment. A path is taken over only when it is a socket
//! that nobody listens on. What was created is removed again, if it is still ours.

pub mod counted;

use std::{
    fs, io,
    net::SocketAddr,
    os::fd::AsRawFd as _,
    os::unix::{
        fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
        net::UnixListener as StdUnixListener,
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket},
};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::server::TcpIncoming;

/// Name of the file in the state folder that holds the bound TCP address.
pub const ADDRESS_FILE: &str = "address";
/// Where the page of metrics is.
const METRICS_ADDRESS_FILE: &str = "metrics.address";

/// A listener that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The TCP address could not be bound.
    #[error("cannot listen on `{address}`")]
    Tcp {
        /// The configured address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Somebody listens on the socket.
    #[error("another process listens on `{}`; stop it or name another path in `listen.unix`", path.display())]
    SocketInUse {
        /// The configured path.
        path: PathBuf,
    },
    /// Something that is no socket lies there.
    #[error("`{}` exists and is no socket; remove it or name another path in `listen.unix`", path.display())]
    NotASocket {
        /// The configured path.
        path: PathBuf,
    },
    /// The socket could not be made.
    #[error("cannot create the socket `{}`", path.display())]
    Unix {
        /// The configured path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The address file could not be written.
    #[error("cannot write the address file `{}`", path.display())]
    AddressFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Binds `address` and reports what was bound (port 0: the system chose).
///
/// # Errors
/// [`ListenError::Tcp`].
pub fn tcp(address: SocketAddr) -> Result<(TcpIncoming, SocketAddr), ListenError> {
    let refused = |source| ListenError::Tcp { address, source };
    let incoming = TcpIncoming::bind(address).map_err(refused)?;
    let bound = incoming.local_addr().map_err(refused)?;
    // The builder's own `tcp_nodelay` has no effect on a listener that is handed in; without this, answers wait
    // 40 ms for a delayed acknowledgement under load.
    Ok((incoming.with_nodelay(Some(true)), bound))
}

/// A file that is removed when this value goes, if it is still the one that was created.
#[derive(Debug)]
pub struct OwnedFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl OwnedFile {
    fn new(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

impl Drop for OwnedFile {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| metadata.dev() == self.device && metadata.ino() == self.inode);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, "a file of ours could not be removed");
        }
    }
}

/// Creates the Unix socket at `path`, mode 0600.
///
/// # Errors
/// [`ListenError`] when somebody listens there, when something else lies there, or when it cannot be created.
pub fn unix(path: &Path) -> Result<(UnixListenerStream, OwnedFile), ListenError> {
    let refused = |source| ListenError::Unix {
        path: path.to_owned(),
        source,
    };
    clear_stale(path)?;
    let parent = path
        .parent()
        .ok_or_else(|| refused(io::ErrorKind::InvalidInput.into()))?;
    let nursery = tempdir_in(parent).map_err(refused)?;
    let born = nursery.path.join("s");
    let listener = StdUnixListener::bind(&born).map_err(refused)?;
    fs::set_permissions(&born, fs::Permissions::from_mode(0o600)).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    // A link, unlike a rename, does not replace what another gateway has put there in the meantime.
    let linked = fs::hard_link(&born, path);
    fs::remove_file(&born).map_err(refused)?;
    linked.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => ListenError::SocketInUse {
            path: path.to_owned(),
        },
        _ => refused(error),
    })?;
    let owned = OwnedFile::new(path).map_err(refused)?;
    let listener = UnixListener::from_std(listener).map_err(refused)?;
    Ok((UnixListenerStream::new(listener), owned))
}

fn clear_stale(path: &Path) -> Result<(), ListenError> {
    let refused = |source| ListenError::Unix {
        path: path.to_owned(),
        source,
    };
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused(error)),
        Ok(metadata) if metadata.file_type().is_socket() => metadata,
        Ok(_) => {
            return Err(ListenError::NotASocket {
                path: path.to_owned(),
            });
        }
    };
    match knock(path) {
        Err(Errno::ECONNREFUSED) => match remove_exactly(path, &found) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ListenError::SocketInUse {
                path: path.to_owned(),
            }),
            Err(error) => Err(refused(error)),
        },
        Err(Errno::ENOENT) => Ok(()),
        // A listener with a full queue (EAGAIN), or one that may not be asked, is a listener.
        Ok(()) | Err(_) => Err(ListenError::SocketInUse {
            path: path.to_owned(),
        }),
    }
}

/// Removes the file that was found, and not one that another gateway has put there since: says whether it was that one.
fn remove_exactly(path: &Path, found: &fs::Metadata) -> io::Result<bool> {
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let nursery = tempdir_in(parent)?;
    let aside = nursery.path.join("s");
    match fs::rename(path, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        moved => moved?,
    }
    let moved = fs::symlink_metadata(&aside)?;
    let is_it = moved.dev() == found.dev() && moved.ino() == found.ino();
    let put_back = if is_it {
        Ok(())
    } else {
        fs::hard_link(&aside, path)
    };
    fs::remove_file(&aside)?;
    put_back.map(|()| is_it)
}

/// Whether somebody listens. Does not wait for a listener that takes nobody in.
fn knock(path: &Path) -> Result<(), Errno> {
    let socket = socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::empty(),
        None,
    )?;
    fcntl(&socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)
}

/// A folder that only its owner can enter, removed with this value.
struct Nursery {
    path: PathBuf,
}

impl Drop for Nursery {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.path) {
            tracing::warn!(%error, "a folder of ours could not be removed");
        }
    }
}

fn tempdir_in(parent: &Path) -> io::Result<Nursery> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    // Short, since a socket path may have 108 bytes in all.
    let path = parent.join(format!(".mk{:08x}", u32::from_ne_bytes(random)));
    fs::DirBuilder::new().mode(0o700).create(&path)?;
    Ok(Nursery { path })
}

/// Writes the bound address beside the gateway's other files, for programs that asked for port 0.
///
/// # Errors
/// [`ListenError::AddressFile`].
pub fn write_address(state_dir: &Path, address: SocketAddr) -> Result<OwnedFile, ListenError> {
    write(state_dir, ADDRESS_FILE, address)
}

/// As [`write_address`], for the page of metrics.
///
/// # Errors
/// [`ListenError::AddressFile`].
pub fn write_metrics_address(
    state_dir: &Path,
    address: SocketAddr,
) -> Result<OwnedFile, ListenError> {
    write(state_dir, METRICS_ADDRESS_FILE, address)
}

fn write(state_dir: &Path, name: &str, address: SocketAddr) -> Result<OwnedFile, ListenError> {
    let path = state_dir.join(name);
    let refused = |source| ListenError::AddressFile {
        path: path.clone(),
        source,
    };
    let fresh = state_dir.join(format!("{name}.new"));
    fs::write(&fresh, format!("{address}\n")).map_err(refused)?;
    // A reader sees the whole line or no file.
    fs::rename(&fresh, &path).map_err(refused)?;
    OwnedFile::new(&path).map_err(refused)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream as StdUnixStream;

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::Builder::new()
            .prefix("mk")
            .tempdir_in("/tmp")
            .unwrap()
    }

    /// K10: the socket is 0600 whatever the umask, and nothing else is left beside it.
    #[tokio::test]
    async fn the_socket_is_private_even_under_umask_zero() {
        let folder = folder();
        let path = folder.path().join("gateway.sock");
        let before = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
        let made = unix(&path);
        nix::sys::stat::umask(before);
        let (_listener, owned) = made.unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        StdUnixStream::connect(&path).unwrap();
        drop(owned);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn only_a_socket_nobody_listens_on_is_taken_over() {
        let folder = folder();
        let path = folder.path().join("gateway.sock");
        let first = unix(&path).unwrap();
        assert!(matches!(unix(&path), Err(ListenError::SocketInUse { .. })));
        let (listener, owned) = first;
        drop(listener);
        // A gateway that was killed leaves its socket behind.
        std::mem::forget(owned);
        assert!(path.exists());
        let (_listener, owned) = unix(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "not ours").unwrap();
        drop(owned);
        assert!(path.exists(), "a file that replaced ours is left alone");
        assert!(matches!(unix(&path), Err(ListenError::NotASocket { .. })));
    }

    /// Two gateways find the same left-over socket: the slower one leaves the faster one's alone.
    #[test]
    fn a_socket_that_came_in_the_meantime_is_left_alone() {
        let folder = folder();
        let path = folder.path().join("gateway.sock");
        drop(StdUnixListener::bind(&path).unwrap());
        let found = fs::symlink_metadata(&path).unwrap();
        // Kept, so that its inode is not given to the next.
        fs::hard_link(&path, folder.path().join("old")).unwrap();
        fs::remove_file(&path).unwrap();
        let _listener = StdUnixListener::bind(&path).unwrap();
        assert!(!remove_exactly(&path, &found).unwrap());
        StdUnixStream::connect(&path).unwrap();
        let found = fs::symlink_metadata(&path).unwrap();
        assert!(remove_exactly(&path, &found).unwrap() && !path.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// A listener that takes nobody in is one all the same, and asking it does not hang.
    #[tokio::test]
    async fn a_full_queue_is_somebody() {
        let folder = folder();
        let path = folder.path().join("full.sock");
        let listener = StdUnixListener::bind(&path).unwrap();
        nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
        // How many a queue of length 0 takes differs by system.
        for _ in 0..8 {
            let _asked = knock(&path);
        }
        assert!(matches!(unix(&path), Err(ListenError::SocketInUse { .. })));
    }

    #[tokio::test]
    async fn the_address_file_names_the_bound_port() {
        let folder = folder();
        let (_incoming, bound) = tcp(([127, 0, 0, 1], 0).into()).unwrap();
        let owned = write_address(folder.path(), bound).unwrap();
        let text = fs::read_to_string(folder.path().join(ADDRESS_FILE)).unwrap();
        assert_eq!(text.trim_end().parse::<SocketAddr>().unwrap(), bound);
        assert_ne!(bound.port(), 0);
        drop(owned);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
