//! What a Cluster's state follows from.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::v1beta2::{Cluster, ContractReference, Machine, MachineDeployment, MachineSet};
use api::kube::ResourceExt;
use api::kube::api::DynamicObject;
use api::names::CLUSTER_NAME_LABEL;
use operator::controller::chain;

use super::key;
use crate::external::{Contract, ExternalError};
use crate::remote::Health;
use crate::{Context, Error, owners};

/// An object that a Cluster refers to.
#[derive(Clone, Debug)]
pub(super) enum Referenced {
    /// Nothing is referred to.
    Nothing,
    /// The object does not exist.
    Missing,
    /// It exists.
    There(Arc<DynamicObject>, Contract),
    /// Nobody can tell.
    Unreadable(String),
}

/// What a Cluster's state follows from.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) infrastructure: Referenced,
    pub(super) control_plane: Referenced,
    pub(super) machines: Vec<Arc<Machine>>,
    pub(super) sets: Vec<Arc<MachineSet>>,
    pub(super) deployments: Vec<Arc<MachineDeployment>>,
    pub(super) health: Health,
    /// What went wrong first; everything else was looked at all the same.
    pub(super) problem: Option<Error>,
}

/// Looks at everything, and makes the Cluster the owner of what it refers to.
pub(super) async fn gather(ctx: &Context, cluster: &Cluster) -> Facts {
    let mut problem = None;
    let spec = &cluster.spec;
    let infrastructure = look(ctx, cluster, spec.infrastructure_ref.as_ref(), &mut problem).await;
    let control_plane = look(ctx, cluster, spec.control_plane_ref.as_ref(), &mut problem).await;
    let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
    Facts {
        infrastructure,
        control_plane,
        machines: ctx.machines.in_cluster(&namespace, &name, |_| true),
        sets: ctx.machinesets.in_cluster(&namespace, &name, |_| true),
        deployments: ctx
            .machinedeployments
            .in_cluster(&namespace, &name, |_| true),
        health: ctx.remote.health(&key(cluster)),
        problem,
    }
}

async fn look(
    ctx: &Context,
    cluster: &Cluster,
    reference: Option<&ContractReference>,
    problem: &mut Option<Error>,
) -> Referenced {
    let Some(reference) = reference else {
        return Referenced::Nothing;
    };
    try_look(ctx, cluster, reference)
        .await
        .unwrap_or_else(|error| {
            let text = chain(&error);
            problem.get_or_insert(error.into());
            Referenced::Unreadable(text)
        })
}

async fn try_look(
    ctx: &Context,
    cluster: &Cluster,
    reference: &ContractReference,
) -> Result<Referenced, ExternalError> {
    let contract = ctx
        .external
        .kind(&reference.api_group, &reference.kind)
        .await?
        .contract;
    let namespace = cluster.namespace().unwrap_or_default();
    let Some(object) = ctx.external.get(reference, &namespace).await? else {
        return Ok(Referenced::Missing);
    };
    let labels = BTreeMap::from([(CLUSTER_NAME_LABEL.to_owned(), cluster.name_any())]);
    ctx.external
        .ensure_owner(&object, &owners::controller(cluster), &labels)
        .await?;
    Ok(Referenced::There(object, contract))
}
