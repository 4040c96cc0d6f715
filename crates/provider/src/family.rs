//! Families of addresses.

use std::fmt;

use api::infra::v1beta2::SubnetSpec;

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // The names are self-explanatory.
pub enum Family {
    Four,
    Six,
}

impl Family {
    /// Both families.
    pub const ALL: [Self; 2] = [Self::Four, Self::Six];

    /// Family of a CIDR or address.
    pub fn from_text(text: &str) -> Self {
        match text.contains(':') {
            true => Self::Six,
            false => Self::Four,
        }
    }

    /// Family of a [`SubnetSpec`] to create.
    pub fn of_subnet(subnet: &SubnetSpec) -> Self {
        match subnet.is_ipv6() {
            true => Self::Six,
            false => Self::Four,
        }
    }

    /// The number in Neutron's `ip_version`.
    pub fn version(self) -> u8 {
        match self {
            Self::Four => 4,
            Self::Six => 6,
        }
    }
}

/// Words for a subnet: one of IPv4 is the usual case.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Four => "subnet",
            Self::Six => "IPv6 subnet",
        })
    }
}
