//! Observed state, as input for the status of a Cluster.

use std::sync::Arc;

use api::core::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use api::kube::ResourceExt;

use super::key;
use crate::duties::Duties;
use crate::external::Referenced;
use crate::remote::Health;
use crate::{Context, Error};

/// Observed state, as input for the status of a Cluster.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) infrastructure: Referenced,
    pub(super) control_plane: Referenced,
    pub(super) machines: Vec<Arc<Machine>>,
    pub(super) sets: Vec<Arc<MachineSet>>,
    pub(super) deployments: Vec<Arc<MachineDeployment>>,
    pub(super) health: Health,
}

/// Gathers the [`Facts`], and adds the [`Cluster`] as owner of the referenced objects.
pub(super) async fn gather(ctx: &Context, cluster: &Cluster, duties: &mut Duties<Error>) -> Facts {
    let spec = &cluster.spec;
    let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
    let (external, duties) = (&ctx.external, duties);
    let infrastructure = spec.infrastructure_ref.as_ref();
    let infrastructure = external
        .read_and_own(cluster, &name, infrastructure, duties)
        .await;
    let control_plane = spec.control_plane_ref.as_ref();
    let control_plane = external
        .read_and_own(cluster, &name, control_plane, duties)
        .await;
    Facts {
        infrastructure,
        control_plane,
        machines: ctx.machines.in_cluster(&namespace, &name, |_| true),
        sets: ctx.machinesets.in_cluster(&namespace, &name, |_| true),
        deployments: ctx
            .machinedeployments
            .in_cluster(&namespace, &name, |_| true),
        health: ctx.remote.health(&key(cluster)),
    }
}
