//! Releases of OpenStack, as data.

use std::fmt;
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, de};

use crate::image;
use crate::options::Table;
use crate::project::Service;

/// Release that can be deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// Zed, from Debian 12.
    Zed,
    /// 2025.1 (Epoxy), from Debian 13.
    Epoxy,
    /// 2026.1 (Gazpacho), from PyPI on Debian 13.
    Gazpacho,
}

/// [`Table`]s of a release, in the order of [`Service::ALL`].
type Tables = [Option<Table>; Service::ALL.len()];

macro_rules! tables {
    ($release:literal $(, $volumes:literal, $balancers:literal)?) => {
        [
            include_str!(concat!("../options/", $release, "/keystone.json")),
            include_str!(concat!("../options/", $release, "/glance.json")),
            include_str!(concat!("../options/", $release, "/placement.json")),
            include_str!(concat!("../options/", $release, "/nova.json")),
            include_str!(concat!("../options/", $release, "/neutron.json")),
            // Without a text the release has no such service here.
            concat!("" $(, include_str!(concat!("../options/", $release, $volumes)))?),
            concat!("" $(, include_str!(concat!("../options/", $release, $balancers)))?),
        ]
    };
}

impl Release {
    /// Every release, the oldest first.
    pub const ALL: [Self; 3] = [Self::Zed, Self::Epoxy, Self::Gazpacho];

    /// Default release of new clouds.
    pub const DEFAULT: Self = Self::Gazpacho;

    /// Name in the parameters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zed => "zed",
            Self::Epoxy => "2025.1",
            Self::Gazpacho => "2026.1",
        }
    }

    /// End of the upstream maintenance; `None` before.
    pub fn ended(self) -> Option<&'static str> {
        match self {
            Self::Zed => Some("April 2024"),
            Self::Epoxy => Some("2 October 2026"),
            Self::Gazpacho => None,
        }
    }

    /// True if new clouds may have this release. Existing clouds continue.
    pub fn takes_new_clouds(self) -> bool {
        self != Self::Zed
    }

    /// True if the image has Cinder and the libraries of Ceph.
    pub(crate) fn has_volumes(self) -> bool {
        self == Self::Gazpacho
    }

    /// True if the image has Octavia and its provider for OVN.
    pub(crate) fn has_balancers(self) -> bool {
        self == Self::Gazpacho
    }

    /// Next release for an upgrade; `None` without one.
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Epoxy => Some(Self::Gazpacho),
            Self::Zed | Self::Gazpacho => None,
        }
    }

    /// Checks that a cloud of this release may be upgraded to another.
    ///
    /// # Errors
    /// Reason against the upgrade, and the possible releases.
    pub fn way_to(self, to: Self) -> Result<(), String> {
        if to < self {
            return Err(format!(
                "the cloud is of {self}, and a release is never lowered to {to}"
            ));
        }
        match self.next() {
            Some(next) if next == to => Ok(()),
            Some(next) => Err(format!(
                "the cloud is of {self}, from which it goes up one step at a time: {next} comes first"
            )),
            None => Err(format!("no way leads from {self} to {to}")),
        }
    }

    /// True if both releases have databases, message broker, cache, OVN and proxy from the same distribution, so that
    /// the programs of one serve the other.
    pub(crate) fn shares_infrastructure(self, other: Self) -> bool {
        (self == Self::Zed) == (other == Self::Zed)
    }

    /// Image with the packages of every service.
    pub fn image(self) -> &'static str {
        image::of(self.name())
    }

    /// [`Release`] of the image of a workload, an object as JSON; `None` for another image.
    pub(crate) fn of_image(workload: &serde_json::Value) -> Option<Self> {
        let image = workload.pointer("/spec/template/spec/containers/0/image")?;
        let mut all = Self::ALL.into_iter();
        all.find(|release| *image == release.image())
    }

    /// WSGI script (path) or module (name) of the API of a workload.
    pub(crate) fn wsgi(self, workload: &str) -> &'static str {
        image::wsgi(self.name(), workload)
    }

    /// [`Release`] with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|release| release.name() == name)
    }

    /// Options [`Table`] of a service in this release.
    pub fn table(self, service: Service) -> Option<&'static Table> {
        static TABLES: [OnceLock<Tables>; Release::ALL.len()] =
            [const { OnceLock::new() }; Release::ALL.len()];
        let tables = TABLES.get(self as usize)?.get_or_init(|| {
            match self {
                Self::Zed => tables!("zed"),
                Self::Epoxy => tables!("2025.1"),
                Self::Gazpacho => tables!("2026.1", "/cinder.json", "/octavia.json"),
            }
            // A test parses each of them.
            .map(|text| Table::parse(text).ok())
        });
        tables.get(service as usize)?.as_ref()
    }
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(name) => name,
            serde_json::Value::Number(number) => {
                return Err(de::Error::custom(format!(
                    "{number} is a number; write it in quotes: \"{number}\""
                )));
            }
            other => {
                return Err(de::Error::custom(format!(
                    "{other} is not the name of a release"
                )));
            }
        };
        Self::named(&name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|release| release.name()).collect();
            de::Error::custom(format!(
                "there is no release `{name}` here; there are: {}",
                names.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_release_has_the_options_of_every_service() {
        for release in Release::ALL {
            for service in Service::ALL {
                let Some(table) = release.table(service) else {
                    match service {
                        Service::Cinder => assert!(!release.has_volumes(), "{release}"),
                        Service::Octavia => assert!(!release.has_balancers(), "{release}"),
                        _ => panic!("{release} has no options of {service}"),
                    }
                    continue;
                };
                assert_eq!(table.service, service.name());
                assert!(
                    table.find("DEFAULT", "debug").is_some(),
                    "{release} {service}"
                );
                assert!(table.all().count() > 100, "{release} {service}");
            }
        }
    }

    #[test]
    fn a_release_goes_up_by_one_step_and_never_down() {
        let way = |from: Release, to| from.way_to(to).err().unwrap_or_default();
        assert_eq!(way(Release::Epoxy, Release::Gazpacho), "");
        assert!(way(Release::Gazpacho, Release::Epoxy).contains("never lowered to 2025.1"));
        for to in [Release::Epoxy, Release::Gazpacho] {
            assert_eq!(
                way(Release::Zed, to),
                format!("no way leads from zed to {to}")
            );
        }
    }
}
