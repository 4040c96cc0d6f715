//! The floating IP that a bastion has from a pool.

use api::infra::v1beta2::{FloatingIpPoolRef, OpenStackCluster};

use super::of_bastion;
use crate::cluster::desired::bastion_spec;
use crate::context::{Context, Error, of_cluster};
use crate::machine::pooled::{Claimant, Given};
use crate::names::Names;

/// The address that the pool in the spec has given, if it names one; an inner error is what to wait for.
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

/// Gives an address of a pool back that the spec names no more.
///
/// # Errors
/// Errors of the API server.
pub(super) async fn tidy(ctx: &Context, cluster: &OpenStackCluster) -> Result<(), Error> {
    match reference(cluster) {
        Some(_) => Ok(()),
        None => give_back(ctx, cluster).await,
    }
}

/// Gives the address of a pool back, when no server uses it any more.
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

/// The pool in the spec of the bastion that is wanted.
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
