//! The [Container Storage Interface] 1.13: messages, services, and the address of a socket.
//!
//! ```text
//!   generated   messages and services, from csi.proto of the specification
//!   driver      the name of the driver, its capabilities, and whether it is ready: the service `Identity`
//!   access      which access modes a file system can have
//!   context     what controller and node tell each other
//!   endpoint    `unix:///csi/csi.sock` and `tcp://127.0.0.1:10000`, as the Go driver reads them
//!   zone        a zone as a label
//! ```
//!
//! A service is a trait whose methods answer `UNIMPLEMENTED` unless they are written: [`Identity`], [`Controller`],
//! [`GroupController`], [`Node`]. [`IdentityService`] and its like put one behind [`grpc::Service`]. The fields that
//! the specification marks as secret are left out of `Debug`.
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

/// The response of a method.
pub type Reply<'a, T> = BoxFuture<'a, Result<T, grpc::Status>>;

/// The response of a method that is not written.
fn unserved<M: grpc::Method>() -> Reply<'static, M::Response>
where
    M::Response: Send + 'static,
{
    Box::pin(ready(Err(grpc::unimplemented(M::PATH))))
}

/// The number of secrets, in place of them.
struct Hidden(usize);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} hidden)", self.0)
    }
}

#[cfg(test)]
mod tests;
