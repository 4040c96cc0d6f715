//! Neutron v2.0 with ML2/OVN.

mod address_scopes;
mod agents;
mod automatic;
mod extensions;
mod extra_routes;
mod floating;
mod networks;
mod ports;
mod quotas;
mod resource;
mod routers;
mod security;
mod subnet_pools;
mod subnets;
mod tags;
mod trunks;

use super::route::Routes;
use super::service::Service;

pub(crate) use self::floating::{point as point_floating_ip, release as release_floating_ip};
pub(crate) use self::ports::{
    addresses, allocate, bind, change as change_port, create_internal as create_port, of_device,
    release, remove as remove_port,
};
pub(crate) use self::security::ensure_default_group;

/// Registers Neutron's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::Network);
    networks::routes(&mut table);
    subnets::routes(&mut table);
    subnet_pools::routes(&mut table);
    address_scopes::routes(&mut table);
    ports::routes(&mut table);
    routers::routes(&mut table);
    security::routes(&mut table);
    floating::routes(&mut table);
    trunks::routes(&mut table);
    tags::routes(&mut table);
    quotas::routes(&mut table);
    agents::routes(&mut table);
    extensions::routes(&mut table);
}
