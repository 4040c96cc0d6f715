//! Address of a socket, in the syntax of the Go driver.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use grpc::{AnyAuthority, Limits, Service};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Maximum number of concurrent connections, since each takes memory: a controller pod has six sidecars, a node pod
/// two.
const CONNECTIONS: usize = 16;
/// Pause after a failed accept, mostly for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Address on which a driver listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Path of a Unix socket.
    Unix(PathBuf),
    /// Address and port: `127.0.0.1:10000`.
    Tcp(String),
}

/// Reason why a socket is not served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Syntax error in an [`Endpoint`].
    #[error("--endpoint `{}` is neither unix:///DIRECTORY/SOCKET nor tcp://ADDRESS:PORT", .0.escape_debug())]
    Unknown(String),
    /// The path has a file other than a socket.
    #[error("--endpoint: {} exists and is not a socket: move it away or choose another path", .0.display())]
    Occupied(PathBuf),
    /// The system call failed.
    #[error("--endpoint: cannot listen on {0}: {1}")]
    Bind(Endpoint, io::Error),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

impl std::str::FromStr for Endpoint {
    type Err = Error;

    /// Parses an endpoint. The scheme is case-insensitive. The path is absolute with or without its leading slash:
    /// `unix://csi/csi.sock`, as in the manifests of the Go driver, is `/csi/csi.sock`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::Unknown(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(unknown)?;
        let path = rest.trim_start_matches('/');
        match scheme.to_ascii_lowercase().as_str() {
            "unix" if !path.is_empty() && !path.contains('\0') => {
                Ok(Self::Unix(PathBuf::from(format!("/{path}"))))
            }
            "tcp" if rest.rsplit_once(':').is_some_and(is_address) => {
                Ok(Self::Tcp(rest.to_owned()))
            }
            _ => Err(unknown()),
        }
    }
}

fn is_address((_, port): (&str, &str)) -> bool {
    port.parse::<u16>().is_ok()
}

/// Socket in state of listening.
#[derive(Debug)]
pub struct Listening {
    // Before the listener, since that keeps the inode: so the socket of another process has a different one.
    socket: Option<Socket>,
    listener: Listener,
    place: Endpoint,
}

/// Socket file, with device and inode to detect a replacement by another process. Dropping removes the file, unless
/// replaced.
#[derive(Debug)]
struct Socket {
    path: PathBuf,
    id: (u64, u64),
}

impl Socket {
    fn from_path(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            id: Self::id(path)?,
        })
    }

    fn id(path: &Path) -> io::Result<(u64, u64)> {
        let found = std::fs::symlink_metadata(path)?;
        Ok((found.dev(), found.ino()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if Self::id(&self.path).is_ok_and(|found| found == self.id) {
            // A file that cannot be removed is replaced by the next process.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Endpoint {
    /// Listens. A socket file of another process is replaced, even if still served, as by the Go driver: the newer
    /// process of a rollout takes over.
    ///
    /// # Errors
    /// [`Error`]: the path or port is taken, or the system call failed.
    pub async fn listen(&self) -> Result<Listening, Error> {
        let failed = |source| Error::Bind(self.clone(), source);
        let (listener, place, socket) = match self {
            Self::Unix(path) => {
                match std::fs::symlink_metadata(path) {
                    Ok(found) if found.file_type().is_socket() => {
                        std::fs::remove_file(path).map_err(failed)?;
                    }
                    Ok(_) => return Err(Error::Occupied(path.clone())),
                    Err(_) => {} // Absent, or bind says why not.
                }
                let listener = UnixListener::bind(path).map_err(failed)?;
                let socket = Socket::from_path(path).map_err(failed)?;
                (Listener::Unix(listener), self.clone(), Some(socket))
            }
            Self::Tcp(address) => {
                // An empty host means all addresses, as in Go.
                let listener = match address.strip_prefix(':').map(str::parse) {
                    Some(Ok(port)) => TcpListener::bind(everywhere(port)).await,
                    _ => TcpListener::bind(address).await,
                };
                let listener = listener.map_err(failed)?;
                let bound = listener.local_addr().map_err(failed)?;
                let place = Self::Tcp(bound.to_string());
                (Listener::Tcp(listener), place, None)
            }
        };
        Ok(Listening {
            listener,
            place,
            socket,
        })
    }
}

/// [`SocketAddr`] for a port on all addresses: of IPv6 and, by default of Linux, of IPv4; of IPv4 alone on a machine
/// without IPv6.
#[must_use]
pub fn everywhere(port: u16) -> SocketAddr {
    let has_v6 = std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok();
    match has_v6 {
        true => (Ipv6Addr::UNSPECIFIED, port).into(),
        false => (Ipv4Addr::UNSPECIFIED, port).into(),
    }
}

impl Listening {
    /// Address of the socket, with the port chosen by the system in place of 0.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.place
    }

    /// Serves clients until `stop`, then removes the socket, and returns after the end of all calls.
    pub async fn serve(self, service: Arc<dyn Service>, limits: Limits, stop: CancellationToken) {
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        let tasks = TaskTracker::new();
        loop {
            let Ok(permit) = Arc::clone(&connections).acquire_owned().await else {
                return;
            };
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            let Ok(stream) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let (service, stop) = (Arc::clone(&service), stop.clone());
            let task: BoxFuture<'static, ()> = Box::pin(async move {
                // A broken connection is the client's concern.
                let _ = grpc::serve(stream, service, limits, stop).await;
                drop(permit);
            });
            tasks.spawn(task);
        }
        drop(self.socket);
        drop(self.listener);
        tasks.close();
        tasks.wait().await;
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Listener {
    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            // Old kubelets, and current ones in the registration of plugins, send the socket path as authority.
            Self::Unix(listener) => Box::new(AnyAuthority::new(listener.accept().await?.0)),
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
        })
    }
}
