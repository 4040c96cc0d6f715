//! The life of a cluster `demo`, step by step.

use std::collections::BTreeSet;

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::{Cluster, Machine, MachineDeployment};
use api::k8s_openapi::api::core::v1::{Node, Pod};
use api::k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use testbed::eventually;

use crate::watcher::{Limits, Watcher};
use crate::world::{Controllers, World};

/// The conditions of a Cluster that are true, or false, when nothing is being changed.
const QUIET: [(&str, &str); 10] = [
    ("Available", "True"),
    ("ControlPlaneMachinesReady", "True"),
    ("ControlPlaneMachinesUpToDate", "True"),
    ("WorkerMachinesReady", "True"),
    ("WorkerMachinesUpToDate", "True"),
    ("RollingOut", "False"),
    ("ScalingUp", "False"),
    ("ScalingDown", "False"),
    ("Remediating", "False"),
    ("RemoteConnectionProbe", "True"),
];

/// Desired state of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) control_plane: usize,
    pub(crate) workers: usize,
    pub(crate) version: &'static str,
    pub(crate) template: &'static str,
}

/// A cluster in the course of its life.
pub(crate) struct Life {
    pub(crate) world: World,
    controllers: Option<Controllers>,
    watcher: Watcher,
    wanted: Wanted,
    /// How often the controllers were killed.
    pub(crate) kills: usize,
}

impl Life {
    /// Creates the cluster, and waits until it is there.
    pub(crate) async fn begin(world: World, wanted: Wanted) -> Self {
        let limits = Limits {
            control_plane: wanted.control_plane,
            workers: wanted.workers,
            quorum: true,
        };
        let watcher = Watcher::start(&world, limits);
        world.apply(cluster(&wanted)).await;
        let mut life = Self {
            controllers: None,
            watcher,
            kills: 0,
            wanted,
            world,
        };
        life.settled("create").await;
        life
    }

    /// Changes the number of machines.
    pub(crate) async fn scale(&mut self, control_plane: usize, workers: usize) {
        let before = self.wanted.clone();
        self.wanted.control_plane = control_plane;
        self.wanted.workers = workers;
        self.watcher.allow(Limits {
            control_plane: before.control_plane.max(control_plane),
            workers: before.workers.max(workers),
            quorum: true,
        });
        let replicas = |count: usize| json!({"spec": {"replicas": count}});
        let world = &self.world;
        world
            .merge::<KubeadmControlPlane>("demo", replicas(control_plane))
            .await;
        world
            .merge::<MachineDeployment>("demo", replicas(workers))
            .await;
        self.settled(&format!("scale to {control_plane} + {workers}"))
            .await;
    }

    /// Replaces all machines by ones with another version or another template. With a `budget`, CoreDNS may not be
    /// disturbed until somebody has seen that a drain waits for it.
    pub(crate) async fn roll_out(
        &mut self,
        version: &'static str,
        template: &'static str,
        budget: bool,
    ) {
        (self.wanted.version, self.wanted.template) = (version, template);
        // maxSurge is 1.
        self.watcher.allow(Limits {
            control_plane: self.wanted.control_plane + 1,
            workers: self.wanted.workers + 1,
            quorum: true,
        });
        let before = names(&self.world.list::<Machine>().await);
        if budget {
            crowd(&self.world.workload().await).await;
            self.budget(json!({"minAvailable": 2, "maxUnavailable": null}))
                .await;
        }
        let world = &self.world;
        if world.template(template).await.is_none() {
            world.create(machine_template(template)).await;
        }
        let plane = json!({"spec": {"version": version,
            "machineTemplate": {"spec": {"infrastructureRef": {"name": template}}}}});
        world.merge::<KubeadmControlPlane>("demo", plane).await;
        let workers = json!({"spec": {"template": {"spec": {"version": version,
            "infrastructureRef": {"name": template}}}}});
        world.merge::<MachineDeployment>("demo", workers).await;
        let step = format!("roll out {version} {template}");
        if budget {
            self.held().await;
            self.budget(json!({"minAvailable": null, "maxUnavailable": 1}))
                .await;
        }
        self.settled(&step).await;
        let after = names(&self.world.list::<Machine>().await);
        assert!(after.is_disjoint(&before), "{step}: {before:?} {after:?}");
    }

    /// Creates or changes the budget of CoreDNS.
    async fn budget(&self, spec: Value) {
        let budgets = World::of::<PodDisruptionBudget>(&self.world.workload().await, "kube-system");
        if budgets.get_opt("coredns").await.unwrap().is_some() {
            let patch = Patch::Merge(json!({"spec": spec}));
            let params = PatchParams::default();
            budgets.patch("coredns", &params, &patch).await.unwrap();
            return;
        }
        let mut budget = json!({"metadata": {"name": "coredns"},
            "spec": {"selector": {"matchLabels": {"k8s-app": "kube-dns"}}}});
        let given = spec.as_object().unwrap().iter();
        for (field, value) in given.filter(|(_, value)| !value.is_null()) {
            budget["spec"][field] = value.clone();
        }
        let budget = serde_json::from_value(budget).unwrap();
        let created = budgets.create(&PostParams::default(), &budget).await;
        created.unwrap();
    }

    /// Waits until a machine waits for a Pod that the budget protects; the budget has been kept so far.
    async fn held(&mut self) {
        let world = &self.world;
        let seen = eventually("a drain that waits for the budget", || async {
            let machines = world.list::<Machine>().await;
            let mut messages = machines.iter().filter_map(|machine| {
                let found = api::conditions::find(machine.conditions(), "Deleting")?;
                Some(found.message.clone())
            });
            match messages.find(|message| message.contains("cannot be evicted")) {
                Some(message) => Ok(message),
                None => Err(machines_and_plane(world, &machines).await),
            }
        });
        let message = world
            .until(&mut self.controllers, &mut self.kills, seen)
            .await;
        assert!(message.contains("kube-system/coredns"), "{message}");
        let pods = World::of::<Pod>(&world.workload().await, "kube-system");
        let selected = ListParams::default().labels("k8s-app=kube-dns");
        let pods = pods.list(&selected).await.unwrap().items;
        let there = pods
            .iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none());
        assert_eq!(there.count(), 2, "{:?}", names(&pods));
    }

    /// Waits until everything is as wanted and nothing is being changed, and checks what must have held meanwhile.
    pub(crate) async fn settled(&mut self, step: &str) {
        let began = std::time::Instant::now();
        let (world, wanted, kills) = (&self.world, &self.wanted, self.kills);
        let rest = eventually(step, || async { difference(world, wanted).await });
        world
            .until(&mut self.controllers, &mut self.kills, rest)
            .await;
        self.watcher.check(step);
        self.watcher.allow(Limits {
            control_plane: wanted.control_plane,
            workers: wanted.workers,
            quorum: true,
        });
        eprintln!(
            "{step}: {:?}, {} kills",
            began.elapsed(),
            self.kills - kills
        );
    }

    /// Runs the controllers until `rest`, without a look at what must hold.
    pub(crate) async fn until<T>(&mut self, rest: impl AsyncFn(&World) -> T) -> T {
        let world = &self.world;
        world
            .until(&mut self.controllers, &mut self.kills, rest(world))
            .await
    }

    /// Sets the limits that hold after a failure of machines.
    pub(crate) fn allow(&self, limits: Limits) {
        self.watcher.allow(limits);
    }

    /// Deletes the cluster, and checks that nothing is left.
    pub(crate) async fn end(mut self) -> usize {
        self.watcher.check("before the deletion");
        self.watcher.allow(Limits {
            control_plane: self.wanted.control_plane,
            workers: self.wanted.workers,
            quorum: false,
        });
        self.world.delete::<Cluster>("demo").await;
        let began = std::time::Instant::now();
        let world = &self.world;
        let gone = world.gone::<Cluster>("demo");
        world
            .until(&mut self.controllers, &mut self.kills, gone)
            .await;
        assert!(world.list::<Machine>().await.is_empty());
        assert!(world.list::<KubeadmControlPlane>().await.is_empty());
        assert_eq!(world.cloud.resources(), world.before);
        assert!(world.cloud.world().borrow().instances.is_empty());
        self.watcher.check("delete");
        eprintln!("delete: {:?}, {} kills", began.elapsed(), self.kills);
        self.kills
    }
}

impl World {
    async fn template(&self, name: &str) -> Option<api::infra::v1beta2::OpenStackMachineTemplate> {
        self.api().get_opt(name).await.unwrap()
    }
}

pub(crate) fn names<K: ResourceExt>(objects: &[K]) -> BTreeSet<String> {
    objects.iter().map(ResourceExt::name_any).collect()
}

/// Moves CoreDNS to the nodes of the control plane. These are drained before the image of CoreDNS changes; with it the
/// Pods move, possibly to new nodes, and no drain of a worker would find one.
async fn crowd(client: &Client) {
    let nodes = Api::<Node>::all(client.clone());
    let workers = ListParams::default().labels("!node-role.kubernetes.io/control-plane");
    let workers = names(&nodes.list(&workers).await.unwrap().items);
    let cordon = async |on: bool| {
        for name in &workers {
            let patch = Patch::Merge(json!({"spec": {"unschedulable": on}}));
            let params = PatchParams::default();
            nodes.patch(name, &params, &patch).await.unwrap();
        }
    };
    cordon(true).await;
    let pods = World::of::<Pod>(client, "kube-system");
    eventually("CoreDNS on the control plane", || async {
        let selected = ListParams::default().labels("k8s-app=kube-dns");
        let selected = pods.list(&selected).await.unwrap().items;
        let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let elsewhere = |pod: &&Pod| node(pod).is_none_or(|node| workers.contains(&node));
        let elsewhere: Vec<_> = selected.iter().filter(elsewhere).collect();
        for pod in &elsewhere {
            let (name, params) = (pod.name_any(), DeleteParams::default());
            drop(pods.delete(&name, &params).await);
        }
        if elsewhere.is_empty() && selected.len() == 2 {
            Ok(())
        } else {
            Err(format!("{selected:?}"))
        }
    })
    .await;
    cordon(false).await;
}

/// Returns the machines, and the status that the control plane reports.
async fn machines_and_plane(world: &World, machines: &[Machine]) -> String {
    let machines = machines.iter().map(|machine| {
        let (name, version) = (machine.name_any(), &machine.spec.version);
        let deleting = api::conditions::find(machine.conditions(), "Deleting");
        let deleting = deleting.map(|found| found.message.as_str());
        format!("{name} {version:?} {deleting:?}")
    });
    let machines = machines.collect::<Vec<_>>().join("\n  ");
    let plane = world.api::<KubeadmControlPlane>().get("demo").await;
    let status = plane.map(|plane| plane.status.unwrap_or_default().conditions);
    format!("\n  {machines}\n{status:#?}")
}

/// Returns differences from `wanted`, and changes in progress.
async fn difference(world: &World, wanted: &Wanted) -> Result<(), String> {
    let cluster = world.api::<Cluster>().get("demo").await;
    let cluster = cluster.map_err(|error| error.to_string())?;
    let plane = world.api::<KubeadmControlPlane>().get("demo").await;
    let plane = plane.map_err(|error| error.to_string())?;
    let deployment = world.api::<MachineDeployment>().get("demo").await;
    let deployment = deployment.map_err(|error| error.to_string())?;
    let counts = plane.status.clone().unwrap_or_default();
    let of = |count: usize| i32::try_from(count).ok();
    let counted = [
        counts.replicas,
        counts.ready_replicas,
        counts.available_replicas,
        counts.up_to_date_replicas,
    ];
    if counted != [of(wanted.control_plane); 4]
        || counts.observed_generation != plane.metadata.generation
    {
        return Err(format!("control plane {:#?}", counts.conditions));
    }
    let counts = deployment.status.clone().unwrap_or_default();
    let counted = [
        counts.replicas,
        counts.ready_replicas,
        counts.available_replicas,
        counts.up_to_date_replicas,
    ];
    if counted != [of(wanted.workers); 4]
        || counts.observed_generation != deployment.metadata.generation
    {
        return Err(format!("workers {:#?}", counts.conditions));
    }
    let machines = world.list::<Machine>().await;
    let all = wanted.control_plane + wanted.workers;
    let old = machines.iter().find(|machine| {
        let info = machine.status.as_ref().and_then(|it| it.node_info.as_ref());
        info.is_none_or(|info| info.kubelet_version != wanted.version)
    });
    if machines.len() != all || old.is_some() {
        return Err(format!("machines {:?}, {old:?}", names(&machines)));
    }
    let etcds = world.guests.etcds().await;
    let members: Vec<_> = etcds.iter().flat_map(|etcd| etcd.members()).collect();
    let whole = members.iter().filter(|member| member.up && !member.learner);
    if members.len() != wanted.control_plane || whole.count() != members.len() {
        return Err(format!("etcd {members:?}"));
    }
    let servers = world.cloud.world().borrow().instances.len();
    if servers != all {
        return Err(format!("{servers} servers"));
    }
    for (type_, status) in QUIET {
        let found = api::conditions::find(cluster.conditions(), type_);
        if found.is_none_or(|found| found.status != status) {
            return Err(format!("{type_}: {found:?}"));
        }
    }
    Ok(())
}

fn machine_template(name: &str) -> Value {
    let flavor = if name == "other" {
        "m1.large"
    } else {
        "m1.medium"
    };
    json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachineTemplate",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"flavor": {"filter": {"name": flavor}},
            "image": {"filter": {"name": "node"}}}}}})
}

/// The manifests of the cluster, whose kubelets need no cloud controller manager.
fn cluster(wanted: &Wanted) -> Vec<Value> {
    let registration = json!({"nodeRegistration": {"name": "{{ local_hostname }}",
        "kubeletExtraArgs": [{"name": "provider-id", "value": "openstack:///'{{ instance_id }}'"}]}});
    let infrastructure = json!({"apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "OpenStackMachineTemplate", "name": wanted.template});
    vec![
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster",
            "metadata": {"name": "demo"},
            "spec": {"identityRef": {"name": "cloud", "cloudName": "simulated"},
                "managedSecurityGroups": {}, "managedSubnets": [{"cidr": "10.6.0.0/24"}],
                "apiServer": {"managedLoadBalancer": {"enabled": true}}}}),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "demo"},
            "spec": {
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "name": "demo"},
                "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "demo"}}}),
        machine_template(wanted.template),
        // ECDSA keys: RSA keys take seconds without optimisation.
        json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": "demo"},
            "spec": {"replicas": wanted.control_plane, "version": wanted.version,
                "kubeadmConfigSpec": {"initConfiguration": registration, "joinConfiguration": registration,
                    "clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}},
                "machineTemplate": {"spec": {"infrastructureRef": infrastructure}}}}),
        json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate",
            "metadata": {"name": "demo"}, "spec": {"template": {"spec": {"joinConfiguration": registration}}}}),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": {"name": "demo"},
            "spec": {"clusterName": "demo", "replicas": wanted.workers,
                "template": {"spec": {"clusterName": "demo", "version": wanted.version,
                    "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io",
                        "kind": "KubeadmConfigTemplate", "name": "demo"}},
                    "infrastructureRef": infrastructure}}}}),
    ]
}
