//! OpenStackServers created by the Go provider for adopted machines and bastions. The server in the cloud belongs to
//! the machine; the object is deleted by garbage collection after its owner, and has nothing to clean up.

use api::infra::v1alpha1::OpenStackServer;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use kube::Resource;
use kube::core::{NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::controller::Action;
use operator::client::Api;
use operator::finalizer;

use crate::cluster::adoption::owner;
use crate::context::kept::api;
use crate::context::{Context, Error, FALLBACK, is_deleting, namespace};
use crate::identity::{CLUSTER_ID, Identity};
use crate::names::SERVER_FINALIZER;
use crate::{cluster, machine};

/// True for such an object in deletion.
pub(super) fn goes(object: &OpenStackServer) -> bool {
    is_deleting(object)
        && owner(object).is_some()
        && Identity::for_object(object, CLUSTER_ID).is_some()
        && finalizer::has(object, SERVER_FINALIZER)
}

/// Removes the finalizer once the owner is gone, or has no resources in the cloud any more.
pub(super) async fn release(ctx: &Context, object: &OpenStackServer) -> Result<Action, Error> {
    let Some(owner) = owner(object) else {
        return Ok(Action::await_change());
    };
    let space = namespace(object);
    let held = match owner.kind.as_str() {
        "OpenStackMachine" => {
            holds::<OpenStackMachine>(ctx, &space, owner, machine::FINALIZER).await?
        }
        _ => holds::<OpenStackCluster>(ctx, &space, owner, cluster::FINALIZER).await?,
    };
    if held {
        return Ok(Action::requeue(FALLBACK));
    }
    let removed = finalizer::remove(&api(ctx, object), object, SERVER_FINALIZER).await;
    removed.map_err(Error::kubernetes("removing the finalizer"))?;
    Ok(Action::await_change())
}

/// True if the owner exists and has its finalizer.
async fn holds<K>(
    ctx: &Context,
    namespace: &str,
    owner: &api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference,
    finalizer: &str,
) -> Result<bool, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone,
{
    let api = Api::<PartialObjectMeta<K>>::namespaced(ctx.client.clone(), namespace);
    let found = api.get_opt(&owner.name).await;
    let found = found.map_err(Error::kubernetes("reading the owner of a server"))?;
    let found = found.filter(|found| found.metadata.uid.as_ref() == Some(&owner.uid));
    let finalizers = found.and_then(|found| found.metadata.finalizers);
    Ok(finalizers.is_some_and(|all| all.iter().any(|known| known == finalizer)))
}
