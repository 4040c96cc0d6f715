//! Drain of a Node before the deletion of its machine.
//!
//! Pods are evicted in groups, in the order of MachineDrainRules: a group begins when no Pod of a lower order is left
//! on the Node.

use std::collections::BTreeMap;

use api::k8s_openapi::api::core::v1::{Node, Pod};
use api::k8s_openapi::api::storage::v1::VolumeAttachment;
use api::k8s_openapi::jiff::Timestamp;
use api::kube;
use api::kube::api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams};
use api::kube::{Client, ResourceExt};
use operator::client::Api;
use serde_json::json;

use crate::Error;
use crate::error::{Doing, is_absent};
use crate::owners;
use crate::summary::some_of;

pub(super) mod rules;

use super::deletion::silence::Silence;
use rules::{Rules, Treatment};

/// Label of a Pod: `skip` excludes it from the drain, `wait-completed` waits until it has completed.
const DRAIN_LABEL: &str = "cluster.x-k8s.io/drain";

/// Treatment of a Pod by the drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Not evicted.
    Leave,
    /// Evict, in this order.
    Evict(i32),
    /// In deletion; with the order.
    Wait(i32),
    /// Wait for completion, requested by label or rule; the order is 0.
    WaitCompleted,
}

impl Fate {
    /// Order of a Pod that has not left yet.
    fn order(self) -> Option<i32> {
        match self {
            Fate::Leave => None,
            Fate::Evict(order) | Fate::Wait(order) => Some(order),
            Fate::WaitCompleted => Some(0),
        }
    }
}

/// Message about the remaining objects on the Node, or `None`.
pub(super) type Left = Option<String>;

/// Progress of a drain.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Remaining Pods.
    pub(super) left: Left,
    /// [`Silence`] of the kubelet, because of which Pods may stay for ever.
    pub(super) silence: Option<Silence>,
}

/// Key of the taint of a Node with a silent kubelet.
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Cordons the Node `name` and evicts its Pods.
///
/// # Errors
/// When a request to the workload cluster fails, except for evictions that a disruption budget rejects.
pub(super) async fn drain(
    client: &Client,
    name: &str,
    rules: &Rules,
    now: Timestamp,
) -> Result<Progress, Error> {
    let nodes = Api::<Node>::all(client.clone());
    let node = nodes
        .get_opt(name)
        .await
        .doing_remotely(|| format!("reading Node {name}"))?;
    let Some(node) = node else {
        return Ok(Progress::default());
    };
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) != Some(true) {
        let cordon = json!({ "spec": { "unschedulable": true } });
        nodes
            .patch(name, &PatchParams::default(), &Patch::Merge(&cordon))
            .await
            .doing_remotely(|| format!("cordoning Node {name}"))?;
    }
    let unreachable = is_unreachable(&node);
    let on_it = ListParams::default().fields(&format!("spec.nodeName={name}"));
    let pods = Api::<Pod>::all(client.clone()).list(&on_it).await;
    let pods = pods.doing_remotely(|| format!("listing the Pods of Node {name}"))?;
    let namespaces = rules.namespaces(client).await?;
    let fates: Vec<_> = pods
        .items
        .iter()
        .filter(|pod| is_on(pod, name))
        .map(|pod| {
            let treatment = rules.treatment(pod, &namespaces);
            (pod, fate(pod, treatment, unreachable, now))
        })
        .collect();
    let group = fates.iter().filter_map(|(_, fate)| fate.order()).min();
    let mut left: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (pod, fate) in fates {
        let why = match fate {
            Fate::Leave => continue,
            Fate::Wait(_) => {
                "deletionTimestamp set, but still not removed from the Node".to_owned()
            }
            Fate::WaitCompleted => "waiting for completion".to_owned(),
            Fate::Evict(order) if Some(order) != group => {
                "evicted after the Pods of a lower order are gone".to_owned()
            }
            Fate::Evict(_) => match evict(client, pod, unreachable).await? {
                Some(refusal) => refusal,
                None => "eviction requested".to_owned(),
            },
        };
        let pod = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        left.entry(why).or_default().push(pod);
    }
    Ok(Progress {
        left: report(&left),
        silence: Silence::of_kubelet(&node),
    })
}

/// Volumes attached to the Node `name`; `None` without volumes.
///
/// # Errors
/// When a request to the workload cluster fails.
pub(super) async fn volumes(client: &Client, name: &str) -> Result<Left, Error> {
    let node = Api::<Node>::all(client.clone()).get_opt(name).await;
    let node = node.doing_remotely(|| format!("reading Node {name}"))?;
    let Some(node) = node.filter(|node| !is_unreachable(node)) else {
        return Ok(None);
    };
    let attached = node
        .status
        .and_then(|status| status.volumes_attached)
        .unwrap_or_default();
    let mut names: Vec<_> = attached.into_iter().map(|volume| volume.name).collect();
    match Api::<VolumeAttachment>::all(client.clone())
        .list(&ListParams::default())
        .await
    {
        Ok(list) => {
            let here = list
                .items
                .into_iter()
                .filter(|attachment| attachment.spec.node_name == name);
            names.extend(here.map(|attachment| attachment.name_any()));
        }
        // Not every cluster serves the kind.
        Err(error) if is_absent(&error) => {}
        Err(source) => {
            return Err(source).doing_remotely(|| "listing VolumeAttachments".to_owned());
        }
    }
    names.sort_unstable();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    Ok((!names.is_empty()).then(|| format!("* volumes {}: still attached", some_of(&names))))
}

/// Deletes the Node; succeeds if the Node does not exist.
///
/// # Errors
/// When a request to the workload cluster fails.
pub(super) async fn delete_node(client: &Client, name: &str) -> Result<(), Error> {
    match Api::<Node>::all(client.clone())
        .delete(name, &DeleteParams::default())
        .await
    {
        Err(error) if is_absent(&error) => Ok(()),
        other => other
            .map(|_| ())
            .doing_remotely(|| format!("deleting Node {name}")),
    }
}

/// [`Treatment`] of `pod`. Its label takes precedence over the `treatment` of the rules.
pub(super) fn fate(pod: &Pod, treatment: Treatment, unreachable: bool, now: Timestamp) -> Fate {
    let mirror = pod
        .annotations()
        .contains_key("kubernetes.io/config.mirror");
    let daemon = owners::controller_of(&pod.metadata).is_some_and(|o| o.kind == "DaemonSet");
    if mirror || daemon {
        return Fate::Leave;
    }
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default();
    let completed = phase == "Succeeded" || phase == "Failed";
    let label = pod.labels().get(DRAIN_LABEL);
    let treatment = match label.map(|value| value.to_lowercase()).as_deref() {
        Some("skip") => Treatment::Skip,
        Some("wait-completed") => Treatment::WaitCompleted,
        _ => treatment,
    };
    let order = match treatment {
        Treatment::Skip => return Fate::Leave,
        Treatment::WaitCompleted if completed => return Fate::Leave,
        Treatment::WaitCompleted => return Fate::WaitCompleted,
        Treatment::Drain(order) => order,
    };
    match &pod.metadata.deletion_timestamp {
        None => Fate::Evict(order),
        // No kubelet confirms the end of the Pod.
        Some(since) if unreachable && since.0 < now => Fate::Leave,
        Some(_) => Fate::Wait(order),
    }
}

/// True if the [`Node`] has the taint `unreachable`: its kubelet does not report.
pub(super) fn is_unreachable(node: &Node) -> bool {
    Silence::of_kubelet(node).is_some()
}

fn is_on(pod: &Pod, node: &str) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node)
}

async fn evict(client: &Client, pod: &Pod, unreachable: bool) -> Result<Left, Error> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let grace = unreachable.then_some(1);
    let params = EvictParams {
        delete_options: Some(DeleteParams {
            grace_period_seconds: grace,
            ..Default::default()
        }),
        ..EvictParams::default()
    };
    match Api::<Pod>::namespaced(client.clone(), &namespace)
        .evict(&name, &params)
        .await
    {
        Ok(_) => Ok(None),
        Err(error) if is_absent(&error) => Ok(None),
        // Rejected by a disruption budget.
        Err(kube::Error::Api(status)) if status.code == 429 => {
            Ok(Some(format!("cannot be evicted: {}", status.message)))
        }
        Err(source) => Err(source).doing_remotely(|| format!("evicting Pod {namespace}/{name}")),
    }
}

fn report(left: &BTreeMap<String, Vec<String>>) -> Left {
    let lines: Vec<_> = left
        .iter()
        .map(|(why, pods)| {
            let names: Vec<_> = pods.iter().map(String::as_str).collect();
            format!("* Pods {}: {why}", some_of(&names))
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests;
