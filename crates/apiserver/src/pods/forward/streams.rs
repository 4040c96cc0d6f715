//! Port forwarding over SPDY streams: for each connection to a port, the client opens one stream for data and one for
//! errors, both with the same request id.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::spdy::{self, Decoder, Encoder, Frame, Headers, Status};
use super::{Target, UNTAKEN};

/// Timeout for the second stream of a pair.
const PAIRING: Duration = Duration::from_secs(30);
/// Maximum number of open streams of a connection.
const MOST: usize = 1000;

/// Serves a connection with the received bytes `pieces` until its end. Outgoing frames go to `outgoing`.
pub(super) async fn serve(
    pieces: impl Stream<Item = Bytes>,
    outgoing: mpsc::Sender<Bytes>,
    target: Arc<Target>,
) {
    let mut pieces = std::pin::pin!(pieces);
    let mut decoder = Decoder::default();
    let mut buffer = BytesMut::new();
    let mut streams = Streams {
        target,
        outgoing,
        encoder: Encoder::default(),
        last: 0,
        open: HashMap::new(),
        pairs: HashMap::new(),
        running: JoinSet::new(),
    };
    loop {
        let late = streams.next_deadline();
        tokio::select! {
            piece = pieces.next() => match piece {
                Some(piece) => buffer.extend_from_slice(&piece),
                None => return,
            },
            Some(ended) = streams.running.join_next() => {
                for stream in ended.unwrap_or_default() {
                    streams.open.remove(&stream);
                }
            }
            () = tokio::time::sleep_until(late.unwrap_or_else(Instant::now)), if late.is_some() => {
                streams.close_late().await;
            }
            () = streams.outgoing.closed() => return,
        }
        loop {
            match decoder.next(&mut buffer) {
                Ok(None) => break,
                Ok(Some(Frame::GoAway)) => return,
                Ok(Some(frame)) => streams.receive(frame).await,
                Err(problem) => {
                    tracing::debug!(%problem, "port forwarding: the client sent malformed SPDY");
                    streams.send(spdy::go_away(streams.last, true)).await;
                    return;
                }
            }
        }
    }
}

/// Streams of a connection.
struct Streams {
    target: Arc<Target>,
    outgoing: mpsc::Sender<Bytes>,
    encoder: Encoder,
    /// Last stream id of the client.
    last: u32,
    open: HashMap<u32, Open>,
    /// Incomplete [`Pair`]s by request id.
    pairs: HashMap<String, Pair>,
    /// Tasks of complete pairs, each with the result of two stream ids.
    running: JoinSet<[u32; 2]>,
}

/// An open stream.
struct Open {
    kind: Kind,
    /// Receiver of the data; `None` if data is discarded or has ended.
    input: Option<mpsc::Sender<Bytes>>,
    /// True if a task receives the data.
    taken: bool,
    /// Closes the connection to the port.
    cancel: CancellationToken,
}

/// Incomplete pair.
struct Pair {
    until: Instant,
    port: u16,
    data: Option<(u32, mpsc::Receiver<Bytes>)>,
    error: Option<u32>,
    cancel: CancellationToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Error,
}

impl Streams {
    async fn send(&self, frame: Bytes) {
        // Fails after the end of the connection; the reader detects the end, too.
        let _ = self.outgoing.send(frame).await;
    }

    async fn receive(&mut self, frame: Frame) {
        match frame {
            Frame::Syn {
                stream,
                fin,
                headers,
            } => self.begin(stream, fin, &headers).await,
            Frame::Data { stream, fin, bytes } => self.take(stream, fin, bytes).await,
            Frame::Reset { stream } => {
                if let Some(open) = self.open.remove(&stream)
                    && open.kind == Kind::Data
                {
                    open.cancel.cancel();
                }
            }
            Frame::Ping { id } if id % 2 == 1 => self.send(spdy::ping(id)).await,
            Frame::Ping { .. } | Frame::GoAway | Frame::Other => {}
        }
    }

    async fn begin(&mut self, stream: u32, fin: bool, headers: &Headers) {
        if stream.is_multiple_of(2) || stream <= self.last {
            return self.send(spdy::reset(stream, Status::ProtocolError)).await;
        }
        self.last = stream;
        if self.open.len() >= MOST {
            return self.send(spdy::reset(stream, Status::RefusedStream)).await;
        }
        let Some((kind, port)) = purpose(headers) else {
            return self.send(spdy::reset(stream, Status::Cancel)).await;
        };
        let reply = self.encoder.reply(stream);
        self.send(reply).await;
        let request = request(stream, kind, headers);
        let pair = self
            .pairs
            .entry(request.clone())
            .or_insert_with(|| Pair::new(port));
        let taken = match kind {
            Kind::Data => pair.data.is_some(),
            Kind::Error => pair.error.is_some(),
        };
        if taken {
            let name = if kind == Kind::Data { "data" } else { "error" };
            let why = format!(
                "error processing stream for request {request}: {name} stream already assigned"
            );
            if let Some(error) = pair.error {
                self.send(spdy::data(error, false, why.as_bytes())).await;
            }
            return self.send(spdy::reset(stream, Status::Cancel)).await;
        }
        let mut open = Open {
            kind,
            input: None,
            taken: false,
            cancel: pair.cancel.clone(),
        };
        match kind {
            Kind::Data => {
                let (input, incoming) = mpsc::channel(UNTAKEN);
                open.input = Some(input).filter(|_| !fin);
                pair.port = port;
                pair.data = Some((stream, incoming));
            }
            Kind::Error => pair.error = Some(stream),
        }
        self.open.insert(stream, open);
        self.start(&request);
    }

    /// Starts forwarding for a complete pair.
    fn start(&mut self, request: &str) {
        let complete = |pair: &&Pair| pair.data.is_some() && pair.error.is_some();
        if self.pairs.get(request).filter(complete).is_none() {
            return;
        }
        let Some(Pair {
            port,
            data: Some((data, incoming)),
            error: Some(error),
            cancel,
            ..
        }) = self.pairs.remove(request)
        else {
            return;
        };
        if let Some(open) = self.open.get_mut(&data) {
            open.taken = true;
        }
        let (target, outgoing) = (Arc::clone(&self.target), self.outgoing.clone());
        self.running.spawn(async move {
            let framed = |bytes: &[u8]| spdy::data(data, false, bytes);
            let forwarding = target.forward(port, incoming, &outgoing, framed);
            let ends = match cancel.run_until_cancelled(forwarding).await {
                Some(Ok(())) => vec![spdy::data(data, true, b""), spdy::data(error, true, b"")],
                Some(Err(why)) => vec![
                    spdy::data(error, false, why.as_bytes()),
                    spdy::reset(data, Status::Cancel),
                    spdy::reset(error, Status::Cancel),
                ],
                // The client has reset the data stream and waits for the end of the error stream.
                None => vec![spdy::data(error, true, b"")],
            };
            for frame in ends {
                let _ = outgoing.send(frame).await;
            }
            [data, error]
        });
    }

    async fn take(&mut self, stream: u32, fin: bool, bytes: Bytes) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        if let Some(input) = open.input.as_ref().filter(|_| !bytes.is_empty()) {
            if open.taken {
                tokio::select! {
                    // Fails when the pod has closed the connection.
                    _ = input.send(bytes) => {}
                    () = self.outgoing.closed() => {}
                }
            } else if input.try_send(bytes).is_err() {
                // The stream has filled its queue before the second stream came.
                self.open.remove(&stream);
                return self.send(spdy::reset(stream, Status::Cancel)).await;
            }
        }
        if fin && open.input.is_some() {
            open.input = None;
        }
    }

    /// Deadline of the next incomplete pair.
    fn next_deadline(&self) -> Option<Instant> {
        self.pairs.values().map(|pair| pair.until).min()
    }

    /// Closes incomplete pairs after their deadline.
    async fn close_late(&mut self) {
        let now = Instant::now();
        let late = self.pairs.extract_if(|_, pair| pair.until <= now);
        for (request, pair) in late.collect::<Vec<_>>() {
            let why = format!("(request={request}) timed out waiting for streams");
            if let Some(error) = pair.error {
                self.send(spdy::data(error, false, why.as_bytes())).await;
            }
            for stream in pair
                .error
                .into_iter()
                .chain(pair.data.map(|(data, _)| data))
            {
                self.open.remove(&stream);
                self.send(spdy::reset(stream, Status::Cancel)).await;
            }
        }
    }
}

impl Pair {
    fn new(port: u16) -> Self {
        Self {
            until: Instant::now() + PAIRING,
            port,
            data: None,
            error: None,
            cancel: CancellationToken::new(),
        }
    }
}

/// Type and port of a stream; `None` for unknown types.
fn purpose(headers: &Headers) -> Option<(Kind, u16)> {
    let port = headers.get("port").parse().ok().filter(|port| *port > 0)?;
    match headers.get("streamtype") {
        "data" => Some((Kind::Data, port)),
        "error" => Some((Kind::Error, port)),
        _ => None,
    }
}

/// Request id of a stream. Old clients send none, and open the error stream right before the data stream.
fn request(stream: u32, kind: Kind, headers: &Headers) -> String {
    match (headers.get("requestid"), kind) {
        ("", Kind::Error) => stream.to_string(),
        ("", Kind::Data) => (i64::from(stream) - 2).to_string(),
        (given, _) => given.to_owned(),
    }
}

#[cfg(test)]
mod tests;
