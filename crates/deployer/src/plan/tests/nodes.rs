//! Programs on compute nodes.

use super::*;
use crate::desired::tests::nodes::guests;
use crate::plan::readiness::problem;

fn of_nodes(graph: &Graph) -> Vec<Json> {
    let objects = graph.objects().map(|(_, it)| it);
    let daemons = objects.filter(|it| it.reference().kind == ObjectKind::DaemonSet);
    daemons.map(Object::exposed).collect()
}

#[test]
fn planned_again_after_apply_nothing_is_left_to_do() {
    let graph = graph(guests());
    let there = world(&graph);
    assert!(plan(&graph, &there).is_empty());
}

#[test]
fn a_program_is_ready_when_it_is_on_every_node_with_the_label() {
    let graph = graph(guests());
    for mut there in of_nodes(&graph) {
        let reference = Reference::from_object(&there).unwrap();
        there["metadata"]["generation"] = 1.into();
        let mut asked = |status: Json| {
            there["status"] = status;
            problem(&reference, &there)
        };
        let unseen = asked(json!({})).unwrap();
        assert_eq!(unseen, "has not been processed by its controller");
        let none = asked(json!({"observedGeneration": 1, "desiredNumberScheduled": 0})).unwrap();
        let label = "has no node: none has the label openstack-compute-node=enabled";
        assert_eq!(none, label);
        let status =
            json!({"observedGeneration": 1, "desiredNumberScheduled": 3, "numberReady": 2});
        assert_eq!(asked(status).unwrap(), "is ready on 2 of 3 nodes");
        let status =
            json!({"observedGeneration": 1, "desiredNumberScheduled": 3, "numberReady": 3});
        assert_eq!(asked(status), None);
    }
}

#[test]
fn a_change_is_announced_with_when_it_takes_effect_on_a_node() {
    let before = graph(guests());
    let mut spec = guests();
    spec["compute"]["libvirt"]["reservedMemoryMib"] = 1024.into();
    let after = graph(spec);
    let plan = plan(&after, &world(&before));
    let restarts: Vec<(String, Vec<String>)> = plan
        .restarts
        .iter()
        .map(|it| (it.workload.to_string(), it.causes.clone()))
        .collect();
    let causes = vec![
        "[DEFAULT] reserved_host_memory_mb: 512 → 1024".to_owned(),
        "on each node when its Pod there is deleted, and not before".to_owned(),
    ];
    let expected = vec![("DaemonSet nova-compute".to_owned(), causes)];
    assert_eq!(restarts, expected);
}

#[test]
fn the_configuration_of_pods_that_nobody_has_replaced_stays() {
    let with = |reserved: u32| {
        let mut spec = guests();
        spec["compute"]["libvirt"]["reservedMemoryMib"] = reserved.into();
        graph(spec)
    };
    let (first, second, third) = (with(512), with(1024), with(2048));
    let is_file = |it: &Json| it["kind"] == "ConfigMap" || it["kind"] == "Secret";
    let dated = |graph: &Graph, time: &str| {
        let mut files = world(graph);
        files.retain(is_file);
        for file in &mut files {
            file["metadata"]["creationTimestamp"] = time.into();
        }
        files
    };
    let mut there = world(&third);
    there.retain(|it| !is_file(it));
    for (graph, time) in [
        (&first, "2026-01-01T00:00:00Z"),
        (&second, "2026-01-02T00:00:00Z"),
        (&third, "2026-01-03T00:00:00Z"),
    ] {
        for file in dated(graph, time) {
            let same = |it: &Json| {
                it["kind"] == file["kind"] && it["metadata"]["name"] == file["metadata"]["name"]
            };
            if !there.iter().any(same) {
                there.push(file);
            }
        }
    }
    let deleted = |updated: u32, there: &[Json]| {
        let mut there = there.to_vec();
        for object in &mut there {
            if object["kind"] == "DaemonSet" {
                object["status"] =
                    json!({"currentNumberScheduled": 3, "updatedNumberScheduled": updated});
            }
        }
        plan(&third, &there).deletions
    };
    // Everywhere replaced: the content before is kept, and the first one goes.
    let gone = deleted(3, &there);
    assert!(
        !gone.is_empty() && gone.iter().all(|it| it.name.contains("nova-compute")),
        "{gone:?}"
    );
    assert_eq!(deleted(2, &there), vec![]);
}
