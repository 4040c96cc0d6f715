//! The identity of an OpenStackMachine and its finalizer, which are stored before anything is created.

use api::infra::v1beta2::OpenStackMachine;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use openstack::{Cloud, Kind};
use operator::decode::{self, Decoded, NotDecoded};
use operator::{finalizer, patch};

use super::inputs::{cloud, cluster_id};
use super::observed::Known;
use super::surroundings::{Needs, Surroundings};
use super::{FINALIZER, api};
use crate::cluster::apply::FRESH;
use crate::context::{Context, Error, namespace};
use crate::credentials;
use crate::evidence::{Evidence, Verdict, same_machine};
use crate::identity::{CLUSTER_ID, Identity, MACHINE_ID, Mark};
use crate::problem::Problem;
use crate::reason::{Reason, Type};

/// Stores identity and finalizer, both in one patch, and returns the mark. A lost identity is restored if it is
/// certain.
///
/// # Errors
/// A problem when the identity is uncertain, or is that of another object, or when the machine was created for another
/// cluster.
pub(super) async fn prepare(
    ctx: &Context,
    object: &OpenStackMachine,
    next: &mut OpenStackMachine,
    around: &Surroundings,
    needs: &Needs<'_>,
) -> Result<Mark, Error> {
    let known = match Identity::of(object, MACHINE_ID) {
        Some(id) => Some(Mark::machine(needs.cluster_id, id)),
        None => recovered(ctx, object, around).await?,
    };
    let mark = known.unwrap_or_else(|| Mark::machine(needs.cluster_id, Identity::new()));
    let recorded = Identity::of(object, CLUSTER_ID).unwrap_or(mark.cluster);
    if let Some(other) = [mark.cluster, recorded]
        .into_iter()
        .find(|id| *id != needs.cluster_id)
    {
        return Err(of_another_cluster(other, needs).into());
    }
    let mut wanted = object.clone();
    let id = mark.machine.unwrap_or_default();
    let annotations = wanted.annotations_mut();
    annotations.insert(MACHINE_ID.to_owned(), id.to_string());
    // In a forced deletion, the OpenStackCluster can be gone before the machine, whose mark is needed until its end.
    annotations.insert(CLUSTER_ID.to_owned(), mark.cluster.to_string());
    if around.is_control_plane() {
        // KCP sets it on its machines; the controller of the cluster selects control plane machines by it.
        wanted
            .labels_mut()
            .entry(api::names::CONTROL_PLANE_LABEL.to_owned())
            .or_default();
    }
    if !finalizer::has(object, FINALIZER) {
        wanted.finalizers_mut().push(FINALIZER.to_owned());
    }
    if wanted.metadata != object.metadata {
        let stored = patch::object(&api(ctx, object), object, &wanted).await;
        let stored = stored.map_err(Error::kubernetes("storing identity and finalizer"))?;
        next.metadata = stored.unwrap_or(wanted).metadata;
    }
    Ok(mark)
}

/// The mark of a machine that is being deleted; `None` when nothing was created for it.
pub(super) async fn mark(
    ctx: &Context,
    object: &OpenStackMachine,
    around: &Surroundings,
) -> Result<Option<Mark>, Error> {
    match (Identity::of(object, MACHINE_ID), cluster_id(object, around)) {
        (None, _) => recovered(ctx, object, around).await,
        (Some(machine), Some(cluster)) => Ok(Some(Mark::machine(cluster, machine))),
        (Some(_), None) => {
            let text = "the OpenStackCluster is gone, and with it what tells this machine's \
                        resources: delete them by hand, then remove the finalizer";
            Err(Problem::new(Type::Deleting, Reason::IdentityUnknown, text).into())
        }
    }
}

/// The mark of a machine without the annotation; `None` when nothing was created for it yet.
async fn recovered(
    ctx: &Context,
    object: &OpenStackMachine,
    around: &Surroundings,
) -> Result<Option<Mark>, Error> {
    let has_finalizer = finalizer::has(object, FINALIZER);
    let known = Known::of(object);
    let verdict = |view: &openstack::View| {
        let evidence = Evidence::of_machine(&known, view);
        evidence.verdict(MACHINE_ID, has_finalizer)
    };
    if verdict(&openstack::View::default()) == Verdict::New {
        return Ok(None);
    }
    let cloud: Cloud = cloud(ctx, object, around.openstack_cluster.as_ref()).await?;
    let kinds = [Kind::Servers, Kind::Ports];
    let view = cloud.inventory.view(&kinds, FRESH).await;
    let problem = |why| Problem::new(Type::Instance, Reason::IdentityUnknown, why);
    let mark = match verdict(&*view.map_err(|error| credentials::listing(&error))?) {
        Verdict::New => return Ok(None),
        Verdict::Known(mark) => mark,
        Verdict::Unknown(why) => return Err(problem(why).into()),
    };
    let machines =
        Api::<Decoded<OpenStackMachine>>::namespaced(ctx.client.clone(), &namespace(object));
    let machines = decode::list(&machines, &ListParams::default()).await;
    let machines = machines.map_err(Error::kubernetes("listing OpenStackMachines"))?;
    NotDecoded::check::<OpenStackMachine>(&machines.undecodable, |_| true)?;
    let id = mark.machine.unwrap_or_default();
    match same_machine(object, id, &machines.objects) {
        None => Ok(Some(mark)),
        Some(other) => Err(problem(format!(
            "the annotation {MACHINE_ID} is gone, and what the status names belongs to \
             OpenStackMachine {}: delete one of the two and remove its finalizer {FINALIZER}",
            other.name_any()
        ))
        .into()),
    }
}

fn of_another_cluster(recorded: Identity, needs: &Needs<'_>) -> Problem {
    let text = format!(
        "the machine was created for the cluster with identity {recorded}, and OpenStackCluster {} \
         has {}: delete the Machine (its server is found by the machine's annotations)",
        needs.infra.name_any(),
        needs.cluster_id
    );
    Problem::new(Type::Instance, Reason::IdentityUnknown, text)
}
