//! Controllers that are stopped at the n-th write, as `kill -9` would stop them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::Running;

/// Maximum time between the last visible change and the last write.
const TRAIL: Duration = Duration::from_secs(5);
const MINUTE: Duration = Duration::from_secs(60);
/// Number of kills after which controllers count as making no progress.
const MOST_KILLS: usize = 1000;

/// Runs controllers again and again, each time up to write number `nth`, until they reach `rest` before that write.
/// Returns the number of kills. With 1, the controllers are killed at every single write.
///
/// # Panics
/// The controllers do not come to rest; the message has the writes of the last starts.
pub async fn killed_at_every<F>(
    nth: usize,
    start: impl Fn(&Fuse) -> Running,
    rest: impl Fn() -> F,
) -> usize
where
    F: Future<Output = ()>,
{
    let mut last: [Vec<String>; 3] = Default::default();
    for kills in 0..MOST_KILLS {
        let fuse = Fuse::at(nth);
        let running = start(&fuse);
        let rest = async {
            rest().await;
            tokio::time::sleep(TRAIL).await;
        };
        let killed = tokio::select! {
            () = fuse.blown() => true,
            () = rest => false,
        };
        running.kill().await;
        if !killed {
            return kills;
        }
        last.rotate_left(1);
        last[2] = fuse.writes();
    }
    panic!(
        "no rest after {MOST_KILLS} kills at write {nth}; the writes of the last starts: {last:#?}"
    )
}

/// Lets the reconciles after the last change end, waits for the end of the controllers, and starts them again. Returns
/// their writes in the first minute.
pub async fn written_at_rest(
    end: impl Future<Output = ()>,
    start: impl FnOnce(&Fuse) -> Running,
) -> Vec<String> {
    tokio::time::sleep(TRAIL * 2).await;
    end.await;
    let fuse = Fuse::recorder();
    let _running = start(&fuse);
    tokio::time::sleep(MINUTE).await;
    fuse.writes()
}

/// Limit on the number of writes: the last write is stored, but the answer is lost, and no later request reaches a
/// server. A write that a server rejects does not count. Writes pass one after the other, so that none is in flight
/// besides the last one. Clones share the count.
#[derive(Clone)]
pub struct Fuse {
    limit: usize,
    writes: Arc<Mutex<Vec<String>>>,
    reads: Arc<Mutex<Vec<String>>>,
    blown: CancellationToken,
    one_at_a_time: Arc<tokio::sync::Mutex<()>>,
}

impl Fuse {
    /// Creates a fuse that blows at write number `limit`, counted from 1.
    #[must_use]
    pub fn at(limit: usize) -> Self {
        Self {
            limit,
            writes: Arc::default(),
            reads: Arc::default(),
            blown: CancellationToken::new(),
            one_at_a_time: Arc::default(),
        }
    }

    /// Creates a fuse that never blows, and records the writes.
    #[must_use]
    pub fn recorder() -> Self {
        Self::at(usize::MAX)
    }

    /// Waits until the fuse has blown.
    pub async fn blown(&self) {
        self.blown.cancelled().await;
    }

    /// Returns the writes so far: method and path.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        self.writes.lock().clone()
    }

    /// Returns the paths of the reads so far.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.reads.lock().clone()
    }

    /// Returns `client` behind the fuse.
    #[must_use]
    pub fn protect(&self, client: &Client) -> Client {
        let (fuse, inner) = (self.clone(), client.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (fuse, client) = (fuse.clone(), inner.clone());
            async move {
                // A dry run stores nothing.
                let query = request.uri().query().unwrap_or_default();
                let trial = query.split('&').any(|part| part == "dryRun=All");
                let write = (request.method() != Method::GET && !trial)
                    .then(|| format!("{} {}", request.method(), request.uri().path()));
                if write.is_none() {
                    let path = request.uri().path().to_owned();
                    fuse.reads.lock().push(path);
                }
                let stored = |answer: &Result<Response<Body>, kube::Error>| {
                    answer.as_ref().is_ok_and(|it| it.status().is_success())
                };
                fuse.pass(write, client.send(request), stored).await
            }
        });
        Client::new(service, client.default_namespace())
    }

    /// Lets a request through to any server. `write` describes the write, `None` for a read; `stored` tells from an
    /// answer whether the write was stored. Does not return if the fuse has blown before or blows at this request.
    pub async fn pass<T>(
        &self,
        write: Option<String>,
        send: impl Future<Output = T>,
        stored: impl FnOnce(&T) -> bool,
    ) -> T {
        let turn = match &write {
            Some(_) if self.limit < usize::MAX => Some(self.one_at_a_time.lock().await),
            _ => None,
        };
        if !self.blown.is_cancelled() {
            let answer = send.await;
            let is_last =
                stored(&answer) && write.is_some_and(|description| self.is_last(description));
            if !is_last {
                return answer;
            }
        }
        drop(turn);
        std::future::pending().await
    }

    /// Records a write, and blows if the write is the last one or later.
    fn is_last(&self, description: String) -> bool {
        let mut writes = self.writes.lock();
        writes.push(description);
        let last = writes.len() >= self.limit;
        if last {
            self.blown.cancel();
        }
        last
    }
}
