//! Observes the cloud, over all projects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::try_join_all;
use openstack::compute::HostedServer;
use openstack::image::{Image, ImageQuery};
use openstack::loadbalancer::{Listener, LoadBalancer, Member};
use openstack::network::{FloatingIp, Network, Port, SecurityGroup, Subnet};
use openstack::session::Session;
use openstack::volume::Volume;
use openstack::{ErrorKind, Result, Service};

use super::boots::{Boots, Starts};

/// Public keys of key pairs by user and name; `None` for a missing one.
pub(super) type Keys = BTreeMap<(String, String), Option<String>>;

/// Responses of the services, unchanged.
#[derive(Debug, Default)]
pub(super) struct Observation {
    pub(super) servers: Vec<HostedServer>,
    /// Numbers of boots and disks by server.
    pub(super) boots: BTreeMap<String, Starts>,
    pub(super) ports: Vec<Port>,
    pub(super) floating_ips: Vec<FloatingIp>,
    pub(super) load_balancers: Vec<LoadBalancer>,
    pub(super) listeners: Vec<Listener>,
    pub(super) members: Vec<Member>,
    /// [`Image`]s by id; a deleted or invisible image has no name.
    pub(super) images: Arc<BTreeMap<String, Image>>,
    /// [`Hardware`] of machines; empty for guests.
    pub(super) hardware: Hardware,
}

/// Observations for machines only.
#[derive(Debug, Default)]
pub(super) struct Hardware {
    pub(super) networks: Vec<Network>,
    pub(super) subnets: Vec<Subnet>,
    pub(super) groups: Vec<SecurityGroup>,
    pub(super) volumes: Vec<Volume>,
    pub(super) keys: Arc<Keys>,
}

/// Polls the cloud.
#[derive(Debug)]
pub(super) struct Observer {
    session: Session,
    boots: Boots,
    images: Arc<BTreeMap<String, Image>>,
    /// Known [`Keys`], if machines need hardware.
    keys: Option<Arc<Keys>>,
}

impl Observer {
    /// Observes the input of guests, and with `hardware` the hardware of machines.
    pub(super) fn new(session: &Session, hardware: bool) -> Self {
        Self {
            session: session.polling(),
            boots: Boots::default(),
            images: Arc::default(),
            keys: hardware.then(Arc::default),
        }
    }

    /// Reads all resources that guests or machines depend on, as an [`Observation`].
    ///
    /// # Errors
    /// Errors of the requests; denied if the user is not an administrator.
    pub(super) async fn read(&mut self) -> Result<Observation> {
        // Servers first: a server that is ACTIVE has its ports, and a machine reads them once.
        let servers = self.session.compute().servers_of_all_projects().await?;
        let boots = self.boots.read(&self.session, &servers).await?;
        let network = self.session.network();
        let (ports, floating_ips) =
            futures::try_join!(network.ports(&[]), network.floating_ips(&[]))?;
        self.learn_images(&servers).await?;
        let hardware = self.hardware(&servers).await?;
        let mut seen = Observation {
            servers,
            boots,
            ports,
            floating_ips,
            images: Arc::clone(&self.images),
            hardware,
            ..Observation::default()
        };
        if self.session.has(Service::LoadBalancer).await? {
            self.read_load_balancers(&mut seen).await?;
        }
        Ok(seen)
    }

    /// Reads the [`LoadBalancer`]s of projects with guests.
    async fn read_load_balancers(&self, seen: &mut Observation) -> Result<()> {
        let balancing = self.session.load_balancer();
        let projects: BTreeSet<&str> = seen
            .servers
            .iter()
            .filter(|hosted| hosted.user_data.is_some())
            .map(|hosted| hosted.server.tenant_id.as_str())
            .collect();
        for project in projects {
            seen.load_balancers
                .extend(balancing.load_balancers(project).await?);
            seen.listeners.extend(balancing.listeners(project).await?);
        }
        let pools: BTreeSet<&str> = seen
            .listeners
            .iter()
            .filter_map(|listener| listener.default_pool_id.as_deref())
            .collect();
        let members = pools.iter().map(|pool| async {
            match balancing.members(pool).await {
                // The pool was deleted after its listener was read.
                Err(error) if error.kind() == ErrorKind::Absent => Ok(Vec::new()),
                other => other,
            }
        });
        let members = try_join_all(members).await?;
        seen.members = members.into_iter().flatten().collect();
        Ok(())
    }

    /// Lists the [`Image`]s if a server refers to an unknown one.
    async fn learn_images(&mut self, servers: &[HostedServer]) -> Result<()> {
        let unknown = |hosted: &HostedServer| {
            let id = hosted.server.image_id();
            id.is_some_and(|id| !self.images.contains_key(id))
        };
        if !servers.iter().any(unknown) {
            return Ok(());
        }
        let images = self.session.image().list(&ImageQuery::default()).await?;
        let known = Arc::make_mut(&mut self.images);
        known.extend(images.into_iter().map(|image| (image.id.clone(), image)));
        // An image that is deleted or not visible gets an entry, so that it is not listed again.
        for id in servers.iter().filter_map(|hosted| hosted.server.image_id()) {
            known.entry(id.to_owned()).or_default();
        }
        Ok(())
    }

    async fn hardware(&mut self, servers: &[HostedServer]) -> Result<Hardware> {
        let Some(keys) = &self.keys else {
            return Ok(Hardware::default());
        };
        let keys = learned_keys(&self.session, Arc::clone(keys), servers).await?;
        self.keys = Some(Arc::clone(&keys));
        let network = self.session.network();
        let (networks, subnets, groups) = futures::try_join!(
            network.networks(&[]),
            network.subnets(&[]),
            network.security_groups(&[]),
        )?;
        let attached = |hosted: &HostedServer| !hosted.server.volumes.is_empty();
        let volumes = match servers.iter().any(attached) {
            true => self.session.volume().list_of_all_projects().await?,
            false => Vec::new(),
        };
        Ok(Hardware {
            networks,
            subnets,
            groups,
            volumes,
            keys,
        })
    }
}

/// [`Keys`] with the keys of new servers. A missing or hidden key is not requested again.
async fn learned_keys(
    session: &Session,
    mut keys: Arc<Keys>,
    servers: &[HostedServer],
) -> Result<Arc<Keys>> {
    for hosted in servers.iter().filter(|it| !it.server.key_name.is_empty()) {
        let (user, name) = (&hosted.user_id, &hosted.server.key_name);
        let entry = (user.clone(), name.clone());
        if keys.contains_key(&entry) {
            continue;
        }
        let found = match session.compute().keypair_of_user(user, name).await {
            Ok(key) => Some(key.public_key),
            Err(error) if matches!(error.kind(), ErrorKind::Absent | ErrorKind::Denied) => None,
            Err(error) => return Err(error),
        };
        Arc::make_mut(&mut keys).insert(entry, found);
    }
    Ok(keys)
}
