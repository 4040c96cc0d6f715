//! The Machine, the Cluster and the OpenStackCluster of an OpenStackMachine.

use api::conditions::Reason;
use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1beta2::{ManagedGroup, OpenStackCluster, OpenStackMachine};
use kube::ResourceExt;
use operator::client::Api;

use crate::context::{self, Context, Error, namespace};
use crate::identity::{CLUSTER_ID, Identity};
use crate::spec::balancer_spec;

/// Objects around an [`OpenStackMachine`], if existing.
pub(super) struct Surroundings {
    pub(super) machine: Option<Machine>,
    pub(super) cluster: Option<Cluster>,
    pub(super) openstack_cluster: Option<OpenStackCluster>,
}

impl Surroundings {
    pub(super) async fn for_object(
        ctx: &Context,
        object: &OpenStackMachine,
    ) -> Result<Self, Error> {
        let machine = context::owner_machine(&ctx.client, object).await?;
        let cluster = match &machine {
            Some(machine) => {
                let clusters = Api::<Cluster>::namespaced(ctx.client.clone(), &namespace(object));
                let found = clusters.get_opt(&machine.spec.cluster_name).await;
                found.map_err(Error::kubernetes("reading the Cluster"))?
            }
            None => context::owner_cluster(&ctx.client, object).await?,
        };
        let name = match &cluster {
            Some(cluster) => {
                let reference = cluster.spec.infrastructure_ref.as_ref();
                let reference = reference.filter(|it| it.kind == "OpenStackCluster");
                reference.map(|reference| reference.name.clone())
            }
            // In a forced deletion, the Cluster can be gone before the machine and its OpenStackCluster.
            None => context::of_cluster(object)
                .and_then(|name| ctx.claims.clusters.of_cluster(&namespace(object), name)),
        };
        let openstack_cluster = match name {
            Some(name) => {
                let api =
                    Api::<OpenStackCluster>::namespaced(ctx.client.clone(), &namespace(object));
                let found = api.get_opt(&name).await;
                found.map_err(Error::kubernetes("reading the OpenStackCluster"))?
            }
            None => None,
        };
        Ok(Self {
            machine,
            cluster,
            openstack_cluster,
        })
    }

    pub(super) fn is_control_plane(&self) -> bool {
        let label = api::names::CONTROL_PLANE_LABEL;
        self.machine
            .as_ref()
            .is_some_and(|machine| machine.labels().contains_key(label))
    }

    /// [`ManagedGroup`] of the machine.
    pub(super) fn group(&self) -> ManagedGroup {
        match self.is_control_plane() {
            true => ManagedGroup::ControlPlane,
            false => ManagedGroup::Worker,
        }
    }

    /// True for a machine with a silent Node.
    pub(super) fn is_silent(&self) -> bool {
        let Some(machine) = &self.machine else {
            return false;
        };
        let healthy =
            api::conditions::find(machine.conditions(), api::conditions::Type::NodeHealthy);
        machine.node_name().is_some() && healthy.is_some_and(|healthy| healthy.status != "True")
    }

    pub(super) fn has_balancer(&self) -> bool {
        self.openstack_cluster
            .as_ref()
            .is_some_and(|c| balancer_spec(&c.spec).is_some())
    }

    /// True if the machine should be a member of a load balancer.
    pub(super) fn is_balanced(&self) -> bool {
        self.is_control_plane() && self.has_balancer()
    }

    /// [`Needs`] of a server before its creation, or the reason for waiting.
    pub(super) fn needs(&self) -> Result<Needs<'_>, (Reason, &'static str)> {
        let (Some(machine), Some(cluster)) = (&self.machine, &self.cluster) else {
            let text = "waiting for the Machine that owns this object";
            return Err((Reason::WaitingForOwner, text));
        };
        let Some(infra) = self
            .openstack_cluster
            .as_ref()
            .filter(|infra| is_provisioned(infra))
        else {
            let text = "waiting for the network and the load balancer";
            return Err((Reason::WaitingForClusterInfrastructure, text));
        };
        let Some(cluster_id) = Identity::for_object(infra, CLUSTER_ID) else {
            let text = "waiting for the OpenStackCluster to get its identity";
            return Err((Reason::WaitingForClusterInfrastructure, text));
        };
        let Some(secret) = &machine.spec.bootstrap.data_secret_name else {
            let text = "waiting for the bootstrap data of the Machine";
            return Err((Reason::WaitingForBootstrapData, text));
        };
        Ok(Needs {
            machine,
            cluster,
            infra,
            cluster_id,
            secret,
        })
    }
}

/// Objects that must exist before a server is created.
pub(super) struct Needs<'a> {
    pub(super) machine: &'a Machine,
    pub(super) cluster: &'a Cluster,
    pub(super) infra: &'a OpenStackCluster,
    pub(super) cluster_id: Identity,
    /// Name of the Secret with the bootstrap data.
    pub(super) secret: &'a str,
}

fn is_provisioned(infra: &OpenStackCluster) -> bool {
    let status = infra.status.as_ref();
    let initialization = status.and_then(|status| status.initialization.as_ref());
    initialization.and_then(|initialization| initialization.provisioned) == Some(true)
}
