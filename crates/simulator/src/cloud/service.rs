//! The services behind the one base URL.

/// One of the services, named by the first segment of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Service {
    Identity,
    Compute,
    Network,
    Image,
    Volume,
    LoadBalancer,
    Placement,
    /// Key manager.
    Secrets,
    /// Interface of the simulator of the operator.
    Control,
}

impl Service {
    /// Services known to OpenStack.
    pub(crate) const OPENSTACK: [Self; 8] = [
        Self::Identity,
        Self::Compute,
        Self::Network,
        Self::Image,
        Self::Volume,
        Self::LoadBalancer,
        Self::Placement,
        Self::Secrets,
    ];

    /// Returns the first path segment, also the name in counts and logs.
    pub(crate) fn segment(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Compute => "compute",
            Self::Network => "network",
            Self::Image => "image",
            Self::Volume => "volume",
            Self::LoadBalancer => "load-balancer",
            Self::Placement => "placement",
            Self::Secrets => "key-manager",
            Self::Control => "_simulator",
        }
    }

    /// Returns catalog type and name.
    pub(crate) fn catalog(self) -> (&'static str, &'static str) {
        match self {
            Self::Identity => ("identity", "keystone"),
            Self::Compute => ("compute", "nova"),
            Self::Network => ("network", "neutron"),
            Self::Image => ("image", "glance"),
            Self::Volume => ("volumev3", "cinderv3"),
            Self::LoadBalancer => ("load-balancer", "octavia"),
            Self::Placement => ("placement", "placement"),
            Self::Secrets => ("key-manager", "barbican"),
            Self::Control => ("", ""),
        }
    }

    /// Returns the part of a catalog URL after the service's root (docs/project/test-cloud.md).
    pub(crate) fn endpoint_suffix(self, project: &str) -> String {
        match self {
            Self::Compute => "/v2.1".to_owned(),
            Self::Volume => format!("/v3/{project}"),
            _ => String::new(),
        }
    }

    /// Returns the port of the service in OpenStack's documentation.
    pub(crate) fn port(self) -> Option<u16> {
        match self {
            Self::Identity => Some(5000),
            Self::Compute => Some(8774),
            Self::Network => Some(9696),
            Self::Image => Some(9292),
            Self::Volume => Some(8776),
            Self::LoadBalancer => Some(9876),
            Self::Placement => Some(8778),
            Self::Secrets => Some(9311),
            Self::Control => None,
        }
    }

    /// Returns the service of a standard port.
    pub(crate) fn of_port(port: u16) -> Option<Self> {
        Self::OPENSTACK
            .into_iter()
            .find(|service| service.port() == Some(port))
    }

    /// Returns the service of a path segment.
    pub(crate) fn of_segment(segment: &str) -> Option<Self> {
        Self::OPENSTACK
            .into_iter()
            .chain([Self::Control])
            .find(|service| service.segment() == segment)
    }
}
