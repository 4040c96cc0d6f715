//! The reconcile kit that every controller of the suite is built from.
//!
//! A controller here is a function `reconcile(object, ctx) -> Result<Action, Error>` of at most 40
//! lines: fetch, plan (pure), apply, status. This crate supplies what surrounds it:
//!
//! ```text
//!   controller  runs a kube Controller: concurrency, per-object back-off, panics, metrics
//!   retry       when an error is worth another try
//!   finalizer   adding and removing finalizers with optimistic locking
//!   patch       the smallest status patch, guarded by resourceVersion
//!   client      clients that name themselves
//!   decode      objects that may not be decodable
//!   watch       watches that skip such objects, with an event and a metric
//!   events      events that people see in `kubectl describe`
//!   metrics     reconcile counters and durations
//!   election    one of several managers works, by a Lease
//!   health      /healthz, /readyz, /metrics
//!   webhook     conversion, defaults and validation as a kube-apiserver asks for them
//! ```
//!
//! Nothing in this crate sleeps inside a reconcile, and nothing knows OpenStack.

pub mod client;
pub mod controller;
pub mod decode;
pub mod election;
pub mod events;
pub mod finalizer;
pub mod health;
pub mod metrics;
pub mod patch;
pub mod retry;
pub mod watch;
pub mod webhook;
