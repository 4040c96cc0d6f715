//! A Kubernetes-compatible API server as a library, on SQLite or in memory.
//!
//! The core is a tower service: `kube::Client::new` accepts [`ApiServer::in_process`]. [`ApiServer::serve`] adds
//! sockets and TLS. The crate depends neither on OpenStack nor on particular CustomResourceDefinitions: conversion
//! and admission of custom kinds are provided by [`Hooks`]. Schemas, kinds, patches and selectors are in
//! `apimachinery`.
//!
//! ```text
//!   server         opens, serves, closes
//!     serve, in_process    sockets; clients inside the process
//!       auth               authentication and authorization
//!         http             routes to documents, kubelets and verbs
//!           rest           verbs on objects, reviews, evictions
//!             admission    hooks of the process, webhooks
//!     controllers          consequences of writes: garbage, namespaces, names of definitions
//!   call, view             a request for objects; an object in the version of a request
//!   core           the state of a server:
//!     store                memory, or SQLite behind it
//!     authenticator, conversion, webhook, services, metrics
//!   request, response, error
//! ```

mod admission;
mod auth;
mod authenticator;
mod body;
mod bootstrap;
mod call;
mod controllers;
mod controlplane;
mod conversion;
mod core;
mod discovery;
mod error;
mod follow;
mod hooks;
mod http;
mod in_process;
mod kubelet;
mod metrics;
mod namespaces;
mod options;
mod pods;
mod request;
mod response;
mod rest;
mod reviewer;
mod serve;
mod server;
mod services;
mod store;
mod tls;
mod user;
mod view;
mod webhook;

pub mod backup;
pub mod sockets;

pub use body::Body;
pub use follow::Followed;
pub use hooks::{Beside, FieldError, Hooks, NoHooks, Referrers};
pub use in_process::InProcess;
pub use kubelet::{Connection, Kubelet, KubeletClient, KubeletClientError, Line, Log};
pub use metrics::Stats;
pub use options::{Backend, Kept, NotRun, Options, Store, Synchronous};
pub use reviewer::{Access, Reviewer};
pub use server::ApiServer;
pub use store::OpenError;
pub use tls::{TlsError, server_config};
pub use user::UserInfo;
