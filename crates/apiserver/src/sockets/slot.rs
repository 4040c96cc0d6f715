//! Place of a connection among the others of a socket, and its waiting times.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Version};
use hyper::body::Body as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Limits;

/// Connections of a socket.
pub(super) struct Places {
    limits: Limits,
    all: Arc<Mutex<All>>,
}

#[derive(Default)]
struct All {
    next: u64,
    /// In the order of acceptance.
    open: BTreeMap<u64, Arc<Shared>>,
}

/// Place of a connection, free again after the drop.
pub struct Slot {
    shared: Arc<Shared>,
    limits: Limits,
    entry: Option<(Arc<Mutex<All>>, u64)>,
}

/// State of a connection.
struct Shared {
    state: Mutex<State>,
    close: CancellationToken,
}

struct State {
    /// Requests with complete headers, and without a complete answer.
    open: usize,
    /// Open requests without a complete body.
    arriving: usize,
    /// End of the last request, or acceptance of the connection.
    since: Instant,
    /// Start of a request, or of the wait for the first one.
    begun: Option<Instant>,
    /// Start of a blocked write to the client.
    blocked: Option<Instant>,
    /// True for HTTP/2: sends more than requests.
    http2: bool,
    /// True after an upgrade: no longer HTTP.
    kept: bool,
}

impl State {
    /// True if the connection may be closed in favour of another: no answer is pending.
    fn is_waiting(&self) -> bool {
        !self.kept && self.open == self.arriving
    }

    /// Time of the end, if nothing happens until then.
    fn end(&self, limits: &Limits) -> Option<Instant> {
        if self.kept {
            return None;
        }
        let blocked = self.blocked.map(|since| since + limits.write);
        if self.open > 0 {
            return blocked;
        }
        let header = self.begun.map(|since| since + limits.header);
        let idle = self.since + limits.idle;
        [blocked, header, Some(idle)].into_iter().flatten().min()
    }
}

impl Shared {
    fn new() -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            state: Mutex::new(State {
                open: 0,
                arriving: 0,
                since: now,
                begun: Some(now),
                blocked: None,
                http2: false,
                kept: false,
            }),
            close: CancellationToken::new(),
        })
    }
}

impl Places {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            all: Arc::default(),
        }
    }

    /// [`Slot`] for a new connection; `None` if all others have a pending answer.
    pub(super) fn admit(&self) -> Option<Slot> {
        let mut all = self.all.lock();
        if all.open.len() >= self.limits.connections && !all.make_room() {
            return None;
        }
        let (number, shared) = (all.next, Shared::new());
        all.next += 1;
        all.open.insert(number, Arc::clone(&shared));
        Some(Slot {
            shared,
            limits: self.limits,
            entry: Some((Arc::clone(&self.all), number)),
        })
    }

    /// Closes the connection with the longest wait, if any.
    pub(super) fn make_room(&self) -> bool {
        self.all.lock().make_room()
    }
}

impl All {
    fn make_room(&mut self) -> bool {
        let waiting = self.open.iter().filter_map(|(number, shared)| {
            let state = shared.state.lock();
            state.is_waiting().then_some((state.since, *number))
        });
        let Some((_, oldest)) = waiting.min() else {
            return false;
        };
        if let Some(shared) = self.open.remove(&oldest) {
            shared.close.cancel();
        }
        true
    }
}

impl Slot {
    pub(super) fn alone(limits: Limits) -> Self {
        Self {
            shared: Shared::new(),
            limits,
            entry: None,
        }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Ends when the connection has to make room for another.
    pub async fn closed(&self) {
        self.shared.close.cancelled().await;
    }

    /// Ends when the connection has waited for too long, or has to make room.
    pub(super) async fn expired(&self) {
        loop {
            let now = Instant::now();
            let (end, is_open) = {
                let state = self.shared.state.lock();
                (state.end(&self.limits), state.open > 0)
            };
            if end.is_some_and(|end| end <= now) {
                return;
            }
            // The reason of the wait may change, and bring the end forward. Most connections belong to watches.
            let soon = now + self.limits.header * if is_open { 4 } else { 1 };
            tokio::select! {
                () = sleep_until(end.map_or(soon, |end| end.min(soon))) => {}
                () = self.closed() => return,
            }
        }
    }

    /// Keeps the connection after an upgrade from HTTP.
    pub(super) fn keep(&self) {
        self.shared.state.lock().kept = true;
    }

    /// Records a [`Request`] with complete headers.
    pub(super) fn begin(&self, request: &Request<Incoming>) -> (Option<Asked>, Sending) {
        let has_body = !request.body().is_end_stream();
        let mut state = self.shared.state.lock();
        state.begun = None;
        state.http2 |= request.version() == Version::HTTP_2;
        state.open += 1;
        state.arriving += usize::from(has_body);
        let asked = has_body.then(|| Asked(Arc::clone(&self.shared)));
        (asked, Sending(Arc::clone(&self.shared)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some((all, number)) = &self.entry {
            all.lock().open.remove(number);
        }
    }
}

/// Request with an incomplete body, until dropped.
pub(super) struct Asked(Arc<Shared>);

impl Drop for Asked {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.arriving = state.arriving.saturating_sub(1);
    }
}

/// Request with an incomplete answer, until dropped.
pub(super) struct Sending(Arc<Shared>);

impl Drop for Sending {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.open = state.open.saturating_sub(1);
        state.since = Instant::now();
    }
}

/// Bytes of a connection.
pub(super) struct Watched<S> {
    stream: S,
    shared: Arc<Shared>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, place: &Slot) -> Self {
        Self {
            stream,
            shared: Arc::clone(&place.shared),
        }
    }

    fn wrote<T>(&self, outcome: Poll<T>) -> Poll<T> {
        let mut state = self.shared.state.lock();
        match outcome {
            Poll::Pending => {
                state.blocked.get_or_insert_with(Instant::now);
            }
            Poll::Ready(_) => state.blocked = None,
        }
        outcome
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            let mut state = self.shared.state.lock();
            if state.open == 0 && !state.http2 {
                state.begun.get_or_insert_with(Instant::now);
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.wrote(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.wrote(outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
