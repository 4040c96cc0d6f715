use serde_json::{Value as Json, json};

use super::*;

fn read(storage: &Json) -> Result<Parameters, String> {
    let document = json!({"release": "2026.1", "compute": {"driver": "Fake"}, "storage": storage});
    let read = Parameters::read(&document);
    read.map(|it| it.0).map_err(|it| it.to_string())
}

fn ceph() -> Json {
    json!({"monitors": ["192.0.2.1:6789", "ceph.example.org"], "secretName": "ceph"})
}

#[test]
fn pools_are_known_by_the_fields_that_name_them() {
    let storage = json!({"ceph": ceph(), "volumes": {"driver": "Rbd", "pool": "volumes", "backupPool": "backups"},
        "images": {"pool": "images"}});
    let parameters = read(&storage).unwrap();
    let pools = [
        ("storage.volumes.pool", "volumes"),
        ("storage.volumes.backupPool", "backups"),
        ("storage.images.pool", "images"),
    ];
    assert_eq!(parameters.pools(), pools);
    assert_eq!(parameters.ceph().unwrap().user, "openstack");
    let upgrading = Parameters {
        upgrading: true,
        ..parameters
    };
    assert!(upgrading.pools().is_empty() && upgrading.volumes().is_none());
}

#[test]
fn imaginary_volumes_need_no_ceph() {
    let parameters = read(&json!({"volumes": {"driver": "Fake"}})).unwrap();
    assert_eq!(parameters.volumes().unwrap().driver, Kind::Fake);
    assert!(parameters.ceph().is_none());
}

#[test]
fn what_is_wrong_with_storage_is_named_with_its_field() {
    let rbd = json!({"driver": "Rbd", "pool": "volumes"});
    let with = |field: &str, value: Json| {
        let mut ceph = ceph();
        ceph[field] = value;
        json!({"ceph": ceph, "volumes": rbd})
    };
    for (storage, message) in [
        (
            json!({"volumes": {"driver": "Lvm"}}),
            "storage.volumes.driver: it is not served: logical volumes need the device-mapper of the kernel, with which it could not be tried; use Rbd",
        ),
        (
            json!({"volumes": {"driver": "Iscsi"}}),
            "storage.volumes.driver: it is not served: it needs SCSI in the kernel of the nodes, with which it could not be tried; use Rbd",
        ),
        (
            json!({"volumes": {"driver": "Nfs"}}),
            "storage.volumes.driver: it is not built yet: no Pod of the cloud mounts file systems of a network; use Rbd",
        ),
        (
            json!({"volumes": {"driver": "rbd"}}),
            "storage.volumes.driver: there is no driver `rbd`; there are: Rbd, Fake",
        ),
        (
            json!({"volumes": {"driver": "Rbd"}, "ceph": ceph()}),
            "storage.volumes.pool: Rbd needs the name of a pool, such as volumes",
        ),
        (
            json!({"volumes": {"driver": "Fake", "pool": "volumes"}}),
            "storage.volumes.pool: it is for the driver Rbd",
        ),
        (
            json!({"volumes": {"driver": "Fake", "backupPool": "backups"}}),
            "storage.volumes.backupPool: it is for the driver Rbd",
        ),
        (
            json!({"volumes": rbd}),
            "storage.ceph: a pool is named, and no Ceph that has it: set monitors and secretName",
        ),
        (
            json!({"ceph": ceph()}),
            "storage.ceph: nothing uses it: name a pool in storage.volumes, storage.images or storage.guests",
        ),
        (
            json!({"ceph": ceph(), "volumes": rbd, "images": {"pool": "volumes"}}),
            "storage.images.pool: another field has this pool: quotas and caps are those of a pool, and one has one kind of content",
        ),
        (
            json!({"ceph": ceph(), "images": {"pool": "a b"}}),
            "storage.images.pool: it has to be 1 to 64 letters, digits, `.`, `-` or `_`",
        ),
        (
            json!({"ceph": ceph(), "guests": {"pool": "guests"}}),
            "storage.guests: it is for compute.driver: Libvirt; without, no guest has a disk",
        ),
        (
            with("monitors", json!([])),
            "storage.ceph.monitors: it needs one monitor at least",
        ),
        (
            with("monitors", json!(["192.0.2.1", "127.0.0.1:6789"])),
            "storage.ceph.monitors[1]: a Pod that connects to it would reach itself",
        ),
        (
            with("monitors", json!(["192.0.2.1", "192.0.2.1"])),
            "storage.ceph.monitors[1]: it is there twice",
        ),
        (
            with("monitors", json!(["192.0.2.300"])),
            "storage.ceph.monitors[0]: it has to be an IPv4 address or a domain name, and a port if it is not the standard one: 192.0.2.1:6789",
        ),
        (
            with("monitors", json!(["v2:192.0.2.1:3300"])),
            "storage.ceph.monitors[0]: it has to be an IPv4 address or a domain name, and a port if it is not the standard one: 192.0.2.1:6789",
        ),
        (
            with("user", json!("client.openstack")),
            "storage.ceph.user: it has to be 1 to 64 letters, digits, `.`, `-` or `_`, without `client.`",
        ),
        (
            with("secretName", json!("A_B")),
            "storage.ceph.secretName: it is not the name of a Secret",
        ),
    ] {
        assert_eq!(read(&storage).unwrap_err(), message, "{storage}");
    }
}

#[test]
fn volumes_go_with_the_release_and_with_the_hypervisors() {
    let of = |document: Json| Parameters::read(&document).unwrap_err().to_string();
    let fake = json!({"volumes": {"driver": "Fake"}});
    assert_eq!(
        of(json!({"release": "2025.1", "storage": fake})),
        "storage.volumes: it needs release 2026.1: the images of other releases have neither Cinder nor the libraries of Ceph"
    );
    let labels = json!({"compute": {"openstack-compute-node": "enabled"}});
    assert_eq!(
        of(
            json!({"release": "2026.1", "storage": fake, "nodes": labels, "compute": {"driver": "Libvirt"}})
        ),
        "storage.volumes.driver: Fake has no disk that a guest of Libvirt could get: use Rbd"
    );
    assert_eq!(
        of(
            json!({"release": "2026.1", "services": {"cinder": {"config": {"DEFAULT": {"debug": true}}}}})
        ),
        "services.cinder: Cinder is there with storage.volumes alone, which is not set"
    );
}
