//! Synchronization of a set: its metadata, its machines and the objects that they refer to.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::v1beta2::{Cluster, ContractReference, Machine, MachineSet};
use api::kube::api::DynamicObject;
use api::kube::{Resource, ResourceExt};
use api::names::CLUSTER_NAME_LABEL;
use operator::patch;
use serde_json::json;

use super::{of, scale};
use crate::error::{Doing, Error};
use crate::{Context, owners};

/// Sets the label of the Cluster and, without a deployment, the Cluster as owner of the set and its templates. Returns
/// whether the set was changed.
pub(super) async fn ensure_metadata(
    ctx: &Context,
    set: &MachineSet,
    cluster: &Cluster,
) -> Result<bool, Error> {
    let mut after = set.clone();
    let labels = after.metadata.labels.get_or_insert_default();
    labels.insert(CLUSTER_NAME_LABEL.to_owned(), cluster.name_any());
    if owners::controller_of(&set.metadata).is_none() {
        owners::ensure(&mut after.metadata, owners::owner(cluster));
    }
    let sets = ctx.api::<MachineSet>(&set.namespace().unwrap_or_default());
    if patch::object(&sets, set, &after)
        .await
        .doing(|| of("changing", set))?
        .is_some()
    {
        return Ok(true);
    }
    if owners::controller_of(&set.metadata).is_none() {
        templates(ctx, &set.spec.template.spec, cluster).await?;
    }
    Ok(false)
}

/// Adds `cluster` as owner of the templates that `spec` refers to, so that `clusterctl move` includes them and they are
/// deleted with the Cluster.
pub(crate) async fn templates(
    ctx: &Context,
    spec: &api::core::v1beta2::MachineSpec,
    cluster: &Cluster,
) -> Result<(), Error> {
    for template in spec
        .bootstrap
        .config_ref
        .iter()
        .chain([&spec.infrastructure_ref])
    {
        own_template(ctx, template, cluster).await?;
    }
    Ok(())
}

/// Adds `cluster` as owner of the template that `reference` names. A missing one is reported when it is cloned.
pub(crate) async fn own_template(
    ctx: &Context,
    reference: &ContractReference,
    cluster: &Cluster,
) -> Result<(), Error> {
    let namespace = cluster.namespace().unwrap_or_default();
    let labels = BTreeMap::from([(CLUSTER_NAME_LABEL.to_owned(), cluster.name_any())]);
    if let Some(object) = ctx.external.get(reference, &namespace).await? {
        ctx.external
            .ensure_owner(&object, &owners::owner(cluster), &labels)
            .await?;
    }
    Ok(())
}

/// Updates the fields of machines that can be changed in place (labels, annotations, timeouts, gates, taints), and the
/// labels and annotations of the objects that the machines refer to.
pub(super) async fn machines(
    ctx: &Context,
    set: &MachineSet,
    machines: &[Arc<Machine>],
) -> Result<(), Error> {
    let namespace = set.namespace().unwrap_or_default();
    for machine in machines.iter().filter(|machine| !machine.is_deleting()) {
        let after = conformed(machine, set);
        let api = ctx.api::<Machine>(&namespace);
        patch::object(&api, machine, &after)
            .await
            .doing(|| format!("changing Machine {namespace}/{}", machine.name_any()))?;
        let spec = &machine.spec;
        for reference in spec
            .bootstrap
            .config_ref
            .iter()
            .chain([&spec.infrastructure_ref])
        {
            if let Some(object) = ctx.external.get(reference, &namespace).await?
                && let Some(patch) = metadata_patch(&object, set)
            {
                ctx.external.patch(&object, &patch).await?;
            }
        }
    }
    Ok(())
}

/// `machine` with the fields of `set` that can be changed in place.
fn conformed(machine: &Machine, set: &MachineSet) -> Machine {
    let mut after = machine.clone();
    let template = &set.spec.template.spec;
    after
        .metadata
        .labels
        .get_or_insert_default()
        .extend(scale::labels(set));
    let annotations = scale::annotations(set);
    if !annotations.is_empty() {
        after
            .metadata
            .annotations
            .get_or_insert_default()
            .extend(annotations);
    }
    after
        .spec
        .readiness_gates
        .clone_from(&template.readiness_gates);
    after.spec.min_ready_seconds = template.min_ready_seconds;
    after.spec.taints.clone_from(&template.taints);
    let timeouts = template.deletion.clone().unwrap_or_default();
    let own = after.spec.deletion.get_or_insert_default();
    own.node_drain_timeout_seconds = timeouts.node_drain_timeout_seconds;
    own.node_volume_detach_timeout_seconds = timeouts.node_volume_detach_timeout_seconds;
    // Admission sets the default on machines; an unset field of the template must not remove it.
    if timeouts.node_deletion_timeout_seconds.is_some() {
        own.node_deletion_timeout_seconds = timeouts.node_deletion_timeout_seconds;
    }
    if machine.spec.deletion.is_none() && *own == Default::default() {
        after.spec.deletion = None;
    }
    after
}

fn metadata_patch(object: &DynamicObject, set: &MachineSet) -> Option<serde_json::Value> {
    let missing = |wanted: BTreeMap<String, String>, known: &BTreeMap<String, String>| {
        wanted
            .into_iter()
            .filter(|(name, value)| known.get(name) != Some(value))
            .collect::<BTreeMap<_, _>>()
    };
    let labels = missing(scale::labels(set), object.labels());
    let annotations = missing(scale::annotations(set), object.annotations());
    if object.meta().deletion_timestamp.is_some() || (labels.is_empty() && annotations.is_empty()) {
        return None;
    }
    Some(json!({ "metadata": { "labels": labels, "annotations": annotations } }))
}
