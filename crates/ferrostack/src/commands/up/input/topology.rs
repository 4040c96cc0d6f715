//! Clusters of a class: options change the topology of the Cluster, and the class is created once.

use anyhow::{Context, bail};
use kube::Client;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use manifest::Document;
use operator::client::Api;
use serde_json::{Value, json};
use status::snapshot::Item;

use super::Change;
use crate::cli::ClusterOptions;

/// True if the objects of a Cluster come from a class, so that direct changes would be undone.
pub(super) fn is_managed(cluster: &Item) -> bool {
    cluster.field("/spec/topology").is_object()
}

/// Differences between the topology of a Cluster and the options. `kubectl` is the beginning of a command.
pub(super) fn changes(
    options: &ClusterOptions,
    cluster: &Item,
    kubectl: &str,
) -> anyhow::Result<Vec<Change>> {
    let mut out = Vec::new();
    let mut change = |topology: Value, what: String| {
        out.push(Change {
            kind: cluster.kind,
            namespace: cluster.namespace().to_owned(),
            name: cluster.name().to_owned(),
            patch: json!({"spec": {"topology": topology}}),
            what,
        });
    };
    if let Some(version) = &options.kubernetes_version {
        let current = cluster.field("/spec/topology/version");
        let current = current.as_str().unwrap_or_default();
        if current != version {
            let what = format!("{current} to {version}");
            change(json!({"version": version}), what);
        }
    }
    if let Some(count) = options.control_plane_machine_count {
        let current = cluster.field("/spec/topology/controlPlane/replicas");
        if let Some(what) = other_count(current, count, "control plane machines") {
            change(json!({"controlPlane": {"replicas": count}}), what);
        }
    }
    if let Some(count) = options.worker_machine_count {
        let path = "/spec/topology/workers/machineDeployments";
        let mut deployments = cluster.field(path).clone();
        match deployments.as_array_mut().map(Vec::as_mut_slice) {
            Some([deployment]) => {
                if let Some(what) = other_count(&deployment["replicas"], count, "workers") {
                    deployment["replicas"] = count.into();
                    // A merge patch replaces lists.
                    change(
                        json!({"workers": {"machineDeployments": deployments}}),
                        what,
                    );
                }
            }
            None | Some([]) => bail!(
                "--worker-machine-count: the topology of cluster `{}` has no workers that could be scaled to {count}",
                cluster.name()
            ),
            Some(several) => bail!(
                "--worker-machine-count: the topology of cluster `{}` has {} MachineDeployments; change the one that is meant: {kubectl} -n {} edit cluster {}",
                cluster.name(),
                several.len(),
                cluster.namespace(),
                cluster.name()
            ),
        }
    }
    Ok(out)
}

/// Change of a count, if `wanted` differs from the current one.
fn other_count(current: &Value, wanted: u32, what: &str) -> Option<String> {
    match current.as_u64() {
        Some(current) if current == u64::from(wanted) => None,
        Some(current) => Some(format!("{current} to {wanted} {what}")),
        // The number is an autoscaler's.
        None => Some(format!("no number to {wanted} {what}")),
    }
}

/// Documents without classes already in the namespace, and without the templates of such classes, as in clusterctl:
/// other clusters use the class. Also returns the names of the omitted classes.
pub(super) async fn without_known_classes(
    client: &Client,
    namespace: &str,
    mut documents: Vec<Document>,
) -> anyhow::Result<(Vec<Document>, Vec<String>)> {
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "ClusterClass");
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind));
    let mut known = Vec::new();
    for class in documents.iter().filter(|it| is_class(it)) {
        let name = class.text(&["metadata", "name"]);
        let found = api.get_opt(name).await;
        let found = found.with_context(|| format!("cannot read ClusterClass {name}"))?;
        known.extend(found.map(|_| name.to_owned()));
    }
    leave_out(&mut documents, &known);
    Ok((documents, known))
}

/// Removes the classes of the given names, with their templates, from the [`Document`]s.
fn leave_out(documents: &mut Vec<Document>, classes: &[String]) {
    let mut named = Vec::new();
    for class in documents.iter().filter(|it| is_class(it)) {
        let name = class.text(&["metadata", "name"]).to_owned();
        if classes.contains(&name) {
            named.push(("ClusterClass".to_owned(), name));
            templates(&class.value["spec"], &mut named);
        }
    }
    documents.retain(|document| {
        let kind = document.text(&["kind"]).to_owned();
        let name = document.text(&["metadata", "name"]).to_owned();
        !named.contains(&(kind, name))
    });
}

fn is_class(document: &Document) -> bool {
    document.text(&["kind"]) == "ClusterClass"
}

/// Kinds and names of the templates of a class.
fn templates(value: &Value, into: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let text = |key: &str| field[key].as_str().unwrap_or_default().to_owned();
                match name.as_str() {
                    "templateRef" => into.push((text("kind"), text("name"))),
                    _ => templates(field, into),
                }
            }
        }
        Value::Array(entries) => entries.iter().for_each(|it| templates(it, into)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
