//! A Kubernetes-compatible API server as a library, on SQLite or in memory.
//!
//! The core is a tower service: `kube::Client::new` accepts [`ApiServer::in_process`]. [`ApiServer::serve`] adds
//! sockets and TLS. The crate depends neither on OpenStack nor on particular CustomResourceDefinitions: conversion and
//! admission of custom kinds are provided by [`Hooks`]. Schemas, kinds, patches and selectors are in `apimachinery`.
//!
//! ```text
//!   sockets: connections and their limits
//!   serve ──► auth ──► http (routes, verbs) ──► store (memory, or SQLite behind it)
//!                        │                                    │ events
//!                        └─ hooks: convert, default, validate ▼
//!                                                              watch, collector
//! ```

mod admission;
mod auth;
mod body;
mod collector;
mod controlplane;
mod conversion;
mod discovery;
mod error;
mod eviction;
mod follow;
mod hooks;
mod http;
mod in_process;
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
mod user;
mod webhook;

pub mod backup;
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
pub use user::UserInfo;
