//! File of parameters: the `spec` of an `OpenStack` object, or the whole object.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, de};
use serde_json::Value as Json;

use crate::project::Service;
use crate::release::Release;

/// API version and kind of the object.
const API: (&str, &str) = ("ferrostack.dev/v1alpha1", "OpenStack");

/// Parameters of a cloud.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameters {
    /// [`Release`] of OpenStack.
    pub release: Release,
    /// Name of the region in the catalogue.
    #[serde(default = "region")]
    pub region: String,
    /// [`Nodes`] of the cloud.
    #[serde(default)]
    pub nodes: Nodes,
    /// Volumes.
    #[serde(default)]
    pub storage: Storage,
    /// Network service.
    #[serde(default)]
    pub network: Network,
    /// Hypervisors; none if not set.
    pub compute: Option<Compute>,
    /// Access for users outside of the cluster; none if not set.
    pub exposure: Option<Exposure>,
    /// Settings of each service.
    #[serde(default)]
    pub services: Services,
    /// Backups; none if not set.
    pub backup: Option<Backups>,
    /// Scheduled rotations; none if not set.
    pub rotation: Option<Rotation>,
    /// True if the controller leaves the cloud as it is.
    #[serde(default)]
    pub paused: bool,
    /// True while programs of two releases exist: no field, but set by an upgrade.
    #[serde(skip)]
    pub(crate) upgrading: bool,
}

/// Network service.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Network {
    /// MTU of the network between the nodes, in bytes. Geneve reduces the MTU of projects' networks by 58.
    pub mtu: Mtu,
    /// Names of the physical networks for provider networks.
    pub physical: Vec<Physical>,
    /// [`Datapath`] of compute nodes.
    pub datapath: Datapath,
}

/// Place where Open vSwitch forwards the packets of guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Datapath {
    /// The kernel if it has the module openvswitch, and otherwise ovs-vswitchd.
    Auto,
    /// The kernel.
    System,
    /// ovs-vswitchd.
    Userspace,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            mtu: Mtu(1500),
            physical: Vec::new(),
            datapath: Datapath::Auto,
        }
    }
}

/// An MTU, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mtu(pub u32);

impl<'de> Deserialize<'de> for Mtu {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mtu = u32::deserialize(deserializer)?;
        // The least that IPv6 allows, and the largest IP packet.
        if (1280..=65535).contains(&mtu) {
            Ok(Self(mtu))
        } else {
            Err(de::Error::custom(format!(
                "{mtu} is not from 1280 to 65535"
            )))
        }
    }
}

/// A physical network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Physical {
    /// Name in Neutron.
    pub name: String,
    /// VLAN ids for projects' networks, such as `100:199`. If not set, only untagged networks are possible.
    pub vlans: Option<String>,
    /// Interface of each compute node to the network. If not set, only the nodes themselves reach the network.
    pub interface: Option<String>,
}

/// Hypervisors.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Compute {
    /// Driver of the hypervisors.
    pub driver: Driver,
    /// Number and zones of hypervisors with the driver `Fake`.
    #[serde(default)]
    pub fake: Fake,
    /// Settings of hypervisors with the driver `Libvirt`.
    #[serde(default)]
    pub libvirt: Libvirt,
    /// Treatment of servers on a cordoned node.
    #[serde(default)]
    pub drain: Drain,
}

/// Type of the hypervisors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Driver {
    /// Imaginary hypervisors, for trials and tests: servers become ACTIVE, and nothing runs.
    Fake,
    /// QEMU on each compute node, with KVM if a guest starts with it.
    Libvirt,
}

/// Imaginary hypervisors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Fake {
    /// Number of hypervisors.
    pub hypervisors: Hypervisors,
    /// Availability zones, assigned in turns; Nova's default zone if empty.
    pub zones: Vec<String>,
}

/// Number of imaginary hypervisors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hypervisors(pub u32);

impl Default for Hypervisors {
    fn default() -> Self {
        Self(2)
    }
}

impl<'de> Deserialize<'de> for Hypervisors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        if (1..=100).contains(&number) {
            Ok(Self(number))
        } else {
            Err(de::Error::custom(format!("{number} is not from 1 to 100")))
        }
    }
}

/// Settings of each service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Services {
    /// Identity.
    pub keystone: ServiceParameters,
    /// Images.
    pub glance: ServiceParameters,
    /// Inventory of resources.
    pub placement: ServiceParameters,
    /// Servers.
    pub nova: ServiceParameters,
    /// Networks.
    pub neutron: ServiceParameters,
    /// Volumes.
    pub cinder: ServiceParameters,
    /// Load balancers.
    pub octavia: Octavia,
    /// The dashboard.
    pub horizon: DashboardParameters,
}

/// Settings of a service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceParameters {
    /// Options of the configuration file, by section and name.
    pub config: BTreeMap<String, BTreeMap<String, Json>>,
    /// [`Resources`] of each program of the service.
    pub resources: Resources,
    /// Number of requests answered at a time by the API of the service.
    pub api: Api,
}

/// Settings of the dashboard.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DashboardParameters {
    /// Settings by name, without sections.
    pub config: BTreeMap<String, Json>,
    /// [`Resources`] of the dashboard.
    pub resources: Resources,
    /// Number of requests answered at a time by the dashboard.
    pub api: Api,
}

mod backup;
mod balancers;
mod drain;
mod exposure;
mod libvirt;
mod place;
mod schedule;
mod storage;
mod workers;

pub use self::backup::Backups;
pub use self::balancers::Octavia;
pub(crate) use self::drain::{Drain, DrainMode};
pub use self::exposure::{Exposure, Mode, Tls};
pub(crate) use self::libvirt::{CpuMode, Libvirt};
pub use self::place::{Nodes, Resources};
pub use self::schedule::{Rotation, Schedule};
pub use self::storage::Storage;
pub(crate) use self::storage::{Ceph, Kind, Volumes};
pub use self::workers::Api;
pub(crate) use self::workers::Workers;

/// Fields of the design that are not built, rejected by name instead of as a typing error.
const NOT_BUILT: [&str; 9] = [
    "replicas",
    "images",
    "database",
    "messaging",
    "identity",
    "compute.virtType",
    "compute.groups",
    "update",
    "services.memcached",
];

/// Fields of each service that are not built.
const NOT_BUILT_OF_SERVICES: [&str; 3] = ["replicas", "configFrom", "policy"];

/// Services that no longer exist.
const RETIRED: [(&str, &str); 2] = [
    ("services.searchlight", "the project was retired in 2021"),
    ("services.elasticsearch", "only Searchlight used it"),
];

/// Reason why a file of parameters is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParametersError {
    /// Field, as a path in the file.
    pub path: String,
    /// Problem of the field.
    pub problem: String,
}

impl fmt::Display for ParametersError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            formatter.write_str(&self.problem)
        } else {
            write!(formatter, "{}: {}", self.path, self.problem)
        }
    }
}

impl std::error::Error for ParametersError {}

impl Parameters {
    /// Parameters of a [`Release`], with defaults for everything else.
    pub fn from_release(release: Release) -> Self {
        Self {
            release,
            region: region(),
            nodes: Nodes::default(),
            storage: Storage::default(),
            network: Network::default(),
            compute: None,
            exposure: None,
            services: Services::default(),
            backup: None,
            rotation: None,
            paused: false,
            upgrading: false,
        }
    }

    /// Path of the spec in a document: `spec` in an object, even with no other field than its spec, or else empty.
    pub fn prefix(document: &Json) -> &'static str {
        let has = |field: &str| document.get(field).is_some();
        let is_wrapped = || {
            let fields = document.as_object();
            fields.is_some_and(|it| it.len() == 1) && has("spec")
        };
        match has("apiVersion") || has("kind") || is_wrapped() {
            true => "spec",
            false => "",
        }
    }

    /// Reads an object, or a spec alone. Also returns the path of the spec in the document: `spec`, or empty.
    ///
    /// # Errors
    /// First field that is missing, unknown, not built or of a wrong type.
    pub fn read(document: &Json) -> Result<(Self, &'static str), ParametersError> {
        let reject = |path: &str, problem: &str| ParametersError {
            path: path.to_owned(),
            problem: problem.to_owned(),
        };
        if document.get("apiVersion").is_some() || document.get("kind").is_some() {
            for (field, wanted) in [("apiVersion", API.0), ("kind", API.1)] {
                if document.get(field).and_then(Json::as_str) != Some(wanted) {
                    return Err(reject(field, &format!("it has to be {wanted}")));
                }
            }
        }
        let prefix = Self::prefix(document);
        let spec = match prefix {
            "" => Some(document),
            prefix => document.get(prefix),
        };
        let spec = spec.ok_or_else(|| reject("", "it has no spec"))?;
        let at = |path: &str| match (prefix, path) {
            ("", ".") => String::new(),
            ("", path) => path.to_owned(),
            (prefix, "" | ".") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        };
        let has = |path: &str| {
            spec.pointer(&format!("/{}", path.replace('.', "/")))
                .is_some()
        };
        if let Some(path) = NOT_BUILT.iter().find(|path| has(path)) {
            return Err(reject(&at(path), "this field is not built yet"));
        }
        if let Some(mode @ ("Gateway" | "LoadBalancer")) =
            spec.pointer("/exposure/mode").and_then(Json::as_str)
        {
            let problem = format!("{mode} is not built yet; there are Edge and None");
            return Err(reject(&at("exposure.mode"), &problem));
        }
        let names = Service::ALL.map(Service::name).into_iter();
        let of_services = names.chain(["horizon"]).flat_map(|service| {
            NOT_BUILT_OF_SERVICES.map(|field| format!("services.{service}.{field}"))
        });
        if let Some(path) = of_services.into_iter().find(|path| has(path)) {
            return Err(reject(&at(&path), "this field is not built yet"));
        }
        if let Some((path, why)) = RETIRED.iter().find(|(path, _)| has(path)) {
            return Err(reject(&at(path), why));
        }
        match serde_path_to_error::deserialize::<_, Self>(spec) {
            Ok(parameters) => match parameters.wrong() {
                Some((path, problem)) => Err(reject(&at(&path), problem)),
                None => Ok((parameters, prefix)),
            },
            Err(error) => Err(ParametersError {
                path: at(&error.path().to_string().replace('?', "")),
                problem: worded(&error.into_inner().to_string()),
            }),
        }
    }

    /// First field with a text that configuration files cannot contain, and the reason.
    fn wrong(&self) -> Option<(String, &'static str)> {
        if !name(&self.region) {
            return Some(("region".to_owned(), NAME));
        }
        for (index, network) in self.network.physical.iter().enumerate() {
            let path = |field| format!("network.physical[{index}].{field}");
            if !name(&network.name) {
                return Some((path("name"), NAME));
            }
            let mut earlier = self.network.physical.iter().take(index);
            if earlier.any(|it| it.name == network.name) {
                return Some((path("name"), "it is there twice"));
            }
            if network.vlans.as_deref().is_some_and(|it| !vlans(it)) {
                let problem = "it has to be two numbers from 1 to 4094, such as 100:199";
                return Some((path("vlans"), problem));
            }
        }
        let wrong = self.compute.as_ref().and_then(|it| it.fake.wrong());
        let wrong = wrong.or_else(|| self.wrong_of_computes());
        let wrong = wrong.or_else(|| self.compute.as_ref()?.wrong_of_drain());
        let wrong = wrong.or_else(|| self.exposure.as_ref()?.wrong());
        let wrong = wrong.or_else(|| self.nodes.wrong());
        let wrong = wrong.or_else(|| self.wrong_of_storage());
        let wrong = wrong.or_else(|| self.wrong_of_balancers());
        let wrong = wrong.or_else(|| self.backup.as_ref()?.wrong());
        let wrong = wrong.or_else(|| self.rotation.as_ref()?.wrong());
        let parts = Service::ALL.map(Service::name);
        let mut parts = parts.into_iter().chain(["horizon"]);
        wrong.or_else(|| {
            parts.find_map(|part| {
                let (resources, api) = self.part(part)?;
                let wrong = resources.wrong(part);
                wrong.or_else(|| api.wrong(self.release, part))
            })
        })
    }

    /// [`Resources`] of each program of a part.
    pub(crate) fn resources(&self, part: &str) -> Option<&Resources> {
        let (found, _) = self.part(part)?;
        (!found.is_empty()).then_some(found)
    }

    /// Processes and threads of the API of a service or of the dashboard.
    pub(crate) fn workers(&self, part: &str) -> Workers {
        let none = (&Resources::default(), Api::default());
        let (resources, api) = self.part(part).unwrap_or(none);
        api.workers(self.release, part, resources)
    }

    fn part(&self, part: &str) -> Option<(&Resources, Api)> {
        if part == "horizon" {
            let horizon = &self.services.horizon;
            return Some((&horizon.resources, horizon.api));
        }
        let service = self.service(Service::named(part)?);
        Some((&service.resources, service.api))
    }

    /// The settings of a service.
    pub fn service(&self, service: Service) -> &ServiceParameters {
        match service {
            Service::Keystone => &self.services.keystone,
            Service::Glance => &self.services.glance,
            Service::Placement => &self.services.placement,
            Service::Nova => &self.services.nova,
            Service::Neutron => &self.services.neutron,
            Service::Cinder => &self.services.cinder,
            Service::Octavia => &self.services.octavia.settings,
        }
    }
}

impl Fake {
    /// First field with a senseless value, and the reason.
    fn wrong(&self) -> Option<(String, &'static str)> {
        for (index, zone) in self.zones.iter().enumerate() {
            let path = format!("compute.fake.zones[{index}]");
            if !name(zone) {
                return Some((path, NAME));
            }
            if zone == "nova" || zone == "internal" {
                let problem =
                    "Nova has this zone itself, for hosts without one and for its own programs";
                return Some((path, problem));
            }
            if self.zones.iter().take(index).any(|it| it == zone) {
                return Some((path, "it is there twice"));
            }
            if index >= self.hypervisors.0 as usize {
                return Some((path, "there is no hypervisor for this zone"));
            }
        }
        None
    }
}

/// Names accepted by [`name`].
const NAME: &str = "it has to be 1 to 64 letters, digits, `.`, `-` or `_`";

/// True if a text can be a part of lists and URLs.
fn name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_'))
}

fn vlans(text: &str) -> bool {
    let id = |text: &str| text.parse().ok().filter(|id| (1..=4094_u16).contains(id));
    let range = text.split_once(':');
    range.is_some_and(
        |(first, last)| matches!((id(first), id(last)), (Some(first), Some(last)) if first <= last),
    )
}

fn region() -> String {
    "RegionOne".to_owned()
}

/// Serde's message, without the names of Rust's types of numbers.
fn worded(message: &str) -> String {
    let types = ["u8", "u16", "u32", "u64", "i32", "i64"];
    let rest = types
        .iter()
        .find_map(|name| message.strip_suffix(name)?.strip_suffix(", expected "));
    match rest {
        Some(rest) => format!("{rest}, expected a whole number"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests;
