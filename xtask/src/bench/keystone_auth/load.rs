//! Concurrent reviews over kept connections, as of an API server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;

use crate::bench::csi::percentile;
use crate::https::Access;

/// Timeout of an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of an answer, in bytes.
const LARGEST: usize = 1 << 20;

/// Bytes of an HTTP request.
pub(super) type Request = Arc<[u8]>;

/// Rate of reviews.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rate {
    pub(super) per_second: f64,
    /// Time of an answer in milliseconds.
    pub(super) median: f64,
    pub(super) percentile_99: f64,
    pub(super) reviews: u64,
    /// Number of missing answers, and of refusals of a valid token.
    pub(super) wrong: u64,
}

/// [`Request`] with a review as its body.
pub(super) fn request(body: &str) -> Request {
    let text = format!(
        "POST /webhook HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    text.into_bytes().into()
}

/// Sends requests over one connection for each list, repeating the list for a duration, or once.
pub(super) async fn rate(
    access: &Access,
    lists: Vec<Vec<Request>>,
    lasting: Option<Duration>,
) -> anyhow::Result<Rate> {
    let mut connections = Vec::new();
    for list in lists {
        connections.push((Connection::open(access).await?, list));
    }
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for (mut connection, list) in connections {
        let access = access.clone();
        tasks.spawn(async move {
            let (mut times, mut wrong) = (Vec::new(), 0);
            let mut at = 0;
            loop {
                let is_over = match lasting {
                    Some(lasting) => begun.elapsed() >= lasting,
                    None => at >= list.len(),
                };
                let Some(request) = list.get(at % list.len()).filter(|_| !is_over) else {
                    return anyhow::Ok((times, wrong));
                };
                let sent = Instant::now();
                match tokio::time::timeout(PATIENCE, connection.ask(request)).await? {
                    Ok(true) => {}
                    Ok(false) => wrong += 1,
                    Err(_) => {
                        wrong += 1;
                        connection = Connection::open(&access).await?;
                    }
                }
                times.push(sent.elapsed().as_secs_f64() * 1000.0);
                at += 1;
            }
        });
    }
    let (mut times, mut wrong) = (Vec::new(), 0);
    while let Some(ended) = tasks.join_next().await {
        let (some, of_it) = ended??;
        times.extend(some);
        wrong += of_it;
    }
    let reviews = times.len() as u64;
    Ok(Rate {
        per_second: reviews as f64 / begun.elapsed().as_secs_f64(),
        median: percentile(&mut times, 0.5),
        percentile_99: percentile(&mut times, 0.99),
        reviews,
        wrong,
    })
}

struct Connection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(access: &Access) -> anyhow::Result<Self> {
        let stream = tokio::time::timeout(PATIENCE, access.stream()).await??;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(8 << 10),
        })
    }

    /// True if the answer accepts the token, or allows the request.
    async fn ask(&mut self, request: &[u8]) -> anyhow::Result<bool> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        self.buffer.clear();
        let mut end = None;
        while end.is_none_or(|end| self.buffer.len() < end) {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the connection is closed");
            }
            if end.is_none()
                && let Some(head) = find(&self.buffer, b"\r\n\r\n")
            {
                let length = content_length(&self.buffer[..head])?;
                end = Some(head + 4 + length);
            }
        }
        let yes: [&[u8]; 4] = [
            b"\"authenticated\":true",
            b"\"authenticated\": true",
            b"\"allowed\":true",
            b"\"allowed\": true",
        ];
        Ok(yes.iter().any(|it| find(&self.buffer, it).is_some()))
    }
}

fn content_length(head: &[u8]) -> anyhow::Result<usize> {
    let head = std::str::from_utf8(head)?;
    let mut lines = head.split("\r\n").filter_map(|it| it.split_once(':'));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length
        .context("an answer without a length")?
        .1
        .trim()
        .parse()?;
    if length > LARGEST {
        bail!("an answer of {length} bytes");
    }
    Ok(length)
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|it| it == wanted)
}
