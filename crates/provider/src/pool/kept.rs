//! Pool as an object with an identity of its own.

use std::collections::BTreeSet;

use api::conditions::{Reason, Type};
use api::infra::v1alpha1::OpenStackFloatingIPPool;
use api::infra::v1beta2::IdentityRef;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use openstack::{Kind, View};

use crate::alone::Alone;
use crate::claims::{Claims, Register};
use crate::context::kept::{Kept, Served};
use crate::context::{Context, Error};
use crate::identity::{Identity, POOL_ID};
use crate::names::POOL_FINALIZER;
use crate::problem::Problem;

impl Kept for OpenStackFloatingIPPool {
    const ID: &'static str = POOL_ID;
    const FINALIZER: &'static str = POOL_FINALIZER;

    fn conditions(&self) -> Option<&[Condition]> {
        self.status.as_ref().map(|it| it.conditions.as_slice())
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

impl Served for OpenStackFloatingIPPool {
    const MAIN: Type = Type::OpenstackFloatingIPPoolReadyCondition;

    fn not_ready(&mut self, now: Timestamp, type_: Type, reason: Reason, message: &str) {
        super::status::not_ready(self, now, type_, reason, message);
    }
}

impl Alone for OpenStackFloatingIPPool {
    const TELLS: Kind = Kind::FloatingIps;

    fn register(claims: &Claims) -> &Register<Self> {
        &claims.pools
    }

    fn identity_ref(&self) -> &IdentityRef {
        &self.spec.identity_ref
    }

    fn is_traced(&self) -> bool {
        !addresses(self).is_empty()
    }

    /// Restores the identity by the marks on floating IPs in the status with the name of the pool.
    fn restored(&self, view: &View) -> Result<Identity, Problem> {
        let addresses = addresses(self);
        let name = self.name_any();
        let all = view.floating_ips.iter();
        let ids = all
            .filter(|ip| addresses.contains(&ip.floating_ip_address.as_str()))
            .filter_map(|ip| Some((Identity::of_pool(&**ip)?, &ip.description)))
            .filter(|(id, description)| id.pool_description(&name) == **description)
            .map(|(id, _)| id);
        let ids: BTreeSet<_> = ids.collect();
        let mut ids = ids.into_iter();
        if let (Some(id), None) = (ids.next(), ids.next()) {
            return Ok(id);
        }
        let text = format!(
            "the annotation {POOL_ID} is gone, and the floating IPs in the status do not tell it. Nothing is allocated or \
             deleted until the annotation is set to the identity at the end of the descriptions of the pool's floating \
             IPs; if there are none, remove the finalizer {POOL_FINALIZER} and the status, or create the pool anew"
        );
        Err(Problem::new(
            Type::OpenstackFloatingIPPoolReadyCondition,
            Reason::IdentityUnknown,
            text,
        ))
    }

    async fn normal(ctx: &Context, object: &Self, next: &mut Self) -> Result<Action, Error> {
        super::normal(ctx, object, next).await
    }

    async fn take_down(
        ctx: &Context,
        object: &Self,
        next: &mut Self,
    ) -> Result<Option<String>, Error> {
        super::take_down(ctx, object, next).await
    }
}

/// The addresses in the status.
fn addresses(object: &OpenStackFloatingIPPool) -> Vec<&str> {
    let status = object.status.iter();
    let all = status.flat_map(|status| status.claimed_ips.iter().chain(&status.available_ips));
    let given = &object.spec.pre_allocated_floating_ips;
    all.filter(|address| !given.contains(address))
        .map(String::as_str)
        .collect()
}
