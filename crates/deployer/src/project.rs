//! Services of OpenStack by the names of their projects.

use std::fmt;

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
    /// Volumes, in clouds with `storage.volumes` in the parameters.
    Cinder,
    /// Load balancers, in clouds with `services.octavia.enabled` in the parameters.
    Octavia,
}

impl Service {
    /// Every service.
    pub const ALL: [Self; 7] = [
        Self::Keystone,
        Self::Glance,
        Self::Placement,
        Self::Nova,
        Self::Neutron,
        Self::Cinder,
        Self::Octavia,
    ];

    /// Name of the project.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keystone => "keystone",
            Self::Glance => "glance",
            Self::Placement => "placement",
            Self::Nova => "nova",
            Self::Neutron => "neutron",
            Self::Cinder => "cinder",
            Self::Octavia => "octavia",
        }
    }

    /// [`Service`] of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.name() == name)
    }

    /// Name of the configuration file, below `/etc/NAME`.
    pub fn file(self) -> &'static str {
        match self {
            Self::Keystone => "keystone.conf",
            Self::Glance => "glance-api.conf",
            Self::Placement => "placement.conf",
            Self::Nova => "nova.conf",
            Self::Neutron => "neutron.conf",
            Self::Cinder => "cinder.conf",
            Self::Octavia => "octavia.conf",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
