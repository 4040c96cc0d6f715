//! MachineDeployments.

use api::core::v1beta2::{MachineDeploymentClass, MachineDeploymentTopology};
use api::kube::ResourceExt;
use api::names::CLUSTER_NAME_LABEL;
use serde_json::{Value, json};

use super::{DesiredError, Input, combined, health, nested, taints};
use crate::builtin::{self, Metadata};
use crate::class::named;
use crate::cluster::overrides;
use crate::names::{self, DEPLOYMENT_LABEL, OWNED_LABEL};
use crate::patches::{Target, TemplateRole};
use crate::upgrade::{DEFER_UPGRADE, HOLD_UPGRADE_SEQUENCE};

/// MachineDeployment with its templates and health check.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// Name in the topology.
    pub topology_name: String,
    /// MachineDeployment.
    pub object: Value,
    /// Template of the bootstrap data for the first boot of the machines.
    pub bootstrap: Value,
    /// Template of the machines.
    pub machines: Value,
    /// Health check of the machines.
    pub check: Option<Value>,
}

impl Deployment {
    pub(super) fn refer(&mut self) {
        let reference = |template: &Value| {
            let api_version = template["apiVersion"].as_str().unwrap_or_default();
            json!({
                "apiGroup": api_version.split('/').next().unwrap_or_default(),
                "kind": template["kind"],
                "name": template["metadata"]["name"],
            })
        };
        let (bootstrap, machines) = (reference(&self.bootstrap), reference(&self.machines));
        let spec = nested(&mut self.object, &["spec", "template", "spec"]);
        spec.insert("bootstrap".to_owned(), json!({ "configRef": bootstrap }));
        spec.insert("infrastructureRef".to_owned(), machines);
    }
}

/// MachineDeployment whose templates are not patched yet.
pub(super) struct Plan<'a> {
    topology: &'a MachineDeploymentTopology,
    class: &'a MachineDeploymentClass,
    name: String,
    version: String,
    metadata: Metadata,
}

/// Returns the MachineDeployments of the topology, in order.
pub(super) fn plans<'a>(input: &Input<'a>) -> Result<Vec<Plan<'a>>, DesiredError> {
    let workers = input.topology.workers.as_ref();
    let all = workers.and_then(|workers| workers.machine_deployments.as_deref());
    all.unwrap_or_default()
        .iter()
        .map(|topology| plan(input, topology))
        .collect()
}

fn plan<'a>(
    input: &Input<'a>,
    topology: &'a MachineDeploymentTopology,
) -> Result<Plan<'a>, DesiredError> {
    let class = input
        .class
        .machine_deployment(&topology.class)
        .ok_or_else(|| {
            DesiredError::Class(format!(
                "the ClusterClass has no class of MachineDeployments {}",
                topology.class
            ))
        })?;
    let name = match input.deployments.get(&topology.name) {
        Some(name) => name.clone(),
        None => {
            let naming = class
                .naming
                .as_ref()
                .and_then(|naming| naming.template.as_deref());
            let template = naming.unwrap_or(
                "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}",
            );
            let suffix = names::suffix(&[&input.uid(), "machineDeployment", &topology.name]);
            let name = named(
                template,
                &input.cluster.name_any(),
                &suffix,
                Some(&topology.name),
            );
            name.map_err(|problem| {
                DesiredError::Class(format!(
                    "the name of MachineDeployment {}: {problem}",
                    topology.name
                ))
            })?
        }
    };
    let mut metadata = combined(topology.metadata.as_ref(), class.metadata.as_ref());
    metadata
        .annotations
        .retain(|name, _| ![DEFER_UPGRADE, HOLD_UPGRADE_SEQUENCE].contains(&name.as_str()));
    let version = input.decisions.deployments.get(&topology.name);
    Ok(Plan {
        topology,
        class,
        name,
        version: version.unwrap_or(&input.topology.version).clone(),
        metadata,
    })
}

impl Plan<'_> {
    /// Returns the two templates: bootstrap and machines.
    pub(super) fn targets(&self, input: &Input<'_>) -> Result<[Target; 2], DesiredError> {
        let Plan {
            topology, class, ..
        } = self;
        let names = (
            self.name.as_str(),
            topology.class.as_str(),
            topology.name.as_str(),
        );
        let variables =
            builtin::machine_deployment(names, &self.version, topology.replicas, &self.metadata);
        let given = overrides(topology.variables.as_ref());
        let target = |reference| {
            let place = TemplateRole::MachineDeployment(topology.class.clone());
            input.target(
                place,
                reference,
                Some(("machineDeployment", variables.clone())),
                given,
            )
        };
        Ok([
            target(&class.bootstrap.template_ref)?,
            target(&class.infrastructure.template_ref)?,
        ])
    }

    /// Returns the [`Deployment`] with its patched templates.
    pub(super) fn finish(&self, input: &Input<'_>, templates: &[Target]) -> Deployment {
        let Plan {
            topology, class, ..
        } = self;
        let prefix = format!("{}-{}", input.cluster.name_any(), topology.name);
        let template = |at: usize, reference, prefix: &str| {
            let none = Value::Null;
            let patched = templates.get(at).map_or(&none, |target| &target.object);
            input.template(patched, reference, prefix, Some(&topology.name))
        };
        Deployment {
            topology_name: topology.name.clone(),
            object: self.object(input),
            bootstrap: template(0, &class.bootstrap.template_ref, &prefix),
            machines: template(1, &class.infrastructure.template_ref, &prefix),
            check: health::of_deployment(input, topology, &self.name),
        }
    }

    fn object(&self, input: &Input<'_>) -> Value {
        let cluster = input.cluster.name_any();
        let marks = json!({
            CLUSTER_NAME_LABEL: cluster,
            OWNED_LABEL: "",
            DEPLOYMENT_LABEL: self.topology.name,
        });
        let mut metadata = json!({ "labels": self.metadata.labels });
        for (name, value) in marks.as_object().into_iter().flatten() {
            metadata["labels"][name] = value.clone();
        }
        if !self.metadata.annotations.is_empty() {
            metadata["annotations"] = json!(self.metadata.annotations);
        }
        let mut object = json!({
            "apiVersion": api::core::v1beta2::API_VERSION,
            "kind": "MachineDeployment",
            "metadata": metadata,
            "spec": {
                "clusterName": cluster,
                "selector": { "matchLabels": marks },
                "template": {
                    "metadata": metadata,
                    "spec": { "clusterName": cluster, "version": self.version },
                },
            },
        });
        object["metadata"]["name"] = json!(self.name);
        object["metadata"]["namespace"] = json!(input.cluster.namespace());
        self.settings(&mut object);
        object
    }

    /// Sets values of the topology, or else of the class.
    fn settings(&self, object: &mut Value) {
        let Plan {
            topology, class, ..
        } = self;
        let spec = nested(object, &["spec"]);
        if let Some(replicas) = topology.replicas {
            spec.insert("replicas".to_owned(), json!(replicas));
        }
        let of_class = class.rollout.as_ref().map(|rollout| json!(rollout));
        if let Some(rollout) = topology
            .rollout
            .as_ref()
            .map(|rollout| json!(rollout))
            .or(of_class)
        {
            spec.insert("rollout".to_owned(), rollout);
        }
        let in_flight = |remediation: Option<&api::core::v1beta2::HealthRemediation>| {
            remediation.and_then(|remediation| remediation.max_in_flight.clone())
        };
        let given = topology
            .health_check
            .as_ref()
            .and_then(|check| in_flight(check.remediation.as_ref()));
        let of_class = class
            .health_check
            .as_ref()
            .and_then(|check| in_flight(check.remediation.as_ref()));
        if let Some(most) = given.or(of_class) {
            spec.insert("remediation".to_owned(), json!({ "maxInFlight": most }));
        }
        let given = topology.deletion.clone().unwrap_or_default();
        let of_class = class.deletion.clone().unwrap_or_default();
        if let Some(order) = given.order.or(of_class.order) {
            spec.insert("deletion".to_owned(), json!({ "order": order }));
        }
        let machine = nested(object, &["spec", "template", "spec"]);
        let domain = topology
            .failure_domain
            .as_ref()
            .or(class.failure_domain.as_ref());
        if let Some(domain) = domain {
            machine.insert("failureDomain".to_owned(), json!(domain));
        }
        if let Some(seconds) = topology.min_ready_seconds.or(class.min_ready_seconds) {
            machine.insert("minReadySeconds".to_owned(), json!(seconds));
        }
        if let Some(gates) = topology
            .readiness_gates
            .as_ref()
            .or(class.readiness_gates.as_ref())
        {
            machine.insert("readinessGates".to_owned(), json!(gates));
        }
        let taints = taints::combined(topology.taints.as_ref(), class.taints.as_ref());
        if !taints.is_empty() {
            machine.insert("taints".to_owned(), json!(taints));
        }
        let timeouts = [
            (
                "nodeDrainTimeoutSeconds",
                given
                    .node_drain_timeout_seconds
                    .or(of_class.node_drain_timeout_seconds),
            ),
            (
                "nodeVolumeDetachTimeoutSeconds",
                given
                    .node_volume_detach_timeout_seconds
                    .or(of_class.node_volume_detach_timeout_seconds),
            ),
            (
                "nodeDeletionTimeoutSeconds",
                given
                    .node_deletion_timeout_seconds
                    .or(of_class.node_deletion_timeout_seconds),
            ),
        ];
        for (name, seconds) in timeouts {
            if let Some(seconds) = seconds {
                nested(object, &["spec", "template", "spec", "deletion"])
                    .insert(name.to_owned(), json!(seconds));
            }
        }
    }
}
