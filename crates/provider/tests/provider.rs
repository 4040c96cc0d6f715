//! The controllers against an API server and a simulated cloud, all in this process. The tests write the owners,
//! Cluster and Machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "provider/world.rs"]
mod world;

#[path = "provider/adoption.rs"]
mod adoption;

#[path = "provider/application_credentials.rs"]
mod application_credentials;

#[path = "provider/balancers.rs"]
mod balancers;

#[path = "provider/bastion.rs"]
mod bastion;

#[path = "provider/cluster.rs"]
mod cluster;

#[path = "provider/credential.rs"]
mod credential;

#[path = "provider/identity.rs"]
mod identity;

#[path = "provider/images.rs"]
mod images;

#[path = "provider/invalid.rs"]
mod invalid;

#[path = "provider/killing.rs"]
mod killing;

#[path = "provider/leftovers.rs"]
mod leftovers;

#[path = "provider/lives.rs"]
mod lives;

#[path = "provider/looks.rs"]
mod looks;

#[path = "provider/machine.rs"]
mod machine;

#[path = "provider/ovn.rs"]
mod ovn;

#[path = "provider/ownership.rs"]
mod ownership;

#[path = "provider/pairs.rs"]
mod pairs;

#[path = "provider/placement.rs"]
mod placement;

#[path = "provider/pools.rs"]
mod pools;

#[path = "provider/drift.rs"]
mod drift;

#[path = "provider/faults.rs"]
mod faults;

#[path = "provider/families.rs"]
mod families;

#[path = "provider/rebuild.rs"]
mod rebuild;

#[path = "provider/retries.rs"]
mod retries;

#[path = "provider/servers.rs"]
mod servers;

#[path = "provider/subnets.rs"]
mod subnets;

#[path = "provider/templates.rs"]
mod templates;

#[path = "provider/trouble.rs"]
mod trouble;

#[path = "provider/trunks.rs"]
mod trunks;

#[path = "provider/warnings.rs"]
mod warnings;

#[path = "provider/whose.rs"]
mod whose;

#[path = "provider/zones.rs"]
mod zones;
