//! Connection to a cloud that a test can cut, like the end of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, pending};
use openstack::transport::{Limits, SharedTransport, Transport, TransportError};

/// Latency of a request. Under paused time, a list and the change after it would otherwise have the same time, and the
/// list would count as one that shows the change.
const LATENCY: Duration = Duration::from_millis(1);

/// Switch that cuts a connection, for good.
#[derive(Clone, Debug, Default)]
pub struct Cut(Arc<AtomicBool>);

impl Cut {
    /// Cuts the connection: neither requests nor responses pass from now on.
    pub fn cut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// True if the connection is cut.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns a function that cuts the connection at its `nth` call, and the count of the calls.
    pub fn at_call(&self, nth: u64) -> (Calls, impl Fn() + Send + Sync + use<>) {
        let (cut, count) = (self.clone(), Arc::new(AtomicU64::new(0)));
        let calls = Calls {
            count: count.clone(),
            nth,
        };
        let call = move || {
            if count.fetch_add(1, Ordering::SeqCst) + 1 == nth {
                cut.cut();
            }
        };
        (calls, call)
    }
}

/// Number of calls of the function of [`Cut::at_call`].
pub struct Calls {
    count: Arc<AtomicU64>,
    nth: u64,
}

impl Calls {
    /// True if the call that cuts the connection has happened, even if the connection was cut before.
    #[must_use]
    pub fn reached(&self) -> bool {
        self.count.load(Ordering::SeqCst) >= self.nth
    }
}

/// Returns `inner` as a transport that fails once `cut` is set.
#[must_use]
pub fn line(inner: SharedTransport, cut: &Cut) -> SharedTransport {
    let cut = cut.clone();
    Arc::new(Line { inner, cut })
}

struct Line {
    inner: SharedTransport,
    cut: Cut,
}

impl Transport for Line {
    fn send(
        &self,
        request: http::Request<Bytes>,
        limits: Limits,
    ) -> BoxFuture<'static, Result<http::Response<Bytes>, TransportError>> {
        if self.cut.is_cut() {
            return pending().boxed();
        }
        let answer = self.inner.send(request, limits);
        let cut = self.cut.clone();
        async move {
            tokio::time::sleep(LATENCY).await;
            if cut.is_cut() {
                return pending().await;
            }
            let answer = answer.await;
            if cut.is_cut() {
                pending::<()>().await;
            }
            answer
        }
        .boxed()
    }
}
