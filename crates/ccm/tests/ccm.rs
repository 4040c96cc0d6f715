//! The controllers against an API server and a simulated cloud, all in this process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "ccm/world.rs"]
mod world;

#[path = "ccm/nodes.rs"]
mod nodes;

#[path = "ccm/services.rs"]
mod services;

#[path = "ccm/killing.rs"]
mod killing;

#[path = "ccm/sharing.rs"]
mod sharing;

#[path = "ccm/traffic.rs"]
mod traffic;

#[path = "ccm/recovery.rs"]
mod recovery;

#[path = "ccm/faults.rs"]
mod faults;

#[path = "ccm/groups.rs"]
mod groups;

#[path = "ccm/ovn.rs"]
mod ovn;

#[path = "ccm/routes.rs"]
mod routes;

#[path = "ccm/routes_killing.rs"]
mod routes_killing;

#[path = "ccm/tls.rs"]
mod tls;

#[path = "ccm/placement.rs"]
mod placement;

#[path = "ccm/second.rs"]
mod second;

#[path = "ccm/serial.rs"]
mod serial;

#[path = "ccm/weights.rs"]
mod weights;

#[path = "ccm/scenarios.rs"]
mod scenarios;

#[path = "ccm/bugs.rs"]
mod bugs;

#[path = "ccm/bad_input.rs"]
mod bad_input;

#[path = "ccm/older.rs"]
mod older;

#[path = "ccm/families.rs"]
mod families;

#[path = "ccm/drift.rs"]
mod drift;

#[path = "ccm/local.rs"]
mod local;

#[path = "ccm/role.rs"]
mod role;

#[path = "ccm/effects.rs"]
mod effects;

#[path = "ccm/wrong_values.rs"]
mod wrong_values;

#[path = "ccm/fresh.rs"]
mod fresh;

#[path = "ccm/pending.rs"]
mod pending;

#[path = "ccm/logins.rs"]
mod logins;
