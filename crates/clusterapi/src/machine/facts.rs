//! Observed state, as input for the status of a machine.

use std::sync::Arc;

use api::core::v1beta2::{Cluster, Machine};
use api::k8s_openapi::api::core::v1::Node;
use api::kube::ResourceExt;

use super::update;
use crate::duties::Duties;
use crate::external::{Referenced, contract};
use crate::remote::{ClusterKey, Health};
use crate::{Context, Error};

/// Machine's Node in the workload cluster.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    /// Not looked up: the provider ID is unknown.
    NotLooked,
    /// The workload cluster cannot be reached.
    Unreachable(Health),
    /// No Node has the provider ID.
    Absent,
    /// The [`Node`] with the provider ID.
    Found(Arc<Node>),
    /// Several Nodes have the provider ID.
    Ambiguous(Vec<String>),
}

/// Observed state, as input for the status of a machine.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) cluster: Arc<Cluster>,
    pub(super) bootstrap: Referenced,
    pub(super) infrastructure: Referenced,
    pub(super) node: Seen,
}

/// Gathers the [`Facts`], and adds the [`Machine`] as owner of the referenced objects.
pub(super) async fn gather(
    ctx: &Context,
    machine: &Machine,
    cluster: &Arc<Cluster>,
    duties: &mut Duties<Error>,
) -> Facts {
    let (external, cluster_name) = (&ctx.external, &machine.spec.cluster_name);
    let bootstrap = machine.spec.bootstrap.config_ref.as_ref();
    let bootstrap = external
        .read_and_own(machine, cluster_name, bootstrap, duties)
        .await;
    let infrastructure = Some(&machine.spec.infrastructure_ref);
    let infrastructure = external
        .read_and_own(machine, cluster_name, infrastructure, duties)
        .await;
    let provider_id = match &infrastructure {
        Referenced::There(object, _) => {
            contract::text(object, "/spec/providerID").map(str::to_owned)
        }
        _ => None,
    };
    let provider_id = machine.spec.provider_id.clone().or(provider_id);
    let node = match find(ctx, cluster, provider_id.as_deref()) {
        Seen::Found(node) if update::is_left(machine, &node) => Seen::Absent,
        seen => seen,
    };
    Facts {
        cluster: Arc::clone(cluster),
        bootstrap,
        infrastructure,
        node,
    }
}

/// Node with this provider ID, from the cache of the workload cluster.
pub(super) fn find(ctx: &Context, cluster: &Cluster, provider_id: Option<&str>) -> Seen {
    let Some(provider_id) = provider_id else {
        return Seen::NotLooked;
    };
    let key = ClusterKey::new(cluster.namespace().unwrap_or_default(), cluster.name_any());
    match ctx.remote.nodes_of(&key, provider_id) {
        Err(_) => Seen::Unreachable(ctx.remote.health(&key)),
        Ok(nodes) => match nodes.as_slice() {
            [] => Seen::Absent,
            [node] => Seen::Found(Arc::clone(node)),
            several => Seen::Ambiguous(several.iter().map(|node| node.name_any()).collect()),
        },
    }
}
