//! Octavia v2.26.

mod catalog;
mod listeners;
mod loadbalancers;
mod members;
mod monitors;
mod offers;
mod ovn;
mod part;
mod policies;
mod pools;
mod profiles;
mod status;
mod tls;
mod tree;
mod vip;

use super::route::Routes;
use super::service::Service;

pub(crate) use self::ovn::NAME as OVN;
pub(crate) use self::status::{answers, fail, transition};

/// Registers Octavia's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::LoadBalancer);
    loadbalancers::routes(&mut table);
    listeners::routes(&mut table);
    pools::routes(&mut table);
    members::routes(&mut table);
    monitors::routes(&mut table);
    policies::routes(&mut table);
    profiles::routes(&mut table);
    offers::routes(&mut table);
    catalog::routes(&mut table);
}
