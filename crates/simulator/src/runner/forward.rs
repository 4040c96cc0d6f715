//! The data plane: TCP from floating addresses to machines, directly or through load balancers.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::join_all;
use ipnet::IpNet;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::hosts::Hosts;
use crate::data_plane::DataPlane;
use crate::guest::Outside;
use crate::machine::{Member, Servers};

/// Maximum length of a forwarded range of ports: a security group may allow all ports.
const LONGEST_RANGE: usize = 64;
/// Timeout of a connection to a machine.
const PATIENCE: Duration = Duration::from_secs(2);

/// Target of each outside address and port.
pub(crate) type Routes = BTreeMap<SocketAddr, Route>;

/// Target of an outside address and port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) targets: Vec<SocketAddr>,
    /// Allowed source ranges; empty allows all.
    pub(crate) allowed: Vec<IpNet>,
}

/// Returns the routes of a world whose machines are `hosts`. A floating address belongs to one port, of a server or of
/// a load balancer.
pub(crate) fn routes(world: &DataPlane, hosts: &Hosts, outside: &Outside) -> Routes {
    let mut routes = Routes::new();
    for forward in &world.addresses {
        if !outside.contains(forward.floating) {
            continue;
        }
        if let Some(machine) = hosts.behind(forward.fixed, &forward.port_id) {
            let open = machine.ports.into_iter().flat_map(|port| port.open);
            for port in open.filter(|range| range.len() <= LONGEST_RANGE).flatten() {
                let route = routes.entry(SocketAddr::new(forward.floating, port));
                route.or_default().targets = vec![SocketAddr::new(forward.fixed, port)];
            }
        }
        let listeners = world.listeners.iter();
        for listener in listeners.filter(|it| it.vip_port_id == forward.port_id) {
            if listener.protocol == "UDP" || listener.protocol == "SCTP" {
                continue;
            }
            let members = listener.members.iter();
            let reached = members.filter(|it| hosts.has(it.at.ip()) && !hosts.is_elsewhere(it));
            let route = Route {
                targets: reached.map(|it| it.at).collect(),
                allowed: ranges(&listener.allowed_cidrs),
            };
            routes.insert(SocketAddr::new(forward.floating, listener.port), route);
        }
    }
    routes
}

fn ranges(texts: &[String]) -> Vec<IpNet> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// Bound addresses and the health of their targets.
pub(crate) struct Forwards {
    servers: Arc<dyn Servers>,
    bound: BTreeMap<SocketAddr, Bound>,
    failing: BTreeSet<SocketAddr>,
    silent: Silent,
    /// Last reported state of each member.
    reported: BTreeSet<Member>,
}

/// Targets that did not accept their last connection.
type Silent = Arc<Mutex<BTreeSet<SocketAddr>>>;

struct Bound {
    route: Arc<ArcSwap<Route>>,
    stop: CancellationToken,
}

impl Forwards {
    pub(crate) fn new(servers: Arc<dyn Servers>) -> Self {
        Self {
            servers,
            bound: BTreeMap::new(),
            failing: BTreeSet::new(),
            silent: Silent::default(),
            reported: BTreeSet::new(),
        }
    }

    /// Binds the addresses in `routes`, and unbinds others. An address that cannot be bound is retried with the next
    /// call.
    pub(crate) async fn follow(&mut self, routes: Routes) {
        self.bound.retain(|address, bound| {
            let keep = routes.contains_key(address);
            if !keep {
                bound.stop.cancel();
            }
            keep
        });
        let before = std::mem::take(&mut self.failing);
        for (address, route) in routes {
            if let Some(bound) = self.bound.get(&address) {
                bound.route.store(Arc::new(route));
                continue;
            }
            match TcpListener::bind(address).await {
                Ok(listener) => drop(self.bound.insert(address, self.serve(listener, route))),
                Err(error) => {
                    if !before.contains(&address) {
                        warn!(%address, "cannot bind a floating address, will try again: {error}");
                    }
                    self.failing.insert(address);
                }
            }
        }
    }

    /// Connects to every member of every load balancer, and reports members that began or ceased to accept connections.
    pub(crate) async fn probe(&mut self, world: &DataPlane, hosts: &Hosts) {
        let members: BTreeMap<(&str, SocketAddr), bool> = world
            .listeners
            .iter()
            .flat_map(|it| {
                let members = it.members.iter();
                members.map(move |member| {
                    let key = (it.load_balancer_id.as_str(), member.at);
                    (key, hosts.is_elsewhere(member))
                })
            })
            .collect();
        let found: BTreeSet<Member> = join_all(members.into_iter().map(answers))
            .await
            .into_iter()
            .collect();
        let silent = found.iter().filter(|member| !member.answers);
        *self.silent.lock() = silent.map(|member| member.address).collect();
        let changed: Vec<Member> = found.difference(&self.reported).cloned().collect();
        if !changed.is_empty() {
            self.servers.answering(&changed);
        }
        self.reported = found;
    }

    /// Unbinds all addresses and closes all connections.
    pub(crate) fn close(&mut self) {
        for bound in std::mem::take(&mut self.bound).into_values() {
            bound.stop.cancel();
        }
    }

    fn serve(&self, listener: TcpListener, route: Route) -> Bound {
        let route = Arc::new(ArcSwap::from_pointee(route));
        let stop = CancellationToken::new();
        let accept = accept(
            listener,
            Arc::clone(&route),
            Arc::clone(&self.silent),
            stop.clone(),
        );
        tokio::spawn(stop.clone().run_until_cancelled_owned(accept));
        Bound { route, stop }
    }
}

/// Tries a connection to a member; a member elsewhere is not asked.
async fn answers(((balancer, address), elsewhere): ((&str, SocketAddr), bool)) -> Member {
    let connects = async {
        let connected = tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await;
        matches!(connected, Ok(Ok(_)))
    };
    Member {
        load_balancer_id: balancer.to_owned(),
        address,
        answers: !elsewhere && connects.await,
    }
}

async fn accept(
    listener: TcpListener,
    route: Arc<ArcSwap<Route>>,
    silent: Silent,
    stop: CancellationToken,
) {
    let turn = AtomicUsize::new(0);
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Probably out of file descriptors: wait for others to close some.
                debug!("accept: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let route = route.load_full();
        let allowed = &route.allowed;
        if !allowed.is_empty() && !allowed.iter().any(|range| range.contains(&peer.ip())) {
            continue;
        }
        let first = turn.fetch_add(1, Ordering::Relaxed);
        let targets = in_turn(&route.targets, &silent.lock(), first);
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            if let Err(error) = join(stream, &targets).await {
                debug!(%peer, "a forwarded connection ended: {error}");
            }
        }));
    }
}

/// Returns the targets in the order of attempts: healthy ones round-robin, then the others.
fn in_turn(targets: &[SocketAddr], silent: &BTreeSet<SocketAddr>, first: usize) -> Vec<SocketAddr> {
    let (mut good, bad): (Vec<_>, Vec<_>) =
        targets.iter().copied().partition(|at| !silent.contains(at));
    if let Some(by) = first.checked_rem(good.len()) {
        good.rotate_left(by);
    }
    good.extend(bad);
    good
}

async fn join(mut stream: TcpStream, targets: &[SocketAddr]) -> io::Result<()> {
    let mut last = io::Error::new(io::ErrorKind::ConnectionRefused, "there is no target");
    for target in targets {
        match tokio::time::timeout(PATIENCE, TcpStream::connect(target)).await {
            Ok(Ok(mut other)) => {
                let _ = (stream.set_nodelay(true), other.set_nodelay(true));
                tokio::io::copy_bidirectional(&mut stream, &mut other).await?;
                return Ok(());
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests;
