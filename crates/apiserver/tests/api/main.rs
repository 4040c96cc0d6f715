//! The server as clients see it, in process and over TLS.

mod client;
mod collection;
mod crds;
mod durable;
mod network;
mod objects;
mod support;
mod watches;
