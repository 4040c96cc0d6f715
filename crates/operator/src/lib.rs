//! The reconcile kit of all controllers of the suite.
//!
//! A controller is a function `reconcile(object, ctx) -> Result<Action, Error>` of at most 40 lines: fetch, plan
//! (pure), apply, status. This crate provides:
//!
//! - [`controller`]: runs a kube Controller, with bounded concurrency, per-object back-off, caught panics and metrics
//! - [`retry`]: the time of the retry of a failed reconcile
//! - [`finalizer`]: adding and removing finalizers with optimistic locking
//! - [`patch`]: the smallest status patch, guarded by resourceVersion
//! - [`client`]: clients with a name, limits of answers and connections
//! - [`proxy`]: the proxy for a request
//! - [`decode`]: objects that may not be decodable
//! - [`store`]: waits for watches that have not listed their kind yet
//! - [`watch`]: watches that skip such objects, with an event and a metric
//! - [`events`]: events for `kubectl describe`
//! - [`metrics`]: reconcile counters and durations
//! - [`election`]: leader election by a Lease
//! - [`health`]: `/healthz`, `/readyz`, `/metrics`
//! - [`words`]: errors as sentences for users
//! - [`webhook`]: conversion, defaulting and validation as a kube-apiserver requests them
//!
//! Nothing in this crate sleeps inside a reconcile, and nothing depends on OpenStack.
//!
//! ```
//! use operator::retry::{Failures, When};
//!
//! let failures = Failures::default();
//! let first = failures.pause("default/demo", When::Backoff);
//! let second = failures.pause("default/demo", When::Backoff);
//! assert!(first < second);
//! // An invalid object is tried again when somebody changes it.
//! assert_eq!(failures.pause("default/demo", When::OnChange), None);
//! ```

pub mod client;
pub mod controller;
pub mod decode;
pub mod election;
pub mod events;
pub mod finalizer;
pub mod health;
pub mod metrics;
pub mod patch;
pub mod proxy;
pub mod retry;
pub mod store;
pub mod watch;
pub mod webhook;
pub mod words;

#[cfg(test)]
mod tests;
