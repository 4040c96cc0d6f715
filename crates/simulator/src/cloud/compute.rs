//! Nova v2.1 with microversions to 2.93.

mod actions;
mod attachments;
mod catalog;
mod condition;
mod create;
mod flavors;
mod groups;
mod history;
mod hosts;
mod interfaces;
mod keypairs;
mod lifecycle;
mod listing;
mod metadata;
mod migrations;
mod passed_on;
mod pattern;
mod quotas;
mod rebuild;
mod servers;
mod view;
mod volume_flow;
mod volumes;

use super::route::Routes;
use super::service::Service;

pub(crate) use self::flavors::flavor;
pub(crate) use self::hosts::{Host, put_server, register};
pub(crate) use self::lifecycle::{fail, switched_off, transition};
pub(crate) use self::volume_flow::{answered as volume_answered, answers_for_volumes};

/// Registers Nova's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::Compute);
    servers::routes(&mut table);
    history::routes(&mut table);
    hosts::routes(&mut table);
    migrations::routes(&mut table);
    metadata::routes(&mut table);
    interfaces::routes(&mut table);
    volumes::routes(&mut table);
    flavors::routes(&mut table);
    keypairs::routes(&mut table);
    groups::routes(&mut table);
    quotas::routes(&mut table);
    catalog::routes(&mut table);
}
