//! Data plane: forwards floating addresses to the API servers of control plane guests, and to the node ports of
//! Services.
//!
//! [`routes`] is pure: the function computes the guests behind each floating address and port, directly or through a
//! load balancer listener. [`Network`] binds exactly those addresses and passes every connection to a guest that is
//! alive.

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
use crate::data_plane::{DataPlane, Listener};

mod backend;

pub(crate) use backend::{Backend, NodePort};

/// Server on a guest as a target of routes; a trait for tests.
pub(crate) trait Target: Clone {
    /// Returns the id of the guest's server in Nova.
    fn server(&self) -> &str;
    /// Returns the fixed addresses and ports.
    fn addresses(&self) -> &[SocketAddr];
}

/// Returns the guests behind each outside address and port.
///
/// Fixed addresses are not unique: every cluster may use 10.6.0.0/24. The cloud names the server behind each.
pub(crate) fn routes<T: Target>(
    world: &DataPlane,
    targets: &[T],
    outside: &Outside,
) -> BTreeMap<SocketAddr, Vec<T>> {
    let inside = Inside::new(world, targets);
    let mut found: BTreeMap<SocketAddr, BTreeSet<usize>> = BTreeMap::new();
    let is_outside = |address: &IpAddr| outside.contains(*address);
    for forward in world.addresses.iter().filter(|it| is_outside(&it.floating)) {
        let mut add = |port, place| {
            let at = SocketAddr::new(forward.floating, port);
            found.entry(at).or_default().insert(place);
        };
        if let Some(server) = &forward.server {
            inside.on(server, forward.fixed, &mut add);
        }
        inside.balanced(&forward.port_id, &mut add);
    }
    // The address of a server or load balancer on the external network leads to it, too.
    for instance in &world.instances {
        for address in instance.fixed_ips.iter().filter(|it| is_outside(it)) {
            inside.on(&instance.id, *address, |port, place| {
                let at = SocketAddr::new(*address, port);
                found.entry(at).or_default().insert(place);
            });
        }
    }
    for listener in world.listeners.iter().filter(|it| is_outside(&it.vip)) {
        inside.behind(listener, |port, place| {
            let at = SocketAddr::new(listener.vip, port);
            found.entry(at).or_default().insert(place);
        });
    }
    let chosen = |places: BTreeSet<usize>| {
        let places = places.into_iter();
        places
            .filter_map(|place| targets.get(place).cloned())
            .collect()
    };
    found
        .into_iter()
        .map(|(at, places)| (at, chosen(places)))
        .collect()
}

/// Targets at the fixed addresses. A thousand clusters may use the same addresses, so no lookup walks all targets with
/// one address.
struct Inside<'a> {
    /// Places of targets by server and address.
    places: HashMap<(&'a str, IpAddr), Vec<(u16, usize)>>,
    /// Listeners by the port of the load balancer.
    listeners: HashMap<&'a str, Vec<&'a Listener>>,
}

impl<'a> Inside<'a> {
    fn new<T: Target>(world: &'a DataPlane, targets: &'a [T]) -> Self {
        let mut inside = Self {
            places: HashMap::new(),
            listeners: HashMap::new(),
        };
        for (place, target) in targets.iter().enumerate() {
            for address in target.addresses() {
                let key = (target.server(), address.ip());
                let places = inside.places.entry(key).or_default();
                places.push((address.port(), place));
            }
        }
        for listener in &world.listeners {
            let listeners = inside.listeners.entry(&listener.vip_port_id).or_default();
            listeners.push(listener);
        }
        inside
    }

    /// Finds the targets on a server at one of its addresses, and their ports.
    fn on(&self, server: &str, address: IpAddr, mut found: impl FnMut(u16, usize)) {
        for (port, place) in self.places.get(&(server, address)).into_iter().flatten() {
            found(*port, *place);
        }
    }

    /// Finds the targets behind the load balancer with this port, and the ports of their listeners.
    fn balanced(&self, vip_port: &str, mut found: impl FnMut(u16, usize)) {
        for listener in self.listeners.get(vip_port).into_iter().flatten() {
            self.behind(listener, &mut found);
        }
    }

    /// Finds the targets that are members of a listener.
    fn behind(&self, listener: &Listener, mut found: impl FnMut(u16, usize)) {
        if matches!(listener.protocol.as_str(), "UDP" | "SCTP") {
            return;
        }
        for member in &listener.members {
            let server = member.server.as_deref().unwrap_or_default();
            self.on(server, member.at.ip(), |port, place| {
                if port == member.at.port() {
                    found(listener.port, place);
                }
            });
        }
    }
}

/// Bound addresses.
#[derive(Debug)]
pub(crate) struct Network {
    tasks: TaskTracker,
    bound: BTreeMap<SocketAddr, Bound>,
    /// Addresses that could not be bound at the last attempt.
    failing: BTreeSet<SocketAddr>,
}

#[derive(Debug)]
struct Bound {
    targets: Arc<ArcSwap<Vec<Backend>>>,
    stop: CancellationToken,
}

impl Network {
    /// Creates a network without bound addresses; connections run in `tasks`.
    pub(crate) fn new(tasks: TaskTracker) -> Self {
        Self {
            tasks,
            bound: BTreeMap::new(),
            failing: BTreeSet::new(),
        }
    }

    /// Binds the addresses in `routes`, and unbinds others. Returns true if an address could not be bound and must be
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
