//! Objects of a Cluster that has a topology.
//!
//! Templates of the class are patched first. The objects are then created from the templates, with the fields of the
//! topology and the class set last, so that no patch can undo them. Names, labels, annotations and owners are
//! upstream's. Pure: [`desired`] turns an [`Input`] into a [`Desired`].
//!
//! - `plane`: the control plane
//! - `workers`: MachineDeployments
//! - `health`: MachineHealthChecks

use std::collections::BTreeMap;

use api::core::v1beta2::{Cluster, ClusterClass, Topology, VersionedReference};
use api::kube::ResourceExt;
use api::names::{
    CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION, CLUSTER_NAME_LABEL,
};
use serde_json::{Map, Value, json};

use crate::builtin::{self, Metadata};
use crate::class::named;
use crate::cluster::overrides;
use crate::names::{self, OWNED_LABEL};
use crate::patches::{self, PatchFailed, Target, TemplateRole};
use crate::upgrade::Decisions;

mod health;
mod plane;
mod taints;
mod workers;

pub use workers::Deployment;

/// Templates of a class, by reference (see [`key`]).
pub type Templates = BTreeMap<(String, String, String), Value>;

/// Returns the key of a template in [`Templates`].
pub fn key(reference: &VersionedReference) -> (String, String, String) {
    let VersionedReference {
        api_version,
        kind,
        name,
    } = reference;
    (api_version.clone(), kind.clone(), name.clone())
}

/// Input of [`desired`].
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Cluster.
    pub cluster: &'a Cluster,
    /// Class of the Cluster.
    pub class: &'a ClusterClass,
    /// Topology of the Cluster, with defaults.
    pub topology: &'a Topology,
    /// Templates of the class.
    pub templates: &'a Templates,
    /// Names of the existing MachineDeployments, by their names in the topology.
    pub deployments: &'a BTreeMap<String, String>,
    /// Versions to use, and upgrades that wait.
    pub decisions: &'a Decisions,
    /// True if the control plane follows the contract v1beta1.
    pub older_plane: bool,
}

/// Objects of a Cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Infrastructure of the cluster as a whole.
    pub infrastructure: Value,
    /// Control plane, without the reference to the template of the machines; [`Desired::refer`] sets the reference.
    pub control_plane: Value,
    /// Template of the control plane machines.
    pub control_plane_machines: Option<Value>,
    /// Health check of the control plane machines.
    pub control_plane_check: Option<Value>,
    /// MachineDeployments, in the order of the topology.
    pub deployments: Vec<Deployment>,
    older_plane: bool,
}

/// Reason why the objects cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesiredError {
    /// Failed patch.
    #[error(transparent)]
    Patch(#[from] PatchFailed),
    /// Invalid class, template or name.
    #[error("{0}")]
    Class(String),
}

/// Computes the objects of a Cluster.
///
/// # Errors
/// A template is missing or malformed, a patch fails, or a name cannot be rendered.
pub fn desired(input: &Input<'_>) -> Result<Desired, DesiredError> {
    let mut targets = Vec::new();
    let spec = &input.class.spec;
    let infrastructure_name = input.infrastructure_name()?;
    let plane_name = input.plane_name()?;
    targets.push(input.target(
        TemplateRole::InfrastructureCluster,
        &spec.infrastructure.template_ref,
        None,
        &[],
    )?);
    let plane = input.topology.control_plane.clone().unwrap_or_default();
    let given = overrides(plane.variables.as_ref());
    let metadata = plane::metadata(input);
    let variables = builtin::control_plane(
        &plane_name,
        &input.decisions.control_plane,
        plane.replicas,
        &metadata,
    );
    let builtin = Some(("controlPlane", variables));
    let of_plane = &spec.control_plane;
    targets.push(input.target(
        TemplateRole::ControlPlane,
        &of_plane.template_ref,
        builtin.clone(),
        given,
    )?);
    if let Some(machines) = &of_plane.machine_infrastructure {
        targets.push(input.target(
            TemplateRole::ControlPlaneMachines,
            &machines.template_ref,
            builtin,
            given,
        )?);
    }
    let first_worker = targets.len();
    let deployments = workers::plans(input)?;
    for deployment in &deployments {
        targets.extend(deployment.targets(input)?);
    }
    let values = input.topology.variables.as_deref().unwrap_or_default();
    let cluster = builtin::cluster(input.cluster);
    patches::apply(input.class.patches(), &mut targets, values, &cluster)?;
    let workers = targets.split_off(first_worker);
    let mut patched = targets.into_iter().map(|target| target.object);
    let mut take = || patched.next().unwrap_or_default();
    let infrastructure = input.object(
        &take(),
        &spec.infrastructure.template_ref,
        infrastructure_name,
        &Metadata::default(),
    )?;
    let control_plane = plane::object(input, &take(), plane_name, &metadata)?;
    let control_plane_machines = of_plane.machine_infrastructure.as_ref().map(|machines| {
        let prefix = input.cluster.name_any();
        input.template(&take(), &machines.template_ref, &prefix, None)
    });
    let control_plane_check = health::of_plane(input, &control_plane);
    let pairs = workers.chunks(2).zip(&deployments);
    let deployments = pairs.map(|(pair, plan)| plan.finish(input, pair)).collect();
    let mut desired = Desired {
        infrastructure,
        control_plane,
        control_plane_machines,
        control_plane_check,
        deployments,
        older_plane: input.older_plane,
    };
    desired.refer();
    Ok(desired)
}

impl Desired {
    /// Sets the references to the templates by name; the caller may have changed the names.
    pub fn refer(&mut self) {
        if let Some(machines) = &self.control_plane_machines {
            plane::refer(&mut self.control_plane, machines, self.older_plane);
        }
        self.deployments.iter_mut().for_each(Deployment::refer);
    }
}

impl Input<'_> {
    fn uid(&self) -> String {
        self.cluster.uid().unwrap_or_default()
    }

    fn infrastructure_name(&self) -> Result<String, DesiredError> {
        if let Some(known) = &self.cluster.spec.infrastructure_ref {
            return Ok(known.name.clone());
        }
        let naming = self.class.spec.infrastructure.naming.as_ref();
        self.generated(
            naming.and_then(|naming| naming.template.as_deref()),
            "infrastructure",
        )
    }

    fn plane_name(&self) -> Result<String, DesiredError> {
        if let Some(known) = &self.cluster.spec.control_plane_ref {
            return Ok(known.name.clone());
        }
        let naming = self.class.spec.control_plane.naming.as_ref();
        self.generated(
            naming.and_then(|naming| naming.template.as_deref()),
            "controlPlane",
        )
    }

    fn generated(&self, template: Option<&str>, part: &str) -> Result<String, DesiredError> {
        let template = template.unwrap_or("{{ .cluster.name }}-{{ .random }}");
        let suffix = names::suffix(&[&self.uid(), part]);
        let name = named(template, &self.cluster.name_any(), &suffix, None);
        name.map_err(|problem| DesiredError::Class(format!("the name of {part}: {problem}")))
    }

    /// Returns a template of the class with its [`TemplateRole`] and variables.
    fn target(
        &self,
        place: TemplateRole,
        reference: &VersionedReference,
        builtin: Option<(&'static str, Value)>,
        given: &[api::core::v1beta2::Variable],
    ) -> Result<Target, DesiredError> {
        let found = self.templates.get(&key(reference));
        let template = found.ok_or_else(|| {
            DesiredError::Class(format!(
                "{} {} of the ClusterClass does not exist",
                reference.kind, reference.name
            ))
        })?;
        let mut object = template.clone();
        object["apiVersion"] = json!(reference.api_version);
        object["kind"] = json!(reference.kind);
        Ok(Target {
            place,
            object,
            builtin,
            overrides: given.to_vec(),
        })
    }

    /// Returns `given` with the labels and annotations of all objects of the topology.
    fn marked(&self, given: &Metadata, reference: &VersionedReference) -> Metadata {
        let mut marked = given.clone();
        marked
            .labels
            .insert(CLUSTER_NAME_LABEL.to_owned(), self.cluster.name_any());
        marked.labels.insert(OWNED_LABEL.to_owned(), String::new());
        let group = reference.api_version.split('/').next().unwrap_or_default();
        let annotations = &mut marked.annotations;
        annotations.insert(
            CLONED_FROM_NAME_ANNOTATION.to_owned(),
            reference.name.clone(),
        );
        let kind = format!("{}.{group}", reference.kind);
        annotations.insert(CLONED_FROM_GROUP_KIND_ANNOTATION.to_owned(), kind);
        marked
    }

    /// Returns an object with the content of a template.
    fn object(
        &self,
        template: &Value,
        reference: &VersionedReference,
        name: String,
        given: &Metadata,
    ) -> Result<Value, DesiredError> {
        let malformed = |problem: &str| {
            DesiredError::Class(format!("{} {}: {problem}", reference.kind, reference.name))
        };
        let kind = reference
            .kind
            .strip_suffix("Template")
            .filter(|kind| !kind.is_empty());
        let kind = kind.ok_or_else(|| malformed("its kind does not end in Template"))?;
        let body = template.pointer("/spec/template");
        let body = body.ok_or_else(|| malformed("it has no spec.template"))?;
        let mut metadata = of_object(&body["metadata"]);
        merge(&mut metadata, given);
        let metadata = self.marked(&metadata, reference);
        let mut spec = body.get("spec").cloned().unwrap_or_else(|| json!({}));
        if let Some(fields) = spec.as_object_mut() {
            // The provider sets it in each object.
            fields.remove("controlPlaneEndpoint");
        }
        Ok(json!({
            "apiVersion": reference.api_version,
            "kind": kind,
            "metadata": self.json(&name, &metadata),
            "spec": spec,
        }))
    }

    /// Returns a template of this Cluster from a template of the class.
    fn template(
        &self,
        template: &Value,
        reference: &VersionedReference,
        prefix: &str,
        deployment: Option<&str>,
    ) -> Value {
        let mut given = of_object(&template["metadata"]);
        given
            .annotations
            .retain(|name, _| name != "kubectl.kubernetes.io/last-applied-configuration");
        given
            .annotations
            .retain(|name, _| !name.starts_with("cluster.x-k8s.io/ferrostack-"));
        if let Some(name) = deployment {
            given
                .labels
                .insert(names::DEPLOYMENT_LABEL.to_owned(), name.to_owned());
        }
        let metadata = self.marked(&given, reference);
        let name = names::of_template(prefix, &self.uid(), template);
        let mut object = json!({
            "apiVersion": reference.api_version,
            "kind": reference.kind,
            "metadata": self.json(&name, &metadata),
            "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
        });
        object["metadata"]["ownerReferences"] = json!([self.owner()]);
        object
    }

    /// Returns a reference to the Cluster as an owner that is not the controller.
    fn owner(&self) -> Value {
        json!({
            "apiVersion": api::core::v1beta2::API_VERSION,
            "kind": "Cluster",
            "name": self.cluster.name_any(),
            "uid": self.uid(),
        })
    }

    fn json(&self, name: &str, metadata: &Metadata) -> Value {
        let mut json = json!({
            "name": name,
            "namespace": self.cluster.namespace(),
            "labels": metadata.labels,
        });
        if !metadata.annotations.is_empty() {
            json["annotations"] = json!(metadata.annotations);
        }
        json
    }
}

/// Returns the labels and annotations in the JSON of some metadata.
fn of_object(metadata: &Value) -> Metadata {
    let strings = |name: &str| {
        let fields = metadata.get(name).and_then(Value::as_object);
        let pairs = fields.into_iter().flatten();
        let texts =
            pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        texts.collect()
    };
    Metadata {
        labels: strings("labels"),
        annotations: strings("annotations"),
    }
}

/// Returns labels and annotations of topology and class; the topology takes precedence.
fn combined(
    topology: Option<&api::core::v1beta2::TemplateMeta>,
    class: Option<&api::core::v1beta2::TemplateMeta>,
) -> Metadata {
    let mut metadata = Metadata::default();
    for part in [class, topology].into_iter().flatten() {
        metadata
            .labels
            .extend(part.labels.clone().unwrap_or_default());
        metadata
            .annotations
            .extend(part.annotations.clone().unwrap_or_default());
    }
    metadata
}

fn merge(into: &mut Metadata, given: &Metadata) {
    into.labels.extend(given.labels.clone());
    into.annotations.extend(given.annotations.clone());
}

/// Returns the object at `path` in `object`, created if absent.
fn nested<'a>(object: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut at = object;
    for name in path {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[*name];
    }
    if !at.is_object() {
        *at = json!({});
    }
    match at {
        Value::Object(fields) => fields,
        _ => unreachable!("it was set to an object above"),
    }
}

#[cfg(test)]
mod tests;
