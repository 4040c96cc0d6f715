//! Existing objects of a topology, from the caches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::v1beta2::{
    Cluster, ContractReference, MachineDeployment, MachineHealthCheck, MachineSet, MachineSpec,
};
use api::kube::ResourceExt;
use api::kube::api::{DynamicObject, ObjectMeta};
use api::names::{CLUSTER_NAME_LABEL, DEPLOYMENT_NAME_LABEL};
use topology::names::{DEPLOYMENT_LABEL, OWNED_LABEL};
use topology::upgrade;

use super::{Obstacle, Runner};
use crate::external::contract;

/// Existing objects of a topology.
pub(super) struct Current {
    /// Object of `spec.controlPlaneRef`.
    pub(super) control_plane: Option<Arc<DynamicObject>>,
    /// [`MachineDeployment`]s of the topology.
    pub(super) deployments: Vec<Arc<MachineDeployment>>,
    /// [`MachineHealthCheck`]s of the topology.
    pub(super) checks: Vec<Arc<MachineHealthCheck>>,
    /// All [`MachineSet`]s of the Cluster.
    pub(super) sets: Vec<Arc<MachineSet>>,
    /// Versions of the machines of each MachineDeployment, by its name.
    versions: BTreeMap<String, BTreeSet<String>>,
}

impl Current {
    /// Reads the caches. Fails on an undecodable object of the [`Cluster`]: it would be created again, or its referenced
    /// objects would be deleted.
    pub(super) async fn gather(runner: &Runner, cluster: &Cluster) -> Result<Self, Obstacle> {
        let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
        let ours = |metadata: &ObjectMeta| {
            let labels = metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(CLUSTER_NAME_LABEL)) == Some(&name)
        };
        runner
            .machinedeployments
            .decoded(ours)
            .map_err(crate::Error::from)?;
        runner
            .machinesets
            .decoded(ours)
            .map_err(crate::Error::from)?;
        runner.machines.decoded(ours).map_err(crate::Error::from)?;
        let control_plane = match &cluster.spec.control_plane_ref {
            Some(reference) => runner.external.get(reference, &namespace).await?,
            None => None,
        };
        let mut versions = BTreeMap::<String, BTreeSet<String>>::new();
        for machine in runner.machines.in_cluster(&namespace, &name, |_| true) {
            if let (Some(deployment), Some(version)) = (
                machine.labels().get(DEPLOYMENT_NAME_LABEL),
                &machine.spec.version,
            ) {
                let known = versions.entry(deployment.clone()).or_default();
                known.insert(version.clone());
            }
        }
        let owned = |labels: &BTreeMap<String, String>| labels.contains_key(OWNED_LABEL);
        Ok(Self {
            control_plane,
            deployments: runner
                .machinedeployments
                .in_cluster(&namespace, &name, |it| {
                    owned(it.labels()) && it.labels().contains_key(DEPLOYMENT_LABEL)
                }),
            checks: runner
                .checks
                .in_cluster(&namespace, &name, |it| owned(it.labels())),
            sets: runner.machinesets.in_cluster(&namespace, &name, |_| true),
            versions,
        })
    }

    /// Control plane, for decisions about versions.
    pub(super) fn plane(&self) -> Option<upgrade::Plane> {
        let object = self.control_plane.as_ref()?;
        let oldest = contract::text(object, "/status/versions/0/version");
        let running = oldest.or_else(|| contract::text(object, "/status/version"));
        let kind = object.types.as_ref().map(|types| types.kind.clone());
        Some(upgrade::Plane {
            kind: kind.unwrap_or_default(),
            version: contract::text(object, "/spec/version")?.to_owned(),
            running: running.map(str::to_owned),
        })
    }

    /// MachineDeployments, for decisions about versions.
    pub(super) fn deployments(&self) -> Result<Vec<upgrade::Deployment>, Obstacle> {
        let mut known = BTreeSet::new();
        let mut all = Vec::new();
        for deployment in &self.deployments {
            let topology_name = topology_name(deployment);
            if !known.insert(topology_name) {
                return Err(Obstacle::Failed(format!(
                    "more than one MachineDeployment has the label {DEPLOYMENT_LABEL}={topology_name}: delete all but one"
                )));
            }
            let version = deployment
                .spec
                .template
                .spec
                .version
                .clone()
                .unwrap_or_default();
            let versions = self.versions.get(&deployment.name_any());
            all.push(upgrade::Deployment {
                topology_name: topology_name.to_owned(),
                name: deployment.name_any(),
                upgrading: versions.is_some_and(|all| all.iter().any(|one| *one != version)),
                version,
            });
        }
        Ok(all)
    }

    /// Names of the MachineDeployments, by their names in the topology.
    pub(super) fn names(&self) -> BTreeMap<String, String> {
        let all = self.deployments.iter();
        all.map(|it| (topology_name(it).to_owned(), it.name_any()))
            .collect()
    }

    /// [`MachineSpec`] of the MachineDeployment with this name in the topology.
    pub(super) fn machines_of(&self, name: &str) -> Option<&MachineSpec> {
        let found = self.deployments.iter().find(|it| topology_name(it) == name);
        found.map(|it| &it.spec.template.spec)
    }

    /// Template of the control plane's machines: the path depends on the contract.
    pub(super) fn control_plane_machines(&self) -> Option<ContractReference> {
        let object = self.control_plane.as_ref()?;
        let places = [
            "/spec/machineTemplate/spec/infrastructureRef",
            "/spec/machineTemplate/infrastructureRef",
        ];
        let found = places.iter().find_map(|place| object.data.pointer(place))?;
        let text = |field: &str| found[field].as_str().unwrap_or_default();
        let version = text("apiVersion").split_once('/');
        let group = version.map_or_else(|| text("apiGroup"), |(group, _)| group);
        Some(ContractReference::new(group, text("kind"), text("name")))
    }

    /// All templates that objects refer to.
    pub(super) fn references(&self) -> BTreeSet<(String, String, String)> {
        let deployments = self.deployments.iter().map(|it| &it.spec.template.spec);
        let sets = self.sets.iter().map(|it| &it.spec.template.spec);
        let of_machines = deployments.chain(sets).flat_map(|spec| {
            let bootstrap = spec.bootstrap.config_ref.iter();
            bootstrap.chain([&spec.infrastructure_ref]).cloned()
        });
        let all = of_machines.chain(self.control_plane_machines());
        all.map(|it| (it.api_group, it.kind, it.name)).collect()
    }
}

/// Name of a [`MachineDeployment`] in the topology.
pub(super) fn topology_name(deployment: &MachineDeployment) -> &str {
    let label = deployment.labels().get(DEPLOYMENT_LABEL);
    label.map_or("", String::as_str)
}
