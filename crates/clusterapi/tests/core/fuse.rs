//! Controllers that are stopped at their n-th write, as `kill -9` would stop them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api::kube::Client;
use http::{Method, Request};
use kube::client::Body;
use tokio_util::sync::CancellationToken;

use crate::world::World;

/// How long after the last visible change the last write may come.
const TRAIL: Duration = Duration::from_secs(5);

/// Runs the controllers again and again, each time up to their write number `nth`, until they are at `rest` before
/// that; returns how often they were killed. With 1, they are killed at every single write.
pub(crate) async fn killed_at_every<F>(nth: usize, world: &World, rest: impl Fn() -> F) -> usize
where
    F: Future<Output = ()>,
{
    let mut kills = 0;
    loop {
        let fuse = Fuse::at(nth);
        world.run_with(&fuse);
        let rest = async {
            rest().await;
            tokio::time::sleep(TRAIL).await;
        };
        let killed = tokio::select! {
            () = fuse.blown() => true,
            () = rest => false,
        };
        world.kill().await;
        if !killed {
            return kills;
        }
        kills += 1;
    }
}

/// Lets a number of writes through: the last one is stored, but its answer is lost, and nothing that is sent
/// after it reaches a server. What a server refuses changes nothing and does not count. Clones share the count.
#[derive(Clone)]
pub(crate) struct Fuse {
    limit: usize,
    writes: Arc<AtomicUsize>,
    blown: CancellationToken,
}

impl Fuse {
    /// Blows at the write number `limit`, counted from 1.
    pub(crate) fn at(limit: usize) -> Self {
        Self {
            limit,
            writes: Arc::default(),
            blown: CancellationToken::new(),
        }
    }

    /// When the fuse has blown.
    pub(crate) async fn blown(&self) {
        self.blown.cancelled().await;
    }

    /// `client`, with the fuse in front of it.
    pub(crate) fn protect(&self, client: &Client) -> Client {
        let (fuse, inner) = (self.clone(), client.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (fuse, client) = (fuse.clone(), inner.clone());
            async move {
                let writes = request.method() != Method::GET;
                if !fuse.blown.is_cancelled() {
                    let answer = client.send(request).await;
                    let stored = answer
                        .as_ref()
                        .is_ok_and(|answer| answer.status().is_success());
                    if !(writes && stored && fuse.is_last()) {
                        return answer;
                    }
                }
                std::future::pending().await
            }
        });
        Client::new(service, client.default_namespace())
    }

    /// Counts a write, and blows if it is the last one or comes after it.
    fn is_last(&self) -> bool {
        let last = self.writes.fetch_add(1, Ordering::SeqCst) + 1 >= self.limit;
        if last {
            self.blown.cancel();
        }
        last
    }
}
