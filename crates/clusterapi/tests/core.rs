//! The controllers of cluster.x-k8s.io against an API server in this process, with a provider that implements the
//! contract, and a second API server as the workload cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "core/world.rs"]
mod world;

#[path = "core/taints.rs"]
mod taints;

#[path = "core/scaling.rs"]
mod scaling;

#[path = "core/lifecycle.rs"]
mod lifecycle;

#[path = "core/events.rs"]
mod events;

#[path = "core/killing.rs"]
mod killing;

#[path = "core/labels.rs"]
mod labels;

#[path = "core/health.rs"]
mod health;

#[path = "core/in_place.rs"]
mod in_place;

#[path = "core/draining.rs"]
mod draining;

#[path = "core/duties.rs"]
mod duties;

#[path = "core/waiting.rs"]
mod waiting;

#[path = "core/resources.rs"]
mod resources;

#[path = "core/kubeconfig.rs"]
mod kubeconfig;

#[path = "core/release.rs"]
mod release;

#[path = "core/topology.rs"]
mod topology;
