//! Class of a Cluster, its templates, and the topology with defaults.

use std::sync::Arc;

use api::core::v1beta2::{Cluster, ClusterClass, Topology, VersionedReference};
use api::kube::ResourceExt;
use api::kube::api::DynamicObject;
use api::kube::discovery::ApiResource;
use operator::client::Api;
use serde_json::{Value, json};
use topology::cluster::{defaulted, incompatible, problems};
use topology::desired::{Templates, key};
use topology::variables;

use super::{Obstacle, Runner};
use crate::error::Doing;
use crate::external::{Contract, Kind};
use crate::references::contract;

/// Input for the objects of a Cluster.
pub(super) struct Blueprint {
    pub(super) class: Arc<ClusterClass>,
    /// [`Topology`] with the defaults of the class's variables.
    pub(super) topology: Topology,
    pub(super) templates: Templates,
    /// True if the control plane is written in a version of the contract v1beta1.
    pub(super) older_plane: bool,
}

/// Namespace and name of the class.
pub(super) fn class_of(cluster: &Cluster, topology: &Topology) -> (String, String) {
    let reference = &topology.class_ref;
    let namespace = reference.namespace.clone().or_else(|| cluster.namespace());
    (namespace.unwrap_or_default(), reference.name.clone())
}

impl Blueprint {
    /// Reads the class and its templates. `reached` is the version of the control plane, if any.
    pub(super) async fn fetch(
        runner: &Runner,
        cluster: &Cluster,
        topology: &Topology,
        reached: Option<&str>,
    ) -> Result<Self, Obstacle> {
        let class = usable(runner, cluster, topology)?;
        let topology = judged(cluster, &class, topology, reached)?;
        let mut templates = Templates::new();
        for (_, reference) in class.templates() {
            if templates.contains_key(&key(reference)) {
                continue;
            }
            // A missing template is reported when needed.
            if let Some(template) = template(runner, &class, reference).await? {
                templates.insert(key(reference), template);
            }
        }
        let of_plane = &class.spec.control_plane.template_ref;
        let plain = contract(of_plane);
        let kind = runner.external.kind(&plain.api_group, &plain.kind).await?;
        Ok(Self {
            older_plane: is_older(&kind, of_plane),
            topology,
            templates,
            class,
        })
    }
}

/// True for a reference to a version of the contract v1beta1.
fn is_older(kind: &Kind, reference: &VersionedReference) -> bool {
    kind.resource.api_version != reference.api_version || kind.contract == Contract::V1Beta1
}

/// Class, once its controller has found all templates.
fn usable(
    runner: &Runner,
    cluster: &Cluster,
    topology: &Topology,
) -> Result<Arc<ClusterClass>, Obstacle> {
    let (namespace, name) = class_of(cluster, topology);
    let class = runner.classes.get(&namespace, &name).ok_or_else(|| {
        Obstacle::Failed(format!(
            "ClusterClass {namespace}/{name} does not exist: create it, or change spec.topology.classRef"
        ))
    })?;
    let observed = class
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    if observed != class.metadata.generation {
        return Err(Obstacle::NotReconciled(format!(
            "ClusterClass {namespace}/{name} is not reconciled: its status.observedGeneration is not its metadata.generation. If this lasts, see the conditions of the ClusterClass"
        )));
    }
    Ok(class)
}

/// [`Topology`] with defaults, validated against its class: the class may be younger than the [`Cluster`].
fn judged(
    cluster: &Cluster,
    class: &ClusterClass,
    topology: &Topology,
    reached: Option<&str>,
) -> Result<Topology, Obstacle> {
    let lines = |errors: Vec<api::admission::FieldError>| {
        let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
        Obstacle::Failed(lines.join("\n"))
    };
    let definitions = variables::definitions(class.variables()).map_err(lines)?;
    let topology = defaulted(topology, &definitions);
    let mut errors = problems(class, &definitions, &topology, reached);
    errors.extend(incompatible(class, &cluster.spec));
    match errors.is_empty() {
        true => Ok(topology),
        false => Err(lines(errors)),
    }
}

/// Template in the version of the class's reference, the version for which the patches are written.
async fn template(
    runner: &Runner,
    class: &ClusterClass,
    reference: &VersionedReference,
) -> Result<Option<Value>, Obstacle> {
    let (plain, namespace) = (contract(reference), class.namespace().unwrap_or_default());
    let kind = runner.external.kind(&plain.api_group, &plain.kind).await?;
    if kind.resource.api_version == reference.api_version {
        let found = runner.external.get(&plain, &namespace).await?;
        return Ok(found.map(|found| json!(*found)));
    }
    let resource = in_version(&kind.resource, &reference.api_version);
    let api: Api<DynamicObject> =
        Api::namespaced_with(runner.client.clone(), &namespace, &resource);
    let found = api.get_opt(&plain.name).await;
    let found = found.doing(|| format!("reading {} {namespace}/{}", plain.kind, plain.name))?;
    Ok(found.map(|found| json!(found)))
}

/// Same kind in another version.
pub(super) fn in_version(resource: &ApiResource, api_version: &str) -> ApiResource {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    ApiResource {
        api_version: api_version.to_owned(),
        version: version.to_owned(),
        ..resource.clone()
    }
}
