//! The part of etcd's v3 API that manages members, over any stream of bytes.
//!
//! ```text
//!   messages   requests and answers of the services Cluster and Maintenance
//!   grpc       one message as a frame; status codes
//!   client     asks one member, within a time limit
//!   server     answers as a member does (for simulated ones)
//!   tls        certificates of both sides under etcd's CA
//! ```
//!
//! It opens no connection: a controller reaches a member through a forwarded port of an API server, a test through a
//! socket or within the process ([why our own client](../../docs/adr/0024-etcd-through-the-forwarded-port.md)).

pub mod messages;
pub mod server;
pub mod tls;

mod client;
mod grpc;

pub use client::{Client, Error};
pub use grpc::{Code, Status};

#[cfg(test)]
mod tests;
