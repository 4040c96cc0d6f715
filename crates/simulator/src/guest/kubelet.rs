//! Kubelets of the guests, for their API server: logs and forwarded ports.
//!
//! There are no containers. The log of any pod is the console log of its node since power-on, which has the real
//! events; the only open ports are the API server and etcd of a control plane.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use apiserver::{Connection, Kubelet, Line, Log};
use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::Value;

use super::cluster::Member;
use super::console::{self, Consoles};
use super::objects::node;

/// Buffer size of a forwarded connection, in each direction.
const BUFFER: usize = 64 << 10;

/// Kubelets of one workload cluster.
#[derive(Debug)]
pub(crate) struct Kubelets {
    consoles: Consoles,
    /// Present and former control planes, by instance.
    members: Mutex<HashMap<String, Weak<Member>>>,
}

impl Kubelets {
    pub(crate) fn new(consoles: Consoles) -> Self {
        Self {
            consoles,
            members: Mutex::default(),
        }
    }

    /// Registers a control plane [`Member`].
    pub(crate) fn serves(&self, member: &Arc<Member>) {
        let mut members = self.members.lock();
        members.retain(|_, member| member.strong_count() > 0);
        members.insert(member.instance.clone(), Arc::downgrade(member));
    }

    /// Returns the control plane [`Member`] on a Node, if powered on.
    fn member(&self, node: &Value) -> Option<Arc<Member>> {
        let member = self.members.lock().get(instance(node))?.upgrade()?;
        (!member.alive.is_cancelled()).then_some(member)
    }
}

impl Kubelet for Kubelets {
    fn is_reachable(&self, node: &Value) -> bool {
        let conditions = node["status"]["conditions"].as_array();
        let ready =
            conditions.is_some_and(|conditions| node::is_ready(conditions)) && has_address(node);
        // The Node of a machine that has just been powered off is still ready for a while.
        let control_plane = self.members.lock().contains_key(instance(node));
        ready && (!control_plane || self.member(node).is_some())
    }

    fn log<'a>(
        &'a self,
        node: &'a Value,
        pod: &'a Value,
        container: &'a str,
        follow: bool,
    ) -> BoxFuture<'a, Result<Log, String>> {
        let instance = instance(node);
        let found = self.consoles.lines(instance, 0);
        let log = found.map(|(lines, next)| Log {
            lines: lines.into_iter().map(line).collect(),
            more: follow.then(|| to_come(self.consoles.clone(), instance.to_owned(), next).boxed()),
        });
        let pod = pod["metadata"]["name"].as_str().unwrap_or_default();
        let missing = || format!("container {container:?} in pod {pod:?} is not available");
        let log = log.ok_or_else(missing);
        async move { log }.boxed()
    }

    fn connect<'a>(
        &'a self,
        node: &'a Value,
        pod: &'a Value,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, String>> {
        let connected = self.open(node, pod, port);
        async move { connected }.boxed()
    }
}

impl Kubelets {
    fn open(&self, node: &Value, pod: &Value, port: u16) -> Result<Box<dyn Connection>, String> {
        // Only pods with `hostNetwork` have the ports of the machine.
        let inside = pod["spec"]["hostNetwork"] == true;
        let member = self.member(node).filter(|_| inside);
        let Some(member) = member.filter(|member| member.listens(port)) else {
            let network = if inside {
                "host".to_owned()
            } else {
                let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
                format!("/var/run/netns/cni-{uid}")
            };
            return Err(format!(
                "failed to execute portforward in network namespace {network:?}: failed to connect to localhost:{port} inside namespace {network:?}, IPv4: dial tcp4 127.0.0.1:{port}: connect: connection refused IPv6 dial tcp6 [::1]:{port}: connect: connection refused "
            ));
        };
        let (here, there) = tokio::io::duplex(BUFFER);
        tokio::spawn(async move {
            let serving = member.serving.clone();
            tokio::select! {
                () = member.serve_port(port, there) => {}
                () = serving.cancelled() => {}
            }
        });
        Ok(Box::new(here))
    }
}

/// True if an API server finds the kubelet of a Node: nothing resolves the names of simulated machines.
fn has_address(node: &Value) -> bool {
    let addresses = node["status"]["addresses"].as_array();
    let mut kinds = addresses
        .into_iter()
        .flatten()
        .map(|address| &address["type"]);
    kinds.any(|kind| kind == "InternalIP" || kind == "ExternalIP")
}

/// Returns the instance id of a Node.
fn instance(node: &Value) -> &str {
    let id = &node["status"]["nodeInfo"]["systemUUID"];
    id.as_str().unwrap_or_default()
}

fn line(line: console::Line) -> Line {
    Line {
        at: line.at,
        text: line.text,
    }
}

/// Returns a stream of the lines of a console from number `next` on, until the machine is deleted.
fn to_come(consoles: Consoles, instance: String, next: u64) -> impl Stream<Item = Line> + Send {
    let chunks = stream::unfold(next, move |next| {
        let (consoles, instance) = (consoles.clone(), instance.clone());
        async move {
            loop {
                let changed = Arc::clone(consoles.changed()).notified_owned();
                let mut changed = std::pin::pin!(changed);
                // Registered before the lines are read, so that none is missed.
                changed.as_mut().enable();
                let (lines, after) = consoles.lines(&instance, next)?;
                if !lines.is_empty() {
                    let lines: Vec<Line> = lines.into_iter().map(line).collect();
                    return Some((stream::iter(lines), after));
                }
                changed.await;
            }
        }
    });
    chunks.flatten()
}

#[cfg(test)]
mod tests;
