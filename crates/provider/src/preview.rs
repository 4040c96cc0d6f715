//! Writes of the controllers to the cloud for stored or imagined objects, by the same plans (pure).
//!
//! Resources of earlier steps have placeholders in place of ids.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{Reason, Type};
use api::core::v1beta2::Cluster;
use api::infra::v1beta2::{
    ManagedGroup, NetworkStatusWithSubnets, OpenStackCluster, OpenStackMachine,
    OpenStackMachineSpec, SecurityGroupStatus, Subnet,
};
use kube::ResourceExt;
use openstack::View;
use openstack::compute::ServerGroup;
use openstack::inventory::Table;

use crate::cluster::bastion::mark as bastion_mark;
use crate::cluster::bastion::plan::Observed as SeenOfBastion;
use crate::cluster::control_plane::running;
use crate::cluster::desired::{Desired as OfCluster, bastion_spec, desired as of_cluster};
use crate::cluster::facts::{Facts, Inside, facts as cluster_facts, place};
use crate::cluster::observed::{Observed as SeenOfCluster, References as KnownOfCluster};
use crate::cluster::plan::{self as cluster_plan, Step as ClusterStep};
use crate::context::{is_deleting, namespace};
use crate::identity::{CLUSTER_ID, Identity, MACHINE_ID, Mark};
use crate::images::{self, Available};
use crate::machine::desired::{Desired, desired};
use crate::machine::facts::{Scope, facts};
use crate::machine::failed::{Failed, Placement, is_without_room};
use crate::machine::observed::{Observed, References};
use crate::machine::{drift, pairs, plan as machine_plan};
use crate::names::Names;
use crate::placement;
use crate::problem::Problem;

/// The effect of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A new resource.
    Create,
    /// A change of a resource.
    Change,
    /// Another machine in place of one.
    Replace,
    /// A deletion.
    Delete,
}

impl Action {
    /// The word in tables and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::Change => "change",
            Action::Replace => "replace",
            Action::Delete => "delete",
        }
    }

    /// Action by the first word of a step.
    fn from_step(step: &str) -> Self {
        match step.split(' ').next() {
            Some("create") => Action::Create,
            Some("delete" | "remove" | "disconnect") => Action::Delete,
            _ => Action::Change,
        }
    }
}

/// One write to the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// [`Action`] of the write.
    pub action: Action,
    /// The step, such as `create the network`.
    pub step: String,
    /// The name of the new resource; empty for others.
    pub name: String,
}

/// Numbers of further resources, by the ids of quotas, such as `compute/cores`; memory in MiB, volumes in GiB.
pub type Needs = BTreeMap<&'static str, i64>;

/// [`Write`]s in order, and the resources for the quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The writes.
    pub writes: Vec<Write>,
    /// Reasons to wait before or after the writes.
    pub waits: Vec<String>,
    /// Number of new resources.
    pub needs: Needs,
}

impl Preview {
    fn step(&mut self, step: String, name: impl Into<String>) {
        self.writes.push(Write {
            action: Action::from_step(&step),
            step,
            name: name.into(),
        });
    }

    /// Adds the needs of another preview.
    pub fn need(&mut self, needs: &Needs) {
        for (resource, number) in needs {
            *self.needs.entry(resource).or_default() += number;
        }
    }

    fn one(&mut self, resource: &'static str) {
        *self.needs.entry(resource).or_default() += 1;
    }
}

/// Objects of a cluster, and the cloud.
#[derive(Clone, Copy, Debug)]
pub struct ClusterObjects<'a> {
    /// The Cluster.
    pub cluster: &'a Cluster,
    /// The OpenStackCluster, stored or not.
    pub infra: &'a OpenStackCluster,
    /// Existing control plane [`OpenStackMachine`]s.
    pub control_plane: &'a [OpenStackMachine],
    /// The cloud.
    pub view: &'a Arc<View>,
    /// The Images of ORC.
    pub images: &'a Available,
}

/// Writes for the cluster itself, and the [`OpenStackCluster`] afterwards, for the machines.
///
/// # Errors
/// [`Problem`] of the spec, with the text of the condition.
pub fn cluster(at: ClusterObjects<'_>) -> Result<(Preview, OpenStackCluster), Problem> {
    let infra = at.infra;
    let id = Identity::for_object(infra, CLUSTER_ID).unwrap_or_default();
    let known = KnownOfCluster::from_object(infra);
    let observed = SeenOfCluster::new(Arc::clone(at.view), id, &known);
    let mut preview = Preview::default();
    if is_deleting(infra) {
        let plan = cluster_plan::plan_deletion(&observed, None);
        for step in plan.steps {
            preview.step(step.to_string(), "");
        }
        preview.waits = plan.waits.into_iter().map(|wait| wait.message).collect();
        return Ok((preview, infra.clone()));
    }
    let spec = &infra.spec;
    let names = Names::new(&namespace(at.cluster), &at.cluster.name_any());
    let place = place(spec, &observed)?;
    let machines = at.control_plane.iter();
    let inside = Inside {
        control_plane: machines
            .filter(|machine| !is_deleting(*machine))
            .filter_map(|machine| running(machine, &observed, &place))
            .collect(),
        cidrs: crate::cluster::cidrs(at.cluster),
        is_adopted: crate::cluster::adoption::is_wanted(infra),
        server_groups: crate::cluster::server_groups(infra)?,
        // A view knows no versions: what Octavia refuses is told when it is asked.
        octavia_without_cidrs: None,
    };
    let facts = cluster_facts(spec, Mark::cluster(id), names, &observed, inside)?;
    let desired = of_cluster(spec, &facts);
    let plan = cluster_plan::plan(&desired, &observed);
    for step in &plan.steps {
        of_step(step, &desired, &mut preview);
    }
    preview.waits = plan.waits.into_iter().map(|wait| wait.message).collect();
    let after = imagined(infra, &desired, &observed, &facts);
    bastion(&after, (id, at.images), &desired, &observed, &mut preview)?;
    Ok((preview, after))
}

fn of_step(step: &ClusterStep, desired: &OfCluster, preview: &mut Preview) {
    let names = &desired.names;
    let (name, resource) = match step {
        ClusterStep::InZone(zone, inner) => {
            let Some(own) = desired.zone(zone) else {
                return;
            };
            let mut of_zone = Preview::default();
            of_step(inner, &desired.in_zone(own), &mut of_zone);
            preview.need(&of_zone.needs);
            let writes = of_zone.writes.into_iter().map(|write| Write {
                step: step.to_string(),
                ..write
            });
            preview.writes.extend(writes);
            return;
        }
        // A tag belongs to what is created.
        ClusterStep::TagCreated(_) => return,
        ClusterStep::CreateNetwork => (names.network(), Some("network/network")),
        ClusterStep::CreateSubnet(family) => {
            let name = names.subnet(*family, desired.primary());
            (name, Some("network/subnet"))
        }
        ClusterStep::CreateRouter => (names.network(), Some("network/router")),
        ClusterStep::AddInterface(_) => (String::new(), Some("network/port")),
        ClusterStep::CreateGroup(role) => (names.group(*role), Some("network/security_group")),
        ClusterStep::CreateRules(role) => {
            let rules = desired.groups.get(role).map_or(0, Vec::len);
            let number = i64::try_from(rules).unwrap_or(i64::MAX);
            preview.need(&Needs::from([("network/security_group_rule", number)]));
            (names.group(*role), None)
        }
        ClusterStep::CreateBalancer => {
            preview.one("network/port");
            (names.balancer(), Some("load-balancer/loadbalancer"))
        }
        ClusterStep::CreateServerGroup(_) => (String::new(), None),
        ClusterStep::CreateFloatingIp => (String::new(), Some("network/floatingip")),
        _ => (String::new(), None),
    };
    if let Some(resource) = resource {
        preview.one(resource);
    }
    preview.step(step.to_string(), name);
}

/// [`OpenStackCluster`] with placeholders for missing resources.
fn imagined(
    infra: &OpenStackCluster,
    desired: &OfCluster,
    observed: &SeenOfCluster,
    facts: &Facts,
) -> OpenStackCluster {
    let mut after = infra.clone();
    let status = after.status.get_or_insert_default();
    if status.network.is_none() {
        let created = observed.network().map(|network| network.id.clone());
        let id = facts.network.clone().or(created);
        let subnets = facts.subnets.iter().map(|id| Subnet {
            id: id.clone(),
            ..Subnet::default()
        });
        status.network = Some(NetworkStatusWithSubnets {
            id: id.unwrap_or_else(|| "(the network of the cluster)".to_owned()),
            subnets: subnets.collect(),
            ..NetworkStatusWithSubnets::default()
        });
    }
    let group = |role: ManagedGroup| {
        desired.groups.contains_key(&role).then(|| {
            let name = desired.names.group(role);
            let known = observed.group(&desired.names, role);
            SecurityGroupStatus {
                id: known.map_or_else(|| format!("({name})"), |group| group.id.clone()),
                name,
            }
        })
    };
    status.control_plane_security_group = group(ManagedGroup::ControlPlane);
    status.worker_security_group = group(ManagedGroup::Worker);
    status.bastion_security_group = group(ManagedGroup::Bastion);
    after
}

/// Writes for the bastion: resources with the mark of a former spec go first, and the new one gets the floating IP.
fn bastion(
    infra: &OpenStackCluster,
    (id, images): (Identity, &Available),
    of_cluster: &OfCluster,
    observed: &SeenOfCluster,
    preview: &mut Preview,
) -> Result<(), Problem> {
    let wanted = bastion_spec(&infra.spec);
    let mark = wanted.map(|_| bastion_mark(infra, id));
    let seen = SeenOfBastion::new(observed, mark);
    for former in &seen.former {
        let plan = machine_plan::plan_deletion(former, false);
        for step in plan.steps {
            preview.step(format!("{step} of the bastion"), "");
        }
        preview.waits.extend(plan.waits);
    }
    let Some((_, spec)) = wanted else {
        for ip in &seen.ips {
            preview.step(format!("delete floating IP {} of the bastion", ip.id), "");
        }
        return Ok(());
    };
    if seen
        .current
        .as_ref()
        .is_some_and(|it| it.server().is_some())
    {
        return Ok(());
    }
    let machine = Machine {
        name: of_cluster.names.bastion(),
        spec,
        existing: None,
        failure_domain: infra
            .spec
            .bastion
            .as_ref()
            .and_then(|it| it.availability_zone.clone()),
        group: ManagedGroup::Bastion,
        cluster: of_cluster.names.cluster(),
        images,
    };
    let of_bastion = self::machine(&machine, Some(infra), id, &observed.view)?;
    preview.writes.extend(of_bastion.writes);
    preview.need(&of_bastion.needs);
    if spec.floating_ip_pool_ref.is_none() && seen.ips.is_empty() {
        preview.one("network/floatingip");
        preview.step("create the floating IP of the bastion".to_owned(), "");
    }
    Ok(())
}

/// A machine, stored or imagined.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    /// The name of the OpenStackMachine.
    pub name: String,
    /// [`OpenStackMachineSpec`], of a template for an imagined machine.
    pub spec: &'a OpenStackMachineSpec,
    /// The stored OpenStackMachine.
    pub existing: Option<&'a OpenStackMachine>,
    /// The availability zone.
    pub failure_domain: Option<String>,
    /// The role.
    pub group: ManagedGroup,
    /// The name of the Cluster.
    pub cluster: &'a str,
    /// The Images of ORC.
    pub images: &'a Available,
}

impl Machine<'_> {
    /// Name of the server group of the machine's role.
    fn server_group(&self, infra: Option<&OpenStackCluster>) -> Result<Option<String>, Problem> {
        let Some(infra) = infra else {
            return Ok(None);
        };
        let names = Names::new(&namespace(infra), self.cluster);
        let name = placement::of_role(infra, &names, self.group);
        name.map_err(|text| Problem::new(Type::InstanceReady, Reason::DependencyFailed, text))
    }

    fn mark(&self, cluster: Identity) -> Mark {
        let id = self
            .existing
            .and_then(|it| Identity::for_object(it, MACHINE_ID));
        Mark::machine(cluster, id.unwrap_or_default())
    }

    fn known(&self) -> References {
        self.existing
            .map(References::from_object)
            .unwrap_or_default()
    }
}

/// Writes for a machine.
///
/// # Errors
/// [`Problem`] of the spec, with the text of the condition.
pub fn machine(
    of: &Machine<'_>,
    infra: Option<&OpenStackCluster>,
    cluster: Identity,
    view: &Arc<View>,
) -> Result<Preview, Problem> {
    let mark = of.mark(cluster);
    let observed = Observed::new(Arc::clone(view), mark, of.known());
    let mut preview = Preview::default();
    if let Some(wait) = of.existing.and_then(|it| retried(it, of, &observed)) {
        preview.waits.push(wait);
        return Ok(preview);
    }
    if let (Some(existing), Some(_)) = (of.existing, observed.known.server()) {
        let status = existing.status.as_ref();
        let resolved = status.and_then(|status| status.resolved.as_ref());
        let states = drift::of(&of.name, of.spec, resolved);
        let plan = machine_plan::existing(&states, &pairs::of(existing), &observed);
        for step in &plan.steps {
            preview.step(step.to_string(), "");
        }
        preview.waits = plan.waits;
        return Ok(preview);
    }
    let place = of.existing.map(|existing| {
        let failed = Failed::from_object(existing);
        Placement::new(existing, of.failure_domain.clone(), &failed)
    });
    let spec = place
        .as_ref()
        .map_or(Cow::Borrowed(of.spec), |place| place.spec(of.spec));
    let zone = match &place {
        Some(place) => place.zone.clone(),
        None => of.failure_domain.clone(),
    };
    let server_group = of.server_group(infra)?;
    let view = &with_group(view, server_group.as_deref());
    let scope = Scope {
        cluster_name: of.cluster.to_owned(),
        group: of.group,
        server_group: server_group.clone(),
        failure_domain: zone,
        zone_field: place
            .as_ref()
            .map_or("failureDomain", |place| place.zone_field),
        flavor_field: place.as_ref().map_or("flavor", Placement::flavor_field),
        project: "the cloud".to_owned(),
    };
    let facts = facts(&images::of(of.images, &spec), infra, mark, &scope, view)?;
    let tags = infra.map_or(&[][..], |infra| infra.spec.tags.as_slice());
    let desired = desired(&of.name, &spec, tags, &facts, None);
    let plan = machine_plan::plan(&desired, &observed);
    for step in &plan.steps {
        of_machine(step, &desired, &mut preview);
    }
    // The plan waits for volumes, and creates the server then.
    let creates = |step: &machine_plan::Step| matches!(step, machine_plan::Step::CreateServer);
    if observed.server().is_none() && !plan.steps.iter().any(creates) {
        of_machine(&machine_plan::Step::CreateServer, &desired, &mut preview);
    }
    if preview.writes.iter().any(|it| it.action == Action::Create) {
        preview.need(&needs_of_server(&desired, view));
        if of.spec.floating_ip_pool_ref.is_some() {
            preview.one("network/floatingip");
            preview.step("create its floating IP from the pool".to_owned(), "");
        }
    }
    preview.waits = plan.waits;
    Ok(preview)
}

/// Reason to wait for a machine with a failed server for want of room: another server follows, once the controller has
/// read that the failed one was never used.
fn retried(existing: &OpenStackMachine, of: &Machine<'_>, observed: &Observed) -> Option<String> {
    let server = observed.server()?;
    let known = Failed::from_object(existing);
    if !known.is(&server.id) && !is_without_room(existing, server) {
        return None;
    }
    let place = Placement::new(existing, of.failure_domain.clone(), &known.with(&server.id));
    Some(format!(
        "server {} is in ERROR, since Nova had no room: if nothing was made of it, it is deleted, and another one follows{}",
        server.id,
        place.words()
    ))
}

/// [`View`] with a placeholder for a server group of an earlier step.
fn with_group(view: &Arc<View>, name: Option<&str>) -> Arc<View> {
    let Some(name) = name.filter(|name| placement::find(view, name).is_none()) else {
        return Arc::clone(view);
    };
    let group = ServerGroup {
        id: "(the server group of the role)".to_owned(),
        name: name.to_owned(),
        ..ServerGroup::default()
    };
    Arc::new(View {
        server_groups: Arc::new(Table::from_items([group])),
        ..View::clone(view)
    })
}

fn of_machine(step: &machine_plan::Step, desired: &Desired, preview: &mut Preview) {
    use machine_plan::Step;
    match step {
        // A tag belongs to what is created.
        Step::TagPort(_) | Step::TagTrunk(_) => return,
        Step::CreateVolume(index) => {
            if let Some(volume) = desired.volumes.get(*index) {
                let size = volume.create.size;
                preview.need(&Needs::from([
                    ("block-storage/volumes", 1),
                    ("block-storage/gigabytes", size),
                ]));
                preview.step("create a volume".to_owned(), volume.create.name.clone());
            }
            return;
        }
        Step::CreatePorts => {
            for port in &desired.ports {
                preview.one("network/port");
                preview.step("create a port".to_owned(), port.create.name.clone());
            }
            return;
        }
        Step::CreateTrunk(_) => preview.one("network/trunk"),
        _ => {}
    }
    let is_server = matches!(step, Step::CreateServer);
    let name = is_server.then(|| desired.server.name.clone());
    preview.step(step.to_string(), name.unwrap_or_default());
}

fn needs_of_server(desired: &Desired, view: &View) -> Needs {
    let mut needs = Needs::from([("compute/instances", 1)]);
    if let Some(flavor) = view.flavors.get(&desired.server.flavor_id) {
        needs.extend([("compute/cores", flavor.vcpus), ("compute/ram", flavor.ram)]);
    }
    needs
}

/// [`Preview`] of the deletion of a stored machine.
pub fn deletion(machine: &OpenStackMachine, cluster: Identity, view: &Arc<View>) -> Preview {
    let id = Identity::for_object(machine, MACHINE_ID).unwrap_or_default();
    let mark = Mark::machine(cluster, id);
    let observed = Observed::new(Arc::clone(view), mark, References::from_object(machine));
    let plan = machine_plan::plan_deletion(&observed, false);
    let mut preview = Preview::default();
    for step in &plan.steps {
        preview.step(step.to_string(), "");
    }
    preview.waits = plan.waits;
    preview
}

/// [`Identity`] of a cluster, a new one if necessary.
#[must_use]
pub fn identity(infra: &OpenStackCluster) -> Identity {
    Identity::for_object(infra, CLUSTER_ID).unwrap_or_default()
}

#[cfg(test)]
mod tests;
