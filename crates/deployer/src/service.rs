//! The services: each is a function from the parameters to its configuration.
//!
//! Addresses are names of Kubernetes Services in the namespace of the cloud.

mod glance;
mod keystone;
mod neutron;
mod nova;
mod placement;
mod sections;

use std::fmt;

use crate::check;
use crate::config::{Config, Source};
use crate::parameters::Parameters;

/// A service of OpenStack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Identity.
    Keystone,
    /// Images.
    Glance,
    /// Inventory of resources.
    Placement,
    /// Servers.
    Nova,
    /// Networks.
    Neutron,
}

impl Service {
    /// Every service.
    pub const ALL: [Self; 5] = [
        Self::Keystone,
        Self::Glance,
        Self::Placement,
        Self::Nova,
        Self::Neutron,
    ];

    /// The name of the project.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keystone => "keystone",
            Self::Glance => "glance",
            Self::Placement => "placement",
            Self::Nova => "nova",
            Self::Neutron => "neutron",
        }
    }

    /// The service of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.name() == name)
    }

    /// The name of its configuration file, below `/etc/NAME`.
    pub fn file(self) -> &'static str {
        match self {
            Self::Keystone => "keystone.conf",
            Self::Glance => "glance-api.conf",
            Self::Placement => "placement.conf",
            Self::Nova => "nova.conf",
            Self::Neutron => "neutron.conf",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The configuration of a service: what the cloud's structure demands, our defaults, and above these the user's options
/// that [`check`](crate::check()) accepts.
pub fn configure(service: Service, parameters: &Parameters) -> Config {
    let mut config = ours(service, parameters);
    for option in check::accepted(service, parameters) {
        config.set(&option.section, &option.name, option.value, Source::User);
    }
    config
}

/// The configuration without the user's options.
pub(crate) fn ours(service: Service, parameters: &Parameters) -> Config {
    match service {
        Service::Keystone => keystone::configuration(),
        Service::Glance => glance::configuration(parameters),
        Service::Placement => placement::configuration(parameters),
        Service::Nova => nova::configuration(parameters),
        Service::Neutron => neutron::configuration(parameters),
    }
}

#[cfg(test)]
mod tests;
