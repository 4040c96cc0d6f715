//! The bulk lists of all kinds.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use tokio::time::Instant;

use super::resource::{Quota, QuotaOfVolumes, Resource};
use super::{Inner, Stored};
use crate::compute::{AvailabilityZone, Flavor, Server, ServerGroup, ServerQuery};
use crate::error::{Error, ErrorKind, Result};
use crate::image::{Image, ImageQuery};
use crate::loadbalancer::{LbFlavor, LbZone, Listener, LoadBalancer, Monitor, Pool, Provider};
use crate::network::{
    Extension, FloatingIp, Network, Port, Router, SecurityGroup, Subnet, SubnetPool, Trunk,
};
use crate::service::Service;
use crate::session::Session;
use crate::volume::{
    Backup, GroupSnapshot, GroupType, Snapshot, Volume, VolumeGroup, VolumeQuota, VolumeType,
    VolumeZone,
};

/// Kind with a bulk list.
#[doc(hidden)]
pub trait Fetch: Resource {
    #[doc(hidden)]
    fn fetch(
        inner: &Inner,
        since: Option<Instant>,
    ) -> impl Future<Output = Result<Vec<Arc<Self>>>> + Send;
    /// Returns the time of the oldest list behind the objects.
    #[doc(hidden)]
    fn as_of(_: &Inner) -> Option<Instant> {
        None
    }
}

macro_rules! fetch {
    ($($type:ty: |$inner:ident| $body:expr;)*) => {
        $(impl Fetch for $type {
            async fn fetch($inner: &Inner, _: Option<Instant>) -> Result<Vec<Arc<Self>>> {
                let items: Result<Vec<Self>> = $body;
                Ok(items?.into_iter().map(Arc::new).collect())
            }
        })*
    };
}

/// Lists in Neutron, restricted to one project: for an operator, they would contain all projects.
macro_rules! of_project {
    ($inner:ident, $list:ident) => {{
        let project = $inner.polling.project_id().await?;
        $inner
            .polling
            .network()
            .$list(&[("project_id", &project)])
            .await
    }};
}

/// Lists in Octavia, restricted to one project.
macro_rules! balanced {
    ($inner:ident, $list:ident) => {{
        let project = $inner.polling.project_id().await?;
        $inner.polling.load_balancer().$list(&project).await
    }};
}

fetch! {
    Server: |inner| alive_servers(inner).await;
    ServerGroup: |inner| inner.polling.compute().server_groups().await;
    Flavor: |inner| inner.polling.compute().flavors().await;
    AvailabilityZone: |inner| inner.polling.compute().availability_zones().await;
    Port: |inner| of_project!(inner, ports);
    Router: |inner| of_project!(inner, routers);
    SecurityGroup: |inner| of_project!(inner, security_groups);
    FloatingIp: |inner| of_project!(inner, floating_ips);
    Trunk: |inner| match of_project!(inner, trunks) {
        // A cloud without the extension has no trunks.
        Err(error) if error.is_absent() => Ok(Vec::new()),
        result => result,
    };
    // Includes shared and external networks of other projects.
    Network: |inner| inner.polling.network().networks(&[]).await;
    Subnet: |inner| inner.polling.network().subnets(&[]).await;
    SubnetPool: |inner| match inner.polling.network().subnet_pools(&[]).await {
        // A cloud without the extension has no pools.
        Err(error) if error.is_absent() => Ok(Vec::new()),
        result => result,
    };
    Extension: |inner| inner.polling.network().extensions().await;
    LoadBalancer: |inner| balanced!(inner, load_balancers);
    Listener: |inner| balanced!(inner, listeners);
    Pool: |inner| balanced!(inner, pools);
    Monitor: |inner| balanced!(inner, monitors);
    Provider: |inner| inner.polling.load_balancer().providers().await;
    LbFlavor: |inner| inner.polling.load_balancer().flavors().await;
    LbZone: |inner| match inner.polling.load_balancer().availability_zones().await {
        // An Octavia that is older than zones.
        Err(error) if error.is_absent() => Ok(Vec::new()),
        result => result,
    };
    Volume: |inner| inner.polling.volume().list().await;
    Snapshot: |inner| inner.polling.volume().snapshots().await;
    Backup: |inner| match inner.polling.volume().backups().await {
        // Cinder's own words for a cloud without backups. Any other error of the list says nothing about existing
        // backups.
        Err(error) if error.is_absent() => Ok(Vec::new()),
        result => result,
    };
    VolumeGroup: |inner| inner.polling.volume().groups().await;
    GroupSnapshot: |inner| inner.polling.volume().group_snapshots().await;
    GroupType: |inner| inner.polling.volume().group_types().await;
    VolumeType: |inner| inner.polling.volume().types().await;
    VolumeZone: |inner| inner.polling.volume().availability_zones().await;
    Image: |inner| inner.polling.image().list(&ImageQuery::default()).await;
    Quota: |inner| quotas(inner).await;
    QuotaOfVolumes: |inner| quotas_of_volumes(inner).await;
}

/// Maximum number of servers whose faults are asked for after one list.
const FAULTS_AT_ONCE: usize = 32;

/// Lists the servers of the project without deleted ones, which Nova may still list. The fault of a server that never had a host
/// is told of that server alone: Nova keeps it in another database than the one that lists read.
async fn alive_servers(inner: &Inner) -> Result<Vec<Server>> {
    let compute = inner.polling.compute();
    let mut servers = compute.servers(&ServerQuery::default()).await?;
    servers.retain(|server| !server.is_gone());
    let known = Server::cell(&inner.cells).snapshot();
    let mut asked = 0;
    for server in servers.iter_mut().filter(|server| server.is_unexplained()) {
        let before = known.get(&server.id).filter(|it| it.status == "ERROR");
        server.fault = before.and_then(|before| before.fault.clone());
        if server.fault.is_none() && asked < FAULTS_AT_ONCE {
            asked += 1;
            // What cannot be read now is asked for after the next list.
            let found = compute.server(&server.id).await.ok();
            server.fault = found.and_then(|found| found.fault);
        }
    }
    Ok(servers)
}

/// Lists the quotas of all services in the cloud that the credential may read.
async fn quotas(inner: &Inner) -> Result<Vec<Quota>> {
    let project = inner.polling.project_id().await?;
    let session = &inner.polling;
    let (compute, network, volume, balancer) = futures::future::join4(
        async { session.compute().limits().await },
        async { session.network().quotas(&project).await },
        volume_quotas(session, &project),
        async { session.load_balancer().quota(&project).await },
    )
    .await;
    let mut quotas = Vec::new();
    let mut add = |service: Service, resource: &str, limit: i64, used: Option<i64>| {
        quotas.push(Quota {
            id: format!("{}/{resource}", service.name()),
            limit,
            used,
        });
    };
    if let Some(limits) = seen(compute)? {
        let service = Service::Compute;
        add(
            service,
            "instances",
            limits.max_total_instances,
            Some(limits.total_instances_used),
        );
        add(
            service,
            "cores",
            limits.max_total_cores,
            Some(limits.total_cores_used),
        );
        add(
            service,
            "ram",
            limits.max_total_ram_size,
            Some(limits.total_ram_used),
        );
    }
    for (resource, quota) in seen(network)?.unwrap_or_default() {
        let used = quota.used.saturating_add(quota.reserved);
        add(Service::Network, &resource, quota.limit, Some(used));
    }
    for (resource, quota) in seen(volume)?.unwrap_or_default() {
        let used = quota.in_use.saturating_add(quota.reserved);
        add(Service::Volume, &resource, quota.limit, Some(used));
    }
    if let Some(quota) = seen(balancer)? {
        let service = Service::LoadBalancer;
        add(service, "loadbalancer", quota.loadbalancer, None);
        add(service, "listener", quota.listener, None);
        add(service, "pool", quota.pool, None);
        add(service, "member", quota.member, None);
        add(service, "healthmonitor", quota.healthmonitor, None);
    }
    Ok(quotas)
}

/// Returns the quotas of volumes and of their types; none if the cloud does not show quotas.
async fn quotas_of_volumes(inner: &Inner) -> Result<Vec<QuotaOfVolumes>> {
    let project = inner.polling.project_id().await?;
    let all = seen(volume_quotas(&inner.polling, &project).await)?;
    let all = all.unwrap_or_default().into_iter().map(|(id, quota)| {
        QuotaOfVolumes(Quota {
            id,
            limit: quota.limit,
            used: Some(quota.in_use.saturating_add(quota.reserved)),
        })
    });
    Ok(all.collect())
}

/// Returns Cinder's quotas, including quotas of volume types; the limits of all volumes if the cloud does not show
/// quotas.
async fn volume_quotas(session: &Session, project: &str) -> Result<BTreeMap<String, VolumeQuota>> {
    if let Some(quotas) = seen(session.volume().quotas(project).await)? {
        return Ok(quotas);
    }
    let limits = session.volume().limits().await?;
    let quota = |name: &str, limit, in_use| {
        let reserved = 0;
        (
            name.to_owned(),
            VolumeQuota {
                limit,
                in_use,
                reserved,
            },
        )
    };
    Ok(BTreeMap::from([
        quota(
            "volumes",
            limits.max_total_volumes,
            limits.total_volumes_used,
        ),
        quota(
            "gigabytes",
            limits.max_total_volume_gigabytes,
            limits.total_gigabytes_used,
        ),
    ]))
}

/// Returns `None` for a quota that the cloud does not have, or does not show to us. Any other error leaves the quota
/// unknown, and is returned.
fn seen<T>(result: Result<T>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::Absent | ErrorKind::Denied | ErrorKind::Invalid
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
