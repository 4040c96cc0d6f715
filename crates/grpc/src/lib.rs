//! Unary gRPC over any stream of bytes, as in the [protocol over HTTP/2].
//!
//! - [`Status`] and [`Code`]: status codes, and the error of a call
//! - `frame`: message framing, with a limit of size
//! - `timeout`: the header `grpc-timeout`
//! - [`Method`] and [`Service`]: methods, and their servers
//! - [`Client`]: calls the methods of one server
//! - [`serve`]: serves the connections of clients
//! - [`AnyAuthority`]: clients with a socket path as their host
//!
//! The crate opens no connections and knows no TLS: both sides get a stream. Messages are not compressed, and a
//! compressed one is refused ([why our own framing](../../docs/adr/0067-grpc-on-h2.md)).
//!
//! [protocol over HTTP/2]: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md

mod authority;
mod client;
mod frame;
mod server;
mod service;
mod status;
mod timeout;

pub use authority::AnyAuthority;
pub use client::{Client, Error};
pub use server::{Limits, serve};
pub use service::{Answer, Context, Method, Service, Services, answer, unimplemented};
pub use status::{Code, Status};

#[cfg(test)]
mod tests;
