//! The server as clients see it, in process and over TLS.

mod client;
mod collection;
mod crds;
mod durable;
mod hooks;
mod model;
mod network;
mod objects;
mod support;
mod tables;
mod watches;
