//! Scaling, rolling updates and replacement.

use api::core::v1beta2::{Machine, MachineDeployment, MachineSet};
use api::kube::ResourceExt;
use api::kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::{World, eventually, machine_template, uids};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_come_up_and_become_nodes() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let machines = world.list::<Machine>().await;
    let nodes = world.nodes().await;
    assert_eq!(nodes.len(), 3);
    for machine in &machines {
        let node = nodes
            .iter()
            .find(|node| Some(node.name_any().as_str()) == machine.node_name());
        let node = node.expect("the machine's Node");
        let provider_id = node.spec.as_ref().unwrap().provider_id.clone();
        assert_eq!(machine.spec.provider_id, provider_id);
        let handed_on = || async {
            let nodes = world.nodes().await;
            let node = nodes
                .iter()
                .find(|n| n.name_any() == node.name_any())
                .unwrap();
            let taints = node
                .spec
                .as_ref()
                .unwrap()
                .taints
                .clone()
                .unwrap_or_default();
            let annotation = node.annotations().get("cluster.x-k8s.io/machine").cloned();
            let good = node.labels().contains_key("node-role.kubernetes.io/worker")
                && !node.labels().contains_key("plain")
                && taints.is_empty()
                && annotation == Some(machine.name_any());
            if good {
                Ok(())
            } else {
                Err(format!("{:?} {taints:?}", node.metadata))
            }
        };
        eventually("labels on the Node", handed_on).await;
        // The owner references that `clusterctl move` follows.
        let owner = &machine.owner_references()[0];
        assert_eq!(
            (owner.kind.as_str(), owner.controller),
            ("MachineSet", Some(true))
        );
        let fake = world
            .fake("FakeMachine")
            .get(&machine.spec.infrastructure_ref.name)
            .await
            .unwrap();
        let owners: Vec<_> = fake
            .owner_references()
            .iter()
            .map(|owner| owner.kind.as_str())
            .collect();
        assert_eq!(owners, ["Machine"]);
        assert_eq!(
            fake.annotations()["cluster.x-k8s.io/cloned-from-groupkind"],
            "FakeMachineTemplate.infrastructure.cluster.x-k8s.io"
        );
    }
    let template = world
        .fake("FakeMachineTemplate")
        .get("demo-md")
        .await
        .unwrap();
    assert_eq!(template.owner_references()[0].kind, "Cluster");
    assert_eq!(template.owner_references()[0].controller, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scale_subresource_scales_up_and_down() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let deployments = world.api::<MachineDeployment>();
    for replicas in [4, 2, 0, 1] {
        let scale = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        deployments
            .patch_scale("demo-md", &PatchParams::default(), &scale)
            .await
            .unwrap();
        world.settled(replicas).await;
        let scale = deployments.get_scale("demo-md").await.unwrap();
        assert_eq!(scale.status.unwrap().replicas, replicas);
    }
    eventually("the Nodes of deleted machines to go", || async {
        let nodes = world.nodes().await;
        if nodes.len() == 1 {
            Ok(())
        } else {
            Err(format!("{} Nodes", nodes.len()))
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_machine_is_replaced() {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    let before = uids(&world.list::<Machine>().await);
    let victim = before.keys().next().unwrap().clone();
    world.delete::<Machine>(&victim).await;
    eventually("another machine", || async {
        let now = uids(&world.list::<Machine>().await);
        let replaced = now.len() == 2 && !now.contains_key(&victim);
        if replaced {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
    world.settled(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_are_created_unless_the_annotation_that_disables_it_is_true() {
    let world = World::start().await;
    world.cluster(0).await;
    world.settled(0).await;
    // A set of its own, without a deployment.
    let of_deployment = world.list::<MachineSet>().await.remove(0);
    let mut alone = MachineSet::new("alone", of_deployment.spec);
    let labels = json!({ "cluster.x-k8s.io/cluster-name": "demo", "set": "alone" });
    alone.spec.replicas = Some(1);
    alone.spec.selector = serde_json::from_value(json!({ "matchLabels": labels })).unwrap();
    let metadata = serde_json::from_value(json!({ "labels": labels })).unwrap();
    alone.spec.template.metadata = Some(metadata);
    let disabled = |value: &str| json!({ "cluster.x-k8s.io/disable-machine-create": value });
    alone.metadata.annotations = serde_json::from_value(disabled("true")).unwrap();
    let sets = world.api::<MachineSet>();
    sets.create(&Default::default(), &alone).await.unwrap();
    let machines = async || world.list::<Machine>().await.len();
    eventually("the set to be looked at", || async {
        let found = sets.get("alone").await.unwrap();
        match found.status.and_then(|status| status.replicas) {
            Some(0) => Ok(()),
            other => Err(format!("{other:?} machines")),
        }
    })
    .await;
    assert_eq!(machines().await, 0);
    // As the Go deployment controller writes into each set.
    let patch = Patch::Merge(json!({ "metadata": { "annotations": disabled("false") } }));
    let patched = sets.patch("alone", &PatchParams::default(), &patch).await;
    patched.unwrap();
    eventually("its machine", || async {
        match machines().await {
            1 => Ok(()),
            other => Err(format!("{other} machines")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_template_is_rolled_out_within_its_bounds() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let before = uids(&world.list::<Machine>().await);
    world.apply([machine_template("demo-md-2")]).await;
    let reference = json!({ "spec": { "template": { "spec": {
        "infrastructureRef": { "name": "demo-md-2" },
    }}}});
    world.merge::<MachineDeployment>("demo-md", reference).await;
    eventually("all machines to be replaced", || async {
        let machines = world.list::<Machine>().await;
        assert!(machines.len() <= 4, "more machines than replicas and surge");
        let up: usize = machines
            .iter()
            .filter(|m| api::conditions::is_true(m.conditions(), "Available") && !m.is_deleting())
            .count();
        assert!(up >= 3, "fewer than 3 available machines that stay");
        let now = uids(&machines);
        let done = now.len() == 3 && !now.keys().any(|name| before.contains_key(name));
        if done {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
    world.settled(3).await;
    let sets = world.list::<MachineSet>().await;
    assert_eq!(
        sets[0].annotations()["machinedeployment.clusters.x-k8s.io/revision"],
        "2"
    );
    let deployment = world
        .api::<MachineDeployment>()
        .get("demo-md")
        .await
        .unwrap();
    assert_eq!(
        deployment.annotations()["machinedeployment.clusters.x-k8s.io/revision"],
        "2"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_deployment_scales_and_rolls_nothing_out() {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    world.apply([machine_template("demo-md-2")]).await;
    let change = json!({ "spec": { "paused": true, "replicas": 4, "template": { "spec": {
        "infrastructureRef": { "name": "demo-md-2" },
    }}}});
    let before = uids(&world.list::<Machine>().await);
    world.merge::<MachineDeployment>("demo-md", change).await;
    eventually("four machines", || async {
        let now = uids(&world.list::<Machine>().await);
        let kept = before.keys().all(|name| now.contains_key(name));
        if now.len() == 4 && kept {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
    assert_eq!(world.list::<MachineSet>().await.len(), 1);
    let resume = json!({ "spec": { "paused": false } });
    world.merge::<MachineDeployment>("demo-md", resume).await;
    eventually("all machines to be replaced", || async {
        let now = uids(&world.list::<Machine>().await);
        if now.len() == 4 && !before.keys().any(|name| now.contains_key(name)) {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_reach_living_machines_in_place() {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    let before = uids(&world.list::<Machine>().await);
    let change = json!({ "spec": { "template": {
        "metadata": { "labels": { "node.cluster.x-k8s.io/tier": "gold" } },
        "spec": { "deletion": { "nodeDrainTimeoutSeconds": 7 } },
    }}});
    world.merge::<MachineDeployment>("demo-md", change).await;
    eventually("the label on machines and Nodes", || async {
        let machines = world.list::<Machine>().await;
        let nodes = world.nodes().await;
        let label = "node.cluster.x-k8s.io/tier";
        let good = machines.iter().all(|machine| {
            let deletion = machine.spec.deletion.clone().unwrap_or_default();
            machine.labels().contains_key(label) && deletion.node_drain_timeout_seconds == Some(7)
        }) && nodes.iter().all(|node| node.labels().contains_key(label));
        if good {
            Ok(())
        } else {
            Err(format!("{machines:?}"))
        }
    })
    .await;
    assert_eq!(uids(&world.list::<Machine>().await), before);
}

/// Waits until the machines have these timeouts of draining, in any order.
async fn timeouts(world: &World, what: &str, expected: &[Option<i32>]) {
    eventually(what, || async {
        let machines = world.list::<Machine>().await;
        let of = |machine: &Machine| machine.spec.deletion.as_ref()?.node_drain_timeout_seconds;
        let mut now: Vec<_> = machines.iter().map(of).collect();
        now.sort_unstable();
        let labelled = machines
            .iter()
            .all(|machine| machine.labels().contains_key("tier"));
        if now == expected && labelled {
            Ok(())
        } else {
            Err(format!("{now:?}, {labelled}"))
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_timeout_that_a_user_sets_stays_where_the_template_has_none() {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    let before = uids(&world.list::<Machine>().await);
    let first = before.keys().next().unwrap();
    let mine = json!({ "spec": { "deletion": { "nodeDrainTimeoutSeconds": 60 } } });
    world.merge::<Machine>(first, mine).await;
    let template = |template: Value| json!({ "spec": { "template": template } });
    let label = json!({ "metadata": { "labels": { "tier": "gold" } } });
    let change = template(label);
    world.merge::<MachineDeployment>("demo-md", change).await;
    timeouts(&world, "the user's to stay", &[None, Some(60)]).await;
    let drain =
        |seconds: Value| json!({ "spec": { "deletion": { "nodeDrainTimeoutSeconds": seconds } } });
    let change = template(drain(json!(7)));
    world.merge::<MachineDeployment>("demo-md", change).await;
    timeouts(&world, "the template's", &[Some(7), Some(7)]).await;
    let change = template(drain(Value::Null));
    world.merge::<MachineDeployment>("demo-md", change).await;
    timeouts(&world, "none", &[None, None]).await;
    assert_eq!(uids(&world.list::<Machine>().await), before);
}
