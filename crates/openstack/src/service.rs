//! The services of a cloud, and their types in catalogs.

use std::fmt;

/// Service with calls in this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// Keystone.
    Identity,
    /// Nova.
    Compute,
    /// Neutron.
    Network,
    /// Glance.
    Image,
    /// Cinder.
    Volume,
    /// Octavia.
    LoadBalancer,
    /// Placement.
    Placement,
    /// Barbican.
    KeyManager,
}

impl Service {
    /// All services.
    pub const ALL: [Self; 8] = [
        Self::Identity,
        Self::Compute,
        Self::Network,
        Self::Image,
        Self::Volume,
        Self::LoadBalancer,
        Self::Placement,
        Self::KeyManager,
    ];

    /// Returns the official service type (the service-types authority), which is also the label of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Compute => "compute",
            Self::Network => "network",
            Self::Image => "image",
            Self::Volume => "block-storage",
            Self::LoadBalancer => "load-balancer",
            Self::Placement => "placement",
            Self::KeyManager => "key-manager",
        }
    }

    /// Returns the types of the service in catalogs, best first (the aliases of the service-types authority, without
    /// `volume` and `volumev2`, whose APIs have been removed).
    pub const fn types(self) -> &'static [&'static str] {
        match self {
            Self::Identity => &["identity"],
            Self::Compute => &["compute"],
            Self::Network => &["network"],
            Self::Image => &["image"],
            Self::Volume => &["block-storage", "volumev3", "block-store"],
            Self::LoadBalancer => &["load-balancer"],
            Self::Placement => &["placement"],
            Self::KeyManager => &["key-manager"],
        }
    }

    /// Returns the path of the version in use, appended to catalog URLs without a version: this avoids the discovery
    /// request of other clients.
    pub(crate) const fn version_path(self) -> &'static str {
        match self {
            Self::Identity => "/v3",
            Self::Compute => "/v2.1",
            Self::Network => "/v2.0",
            Self::Image => "/v2",
            Self::Volume => "/v3/{project}",
            Self::LoadBalancer => "/v2.0",
            Self::Placement => "",
            Self::KeyManager => "/v1",
        }
    }

    /// Returns the first word in the header `OpenStack-API-Version`.
    pub(crate) const fn microversion_type(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            other => other.name(),
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
