//! A Kubernetes-compatible API server as a library, on SQLite or in memory.
//!
//! The core is a tower service: `kube::Client::new` accepts [`ApiServer::in_process`]. [`ApiServer::serve`] adds
//! sockets and TLS. The crate depends neither on OpenStack nor on particular CustomResourceDefinitions: conversion and
//! admission of custom kinds are provided by [`Hooks`].
//!
//! ```text
//!   sockets: connections and their limits
//!   serve ──► auth ──► http (routes, verbs) ──► store (memory, or SQLite behind it)
//!                        │  kinds, crd: what is served        │ events
//!                        │  schema, patch, selector, table    ▼
//!                        └─ hooks: convert, default, validate  watch, collector
//! ```

mod admission;
mod auth;
mod body;
mod collector;
mod controlplane;
mod conversion;
mod crd;
mod discovery;
mod error;
mod eviction;
mod follow;
mod hooks;
mod http;
mod in_process;
mod kinds;
mod metrics;
mod namespaces;
mod options;
mod pods;
mod rest;
mod reviewer;
mod serve;
mod server;
mod services;
mod special;
mod store;
mod table;
mod table_path;
mod time;
mod user;
mod value;
mod webhook;

pub mod backup;
pub mod names;
pub mod openapi;
pub mod patch;
pub mod schema;
pub mod selector;
pub mod sockets;

pub use auth::tls::{TlsError, server_config};
pub use body::Body;
pub use follow::Followed;
pub use hooks::{Beside, FieldError, Hooks, NoHooks, Referrers};
pub use in_process::InProcess;
pub use options::{Backend, Kept, NotRun, Options, Store, Synchronous};
pub use pods::{Connection, Kubelet, KubeletClient, KubeletClientError, Line, Log};
pub use reviewer::{Access, Reviewer};
pub use server::{ApiServer, OpenError, Stats};
pub use time::human;
pub use user::UserInfo;
