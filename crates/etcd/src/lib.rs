//! Member management of etcd's v3 API, over any stream of bytes.
//!
//! - [`messages`]: requests and responses of the services Cluster and Maintenance
//! - `peers`: the metric of connections between members
//! - [`Client`]: calls one member, with a time limit
//! - [`server`]: serves the calls of a (simulated) member
//! - [`tls`]: TLS of both sides, with certificates of etcd's CA
//!
//! The crate opens no connections: a controller reaches a member through a forwarded port of an API server, a test
//! through a socket or within the process ([why our own
//! client](../../docs/adr/0024-etcd-through-the-forwarded-port.md)).

pub mod messages;
pub mod server;
pub mod tls;

mod client;
mod peers;

pub use client::{Client, Error};
pub use grpc::{Code, Status};

#[cfg(test)]
mod tests;
