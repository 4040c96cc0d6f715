//! Steps towards a topology, in order: references, infrastructure, control plane, workers, and the removal of surplus
//! objects.

use std::collections::BTreeSet;

use api::core::v1beta2::{Cluster, ContractReference, Topology};
use api::kube::ResourceExt;
use api::names::CLUSTER_NAME_LABEL;
use operator::patch;
use serde_json::{Value, json};
use topology::desired::{Deployment, Desired};
use topology::names::OWNED_LABEL;
use topology::upgrade::Decisions;

use super::current::Current;
use super::objects::Objects;
use super::{Obstacle, Runner, plan};
use crate::error::Doing;
use crate::owners;

/// Writes the references, the labels and the defaults of variables to the [`Cluster`]; returns true if anything was
/// missing.
///
/// The objects have computed names and are created afterwards: after an interruption, the Cluster still knows its
/// objects.
pub(super) async fn refer(
    runner: &Runner,
    cluster: &Cluster,
    topology: &Topology,
    wanted: &Desired,
) -> Result<bool, Obstacle> {
    let mut after = cluster.clone();
    let labels = after.metadata.labels.get_or_insert_default();
    labels.insert(CLUSTER_NAME_LABEL.to_owned(), cluster.name_any());
    labels.insert(OWNED_LABEL.to_owned(), String::new());
    let spec = &mut after.spec;
    spec.topology = Some(topology.clone());
    let infrastructure = plan::reference(&wanted.infrastructure);
    spec.infrastructure_ref.get_or_insert(infrastructure);
    let control_plane = plan::reference(&wanted.control_plane);
    spec.control_plane_ref.get_or_insert(control_plane);
    let api = runner.api::<Cluster>(&cluster.namespace().unwrap_or_default());
    let stored = patch::object(&api, cluster, &after).await;
    let stored = stored.doing(|| format!("changing Cluster {}", cluster.name_any()))?;
    Ok(stored.is_some())
}

/// Brings all objects of the topology nearer to the desired state.
pub(super) async fn run(
    runner: &Runner,
    cluster: &Cluster,
    current: &Current,
    wanted: &mut Desired,
    decisions: &Decisions,
) -> Result<(), Obstacle> {
    let mut objects = Objects::new(runner, cluster);
    let done = steps(&mut objects, cluster, current, wanted, decisions).await;
    let done = match done {
        Ok(()) => clean_up(&mut objects, runner, cluster, current, wanted).await,
        failed => failed,
    };
    objects.remember();
    done
}

async fn steps(
    objects: &mut Objects<'_>,
    cluster: &Cluster,
    current: &Current,
    wanted: &mut Desired,
    decisions: &Decisions,
) -> Result<(), Obstacle> {
    let infrastructure = owned(&wanted.infrastructure, cluster);
    objects.create_or_change(&infrastructure, true).await?;
    let exists = current.control_plane.is_some();
    if !plan::leaves_plane(decisions, exists) {
        let known = current.control_plane_machines();
        if let Some(machines) = &mut wanted.control_plane_machines {
            keep_name(objects, machines, known).await?;
        }
        wanted.refer();
        if let Some(machines) = &wanted.control_plane_machines {
            objects.create_or_change(machines, false).await?;
        }
        let control_plane = owned(&wanted.control_plane, cluster);
        objects.create_or_change(&control_plane, true).await?;
    }
    if let Some(check) = &wanted.control_plane_check {
        objects.create_or_change(check, false).await?;
    }
    let mut obstacles = Vec::new();
    for at in 0..wanted.deployments.len() {
        if !plan::leaves(decisions, &wanted.deployments[at]) {
            let done = workers(objects, current, wanted, at).await;
            obstacles.extend(done.err());
        }
    }
    Obstacle::all(obstacles).map_or(Ok(()), Err)
}

/// Creates or changes a MachineDeployment and its templates.
async fn workers(
    objects: &mut Objects<'_>,
    current: &Current,
    wanted: &mut Desired,
    at: usize,
) -> Result<(), Obstacle> {
    keep_names(objects, &mut wanted.deployments[at], current).await?;
    wanted.refer();
    let deployment = &wanted.deployments[at];
    objects
        .create_or_change(&deployment.bootstrap, false)
        .await?;
    objects
        .create_or_change(&deployment.machines, false)
        .await?;
    objects.create_or_change(&deployment.object, false).await?;
    if let Some(check) = &deployment.check {
        objects.create_or_change(check, false).await?;
    }
    Ok(())
}

/// Object with the [`Cluster`] as owner from its creation on, so that no object is left over after a deletion of the
/// Cluster.
fn owned(object: &Value, cluster: &Cluster) -> Value {
    let mut object = object.clone();
    object["metadata"]["ownerReferences"] = json!([owners::controller(cluster)]);
    object
}

async fn keep_names(
    objects: &mut Objects<'_>,
    deployment: &mut Deployment,
    current: &Current,
) -> Result<(), Obstacle> {
    let Some(known) = current.machines_of(&deployment.topology_name) else {
        return Ok(());
    };
    let (bootstrap, machines) = (
        known.bootstrap.config_ref.clone(),
        known.infrastructure_ref.clone(),
    );
    keep_name(objects, &mut deployment.bootstrap, bootstrap).await?;
    keep_name(objects, &mut deployment.machines, Some(machines)).await
}

/// Gives a template the name of the one in use, if the spec would not change: a new name would replace every machine.
async fn keep_name(
    objects: &mut Objects<'_>,
    template: &mut Value,
    known: Option<ContractReference>,
) -> Result<(), Obstacle> {
    let Some(known) = known else { return Ok(()) };
    let wanted = plan::reference(template);
    let same_kind = (&known.api_group, &known.kind) == (&wanted.api_group, &wanted.kind);
    if !same_kind || known.name == wanted.name {
        return Ok(());
    }
    let mut candidate = template.clone();
    candidate["metadata"]["name"] = json!(known.name);
    if !objects.differs(&candidate).await? {
        *template = candidate;
    }
    Ok(())
}

/// Deletes surplus MachineDeployments and health checks, and templates without references.
async fn clean_up(
    objects: &mut Objects<'_>,
    runner: &Runner,
    cluster: &Cluster,
    current: &Current,
    wanted: &Desired,
) -> Result<(), Obstacle> {
    let group = api::core::GROUP;
    for check in plan::surplus_checks(&current.checks, wanted) {
        let reference = ContractReference::new(group, "MachineHealthCheck", &check.name_any());
        objects.delete(&reference, check.uid()).await?;
    }
    for deployment in plan::surplus_deployments(&current.deployments, wanted) {
        let reference = ContractReference::new(group, "MachineDeployment", &deployment.name_any());
        objects.delete(&reference, deployment.uid()).await?;
    }
    templates(objects, runner, cluster, current, wanted).await
}

/// Deletes the templates of the topology without a reference and without a place in the topology. Templates of a kind
/// that neither the class nor any object has any more are deleted with the [`Cluster`].
async fn templates(
    objects: &mut Objects<'_>,
    runner: &Runner,
    cluster: &Cluster,
    current: &Current,
    wanted: &Desired,
) -> Result<(), Obstacle> {
    let needed = plan::needed_templates(current.references(), wanted);
    let kinds: BTreeSet<_> = needed
        .iter()
        .map(|(group, kind, _)| (group, kind))
        .collect();
    let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
    for (group, kind) in kinds {
        for template in runner
            .external
            .in_cluster(group, kind, &namespace, &name)
            .await?
        {
            let key = (group.clone(), kind.clone(), template.name_any());
            let ours = template.labels().contains_key(OWNED_LABEL)
                && owners::is_owned_by(&template.metadata, cluster);
            if ours && !needed.contains(&key) && template.metadata.deletion_timestamp.is_none() {
                let reference = ContractReference::new(group, kind, &key.2);
                objects.delete(&reference, template.uid()).await?;
            }
        }
    }
    Ok(())
}
