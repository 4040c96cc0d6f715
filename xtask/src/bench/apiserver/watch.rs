//! Watcher: one connection, and the times between two `@` in its bytes.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::https::Access;

/// Number of consecutive resumptions without an event before a watcher gives up.
const TRIES: usize = 3;
/// Number of bytes kept from the end: more than an event has.
const LAST: usize = 4096;

/// Results of a watcher.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Ages of the received events in microseconds.
    pub(super) times: Vec<u32>,
    /// Number of times that the server ended the watch.
    pub(super) ended: usize,
}

/// An established watch.
pub(super) struct Watch {
    stream: TlsStream<TcpStream>,
    /// Collection of the watch, and the last received revision.
    path: &'static str,
    revision: String,
}

impl Watch {
    /// Watches a collection from a revision on.
    pub(super) async fn begin(
        access: &Access,
        path: &'static str,
        revision: &str,
    ) -> anyhow::Result<Self> {
        let mut stream = access.stream().await?;
        let request = format!(
            "GET {path}?watch=1&resourceVersion={revision} HTTP/1.1\r\nhost: {}\r\naccept: application/json\r\n\r\n",
            access.address
        );
        stream.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        // Byte by byte, since the bytes after the head belong to the body.
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        if !head.starts_with(b"HTTP/1.1 200") {
            bail!("a watch: {}", String::from_utf8_lossy(&head));
        }
        Ok(Self {
            stream,
            path,
            revision: revision.to_owned(),
        })
    }

    /// Records the ages of events in [`Seen`] up to `total`. A watch ended by the server is resumed.
    pub(super) async fn follow(mut self, access: &Access, total: usize, seen: &Mutex<Seen>) {
        let lock = || seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut count, mut vain) = (0, 0);
        while vain < TRIES {
            let before = count;
            self.read(total, &mut count, lock).await;
            if count >= total {
                return;
            }
            lock().ended += 1;
            vain = if count > before { 0 } else { vain + 1 };
            match Self::begin(access, self.path, &self.revision).await {
                Ok(next) => self = next,
                Err(_) => vain += 1,
            }
        }
    }

    /// Reads to the end.
    async fn read<'a>(
        &mut self,
        total: usize,
        count: &mut usize,
        lock: impl Fn() -> std::sync::MutexGuard<'a, Seen>,
    ) {
        let mut buffer = vec![0; 16 << 10];
        let (mut open, mut last) = (None, Vec::with_capacity(3 * LAST));
        while *count < total {
            let data = match self.stream.read(&mut buffer).await {
                Ok(length) if length > 0 => &buffer[..length],
                _ => break,
            };
            if last.len() > 2 * LAST {
                last.drain(..LAST);
            }
            last.extend_from_slice(&data[data.len().saturating_sub(LAST)..]);
            let mut seen = lock();
            stamps(data, now(), &mut open, &mut seen.times);
            *count = seen.times.len();
        }
        if let Some(revision) = last_revision(&last) {
            self.revision = revision;
        }
    }
}

/// Last complete `resourceVersion` in the data.
fn last_revision(data: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(data);
    let mut found = text.rsplit("\"resourceVersion\":\"").filter_map(|rest| {
        let (digits, _) = rest.split_once('"')?;
        digits.parse::<u64>().ok()
    });
    found.next().map(|revision| revision.to_string())
}

/// Extracts the times between two `@`, and keeps an incomplete one in `open`.
fn stamps(data: &[u8], now: u128, open: &mut Option<Vec<u8>>, times: &mut Vec<u32>) {
    for (n, piece) in data.split(|byte| *byte == b'@').enumerate() {
        if n > 0 {
            *open = match open.take() {
                None => Some(Vec::with_capacity(32)),
                Some(stamp) => {
                    times.extend(age(&stamp, now));
                    None
                }
            };
        }
        if let Some(stamp) = open {
            stamp.extend_from_slice(piece);
        }
    }
}

/// Microseconds since a time. A chunk of HTTP may end within the time; the length of the next chunk is then removed.
fn age(stamp: &[u8], now: u128) -> Option<u32> {
    let text = std::str::from_utf8(stamp).ok()?;
    let digits: String = text.split("\r\n").step_by(2).collect();
    let since = now.saturating_sub(digits.parse().ok()?) / 1000;
    Some(u32::try_from(since).unwrap_or(u32::MAX))
}

/// Nanoseconds since 1970.
pub(super) fn now() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_in_one_piece_and_across_pieces() {
        let (mut open, mut times) = (None, Vec::new());
        for data in ["x@1000", "000@y@20", "00\r\n3e8\r\n000@z@30000", "00@"] {
            stamps(data.as_bytes(), 4_000_000, &mut open, &mut times);
        }
        assert_eq!(times, [3000, 2000, 1000]);
    }

    #[test]
    fn a_watch_resumes_from_the_last_complete_revision() {
        let data =
            br#"{"resourceVersion":"41"}} {"resourceVersion":"42","x":1} {"resourceVersion":"4"#;
        assert_eq!(last_revision(data).as_deref(), Some("42"));
        assert_eq!(last_revision(b"nothing"), None);
    }
}
