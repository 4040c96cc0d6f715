//! The server as clients see it, in process and over TLS.

mod client;
mod crds;
mod objects;
mod support;
mod watches;
