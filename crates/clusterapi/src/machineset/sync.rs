//! The metadata of a set, and the owner of its templates.

use std::collections::BTreeMap;

use api::core::v1beta2::{Cluster, ContractReference, MachineSet, MachineSpec};
use api::kube::ResourceExt;
use api::names::CLUSTER_NAME_LABEL;
use operator::patch;

use super::{Duties, of};
use crate::error::{Doing, Error};
use crate::{Context, owners};

/// Sets the label of the Cluster and, without a deployment, the Cluster as owner of the set. Returns whether the set was
/// changed.
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
    let stored = patch::object(&sets, set, &after).await;
    Ok(stored.doing(|| of("changing", set))?.is_some())
}

/// Adds `cluster` as owner of the templates of a set without a deployment.
pub(super) async fn templates_without_deployment(
    ctx: &Context,
    set: &MachineSet,
    cluster: &Cluster,
    duties: &mut Duties,
) {
    if owners::controller_of(&set.metadata).is_none() {
        set_owner_of_templates(ctx, &set.spec.template.spec, cluster, duties).await;
    }
}

/// Adds `cluster` as owner of the templates that `spec` refers to, so that `clusterctl move` includes them and they are
/// deleted with the Cluster.
pub(crate) async fn set_owner_of_templates(
    ctx: &Context,
    spec: &MachineSpec,
    cluster: &Cluster,
    duties: &mut Duties,
) {
    let config = spec.bootstrap.config_ref.iter();
    for template in config.chain([&spec.infrastructure_ref]) {
        duties.note(set_owner_of_template(ctx, template, cluster).await);
    }
}

/// Adds `cluster` as owner of the template that `reference` names. A missing one is reported when it is cloned.
pub(crate) async fn set_owner_of_template(
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
