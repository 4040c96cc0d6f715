//! Writes for a cluster with machines, in order, and the room in quotas. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use ipnet::IpNet;
use kube::ResourceExt;
use openstack::View;
use provider::AvailableImages;
use provider::identity::Identity;
use provider::preview::{self, Action, Machine, Needs, Preview};

use super::objects::{Cluster, Pool};

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) action: Action,
    /// Kind and name of the object behind the write.
    pub(super) object: String,
    pub(super) step: String,
    /// Name of the created resource.
    pub(super) name: String,
}

/// Room in a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) resource: String,
    pub(super) needed: i64,
    /// Rest of the quota; `None` without a limit, or for an unknown one.
    pub(super) left: Option<i64>,
}

impl Room {
    pub(super) fn is_short(&self) -> bool {
        self.left.is_some_and(|left| left < self.needed)
    }
}

/// Writes for a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Forecast {
    pub(super) cluster: String,
    pub(super) changes: Vec<Change>,
    pub(super) waits: Vec<String>,
    pub(super) room: Vec<Room>,
    /// Reasons against parts of the plan.
    pub(super) problems: Vec<String>,
}

impl Forecast {
    /// [`Room`] of resources with too few left.
    pub(super) fn short(&self) -> impl Iterator<Item = &Room> {
        self.room.iter().filter(|room| room.is_short())
    }

    fn add(&mut self, object: &str, preview: Preview) {
        let writes = preview.writes.into_iter();
        self.changes.extend(writes.map(|write| Change {
            action: write.action,
            object: object.to_owned(),
            step: write.step,
            name: write.name,
        }));
        let waits = preview.waits.into_iter();
        self.waits
            .extend(waits.map(|wait| format!("{object}: {wait}")));
    }
}

/// [`Forecast`] of the writes for a cluster and its machines.
pub(super) fn forecast(cluster: &Cluster, view: &Arc<View>) -> Forecast {
    let mut forecast = Forecast {
        cluster: cluster.object.name_any(),
        problems: cluster.problems.clone(),
        ..Forecast::default()
    };
    let at = preview::ClusterObjects {
        cluster: &cluster.object,
        infra: &cluster.infra,
        control_plane: &cluster.serving,
        view,
        images: &cluster.images,
    };
    let label = format!("OpenStackCluster/{}", cluster.infra.name_any());
    let infra = match preview::cluster(at) {
        Ok((found, infra)) => {
            let mut needs = Preview::default();
            needs.need(&found.needs);
            forecast.add(&label, found);
            of_machines(cluster, &infra, view, &mut forecast, &mut needs);
            forecast.room = room(&needs.needs, view);
            infra
        }
        Err(problem) => {
            forecast.problems.push(format!("{label}: {problem}"));
            return forecast;
        }
    };
    forecast.room.extend(addresses(cluster, &infra, view));
    forecast
}

fn of_machines(
    cluster: &Cluster,
    infra: &OpenStackCluster,
    view: &Arc<View>,
    forecast: &mut Forecast,
    needs: &mut Preview,
) {
    let name = cluster.object.name_any();
    let all = Machines {
        cluster: &name,
        infra,
        id: preview::identity(infra),
        view,
        images: &cluster.images,
    };
    for pool in &cluster.pools {
        all.of_pool(pool, forecast, needs);
    }
}

/// Common part of the machines of a cluster.
struct Machines<'a> {
    cluster: &'a str,
    infra: &'a OpenStackCluster,
    id: Identity,
    view: &'a Arc<View>,
    images: &'a AvailableImages,
}

impl Machines<'_> {
    fn of_pool(&self, pool: &Pool, forecast: &mut Forecast, needs: &mut Preview) {
        let there = pool.current.len() + pool.outdated.len();
        let surplus = there.saturating_sub(pool.replicas);
        // Those that are to change go first, as in a roll-out.
        let outdated = pool.outdated.iter().map(|(machine, _)| machine);
        let leaving: Vec<_> = outdated.chain(&pool.current).take(surplus).collect();
        for machine in &leaving {
            let label = format!("OpenStackMachine/{}", machine.name_any());
            forecast.add(&label, preview::deletion(machine, self.id, self.view));
        }
        let stays = |machine: &&OpenStackMachine| {
            !leaving.iter().any(|it| it.name_any() == machine.name_any())
        };
        for machine in pool.current.iter().filter(stays) {
            self.add(&self.existing(pool, machine), forecast, needs);
        }
        let replaced = pool.outdated.iter().filter(|(machine, _)| stays(&machine));
        let replaced: Vec<_> = replaced.collect();
        for (machine, why) in &replaced {
            forecast.changes.push(Change {
                action: Action::Replace,
                object: format!("OpenStackMachine/{}", machine.name_any()),
                step: format!("replace the machine: {why}"),
                name: String::new(),
            });
        }
        if !replaced.is_empty() {
            // One more than there are at a time.
            let surge = self.further(pool, "roll-out");
            match preview::machine(&surge, Some(self.infra), self.id, self.view) {
                Ok(found) => needs.need(&found.needs),
                Err(problem) => forecast.problems.push(format!("{}: {problem}", pool.owner)),
            }
        }
        for number in there..pool.replicas {
            let machine = self.further(pool, &format!("{}", number + 1));
            if !self.add(&machine, forecast, needs) {
                return;
            }
        }
    }

    /// [`Machine`] whose name is not known yet.
    fn further<'m>(&'m self, pool: &'m Pool, number: &str) -> Machine<'m> {
        Machine {
            name: format!("{}-({number})", pool.name),
            spec: &pool.template.spec.template.spec,
            existing: None,
            failure_domain: pool.failure_domain.clone(),
            group: pool.group,
            cluster: self.cluster,
            images: self.images,
        }
    }

    fn existing<'m>(&'m self, pool: &'m Pool, machine: &'m OpenStackMachine) -> Machine<'m> {
        Machine {
            name: machine.name_any(),
            spec: &machine.spec,
            existing: Some(machine),
            ..self.further(pool, "")
        }
    }

    /// Adds the writes for a machine; false if the [`Machine`] cannot be built.
    fn add(&self, machine: &Machine<'_>, forecast: &mut Forecast, needs: &mut Preview) -> bool {
        let label = format!("OpenStackMachine/{}", machine.name);
        match preview::machine(machine, Some(self.infra), self.id, self.view) {
            Ok(found) => {
                needs.need(&found.needs);
                forecast.add(&label, found);
                true
            }
            Err(problem) => {
                forecast.problems.push(format!("{label}: {problem}"));
                false
            }
        }
    }
}

/// [`Room`] for each needed resource.
fn room(needs: &Needs, view: &View) -> Vec<Room> {
    let needs: BTreeMap<_, _> = needs.iter().filter(|(_, needed)| **needed > 0).collect();
    needs
        .into_iter()
        .map(|(resource, needed)| {
            let quota = view.quotas.get(resource);
            // Octavia does not say how many there are.
            let counted = match *resource {
                "load-balancer/loadbalancer" => i64::try_from(view.load_balancers.len()).ok(),
                _ => None,
            };
            let left = quota.filter(|it| it.limit >= 0).and_then(|it| {
                let used = it.used.or(counted)?;
                Some(it.limit.saturating_sub(used).max(0))
            });
            Room {
                resource: (*resource).to_owned(),
                needed: *needed,
                left,
            }
        })
        .collect()
}

/// Addresses of the managed subnet; each machine needs one, and so do router, load balancer and DHCP.
fn addresses(cluster: &Cluster, infra: &OpenStackCluster, view: &View) -> Option<Room> {
    let network = infra.status.as_ref()?.network.as_ref()?;
    let given = &infra.spec.managed_subnets.first()?.cidr;
    // The range of a subnet from a pool is known once the subnet exists.
    let cidr = match given.is_empty() {
        true => &network.subnets.first()?.cidr,
        false => given,
    };
    let IpNet::V4(net) = cidr.parse().ok()? else {
        return None;
    };
    let used = view.ports.iter();
    let used = used.filter(|port| port.network_id == network.id).count();
    let new: usize = cluster
        .pools
        .iter()
        .map(|pool| pool.replicas.saturating_sub(pool.machines().count()))
        .sum();
    let of_cluster = if used == 0 { 3 } else { 0 };
    let needed = i64::try_from(new + of_cluster).ok()?;
    let there = i64::try_from(net.hosts().count()).ok()?;
    let left = there.saturating_sub(i64::try_from(used).ok()?).max(0);
    (needed > 0).then(|| Room {
        resource: format!("addresses of {cidr}"),
        needed,
        left: Some(left),
    })
}
