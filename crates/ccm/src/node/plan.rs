//! Desired state of a Node, depending on its server (pure).

use std::collections::BTreeMap;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::{Node, NodeAddress, Taint};
use api::k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use openstack::compute::Server;

use super::addresses;
use crate::options::Controllers;

#[cfg(test)]
mod tests;

pub(crate) const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
pub(crate) const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
const PROVIDED_NODE_IP: &str = "alpha.kubernetes.io/provided-node-ip";

/// Labels with their older names.
const INSTANCE_TYPE: [&str; 2] = [
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
];
const ZONE: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
];
const REGION: [&str; 2] = [
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
];

/// Server of a Node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Instance {
    pub(crate) provider_id: String,
    /// Status in Nova.
    pub(crate) status: String,
    pub(crate) addresses: Vec<NodeAddress>,
    /// Reason why the addresses are too few for a Node.
    pub(crate) address_problem: Option<String>,
    /// Label values; empty ones are not set.
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) region: String,
}

/// True if a [`Node`] waits for initialisation by its cloud controller manager.
pub(crate) fn is_uninitialized(node: &Node) -> bool {
    has_taint(node, UNINITIALIZED)
}

/// True if a [`Node`] was registered in the last minute.
pub(crate) fn is_new(node: &Node, now: Timestamp) -> bool {
    let registered = node.metadata.creation_timestamp.as_ref();
    registered.is_some_and(|at| now.duration_since(at.0).as_secs() < 60)
}

/// `spec.providerID`; `None` if empty.
pub(crate) fn provider_id(node: &Node) -> Option<&str> {
    let id = node.spec.as_ref()?.provider_id.as_deref();
    id.filter(|id| !id.is_empty())
}

pub(crate) fn has_provider_id(node: &Node) -> bool {
    provider_id(node).is_some()
}

/// Message for a [`Node`] without a server in the project.
pub(crate) fn unfound(node: &Node) -> String {
    let (what, advice) = match provider_id(node) {
        Some(id) => (format!("with the providerID {id}"), String::new()),
        None => (
            format!("of the name {}, nor with that host name", node.name_any()),
            format!(", or give the server the name of the node, or {START_WITH_ID}"),
        ),
    };
    let effect = match (is_uninitialized(node), has_provider_id(node)) {
        (true, _) => "so that the node is not initialised",
        (false, true) => "and the Node is kept",
        (false, false) => {
            "and the Node is kept, since no providerID proves that its server is gone: delete it if that is so"
        }
    };
    format!(
        "the project in cloud.conf has no server {what}, {effect}; if there is one, use credentials of its project{advice}"
    )
}

/// Advice: flag of a kubelet to name its server.
const START_WITH_ID: &str = "start the kubelet with --provider-id=openstack:///SERVER-ID";

/// Message for a Node with a name that matches several [`Server`]s.
pub(crate) fn several(name: &str, servers: &[Arc<Server>]) -> String {
    let known = servers.iter().take(MOST_NAMED);
    let known: Vec<_> = known
        .map(|server| format!("{} ({})", server.name, server.id))
        .collect();
    let more = match servers.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{} servers of this project are called {name}: {}{more}: rename or delete all but one, or {START_WITH_ID}",
        servers.len(),
        known.join(", "),
    )
}

/// Maximum number of servers in an event.
const MOST_NAMED: usize = 3;

/// Message for a Node with a name that matches the [`Server`] of another Node.
pub(crate) fn of_another(name: &str, server: &Server, other: &str) -> String {
    format!(
        "the server {} ({}) would be that of node {name} by its name, but it is that of Node {other}, which has its id in \
         spec.providerID: delete Node {other} if the kubelet has another name now, or {START_WITH_ID}",
        server.name, server.id
    )
}

/// True if the kubelet reports that the [`Node`] is ready.
pub(crate) fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|list| {
        list.iter()
            .any(|c| c.type_ == "Ready" && c.status == "True")
    })
}

/// State for the enabled [`Controllers`], and the problem of the server's addresses, if any. A problem does not prevent
/// the taint.
pub(crate) fn wanted(
    node: &Node,
    instance: &Instance,
    controllers: Controllers,
) -> (Node, Option<String>) {
    let (wanted, problem) = match controllers.node.then(|| initialised(node, instance)) {
        None => (node.clone(), None),
        Some(Ok(wanted)) => (wanted, None),
        Some(Err(problem)) => (node.clone(), Some(problem)),
    };
    let wanted = match controllers.node_lifecycle {
        true => tainted(wanted, Some(instance)),
        false => wanted,
    };
    (wanted, problem)
}

/// State for `cloud-node-controller`: initialised, with current addresses and instance type.
///
/// # Errors
/// The server has no address for the [`Node`], or lacks the address of the kubelet.
pub(crate) fn initialised(node: &Node, instance: &Instance) -> Result<Node, String> {
    let mut after = node.clone();
    let first = is_uninitialized(node);
    if let Some(problem) = &instance.address_problem {
        let effect = match first {
            true => "until then the node is not initialised",
            false => "until then the Node keeps the addresses that it has",
        };
        return Err(format!("{problem}; {effect}"));
    }
    let status = node.status.as_ref();
    let provided = node.annotations().get(PROVIDED_NODE_IP).map(String::as_str);
    let known = status.and_then(|status| status.addresses.as_deref());
    let (known, cloud) = (known.unwrap_or_default(), instance.addresses.clone());
    let wanted = addresses::with_kubelet(cloud, known, provided)?;
    if wanted != known {
        after.status.get_or_insert_default().addresses = Some(wanted);
    }
    let spec = after.spec.get_or_insert_default();
    if !has_provider_id(node) {
        spec.provider_id = Some(instance.provider_id.clone());
    }
    if let Some(taints) = &mut spec.taints {
        taints.retain(|taint| taint.key != UNINITIALIZED);
    }
    let labels = &mut after.metadata.labels;
    // The flavor of a server can change. Zone and region cannot, and users may have corrected the labels.
    set(labels, INSTANCE_TYPE, &instance.instance_type, true);
    set(labels, ZONE, &instance.zone, first);
    set(labels, REGION, &instance.region, first);
    Ok(after)
}

/// Sets a label under both names; replaces an existing one only with `replace`.
fn set(
    labels: &mut Option<BTreeMap<String, String>>,
    names: [&str; 2],
    value: &str,
    replace: bool,
) {
    if value.is_empty() {
        return;
    }
    // The API server stores no empty map.
    let labels = labels.get_or_insert_default();
    let known = labels
        .get(names[1])
        .or_else(|| labels.get(names[0]))
        .cloned();
    let value = known
        .filter(|_| !replace)
        .unwrap_or_else(|| value.to_owned());
    for name in names {
        labels.insert(name.to_owned(), value.clone());
    }
}

/// State for `cloud-node-lifecycle-controller`: tainted while the server is shut down. [`Node`]s that are not ready for
/// other reasons stay unchanged.
pub(crate) fn tainted(node: Node, instance: Option<&Instance>) -> Node {
    let shut_down = instance.is_some_and(|instance| instance.status == "SHUTOFF");
    let has = has_taint(&node, SHUTDOWN);
    let wanted = match is_ready(&node) {
        true => false,
        false => has || shut_down,
    };
    if has == wanted {
        return node;
    }
    let mut after = node;
    let taints = after
        .spec
        .get_or_insert_default()
        .taints
        .get_or_insert_default();
    taints.retain(|taint| taint.key != SHUTDOWN);
    if wanted {
        taints.push(Taint {
            key: SHUTDOWN.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
    }
    after
}

fn has_taint(node: &Node, key: &str) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.is_some_and(|taints| taints.iter().any(|taint| taint.key == key))
}

/// Turns a text into a valid label value: invalid characters become `-`, and the length is limited to 63.
pub(crate) fn sanitised(text: &str) -> String {
    let mut label = String::new();
    for c in text.chars() {
        let allowed = c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        match allowed {
            true => label.push(c),
            false if label.ends_with('\u{1}') => {}
            false => label.push('\u{1}'),
        }
    }
    let label = label.replace('\u{1}', "-");
    let edge = |c: char| matches!(c, '-' | '_' | '.');
    let cut: String = label.trim_matches(edge).chars().take(63).collect();
    cut.trim_end_matches(edge).to_owned()
}

/// True if a text is a valid label value.
pub(crate) fn is_label(text: &str) -> bool {
    !text.is_empty() && sanitised(text) == text
}
