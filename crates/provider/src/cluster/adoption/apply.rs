//! Writes of an adoption: to the cloud, then to the objects, the [`OpenStackCluster`] last.

use api::conditions::{Reason, Type};
use api::infra::v1alpha1::OpenStackServer;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use kube::ResourceExt;
use kube::api::ListParams;
use openstack::Cloud;
use openstack::inventory::Inventory;
use openstack::loadbalancer::LoadBalancer;
use openstack::network::{Network, Port, Router, SecurityGroup, Subnet};
use openstack::volume::Volume;
use operator::client::Api;
use operator::decode::{self, NotDecoded};
use operator::{finalizer, patch};

use super::{Adoption, Found, Objects, What, Write};
use crate::context::kept;
use crate::context::{Context, Error, namespace};
use crate::credentials;
use crate::identity::{CLUSTER_ID, Identity};
use crate::machine::FINALIZER as OF_MACHINE;
use crate::problem::Problem;

/// Takes over a cluster with its `machines`. The cluster may act once the watch of identities has shown that no other
/// object has its identity.
///
/// # Errors
/// The conflicts, as a [`Problem`]; errors of cloud and API server; and [`Error::Behind`] at the end.
pub(crate) async fn adopt(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: &str,
    machines: &[OpenStackMachine],
) -> Result<Identity, Error> {
    let servers = servers(ctx, object, cluster).await?;
    let identity_ref = &object.spec.identity_ref;
    let cloud = credentials::cloud(ctx.access(), &namespace(object), identity_ref).await?;
    let view = super::view(&cloud.inventory).await;
    let view = view.map_err(|error| credentials::listing(&error))?;
    let objects = Objects {
        cluster,
        infra: object,
        machines,
        servers: &servers,
    };
    let adoption = super::find(&objects, &view);
    let Some(id) = adoption.cluster.filter(|_| adoption.conflicts.is_empty()) else {
        return Err(refused(&adoption).into());
    };
    ctx.claims.clusters.free(object, id)?;
    let missing = adoption.found.iter().filter(|found| found.write.is_some());
    let missing: Vec<_> = missing.collect();
    for found in &missing {
        if ctx.shutdown.is_cancelled() {
            return Err(Error::Behind);
        }
        mark(&cloud, found).await?;
    }
    if !missing.is_empty() {
        let text = format!(
            "{} of {} resources of cluster-api-provider-openstack got the mark of the cluster",
            missing.len(),
            adoption.found.len()
        );
        let recorder = &ctx.recorder;
        recorder
            .normal(object, "SuccessfulAdopt", "Adopt", text)
            .await;
    }
    of_machines(ctx, &adoption, id, machines).await?;
    of_servers(ctx, id, &servers).await?;
    Ok(id)
}

/// Conflicts of an [`Adoption`], as a [`Problem`].
pub(crate) fn refused(adoption: &Adoption) -> Problem {
    let text = format!(
        "nothing is taken over, since {} of the resources are not clear: {}",
        adoption.conflicts.len(),
        adoption.conflicts.join("; ")
    );
    Problem::new(Type::Ready, Reason::AdoptionRefused, text)
}

/// [`OpenStackServer`]s with the label of the cluster.
async fn servers(
    ctx: &Context,
    object: &OpenStackCluster,
    cluster: &str,
) -> Result<Vec<OpenStackServer>, Error> {
    let servers = Api::<OpenStackServer>::namespaced(ctx.client.clone(), &namespace(object));
    let label = format!("{}={cluster}", api::names::CLUSTER_NAME_LABEL);
    let found = decode::list(&servers, &ListParams::default().labels(&label)).await;
    let found = found.map_err(Error::kubernetes("listing servers"))?;
    NotDecoded::check::<OpenStackServer>(&found.undecodable, |_| true)?;
    Ok(found.objects)
}

async fn mark(cloud: &Cloud, found: &Found) -> Result<(), Problem> {
    let inventory = &cloud.inventory;
    let Err(error) = send(inventory, found).await else {
        return Ok(());
    };
    if credentials::is_authentication(&error) {
        return Err(credentials::listing(&error));
    }
    let doing = format!("mark {found}");
    Err(Problem::cloud(
        Type::Ready,
        Reason::OpenStackError,
        &doing,
        &error,
    ))
}

async fn send(inventory: &Inventory, found: &Found) -> openstack::Result<()> {
    let (id, text) = match &found.write {
        None => return Ok(()),
        Some(Write::Tags(tags)) => return inventory.set_server_tags(&found.id, tags).await,
        Some(Write::Description(text)) => (found.id.as_str(), text.as_str()),
    };
    match found.what {
        What::Network => inventory.set_description::<Network>(id, text).await,
        What::Subnet => inventory.set_description::<Subnet>(id, text).await,
        What::Router => inventory.set_description::<Router>(id, text).await,
        What::SecurityGroup => inventory.set_description::<SecurityGroup>(id, text).await,
        What::LoadBalancer => inventory.set_description::<LoadBalancer>(id, text).await,
        What::Port => inventory.set_description::<Port>(id, text).await,
        What::Volume => inventory.set_description::<Volume>(id, text).await,
        What::FloatingIp => match inventory.known().floating_ips.get(id) {
            Some(known) => inventory.describe_floating_ip(known, text).await,
            None => Ok(()),
        },
        What::Server => Ok(()),
    }
}

/// Stores the identities of the machines with resources of the Go provider; other machines get new ones later.
async fn of_machines(
    ctx: &Context,
    adoption: &Adoption,
    cluster: Identity,
    machines: &[OpenStackMachine],
) -> Result<(), Error> {
    for machine in machines {
        let id = adoption.machines.get(&machine.name_any());
        let Some(id) = id.filter(|_| finalizer::has(machine, OF_MACHINE)) else {
            continue;
        };
        ctx.claims.machines.free(machine, *id)?;
        let with = |wanted: &mut OpenStackMachine| {
            let annotations = wanted.annotations_mut();
            annotations.insert(CLUSTER_ID.to_owned(), cluster.to_string());
        };
        kept::store(ctx, machine, *id, with).await?;
    }
    Ok(())
}

/// Records the adoption on the [`OpenStackServer`]s of machines and bastion: these objects go with their owners.
async fn of_servers(
    ctx: &Context,
    cluster: Identity,
    servers: &[OpenStackServer],
) -> Result<(), Error> {
    for server in servers {
        if super::owner(server).is_none() {
            continue;
        }
        let mut wanted = server.clone();
        let annotations = wanted.annotations_mut();
        annotations.insert(CLUSTER_ID.to_owned(), cluster.to_string());
        let stored = patch::object(&kept::api(ctx, server), server, &wanted).await;
        stored.map_err(Error::kubernetes("recording the adoption"))?;
    }
    Ok(())
}
