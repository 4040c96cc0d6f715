//! API servers with an address inside of a cloud: without a floating IP no client outside of the cloud reaches the
//! address, however long the controllers wait.

use std::net::IpAddr;

use api::conditions::Type;
use ipnet::IpNet;

use super::Cause;
use super::cause::is_true;
use crate::snapshot::{Condition, Item, Kind, Snapshot};

/// [`Condition`] of the connection to a cluster whose control plane machine exists, and whose API server has never
/// answered at its address in the cluster's own subnets.
pub fn unreached<'a>(snapshot: &Snapshot, cluster: &'a Item) -> Option<Condition<'a>> {
    if cluster.kind != Kind::Cluster || is_true(cluster, Type::ControlPlaneInitialized) {
        return None;
    }
    let probe = cluster.condition(Type::RemoteConnectionProbe)?;
    let tried = probe.status == "False"
        && probe.message.contains("not established yet")
        && !probe.message.contains("not tried yet");
    // One that refuses connections is reached: its API server is starting.
    if !tried || probe.message.to_lowercase().contains("refused") {
        return None;
    }
    let host = address(cluster)?.parse::<IpAddr>().ok()?;
    let infrastructure = snapshot.infrastructure(cluster)?;
    let subnets = infrastructure.field("/status/network/subnets").as_array()?;
    let mut subnets = subnets.iter().filter_map(|it| it["cidr"].as_str());
    let is_inside = subnets.any(|cidr| cidr.parse::<IpNet>().is_ok_and(|net| net.contains(&host)));
    let mut machines = snapshot.belonging(cluster, Kind::Machine);
    let has_machine =
        machines.any(|it| it.is_control_plane_machine() && is_true(it, Type::InfrastructureReady));
    (is_inside && has_machine).then_some(probe)
}

/// [`Cause`] of an unreached cluster.
pub fn cause(snapshot: &Snapshot, cluster: &Item) -> Option<Cause> {
    unreached(snapshot, cluster)?;
    Some(Cause {
        text: format!(
            "its API server has the address {}, which is inside of the cloud and not reached from here: it has no floating IP",
            address(cluster).unwrap_or_default()
        ),
        failing: true,
    })
}

fn address(cluster: &Item) -> Option<&str> {
    cluster.field("/spec/controlPlaneEndpoint/host").as_str()
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::readiness::cause::tests::{condition, of_demo};

    fn snapshot(host: &str, probe: &str) -> Snapshot {
        let cluster = json!({
            "spec": {"controlPlaneEndpoint": {"host": host, "port": 6443}},
            "status": {"conditions": [
                condition("ControlPlaneInitialized", "False", "NotInitialized", "Waiting for the first control plane node"),
                condition("InfrastructureReady", "True", "Ready", ""),
                condition("RemoteConnectionProbe", "False", "ProbeFailed", probe),
            ]},
        });
        let infrastructure = json!({"status": {
            "network": {"subnets": [{"cidr": "10.6.0.0/24"}]},
            "conditions": [condition("Ready", "True", "Ready", "")],
        }});
        let plane = json!({"status": {"conditions": [
            condition("Initialized", "False", "NotInitialized", "Waiting for the first control plane node"),
        ]}});
        let mut machine = of_demo(
            Kind::Machine,
            "cp-a",
            "cp",
            json!({"status": {"conditions": [
                condition("BootstrapConfigReady", "True", "Ready", ""),
                condition("InfrastructureReady", "True", "Ready", ""),
                condition("NodeReady", "Unknown", "NodeDoesNotExist", "Waiting for the node to join the cluster"),
            ]}}),
        );
        let object = std::sync::Arc::make_mut(&mut machine.object);
        let labels = object.metadata.labels.get_or_insert_default();
        labels.insert("cluster.x-k8s.io/control-plane".to_owned(), String::new());
        Snapshot::from(vec![
            of_demo(Kind::Cluster, "demo", "", cluster),
            of_demo(Kind::OpenStackCluster, "demo", "demo", infrastructure),
            of_demo(Kind::KubeadmControlPlane, "cp", "demo", plane),
            machine,
        ])
    }

    const SILENT: &str = "Remote connection not established yet: no answer within 5 s";

    /// A cluster whose API server has no address that is reached.
    pub(crate) fn silent() -> Snapshot {
        snapshot("10.6.0.4", SILENT)
    }

    #[test]
    fn an_address_inside_of_the_cloud_is_why_a_cluster_waits() {
        let silent = SILENT;
        for (host, probe, found) in [
            ("10.6.0.4", silent, true),
            ("127.64.0.4", silent, false),
            ("api.example.org", silent, false),
            (
                "10.6.0.4",
                "Remote connection not established yet: not tried yet",
                false,
            ),
            (
                "10.6.0.4",
                "Remote connection not established yet: Connection refused (os error 111)",
                false,
            ),
            (
                "10.6.0.4",
                "Remote connection probe failed: no answer within 5 s",
                false,
            ),
        ] {
            let snapshot = snapshot(host, probe);
            let cause = cause(&snapshot, &snapshot.items[0]);
            assert_eq!(cause.is_some(), found, "{host}: {probe}");
        }
        let snapshot = snapshot("10.6.0.4", silent);
        let cause = crate::readiness::cause(&snapshot, &snapshot.items[0]).unwrap();
        let text = "its API server has the address 10.6.0.4, which is inside of the cloud and not reached from here: it has no floating IP";
        assert_eq!((cause.text.as_str(), cause.failing), (text, true));
        let pending = crate::readiness::pending(&snapshot);
        assert_eq!(pending[0].why, text, "{pending:?}");
    }
}
