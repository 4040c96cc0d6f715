//! kube-proxy and CoreDNS, as run by kube-controller-manager, the scheduler and the kubelets: one pod of kube-proxy per
//! node, the replicas of CoreDNS on nodes that accept them, and the numbers in the status.
//!
//! Pods of other workloads are not created: they would look as if containers ran.

mod plan;
mod status;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::plan::{NodeFacts, PodFacts};
use super::super::api::{Api, Error};
use super::super::objects::node::NODES;
use super::super::objects::pods::{self, PODS};
use crate::json::text;

pub(super) const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/kube-system/daemonsets";
pub(super) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/kube-system/deployments";
const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/kube-system/replicasets";
/// Maximum number of passes: a pass with created or deleted pods is followed by another one.
const PASSES: usize = 4;

/// Creates and deletes pods of the add-ons, and updates their status. Machines of the nodes in `gone` do not run.
pub(super) async fn reconcile(api: &Api, gone: &BTreeSet<String>) -> Result<(), Error> {
    for _ in 0..PASSES {
        let nodes: Vec<NodeFacts> = api
            .list(NODES)
            .await?
            .iter()
            .filter_map(|node| NodeFacts::new(node, gone))
            .collect();
        let pods: Vec<Value> = api.list(PODS).await?;
        address_static_pods(api, &nodes, &pods).await?;
        let mut changed = false;
        if let Some(set) = api.get(&format!("{DAEMON_SETS}/kube-proxy")).await? {
            changed |= daemon_set(api, &set, &nodes, &pods).await?;
        }
        if let Some(deployment) = api.get(&format!("{DEPLOYMENTS}/coredns")).await? {
            changed |= self::deployment(api, &deployment, &nodes, &pods).await?;
        }
        if !changed {
            break;
        }
    }
    Ok(())
}

/// Returns true if pods were created or deleted.
async fn daemon_set(
    api: &Api,
    set: &Value,
    nodes: &[NodeFacts],
    all: &[Value],
) -> Result<bool, Error> {
    let pods = PodFacts::owned_by(set, all);
    let image = image(&set["spec"]["template"]);
    let plan = plan::daemon_set(nodes, &pods, &image);
    let owner = owner("DaemonSet", set);
    let changed = carry_out(api, &plan, &owner, &set["spec"]["template"], nodes).await?;
    if !changed {
        follow_nodes(api, &pods, nodes).await?;
        let status = status::daemon_set(set, nodes, &pods, &image);
        write(api, DAEMON_SETS, set, &status).await?;
    }
    Ok(changed)
}

/// Returns true if pods or the ReplicaSet were created or deleted.
async fn deployment(
    api: &Api,
    deployment: &Value,
    nodes: &[NodeFacts],
    all: &[Value],
) -> Result<bool, Error> {
    let wanted = plan::replica_set(deployment);
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    let mut current = None;
    let mut changed = false;
    for set in api.list(REPLICA_SETS).await? {
        if !plan::is_controlled_by(&set, deployment) {
            continue;
        }
        if set["metadata"]["name"] == name {
            current = Some(set);
            continue;
        }
        for pod in PodFacts::owned_by(&set, all) {
            api.delete(&format!("{PODS}/{}", pod.name)).await?;
        }
        let old = set["metadata"]["name"].as_str().unwrap_or_default();
        api.delete(&format!("{REPLICA_SETS}/{old}")).await?;
        changed = true;
    }
    let Some(set) = current else {
        api.create(REPLICA_SETS, &wanted).await?;
        return Ok(true);
    };
    let pods = PodFacts::owned_by(&set, all);
    let replicas = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    if set["spec"]["replicas"] != replicas {
        let path = format!("{REPLICA_SETS}/{name}");
        api.patch(&path, &json!({"spec": {"replicas": replicas}}))
            .await?;
        return Ok(true);
    }
    let plan = plan::replicas(usize::try_from(replicas).unwrap_or_default(), nodes, &pods);
    let owner = owner("ReplicaSet", &set);
    changed |= carry_out(api, &plan, &owner, &set["spec"]["template"], nodes).await?;
    if !changed {
        follow_nodes(api, &pods, nodes).await?;
        let counted = status::replica_set(&set, nodes, &pods);
        write(api, REPLICA_SETS, &set, &counted).await?;
        let now = Timestamp::now().to_string();
        let counted = status::deployment(deployment, nodes, &pods, &now);
        write(api, DEPLOYMENTS, deployment, &counted).await?;
    }
    Ok(changed)
}

/// Deletes and creates the pods of a plan. Returns true if there were any.
async fn carry_out(
    api: &Api,
    plan: &plan::Plan,
    owner: &Value,
    template: &Value,
    nodes: &[NodeFacts],
) -> Result<bool, Error> {
    for name in &plan.delete {
        api.delete(&format!("{PODS}/{name}")).await?;
    }
    for name in &plan.create_on {
        let Some(node) = nodes.iter().find(|node| node.name == *name) else {
            continue;
        };
        let mut pod = api
            .create(PODS, &plan::pod(owner, template, Some(&node.name)))
            .await?;
        pod["status"]["hostIP"] = node.address.clone().into();
        let path = format!("{PODS}/{}", text(&pod["metadata"]["name"]));
        api.patch_status(&path, &running(&pod, true)).await?;
    }
    for _ in 0..plan.create_pending {
        let pod = api.create(PODS, &plan::pod(owner, template, None)).await?;
        let path = format!("{PODS}/{}", text(&pod["metadata"]["name"]));
        let waiting = json!({"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": plan::unschedulable(nodes),
            "lastTransitionTime": Timestamp::now().to_string(),
        }]});
        api.patch_status(&path, &waiting).await?;
    }
    for (name, node) in &plan.bind {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": "kube-system"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        api.create(&format!("{PODS}/{name}/binding"), &binding)
            .await?;
    }
    Ok(*plan != plan::Plan::default())
}

/// Sets the addresses of static pods from before their nodes had addresses, like their kubelets.
async fn address_static_pods(api: &Api, nodes: &[NodeFacts], pods: &[Value]) -> Result<(), Error> {
    let mirrored =
        |pod: &&Value| pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_string();
    for pod in pods.iter().filter(mirrored) {
        let on = text(&pod["spec"]["nodeName"]);
        let Some(node) = nodes.iter().find(|node| node.name == on && node.ready) else {
            continue;
        };
        let address = node.address.as_str();
        if text(&pod["status"]["hostIP"]).is_empty() && !address.is_empty() {
            let path = format!("{PODS}/{}", text(&pod["metadata"]["name"]));
            let status = json!({"hostIP": address, "podIP": address, "podIPs": [{"ip": address}]});
            api.patch_status(&path, &status).await?;
        }
    }
    Ok(())
}

/// Sets the pods' readiness to the readiness of their nodes, and the addresses once the nodes have some.
async fn follow_nodes(api: &Api, pods: &[PodFacts<'_>], nodes: &[NodeFacts]) -> Result<(), Error> {
    for pod in pods {
        let node = nodes.iter().find(|node| node.name == pod.node);
        let ready = node.is_some_and(|node| node.ready);
        let address = node.map_or("", |node| node.address.as_str());
        let lacks_address = text(&pod.object["status"]["hostIP"]).is_empty() && !address.is_empty();
        if pod.ready != ready || (ready && lacks_address) {
            let mut object = pod.object.clone();
            if lacks_address {
                object["status"]["hostIP"] = address.into();
            }
            let path = format!("{PODS}/{}", pod.name);
            api.patch_status(&path, &running(&object, ready)).await?;
        }
    }
    Ok(())
}

/// Returns the status of a pod with a started container. Only pods in the network of the host have an address.
fn running(pod: &Value, ready: bool) -> Value {
    let mut status = pods::status(pod, ready, &Timestamp::now().to_string());
    if pod["spec"]["hostNetwork"] != true
        && let Some(fields) = status.as_object_mut()
    {
        fields.remove("podIP");
        fields.remove("podIPs");
    }
    status
}

/// Writes a status if different.
async fn write(api: &Api, collection: &str, object: &Value, status: &Value) -> Result<(), Error> {
    let same = status.as_object().is_some_and(|fields| {
        fields
            .iter()
            .all(|(field, value)| object["status"][field] == *value)
    });
    if !same {
        let path = format!("{collection}/{}", text(&object["metadata"]["name"]));
        api.patch_status(&path, status).await?;
    }
    Ok(())
}

fn owner(kind: &str, object: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

fn image(template: &Value) -> String {
    text(&template["spec"]["containers"][0]["image"]).to_owned()
}

#[cfg(test)]
mod tests;
