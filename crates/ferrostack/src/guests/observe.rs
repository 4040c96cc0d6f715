//! Observes the cloud, over all projects.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use openstack::compute::HostedServer;
use openstack::image::ImageQuery;
use openstack::loadbalancer::{Listener, LoadBalancer, Member};
use openstack::network::{FloatingIp, Port};
use openstack::session::Session;
use openstack::{Result, Service};

/// The responses of the services, unchanged.
#[derive(Debug, Default)]
pub(super) struct Observation {
    pub(super) servers: Vec<HostedServer>,
    pub(super) ports: Vec<Port>,
    pub(super) floating_ips: Vec<FloatingIp>,
    pub(super) load_balancers: Vec<LoadBalancer>,
    pub(super) listeners: Vec<Listener>,
    pub(super) members: Vec<Member>,
    /// Names of images by id.
    pub(super) images: BTreeMap<String, String>,
}

/// Polls the cloud.
#[derive(Debug)]
pub(super) struct Observer {
    session: Session,
    images: BTreeMap<String, String>,
}

impl Observer {
    pub(super) fn new(session: Session) -> Self {
        Self {
            session: session.polling(),
            images: BTreeMap::new(),
        }
    }

    /// Reads all resources that guests depend on.
    ///
    /// # Errors
    /// Those of the requests; denied if the user is not an administrator.
    pub(super) async fn read(&mut self) -> Result<Observation> {
        let (compute, network) = (self.session.compute(), self.session.network());
        let (servers, ports, floating_ips) = futures::try_join!(
            compute.servers_of_all_projects(),
            network.ports(&[]),
            network.floating_ips(&[]),
        )?;
        self.learn_images(&servers).await?;
        let mut seen = Observation {
            servers,
            ports,
            floating_ips,
            images: self.images.clone(),
            ..Observation::default()
        };
        if self.session.has(Service::LoadBalancer).await? {
            self.read_load_balancers(&mut seen).await?;
        }
        Ok(seen)
    }

    /// The load balancers of the projects that have a guest.
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
                Err(error) if error.kind() == openstack::ErrorKind::Absent => Ok(Vec::new()),
                other => other,
            }
        });
        let members = try_join_all(members).await?;
        seen.members = members.into_iter().flatten().collect();
        Ok(())
    }

    /// Lists the images if a server refers to an unknown one.
    async fn learn_images(&mut self, servers: &[HostedServer]) -> Result<()> {
        let unknown = |hosted: &HostedServer| {
            let id = hosted.server.image_id();
            id.is_some_and(|id| !self.images.contains_key(id))
        };
        if !servers.iter().any(unknown) {
            return Ok(());
        }
        let images = self.session.image().list(&ImageQuery::default()).await?;
        self.images
            .extend(images.into_iter().map(|image| (image.id, image.name)));
        // An image that is deleted or not visible gets an empty name, so that it is not listed again.
        for id in servers.iter().filter_map(|hosted| hosted.server.image_id()) {
            self.images.entry(id.to_owned()).or_default();
        }
        Ok(())
    }
}
