//! The server of the manager: /healthz for all clients; /metrics and /configz for processes of this host.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use axum::routing::get;
use axum::{Json, Router};
use operator::health::{self, Readiness};
use operator::metrics::Metrics;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::tls;
use crate::cli::CloudControllerManager;
use crate::pki;
use crate::serve;

/// Serves /healthz for all clients; /metrics and /configz on a loopback address alone, since these need no login.
pub(super) async fn serve(
    args: &CloudControllerManager,
    readiness: Readiness,
    metrics: Metrics,
    stop: &CancellationToken,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    if args.secure_port == 0 {
        return Ok(());
    }
    let mut router = health::router(readiness);
    if args.bind_address.is_loopback() {
        router = router.merge(health::metrics(metrics));
        let configuration = configuration(args);
        let answer = move || async move { Json(configuration) };
        router = router.merge(Router::new().route("/configz", get(answer)));
    }
    let (certificate, key) = identity(args)?;
    let what = "health and metrics";
    let tls = tls::config(args, &certificate, &key);
    let tls = tls.with_context(|| format!("the certificate of {what}"))?;
    let address = SocketAddr::new(args.bind_address, args.secure_port);
    serve::tls(what, address, tls, router, stop, say).await
}

/// Certificate of the server and its key: given ones, or new ones.
fn identity(args: &CloudControllerManager) -> anyhow::Result<(String, SecretString)> {
    let read = |file: &Path| {
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
    };
    if let (Some(certificate), Some(key)) = (&args.tls_cert_file, &args.tls_private_key_file) {
        return Ok((read(certificate)?, read(key)?.into()));
    }
    let names = vec!["localhost".to_owned(), args.bind_address.to_string()];
    let (_, identity) = pki::self_issued("cloud-controller-manager", names)?;
    Ok((identity.certificate, identity.key))
}

/// Flags in force, under the names of the Go manager.
fn configuration(args: &CloudControllerManager) -> Value {
    let duration = |duration: std::time::Duration| format!("{}s", duration.as_secs());
    let ranges: Vec<_> = args
        .cluster_cidr
        .0
        .iter()
        .map(ToString::to_string)
        .collect();
    json!({"cloudcontrollermanager.config.k8s.io": {
        "Generic": {
            "Address": args.bind_address,
            "Port": args.secure_port,
            "Controllers": args.controllers,
            "LeaderElection": {
                "LeaderElect": args.leader_elect,
                "LeaseDuration": duration(args.leader_elect_lease_duration),
                "RenewDeadline": duration(args.leader_elect_renew_deadline),
                "RetryPeriod": duration(args.leader_elect_retry_period),
                "ResourceLock": args.leader_elect_resource_lock,
                "ResourceName": args.leader_elect_resource_name,
                "ResourceNamespace": args.leader_elect_resource_namespace,
            },
        },
        "KubeCloudShared": {
            "CloudProvider": {"Name": "openstack", "CloudConfigFile": args.cloud_config},
            "ClusterName": args.cluster_name,
            "ClusterCIDR": ranges.join(","),
            "ConfigureCloudRoutes": args.configure_cloud_routes,
            "NodeMonitorPeriod": duration(args.node_monitor_period),
            "RouteReconciliationPeriod": duration(args.route_reconciliation_period),
        },
        "NodeController": {"ConcurrentNodeSyncs": args.concurrent_node_syncs},
        "ServiceController": {"ConcurrentServiceSyncs": args.concurrent_service_syncs},
        "NodeStatusUpdateFrequency": duration(args.node_status_update_frequency),
    }})
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: CloudControllerManager,
    }

    fn args(flags: &[&str]) -> Result<CloudControllerManager, String> {
        let words = ["ccm", "--cloud-config", "cloud.conf"].into_iter();
        let parsed = Command::try_parse_from(words.chain(flags.iter().copied()));
        Ok(parsed.map_err(|error| error.to_string())?.args)
    }

    #[test]
    fn the_certificate_is_that_of_the_files() {
        let error = args(&["--tls-cert-file=a.pem"]).unwrap_err();
        assert!(error.contains("--tls-private-key-file"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a.pem"), "certificate").unwrap();
        std::fs::write(path("a.key"), "key").unwrap();
        let flag = |name: &str, file: &str| format!("--{name}={}", path(file).display());
        let of = |key: &str| {
            let given = args(&[
                &flag("tls-cert-file", "a.pem"),
                &flag("tls-private-key-file", key),
            ]);
            identity(&given.unwrap())
        };
        assert_eq!(of("a.key").unwrap().0, "certificate");
        let missing = of("b.key").unwrap_err().to_string();
        assert!(
            missing.contains("cannot read") && missing.contains("b.key"),
            "{missing}"
        );
        let generated = identity(&args(&[]).unwrap()).unwrap();
        assert!(generated.0.starts_with("-----BEGIN CERTIFICATE-----"));
    }

    #[tokio::test]
    async fn configz_has_the_flags_in_force_under_the_names_of_the_go_manager() {
        let args = args(&["--cluster-name=blue", "--concurrent-service-syncs=3"]).unwrap();
        let known = configuration(&args);
        let known = &known["cloudcontrollermanager.config.k8s.io"];
        assert_eq!(known["KubeCloudShared"]["ClusterName"], "blue");
        assert_eq!(known["ServiceController"]["ConcurrentServiceSyncs"], 3);
        assert_eq!(known["NodeStatusUpdateFrequency"], "300s");
        assert_eq!(
            known["Generic"]["LeaderElection"]["ResourceName"],
            "cloud-controller-manager"
        );
    }
}
