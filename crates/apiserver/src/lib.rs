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
//!
//! ```
//! use apiserver::{ApiServer, Options};
//! use k8s_openapi::api::core::v1::Namespace;
//! use kube::{Api, Client};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let server = ApiServer::open(Options::default()).await?;
//! let client = Client::new(server.in_process(), "default");
//! let namespace = Api::<Namespace>::all(client).get("kube-system").await?;
//! assert_eq!(namespace.metadata.name.as_deref(), Some("kube-system"));
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
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
pub use hooks::{FieldError, Hooks, NoHooks, Referrers, RelatedObject};
pub use in_process::InProcess;
pub use kubelet::{Connection, Kubelet, KubeletClient, KubeletClientError, Line, Log};
pub use metrics::Stats;
pub use options::{Backend, Kept, NotRun, Options, Store, Synchronous};
pub use reviewer::{Access, Reviewer};
pub use server::ApiServer;
pub use store::OpenError;
pub use tls::{TlsError, server_config};
pub use user::UserInfo;
