//! Cinder: volumes of users, in clouds with `storage.volumes` in the parameters.

use super::definition::{
    Address, Callers, Definition, Entry, File, Probe, Run, Stateful, Task, Workload, command, uwsgi,
};
use super::{Service, ceph, rabbitmq};
use crate::cloud::Cloud;
use crate::config::Config;
use crate::held::Credentials;
use crate::parameters::{Kind, Parameters, Volumes};

const USER: &str = "cinder";
const PORTS: &[(&str, u16)] = &[("http", 8776)];
/// Path of our program with the drivers.
const PROGRAM: &str = "/opt/ferrostack/volumes.py";
const SCHEDULER: &str = "cinder-scheduler";
const VOLUME: &str = "cinder-volume";
const BACKUP: &str = "cinder-backup";

/// A driver of volumes.
struct Backend {
    /// Name of the section, also in the records of volumes.
    name: &'static str,
    /// Its class.
    class: &'static str,
}

/// The driver of each kind.
fn backend(kind: Kind) -> Backend {
    match kind {
        Kind::Rbd => Backend {
            name: "rbd",
            class: "cinder.volume.drivers.rbd.RBDDriver",
        },
        Kind::Fake => Backend {
            name: "fake",
            class: "volumes.Imaginary",
        },
    }
}

/// The configuration.
pub(super) fn configuration(parameters: &Parameters) -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("database", "cinder", "cinder");
    config.messaging("cinder");
    config.tokens("cinder", parameters);
    config.behind_edge();
    config.locks("cinder");
    let why = "the only writable directory of the Pod";
    config.require("DEFAULT", "state_path", "/var/lib/cinder", why);
    let why = "callers are authenticated by Keystone";
    config.require("DEFAULT", "auth_strategy", "keystone", why);
    // A volume has the name of its host for ever, and names of Pods end.
    let why = "the host of every volume, whatever its Pods";
    config.require("DEFAULT", "host", "volumes", why);
    let why = "services call each other inside the cluster";
    let images = "image:glance:internalURL";
    config.require("DEFAULT", "glance_catalog_info", images, why);
    config.require("nova", "interface", "internal", why);
    for section in ["nova", "service_user"] {
        config.login(section, "cinder", parameters);
    }
    let why = "services call each other with service tokens";
    config.require("service_user", "send_service_user_token", "true", why);
    if let Some(volumes) = parameters.volumes() {
        backends(&mut config, parameters, volumes);
    }
    config
}

/// Sections of the driver and of backups.
fn backends(config: &mut Config, parameters: &Parameters, volumes: &Volumes) {
    let Backend { name, class } = backend(volumes.driver);
    let field = "storage.volumes.driver";
    config.derive("DEFAULT", "enabled_backends", name, field);
    config.derive(name, "volume_driver", class, field);
    let why = "volume types name it";
    config.preset(name, "volume_backend_name", name, why);
    let Some((ceph, pool)) = parameters.ceph().zip(volumes.pool.as_deref()) else {
        return;
    };
    let monitors = "the monitors of storage.ceph";
    config.derive(name, "rbd_pool", pool, "storage.volumes.pool");
    config.derive(name, "rbd_user", &ceph.user, "storage.ceph.user");
    config.require(name, "rbd_ceph_conf", ceph::CONFIGURATION, monitors);
    let why = "the name of the key in the libvirtd of each node";
    config.require(name, "rbd_secret_uuid", ceph::LIBVIRT_SECRET, why);
    let why = "a Ceph that is away ends a request with an error";
    config.preset(name, "rados_connect_timeout", "30", why);
    // The programs say how much is free by one question instead of one for each volume.
    let why = "one question for each volume every minute takes longer than the minute";
    config.preset(name, "rbd_exclusive_cinder_pool", "true", why);
    if let Some(pool) = &volumes.backup_pool {
        let field = "storage.volumes.backupPool";
        let class = "cinder.backup.drivers.ceph.CephBackupDriver";
        config.derive("DEFAULT", "backup_driver", class, field);
        config.derive("DEFAULT", "backup_ceph_pool", pool, field);
        let field = "storage.ceph.user";
        config.derive("DEFAULT", "backup_ceph_user", &ceph.user, field);
        let conf = ceph::CONFIGURATION;
        config.require("DEFAULT", "backup_ceph_conf", conf, monitors);
    }
}

/// Definition of Cinder; `None` without volumes.
pub(super) fn definition(cloud: &Cloud, held: &Credentials) -> Option<Definition> {
    let volumes = cloud.parameters.volumes()?;
    let mut workloads = vec![
        api(cloud, held),
        worker(cloud, held, SCHEDULER),
        worker(cloud, held, VOLUME),
    ];
    let mut addresses = vec![
        Address {
            name: "cinder",
            workload: "cinder-api",
            ports: PORTS,
            replicas: false,
            callers: Callers::Anyone,
        },
        replicas(VOLUME),
    ];
    if volumes.backup_pool.is_some() {
        workloads.push(worker(cloud, held, BACKUP));
        addresses.push(replicas(BACKUP));
    }
    Some(Definition {
        name: "cinder",
        databases: vec!["cinder"],
        messaging: true,
        account: true,
        catalogue: vec![Entry {
            kind: "volumev3",
            name: "cinder",
            url: "http://cinder:8776/v3/%(project_id)s",
        }],
        addresses,
        tasks: vec![Task {
            name: "cinder-schema",
            run: run(cloud, held, command(&["cinder-manage", "db", "sync"])),
            needs: vec!["databases"],
            repeat: true,
        }],
        workloads,
        ..Definition::default()
    })
}

fn api(cloud: &Cloud, held: &Credentials) -> Workload {
    let command = uwsgi(&cloud.parameters, "cinder-api", 8776);
    Workload {
        name: "cinder-api",
        stateful: None,
        run: run(cloud, held, command),
        ports: PORTS,
        ready: Probe::Http("http", "/healthcheck"),
        alive: Some(Probe::Tcp("http")),
        needs: vec!["cinder-schema", "broker-accounts", "identities"],
    }
}

/// [`Address`] of a program's replica.
fn replicas(program: &'static str) -> Address {
    Address {
        name: program,
        workload: program,
        ports: &[],
        replicas: true,
        callers: Callers::Anyone,
    }
}

/// Program without a port. Two programs with volumes of one host would work on the same volumes: the old one ends
/// first.
fn worker(cloud: &Cloud, held: &Credentials, name: &'static str) -> Workload {
    let has_volumes = name != SCHEDULER;
    let mut run = run(cloud, held, command(&[name]));
    let mut needs = vec!["cinder-schema", "broker-accounts", "identities"];
    if has_volumes {
        run.command = command(&["python3", PROGRAM, name]);
        let program = include_str!("../../programs/volumes.py");
        run.files.push(File::public(
            "cinder-volume-program",
            PROGRAM,
            program.to_owned(),
        ));
        let of_ceph = ceph::files(cloud, held);
        needs.extend((!of_ceph.is_empty()).then_some(ceph::STEP));
        run.files.extend(of_ceph);
    }
    Workload {
        name,
        stateful: has_volumes.then(|| Stateful::one(name)),
        run,
        ports: &[],
        ready: Probe::Connected(&[rabbitmq::PORT]),
        // Without a broker it reconnects by itself.
        alive: None,
        needs,
    }
}

fn run(cloud: &Cloud, held: &Credentials, command: Vec<String>) -> Run {
    Run {
        command,
        user: USER,
        files: Service::Cinder.files(cloud, held, None),
        scratch: vec!["/tmp", "/var/lib/cinder"],
        ..Run::default()
    }
}

#[cfg(test)]
mod tests;
