//! Places of disks: of the cloud itself, volumes of Cinder, images of Glance, and disks of guests.

use serde::{Deserialize, Deserializer, de};

use super::place::is_domain;
use super::{Driver, NAME, Parameters, ServiceParameters, name};
use crate::project::Service;

/// Disks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Storage {
    /// Storage class of the cloud's own volumes; the cluster's default one if empty.
    pub class: String,
    /// [`Ceph`] with the pools of other fields.
    pub(crate) ceph: Option<Ceph>,
    /// [`Volumes`] of users, with Cinder; none if not set.
    pub(crate) volumes: Option<Volumes>,
    /// [`Pool`] of images; files on a volume of the cloud if not set.
    pub(crate) images: Option<Pool>,
    /// [`Pool`] of the disks of guests; files on the node if not set.
    pub(crate) guests: Option<Pool>,
}

/// An external Ceph.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Ceph {
    /// Monitors: a host, and a port other than the standard one.
    pub(crate) monitors: Vec<String>,
    /// The user of the programs, without `client.`.
    #[serde(default = "user")]
    pub(crate) user: String,
    /// Secret with the keyring, or with the key under the name of the user, as made by Rook.
    pub(crate) secret_name: String,
}

/// Volumes of users.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Volumes {
    /// Driver of Cinder.
    pub(crate) driver: Kind,
    /// The pool of volumes and snapshots, with `Rbd`.
    pub(crate) pool: Option<String>,
    /// Pool of backups, with `Rbd`; no backups in Cinder if not set.
    pub(crate) backup_pool: Option<String>,
}

/// A pool of the Ceph.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Pool {
    /// Its name.
    pub(crate) pool: String,
}

/// Drivers of Cinder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Images of RBD in a pool of the Ceph.
    Rbd,
    /// Imaginary volumes, for trials and tests: volumes become `available`, and nothing is stored.
    Fake,
}

/// Drivers refused by name, with the reason.
const REFUSED: [(&str, &str); 3] = [
    (
        "Lvm",
        "it is not served: logical volumes need the device-mapper of the kernel, with which it could not be tried; use Rbd",
    ),
    (
        "Iscsi",
        "it is not served: it needs SCSI in the kernel of the nodes, with which it could not be tried; use Rbd",
    ),
    (
        "Nfs",
        "it is not built yet: no Pod of the cloud mounts file systems of a network; use Rbd",
    ),
];

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let why = |(_, why): &(&str, &str)| de::Error::custom(why);
        match text.as_str() {
            "Rbd" => Ok(Self::Rbd),
            "Fake" => Ok(Self::Fake),
            other => Err(REFUSED.iter().find(|row| row.0 == other).map_or_else(
                || {
                    de::Error::custom(format!(
                        "there is no driver `{other}`; there are: Rbd, Fake"
                    ))
                },
                why,
            )),
        }
    }
}

fn user() -> String {
    "openstack".to_owned()
}

impl Parameters {
    /// True if a cloud with these parameters has the [`Service`].
    pub fn has(&self, service: Service) -> bool {
        match service {
            Service::Cinder => self.volumes().is_some(),
            Service::Octavia => self.has_balancers(),
            _ => true,
        }
    }

    /// [`Volumes`] of users, if any. None while programs of two releases exist: no upgrade adds Cinder.
    pub(crate) fn volumes(&self) -> Option<&Volumes> {
        let volumes = self.storage.volumes.as_ref();
        volumes.filter(|_| self.has_pools())
    }

    /// The pool of images.
    pub(crate) fn images(&self) -> Option<&str> {
        let pool = self.storage.images.as_ref();
        pool.filter(|_| self.has_pools()).map(|it| it.pool.as_str())
    }

    /// The pool of the disks of guests.
    pub(crate) fn guests(&self) -> Option<&str> {
        let pool = self.storage.guests.as_ref();
        pool.filter(|_| self.has_pools()).map(|it| it.pool.as_str())
    }

    /// [`Ceph`] with a used pool.
    pub(crate) fn ceph(&self) -> Option<&Ceph> {
        let ceph = self.storage.ceph.as_ref();
        ceph.filter(|_| !self.pools().is_empty())
    }

    /// Used pools, each with its field.
    pub(crate) fn pools(&self) -> Vec<(&'static str, &str)> {
        let volumes = self.volumes();
        let of_volumes = volumes.and_then(|it| it.pool.as_deref());
        let of_backups = volumes.and_then(|it| it.backup_pool.as_deref());
        let fields = [
            ("storage.volumes.pool", of_volumes),
            ("storage.volumes.backupPool", of_backups),
            ("storage.images.pool", self.images()),
            ("storage.guests.pool", self.guests()),
        ];
        let named = fields.into_iter();
        named
            .filter_map(|(field, pool)| Some((field, pool?)))
            .collect()
    }

    fn has_pools(&self) -> bool {
        self.release.has_volumes() && !self.upgrading
    }

    /// First senseless field of storage, and the reason.
    pub(super) fn wrong_of_storage(&self) -> Option<(String, &'static str)> {
        let storage = &self.storage;
        let reject = |path: &str, problem| Some((path.to_owned(), problem));
        if !storage.class.is_empty() && !is_domain(&storage.class) {
            return reject("storage.class", "it is not the name of a storage class");
        }
        let fields = [
            ("storage.volumes", storage.volumes.is_some()),
            ("storage.images", storage.images.is_some()),
            ("storage.guests", storage.guests.is_some()),
        ];
        let used = fields.iter().find(|(_, is_set)| *is_set);
        if let Some((field, _)) = used.filter(|_| !self.release.has_volumes()) {
            let problem = "it needs release 2026.1: the images of other releases have neither Cinder nor the libraries of Ceph";
            return reject(field, problem);
        }
        if self.services.cinder != ServiceParameters::default() && storage.volumes.is_none() {
            let problem = "Cinder is there with storage.volumes alone, which is not set";
            return reject("services.cinder", problem);
        }
        if let Some(volumes) = &storage.volumes
            && let Some((field, problem)) = self.wrong_of_volumes(volumes)
        {
            return reject(&format!("storage.volumes{field}"), problem);
        }
        let libvirt = self
            .compute
            .as_ref()
            .is_some_and(|it| it.driver == Driver::Libvirt);
        if storage.guests.is_some() && !libvirt {
            let problem = "it is for compute.driver: Libvirt; without, no guest has a disk";
            return reject("storage.guests", problem);
        }
        if let Some((field, _)) = self.pools().into_iter().find(|(_, it)| !name(it)) {
            return reject(field, NAME);
        }
        if let Some((field, problem)) = self.pooled_twice() {
            return reject(field, problem);
        }
        match (&storage.ceph, self.pools().is_empty()) {
            (None, false) => reject(
                "storage.ceph",
                "a pool is named, and no Ceph that has it: set monitors and secretName",
            ),
            (Some(_), true) => reject(
                "storage.ceph",
                "nothing uses it: name a pool in storage.volumes, storage.images or storage.guests",
            ),
            (Some(ceph), false) => ceph.wrong(),
            (None, true) => None,
        }
    }

    /// First senseless field of the [`Volumes`], and the reason.
    fn wrong_of_volumes(&self, volumes: &Volumes) -> Option<(&'static str, &'static str)> {
        let libvirt = self
            .compute
            .as_ref()
            .is_some_and(|it| it.driver == Driver::Libvirt);
        match volumes.driver {
            Kind::Rbd if volumes.pool.is_none() => {
                Some((".pool", "Rbd needs the name of a pool, such as volumes"))
            }
            Kind::Rbd => None,
            Kind::Fake if libvirt => Some((
                ".driver",
                "Fake has no disk that a guest of Libvirt could get: use Rbd",
            )),
            Kind::Fake if volumes.pool.is_some() => Some((".pool", "it is for the driver Rbd")),
            Kind::Fake if volumes.backup_pool.is_some() => {
                Some((".backupPool", "it is for the driver Rbd"))
            }
            Kind::Fake => None,
        }
    }

    /// First pool with two fields.
    fn pooled_twice(&self) -> Option<(&'static str, &'static str)> {
        let pools = self.pools();
        let twice = |(index, (_, pool)): &(usize, &(&str, &str))| {
            pools.iter().take(*index).any(|(_, it)| it == pool)
        };
        let (_, (field, _)) = pools.iter().enumerate().find(twice)?;
        Some((
            field,
            "another field has this pool: quotas and caps are those of a pool, and one has one kind of content",
        ))
    }
}

impl Ceph {
    fn wrong(&self) -> Option<(String, &'static str)> {
        let path = |field: &str| format!("storage.ceph.{field}");
        if self.monitors.is_empty() {
            return Some((path("monitors"), "it needs one monitor at least"));
        }
        for (index, monitor) in self.monitors.iter().enumerate() {
            let path = path(&format!("monitors[{index}]"));
            if let Some(problem) = wrong_monitor(monitor) {
                return Some((path, problem));
            }
            if self.monitors.iter().take(index).any(|it| it == monitor) {
                return Some((path, "it is there twice"));
            }
        }
        if !name(&self.user) || self.user.starts_with("client.") {
            let problem =
                "it has to be 1 to 64 letters, digits, `.`, `-` or `_`, without `client.`";
            return Some((path("user"), problem));
        }
        let wrong = !is_domain(&self.secret_name);
        wrong.then(|| (path("secretName"), "it is not the name of a Secret"))
    }
}

/// Problem of a text as the address of a monitor.
fn wrong_monitor(text: &str) -> Option<&'static str> {
    const FORM: &str = "it has to be an IPv4 address or a domain name, and a port if it is not the standard one: 192.0.2.1:6789";
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    if port.is_some_and(|it| !it.parse::<u16>().is_ok_and(|it| it > 0)) || !is_domain(host) {
        return Some(FORM);
    }
    let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    if host.split('.').all(is_number) {
        return match host.parse::<std::net::Ipv4Addr>() {
            Ok(address) if address.is_loopback() || address.is_unspecified() => {
                Some("a Pod that connects to it would reach itself")
            }
            Ok(address) if address.is_multicast() || address.is_broadcast() => Some(FORM),
            Ok(_) => None,
            Err(_) => Some(FORM),
        };
    }
    (host == "localhost").then_some("a Pod that connects to it would reach itself")
}

#[cfg(test)]
mod tests;
