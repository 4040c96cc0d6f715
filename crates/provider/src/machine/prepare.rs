//! Identity of an [`OpenStackMachine`] and its finalizer, stored before anything is created.
//!
//! A machine acts only with a mark under three conditions: the cluster in the mark is the machine's own
//! [`OpenStackCluster`], no other OpenStackCluster has the identity of this cluster, and no other OpenStackMachine the
//! identity of the machine. Ids in status and in providerID, which anybody may have written, only tell where to look
//! for a lost mark.

use api::conditions::{Reason, Type};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use openstack::{Cloud, Kind};
use operator::finalizer;

use super::FINALIZER;
use super::inputs::cloud;
use super::surroundings::{Needs, Surroundings};
use crate::claims::Claims;
use crate::context::kept::{self, Kept, Served};
use crate::context::{Context, Error, FRESH};
use crate::credentials;
use crate::evidence::{Evidence, Verdict};
use crate::identity::{CLUSTER_ID, Identity, MACHINE_ID, Mark};
use crate::problem::Problem;

impl Kept for OpenStackMachine {
    const ID: &'static str = MACHINE_ID;
    const FINALIZER: &'static str = FINALIZER;

    fn conditions(&self) -> Option<&[Condition]> {
        self.status.as_ref().map(|it| it.conditions.as_slice())
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

impl Served for OpenStackMachine {
    const MAIN: Type = Type::InstanceReady;

    fn not_ready(&mut self, now: Timestamp, type_: Type, reason: Reason, message: &str) {
        super::status::not_ready(self, now, type_, reason, message);
    }
}

/// Stores identity and finalizer, both in one patch, and returns the [`Mark`]. A lost identity is restored if certain.
///
/// # Errors
/// A [`Problem`] when the identity is uncertain, or belongs to another object, or when the machine was created for
/// another cluster.
pub(super) async fn prepare(
    ctx: &Context,
    object: &OpenStackMachine,
    next: &mut OpenStackMachine,
    around: &Surroundings,
    needs: &Needs<'_>,
) -> Result<Mark, Error> {
    let belongs_to = Some((needs.infra, needs.cluster_id));
    if let Some(mark) = proven(&ctx.claims, object, belongs_to)? {
        store(ctx, object, next, around, mark).await?;
        return Ok(mark);
    }
    if let Some(mark) = recovered(ctx, object, needs.infra, needs.cluster_id).await? {
        return restore(ctx, object, next, around, mark).await;
    }
    let id = ctx.claims.machines.mint();
    let mark = Mark::machine(needs.cluster_id, id);
    let stored = store(ctx, object, next, around, mark).await;
    stored.inspect_err(|_| ctx.claims.machines.discard(id))?;
    Ok(mark)
}

/// [`Mark`] of a machine that is being deleted; `None` when nothing was created for the machine.
///
/// # Errors
/// As [`prepare`].
pub(super) async fn mark(
    ctx: &Context,
    object: &OpenStackMachine,
    next: &mut OpenStackMachine,
    around: &Surroundings,
) -> Result<Option<Mark>, Error> {
    let infra = around.openstack_cluster.as_ref();
    let belongs_to =
        infra.and_then(|infra| Some((infra, Identity::for_object(infra, CLUSTER_ID)?)));
    if let Some(mark) = proven(&ctx.claims, object, belongs_to)? {
        return Ok(Some(mark));
    }
    let Some((infra, cluster)) = belongs_to else {
        return match restored(object, &openstack::View::default()) {
            Verdict::New => Ok(None),
            _ => Err(without_cluster(infra).into()),
        };
    };
    match recovered(ctx, object, infra, cluster).await? {
        None => Ok(None),
        Some(mark) => restore(ctx, object, next, around, mark).await.map(Some),
    }
}

/// Valid [`Mark`] of a machine with the annotation; `None` without the annotation.
///
/// # Errors
/// A [`Problem`] when a condition of this module is not met.
pub(crate) fn proven(
    claims: &Claims,
    object: &OpenStackMachine,
    belongs_to: Option<(&OpenStackCluster, Identity)>,
) -> Result<Option<Mark>, Error> {
    let id = Identity::for_object(object, MACHINE_ID);
    let recorded = Identity::for_object(object, CLUSTER_ID);
    let Some((infra, cluster)) = belongs_to else {
        return match id.or(recorded) {
            None => Ok(None),
            Some(_) => Err(without_cluster(None).into()),
        };
    };
    if let Some(other) = recorded.filter(|id| *id != cluster) {
        return Err(of_another_cluster(other, infra, cluster).into());
    }
    claims.clusters.sole(infra, cluster)?;
    let Some(id) = id else {
        return Ok(None);
    };
    if id.is_of_bastion() {
        let text = format!("the annotation {MACHINE_ID} has the identity of a bastion: correct it");
        return Err(Problem::new(Type::InstanceReady, Reason::IdentityUnknown, text).into());
    }
    claims.machines.sole(object, id)?;
    Ok(Some(Mark::machine(cluster, id)))
}

async fn store(
    ctx: &Context,
    object: &OpenStackMachine,
    next: &mut OpenStackMachine,
    around: &Surroundings,
    mark: Mark,
) -> Result<(), Error> {
    let with = |wanted: &mut OpenStackMachine| {
        // It tells for whom the machine was created when the OpenStackCluster is replaced by another one.
        let cluster = mark.cluster.to_string();
        wanted
            .annotations_mut()
            .insert(CLUSTER_ID.to_owned(), cluster);
        if around.is_control_plane() {
            // KCP sets it on its machines; the controller of the cluster selects control plane machines by it.
            let label = api::names::CONTROL_PLANE_LABEL.to_owned();
            wanted.labels_mut().entry(label).or_default();
        }
    };
    let id = mark.machine.unwrap_or_default();
    let stored = kept::store(ctx, object, id, with).await?;
    next.metadata = stored.metadata;
    Ok(())
}

/// Stores a lost identity. The machine may act once the watch of identities has shown that no other object has it.
async fn restore(
    ctx: &Context,
    object: &OpenStackMachine,
    next: &mut OpenStackMachine,
    around: &Surroundings,
    mark: Mark,
) -> Result<Mark, Error> {
    store(ctx, object, next, around, mark).await?;
    Err(Error::Behind)
}

/// [`Mark`] of a machine without the annotation; `None` when nothing was created for the machine yet.
async fn recovered(
    ctx: &Context,
    object: &OpenStackMachine,
    infra: &OpenStackCluster,
    cluster: Identity,
) -> Result<Option<Mark>, Error> {
    if restored(object, &openstack::View::default()) == Verdict::New {
        return Ok(None);
    }
    let cloud: Cloud = cloud(ctx, object, Some(infra)).await?;
    let view = cloud
        .inventory
        .view(&[Kind::Servers, Kind::Ports], FRESH)
        .await;
    let view = view.map_err(|error| credentials::listing(&error))?;
    let mark = match restored(object, &view) {
        Verdict::New => return Ok(None),
        Verdict::Known(mark) => mark,
        Verdict::Unknown(why) => {
            return Err(Problem::new(Type::InstanceReady, Reason::IdentityUnknown, why).into());
        }
    };
    may_restore(&ctx.claims, object, (infra, cluster), mark)?;
    Ok(Some(mark))
}

/// [`Verdict`] of a view on the mark of a machine without the annotation.
pub(crate) fn restored(object: &OpenStackMachine, view: &openstack::View) -> Verdict {
    let evidence = Evidence::of_machine(object, view);
    evidence.verdict(MACHINE_ID, finalizer::has(object, FINALIZER))
}

/// Rejects a mark of another cluster, or one that another object has.
pub(crate) fn may_restore(
    claims: &Claims,
    object: &OpenStackMachine,
    (infra, cluster): (&OpenStackCluster, Identity),
    mark: Mark,
) -> Result<(), Error> {
    if mark.cluster != cluster {
        return Err(of_another_cluster(mark.cluster, infra, cluster).into());
    }
    claims.clusters.sole(infra, cluster)?;
    claims
        .machines
        .free(object, mark.machine.unwrap_or_default())?;
    Ok(())
}

/// [`Problem`] of a machine that may have resources, without proof of which.
fn without_cluster(infra: Option<&OpenStackCluster>) -> Problem {
    let why = match infra {
        Some(infra) => format!(
            "OpenStackCluster {} has no identity (yet)",
            infra.name_any()
        ),
        None => "the OpenStackCluster of the machine is gone".to_owned(),
    };
    let text = format!(
        "{why}, and with it the proof which resources are the machine's: nothing is created, changed \
         or deleted. Delete its server, ports and volumes by hand, then remove the finalizer {FINALIZER}"
    );
    Problem::new(Type::InstanceReady, Reason::IdentityUnknown, text)
}

fn of_another_cluster(recorded: Identity, infra: &OpenStackCluster, id: Identity) -> Problem {
    let text = format!(
        "the machine, or the server that it names, was created for the cluster with identity \
         {recorded}, and OpenStackCluster {} has {id}: nothing of it is created, changed or deleted. \
         Delete the Machine, and what was made for it (servers with the tag ferrostack:cluster={recorded}) \
         by hand if no other object uses it, then remove the finalizer {FINALIZER}",
        infra.name_any(),
    );
    Problem::new(Type::InstanceReady, Reason::IdentityUnknown, text)
}
