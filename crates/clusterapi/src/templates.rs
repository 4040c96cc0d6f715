//! Owners of the templates of a spec.

use std::collections::BTreeMap;

use api::core::v1beta2::{Cluster, ContractReference, MachineSpec};
use api::kube::ResourceExt;
use api::names::CLUSTER_NAME_LABEL;

use crate::duties::Duties;
use crate::{Context, Error, owners};

/// Adds `cluster` as owner of the templates in `spec`, so that `clusterctl move` includes the templates, and they are
/// deleted with the [`Cluster`].
pub(crate) async fn set_owner_of_templates(
    ctx: &Context,
    spec: &MachineSpec,
    cluster: &Cluster,
    duties: &mut Duties<Error>,
) {
    let config = spec.bootstrap.config_ref.iter();
    for template in config.chain([&spec.infrastructure_ref]) {
        duties.note(set_owner_of_template(ctx, template, cluster).await);
    }
}

/// Adds `cluster` as owner of the template of a `reference`. A missing template is reported when it is cloned.
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
