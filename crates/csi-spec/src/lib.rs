//! [Container Storage Interface] 1.13: messages, services, and socket addresses.
//!
//! - messages and services, generated from csi.proto of the specification
//! - [`driver`]: name, capabilities and readiness of the driver, in the service [`Identity`]
//! - [`access`]: access modes of a file system
//! - [`context`]: keys shared by controller and node
//! - [`endpoint`]: `unix:///csi/csi.sock` and `tcp://127.0.0.1:10000`, as the Go driver reads them
//! - [`zone`]: label of a zone
//!
//! A service is a trait: [`Identity`], [`Controller`], [`GroupController`], [`Node`]. By default its methods answer
//! `UNIMPLEMENTED`. [`IdentityService`], [`ControllerService`], [`GroupControllerService`] and [`NodeService`] adapt an
//! implementation to [`grpc::Service`]. `Debug` omits the fields marked as secret by the specification.
//!
//! [Container Storage Interface]: https://github.com/container-storage-interface/spec/blob/v1.13.0/spec.md

pub mod access;
pub mod context;
pub mod driver;
pub mod endpoint;
pub mod zone;

mod generated {
    #[allow(
        missing_docs, // The names are those of the specification.
    clippy::all,
        clippy::pedantic
    )]
    #[rustfmt::skip]
    pub(super) mod csi;
}

pub use generated::csi::*;

use std::fmt;

use futures::future::{BoxFuture, ready};

/// Response of a method, as a future.
pub type Reply<'a, T> = BoxFuture<'a, Result<T, grpc::Status>>;

/// Response of a method without an implementation.
fn unserved<M: grpc::Method>() -> Reply<'static, M::Response>
where
    M::Response: Send + 'static,
{
    Box::pin(ready(Err(grpc::unimplemented(M::PATH))))
}

/// Stand-in for secrets in `Debug`: only their number.
struct Hidden(usize);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} hidden)", self.0)
    }
}

#[cfg(test)]
mod tests;
