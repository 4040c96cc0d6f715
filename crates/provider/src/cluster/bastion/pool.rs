//! Floating IP of a bastion from a pool.

use api::infra::v1beta2::{FloatingIpPoolRef, OpenStackCluster};

use super::of_bastion;
use crate::cluster::desired::bastion_spec;
use crate::context::{Context, Error, of_cluster};
use crate::machine::pooled::{Claimant, Given};
use crate::names::Names;

/// Address given by the pool in the spec, if any; an inner error is the reason to wait.
///
/// # Errors
/// Errors of the claim.
pub(super) async fn claimed(
    ctx: &Context,
    cluster: &OpenStackCluster,
) -> Result<Result<Option<Given>, String>, Error> {
    let (Some(reference), Some(name)) = (reference(cluster), of_cluster(cluster)) else {
        return Ok(Ok(None));
    };
    let server = Names::new("", name).bastion();
    let claimant = claimant(cluster, name, &server);
    match claimant.claimed(ctx, reference).await {
        Ok(claimed) => Ok(claimed.map(Some)),
        Err(Error::Problem(problem)) => Err(of_bastion(problem).into()),
        Err(error) => Err(error),
    }
}

/// Gives an address back to a pool that is no longer in the spec.
///
/// # Errors
/// Errors of the API server.
pub(super) async fn tidy(ctx: &Context, cluster: &OpenStackCluster) -> Result<(), Error> {
    match reference(cluster) {
        Some(_) => Ok(()),
        None => give_back(ctx, cluster).await,
    }
}

/// Gives the address back to its pool, when no server uses the address any more.
///
/// # Errors
/// Errors of the API server.
pub(in crate::cluster) async fn give_back(
    ctx: &Context,
    cluster: &OpenStackCluster,
) -> Result<(), Error> {
    let Some(name) = of_cluster(cluster) else {
        return Ok(());
    };
    let server = Names::new("", name).bastion();
    claimant(cluster, name, &server).give_back(ctx).await
}

/// [`FloatingIpPoolRef`] in the spec of the wanted bastion.
fn reference(cluster: &OpenStackCluster) -> Option<&FloatingIpPoolRef> {
    let (_, spec) = bastion_spec(&cluster.spec)?;
    spec.floating_ip_pool_ref.as_ref()
}

fn claimant<'a>(
    object: &'a OpenStackCluster,
    name: &'a str,
    server: &'a str,
) -> Claimant<'a, OpenStackCluster> {
    Claimant {
        object,
        server,
        cluster: Some(name),
    }
}
