//! Writes of MachineSets by their deployment: server-side apply under upstream's field manager, so that a label
//! removed from the deployment leaves the sets, whichever program runs the deployment by then.

use std::collections::BTreeMap;

use api::core::v1beta2::{MachineDeployment, MachineSet};
use api::kube;
use api::kube::ResourceExt;
use api::kube::api::{ObjectMeta, Patch, PatchParams};
use operator::client::Api;

use super::revision;
use crate::error::{Doing, Error};
use crate::inplace::{self, MACHINE_DEPLOYMENT, Wanted};
use crate::{MACHINE_SET_FINALIZER, owners};

/// Applies `set`, existing or not.
pub(super) async fn apply(api: &Api<MachineSet>, set: &MachineSet) -> kube::Result<MachineSet> {
    let params = PatchParams::apply(MACHINE_DEPLOYMENT.name).force();
    api.patch(&set.name_any(), &params, &Patch::Apply(set))
        .await
}

/// Applies `after`, a changed `set`, if it differs or the deployment has applied something else before.
pub(super) async fn change(
    api: &Api<MachineSet>,
    deployment: &MachineDeployment,
    set: &MachineSet,
    after: &MachineSet,
) -> Result<(), Error> {
    let desired = desired(deployment, after);
    let wanted = Wanted {
        labels: desired.labels().clone(),
        annotations: desired.annotations().clone(),
    };
    let is_owned = owners::controller_of(&set.metadata).is_some();
    if inplace::adopted(&set.metadata, &MACHINE_DEPLOYMENT).is_some() {
        // The event of the set wakes the deployment again.
        return adopt(api, set).await;
    }
    if is_owned
        && after.spec == set.spec
        && !inplace::is_outdated(&set.metadata, &wanted, &MACHINE_DEPLOYMENT)
    {
        return Ok(());
    }
    let applied = apply(api, &desired).await.map(drop);
    applied.doing(|| format!("changing MachineSet {}", set.name_any()))
}

/// Deployment's part of a set: the content of `set` without metadata of others.
fn desired(deployment: &MachineDeployment, set: &MachineSet) -> MachineSet {
    let template = set.spec.template.metadata.as_ref();
    let labels = template.and_then(|metadata| metadata.labels.clone());
    let annotations: BTreeMap<_, _> = set
        .annotations()
        .iter()
        .filter(|(name, _)| revision::is_given(deployment, name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut desired = MachineSet::new(&set.name_any(), set.spec.clone());
    desired.metadata = ObjectMeta {
        namespace: set.namespace(),
        uid: set.uid(),
        resource_version: set.resource_version(),
        labels,
        annotations: Some(annotations),
        owner_references: Some(vec![owners::controller(deployment)]),
        finalizers: Some(vec![MACHINE_SET_FINALIZER.to_owned()]),
        ..desired.metadata
    };
    desired
}

/// Turns updates of former versions into a part of the deployment's applied fields.
async fn adopt(api: &Api<MachineSet>, set: &MachineSet) -> Result<(), Error> {
    let name = set.name_any();
    let action = || format!("changing the field manager of MachineSet {name}");
    // The cache has only a part of managedFields.
    let Some(live) = api.get_opt(&name).await.doing(action)? else {
        return Ok(());
    };
    let Some(entries) = inplace::adopted(&live.metadata, &MACHINE_DEPLOYMENT) else {
        return Ok(());
    };
    let patch = Patch::Merge(inplace::release_patch(&live.metadata, &entries));
    let patched = api.patch(&name, &PatchParams::default(), &patch).await;
    patched.map(drop).doing(action)
}
