//! [`OpenStackMachineTemplate`]: resources of a machine in the status, for scaling from zero, and allowed address pairs of
//! existing machines.
//!
//! Allowed address pairs are the only mutable field of a template. Each cloned machine gets the pairs once per change. An
//! annotation, named as in the Go provider, records the pairs, so that later changes of a machine stay.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{self, Reason, Status, Type, Verdict};
use api::core::v1beta2::Cluster;
use api::infra::v1beta2::{
    IdentityRef, NodeInfo, OpenStackCluster, OpenStackMachine, OpenStackMachineSpec,
    OpenStackMachineTemplate,
};
use api::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use api::names::{
    CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION, CLUSTER_NAME_LABEL,
};
use kube::ResourceExt;
use kube::api::ListParams;
use kube::runtime::controller::Action;
use openstack::compute::Flavor;
use openstack::image::Image;
use openstack::{Kind, View};
use operator::client::Api;
use operator::{decode, patch};
use tracing::instrument;

use crate::context::{
    self, AT_REST, Context, Error, is_deleting, is_managed_elsewhere, is_paused, namespace,
};
use crate::credentials;
use crate::images;
use crate::problem::Problem;
use crate::recheck::in_lists_of_now;
use crate::resolve::{self, NotFound};

/// Annotation of an [`OpenStackMachine`] with the pairs of the template, named as in the Go provider.
const APPLIED: &str = "infrastructure.cluster.x-k8s.io/osmt-allowed-address-pairs";
const GROUP_KIND: &str = "OpenStackMachineTemplate.infrastructure.cluster.x-k8s.io";

/// Reconciles one [`OpenStackMachineTemplate`] of a [`Cluster`].
#[instrument(skip_all, fields(object = %object.name_any()))]
pub(crate) async fn reconcile(
    object: Arc<OpenStackMachineTemplate>,
    ctx: Arc<Context>,
) -> Result<Action, Error> {
    if is_managed_elsewhere(object.as_ref()) || is_deleting(object.as_ref()) {
        return Ok(Action::await_change());
    }
    let cluster = context::owner_cluster(&ctx.client, object.as_ref()).await?;
    let Some(cluster) = cluster.filter(|it| !is_paused(object.as_ref(), Some(it))) else {
        return Ok(context::settled());
    };
    follow(&ctx, &object, &cluster).await?;
    let mut next = OpenStackMachineTemplate::clone(&object);
    let result = resources(&ctx, &object, &cluster, &mut next).await;
    if ctx.is_of_shutdown(&result) {
        return result.map(|()| context::settled());
    }
    show(&ctx, &object, next, &result).await?;
    result.map(|()| context::settled())
}

/// Writes the resources of a machine into `next`.
async fn resources(
    ctx: &Context,
    object: &OpenStackMachineTemplate,
    cluster: &Cluster,
    next: &mut OpenStackMachineTemplate,
) -> Result<(), Error> {
    let spec = &object.spec.template.spec;
    let Some(identity_ref) = identity_ref(ctx, spec, cluster).await? else {
        return Ok(());
    };
    let space = namespace(object);
    let cloud = credentials::cloud(ctx.access(), &space, &identity_ref).await?;
    let spec = images::named(ctx, &space, spec).await?;
    let view = cloud
        .inventory
        .view(&[Kind::Flavors, Kind::Images], AT_REST)
        .await;
    let view = view.map_err(|error| credentials::listing(&error))?;
    let project = format!("cloud {}", cloud.session.config().name);
    let find = |view: &Arc<View>| found(&spec, view, &project);
    let ((flavor, image), _) = in_lists_of_now(&cloud, view, |view| view, find).await?;
    let status = next.status.get_or_insert_default();
    status.capacity = capacity(&spec, &flavor);
    let system = image.property("os_type").map(str::to_owned);
    status.node_info = system.map(|system| NodeInfo {
        operating_system: Some(system),
    });
    Ok(())
}

/// The credentials of the machines; `None` while the cluster has none.
async fn identity_ref(
    ctx: &Context,
    spec: &OpenStackMachineSpec,
    cluster: &Cluster,
) -> Result<Option<IdentityRef>, Error> {
    if let Some(own) = &spec.identity_ref {
        return Ok(Some(own.clone()));
    }
    let reference = cluster.spec.infrastructure_ref.as_ref();
    let Some(reference) = reference.filter(|it| it.kind == "OpenStackCluster") else {
        return Ok(None);
    };
    let api = Api::<OpenStackCluster>::namespaced(ctx.client.clone(), &namespace(cluster));
    let infra = api.get_opt(&reference.name).await;
    let infra = infra.map_err(Error::kubernetes("reading the OpenStackCluster"))?;
    Ok(infra.map(|infra| infra.spec.identity_ref))
}

fn found(
    spec: &OpenStackMachineSpec,
    view: &View,
    project: &str,
) -> Result<(Arc<Flavor>, Arc<Image>), Problem> {
    let wrong = |field: &'static str| {
        move |why: NotFound| {
            let why = why.in_field(field);
            why.problem(Type::Ready, Reason::DependencyFailed)
        }
    };
    let flavor = resolve::flavor(view, &spec.flavor, project).map_err(wrong("flavor"))?;
    let image = resolve::image(view, &spec.image, project).map_err(wrong("image"))?;
    Ok((Arc::clone(flavor), Arc::clone(image)))
}

/// Resources of a machine by the names of the cluster autoscaler, as in the Go provider.
fn capacity(spec: &OpenStackMachineSpec, flavor: &Flavor) -> BTreeMap<String, Quantity> {
    let root = spec.root_volume.as_ref();
    let root = root.map_or(flavor.disk, |volume| i64::from(volume.size_gib));
    let all = [
        ("cpu", flavor.vcpus, ""),
        ("memory", flavor.ram, "Mi"),
        ("ephemeral-storage", flavor.ephemeral, "Gi"),
        ("storage", root, "Gi"),
    ];
    // What is not known, such as the disk of a flavor that takes the size of the image, is no zero.
    let known = all.into_iter().filter(|(_, number, _)| *number > 0);
    known
        .map(|(name, number, unit)| (name.to_owned(), Quantity(format!("{number}{unit}"))))
        .collect()
}

/// Stores the status, with the problem in the condition Ready.
async fn show(
    ctx: &Context,
    object: &OpenStackMachineTemplate,
    mut next: OpenStackMachineTemplate,
    result: &Result<(), Error>,
) -> Result<(), Error> {
    let (holds, reason, message) = match result {
        Ok(()) => (Status::True, Reason::Ready, ""),
        Err(Error::Problem(problem)) => (Status::False, problem.reason, problem.message.as_str()),
        Err(_) => return Ok(()),
    };
    let generation = object.metadata.generation;
    let status = next.status.get_or_insert_default();
    let verdict = Verdict::new(Type::Ready, holds, reason).because(message);
    conditions::set(&mut status.conditions, verdict, generation, ctx.now());
    let before = object.status.as_ref();
    let before = before.map(|status| status.conditions.as_slice());
    context::steady(before, Some(&mut status.conditions));
    let api = Api::<OpenStackMachineTemplate>::namespaced(ctx.client.clone(), &namespace(object));
    let stored = patch::status(&api, object, &next).await;
    stored.map_err(Error::kubernetes("storing the status"))?;
    Ok(())
}

/// Writes changed allowed address pairs to the machines of the template. An unchanged template causes no list of machines.
async fn follow(
    ctx: &Context,
    object: &OpenStackMachineTemplate,
    cluster: &Cluster,
) -> Result<(), Error> {
    if object.metadata.generation.unwrap_or_default() < 2 {
        return Ok(());
    }
    let machines = Api::<OpenStackMachine>::namespaced(ctx.client.clone(), &namespace(object));
    let name = cluster.name_any();
    let labelled = ListParams::default().labels(&format!("{CLUSTER_NAME_LABEL}={name}"));
    let found = decode::list(&machines, &labelled).await;
    let found = found.map_err(Error::kubernetes("listing machines"))?;
    let template = object.name_any();
    for machine in found.objects.iter().filter(|it| is_of(it, &template)) {
        if let Some(after) = followed(machine, &object.spec.template.spec) {
            let stored = patch::object(&machines, machine, &after).await;
            stored.map_err(Error::kubernetes("changing the allowed address pairs"))?;
        }
    }
    Ok(())
}

fn is_of(machine: &OpenStackMachine, template: &str) -> bool {
    let note = |name: &str| machine.annotations().get(name).map(String::as_str);
    note(CLONED_FROM_NAME_ANNOTATION) == Some(template)
        && note(CLONED_FROM_GROUP_KIND_ANNOTATION) == Some(GROUP_KIND)
        && !is_deleting(machine)
}

/// Machine with the pairs of the template; `None` if the annotation has the same pairs.
fn followed(
    machine: &OpenStackMachine,
    template: &OpenStackMachineSpec,
) -> Option<OpenStackMachine> {
    let ports = template.ports.iter();
    let pairs: Vec<_> = ports
        .map(|port| &port.fields.allowed_address_pairs)
        .collect();
    let text = serde_json::to_string(&pairs).ok()?;
    let is_alike = machine.spec.ports.len() == pairs.len();
    if !is_alike || machine.annotations().get(APPLIED) == Some(&text) {
        return None;
    }
    let mut after = machine.clone();
    for (port, pairs) in after.spec.ports.iter_mut().zip(pairs) {
        port.fields.allowed_address_pairs.clone_from(pairs);
    }
    after.annotations_mut().insert(APPLIED.to_owned(), text);
    Some(after)
}

#[cfg(test)]
mod tests;
