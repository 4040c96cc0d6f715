//! Ceph of another owner: files and options for the pools, and a task that tests them. No Ceph is ever made here.

use super::definition::{Definition, File, Run, Task, command};
use crate::cloud::Cloud;
use crate::config::Config;
use crate::held::Credentials;
use crate::parameters::{Ceph, Kind, Parameters};

/// Step that tests the pools, before every program with a pool.
pub(crate) const STEP: &str = "ceph-pools";
/// Configuration file of Ceph's libraries.
pub(super) const CONFIGURATION: &str = "/etc/ceph/ceph.conf";
const PROGRAM: &str = "/opt/ferrostack/ceph.py";
/// Paths of the key for libvirt, without a keyring, and of the name of the key.
const KEY: &str = "/etc/ceph/key";
const SECRET: &str = "/etc/ceph/secret.xml";
/// Name of the key in the cloud's own libvirtd of each node.
pub(super) const LIBVIRT_SECRET: &str = "6f5b6cb2-8c1b-4c43-9d3e-6e2b7f3d5a10";

/// Problem of the login at the Ceph, found before the Ceph is asked.
pub(crate) fn problem(cloud: &Cloud, held: &Credentials) -> Option<String> {
    held.ceph_key(cloud.parameters.ceph()?).err()
}

/// [`Definition`] with the [`Task`] that tests the pools.
pub(super) fn definition(cloud: &Cloud, held: &Credentials) -> Option<Definition> {
    let ceph = cloud.parameters.ceph()?;
    let mut words = command(&["python3", PROGRAM, &ceph.user]);
    let pools = cloud.parameters.pools().into_iter();
    words.extend(pools.map(|(field, pool)| format!("{field}={pool}")));
    let mut files = files(cloud, held);
    let program = include_str!("../../programs/ceph.py");
    files.push(File::public("ceph-program", PROGRAM, program.to_owned()));
    Some(Definition {
        name: "ceph",
        tasks: vec![Task {
            name: STEP,
            run: Run {
                command: words,
                user: "cinder",
                files,
                scratch: vec!["/tmp"],
                ..Run::default()
            },
            needs: vec![],
            repeat: false,
        }],
        ..Definition::default()
    })
}

/// [`File`]s for a program's access to the Ceph.
pub(super) fn files(cloud: &Cloud, held: &Credentials) -> Vec<File> {
    let Some(ceph) = cloud.parameters.ceph() else {
        return Vec::new();
    };
    let user = &ceph.user;
    let key = held.ceph_key(ceph).unwrap_or_default();
    let keyring = format!("[client.{user}]\n\tkey = {}\n", key.expose());
    vec![
        File::public("ceph", CONFIGURATION, configuration(ceph)),
        File::secret("ceph-keyring", keyring_of(user), keyring),
    ]
}

/// [`File`]s of nova-compute, with disks of guests in the Ceph: for the libraries, and the key for libvirt.
pub(super) fn files_of_guests(cloud: &Cloud, held: &Credentials) -> Option<Vec<File>> {
    let ceph = of_guests(&cloud.parameters)?;
    let key = held.ceph_key(ceph).unwrap_or_default();
    let mut files = files(cloud, held);
    let secret = format!(
        "<secret ephemeral='no' private='yes'><uuid>{LIBVIRT_SECRET}</uuid><usage type='ceph'><name>ferrostack</name></usage></secret>\n"
    );
    files.push(File::public("ceph-secret", SECRET, secret));
    files.push(File::secret("ceph-key", KEY, key.expose().to_owned()));
    Some(files)
}

/// Options of Nova for disks of guests in the Ceph: volumes, and all other disks with a pool of guests.
pub(super) fn compute_options(config: &mut Config, parameters: &Parameters) {
    let Some(ceph) = of_guests(parameters) else {
        return;
    };
    let field = "storage.ceph.user";
    config.derive("libvirt", "rbd_user", &ceph.user, field);
    let why = "the name of the key in the libvirtd of each node";
    config.require("libvirt", "rbd_secret_uuid", LIBVIRT_SECRET, why);
    if let Some(pool) = parameters.guests() {
        let field = "storage.guests.pool";
        config.derive("libvirt", "images_type", "rbd", field);
        config.derive("libvirt", "images_rbd_pool", pool, field);
        let why = "the monitors of storage.ceph";
        config.require("libvirt", "images_rbd_ceph_conf", CONFIGURATION, why);
    }
}

/// Options of Glance for images in a pool. Images in files stay in files.
pub(super) fn store_options(config: &mut Config, parameters: &Parameters, pool: &str) {
    let field = "storage.images.pool";
    config.derive("DEFAULT", "enabled_backends", "file:file,rbd:rbd", field);
    config.derive("glance_store", "default_backend", "rbd", field);
    config.derive("rbd", "rbd_store_pool", pool, field);
    if let Some(ceph) = parameters.ceph() {
        let field = "storage.ceph.user";
        config.derive("rbd", "rbd_store_user", &ceph.user, field);
    }
    let why = "the monitors of storage.ceph";
    config.require("rbd", "rbd_store_ceph_conf", CONFIGURATION, why);
    let why = "volumes and disks of guests are clones of images in the same Ceph";
    config.preset("DEFAULT", "show_image_direct_url", "true", why);
}

/// [`Ceph`] with disks of guests, if any.
fn of_guests(parameters: &Parameters) -> Option<&Ceph> {
    let volumes = parameters
        .volumes()
        .is_some_and(|it| it.driver == Kind::Rbd);
    let is_used = volumes || parameters.guests().is_some();
    parameters.libvirt()?;
    parameters.ceph().filter(|_| is_used)
}

/// Path of a user's keyring for the libraries.
fn keyring_of(user: &str) -> String {
    format!("/etc/ceph/ceph.client.{user}.keyring")
}

/// Configuration of clients: without the [`Ceph`] a request ends in an error, instead of hanging for minutes.
fn configuration(ceph: &Ceph) -> String {
    let monitors = ceph.monitors.join(",");
    let keyring = keyring_of("$id");
    format!(
        "[global]
mon_host = {monitors}
[client]
keyring = {keyring}
client_mount_timeout = 30
rados_mon_op_timeout = 30
log_file =
log_to_stderr = true
"
    )
}

#[cfg(test)]
mod tests;
