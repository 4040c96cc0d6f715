//! Resources of a project, of any type, each with its claimed owner. Pure, except for the lists.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openstack::inventory::{Inventory, Resource};
use openstack::{ErrorKind, Kind, Service, View};
use provider::identity::{Identity, Mark};
use provider::names::without_zone;
use serde::Serialize;

use crate::commands::csi::orphans::{Form as Storage, Thing as Stored};

/// Type of a resource, in the order of deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    LoadBalancer,
    FloatingIp,
    Server,
    Backup,
    Snapshot,
    Volume,
    Trunk,
    Port,
    SecurityGroup,
    Router,
    Subnet,
    Network,
}

impl Form {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::LoadBalancer => "load balancer",
            Self::FloatingIp => "floating IP",
            Self::Server => "server",
            Self::Backup => "backup",
            Self::Snapshot => "snapshot",
            Self::Volume => "volume",
            Self::Trunk => "trunk",
            Self::Port => "port",
            Self::SecurityGroup => "security group",
            Self::Router => "router",
            Self::Subnet => "subnet",
            Self::Network => "network",
        }
    }
}

/// Claimed owner of a resource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Claim {
    /// The mark of the provider.
    Provider(Mark),
    /// The mark of a pool of floating IPs.
    Pool(Identity),
    /// Uids written by the cloud controller manager: of the cluster, if there is room, and of Services.
    Services {
        cluster: Option<String>,
        services: BTreeSet<String>,
    },
    /// Uid of the cluster written by the CSI driver.
    Volumes(String),
    /// No owner, but a name, in words, as given by this program.
    Named(&'static str),
    /// No owner.
    None,
}

/// Resource.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    pub(crate) form: Form,
    pub(crate) id: String,
    /// Name; the address of a floating IP.
    pub(crate) name: String,
    pub(crate) claim: Claim,
    /// [`Stored`] resource, for the rules of the CSI driver.
    pub(crate) stored: Option<Stored>,
}

/// Tags and descriptions of the cloud controller manager.
const CLUSTER_TAG: &str = "ferrostack-cluster=";
const SERVICE_TAG: &str = "ferrostack-service=";
const SHARED_TAG: &str = "ferrostack-shared=";

/// Lists of all types of resources with possible marks, read now.
pub(crate) async fn view(inventory: &Inventory) -> openstack::Result<std::sync::Arc<View>> {
    let session = inventory.session();
    let mut kinds = vec![
        Kind::Servers,
        Kind::Networks,
        Kind::Subnets,
        Kind::Routers,
        Kind::Ports,
        Kind::SecurityGroups,
        Kind::FloatingIps,
    ];
    let extensions = inventory.view(&[Kind::Extensions], Duration::from_secs(600));
    if extensions.await?.has_extension("trunk") {
        kinds.push(Kind::Trunks);
    }
    if session.has(Service::LoadBalancer).await? {
        kinds.push(Kind::LoadBalancers);
    }
    if session.has(Service::Volume).await? {
        kinds.extend([Kind::Volumes, Kind::Snapshots]);
        match inventory.view(&[Kind::Backups], Duration::ZERO).await {
            // A project that may not list backups has none of ours.
            Err(error) if error.kind() == ErrorKind::Denied => {}
            read => {
                read?;
                kinds.push(Kind::Backups);
            }
        }
    }
    inventory.view(&kinds, Duration::ZERO).await
}

/// [`Thing`]s of this project, without resources of others such as shared networks.
pub(crate) fn all(view: &View, project: &str) -> Vec<Thing> {
    let ours = |owner: &str| owner.is_empty() || owner == project;
    let mut all = Vec::new();
    macro_rules! add {
        ($table:ident, $form:ident, $name:ident, $project:ident) => {
            all.extend(
                view.$table
                    .iter()
                    .filter(|it| ours(&it.$project))
                    .map(|it| {
                        let named = named(Form::$form, &it.$name, it.description());
                        thing(Form::$form, &**it, &it.$name, named)
                    }),
            );
        };
    }
    add!(load_balancers, LoadBalancer, name, project_id);
    add!(floating_ips, FloatingIp, floating_ip_address, project_id);
    add!(servers, Server, name, tenant_id);
    add!(trunks, Trunk, name, project_id);
    add!(ports, Port, name, project_id);
    add!(security_groups, SecurityGroup, name, project_id);
    add!(routers, Router, name, project_id);
    add!(subnets, Subnet, name, project_id);
    add!(networks, Network, name, project_id);
    add!(volumes, Volume, name, project_id);
    storage(view, &mut all);
    by_load_balancers(view, &mut all);
    all
}

fn thing<T: Resource>(form: Form, item: &T, name: &str, named: Option<&'static str>) -> Thing {
    let claim = match (Mark::from_item(item), Identity::of_pool(item)) {
        (Some(mark), _) => Claim::Provider(mark),
        (None, Some(pool)) => Claim::Pool(pool),
        (None, None) => match services(item.description(), item.tags()) {
            Some(services) => services,
            None => named.map_or(Claim::None, Claim::Named),
        },
    };
    Thing {
        form,
        id: item.id().to_owned(),
        name: name.to_owned(),
        claim,
        stored: None,
    }
}

/// Uids of the cloud controller manager in tags, or at the end of a description.
fn services(description: &str, tags: &[String]) -> Option<Claim> {
    let marks = description.rsplit(" (").take(2);
    let marks = marks.filter_map(|mark| mark.strip_suffix(')'));
    let mut all: Vec<&str> = tags.iter().map(String::as_str).collect();
    if description.ends_with(')') {
        all.extend(marks);
    }
    let cluster = all.iter().find_map(|it| it.strip_prefix(CLUSTER_TAG));
    let services = all.iter().filter_map(|it| {
        it.strip_prefix(SERVICE_TAG)
            .or_else(|| it.strip_prefix(SHARED_TAG))
    });
    let services: BTreeSet<String> = services.map(str::to_owned).collect();
    (cluster.is_some() || !services.is_empty()).then(|| Claim::Services {
        cluster: cluster.map(str::to_owned),
        services,
    })
}

/// Description of a name or description as given by this program or the Go programs.
fn named(form: Form, name: &str, description: &str) -> Option<&'static str> {
    let begins = |start: &str| name.starts_with(start);
    let created = without_zone(description);
    if created.starts_with("Created by cluster-api-provider-openstack cluster ") {
        return Some("its description is that of a resource of a cluster");
    }
    match form {
        Form::Network | Form::Subnet | Form::Router | Form::LoadBalancer
            if begins("k8s-clusterapi-cluster-") =>
        {
            Some("its name is that of a resource of a cluster")
        }
        Form::SecurityGroup if begins("k8s-cluster-") && name.contains("-secgroup-") => {
            Some("its name is that of the group of a cluster")
        }
        Form::SecurityGroup if begins("lb-sg-") => {
            Some("its name is that of the group of a Service")
        }
        Form::LoadBalancer if begins("kube_service_") => {
            Some("its name is that of the load balancer of a Service")
        }
        Form::FloatingIp
            if description.starts_with("Floating IP for Kubernetes external service ") =>
        {
            Some("its description is that of the floating IP of a Service")
        }
        _ => None,
    }
}

/// Adds volumes, snapshots and backups of the CSI driver, by their metadata.
fn storage(view: &View, all: &mut Vec<Thing>) {
    let volumes = view.volumes.iter();
    let of_volumes: BTreeMap<String, Stored> = volumes
        .map(|it| (it.id.clone(), Stored::of_volume("", (**it).clone())))
        .collect();
    for thing in all.iter_mut().filter(|it| it.form == Form::Volume) {
        if let (Claim::None | Claim::Named(_), Some(stored)) =
            (&thing.claim, of_volumes.get(&thing.id))
        {
            thing.claim = of_driver(stored);
            thing.stored = Some(stored.clone());
        }
    }
    let snapshots = view.snapshots.iter();
    let snapshots = snapshots.map(|it| Stored::of_snapshot("", (**it).clone()));
    let backups = view.backups.iter();
    let backups = backups.map(|it| Stored::of_backup("", (**it).clone()));
    all.extend(snapshots.chain(backups).map(|stored| Thing {
        form: match stored.form {
            Storage::Backup => Form::Backup,
            Storage::Snapshot => Form::Snapshot,
            Storage::Volume => Form::Volume,
        },
        id: stored.id.clone(),
        name: stored.name.clone(),
        claim: of_driver(&stored),
        stored: Some(stored),
    }));
}

fn of_driver(stored: &Stored) -> Claim {
    let is_marked = csi::owner::is_marked(&stored.metadata);
    match stored.metadata.get(csi::owner::CLUSTER_UID) {
        Some(uid) if is_marked => Claim::Volumes(uid.clone()),
        None if is_marked => {
            Claim::Named("it has the name of a cluster in its metadata, and no uid")
        }
        _ => Claim::None,
    }
}

/// Takes the cluster from a load balancer with the same Service, for a resource without room for the uid of its
/// cluster.
fn by_load_balancers(view: &View, all: &mut [Thing]) {
    let mut clusters = BTreeMap::new();
    for balancer in view.load_balancers.iter() {
        if let Some(Claim::Services {
            cluster: Some(cluster),
            services,
        }) = services("", &balancer.tags)
        {
            clusters.extend(services.into_iter().map(|it| (it, cluster.clone())));
        }
    }
    for thing in all {
        if let Claim::Services { cluster, services } = &mut thing.claim
            && cluster.is_none()
        {
            *cluster = services.iter().find_map(|it| clusters.get(it).cloned());
        }
    }
}
