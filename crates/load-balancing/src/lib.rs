//! One planner for Octavia: a [`Desired`] load balancer and the [`Observed`] one become [`Step`]s. Pure functions.
//!
//! ```text
//!   desired     the load balancer for a controller, and the fields managed by the plan
//!   observed    the existing load balancer with all parts
//!   step        requests to Octavia
//!   plan        the missing requests, in an order acceptable to Octavia
//!   members     the requests of the members of a pool
//!   difference  the changes of an existing listener, pool or health monitor
//!   status      requests that Octavia accepts in a provisioning status
//! ```
//!
//! Rules of Octavia in the plan, each held by the model in the tests:
//!
//! - A load balancer takes one change at a time, and none while PENDING ([`Status`]).
//! - A tree is accepted in the request for a new load balancer alone. A later listener comes without a pool, a later pool
//!   without members and health monitor; Octavia answers other requests with 500.
//! - Two listeners of one transport have different ports: a listener in the way is deleted first.
//! - The protocol of a pool and the type of a health monitor cannot change: the old part is deleted, and the next plan
//!   creates the new one.
//! - A request for all members ([`Step::SetMembers`]) changes the monitor port of a member, and removes none.
//! - Some drivers have no requests for several parts at once ([`Desired::is_serial`]).
//!
//! Names, tags, descriptions and the question of ownership belong to the controllers.

mod desired;
mod difference;
mod members;
mod observed;
mod plan;
mod status;
mod step;

pub use desired::{Desired, Fields, Names};
pub use difference::{FORWARDED_FOR, allows_everyone};
pub use observed::{Branch, Key, Observed, transport};
pub use plan::{leftovers, steps, upkeep};
pub use status::Status;
pub use step::{Action, Step};
