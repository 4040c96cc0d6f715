//! The data plane: forwards floating addresses to the API servers of control plane guests, and to the node ports of
//! Services.
//!
//! [`routes`] is pure: it computes the guests behind each floating address and port, directly or through a load
//! balancer listener. [`Network`] binds exactly those addresses and passes every connection to a guest that is alive.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::outside::Outside;
use crate::world::{Listener, World};

mod backend;

pub(crate) use backend::{Backend, NodePort};

/// A server on a guest as a target of routes; a trait for tests.
pub(crate) trait Target: Clone {
    /// Its fixed addresses and ports.
    fn addresses(&self) -> &[SocketAddr];
    /// The addresses that its cluster names for it: the host in kubeconfigs, or those in the status of the Service.
    fn endpoints(&self) -> &[IpAddr];
}

/// The guests behind each outside address and port.
///
/// Fixed addresses are not unique: every cluster may use 10.6.0.0/24. If several guests match, those whose cluster
/// names the outside address are chosen; if there are none, there is no route.
pub(crate) fn routes<T: Target>(
    world: &World,
    targets: &[T],
    outside: &Outside,
) -> BTreeMap<SocketAddr, Vec<T>> {
    let inside = Inside::new(world, targets);
    let forwards = world
        .addresses
        .iter()
        .map(|forward| (forward.floating, forward.fixed));
    // The address of a server or load balancer on the external network leads to it, too.
    let direct = inside
        .owners
        .keys()
        .chain(inside.balancers.keys())
        .map(|address| (*address, *address));
    let pairs: BTreeSet<(IpAddr, IpAddr)> = forwards
        .chain(direct)
        .filter(|(address, _)| outside.contains(*address))
        .collect();
    let mut found: BTreeMap<SocketAddr, Candidates> = BTreeMap::new();
    for (outside, fixed) in pairs {
        inside.named(outside, fixed, |port, target| {
            let at = SocketAddr::new(outside, port);
            found.entry(at).or_default().named.insert(target);
        });
        inside.unique(fixed, |port, target| {
            let at = SocketAddr::new(outside, port);
            found.entry(at).or_default().unique.insert(target);
        });
    }
    let chosen = |candidates: Candidates| {
        let places = candidates.choose().into_iter();
        places
            .filter_map(|place| targets.get(place).cloned())
            .collect()
    };
    found
        .into_iter()
        .map(|(at, candidates)| (at, chosen(candidates)))
        .collect()
}

/// The guests that may be behind an outside address and port, by their places.
#[derive(Default)]
struct Candidates {
    /// Those whose cluster names the address.
    named: BTreeSet<usize>,
    /// Those that it leads to without doubt.
    unique: BTreeSet<usize>,
}

impl Candidates {
    fn choose(self) -> BTreeSet<usize> {
        match self.named.is_empty() {
            true => self.unique,
            false => self.named,
        }
    }
}

/// What is at the fixed addresses. There may be a thousand clusters with the same ones, so that nothing goes through all
/// that have an address.
struct Inside<'a, T> {
    targets: &'a [T],
    /// The places of targets by address.
    by_address: BTreeMap<SocketAddr, Vec<usize>>,
    /// The same by an address that their cluster names.
    by_endpoint: HashMap<IpAddr, Vec<usize>>,
    /// How many ports have a fixed address.
    owners: HashMap<IpAddr, usize>,
    /// Load balancers by fixed address.
    balancers: HashMap<IpAddr, Balancers<'a>>,
}

/// The load balancers with one fixed address.
#[derive(Default)]
struct Balancers<'a> {
    listeners: Vec<&'a Listener>,
    /// The ports that lead to a member.
    ports: HashMap<SocketAddr, BTreeSet<u16>>,
}

impl Balancers<'_> {
    /// Whether there is one only.
    fn is_one(&self) -> bool {
        let first = self.listeners.first().map(|it| &it.load_balancer_id);
        self.listeners
            .iter()
            .all(|it| Some(&it.load_balancer_id) == first)
    }
}

impl<'a, T: Target> Inside<'a, T> {
    fn new(world: &'a World, targets: &'a [T]) -> Self {
        let mut inside = Self {
            targets,
            by_address: BTreeMap::new(),
            by_endpoint: HashMap::new(),
            owners: HashMap::new(),
            balancers: HashMap::new(),
        };
        for (place, target) in targets.iter().enumerate() {
            for address in target.addresses() {
                inside.by_address.entry(*address).or_default().push(place);
            }
            for endpoint in target.endpoints() {
                inside.by_endpoint.entry(*endpoint).or_default().push(place);
            }
        }
        for instance in &world.instances {
            for address in &instance.fixed_ips {
                *inside.owners.entry(*address).or_default() += 1;
            }
        }
        let is_tcp = |listener: &&Listener| !matches!(listener.protocol.as_str(), "UDP" | "SCTP");
        for listener in world.listeners.iter().filter(is_tcp) {
            let found = inside.balancers.entry(listener.vip).or_default();
            found.listeners.push(listener);
            for member in &listener.members {
                let ports = found.ports.entry(*member).or_default();
                ports.insert(listener.port);
            }
        }
        inside
    }

    /// The targets at a fixed address whose cluster names `outside`, and the ports that lead to them.
    fn named(&self, outside: IpAddr, fixed: IpAddr, mut found: impl FnMut(u16, usize)) {
        let balancers = self.balancers.get(&fixed);
        for place in self.by_endpoint.get(&outside).into_iter().flatten() {
            let addresses = self.targets.get(*place).map(Target::addresses);
            for address in addresses.into_iter().flatten() {
                if address.ip() == fixed {
                    found(address.port(), *place);
                }
                let ports = balancers.and_then(|it| it.ports.get(address));
                for port in ports.into_iter().flatten() {
                    found(*port, *place);
                }
            }
        }
    }

    /// The targets at a fixed address that nothing else has, and the ports that lead to them.
    fn unique(&self, fixed: IpAddr, mut found: impl FnMut(u16, usize)) {
        let is_unique = |fixed: IpAddr| self.owners.get(&fixed) == Some(&1);
        if is_unique(fixed) {
            let ports = SocketAddr::new(fixed, 0)..=SocketAddr::new(fixed, u16::MAX);
            for (at, places) in self.by_address.range(ports) {
                places.iter().for_each(|place| found(at.port(), *place));
            }
        }
        let Some(balancers) = self.balancers.get(&fixed).filter(|it| it.is_one()) else {
            return;
        };
        for listener in &balancers.listeners {
            let members = listener.members.iter();
            for member in members.filter(|member| is_unique(member.ip())) {
                let places = self.by_address.get(member).into_iter().flatten();
                places.for_each(|place| found(listener.port, *place));
            }
        }
    }
}

/// The bound addresses.
#[derive(Debug)]
pub(crate) struct Network {
    tasks: TaskTracker,
    bound: BTreeMap<SocketAddr, Bound>,
    /// The addresses whose last attempt to bind failed.
    failing: BTreeSet<SocketAddr>,
}

#[derive(Debug)]
struct Bound {
    targets: Arc<ArcSwap<Vec<Backend>>>,
    stop: CancellationToken,
}

impl Network {
    /// No bound addresses; connections run in `tasks`.
    pub(crate) fn new(tasks: TaskTracker) -> Self {
        Self {
            tasks,
            bound: BTreeMap::new(),
            failing: BTreeSet::new(),
        }
    }

    /// Binds the addresses in `routes`, and unbinds others. Returns whether one could not be bound and has to be
    /// retried.
    pub(crate) async fn follow(&mut self, routes: BTreeMap<SocketAddr, Vec<Backend>>) -> bool {
        self.bound.retain(|address, bound| {
            let keep = routes.contains_key(address);
            if !keep {
                debug!(%address, "no longer serving a workload cluster");
                bound.stop.cancel();
            }
            keep
        });
        let before = std::mem::take(&mut self.failing);
        for (address, targets) in routes {
            if let Some(bound) = self.bound.get(&address) {
                bound.targets.store(Arc::new(targets));
                continue;
            }
            match TcpListener::bind(address).await {
                Ok(listener) => drop(self.bound.insert(address, self.serve(listener, targets))),
                Err(error) => {
                    if !before.contains(&address) {
                        let hint = match error.kind() {
                            io::ErrorKind::PermissionDenied => {
                                " (a port below 1024 needs root, or a smaller net.ipv4.ip_unprivileged_port_start)"
                            }
                            _ => "",
                        };
                        warn!(%address, "cannot bind a floating address, will try again: {error}{hint}");
                    }
                    self.failing.insert(address);
                }
            }
        }
        !self.failing.is_empty()
    }

    /// Unbinds all addresses and closes all connections.
    pub(crate) fn close(&mut self) {
        for bound in std::mem::take(&mut self.bound).into_values() {
            bound.stop.cancel();
        }
    }

    fn serve(&self, listener: TcpListener, targets: Vec<Backend>) -> Bound {
        let targets = Arc::new(ArcSwap::from_pointee(targets));
        let stop = CancellationToken::new();
        let accept = accept(
            listener,
            Arc::clone(&targets),
            stop.clone(),
            self.tasks.clone(),
        );
        self.tasks
            .spawn(stop.clone().run_until_cancelled_owned(accept));
        Bound { targets, stop }
    }
}

async fn accept(
    listener: TcpListener,
    targets: Arc<ArcSwap<Vec<Backend>>>,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let turn = AtomicUsize::new(0);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Probably out of file descriptors: wait for others to close some.
                if !is_of_connection(&error) {
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
                continue;
            }
        };
        let targets = targets.load();
        let alive: Vec<&Backend> = targets
            .iter()
            .filter(|backend| !backend.serving().is_cancelled())
            .collect();
        let Some(backend) = turn
            .fetch_add(1, Ordering::Relaxed)
            .checked_rem(alive.len())
            .and_then(|index| alive.get(index))
        else {
            continue; // No guest serves: the connection is closed at once.
        };
        let backend = Backend::clone(backend);
        let stop = stop.clone();
        tasks.spawn(async move {
            let serving = backend.serving().clone();
            let _ = stream.set_nodelay(true);
            tokio::select! {
                () = backend.serve(stream) => {}
                () = serving.cancelled() => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

fn is_of_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests;
