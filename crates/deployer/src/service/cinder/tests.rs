use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use crate::desired::tests::{cloud, full, held};
use crate::desired::{Graph, desired};
use crate::held::Credentials;
use crate::object::ObjectKind;
use crate::release::Release;

const KEY: &str = "AQDgR0xpAAAAABAAa0XqYQk3mS0mC1u2mZ8m4A==";

/// What a cluster holds, with the key of a Ceph in the Secret `ceph`.
fn held_with_key() -> Credentials {
    use base64::Engine as _;
    let key = base64::engine::general_purpose::STANDARD.encode(KEY);
    let secret =
        json!({"kind": "Secret", "metadata": {"name": "ceph"}, "data": {"openstack": key}});
    let mut next = 0_u8;
    Credentials::complete("cloud", &[secret], || {
        next = next.wrapping_mul(5).wrapping_add(17);
        next
    })
}

fn rbd() -> Json {
    let mut spec = full(Release::Gazpacho);
    spec["storage"] = json!({
        "ceph": {"monitors": ["192.0.2.1:6789"], "secretName": "ceph"},
        "volumes": {"driver": "Rbd", "pool": "volumes", "backupPool": "backups"},
        "images": {"pool": "images"},
    });
    spec
}

fn steps(graph: &Graph) -> BTreeSet<&str> {
    graph.steps.iter().map(|it| it.name.as_str()).collect()
}

fn needs<'a>(graph: &'a Graph, name: &str) -> &'a [String] {
    &graph.steps.iter().find(|it| it.name == name).unwrap().needs
}

#[test]
fn a_cloud_without_volumes_has_nothing_of_cinder() {
    let mut spec = full(Release::Gazpacho);
    spec.as_object_mut().unwrap().remove("storage");
    let graph = desired(&cloud(&spec), &held());
    assert!(
        !steps(&graph)
            .iter()
            .any(|it| it.contains("cinder") || it.contains("ceph"))
    );
    let mut words = graph.objects().map(|(_, it)| it.public().to_string());
    assert!(!words.any(|it| it.contains("8776")));
}

#[test]
fn programs_that_use_a_pool_start_when_all_pools_have_been_tried() {
    let graph = desired(&cloud(&rbd()), &held_with_key());
    assert_eq!(graph.problems, Vec::<String>::new());
    let pools = "ceph-pools".to_owned();
    for program in ["cinder-volume", "cinder-backup", "glance-api"] {
        assert!(needs(&graph, program).contains(&pools), "{program}");
    }
    for program in ["cinder-api", "cinder-scheduler", "nova-compute"] {
        assert!(!needs(&graph, program).contains(&pools), "{program}");
    }
    let (_, task) = graph
        .objects()
        .find(|(step, _)| step.name == "ceph-pools")
        .unwrap();
    let words = task.public()["spec"]["template"]["spec"]["containers"][0]["command"].to_string();
    for pool in [
        "storage.volumes.pool=volumes",
        "storage.volumes.backupPool=backups",
        "storage.images.pool=images",
    ] {
        assert!(words.contains(pool), "{words}");
    }
}

#[test]
fn the_key_is_in_secrets_alone_and_another_one_makes_other_pods() {
    let graph = desired(&cloud(&rbd()), &held_with_key());
    for (_, object) in graph.objects() {
        assert!(
            !object.public().to_string().contains(KEY),
            "{}",
            object.reference()
        );
    }
    let secrets = graph
        .objects()
        .map(|(_, it)| it)
        .filter(|it| it.reference().kind == ObjectKind::Secret);
    let with_key = secrets.filter(|it| it.reference().name.starts_with("ceph-keyring-"));
    assert_eq!(with_key.count(), 1);
}

#[test]
fn a_secret_that_is_missing_is_a_problem_with_its_field() {
    let graph = desired(&cloud(&rbd()), &held());
    assert_eq!(
        graph.problems,
        ["storage.ceph.secretName: there is no Secret ceph in the namespace"]
    );
}

#[test]
fn two_programs_never_have_the_volumes_of_one_host() {
    let graph = desired(&cloud(&rbd()), &held_with_key());
    for name in ["cinder-volume", "cinder-backup"] {
        let (_, object) = graph.objects().find(|(step, _)| step.name == name).unwrap();
        assert_eq!(object.reference().kind, ObjectKind::StatefulSet, "{name}");
        assert_eq!(object.public()["spec"]["replicas"], 1, "{name}");
    }
    let mut files = graph
        .objects()
        .filter_map(|(_, it)| it.public()["data"]["cinder.conf"].as_str());
    assert!(files.all(|it| it.contains("host = volumes\n")));
}

#[test]
fn guests_get_the_key_from_the_libvirt_of_their_node() {
    let mut spec = crate::desired::tests::nodes::guests();
    spec["storage"] = rbd()["storage"].clone();
    spec["storage"]["guests"] = json!({"pool": "guests"});
    let graph = desired(&cloud(&spec), &held_with_key());
    assert_eq!(graph.problems, Vec::<String>::new());
    assert!(needs(&graph, "nova-compute").contains(&"ceph-pools".to_owned()));
    let of = |name: &str, key: &str| -> String {
        let files = graph
            .objects()
            .map(|(_, it)| it)
            .filter(|it| it.reference().name.starts_with(name));
        let mut files = files.filter_map(|it| it.public()["data"][key].as_str());
        files.next().unwrap().to_owned()
    };
    let compute = of("nova-compute-", "nova.conf");
    let uuid = super::ceph::LIBVIRT_SECRET;
    for line in [
        "images_type = rbd\n",
        "images_rbd_pool = guests\n",
        "rbd_user = openstack\n",
    ] {
        assert!(compute.contains(line), "{line}: {compute}");
    }
    assert!(
        compute.contains(&format!("rbd_secret_uuid = {uuid}\n")),
        "{compute}"
    );
    // The library that attaches volumes starts a helper, also for those of RBD; no image has sudo.
    let rights = of("nova-compute-rights-", "60-rights.conf");
    assert!(
        rights.contains("[privsep_osbrick]\nhelper_command = privsep-helper "),
        "{rights}"
    );
    assert!(of("ceph-secret-", "secret.xml").contains(uuid));
    assert!(of("cinder-", "cinder.conf").contains(&format!("rbd_secret_uuid = {uuid}\n")));
}
