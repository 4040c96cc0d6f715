//! Existing and desired machines of a cluster, from its objects. Pure.

use std::collections::BTreeMap;

use anyhow::Context as _;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::{self, ContractReference, Machine, MachineDeployment};
use api::infra::v1beta2::{
    ImageParam, ManagedGroup, OpenStackCluster, OpenStackMachine, OpenStackMachineTemplate,
};
use api::names::{CLONED_FROM_NAME_ANNOTATION, CONTROL_PLANE_LABEL, DEPLOYMENT_NAME_LABEL};
use kube::ResourceExt;
use provider::AvailableImages;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Objects by kind and name.
pub(super) type Objects = BTreeMap<(String, String), Value>;

/// A cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) object: v1beta2::Cluster,
    pub(super) infra: OpenStackCluster,
    /// [`Pool`]s, the control plane first.
    pub(super) pools: Vec<Pool>,
    /// Machines that serve the API, with and without an owner.
    pub(super) serving: Vec<OpenStackMachine>,
    /// Reasons against parts of the plan.
    pub(super) problems: Vec<String>,
    /// The Images of ORC, if machines or the bastion name one.
    pub(super) images: AvailableImages,
}

/// Equal machines of one owner.
#[derive(Debug)]
pub(super) struct Pool {
    /// Kind and name of the owner.
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) group: ManagedGroup,
    pub(super) replicas: usize,
    pub(super) template: OpenStackMachineTemplate,
    pub(super) failure_domain: Option<String>,
    /// Machines that stay.
    pub(super) current: Vec<OpenStackMachine>,
    /// Machines of another template or version, each with the difference.
    pub(super) outdated: Vec<(OpenStackMachine, String)>,
}

impl Pool {
    /// Existing [`OpenStackMachine`]s.
    pub(super) fn machines(&self) -> impl Iterator<Item = &OpenStackMachine> {
        let outdated = self.outdated.iter().map(|(machine, _)| machine);
        self.current.iter().chain(outdated)
    }
}

fn typed<K: DeserializeOwned>(
    objects: &Objects,
    kind: &str,
    name: &str,
) -> anyhow::Result<Option<K>> {
    let found = objects.get(&(kind.to_owned(), name.to_owned())).cloned();
    let typed = found.map(serde_json::from_value).transpose();
    typed.with_context(|| format!("{kind}/{name} cannot be read"))
}

impl Cluster {
    /// [`Cluster`] `name`; `machines` and `servers` are the existing ones.
    pub(super) fn new(
        objects: &Objects,
        name: &str,
        machines: Vec<Machine>,
        servers: Vec<OpenStackMachine>,
    ) -> anyhow::Result<Self> {
        let object: v1beta2::Cluster = typed(objects, "Cluster", name)?
            .with_context(|| format!("there is no Cluster/{name}"))?;
        let infra = object.spec.infrastructure_ref.as_ref();
        let infra = infra.filter(|it| it.kind == "OpenStackCluster");
        let infra = infra.with_context(|| format!("Cluster/{name} is not of OpenStack: its infrastructureRef names no OpenStackCluster"))?;
        let infra = typed(objects, "OpenStackCluster", &infra.name)?
            .with_context(|| format!("there is no OpenStackCluster/{}", infra.name))?;
        let there = There { machines, servers };
        let mut cluster = Self {
            object,
            infra,
            pools: Vec::new(),
            serving: there.serving(),
            problems: Vec::new(),
            images: AvailableImages::new(),
        };
        for wanted in wanted(objects, &cluster.object)? {
            match there.pool(objects, wanted) {
                Ok(pool) => cluster.pools.push(pool),
                Err(problem) => cluster.problems.push(format!("{problem:#}")),
            }
        }
        Ok(cluster)
    }
}

impl Cluster {
    /// True if machines or the bastion name an Image of ORC.
    pub(super) fn names_images(&self) -> bool {
        let bastion = self.infra.spec.bastion.as_ref();
        let bastion = bastion.and_then(|it| it.spec.as_ref());
        let pools = self.pools.iter().map(|it| &it.template.spec.template.spec);
        let machines = self.pools.iter().flat_map(Pool::machines);
        let all = pools.chain(machines.map(|it| &it.spec)).chain(bastion);
        all.into_iter()
            .any(|spec| matches!(spec.image, ImageParam::ImageRef(_)))
    }
}

/// The spec of an owner of machines.
struct OfOwner {
    owner: String,
    name: String,
    group: ManagedGroup,
    replicas: Option<i32>,
    template: ContractReference,
    version: Option<String>,
    failure_domain: Option<String>,
}

fn wanted(objects: &Objects, cluster: &v1beta2::Cluster) -> anyhow::Result<Vec<OfOwner>> {
    let mut all = Vec::new();
    let plane = cluster.spec.control_plane_ref.as_ref();
    if let Some(reference) = plane.filter(|it| it.kind == "KubeadmControlPlane")
        && let Some(plane) =
            typed::<KubeadmControlPlane>(objects, "KubeadmControlPlane", &reference.name)?
    {
        all.push(OfOwner {
            owner: format!("KubeadmControlPlane/{}", reference.name),
            name: reference.name.clone(),
            group: ManagedGroup::ControlPlane,
            replicas: plane.spec.replicas,
            template: plane.spec.machine_template.spec.infrastructure_ref,
            version: Some(plane.spec.version),
            failure_domain: None,
        });
    }
    let deployments = objects.iter().filter(|((kind, _), object)| {
        let of = object["spec"]["clusterName"].as_str();
        kind == "MachineDeployment" && of == Some(cluster.name_any().as_str())
    });
    for ((_, name), object) in deployments {
        let deployment: MachineDeployment = serde_json::from_value(object.clone())
            .with_context(|| format!("MachineDeployment/{name} cannot be read"))?;
        let spec = deployment.spec.template.spec;
        all.push(OfOwner {
            owner: format!("MachineDeployment/{name}"),
            name: name.clone(),
            group: ManagedGroup::Worker,
            replicas: deployment.spec.replicas,
            template: spec.infrastructure_ref,
            version: spec.version,
            failure_domain: spec.failure_domain,
        });
    }
    Ok(all)
}

/// Existing machines.
struct There {
    machines: Vec<Machine>,
    servers: Vec<OpenStackMachine>,
}

impl There {
    /// Machines of the control plane that are not deleted: one that is drained still serves.
    fn serving(&self) -> Vec<OpenStackMachine> {
        let machines = self.machines.iter();
        let of_plane = machines.filter(|it| it.labels().contains_key(CONTROL_PLANE_LABEL));
        let named = of_plane.filter_map(|machine| {
            let name = &machine.spec.infrastructure_ref.name;
            self.servers.iter().find(|it| it.name_any() == *name)
        });
        let stay = named.filter(|server| server.metadata.deletion_timestamp.is_none());
        stay.cloned().collect()
    }

    fn pool(&self, objects: &Objects, wanted: OfOwner) -> anyhow::Result<Pool> {
        let OfOwner {
            owner, template, ..
        } = &wanted;
        anyhow::ensure!(
            template.kind == "OpenStackMachineTemplate",
            "{owner}: its machines are not of OpenStack, but of {}",
            template.kind
        );
        let found = typed(objects, "OpenStackMachineTemplate", &template.name)?;
        let found = found.with_context(|| {
            format!(
                "{owner}: there is no OpenStackMachineTemplate/{}",
                template.name
            )
        })?;
        let (mut current, mut outdated) = (Vec::new(), Vec::new());
        for machine in self.machines.iter().filter(|it| is_of(it, &wanted)) {
            let name = &machine.spec.infrastructure_ref.name;
            let Some(server) = self.servers.iter().find(|it| it.name_any() == *name) else {
                continue;
            };
            match difference(machine, server, &wanted) {
                Some(why) => outdated.push((server.clone(), why)),
                None => current.push(server.clone()),
            }
        }
        let replicas = wanted.replicas.unwrap_or(1);
        Ok(Pool {
            replicas: usize::try_from(replicas).unwrap_or_default(),
            template: found,
            current,
            outdated,
            owner: wanted.owner,
            name: wanted.name,
            group: wanted.group,
            failure_domain: wanted.failure_domain,
        })
    }
}

fn is_of(machine: &Machine, wanted: &OfOwner) -> bool {
    let labels = machine.labels();
    let is_leaving = machine.metadata.deletion_timestamp.is_some();
    !is_leaving
        && match wanted.group {
            ManagedGroup::ControlPlane => labels.contains_key(CONTROL_PLANE_LABEL),
            _ => labels.get(DEPLOYMENT_NAME_LABEL) == Some(&wanted.name),
        }
}

/// Difference of a machine from its owner: the template or the version.
fn difference(machine: &Machine, server: &OpenStackMachine, wanted: &OfOwner) -> Option<String> {
    let from = server.annotations().get(CLONED_FROM_NAME_ANNOTATION);
    if let Some(from) = from.filter(|from| **from != wanted.template.name) {
        return Some(format!("template {from} → {}", wanted.template.name));
    }
    let (old, new) = (machine.spec.version.as_ref()?, wanted.version.as_ref()?);
    (old != new).then(|| format!("version {old} → {new}"))
}
