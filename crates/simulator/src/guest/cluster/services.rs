//! Services of a workload cluster with node ports, which the nodes answer like kube-proxy.

use std::collections::{BTreeMap, HashSet};
use std::future::Future;
use std::sync::Arc;

use apiserver::InProcess;
use arc_swap::ArcSwap;
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use kube::runtime::watcher::Event;
use tokio::sync::Notify;

use super::followed::followed;

/// TCP port of a Service that each node answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServicePort {
    /// Namespace and name, such as `default/web`.
    pub(crate) service: Arc<str>,
    /// Port of the Service.
    pub(crate) port: u16,
    /// Port on the nodes.
    pub(crate) node_port: u16,
}

/// All node ports of a cluster.
pub(crate) type ServicePorts = Arc<ArcSwap<Vec<ServicePort>>>;

/// Follows the Services of the cluster of `server`; `changed` is notified after each change of `ports`.
pub(super) fn follow(
    server: &InProcess,
    ports: ServicePorts,
    changed: Arc<Notify>,
) -> impl Future<Output = ()> + Send + use<> {
    kept(followed::<Service>(server, None), ports, changed)
}

async fn kept(
    events: impl Stream<Item = Event<Service>>,
    ports: ServicePorts,
    changed: Arc<Notify>,
) {
    let mut events = std::pin::pin!(events);
    let mut known: BTreeMap<String, Vec<ServicePort>> = BTreeMap::new();
    let mut listed = HashSet::new();
    while let Some(event) = events.next().await {
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(service) => {
                listed.insert(name(&service));
                known.insert(name(&service), node_ports(&service));
                continue;
            }
            Event::InitDone => known.retain(|name, _| listed.contains(name)),
            Event::Apply(service) => {
                known.insert(name(&service), node_ports(&service));
            }
            Event::Delete(service) => {
                known.remove(&name(&service));
            }
        }
        let all: Vec<ServicePort> = known.values().flatten().cloned().collect();
        if **ports.load() != all {
            ports.store(Arc::new(all));
            changed.notify_one();
        }
    }
}

fn name(service: &Service) -> String {
    let namespace = service.namespace().unwrap_or_default();
    format!("{namespace}/{}", service.name_any())
}

/// Returns the node ports of a Service; empty for a type without node ports.
fn node_ports(service: &Service) -> Vec<ServicePort> {
    let Some(spec) = &service.spec else {
        return Vec::new();
    };
    if !matches!(spec.type_.as_deref(), Some("NodePort" | "LoadBalancer")) {
        return Vec::new();
    }
    let name: Arc<str> = name(service).into();
    let of = |number: i32| u16::try_from(number).ok();
    spec.ports
        .iter()
        .flatten()
        .filter(|port| port.protocol.as_deref().is_none_or(|it| it == "TCP"))
        .filter_map(|port| {
            Some(ServicePort {
                service: Arc::clone(&name),
                port: of(port.port)?,
                node_port: port.node_port.and_then(of).filter(|port| *port > 0)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ports(type_: &str) -> Vec<ServicePort> {
        let service = json!({
            "metadata": {"namespace": "default", "name": "web"},
            "spec": {"type": type_, "ports": [
                {"port": 80, "nodePort": 30080, "protocol": "TCP"},
                {"port": 53, "nodePort": 30053, "protocol": "UDP"},
                {"port": 81},
            ]},
        });
        node_ports(&serde_json::from_value(service).unwrap())
    }

    #[test]
    fn nodes_answer_the_tcp_ports_of_services_that_have_node_ports() {
        let [port] = ports("LoadBalancer").try_into().unwrap();
        assert_eq!(
            (&*port.service, port.port, port.node_port),
            ("default/web", 80, 30080)
        );
        assert_eq!(ports("NodePort").len(), 1);
        assert_eq!(ports("ClusterIP"), []);
    }
}
