//! Metadata of a set, and owner of its templates.

use api::core::v1beta2::{Cluster, MachineSet};
use api::kube::ResourceExt;
use api::names::CLUSTER_NAME_LABEL;
use operator::patch;

use super::{Duties, of};
use crate::error::{Doing, Error};
use crate::templates::set_owner_of_templates;
use crate::{Context, owners};

/// Sets the label of the [`Cluster`] and, without a deployment, the Cluster as owner of the set. Returns true if the set
/// was changed.
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
