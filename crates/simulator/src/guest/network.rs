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
    /// Whether its cluster names `address` for it: as the host in kubeconfigs, or in the status of the Service.
    fn is_endpoint(&self, address: IpAddr) -> bool;
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
    let mut inside: BTreeMap<SocketAddr, Vec<&T>> = BTreeMap::new();
    for target in targets {
        for address in target.addresses() {
            inside.entry(*address).or_default().push(target);
        }
    }
    let mut owners: HashMap<IpAddr, usize> = HashMap::new();
    for address in world
        .instances
        .iter()
        .flat_map(|instance| &instance.fixed_ips)
    {
        *owners.entry(*address).or_default() += 1;
    }
    let is_unique = |fixed: IpAddr| owners.get(&fixed) == Some(&1);
    let mut listeners: HashMap<IpAddr, Vec<&Listener>> = HashMap::new();
    let is_tcp = |listener: &&Listener| !matches!(listener.protocol.as_str(), "UDP" | "SCTP");
    for listener in world.listeners.iter().filter(is_tcp) {
        listeners.entry(listener.vip).or_default().push(listener);
    }
    let forwards = world
        .addresses
        .iter()
        .map(|forward| (forward.floating, forward.fixed));
    // The address of a server or load balancer on the external network leads to it, too.
    let direct = owners
        .keys()
        .chain(listeners.keys())
        .map(|address| (*address, *address));
    let pairs: BTreeSet<(IpAddr, IpAddr)> = forwards
        .chain(direct)
        .filter(|(address, _)| outside.contains(*address))
        .collect();

    let mut found: BTreeMap<SocketAddr, Candidates<'_, T>> = BTreeMap::new();
    for (outside, fixed) in pairs {
        let ports = SocketAddr::new(fixed, 0)..=SocketAddr::new(fixed, u16::MAX);
        for (at, targets) in inside.range(ports) {
            let outside = SocketAddr::new(outside, at.port());
            found
                .entry(outside)
                .or_default()
                .add(targets, is_unique(fixed));
        }
        let listeners = listeners.get(&fixed).map(Vec::as_slice).unwrap_or_default();
        let one_balancer = listeners
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a.load_balancer_id == b.load_balancer_id));
        for (listener, member) in listeners
            .iter()
            .flat_map(|it| it.members.iter().map(move |member| (it, member)))
        {
            if let Some(targets) = inside.get(member) {
                let outside = SocketAddr::new(outside, listener.port);
                let unique = one_balancer && is_unique(member.ip());
                found.entry(outside).or_default().add(targets, unique);
            }
        }
    }
    found
        .into_iter()
        .map(|(at, candidates)| (at, candidates.choose(at.ip())))
        .filter(|(_, targets)| !targets.is_empty())
        .collect()
}

/// The guests that may be behind an outside address, and whether each is unambiguous.
struct Candidates<'a, T>(Vec<(&'a T, bool)>);

impl<T> Default for Candidates<'_, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'a, T: Target> Candidates<'a, T> {
    fn add(&mut self, targets: &[&'a T], unique: bool) {
        let known: Vec<*const T> = self
            .0
            .iter()
            .map(|(target, _)| std::ptr::from_ref(*target))
            .collect();
        let new = targets
            .iter()
            .filter(|target| !known.contains(&std::ptr::from_ref(**target)));
        self.0.extend(new.map(|target| (*target, unique)));
    }

    fn choose(&self, outside: IpAddr) -> Vec<T> {
        let named: Vec<T> = self
            .0
            .iter()
            .filter(|(target, _)| target.is_endpoint(outside))
            .map(|(target, _)| (*target).clone())
            .collect();
        if !named.is_empty() {
            return named;
        }
        self.0
            .iter()
            .filter(|(_, unique)| *unique)
            .map(|(target, _)| (*target).clone())
            .collect()
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
