//! Flags of `manager`; names and defaults are those of the Go managers where these have one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::ProviderArg;
use super::values::duration;

#[derive(Debug, Args)]
pub(crate) struct Manager {
    /// Kubeconfig of the cluster to manage [default: KUBECONFIG, then the service account of the pod].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", visible_alias = "kubeconfig-context")]
    pub(crate) context: Option<String>,
    /// Providers whose controllers are run; the other ones are run by another program [default: all].
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
    /// Address of /metrics, over plain HTTP; `0` for none.
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = listen)]
    pub(crate) diagnostics_address: Listen,
    /// Address on which the webhooks (conversion, defaulting, validation) listen, with TLS.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9443", value_parser = address)]
    pub(crate) webhook_addr: SocketAddr,
    /// URL at which the API server reaches the webhooks, such as https://127.0.0.1:9443 [default: the Service
    /// ferrostack-webhook in the manager's namespace].
    #[arg(long, value_name = "URL", value_parser = https)]
    pub(crate) webhook_url: Option<String>,
    /// Number of OpenStackClusters that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) openstackcluster_concurrency: u16,
    /// Number of OpenStackMachines that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) openstackmachine_concurrency: u16,
    #[command(flatten)]
    pub(crate) core: CoreConcurrency,
    /// How long a running server may take to become a node before its console log is searched for the reason.
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = duration)]
    pub(crate) bootstrap_timeout: Duration,
}

// The default is higher than that of the Go managers (10), because no reconcile waits for a cloud.
#[derive(Debug, Args)]
pub(crate) struct CoreConcurrency {
    /// Number of Clusters that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cluster_concurrency: u16,
    /// Number of ClusterClasses that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) clusterclass_concurrency: u16,
    /// Number of Clusters that have a topology that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) clustertopology_concurrency: u16,
    /// Number of Machines that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) machine_concurrency: u16,
    /// Number of MachineSets that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) machineset_concurrency: u16,
    /// Number of MachineDeployments that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) machinedeployment_concurrency: u16,
    /// Number of MachineHealthChecks that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) machinehealthcheck_concurrency: u16,
    /// Number of ClusterResourceSets that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) clusterresourceset_concurrency: u16,
    /// Number of KubeadmConfigs that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) kubeadmconfig_concurrency: u16,
    /// Number of KubeadmControlPlanes that are reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) kubeadmcontrolplane_concurrency: u16,
}

impl CoreConcurrency {
    /// The limits by the name of the controller.
    pub(crate) fn limits(&self) -> BTreeMap<&'static str, u16> {
        BTreeMap::from([
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
        ])
    }
}

#[derive(Debug, Args)]
pub(crate) struct Election {
    /// Elect a leader, so that one of several managers is active at a time.
    #[arg(long)]
    pub(crate) leader_elect: bool,
    /// How long other managers wait before they replace a leader that does not renew its Lease.
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = duration)]
    pub(crate) leader_elect_lease_duration: Duration,
    /// How long a leader tries to renew its Lease before it stops.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    pub(crate) leader_elect_renew_deadline: Duration,
    /// Interval at which the Lease is read and renewed.
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = duration)]
    pub(crate) leader_elect_retry_period: Duration,
    /// Namespace of the Lease, of the webhooks' certificate and of their Service [default: the
    /// manager's own, or that of the kubeconfig's context].
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) leader_election_namespace: Option<String>,
}

/// An address to listen on, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    On(SocketAddr),
    Off,
}

fn listen(text: &str) -> Result<Listen, String> {
    if text == "0" {
        return Ok(Listen::Off);
    }
    address(text).map(Listen::On)
}

/// `127.0.0.1:9440`, or `:9440` for all addresses, as Go writes it.
fn address(text: &str) -> Result<SocketAddr, String> {
    let full = if text.starts_with(':') {
        format!("0.0.0.0{text}")
    } else {
        text.to_owned()
    };
    full.parse()
        .map_err(|_| format!("`{text}` is not an address such as 127.0.0.1:9440 or :9440"))
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
        core: CoreConcurrency,
    }

    #[test]
    fn every_controller_has_a_flag_by_the_name_of_the_go_managers() {
        for (at, name) in clusterapi::CONTROLLERS.into_iter().enumerate() {
            let value = u16::try_from(at).unwrap() + 1;
            let flag = format!("--{name}-concurrency={value}");
            let flags = <Flags as clap::Parser>::try_parse_from(["manager", &flag]).unwrap();
            let limits = flags.core.limits();
            assert_eq!(limits.len(), clusterapi::CONTROLLERS.len());
            assert_eq!(limits[name], value);
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
