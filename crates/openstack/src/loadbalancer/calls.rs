//! The requests to Octavia.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;

use super::create::{
    ListenerCreate, ListenerUpdate, LoadBalancerCreate, LoadBalancerUpdate, MemberCreate,
    MemberUpdate, MonitorCreate, MonitorUpdate, PoolCreate, PoolUpdate,
};
use super::resource::{
    LbFlavor, LbZone, Listener, LoadBalancer, LoadBalancerQuota, Member, Monitor, Pool, Provider,
};
use super::status::LoadBalancerStatus;
use crate::call::Call;
use crate::error::Result;
use crate::service::Service;
use crate::session::Session;

/// Calls to Octavia. While a load balancer is in a `PENDING_` state, every change within it fails
/// with [`crate::ErrorKind::Busy`].
#[derive(Clone, Debug)]
pub struct LoadBalancing {
    session: Session,
}

impl Session {
    /// Returns the calls to Octavia.
    pub fn load_balancer(&self) -> LoadBalancing {
        LoadBalancing::new(self.clone())
    }
}

impl LoadBalancing {
    fn new(session: Session) -> Self {
        Self { session }
    }

    /// Lists the load balancers of a project.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn load_balancers(&self, project: &str) -> Result<Vec<LoadBalancer>> {
        let call = Call::list(Service::LoadBalancer, "/lbaas/loadbalancers", &[])
            .query("project_id", project)
            .fields(LoadBalancer::FIELDS);
        self.session.list(call, "loadbalancers").await
    }

    /// Returns one load balancer.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn load_balancer(&self, id: &str) -> Result<LoadBalancer> {
        let call = Call::get(Service::LoadBalancer, "/lbaas/loadbalancers/{id}", &[id]);
        self.session.one(call, "loadbalancer").await
    }

    /// Status of a load balancer and its parts.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn status(&self, id: &str) -> Result<LoadBalancerStatus> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Statuses {
            loadbalancer: LoadBalancerStatus,
        }
        let call = Call::get(
            Service::LoadBalancer,
            "/lbaas/loadbalancers/{id}/status",
            &[id],
        );
        Ok(self
            .session
            .one::<Statuses>(call, "statuses")
            .await?
            .loadbalancer)
    }

    /// Creates a load balancer, with its parts if the request has them; the load balancer is `PENDING_CREATE` on
    /// return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_load_balancer(&self, tree: &LoadBalancerCreate) -> Result<LoadBalancer> {
        let call = Call::post(Service::LoadBalancer, "/lbaas/loadbalancers", &[])
            .body("loadbalancer", tree);
        self.session.one(call, "loadbalancer").await
    }

    /// Changes a load balancer.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_load_balancer(
        &self,
        id: &str,
        change: &LoadBalancerUpdate,
    ) -> Result<LoadBalancer> {
        let call = Call::put(Service::LoadBalancer, "/lbaas/loadbalancers/{id}", &[id])
            .body("loadbalancer", change);
        self.session.one(call, "loadbalancer").await
    }

    /// Deletes a load balancer and its parts.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_load_balancer(&self, id: &str) -> Result<()> {
        let call = Call::delete(Service::LoadBalancer, "/lbaas/loadbalancers/{id}", &[id])
            .query("cascade", "true");
        self.session.done(call).await
    }

    /// Replaces the amphorae of a load balancer, which also repairs one in ERROR. Most clouds reject the request unless
    /// the user is an administrator of load balancing.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn failover(&self, id: &str) -> Result<()> {
        let call = Call::put(
            Service::LoadBalancer,
            "/lbaas/loadbalancers/{id}/failover",
            &[id],
        );
        self.session.done(call).await
    }

    /// Lists the listeners of a project.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn listeners(&self, project: &str) -> Result<Vec<Listener>> {
        let call = Call::list(Service::LoadBalancer, "/lbaas/listeners", &[])
            .query("project_id", project)
            .fields(Listener::FIELDS);
        self.session.list(call, "listeners").await
    }

    /// Returns one listener.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn listener(&self, id: &str) -> Result<Listener> {
        self.session
            .one(
                Call::get(Service::LoadBalancer, "/lbaas/listeners/{id}", &[id]),
                "listener",
            )
            .await
    }

    /// Creates a listener.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_listener(&self, listener: &ListenerCreate) -> Result<Listener> {
        let call =
            Call::post(Service::LoadBalancer, "/lbaas/listeners", &[]).body("listener", listener);
        self.session.one(call, "listener").await
    }

    /// Changes a listener.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_listener(&self, id: &str, change: &ListenerUpdate) -> Result<Listener> {
        let call = Call::put(Service::LoadBalancer, "/lbaas/listeners/{id}", &[id])
            .body("listener", change);
        self.session.one(call, "listener").await
    }

    /// Deletes a listener.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_listener(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(
                Service::LoadBalancer,
                "/lbaas/listeners/{id}",
                &[id],
            ))
            .await
    }

    /// Lists the pools of a project.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn pools(&self, project: &str) -> Result<Vec<Pool>> {
        let call = Call::list(Service::LoadBalancer, "/lbaas/pools", &[])
            .query("project_id", project)
            .fields(Pool::FIELDS);
        self.session.list(call, "pools").await
    }

    /// Returns one pool.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn pool(&self, id: &str) -> Result<Pool> {
        self.session
            .one(
                Call::get(Service::LoadBalancer, "/lbaas/pools/{id}", &[id]),
                "pool",
            )
            .await
    }

    /// Creates a pool.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_pool(&self, pool: &PoolCreate) -> Result<Pool> {
        let call = Call::post(Service::LoadBalancer, "/lbaas/pools", &[]).body("pool", pool);
        self.session.one(call, "pool").await
    }

    /// Changes a pool.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_pool(&self, id: &str, change: &PoolUpdate) -> Result<Pool> {
        let call =
            Call::put(Service::LoadBalancer, "/lbaas/pools/{id}", &[id]).body("pool", change);
        self.session.one(call, "pool").await
    }

    /// Deletes a pool.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_pool(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(
                Service::LoadBalancer,
                "/lbaas/pools/{id}",
                &[id],
            ))
            .await
    }

    /// Lists the health monitors of a project.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn monitors(&self, project: &str) -> Result<Vec<Monitor>> {
        let call = Call::list(Service::LoadBalancer, "/lbaas/healthmonitors", &[])
            .query("project_id", project);
        self.session.list(call, "healthmonitors").await
    }

    /// Returns one health monitor.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn monitor(&self, id: &str) -> Result<Monitor> {
        self.session
            .one(
                Call::get(Service::LoadBalancer, "/lbaas/healthmonitors/{id}", &[id]),
                "healthmonitor",
            )
            .await
    }

    /// Creates a health monitor.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_monitor(&self, monitor: &MonitorCreate) -> Result<Monitor> {
        let call = Call::post(Service::LoadBalancer, "/lbaas/healthmonitors", &[])
            .body("healthmonitor", monitor);
        self.session.one(call, "healthmonitor").await
    }

    /// Changes a health monitor.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_monitor(&self, id: &str, change: &MonitorUpdate) -> Result<Monitor> {
        let call = Call::put(Service::LoadBalancer, "/lbaas/healthmonitors/{id}", &[id])
            .body("healthmonitor", change);
        self.session.one(call, "healthmonitor").await
    }

    /// Deletes a health monitor.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_monitor(&self, id: &str) -> Result<()> {
        self.session
            .done(Call::delete(
                Service::LoadBalancer,
                "/lbaas/healthmonitors/{id}",
                &[id],
            ))
            .await
    }

    /// Lists the members of a pool.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn members(&self, pool: &str) -> Result<Vec<Member>> {
        let call = Call::list(Service::LoadBalancer, "/lbaas/pools/{id}/members", &[pool]);
        let mut members: Vec<Member> = self.session.list(call, "members").await?;
        let (pool, mut shared) = (Arc::from(pool), HashSet::new());
        for member in &mut members {
            member.set_pool(&pool, &mut shared);
        }
        Ok(members)
    }

    /// Adds a member to a pool.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_member(&self, pool: &str, member: &MemberCreate) -> Result<Member> {
        let call = Call::post(Service::LoadBalancer, "/lbaas/pools/{id}/members", &[pool])
            .body("member", member);
        let mut member: Member = self.session.one(call, "member").await?;
        member.pool_id = pool.into();
        Ok(member)
    }

    /// Replaces the members of a pool in one request. Members are identified by address and port.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn set_members(&self, pool: &str, members: &[MemberCreate]) -> Result<()> {
        let call = Call::put(Service::LoadBalancer, "/lbaas/pools/{id}/members", &[pool])
            .body("members", &members);
        self.session.done(call).await
    }

    /// Changes a member of a pool.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn update_member(
        &self,
        pool: &str,
        member: &str,
        change: &MemberUpdate,
    ) -> Result<Member> {
        let call = Call::put(
            Service::LoadBalancer,
            "/lbaas/pools/{id}/members/{member}",
            &[pool, member],
        )
        .body("member", change);
        let mut member: Member = self.session.one(call, "member").await?;
        member.pool_id = pool.into();
        Ok(member)
    }

    /// Removes a member from a pool.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_member(&self, pool: &str, member: &str) -> Result<()> {
        let call = Call::delete(
            Service::LoadBalancer,
            "/lbaas/pools/{id}/members/{member}",
            &[pool, member],
        );
        self.session.done(call).await
    }

    /// Returns the enabled drivers.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn providers(&self) -> Result<Vec<Provider>> {
        self.session
            .list(
                Call::list(Service::LoadBalancer, "/lbaas/providers", &[]),
                "providers",
            )
            .await
    }

    /// Returns the flavors.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn flavors(&self) -> Result<Vec<LbFlavor>> {
        self.session
            .list(
                Call::list(Service::LoadBalancer, "/lbaas/flavors", &[]),
                "flavors",
            )
            .await
    }

    /// Returns the availability zones (API 2.14).
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn availability_zones(&self) -> Result<Vec<LbZone>> {
        self.session
            .list(
                Call::list(Service::LoadBalancer, "/lbaas/availabilityzones", &[]),
                "availability_zones",
            )
            .await
    }

    /// Limits of a project.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn quota(&self, project: &str) -> Result<LoadBalancerQuota> {
        let call = Call::get(Service::LoadBalancer, "/lbaas/quotas/{project}", &[project]);
        self.session.one(call, "quota").await
    }
}
