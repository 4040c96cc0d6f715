//! What a machine's state follows from.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::v1beta2::{Cluster, ContractReference, Machine};
use api::k8s_openapi::api::core::v1::Node;
use api::kube::ResourceExt;
use api::kube::api::DynamicObject;
use api::names::CLUSTER_NAME_LABEL;
use operator::controller::chain;

use crate::external::{Contract, ExternalError};
use crate::remote::{ClusterKey, Health};
use crate::{Context, Error, owners};

/// An object that a machine refers to.
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

/// The machine's Node in the workload cluster.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    /// The identity by which to look for it is not known yet.
    NotLooked,
    /// The workload cluster cannot be reached.
    Unreachable(Health),
    /// There is none.
    Absent,
    /// This one.
    Found(Arc<Node>),
    /// More than one Node claims to be this machine.
    Ambiguous(Vec<String>),
}

/// What a machine's state follows from.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) cluster: Arc<Cluster>,
    pub(super) bootstrap: Referenced,
    pub(super) infrastructure: Referenced,
    pub(super) node: Seen,
    /// What went wrong first; everything else was looked at all the same.
    pub(super) problem: Option<Error>,
}

/// Looks at everything, and makes the machine the owner of what it refers to.
pub(super) async fn gather(ctx: &Context, machine: &Machine, cluster: &Arc<Cluster>) -> Facts {
    let mut problem = None;
    let mut note = |result: Result<Referenced, ExternalError>| {
        result.unwrap_or_else(|error| {
            let text = chain(&error);
            problem.get_or_insert(Error::from(error));
            Referenced::Unreadable(text)
        })
    };
    let bootstrap = match &machine.spec.bootstrap.config_ref {
        Some(reference) => note(look(ctx, machine, reference).await),
        None => Referenced::Nothing,
    };
    let infrastructure = note(look(ctx, machine, &machine.spec.infrastructure_ref).await);
    let provider_id = match &infrastructure {
        Referenced::There(object, _) => {
            crate::external::contract::text(object, "/spec/providerID").map(str::to_owned)
        }
        _ => None,
    };
    let provider_id = machine.spec.provider_id.clone().or(provider_id);
    let node = find(ctx, cluster, provider_id.as_deref());
    Facts {
        cluster: Arc::clone(cluster),
        bootstrap,
        infrastructure,
        node,
        problem,
    }
}

/// The Node with this identity, from the cache of the workload cluster.
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

async fn look(
    ctx: &Context,
    machine: &Machine,
    reference: &ContractReference,
) -> Result<Referenced, ExternalError> {
    let namespace = machine.namespace().unwrap_or_default();
    let contract = ctx
        .external
        .kind(&reference.api_group, &reference.kind)
        .await?
        .contract;
    let Some(object) = ctx.external.get(reference, &namespace).await? else {
        return Ok(Referenced::Missing);
    };
    let labels = BTreeMap::from([(
        CLUSTER_NAME_LABEL.to_owned(),
        machine.spec.cluster_name.clone(),
    )]);
    ctx.external
        .ensure_owner(&object, &owners::controller(machine), &labels)
        .await?;
    Ok(Referenced::There(object, contract))
}
