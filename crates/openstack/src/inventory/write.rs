//! Writes, which update the inventory with their results. Deleting an object that does not exist succeeds.

use std::sync::Arc;

use super::{Inventory, Kind, Observed, Resource};
use crate::compute::{Server, ServerCreate, ServerRebuild};
use crate::error::{Error, Result};
use crate::loadbalancer::{
    Listener, ListenerCreate, ListenerUpdate, LoadBalancer, LoadBalancerCreate, LoadBalancerUpdate,
    Member, MemberCreate, MemberUpdate, Monitor, MonitorCreate, MonitorUpdate, Pool, PoolCreate,
    PoolUpdate,
};
use crate::network::{
    AddressPair, ExtraRoute, FloatingIp, FloatingIpCreate, FloatingIpUpdate, Network,
    NetworkCreate, Port, PortCreate, PortUpdate, Router, RouterCreate, RouterUpdate, RuleCreate,
    SecurityGroup, SecurityGroupCreate, SecurityGroupUpdate, Subnet, SubnetCreate, SubnetUpdate,
    Trunk, TrunkCreate,
};

/// Neutron resource with tags.
pub trait Taggable: Observed {
    /// Plural in the URL.
    const COLLECTION: &str;
    #[doc(hidden)]
    fn put_tags(&mut self, tags: Vec<String>);
}

macro_rules! taggable {
    ($($type:ty: $collection:literal;)*) => {
        $(impl Taggable for $type {
            const COLLECTION: &str = $collection;
            fn put_tags(&mut self, tags: Vec<String>) {
                self.tags = tags;
            }
        })*
    };
}

taggable! {
    Network: "networks";
    Subnet: "subnets";
    Port: "ports";
    Router: "routers";
    SecurityGroup: "security-groups";
    FloatingIp: "floatingips";
    Trunk: "trunks";
}

/// Compute.
impl Inventory {
    /// Creates a server; the server is `BUILD` on return.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_server(&self, server: &ServerCreate) -> Result<Arc<Server>> {
        let server = self.session().compute().create_server(server).await?;
        Ok(self.fold(server))
    }

    /// Rebuilds a server; the server is `REBUILD` on return.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn rebuild_server(&self, id: &str, rebuild: &ServerRebuild) -> Result<()> {
        let compute = self.session().compute();
        compute.rebuild_server(id, rebuild).await?;
        self.fold_with::<Server>(id, |server| {
            "REBUILD".clone_into(&mut server.status);
            server.task_state = Some("rebuilding".to_owned());
            server.metadata.clone_from(&rebuild.metadata);
            if server.image_id().is_some() {
                server.image = serde_json::json!({"id": rebuild.image_id});
            }
        });
        Ok(())
    }

    /// Deletes a server. The inventory shows a pending deletion until a list no longer has the server.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_server(&self, id: &str) -> Result<()> {
        self.deleting::<Server>(
            id,
            self.session().compute().delete_server(id).await,
            |server| {
                server.task_state = Some("deleting".to_owned());
            },
        )
    }
}

/// Networking.
impl Inventory {
    /// Creates a network.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_network(&self, network: &NetworkCreate) -> Result<Arc<Network>> {
        Ok(self.fold(self.session().network().create_network(network).await?))
    }

    /// Deletes a network and its subnets.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_network(&self, id: &str) -> Result<()> {
        self.deleted::<Network>(id, self.session().network().delete_network(id).await)?;
        for subnet in self.known().subnets.of_parent(id) {
            self.fold_gone::<Subnet>(&subnet.id);
        }
        Ok(())
    }

    /// Creates a subnet.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_subnet(&self, subnet: &SubnetCreate) -> Result<Arc<Subnet>> {
        let subnet = self.session().network().create_subnet(subnet).await?;
        let id = subnet.id.clone();
        self.fold_with::<Network>(&subnet.network_id, |network| {
            network.subnets.retain(|other| *other != id);
            network.subnets.push(id);
        });
        Ok(self.fold(subnet))
    }

    /// Changes a subnet.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn update_subnet(&self, id: &str, change: &SubnetUpdate) -> Result<Arc<Subnet>> {
        Ok(self.fold(self.session().network().update_subnet(id, change).await?))
    }

    /// Deletes a subnet.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_subnet(&self, id: &str) -> Result<()> {
        let known = self.known().subnets.get(id).cloned();
        self.deleted::<Subnet>(id, self.session().network().delete_subnet(id).await)?;
        if let Some(subnet) = known {
            self.fold_with::<Network>(&subnet.network_id, |network| {
                network.subnets.retain(|other| other != id);
            });
        }
        Ok(())
    }

    /// Creates ports in one atomic request.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_ports(&self, ports: &[PortCreate]) -> Result<Vec<Arc<Port>>> {
        let ports = self.session().network().create_ports(ports).await?;
        Ok(ports.into_iter().map(|port| self.fold(port)).collect())
    }

    /// Creates a port.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_port(&self, port: &PortCreate) -> Result<Arc<Port>> {
        Ok(self.fold(self.session().network().create_port(port).await?))
    }

    /// Changes a port.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn update_port(&self, id: &str, change: &PortUpdate) -> Result<Arc<Port>> {
        Ok(self.fold(self.session().network().update_port(id, change).await?))
    }

    /// Adds a security group to a port, or removes it.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn set_port_group(&self, id: &str, group: &str, has: bool) -> Result<Arc<Port>> {
        let network = self.session().network();
        Ok(self.fold(network.set_port_group(id, group, has).await?))
    }

    /// Adds ranges to the allowed address pairs of a port, and removes ranges.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn set_port_pairs(
        &self,
        id: &str,
        add: &[String],
        remove: &[String],
    ) -> Result<Arc<Port>> {
        let network = self.session().network();
        Ok(self.fold(network.set_port_pairs(id, add, remove).await?))
    }

    /// As [`set_port_pairs`](Self::set_port_pairs), with pairs; a pair without a hardware address gets the one of the
    /// port.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn change_port_pairs(
        &self,
        id: &str,
        add: &[AddressPair],
        remove: &[AddressPair],
    ) -> Result<Arc<Port>> {
        let network = self.session().network();
        Ok(self.fold(network.change_port_pairs(id, add, remove).await?))
    }

    /// Deletes a port.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_port(&self, id: &str) -> Result<()> {
        self.deleted::<Port>(id, self.session().network().delete_port(id).await)
    }

    /// Creates a router.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_router(&self, router: &RouterCreate) -> Result<Arc<Router>> {
        Ok(self.fold(self.session().network().create_router(router).await?))
    }

    /// Changes a router.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn update_router(&self, id: &str, change: &RouterUpdate) -> Result<Arc<Router>> {
        Ok(self.fold(self.session().network().update_router(id, change).await?))
    }

    /// Adds and removes routes of a router. With the extension `extraroute-atomic` (`atomic`), sends one request for
    /// each of the two; otherwise changes the router at the revision just read.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn set_routes(
        &self,
        router: &str,
        add: &[ExtraRoute],
        remove: &[ExtraRoute],
        atomic: bool,
    ) -> Result<()> {
        let network = self.session().network();
        if !atomic {
            self.fold(network.change_routes(router, add, remove).await?);
            return Ok(());
        }
        // Removals first: the old routes count against the limit of the router.
        if !remove.is_empty() {
            self.fold(network.remove_routes(router, remove).await?);
        }
        if !add.is_empty() {
            self.fold(network.add_routes(router, add).await?);
        }
        Ok(())
    }

    /// Deletes a router.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_router(&self, id: &str) -> Result<()> {
        self.deleted::<Router>(id, self.session().network().delete_router(id).await)
    }

    /// Connects a router to a subnet; returns the id of the interface's port.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn add_router_interface(&self, router: &str, subnet: &str) -> Result<String> {
        let port = self
            .session()
            .network()
            .add_router_interface(router, subnet)
            .await?;
        self.stale(Kind::Ports);
        Ok(port)
    }

    /// Disconnects a router from a subnet. Succeeds without a connection.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn remove_router_interface(&self, router: &str, subnet: &str) -> Result<()> {
        let result = self
            .session()
            .network()
            .remove_router_interface(router, subnet)
            .await;
        match result {
            Ok(port) => self.fold_gone::<Port>(&port),
            Err(error) if error.is_absent() => self.stale(Kind::Ports),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Creates a security group. Neutron adds two rules: all egress over IPv4 and IPv6.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_security_group(
        &self,
        security_group: &SecurityGroupCreate,
    ) -> Result<Arc<SecurityGroup>> {
        Ok(self.fold(
            self.session()
                .network()
                .create_security_group(security_group)
                .await?,
        ))
    }

    /// Changes a security group.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn update_security_group(
        &self,
        id: &str,
        change: &SecurityGroupUpdate,
    ) -> Result<Arc<SecurityGroup>> {
        Ok(self.fold(
            self.session()
                .network()
                .update_security_group(id, change)
                .await?,
        ))
    }

    /// Deletes a security group.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_security_group(&self, id: &str) -> Result<()> {
        self.deleted::<SecurityGroup>(id, self.session().network().delete_security_group(id).await)
    }

    /// Creates rules, of any groups, in one atomic request.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_rules(&self, rules: &[RuleCreate]) -> Result<()> {
        for rule in self.session().network().create_rules(rules).await? {
            let group = rule.security_group_id.clone();
            self.fold_with::<SecurityGroup>(&group, |group| {
                group.rules.retain(|other| other.id != rule.id);
                group.rules.push(rule);
            });
        }
        Ok(())
    }

    /// Deletes a rule of a group.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_rule(&self, group: &str, rule: &str) -> Result<()> {
        absent_is_fine(self.session().network().delete_rule(rule).await)?;
        self.fold_with::<SecurityGroup>(group, |group| group.rules.retain(|old| old.id != rule));
        Ok(())
    }

    /// Creates a floating IP, and associates it with a port if the request names one.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_floating_ip(
        &self,
        floating_ip: &FloatingIpCreate,
    ) -> Result<Arc<FloatingIp>> {
        Ok(self.fold(
            self.session()
                .network()
                .create_floating_ip(floating_ip)
                .await?,
        ))
    }

    /// Changes the port of a floating IP.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn update_floating_ip(
        &self,
        id: &str,
        change: &FloatingIpUpdate,
    ) -> Result<Arc<FloatingIp>> {
        Ok(self.fold(
            self.session()
                .network()
                .update_floating_ip(id, change)
                .await?,
        ))
    }

    /// Deletes a floating IP.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_floating_ip(&self, id: &str) -> Result<()> {
        self.deleted::<FloatingIp>(id, self.session().network().delete_floating_ip(id).await)
    }

    /// Creates a trunk.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_trunk(&self, trunk: &TrunkCreate) -> Result<Arc<Trunk>> {
        Ok(self.fold(self.session().network().create_trunk(trunk).await?))
    }

    /// Removes ports from a trunk.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn remove_subports(&self, trunk: &str, ports: &[&str]) -> Result<Arc<Trunk>> {
        let network = self.session().network();
        Ok(self.fold(network.remove_subports(trunk, ports).await?))
    }

    /// Deletes a trunk.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_trunk(&self, id: &str) -> Result<()> {
        self.deleted::<Trunk>(id, self.session().network().delete_trunk(id).await)
    }

    /// Sets the tags of a network resource, replacing all, for example
    /// `inventory.set_tags::<Port>(id, &tags)`.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn set_tags<T: Taggable>(&self, id: &str, tags: &[String]) -> Result<()> {
        let tags = self
            .session()
            .network()
            .set_tags(T::COLLECTION, id, tags)
            .await?;
        self.fold_with::<T>(id, |item| item.put_tags(tags));
        Ok(())
    }
}

/// Load balancing. Every change makes the load balancer immutable until it is ready again.
impl Inventory {
    /// Creates a load balancer with its listeners, pools, members and monitors.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_load_balancer(
        &self,
        tree: &LoadBalancerCreate,
    ) -> Result<Arc<LoadBalancer>> {
        let balancer = self
            .session()
            .load_balancer()
            .create_load_balancer(tree)
            .await?;
        for kind in [
            Kind::Listeners,
            Kind::Pools,
            Kind::Members,
            Kind::Monitors,
            Kind::Ports,
        ] {
            self.stale(kind);
        }
        Ok(self.fold(balancer))
    }

    /// Changes a load balancer.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn update_load_balancer(
        &self,
        id: &str,
        change: &LoadBalancerUpdate,
    ) -> Result<Arc<LoadBalancer>> {
        let balancer = self
            .session()
            .load_balancer()
            .update_load_balancer(id, change)
            .await?;
        Ok(self.fold(balancer))
    }

    /// Replaces the amphorae of a load balancer.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn failover(&self, balancer: &str) -> Result<()> {
        self.session().load_balancer().failover(balancer).await?;
        self.updating(balancer);
        Ok(())
    }

    /// Deletes a load balancer in a cascade. The inventory shows a pending deletion until a list no longer has the load
    /// balancer.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_load_balancer(&self, id: &str) -> Result<()> {
        let result = self
            .session()
            .load_balancer()
            .delete_load_balancer(id)
            .await;
        self.deleting::<LoadBalancer>(id, result, |balancer| {
            balancer.provisioning_status = "PENDING_DELETE".to_owned();
        })
    }

    /// Creates a listener.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_listener(
        &self,
        balancer: &str,
        listener: &ListenerCreate,
    ) -> Result<Arc<Listener>> {
        let listener = self
            .session()
            .load_balancer()
            .create_listener(listener)
            .await?;
        self.updating(balancer);
        Ok(self.fold(listener))
    }

    /// Changes a listener.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn update_listener(
        &self,
        balancer: &str,
        id: &str,
        change: &ListenerUpdate,
    ) -> Result<Arc<Listener>> {
        let listener = self
            .session()
            .load_balancer()
            .update_listener(id, change)
            .await?;
        self.updating(balancer);
        Ok(self.fold(listener))
    }

    /// Deletes a listener.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_listener(&self, balancer: &str, id: &str) -> Result<()> {
        let result = self.session().load_balancer().delete_listener(id).await;
        self.updating(balancer);
        self.deleting::<Listener>(id, result, |listener| {
            listener.provisioning_status = "PENDING_DELETE".to_owned();
        })
    }

    /// Creates a pool.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_pool(&self, balancer: &str, pool: &PoolCreate) -> Result<Arc<Pool>> {
        let pool = self.session().load_balancer().create_pool(pool).await?;
        self.updating(balancer);
        Ok(self.fold(pool))
    }

    /// Changes a pool.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn update_pool(
        &self,
        balancer: &str,
        id: &str,
        change: &PoolUpdate,
    ) -> Result<Arc<Pool>> {
        let pool = self
            .session()
            .load_balancer()
            .update_pool(id, change)
            .await?;
        self.updating(balancer);
        Ok(self.fold(pool))
    }

    /// Deletes a pool.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_pool(&self, balancer: &str, id: &str) -> Result<()> {
        let result = self.session().load_balancer().delete_pool(id).await;
        self.updating(balancer);
        self.deleting::<Pool>(id, result, |pool| {
            pool.provisioning_status = "PENDING_DELETE".to_owned();
        })
    }

    /// Creates a health monitor.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_monitor(
        &self,
        balancer: &str,
        monitor: &MonitorCreate,
    ) -> Result<Arc<Monitor>> {
        let monitor = self
            .session()
            .load_balancer()
            .create_monitor(monitor)
            .await?;
        self.updating(balancer);
        Ok(self.fold(monitor))
    }

    /// Changes a health monitor.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn update_monitor(
        &self,
        balancer: &str,
        id: &str,
        change: &MonitorUpdate,
    ) -> Result<Arc<Monitor>> {
        let monitor = self
            .session()
            .load_balancer()
            .update_monitor(id, change)
            .await?;
        self.updating(balancer);
        Ok(self.fold(monitor))
    }

    /// Deletes a health monitor.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_monitor(&self, balancer: &str, id: &str) -> Result<()> {
        let result = self.session().load_balancer().delete_monitor(id).await;
        self.updating(balancer);
        self.deleting::<Monitor>(id, result, |monitor| {
            monitor.provisioning_status = "PENDING_DELETE".to_owned();
        })
    }

    /// Adds a member to a pool.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_member(&self, pool: &str, member: &MemberCreate) -> Result<Arc<Member>> {
        let member = self
            .session()
            .load_balancer()
            .create_member(pool, member)
            .await?;
        self.updating_pool(pool);
        Ok(self.fold(member))
    }

    /// Replaces the members of a pool in one request.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn set_members(&self, pool: &str, members: &[MemberCreate]) -> Result<()> {
        self.session()
            .load_balancer()
            .set_members(pool, members)
            .await?;
        self.updating_pool(pool);
        self.inner.pool_marks.lock().remove(pool);
        self.stale(Kind::Members);
        Ok(())
    }

    /// Changes a member of a pool.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn update_member(
        &self,
        pool: &str,
        member: &str,
        change: &MemberUpdate,
    ) -> Result<Arc<Member>> {
        let member = self
            .session()
            .load_balancer()
            .update_member(pool, member, change)
            .await?;
        self.updating_pool(pool);
        Ok(self.fold(member))
    }

    /// Removes a member from a pool.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_member(&self, pool: &str, member: &str) -> Result<()> {
        let result = self
            .session()
            .load_balancer()
            .delete_member(pool, member)
            .await;
        self.updating_pool(pool);
        self.deleting::<Member>(member, result, |member| {
            member.provisioning_status = "PENDING_DELETE".into();
        })
    }
}

impl Inventory {
    /// Updates the inventory after a deletion that is complete with its answer.
    pub(super) fn deleted<T: Observed>(&self, id: &str, result: Result<()>) -> Result<()> {
        absent_is_fine(result)?;
        self.fold_gone::<T>(id);
        Ok(())
    }

    /// Updates the inventory after a deletion that the cloud completes later.
    pub(super) fn deleting<T: Observed>(
        &self,
        id: &str,
        result: Result<()>,
        mark: impl FnOnce(&mut T),
    ) -> Result<()> {
        match result {
            Ok(()) => self.fold_with::<T>(id, mark),
            Err(error) if error.is_absent() => self.fold_gone::<T>(id),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Marks a load balancer as pending after a change of its parts.
    fn updating(&self, balancer: &str) {
        self.fold_with::<LoadBalancer>(balancer, |balancer| {
            balancer.provisioning_status = "PENDING_UPDATE".to_owned();
        });
    }

    fn updating_pool(&self, pool: &str) {
        let view = self.known();
        if let Some(balancer) = view.pools.get(pool).and_then(|pool| pool.parent()) {
            self.updating(balancer);
        }
    }
}

fn absent_is_fine(result: Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.is_absent() => Ok(()),
        result => result,
    }
}
