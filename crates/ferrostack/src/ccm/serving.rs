//! The server of the manager: /healthz for all clients; /metrics and /configz for processes of this host.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, bail};
use axum::routing::get;
use axum::{Json, Router};
use operator::health::{self, Readiness};
use operator::metrics::Metrics;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::cli::CloudControllerManager;
use crate::manager::serve;
use crate::up::pki;

/// Rejects TLS settings that the server would not keep.
pub(super) fn check(args: &CloudControllerManager) -> anyhow::Result<()> {
    let listed = &args.tls_cipher_suites;
    // As in Go, an empty value is no list.
    if listed.iter().all(String::is_empty) {
        return Ok(());
    }
    let offered = offered();
    let is_known = |name: &str| offered.contains(&current(name)) || OTHERS.contains(&name);
    if let Some(name) = listed.iter().find(|name| !is_known(name)) {
        bail!(
            "--tls-cipher-suites: `{name}` is no cipher suite that Kubernetes' flags know: remove it; the server offers {}",
            offered.join(", ")
        );
    }
    let is_listed = |name: &&str| listed.iter().any(|listed| current(listed) == *name);
    let missing: Vec<_> = offered
        .into_iter()
        .filter(|name| !is_listed(name))
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => bail!(
            "--tls-cipher-suites: the server offers {}, too, which would not be what was asked for: add them or remove the \
             flag",
            missing.join(", ")
        ),
    }
}

/// The suites of TLS 1.2 that the server offers. Those of TLS 1.3 cannot be chosen in Go, either.
fn offered() -> Vec<&'static str> {
    let suites = rustls::crypto::ring::default_provider().cipher_suites;
    let old = suites.iter().filter(|suite| suite.tls13().is_none());
    old.filter_map(|suite| suite.suite().as_str()).collect()
}

/// The name of today for one of the two that Go had before RFC 7905 was out, and that Kubernetes still takes.
fn current(name: &str) -> &str {
    match name {
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        name => name,
    }
}

/// The other suites that Go knows: those of TLS 1.3, which cannot be chosen, and those that this server does not have, so
/// that listing them changes nothing.
const OTHERS: &[&str] = &[
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// Serves /healthz for all clients; /metrics and /configz on a loopback address alone, since they need no login.
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
    let address = SocketAddr::new(args.bind_address, args.secure_port);
    let pair = (certificate.as_str(), &key);
    serve::tls("health and metrics", address, pair, router, stop, say).await
}

/// The certificate of the server and its key: those that are given, or new ones.
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

/// The flags in force, under the names of the Go manager.
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
        let args = parsed.map_err(|error| error.to_string())?.args;
        check(&args).map_err(|error| error.to_string())?;
        Ok(args)
    }

    const SUITES: [&str; 6] = [
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    ];

    fn list(suites: &[&str]) -> String {
        format!("--tls-cipher-suites={}", suites.join(","))
    }

    #[test]
    fn each_suite_that_is_offered_must_be_listed_under_its_name_or_the_older_one() {
        for (index, name) in SUITES.iter().enumerate() {
            let mut others = SUITES.to_vec();
            others.remove(index);
            let error = args(&[&list(&others)]).unwrap_err();
            let words = format!("the server offers {name}, too");
            assert!(error.contains(&words), "{error}");
            let mut older = SUITES.to_vec();
            let old = name.strip_suffix("_SHA256");
            let old = old.filter(|old| old.ends_with("CHACHA20_POLY1305"));
            older[index] = old.unwrap_or(name);
            args(&[&list(&older)]).unwrap();
        }
    }

    #[test]
    fn a_name_that_is_no_suite_is_refused_with_those_that_are_offered() {
        for name in [
            "TLS_ECDHE_RSA_WITH_AES_128_GCM",
            "TLS_CHACHA20_POLY1305",
            "TLS13_AES_128_GCM_SHA256",
            "",
        ] {
            let error = args(&[&list(&[&SUITES[..], &[name]].concat())]).unwrap_err();
            assert!(
                error.contains(&format!("`{name}` is no cipher suite")),
                "{error}"
            );
            for offered in SUITES {
                assert!(error.contains(offered), "{error}");
            }
        }
        // What Go knows and this server does not offer is no reason to refuse: it is stricter than what was asked for.
        let more = ["TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"];
        args(&[&list(&[&SUITES[..], &more].concat())]).unwrap();
    }

    #[test]
    fn an_empty_list_of_suites_is_none() {
        args(&["--tls-cipher-suites="]).unwrap();
    }

    #[test]
    fn the_suites_that_gardener_passes_are_taken() {
        let passed = "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,\
            TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,\
            TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,\
            TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305";
        args(&[
            "--cluster-name=shoot",
            "--allocate-node-cidrs=true",
            "--cluster-cidr=100.64.0.0/11",
            "--concurrent-service-syncs=10",
            "--leader-elect=true",
            passed,
            "--v=2",
        ])
        .unwrap();
    }

    #[test]
    fn tls_settings_that_the_server_would_not_keep_are_refused() {
        args(&["--tls-min-version=VersionTLS12", &list(&SUITES)]).unwrap();
        let error = args(&["--tls-min-version=VersionTLS13"]).unwrap_err();
        assert!(error.contains("the server takes TLS 1.2, too"), "{error}");
        let error = args(&["--tls-cert-file=a.pem"]).unwrap_err();
        assert!(error.contains("--tls-private-key-file"), "{error}");
    }

    #[test]
    fn the_certificate_is_that_of_the_files() {
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
