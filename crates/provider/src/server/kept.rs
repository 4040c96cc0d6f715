//! Server as an object with an identity of its own.

use api::conditions::{Reason, Type};
use api::infra::v1alpha1::OpenStackServer;
use api::infra::v1beta2::IdentityRef;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use openstack::{Kind, View};

use super::mark;
use crate::alone::Alone;
use crate::claims::{Claims, Register};
use crate::cluster::adoption::owner;
use crate::context::kept::{Kept, Served};
use crate::context::{Context, Error};
use crate::identity::{CLUSTER_ID, Identity, MACHINE_ID, Mark};
use crate::names::SERVER_FINALIZER;
use crate::problem::Problem;

impl Kept for OpenStackServer {
    const ID: &'static str = MACHINE_ID;
    const FINALIZER: &'static str = SERVER_FINALIZER;

    fn conditions(&self) -> Option<&[Condition]> {
        self.status.as_ref().map(|it| it.conditions.as_slice())
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

impl Served for OpenStackServer {
    const MAIN: Type = Type::InstanceReady;

    fn not_ready(&mut self, now: Timestamp, type_: Type, reason: Reason, message: &str) {
        super::status::not_ready(self, now, type_, reason, message);
    }
}

impl Alone for OpenStackServer {
    const TELLS: Kind = Kind::Servers;

    fn register(claims: &Claims) -> &Register<Self> {
        &claims.servers
    }

    fn identity_ref(&self) -> &IdentityRef {
        &self.spec.identity_ref
    }

    fn refused(&self) -> Option<Problem> {
        let is_of_bastion =
            Identity::for_object(self, MACHINE_ID).is_some_and(Identity::is_of_bastion);
        let of_bastion = || is_of_bastion.then(|| unknown("has the identity of a bastion"));
        of_another_provider(self).or_else(of_bastion)
    }

    fn is_traced(&self) -> bool {
        recorded(self).is_some()
    }

    /// Restores the identity by the tags of the server in the status, if it has the name of the object.
    fn restored(&self, view: &View) -> Result<Identity, Problem> {
        let server = recorded(self).and_then(|id| view.servers.get(id));
        let server = server.filter(|server| server.name == self.name_any());
        let found = server.and_then(|server| Mark::in_tags(&server.tags));
        let id = found.filter(|found| mark(found.cluster) == *found);
        id.map(|found| found.cluster)
            .ok_or_else(|| unknown("is gone, and the server in the status does not tell it"))
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

/// [`Problem`] of an object as created by the Go provider for each machine and bastion; here machines and bastions have
/// servers without such objects.
fn of_another_provider(object: &OpenStackServer) -> Option<Problem> {
    let owner = owner(object)?;
    let (kind, name) = (&owner.kind, &owner.name);
    let text = match Identity::for_object(object, CLUSTER_ID) {
        Some(_) => format!("the server is that of {kind} {name}, with which this object goes"),
        None => {
            format!("another provider has created this for {kind} {name}: it is left alone")
        }
    };
    Some(Problem::new(
        Type::InstanceReady,
        Reason::IdentityUnknown,
        text,
    ))
}

fn recorded(object: &OpenStackServer) -> Option<&String> {
    object.status.as_ref()?.instance_id.as_ref()
}

fn unknown(why: &str) -> Problem {
    let text = format!(
        "the annotation {MACHINE_ID} {why}. Nothing is created or deleted until the annotation is set to the identity \
         in the tags of the server; what another provider created is not taken over; if there is nothing in the cloud, \
         remove the finalizer {SERVER_FINALIZER} and create the object anew"
    );
    Problem::new(Type::InstanceReady, Reason::IdentityUnknown, text)
}
