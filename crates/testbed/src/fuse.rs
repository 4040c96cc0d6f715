//! Controllers that are stopped at their n-th write, as `kill -9` would stop them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::Running;

/// How long after the last visible change the last write may come.
const TRAIL: Duration = Duration::from_secs(5);
const MINUTE: Duration = Duration::from_secs(60);
/// After this many kills, controllers are considered not to make progress.
const MOST_KILLS: usize = 1000;

/// Runs controllers again and again, each time up to their write number `nth`, until they are at `rest` before that;
/// returns how often they were killed. With 1, they are killed at every single write.
///
/// # Panics
/// When the controllers do not come to rest, with the writes of the last starts.
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

/// Lets the reconciles end that follow the last change, then waits for the end of the controllers, and starts them
/// again; returns what they write in the first minute.
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

/// Lets a number of writes through: the last one is stored, but its answer is lost, and nothing that is sent
/// after it reaches a server. What a server rejects changes nothing and does not count. Writes pass one after the
/// other, so that none is in flight beside the last one. Clones share the count.
#[derive(Clone)]
pub struct Fuse {
    limit: usize,
    writes: Arc<Mutex<Vec<String>>>,
    reads: Arc<Mutex<Vec<String>>>,
    blown: CancellationToken,
    one_at_a_time: Arc<tokio::sync::Mutex<()>>,
}

impl Fuse {
    /// Blows at the write number `limit`, counted from 1.
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

    /// Never blows, and records the writes.
    #[must_use]
    pub fn recorder() -> Self {
        Self::at(usize::MAX)
    }

    /// When the fuse has blown.
    pub async fn blown(&self) {
        self.blown.cancelled().await;
    }

    /// The writes so far: method and path.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        self.writes.lock().clone()
    }

    /// The paths that were read so far.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.reads.lock().clone()
    }

    /// `client`, with the fuse in front of it.
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

    /// Lets a request through to any server; `write` is what it writes, none if it only reads, and `stored` whether an
    /// answer says that this was done. Does not return when the fuse has blown before or by this request.
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

    /// Records a write, and blows if it is the last one or comes after it.
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
