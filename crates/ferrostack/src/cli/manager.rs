//! Flags of `manager`; equal ones have the names and defaults of the Go managers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use api::providers::Provider;
use clap::{Args, ValueEnum};
use regex::Regex;

mod idle;

use self::idle::GoManagers;
use super::ProviderArg;
use super::idle::WithoutEffect;
use super::values::duration;

#[derive(Debug, Args)]
pub(crate) struct Manager {
    /// Kubeconfig of the cluster to manage [default: KUBECONFIG, then the service account of the pod].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", visible_alias = "kubeconfig-context")]
    pub(crate) context: Option<String>,
    /// Providers whose controllers are run; other programs run the others [default: all].
    #[arg(long, value_name = "TYPES", value_enum, value_delimiter = ',')]
    pub(crate) providers: Vec<ProviderArg>,
    /// Watch only this namespace (default: all namespaces).
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Also run the controller of `OpenStack` objects, for the clouds in this namespace. Its Role comes with `generate
    /// manager --openstack-namespace`.
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) openstack_namespace: Option<String>,
    #[command(flatten)]
    pub(crate) election: Election,
    /// Address of /healthz and /readyz; `0` for none.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9440", value_parser = listen)]
    pub(crate) health_addr: Listen,
    /// Address of /metrics, over TLS, for those whom the API server lets get /metrics; `0` for none.
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = listen)]
    pub(crate) diagnostics_address: Listen,
    /// Serve /metrics over plain HTTP, for everybody.
    #[arg(long, value_name = "true|false", default_value_t = false, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, hide_possible_values = true)]
    pub(crate) insecure_diagnostics: bool,
    /// Address on which the webhooks (conversion, defaulting, validation) listen, with TLS.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9443", value_parser = address)]
    pub(crate) webhook_addr: SocketAddr,
    /// URL of the webhooks for the API server, such as https://127.0.0.1:9443 [default: the Service ferrostack-webhook
    /// in the manager's namespace].
    #[arg(long, value_name = "URL", value_parser = https)]
    pub(crate) webhook_url: Option<String>,
    /// Directory with the certificate of the webhooks, tls.crt and tls.key, which are followed, such as a Secret of
    /// cert-manager [default: the manager issues one, and replaces it in time].
    #[arg(long, value_name = "DIR")]
    pub(crate) webhook_cert_dir: Option<PathBuf>,
    /// How long webhooks are still answered after a signal to stop, until API servers are led to another manager [default:
    /// not at all].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) shutdown_delay_duration: Option<Duration>,
    /// Reconcile only objects with this value of the label cluster.x-k8s.io/watch-filter [default: all].
    #[arg(long, value_name = "VALUE")]
    pub(crate) watch_filter: Option<String>,
    /// Interval at which all objects are reconciled again.
    #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = duration)]
    pub(crate) sync_period: Duration,
    /// Regular expression for further labels to copy from Machines to their Nodes; may be repeated.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub(crate) additional_sync_machine_labels: Vec<Regex>,
    /// Regular expression for annotations to copy from Machines to their Nodes; may be repeated.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub(crate) additional_sync_machine_annotations: Vec<Regex>,
    #[command(flatten)]
    pub(crate) concurrency: Concurrency,
    /// How long a running server may take to become a node before its console log is searched for the reason [default: 2m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) bootstrap_timeout: Option<Duration>,
    /// Certificates of authorities (PEM) for clouds whose Secret has none [default: those of the system].
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_certs: Option<PathBuf>,
    /// Phases of the migration of stored objects to skip. Managed fields are not cleaned up here in any case.
    #[arg(long, value_name = "PHASES", value_enum, value_delimiter = ',')]
    pub(crate) skip_crd_migration_phases: Vec<MigrationPhase>,
    #[command(flatten)]
    pub(crate) idle: WithoutEffect<GoManagers>,
}

/// Phase of the migration of stored objects, as named by the Go managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MigrationPhase {
    #[value(name = "All")]
    All,
    #[value(name = "StorageVersionMigration")]
    StorageVersionMigration,
    #[value(name = "CleanupManagedFields")]
    CleanupManagedFields,
}

impl Manager {
    /// Given flags about controllers run by another program.
    pub(crate) fn ineffective(&self, runs: impl Fn(Provider) -> bool) -> Vec<&'static str> {
        let mut given = self.concurrency.given();
        let core = [
            (
                "additional-sync-machine-labels",
                !self.additional_sync_machine_labels.is_empty(),
            ),
            (
                "additional-sync-machine-annotations",
                !self.additional_sync_machine_annotations.is_empty(),
            ),
        ];
        let of_core = core.into_iter().filter(|(_, is_given)| *is_given);
        given.extend(of_core.map(|(flag, _)| (flag, &[Provider::Core][..])));
        if self.bootstrap_timeout.is_some() {
            given.push(("bootstrap-timeout", &[Provider::Infrastructure]));
        }
        if self.ca_certs.is_some() {
            given.push(("ca-certs", &[Provider::Infrastructure]));
        }
        let lost = given
            .into_iter()
            .filter(|(_, of)| !of.iter().any(|provider| runs(*provider)));
        lost.map(|(flag, _)| flag).collect()
    }
}

/// Flag for the concurrency of each controller; the defaults are in the help of each.
#[derive(Debug, Args)]
pub(crate) struct Concurrency {
    /// Number of Clusters reconciled in parallel [default: 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cluster_concurrency: Option<u16>,
    /// Number of ClusterClasses reconciled in parallel [default: 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) clusterclass_concurrency: Option<u16>,
    /// Number of Clusters with a topology reconciled in parallel [default: 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) clustertopology_concurrency: Option<u16>,
    /// Number of Machines reconciled in parallel [default: 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) machine_concurrency: Option<u16>,
    /// Number of MachineSets reconciled in parallel [default: 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) machineset_concurrency: Option<u16>,
    /// Number of MachineDeployments reconciled in parallel [default: 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) machinedeployment_concurrency: Option<u16>,
    /// Number of MachineHealthChecks reconciled in parallel [default: 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) machinehealthcheck_concurrency: Option<u16>,
    /// Number of ClusterResourceSets reconciled in parallel [default: 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) clusterresourceset_concurrency: Option<u16>,
    /// Number of KubeadmConfigs reconciled in parallel [default: 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) kubeadmconfig_concurrency: Option<u16>,
    /// Number of KubeadmControlPlanes reconciled in parallel [default: 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) kubeadmcontrolplane_concurrency: Option<u16>,
    /// Number of workload clusters connected to, or probed, in parallel [default: 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) clustercache_concurrency: Option<u16>,
    /// Number of OpenStackClusters reconciled in parallel [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) openstackcluster_concurrency: Option<u16>,
    /// Number of OpenStackMachines reconciled in parallel [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) openstackmachine_concurrency: Option<u16>,
}

/// [`Provider`]s with connections to workload clusters.
const CONNECTED: [Provider; 3] = [Provider::Core, Provider::Bootstrap, Provider::ControlPlane];

impl Concurrency {
    /// Given limits by the name of the controller.
    pub(crate) fn limits(&self) -> BTreeMap<&'static str, u16> {
        let all = [
            ("cluster", self.cluster_concurrency),
            ("clusterclass", self.clusterclass_concurrency),
            ("clustertopology", self.clustertopology_concurrency),
            ("machine", self.machine_concurrency),
            ("machineset", self.machineset_concurrency),
            ("machinedeployment", self.machinedeployment_concurrency),
            ("machinehealthcheck", self.machinehealthcheck_concurrency),
            ("clusterresourceset", self.clusterresourceset_concurrency),
            ("kubeadmconfig", self.kubeadmconfig_concurrency),
            ("kubeadmcontrolplane", self.kubeadmcontrolplane_concurrency),
        ];
        let given = all.into_iter();
        given
            .filter_map(|(name, limit)| Some((name, limit?)))
            .collect()
    }

    /// Given flags, with their [`Provider`]s.
    fn given(&self) -> Vec<(&'static str, &'static [Provider])> {
        let core = &[Provider::Core][..];
        let infrastructure = &[Provider::Infrastructure][..];
        let all = [
            ("cluster-concurrency", self.cluster_concurrency, core),
            (
                "clusterclass-concurrency",
                self.clusterclass_concurrency,
                core,
            ),
            (
                "clustertopology-concurrency",
                self.clustertopology_concurrency,
                core,
            ),
            ("machine-concurrency", self.machine_concurrency, core),
            ("machineset-concurrency", self.machineset_concurrency, core),
            (
                "machinedeployment-concurrency",
                self.machinedeployment_concurrency,
                core,
            ),
            (
                "machinehealthcheck-concurrency",
                self.machinehealthcheck_concurrency,
                core,
            ),
            (
                "clusterresourceset-concurrency",
                self.clusterresourceset_concurrency,
                core,
            ),
            (
                "kubeadmconfig-concurrency",
                self.kubeadmconfig_concurrency,
                &[Provider::Bootstrap],
            ),
            (
                "kubeadmcontrolplane-concurrency",
                self.kubeadmcontrolplane_concurrency,
                &[Provider::ControlPlane],
            ),
            (
                "clustercache-concurrency",
                self.clustercache_concurrency,
                &CONNECTED,
            ),
            (
                "openstackcluster-concurrency",
                self.openstackcluster_concurrency,
                infrastructure,
            ),
            (
                "openstackmachine-concurrency",
                self.openstackmachine_concurrency,
                infrastructure,
            ),
        ];
        let given = all.into_iter().filter(|(_, limit, _)| limit.is_some());
        given.map(|(flag, _, of)| (flag, of)).collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct Election {
    /// Elect a leader, so that one of several managers is active at a time.
    #[arg(long)]
    pub(crate) leader_elect: bool,
    /// Time other managers wait before they replace a leader that does not renew its Lease.
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = duration)]
    pub(crate) leader_elect_lease_duration: Duration,
    /// Time a leader tries to renew its Lease before it stops.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    pub(crate) leader_elect_renew_deadline: Duration,
    /// Interval at which the Lease is read and renewed.
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = duration)]
    pub(crate) leader_elect_retry_period: Duration,
    /// Namespace of the Lease, of the webhooks' certificate and of their Service [default: the manager's own, or the
    /// kubeconfig context's].
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) leader_election_namespace: Option<String>,
}

/// Address to listen on, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    On(SocketAddr),
    Off,
}

pub(super) fn listen(text: &str) -> Result<Listen, String> {
    if text == "0" {
        return Ok(Listen::Off);
    }
    address(text).map(Listen::On)
}

/// `127.0.0.1:9440`, or `:9440` for all addresses, as in Go.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let full = if text.starts_with(':') {
        format!("0.0.0.0{text}")
    } else {
        text.to_owned()
    };
    full.parse()
        .map_err(|_| format!("`{text}` is not an address such as 127.0.0.1:9440 or :9440"))
}

fn pattern(text: &str) -> Result<Regex, String> {
    if text.is_empty() {
        return Err("an empty expression matches every name; write .* for that".to_owned());
    }
    Regex::new(text).map_err(|error| error.to_string())
}

fn https(text: &str) -> Result<String, String> {
    let base = text.trim_end_matches('/');
    let host = base.strip_prefix("https://").unwrap_or_default();
    if host.is_empty() || host.contains(['?', '#', '@']) {
        return Err(format!(
            "`{text}` is not an address such as https://127.0.0.1:9443"
        ));
    }
    Ok(base.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        concurrency: Concurrency,
    }

    #[derive(clap::Parser)]
    struct All {
        #[command(flatten)]
        manager: Manager,
    }

    fn manager(flags: &[&str]) -> Result<Manager, clap::Error> {
        let all = ["manager"].into_iter().chain(flags.iter().copied());
        <All as clap::Parser>::try_parse_from(all).map(|all| all.manager)
    }

    #[test]
    fn a_flag_about_what_another_program_runs_is_named() {
        use Provider::{Bootstrap, ControlPlane, Core, Infrastructure};
        let cases: [(&[&str], &[Provider], &[&str]); 9] = [
            (&[], &[Infrastructure], &[]),
            (&["--machine-concurrency=5"], &Provider::ALL, &[]),
            (
                &["--machine-concurrency=5"],
                &[Bootstrap, ControlPlane],
                &["machine-concurrency"],
            ),
            (
                &[
                    "--clustercache-concurrency=5",
                    "--kubeadmconfig-concurrency=5",
                ],
                &[Infrastructure],
                &["kubeadmconfig-concurrency", "clustercache-concurrency"],
            ),
            (&["--clustercache-concurrency=5"], &[ControlPlane], &[]),
            (
                &["--bootstrap-timeout=5m", "--openstackmachine-concurrency=3"],
                &[Core],
                &["openstackmachine-concurrency", "bootstrap-timeout"],
            ),
            (
                &[
                    "--additional-sync-machine-labels=a",
                    "--additional-sync-machine-annotations=b",
                ],
                &[ControlPlane],
                &[
                    "additional-sync-machine-labels",
                    "additional-sync-machine-annotations",
                ],
            ),
            (&["--additional-sync-machine-labels=a"], &[Core], &[]),
            (
                &["--watch-filter=mine", "--sync-period=1h"],
                &[Infrastructure],
                &[],
            ),
        ];
        for (flags, providers, expected) in cases {
            let manager = manager(flags).unwrap();
            let lost = manager.ineffective(|provider| providers.contains(&provider));
            assert_eq!(lost, expected, "{flags:?} {providers:?}");
        }
    }

    #[test]
    fn expressions_and_periods_are_checked_where_they_are_given() {
        for wrong in [
            "--additional-sync-machine-labels=(",
            "--additional-sync-machine-labels=",
            "--additional-sync-machine-annotations=[",
            "--sync-period=0",
            "--sync-period=often",
            "--clustercache-concurrency=0",
        ] {
            assert!(manager(&[wrong]).is_err(), "{wrong}");
        }
        let flag = "--additional-sync-machine-labels";
        let both = manager(&[flag, "^example.org/a,b", flag, "c"]).unwrap();
        let both = both.additional_sync_machine_labels;
        // As in the Go managers, a comma is part of an expression.
        assert_eq!(
            both.iter().map(Regex::as_str).collect::<Vec<_>>(),
            ["^example.org/a,b", "c"]
        );
    }

    #[test]
    fn every_controller_has_a_flag_by_the_name_of_the_go_managers() {
        for (at, name) in clusterapi::CONTROLLERS.into_iter().enumerate() {
            let value = u16::try_from(at).unwrap() + 1;
            let flag = format!("--{name}-concurrency={value}");
            let flags = <Flags as clap::Parser>::try_parse_from(["manager", &flag]).unwrap();
            assert_eq!(flags.concurrency.limits(), [(name, value)].into());
            let zero = format!("--{name}-concurrency=0");
            assert!(<Flags as clap::Parser>::try_parse_from(["manager", &zero]).is_err());
        }
    }

    #[test]
    fn addresses_are_checked_where_they_are_given() {
        assert_eq!(listen("0").unwrap(), Listen::Off);
        assert_eq!(address(":9440").unwrap(), "0.0.0.0:9440".parse().unwrap());
        assert!(listen("[::1]:0").is_ok());
        for wrong in ["", "9440", "localhost", ":x", "127.0.0.1"] {
            assert!(listen(wrong).is_err(), "{wrong}");
        }
        assert_eq!(https("https://a:1/").unwrap(), "https://a:1");
        for wrong in ["", "http://a", "https://", "https://u@a", "https://a?b"] {
            assert!(https(wrong).is_err(), "{wrong}");
        }
    }
}
