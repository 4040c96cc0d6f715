//! Offers of a cloud for the variables of a cluster template, and the obvious choice among them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use api::version::Version;
use openstack::compute::{AvailabilityZone, Flavor, Keypair};
use openstack::image::{Image, ImageQuery};
use openstack::network::{Network, Subnet};
use openstack::session::Session;

use super::source::Source;

/// Minimum memory of a machine, in MiB, for kubeadm.
const LEAST_RAM: i64 = 2048;
/// Minimum processors of control plane machines, for kubeadm.
const LEAST_CPUS: i64 = 2;

/// The image of the flavor `capi-v1beta1`.
const UPGRADE_FROM: &str = "OPENSTACK_IMAGE_NAME_UPGRADE_FROM";

/// The image of the flavor `flatcar`.
const FLATCAR: &str = "OPENSTACK_FLATCAR_IMAGE_NAME";

/// Image of the flavor `flatcar-sysext`, without Kubernetes.
const FLATCAR_ALONE: &str = "FLATCAR_IMAGE_NAME";

/// The images with Kubernetes.
const WITH_KUBERNETES: [&str; 3] = ["OPENSTACK_IMAGE_NAME", UPGRADE_FROM, FLATCAR];

/// External network by id, and by name.
const EXTERNAL_ID: &str = "OPENSTACK_EXTERNAL_NETWORK_ID";
const EXTERNAL_NAME: &str = "OPENSTACK_EXTERNAL_NETWORK_NAME";

/// Name server of machines, possibly outside of the cloud.
pub(super) const NAME_SERVER: &str = "OPENSTACK_DNS_NAMESERVERS";

/// Variables with values from a cloud, in the order of their dependencies.
pub(super) const VARIABLES: [&str; 12] = [
    "KUBERNETES_VERSION",
    "OPENSTACK_IMAGE_NAME",
    UPGRADE_FROM,
    FLATCAR,
    FLATCAR_ALONE,
    EXTERNAL_ID,
    EXTERNAL_NAME,
    "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR",
    "OPENSTACK_NODE_MACHINE_FLAVOR",
    "OPENSTACK_FAILURE_DOMAIN",
    "OPENSTACK_SSH_KEY_NAME",
    NAME_SERVER,
];

/// Resources of a cloud, as far as variables lack values.
#[derive(Debug, Default)]
pub(super) struct Offer {
    pub(super) networks: Vec<Network>,
    pub(super) images: Vec<Image>,
    pub(super) flavors: Vec<Flavor>,
    pub(super) zones: Vec<AvailabilityZone>,
    pub(super) keypairs: Vec<Keypair>,
    pub(super) subnets: Vec<Subnet>,
}

/// The value for a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Obvious value, and the reason.
    Value { value: String, why: String },
    /// No obvious value: the choices, the likeliest first.
    Choices(Choices),
}

/// Possible values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choices {
    /// Name of the choice, such as `Kubernetes version`.
    pub(super) what: &'static str,
    /// Reason why nothing is decided.
    pub(super) why: String,
    /// Values, each with a description.
    pub(super) values: Vec<(String, String)>,
}

impl Offer {
    /// Reads the resources for missing variables of `source`, and no others.
    pub(super) async fn read(session: &Session, source: &Source) -> openstack::Result<Self> {
        let mut offer = Self::default();
        let lacks = |variables: &[&str]| variables.iter().any(|variable| source.lacks(variable));
        if lacks(&["KUBERNETES_VERSION", FLATCAR_ALONE]) || lacks(&WITH_KUBERNETES) {
            let active = ImageQuery {
                status: Some("active".to_owned()),
                ..ImageQuery::default()
            };
            offer.images = session.image().list(&active).await?;
        }
        if lacks(&[EXTERNAL_ID, EXTERNAL_NAME]) {
            let external = [("router:external", "true")];
            offer.networks = session.network().networks(&external).await?;
        }
        if lacks(&[
            "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR",
            "OPENSTACK_NODE_MACHINE_FLAVOR",
        ]) {
            offer.flavors = session.compute().flavors().await?;
        }
        if lacks(&["OPENSTACK_FAILURE_DOMAIN"]) {
            offer.zones = session.compute().availability_zones().await?;
        }
        if lacks(&["OPENSTACK_SSH_KEY_NAME"]) {
            offer.keypairs = session.compute().keypairs().await?;
        }
        if lacks(&[NAME_SERVER]) {
            offer.subnets = session.network().subnets(&[]).await?;
        }
        Ok(offer)
    }

    /// [`Decision`] for `variable`, one of [`VARIABLES`], beside the values in `source`.
    pub(super) fn decide(&self, variable: &str, source: &Source) -> Decision {
        match variable {
            // The machines fetch it, whatever the images are called.
            "KUBERNETES_VERSION" if source.has(FLATCAR_ALONE) => none(
                "Kubernetes version",
                "the image of Flatcar has none; take one that extensions.flatcar.org has",
            ),
            "KUBERNETES_VERSION" => {
                let mut images = WITH_KUBERNETES.iter();
                self.version(images.find_map(|image| source.value(image)))
            }
            "OPENSTACK_IMAGE_NAME" | UPGRADE_FROM => {
                self.image("image", |_| true, source.value("KUBERNETES_VERSION"))
            }
            FLATCAR => {
                let version = source.value("KUBERNETES_VERSION");
                self.image("image of Flatcar", is_flatcar, version)
            }
            FLATCAR_ALONE => self.flatcar(),
            EXTERNAL_ID => self.network(|network| network.id.clone()),
            EXTERNAL_NAME => self.network(|network| network.name.clone()),
            "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR" => {
                self.flavor("flavor of control plane machines", LEAST_CPUS)
            }
            "OPENSTACK_NODE_MACHINE_FLAVOR" => self.flavor("flavor of workers", 1),
            "OPENSTACK_FAILURE_DOMAIN" => self.zone(),
            "OPENSTACK_SSH_KEY_NAME" => self.keypair(),
            _ => self.nameserver(),
        }
    }

    fn version(&self, image: Option<&str>) -> Decision {
        if let Some(version) = image.and_then(version_in) {
            return value(format!("v{version}"), "in the name of the image");
        }
        let versions: BTreeSet<Version> = self
            .unique_images()
            .filter_map(|image| version_in(&image.name))
            .collect();
        let newest = versions.into_iter().rev().map(|version| {
            let text = format!("v{version}");
            (text, String::new())
        });
        one_of(
            "Kubernetes version",
            newest.collect(),
            "the version in the names of images",
            "no image has a Kubernetes version in its name",
        )
    }

    /// [`Image`]s with a unique name: images are selected by name, so that one of several with the same name cannot be.
    fn unique_images(&self) -> impl Iterator<Item = &Image> {
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for image in &self.images {
            *names.entry(&image.name).or_default() += 1;
        }
        let bootable = |image: &&Image| !["iso", "aki", "ari"].contains(&&*image.disk_format);
        self.images
            .iter()
            .filter(bootable)
            .filter(move |image| names.get(image.name.as_str()) == Some(&1))
    }

    /// [`Decision`] among the images whose name `is` right, called `what`.
    fn image(
        &self,
        what: &'static str,
        is: impl Fn(&str) -> bool,
        version: Option<&str>,
    ) -> Decision {
        let wanted: Option<Version> = version.and_then(|version| version.parse().ok());
        let describe = |image: &Image| (image.name.clone(), String::new());
        let fitting: Vec<_> = self
            .unique_images()
            .filter(|image| is(&image.name))
            .filter(|image| {
                let found = version_in(&image.name);
                found.is_some() && (wanted.is_none() || found == wanted)
            })
            .map(describe)
            .collect();
        let version = version.unwrap_or("a Kubernetes version");
        if !fitting.is_empty() {
            let why = format!("the {what} with {version} in its name");
            return one_of(what, fitting, &why, "");
        }
        let all = self.unique_images().filter(|image| is(&image.name));
        let mut all: Vec<_> = all.map(describe).collect();
        all.sort();
        Decision::Choices(Choices {
            what,
            why: format!("no {what} has {version} in its name"),
            values: all,
        })
    }

    /// Decision for Flatcar as published. An image with a Kubernetes version in its name has kubeadm, in conflict with
    /// the kubeadm fetched by the machine.
    fn flatcar(&self) -> Decision {
        let images = self.unique_images();
        let images = images.filter(|it| is_flatcar(&it.name) && version_in(&it.name).is_none());
        let mut names: Vec<_> = images
            .map(|image| (image.name.clone(), String::new()))
            .collect();
        names.sort();
        one_of(
            "image of Flatcar without Kubernetes",
            names,
            "the image of Flatcar without a Kubernetes version in its name",
            "no image has flatcar, and no Kubernetes version, in its name",
        )
    }

    /// Decision about a [`Network`], named by `select`; networks with equal names cannot be selected.
    fn network(&self, select: impl Fn(&Network) -> String) -> Decision {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for network in &self.networks {
            *counts.entry(select(network)).or_default() += 1;
        }
        let networks = self
            .networks
            .iter()
            .map(|network| (select(network), network));
        let networks = networks.filter(|(selector, _)| counts.get(selector) == Some(&1));
        let networks = networks.map(|(selector, network)| {
            let description = match selector == network.name {
                true => network.id.clone(),
                false => network.name.clone(),
            };
            (selector, description)
        });
        let nothing = match self.networks.is_empty() {
            true => {
                "the cloud has no external network for this project; its administrator creates one"
            }
            false => "several external networks have the same name; one of them needs another one",
        };
        one_of(
            "external network, from which floating IPs come",
            networks.collect(),
            "the external network",
            nothing,
        )
    }

    fn flavor(&self, what: &'static str, cpus: i64) -> Decision {
        let size = |flavor: &&Flavor| (flavor.ram, flavor.vcpus, flavor.disk, flavor.name.clone());
        let mut flavors: Vec<&Flavor> = self.flavors.iter().collect();
        flavors.sort_by_key(size);
        let large = |flavor: &&&Flavor| flavor.vcpus >= cpus && flavor.ram >= LEAST_RAM;
        // A flavor without a disk needs a root volume, which the template does not have.
        match flavors.iter().filter(large).find(|flavor| flavor.disk > 0) {
            Some(flavor) => Decision::Value {
                value: flavor.name.clone(),
                why: format!(
                    "the smallest with {cpus} CPUs, 2 GiB and a disk: {}",
                    dimensions(flavor)
                ),
            },
            None => Decision::Choices(Choices {
                what,
                why: format!("no flavor has {cpus} CPUs, 2 GiB and a disk"),
                values: flavors
                    .iter()
                    .rev()
                    .map(|flavor| (flavor.name.clone(), dimensions(flavor)))
                    .collect(),
            }),
        }
    }

    fn zone(&self) -> Decision {
        let mut zones: Vec<&str> = self
            .zones
            .iter()
            .filter(|zone| zone.state.available)
            .map(|zone| zone.name.as_str())
            .collect();
        zones.sort_unstable();
        match zones.as_slice() {
            [first] => value((*first).to_owned(), "the availability zone"),
            [first, ..] => value(
                (*first).to_owned(),
                &format!("the first of the availability zones {}", zones.join(", ")),
            ),
            [] => none(
                "availability zone of the workers",
                "no zone is available for servers",
            ),
        }
    }

    fn keypair(&self) -> Decision {
        let mut names: Vec<_> = self
            .keypairs
            .iter()
            .map(|keypair| (keypair.name.clone(), keypair.fingerprint.clone()))
            .collect();
        match names.as_slice() {
            [] => value(String::new(), "you have no key pair; nobody logs in by SSH"),
            [(name, _)] => value(name.clone(), "your key pair"),
            _ => {
                names.push((String::new(), "none: nobody logs in by SSH".to_owned()));
                Decision::Choices(Choices {
                    what: "key pair for SSH",
                    why: "you have several".to_owned(),
                    values: names,
                })
            }
        }
    }

    /// Decision about the name server: name servers of existing subnets usually work for machines.
    fn nameserver(&self) -> Decision {
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for server in self
            .subnets
            .iter()
            .flat_map(|subnet| &subnet.dns_nameservers)
        {
            *found.entry(server).or_default() += 1;
        }
        let mut servers: Vec<(&str, usize)> = found.into_iter().collect();
        servers.sort_by_key(|(_, subnets)| Reverse(*subnets));
        let servers = servers
            .into_iter()
            .map(|(server, subnets)| (server.to_owned(), format!("of {subnets} subnets")));
        one_of(
            "name server of the machines",
            servers.collect(),
            "that of the subnets there are",
            "no subnet has one; give an address that the machines reach, such as 9.9.9.9",
        )
    }
}

fn is_flatcar(name: &str) -> bool {
    name.to_ascii_lowercase().contains("flatcar")
}

fn value(value: String, why: &str) -> Decision {
    let why = why.to_owned();
    Decision::Value { value, why }
}

fn none(what: &'static str, why: &str) -> Decision {
    Decision::Choices(Choices {
        what,
        why: why.to_owned(),
        values: Vec::new(),
    })
}

/// [`Decision`] for the only value, or a choice among all.
fn one_of(
    what: &'static str,
    mut values: Vec<(String, String)>,
    only: &str,
    nothing: &str,
) -> Decision {
    match values.len() {
        0 => none(what, nothing),
        1 => {
            let (only_value, description) = values.remove(0);
            let why = match description.as_str() {
                "" => only.to_owned(),
                description => format!("{only}, {description}"),
            };
            Decision::Value {
                value: only_value,
                why,
            }
        }
        count => Decision::Choices(Choices {
            what,
            why: format!("there are {count}"),
            values,
        }),
    }
}

fn dimensions(flavor: &Flavor) -> String {
    let Flavor {
        vcpus, ram, disk, ..
    } = flavor;
    format!("{vcpus} CPUs, {ram} MiB, disk {disk} GiB")
}

/// The Kubernetes version in the name of an image, such as `ubuntu-2404-kube-v1.34.2`.
fn version_in(name: &str) -> Option<Version> {
    let numbers = |c: char| !(c.is_ascii_digit() || c == '.');
    name.split(numbers)
        .filter(|part| part.starts_with("1.") && part.split('.').count() == 3)
        .find_map(|part| part.parse().ok())
}

#[cfg(test)]
mod tests;
