//! The controller on the embedded API server, with simulated nodes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "rollout/accounts.rs"]
mod accounts;
#[path = "rollout/causes.rs"]
mod causes;
#[path = "rollout/certificate.rs"]
mod certificate;
#[path = "rollout/compared.rs"]
mod compared;
#[path = "rollout/drain.rs"]
mod drain;
#[path = "rollout/faults.rs"]
mod faults;
#[path = "rollout/gateway.rs"]
mod gateway;
#[path = "rollout/identities.rs"]
mod identities;
#[path = "rollout/killing.rs"]
mod killing;
#[path = "rollout/life.rs"]
mod life;
#[path = "rollout/operation.rs"]
mod operation;
#[path = "rollout/real.rs"]
mod real;
#[path = "rollout/real_rabbitmq.rs"]
mod real_rabbitmq;
#[path = "rollout/real_rotation.rs"]
mod real_rotation;
#[path = "rollout/requests.rs"]
mod requests;
#[path = "rollout/role.rs"]
mod role;
#[path = "rollout/rotate.rs"]
mod rotate;
#[path = "rollout/schedules.rs"]
mod schedules;
#[path = "rollout/secrecy.rs"]
mod secrecy;
#[path = "rollout/trouble.rs"]
mod trouble;
#[path = "rollout/upgrade.rs"]
mod upgrade;
#[path = "rollout/world.rs"]
mod world;
