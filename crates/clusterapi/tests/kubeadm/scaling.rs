//! Creation, scaling and changes of a control plane.

use std::collections::BTreeSet;

use api::bootstrap::v1beta2::KubeadmConfig;
use api::conditions;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::{Cluster, Machine};
use api::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use api::k8s_openapi::api::events::v1::Event;
use api::k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use api::kube::ResourceExt;
use api::kube::api::Api;
use serde_json::json;
use simulator::etcd::AlarmType;

use crate::world::{World, eventually, template};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_machines_come_up_one_after_the_other() {
    let world = World::start().await;
    world.cluster(3).await;
    let plane = world.settled(3).await;
    let machines = world.list::<Machine>().await;
    for machine in &machines {
        assert_eq!(
            machine.labels()["cluster.x-k8s.io/control-plane-name"],
            "demo"
        );
        let owner = &machine.owner_references()[0];
        assert_eq!(
            (owner.kind.as_str(), owner.controller),
            ("KubeadmControlPlane", Some(true))
        );
        assert!(conditions::is_true(
            machine.conditions(),
            "EtcdMemberHealthy"
        ));
    }
    let domains: Vec<_> = machines
        .iter()
        .filter_map(|m| m.spec.failure_domain.clone())
        .collect();
    assert_eq!(domains.len(), 3);
    assert_eq!(
        domains.into_iter().collect::<BTreeSet<_>>().len(),
        2,
        "spread over both"
    );
    eventually("the Cluster to be available", || async {
        let cluster = world.api::<Cluster>().get("demo").await.unwrap();
        let found = conditions::find(cluster.conditions(), "Available").cloned();
        if found.as_ref().is_some_and(|found| found.status == "True") {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await;
    assert_eq!(plane.owner_references()[0].kind, "Cluster");
    let status = plane.status.unwrap();
    for type_ in [
        "Available",
        "Initialized",
        "CertificatesAvailable",
        "EtcdClusterHealthy",
    ] {
        assert!(
            conditions::is_true(&status.conditions, type_),
            "{type_} {status:#?}"
        );
    }
    assert_eq!(status.version.as_deref(), Some("v1.34.1"));
    let locks: Api<ConfigMap> = world.api();
    assert!(
        locks.get_opt("demo-lock").await.unwrap().is_none(),
        "the lock is released"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_control_plane_scales_up_and_down() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    for replicas in [3, 1, 3] {
        let scale = json!({"spec": {"replicas": replicas}});
        world.merge::<KubeadmControlPlane>("demo", scale).await;
        world.settled(replicas).await;
        assert_eq!(world.members.names(), world.machine_names().await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_of_three_leaves_exactly_three_members() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let upgrade = json!({"spec": {"version": "v1.35.0"}});
    world.merge::<KubeadmControlPlane>("demo", upgrade).await;
    eventually("all machines to have the new version", || async {
        let machines = world.list::<Machine>().await;
        let versions: Vec<_> = machines.iter().map(|m| m.spec.version.clone()).collect();
        let new = |version: &Option<String>| version.as_deref() == Some("v1.35.0");
        if versions.iter().all(new) {
            Ok(())
        } else {
            Err(format!("{versions:?}"))
        }
    })
    .await;
    world.settled(3).await;
    assert_eq!(world.members.names(), world.machine_names().await);
    assert!(world.members.leader().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_version_replaces_every_machine() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let before = world.list::<Machine>().await.remove(0).name_any();
    let upgrade = json!({"spec": {"version": "v1.35.0"}});
    world.merge::<KubeadmControlPlane>("demo", upgrade).await;
    world.settled(1).await;
    let after = world.list::<Machine>().await.remove(0);
    assert_ne!(after.name_any(), before);
    assert_eq!(after.spec.version.as_deref(), Some("v1.35.0"));
    let maps: Api<ConfigMap> = Api::namespaced(world.workload.clone(), "kube-system");
    let config = maps.get("kubeadm-config").await.unwrap().data.unwrap();
    assert!(
        config["ClusterConfiguration"].contains("kubernetesVersion: v1.35.0"),
        "{config:?}"
    );
    let roles: Api<Role> = Api::namespaced(world.workload.clone(), "kube-system");
    let bindings: Api<RoleBinding> = Api::namespaced(world.workload.clone(), "kube-system");
    let name = "kubeadm:kubelet-config";
    assert!(roles.get_opt(name).await.unwrap().is_some());
    let binding = bindings.get(name).await.unwrap();
    assert_eq!(binding.role_ref.name, name);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_template_replaces_every_machine_without_surge() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    world.apply([template("other")]).await;
    let change = json!({"spec": {
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}},
        "machineTemplate": {"spec": {"infrastructureRef": {"name": "other"}}},
    }});
    let before: BTreeSet<_> = world
        .list::<Machine>()
        .await
        .iter()
        .map(|m| m.name_any())
        .collect();
    world.merge::<KubeadmControlPlane>("demo", change).await;
    eventually("all machines to be replaced", || async {
        let now: BTreeSet<_> = world
            .list::<Machine>()
            .await
            .iter()
            .map(|m| m.name_any())
            .collect();
        assert!(now.len() <= 3, "never more than without surge");
        if now.is_disjoint(&before) {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
    world.settled(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unhealthy_member_stops_scaling_until_it_is_well() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let name = world.list::<Machine>().await.remove(0).name_any();
    world.members.etcd.alarm(&name, AlarmType::Nospace, true);
    world
        .merge::<KubeadmControlPlane>("demo", json!({"spec": {"replicas": 3}}))
        .await;
    world
        .condition(
            "EtcdClusterHealthy",
            "False",
            "etcd reports alarms: NOSPACE",
        )
        .await;
    world.condition("ScalingUp", "True", "not healthy").await;
    assert_eq!(world.list::<Machine>().await.len(), 1);
    world.members.etcd.alarm(&name, AlarmType::Nospace, false);
    world.settled(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_machine_is_added_while_a_member_counts_another_as_disconnected() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let names = world.machine_names().await;
    // Both run, answer, and follow the leader: only the next `kubeadm join` would fail.
    world.members.etcd.part(&names[0], &names[1], true);
    world
        .merge::<KubeadmControlPlane>("demo", json!({"spec": {"replicas": 5}}))
        .await;
    let (member, other) = (&names[0], &names[1]);
    let why = format!("Waiting for the etcd member {member} to be connected to {other}");
    world.condition("ScalingUp", "True", &why).await;
    assert_eq!(world.machine_names().await, names);
    world.members.etcd.part(&names[0], &names[1], false);
    world.settled(5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_join_although_kubeadm_asks_a_member_that_counts_another_as_disconnected() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let names = world.machine_names().await;
    // etcd does not correct its count until one of both is started again.
    world.members.etcd.part(&names[0], &names[1], true);
    world.members.etcd.send_additions_to(&names[0]);
    world
        .merge::<KubeadmControlPlane>("demo", json!({"spec": {"replicas": 5}}))
        .await;
    world.settled(5).await;
    assert_eq!(world.members.names(), world.machine_names().await);
    let events = world.list::<Event>().await.into_iter();
    let added = events.filter(|event| event.reason.as_deref() == Some("EtcdMemberAdded"));
    let added: Vec<_> = added.filter_map(|event| event.note).collect();
    let why = format!(": {} counts {} as disconnected", names[0], names[1]);
    assert_eq!(added.len(), 2, "{added:?}");
    assert!(added.iter().all(|note| note.contains(&why)), "{added:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_counts_another_as_disconnected_does_not_keep_a_member() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let names = world.machine_names().await;
    let leader = world.members.leader().unwrap().machine;
    let mut others = names.iter().filter(|name| **name != leader);
    let (victim, other) = (others.next().unwrap(), others.next().unwrap());
    // The leader rejects the removal of the one, since it counts the other as disconnected.
    world.members.etcd.part(&leader, other, true);
    world.delete::<Machine>(victim).await;
    eventually("the member and the machine to be gone", || async {
        let (members, machines) = (world.members.names(), world.machine_names().await);
        match members.contains(victim) || machines.contains(victim) {
            true => Err(format!("{members:?} {machines:?}")),
            false => Ok(()),
        }
    })
    .await;
    world.members.etcd.part(&leader, other, false);
    world.settled(3).await;
    assert_eq!(world.members.names(), world.machine_names().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_cannot_be_asked_stops_scaling_down_and_says_why() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let names = world.machine_names().await;
    for name in &names {
        world.members.answers(name, false);
    }
    world
        .merge::<KubeadmControlPlane>("demo", json!({"spec": {"replicas": 1}}))
        .await;
    world
        .condition("EtcdClusterHealthy", "Unknown", "cannot be forwarded")
        .await;
    world.condition("ScalingDown", "True", "is blocked").await;
    assert_eq!(world.machine_names().await, names);
    assert_eq!(world.members.names(), names);
    for name in &names {
        world.members.answers(name, true);
    }
    world.settled(1).await;
    assert_eq!(world.members.names(), world.machine_names().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_connection_to_etcd_stays_open_at_rest_and_the_next_change_opens_one() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    eventually("etcd to be left alone", || async {
        match world.members.connections() {
            0 => Ok(()),
            open => Err(format!("{open} connections")),
        }
    })
    .await;
    world
        .merge::<KubeadmControlPlane>("demo", json!({"spec": {"replicas": 3}}))
        .await;
    world.settled(3).await;
    assert_eq!(world.members.names(), world.machine_names().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_hands_over_before_it_goes() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let leader = world.members.leader().unwrap().name;
    let term = world.members.etcd.term();
    world.delete::<Machine>(&leader).await;
    eventually("the leader to be replaced", || async {
        let names = world.machine_names().await;
        if names.contains(&leader) {
            Err(format!("{names:?}"))
        } else {
            Ok(())
        }
    })
    .await;
    world.settled(3).await;
    assert_eq!(world.members.names(), world.machine_names().await);
    assert!(world.members.leader().is_some());
    assert_eq!(
        world.members.etcd.term(),
        term + 1,
        "handed over once, and never lost"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_a_node_is_removed() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    world.members.add_stray("stray");
    assert_eq!(world.members.names().len(), 4);
    // Any change triggers a reconcile.
    let poke = json!({"metadata": {"annotations": {"poke": "it"}}});
    world.merge::<KubeadmControlPlane>("demo", poke).await;
    eventually("the stray member to be removed", || async {
        let names = world.members.names();
        if names.len() == 3 {
            Ok(())
        } else {
            Err(format!("{names:?}"))
        }
    })
    .await;
    assert_eq!(world.members.names(), world.machine_names().await);
    world.settled(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_cluster_takes_its_control_plane_along() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    world.delete::<Cluster>("demo").await;
    world.gone::<Cluster>("demo").await;
    assert!(world.list::<Machine>().await.is_empty());
    assert!(world.list::<KubeadmControlPlane>().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_plane_machine_made_by_hand_joins_a_cluster_that_is_initialized() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let labels = json!({
        "cluster.x-k8s.io/cluster-name": "demo", "cluster.x-k8s.io/control-plane": "",
    });
    let infrastructure = "infrastructure.cluster.x-k8s.io";
    world
        .apply([
            json!({
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
                "metadata": {"name": "by-hand", "labels": labels},
                "spec": {"initConfiguration": {"nodeRegistration": {"name": "by-hand"}}},
            }),
            json!({
                "apiVersion": format!("{infrastructure}/v1"), "kind": "FakeMachine",
                "metadata": {"name": "by-hand", "labels": labels}, "spec": {},
            }),
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
                "metadata": {"name": "by-hand", "labels": labels},
                "spec": {
                    "clusterName": "demo", "version": "v1.34.1",
                    "bootstrap": {"configRef": {
                        "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "by-hand",
                    }},
                    "infrastructureRef":
                        {"apiGroup": infrastructure, "kind": "FakeMachine", "name": "by-hand"},
                },
            }),
        ])
        .await;
    let data = eventually("the bootstrap data", || async {
        let config = world.api::<KubeadmConfig>().get("by-hand").await.unwrap();
        let status = config.status.unwrap_or_default();
        status
            .data_secret_name
            .ok_or_else(|| format!("{:?}", status.conditions))
    })
    .await;
    let secret = world.api::<Secret>().get(&data).await.unwrap();
    let text = String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap();
    assert!(
        text.contains("kubeadm join") && !text.contains("kubeadm init"),
        "{text}"
    );
    assert!(
        text.contains("/etc/kubernetes/pki/ca.key"),
        "joins as a control plane machine"
    );
}
