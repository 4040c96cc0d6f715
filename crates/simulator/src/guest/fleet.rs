//! All guests: reconciles them with every [`DataPlane`], powering guests on and off.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::boot::{Boot, Event, Outcome, Shared};
use super::cluster::{Cluster, Member, Signal};
use super::console::Consoles;
use super::network::{self, Backend, Network, NodePort};
use super::record::{Membership, Record};
use crate::data_plane::{DataPlane, GuestFault, Instance};

/// Property of a server. The value [`FORCED`] puts `--force-new-cluster` into the manifest of its etcd.
const ETCD: &str = "simulator:etcd";
const FORCED: &str = "force-new-cluster";

/// Delay before an address that could not be bound is retried.
const REBIND: Duration = Duration::from_secs(1);
/// Duration of a computation of routes up to which no rest follows.
const QUICK: Duration = Duration::from_micros(500);

/// One instance of the DataPlane.
struct Guest {
    /// Number of power-ons.
    run: u64,
    /// `boot` counter of the instance in the last DataPlane.
    boot: u64,
    /// Number of the disk that the record is of.
    disk: u64,
    /// True from a new disk to the first boot from it. The Node of the former one may have the same name.
    is_anew: bool,
    /// Cancelled by power-off; `None` while off.
    power: Option<CancellationToken>,
    /// Result of the first boot; `None` until then.
    record: Option<Record>,
    /// API server that the guest serves, or served before the power-off.
    member: Option<Arc<Member>>,
    /// True if the etcd manifest has `--force-new-cluster`.
    forced: bool,
    /// True if the kubelet does not report although it runs.
    silent: bool,
}

/// State of the task that follows the [`DataPlane`].
pub(crate) struct Fleet {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    network: Network,
    guests: HashMap<String, Guest>,
    /// Records of earlier processes whose instances have not been in the [`DataPlane`] yet.
    unclaimed: HashMap<String, Record>,
    /// Clusters served since the start of the process.
    clusters: HashMap<String, Arc<Cluster>>,
    /// Nodes whose instances were deleted while their cluster was not open, by cluster.
    gone: HashMap<String, Vec<String>>,
    /// True if a DataPlane has been received.
    followed: bool,
    /// True if the state of earlier processes has been cleaned up.
    swept: bool,
    world: Arc<DataPlane>,
}

impl Fleet {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let tasks = TaskTracker::new();
        let unclaimed = shared.state.records();
        for (instance, record) in &unclaimed {
            shared
                .consoles
                .restore(instance, &record.console, record.on);
        }
        Self {
            network: Network::new(tasks.clone()),
            shared,
            tasks,
            guests: HashMap::new(),
            unclaimed,
            clusters: HashMap::new(),
            gone: HashMap::new(),
            followed: false,
            swept: false,
            world: Arc::default(),
        }
    }

    /// Follows `world` until `shutdown`.
    pub(crate) async fn run(
        mut self,
        mut world: watch::Receiver<Arc<DataPlane>>,
        mut events: mpsc::UnboundedReceiver<Event>,
        shutdown: CancellationToken,
    ) {
        let first = Arc::clone(&world.borrow_and_update());
        self.follow(first);
        let mut rebind = self.route().await;
        let ports_changed = self.shared.clusters.ports_changed();
        let mut open = true;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                changed = world.changed(), if open => match changed {
                    Ok(()) => {
                        let next = Arc::clone(&world.borrow_and_update());
                        self.follow(next);
                    }
                    // The cloud has ended; its guests run until shutdown.
                    Err(_) => open = false,
                },
                Some(event) = events.recv() => self.hear(event),
                () = ports_changed.notified() => {}
                () = tokio::time::sleep_until(rebind.unwrap_or_else(Instant::now)), if rebind.is_some() => {}
            }
            // All events since then change the routes only once.
            while let Ok(event) = events.try_recv() {
                self.hear(event);
            }
            let began = std::time::Instant::now();
            rebind = self.route().await;
            // With many clusters, computing routes takes a while: the pause limits it to a quarter of a core.
            let pause = began.elapsed().saturating_sub(QUICK) * 3;
            let _ = shutdown
                .run_until_cancelled(tokio::time::sleep(pause))
                .await;
        }
        for guest in self.guests.values() {
            guest.switch_off();
        }
        self.network.close();
        self.tasks.close();
        self.tasks.wait().await;
        self.shared.clusters.close().await;
    }

    fn follow(&mut self, world: Arc<DataPlane>) {
        let present: HashSet<&str> = world
            .instances
            .iter()
            .map(|instance| instance.id.as_str())
            .collect();
        let removed: Vec<String> = self
            .guests
            .keys()
            .filter(|id| !present.contains(id.as_str()))
            .cloned()
            .collect();
        for instance in &world.instances {
            self.follow_instance(&world, instance);
        }
        for id in removed {
            self.remove(&id);
        }
        // An empty first DataPlane may only mean that the cloud has not been loaded yet.
        let complete = self.followed || !world.instances.is_empty();
        if complete && !self.swept {
            self.sweep(&present);
            self.swept = true;
        }
        self.followed = true;
        self.world = world;
    }

    fn follow_instance(&mut self, world: &DataPlane, instance: &Instance) {
        if !self.guests.contains_key(&instance.id) {
            let record = self.unclaimed.remove(&instance.id);
            let guest = Guest {
                run: 0,
                boot: instance.boot,
                disk: record.as_ref().map_or(instance.disk, |record| record.disk),
                is_anew: false,
                power: None,
                record,
                member: None,
                forced: false,
                silent: false,
            };
            self.guests.insert(instance.id.clone(), guest);
        }
        let Some(guest) = self.guests.get_mut(&instance.id) else {
            return;
        };
        let rebooted = guest.boot != instance.boot;
        guest.boot = instance.boot;
        let node = guest
            .record
            .as_ref()
            .and_then(|record| record.node.as_ref());
        let cluster = node.and_then(|node| self.clusters.get(&node.cluster));
        if guest.power.is_some() && (!instance.running || rebooted) {
            guest.switch_off();
            guest.power = None;
            if let (Some(cluster), Some(node)) = (cluster, node) {
                cluster.signal(Signal::Down(node.name.clone()));
            }
        }
        if guest.disk != instance.disk {
            guest.begins_anew(instance.disk);
            self.shared.state.remove(&instance.id);
        }
        let node = guest.record.as_ref();
        let node = node.and_then(|record| record.node.as_ref());
        let cluster = node.and_then(|node| self.clusters.get(&node.cluster));
        let silent = guest.silent;
        guest.silent = GuestFault::from_instance(instance) == Some(GuestFault::KubeletDies);
        if guest.power.is_some()
            && guest.silent != silent
            && let (Some(cluster), Some(node)) = (cluster, node)
        {
            cluster.signal(match guest.silent {
                true => Signal::Down(node.name.clone()),
                false => Signal::Up(node.name.clone()),
            });
        }
        let forced = guest.forced;
        guest.forced = instance.metadata.get(ETCD).map(String::as_str) == Some(FORCED);
        if guest.forced && !forced {
            guest.force_etcd(&self.shared.consoles);
        }
        if instance.running && guest.power.is_none() {
            if let (Some(cluster), Some(node), false) = (cluster, node, guest.silent) {
                cluster.signal(Signal::Up(node.name.clone()));
            }
            self.switch_on(world, instance);
        }
    }

    fn switch_on(&mut self, world: &DataPlane, instance: &Instance) {
        let Some(guest) = self.guests.get_mut(&instance.id) else {
            return;
        };
        let power = CancellationToken::new();
        guest.power = Some(power.clone());
        guest.run += 1;
        if guest.record.is_some()
            && GuestFault::from_instance(instance) == Some(GuestFault::DiskGone)
        {
            guest.begins_anew(instance.disk);
            self.shared.state.remove(&instance.id);
        }
        let booted = match &guest.record {
            // A worker that has booted, and a guest without a node, run no task.
            Some(record) => match &record.node {
                Some(node) if node.bind_port.is_some() => Some(node.clone()),
                _ => return,
            },
            None => None,
        };
        let boot = Boot {
            shared: Arc::clone(&self.shared),
            instance: instance.clone(),
            floating: floating(world, &instance.fixed_ips),
            power: power.clone(),
        };
        let run = guest.run;
        self.tasks
            .spawn(power.run_until_cancelled_owned(run_guest(boot, run, booted)));
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Serving(member) => self.serving(member),
            Event::Booted {
                instance,
                run,
                outcome,
            } => self.booted(&instance, run, outcome),
        }
    }

    fn serving(&mut self, member: Arc<Member>) {
        if member.alive.is_cancelled() {
            return;
        }
        let Some(guest) = self.guests.get_mut(&member.instance) else {
            return;
        };
        let cluster = Arc::clone(&member.cluster);
        info!(
            instance = member.instance,
            cluster = cluster.key,
            "a guest serves a workload cluster"
        );
        cluster.kubelets.serves(&member);
        guest.member = Some(member);
        if guest.forced {
            guest.force_etcd(&self.shared.consoles);
        }
        if self
            .clusters
            .insert(cluster.key.clone(), Arc::clone(&cluster))
            .is_some()
        {
            return;
        }
        // The cluster has just been opened: signal the changes of its nodes in the meantime.
        for guest in self.guests.values() {
            if let Some(node) = guest.node().filter(|node| node.cluster == cluster.key) {
                let name = node.name.clone();
                let on = guest.power.is_some() && !guest.silent;
                cluster.signal(if on {
                    Signal::Up(name)
                } else {
                    Signal::Down(name)
                });
            }
        }
        for node in self.gone.remove(&cluster.key).unwrap_or_default() {
            cluster.signal(Signal::Gone(node));
        }
    }

    fn booted(&mut self, instance: &str, run: u64, outcome: Outcome) {
        let node = match outcome {
            Outcome::Node(node) => Some(node),
            Outcome::Nothing | Outcome::Failed => None,
        };
        let Some(guest) = self
            .guests
            .get_mut(instance)
            .filter(|guest| guest.run == run)
        else {
            // Deleted or powered off just now. After another boot, the machine finds its Node.
            if let Some(node) = node
                && !self.guests.contains_key(instance)
                && let Some(cluster) = self.clusters.get(&node.cluster)
            {
                cluster.signal(Signal::Gone(node.name));
            }
            return;
        };
        let record = Record {
            node,
            disk: guest.disk,
            console: self.shared.consoles.text(instance),
            on: self.shared.consoles.on(instance),
        };
        if let Err(error) = self.shared.state.write(instance, &record) {
            warn!(
                instance,
                "cannot write the record of a guest, it will boot again after a restart: {error}"
            );
        }
        guest.record = Some(record);
        let is_anew = std::mem::take(&mut guest.is_anew);
        let is_heard = guest.power.is_some() && !guest.silent;
        let Some(node) = guest.node() else {
            return;
        };
        let signal = match is_heard {
            // The owner of the Node was unknown until now: its machine may have been switched off since it joined.
            false => Signal::Down(node.name.clone()),
            // The end of the former disk was the silence of a Node of this name.
            true if is_anew => Signal::Up(node.name.clone()),
            true => return,
        };
        if let Some(cluster) = self.clusters.get(&node.cluster) {
            cluster.signal(signal);
        }
    }

    /// Removes a deleted instance.
    fn remove(&mut self, id: &str) {
        let Some(guest) = self.guests.remove(id) else {
            return;
        };
        guest.switch_off();
        self.shared.consoles.forget(id);
        let node = guest
            .node()
            .map(|node| (node.cluster.clone(), node.name.clone()));
        let member = guest
            .member
            .map(|it| (it.cluster.key.clone(), it.node.clone()));
        self.leave(id, node.or(member));
    }

    /// Removes a deleted instance from its cluster, and the cluster with its last control plane.
    fn leave(&mut self, id: &str, node: Option<(String, String)>) {
        if let Some((key, name)) = node {
            if self.has_control_plane(&key) {
                match self.clusters.get(&key) {
                    Some(cluster) => cluster.signal(Signal::Gone(name)),
                    None => self.gone.entry(key).or_default().push(name),
                }
            } else {
                self.drop_cluster(key);
            }
        }
        self.shared.state.remove(id);
    }

    fn has_control_plane(&self, key: &str) -> bool {
        let serves = |guest: &Guest| {
            guest
                .member
                .as_ref()
                .is_some_and(|member| member.cluster.key == key)
                || guest
                    .node()
                    .is_some_and(|node| node.cluster == key && node.bind_port.is_some())
        };
        // A record whose instance has not been seen yet may be one.
        let unclaimed = |record: &Record| {
            let node = record.node.as_ref();
            node.is_some_and(|node| node.cluster == key && node.bind_port.is_some())
        };
        self.guests.values().any(serves) || self.unclaimed.values().any(unclaimed)
    }

    fn drop_cluster(&mut self, key: String) {
        self.gone.remove(&key);
        self.clusters.remove(&key);
        let shared = Arc::clone(&self.shared);
        self.tasks.spawn(async move {
            info!(
                cluster = key,
                "the last control plane guest of a workload cluster is gone"
            );
            shared.clusters.remove(&key).await;
        });
    }

    /// Removes the state of instances that were deleted while the process was down.
    fn sweep(&mut self, present: &HashSet<&str>) {
        let orphans: Vec<(String, Record)> =
            std::mem::take(&mut self.unclaimed).into_iter().collect();
        for (id, record) in orphans {
            self.shared.consoles.forget(&id);
            self.leave(&id, record.node.map(|node| (node.cluster, node.name)));
        }
        for key in self.shared.state.cluster_keys() {
            // An interrupted init has a directory, but no record yet.
            let creator = key.split_once('-').map_or("", |(_, instance)| instance);
            if !present.contains(creator) && !self.has_control_plane(&key) {
                self.drop_cluster(key);
            }
        }
    }

    /// Updates the bound addresses. Returns the time of the next attempt if one could not be bound.
    async fn route(&mut self) -> Option<Instant> {
        let members = self
            .guests
            .values()
            .filter_map(|guest| guest.member.clone())
            .map(Backend::Api);
        let backends: Vec<Backend> = members.chain(self.node_ports()).collect();
        let routes = network::routes(&self.world, &backends, &self.shared.options.outside);
        self.network
            .follow(routes)
            .await
            .then(|| Instant::now() + REBIND)
    }
}

impl Fleet {
    /// Returns the running nodes, once for each node port of their cluster.
    fn node_ports(&self) -> Vec<Backend> {
        let mut all = Vec::new();
        for instance in &self.world.instances {
            let Some(guest) = self.guests.get(&instance.id) else {
                continue;
            };
            let (Some(node), Some(power)) = (guest.node(), &guest.power) else {
                continue;
            };
            let Some(cluster) = self.clusters.get(&node.cluster) else {
                continue;
            };
            for port in cluster.services.load().iter() {
                let at = |ip: &IpAddr| SocketAddr::new(*ip, port.node_port);
                all.push(Backend::Service(Arc::new(NodePort {
                    instance: instance.id.clone(),
                    node: node.name.clone(),
                    port: port.clone(),
                    addresses: instance.fixed_ips.iter().map(at).collect(),
                    power: power.clone(),
                })));
            }
        }
        all
    }
}

impl Guest {
    /// Forgets everything that was on the disk. Only other machines still know the Node and the member of etcd.
    fn begins_anew(&mut self, disk: u64) {
        (self.record, self.member, self.disk) = (None, None, disk);
        self.is_anew = true;
    }

    fn node(&self) -> Option<&Membership> {
        self.record.as_ref()?.node.as_ref()
    }

    /// Restarts the etcd member alone, like a person who adds an argument to the manifest of the static Pod. While the
    /// argument is there, each start does the same.
    fn force_etcd(&self, consoles: &Consoles) {
        let Some(member) = self.member.as_ref().filter(|it| it.etcd.is_some()) else {
            return;
        };
        let console = consoles.of(&member.instance);
        match member.cluster.etcd.force_new_cluster(&member.instance) {
            Ok(()) => console.line("etcd: forced a new cluster, whose only member is this one"),
            Err(why) => console.line(&format!("etcd: cannot force a new cluster: {why}")),
        }
    }

    fn switch_off(&self) {
        if let Some(power) = &self.power {
            power.cancel();
        }
    }
}

/// Boots or resumes a guest; the network serves its API.
async fn run_guest(boot: Boot, run: u64, booted: Option<Membership>) {
    let console = boot.shared.consoles.of(&boot.instance.id);
    console.power_on();
    let instance = boot.instance.id.clone();
    match booted {
        Some(node) => {
            if let Err(error) = boot.resume(&node).await {
                console.line(&format!("kubelet: the API server does not start: {error}"));
                warn!(
                    instance,
                    node = node.name,
                    "a guest's API server does not start: {error}"
                );
            }
        }
        None => {
            let outcome = boot.first().await;
            let _ = boot.shared.events.send(Event::Booted {
                instance,
                run,
                outcome,
            });
        }
    }
}

/// Returns the floating addresses of the fixed addresses.
fn floating(world: &DataPlane, fixed: &[IpAddr]) -> Vec<IpAddr> {
    let owners = |address: &IpAddr| {
        world
            .instances
            .iter()
            .filter(|other| other.fixed_ips.contains(address))
            .count()
    };
    world
        .addresses
        .iter()
        .filter(|forward| fixed.contains(&forward.fixed) && owners(&forward.fixed) == 1)
        .map(|forward| forward.floating)
        .collect()
}
