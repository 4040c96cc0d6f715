//! A connection to a cloud that a test can cut, as the end of a process cuts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, pending};
use openstack::transport::{Limits, SharedTransport, Transport, TransportError};

/// How long a request is on its way. Where time is paused, a list and the change after it would otherwise have the same
/// time, and the list would count as one that shows the change.
const LATENCY: Duration = Duration::from_millis(1);

/// The switch that cuts a connection, for good.
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

    /// A function that cuts the connection when it is called for the `nth` time, and the count of its calls.
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

/// How often the function of [`Cut::at_call`] has been called.
pub struct Calls {
    count: Arc<AtomicU64>,
    nth: u64,
}

impl Calls {
    /// True if the call at which the connection is cut has happened, whatever else has cut it.
    #[must_use]
    pub fn reached(&self) -> bool {
        self.count.load(Ordering::SeqCst) >= self.nth
    }
}

/// `inner`, until it is cut.
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
