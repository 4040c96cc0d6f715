//! Commands and flags. Names are those of clusterctl and kubectl where these have one.

mod admin;
mod manager;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::admin::{Admin, Backup, Restore};
pub(crate) use self::manager::{Election, Listen, Manager};

/// Kubernetes on OpenStack, from one binary.
#[derive(Debug, Parser)]
#[command(
    name = "ferrostack",
    version,
    max_term_width = 100,
    propagate_version = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What to log on standard error, such as `info` or `provider=debug,warn`.
    #[arg(
        long,
        global = true,
        value_name = "FILTER",
        env = "FERROSTACK_LOG",
        default_value = "error"
    )]
    pub(crate) log: String,
    /// Log as JSON, one object a line.
    #[arg(long, global = true)]
    pub(crate) log_json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring clusters up: API server, controllers and, without --cloud, a simulated OpenStack.
    Up(Box<Up>),
    /// Run the controllers against any Kubernetes cluster (docs/manager.md).
    Manager(Box<Manager>),
    /// Print manifests from templates.
    #[command(subcommand)]
    Generate(Generate),
    /// Show a cluster and all of its objects.
    #[command(subcommand)]
    Describe(Describe),
    /// Print a cluster's kubeconfig.
    #[command(subcommand)]
    Get(Get),
    /// Delete a cluster and everything that belongs to it.
    #[command(subcommand)]
    Delete(Delete),
    /// Back up and restore the data directory of `up`.
    #[command(subcommand)]
    Admin(Admin),
    /// Run a simulated OpenStack cloud, or simulated guests on the servers of another one.
    Simulate(Simulate),
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Manifests to apply (`-` is standard input); may be given more than once.
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The cloud to use: an entry of clouds.yaml. Without it, a simulated OpenStack is started.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: Option<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// Exit with 0 once every Cluster is Available and every Machine is Running, with 1 at the timeout.
    #[arg(long)]
    pub(crate) exit_when_ready: bool,
    /// Timeout of --exit-when-ready, such as `90s` or `10m`.
    #[arg(long, default_value = "10m", value_parser = duration)]
    pub(crate) timeout: std::time::Duration,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    /// Address of the management API; port 0 takes a free one and keeps it for the next start.
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    pub(crate) listen: Option<SocketAddr>,
    /// Delays of the simulated cloud: `none`, `real` (as measured), or a file (docs/latencies.yaml).
    #[arg(long, value_name = "none|real|FILE", default_value = "none", value_parser = latency)]
    pub(crate) latency: LatencyArg,
    /// How long a server may run without becoming a node before its console is read for the reason.
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = duration)]
    pub(crate) bootstrap_timeout: std::time::Duration,
    /// Name of the cluster to create, unless there is one already or --filename is given.
    #[arg(long, default_value = "demo", value_name = "NAME")]
    pub(crate) cluster_name: String,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Print the manifests of a cluster, from a template.
    Cluster {
        /// Name of the cluster (CLUSTER_NAME).
        name: String,
        #[command(flatten)]
        options: ClusterOptions,
        /// Print the template's variables instead: required ones first.
        #[arg(long)]
        list_variables: bool,
    },
    /// Print what a cluster needs to run `ferrostack manager`: kinds, permissions, webhooks.
    Manager {
        /// Namespace of the manager.
        #[arg(short, long, default_value = crate::manager::manifests::NAMESPACE)]
        namespace: String,
        /// Container image of ferrostack: adds a Deployment of two managers.
        #[arg(long, value_name = "IMAGE")]
        image: Option<String>,
    },
}

/// The options that choose and fill a cluster template.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ClusterOptions {
    /// Template that comes with ferrostack: `default` or `without-lb`.
    #[arg(short = 'F', long, value_name = "FLAVOR", conflicts_with = "from")]
    pub(crate) flavor: Option<String>,
    /// Template file (`-` is standard input).
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Kubernetes version of the cluster (KUBERNETES_VERSION), such as v1.34.2.
    #[arg(long, value_name = "VERSION", value_parser = kubernetes_version)]
    pub(crate) kubernetes_version: Option<String>,
    /// Number of control plane machines (CONTROL_PLANE_MACHINE_COUNT).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=15))]
    pub(crate) control_plane_machine_count: Option<u32>,
    /// Number of worker machines (WORKER_MACHINE_COUNT).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(crate) worker_machine_count: Option<u32>,
    /// Namespace of the objects (NAMESPACE).
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub(crate) target_namespace: Option<String>,
    /// clusterctl configuration file with values of variables.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Describe {
    /// Show a cluster as a tree.
    Cluster {
        /// Name of the cluster.
        name: String,
        #[command(flatten)]
        connect: ConnectArgs,
        /// Show each machine in its own line.
        #[arg(long)]
        no_grouping: bool,
        #[command(flatten)]
        output: OutputArg,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Get {
    /// Print the admin kubeconfig of a workload cluster.
    Kubeconfig {
        /// Name of the cluster.
        name: String,
        #[command(flatten)]
        connect: ConnectArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Delete {
    /// Delete a cluster.
    Cluster {
        /// Name of the cluster.
        name: String,
        /// Wait until everything is gone.
        #[arg(long)]
        wait: bool,
        /// Timeout of --wait.
        #[arg(long, default_value = "10m", value_parser = duration)]
        timeout: std::time::Duration,
        #[command(flatten)]
        connect: ConnectArgs,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Simulate {
    #[command(subcommand)]
    pub(crate) command: Option<SimulateCommand>,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:8774", value_parser = loopback)]
    pub(crate) listen: SocketAddr,
    /// File to write clouds.yaml to.
    #[arg(long, value_name = "FILE")]
    pub(crate) clouds_file: Option<PathBuf>,
    /// Delays of the cloud: `none`, `real` (as measured), or a file (docs/latencies.yaml).
    #[arg(long, value_name = "none|real|FILE", default_value = "none", value_parser = latency)]
    pub(crate) latency: LatencyArg,
    /// Seed of random values, identifiers among them.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Boot the servers' user data as simulated Kubernetes nodes.
    #[arg(long)]
    pub(crate) guests: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimulateCommand {
    /// Boot simulated Kubernetes nodes on the servers of a cloud whose hypervisors run nothing.
    Guests(SimulateGuests),
}

#[derive(Debug, Args)]
pub(crate) struct SimulateGuests {
    /// An administrator's entry of clouds.yaml. Its floating IPs must be loopback addresses, or inside a `--bind-range`.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: String,
    /// Directory for the guests' state; without it the state is lost when this program ends.
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Serve floating and fixed addresses in this range too, for a network namespace in which the whole range is local;
    /// may be given more than once.
    #[arg(long, value_name = "CIDR")]
    pub(crate) bind_range: Vec<ipnet::IpNet>,
    /// Polling interval.
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = duration)]
    pub(crate) interval: std::time::Duration,
}

/// Where the running API server is found.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConnectArgs {
    /// Kubeconfig of the management API; by default KUBECONFIG, then that of the data directory.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// Namespace of the cluster.
    #[arg(short, long, default_value = "default")]
    pub(crate) namespace: String,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DataDirArg {
    /// Data directory of `up` [default: ferrostack in the XDG data directory].
    #[arg(long, value_name = "DIR", env = "FERROSTACK_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OutputArg {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LatencyArg {
    /// Everything at once.
    None,
    /// As measured on a real cloud.
    Real,
    /// As configured in a file.
    File(PathBuf),
}

/// `none`, `real`, or a path.
fn latency(text: &str) -> Result<LatencyArg, String> {
    Ok(match text {
        "" => return Err("write none, real, or the name of a file".to_owned()),
        "none" => LatencyArg::None,
        "real" => LatencyArg::Real,
        path => LatencyArg::File(PathBuf::from(path)),
    })
}

/// `90s`, `10m`, `1h30m`, or a number of seconds.
fn duration(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write it as 90s, 10m or 1h30m");
    let (mut total, mut digits) = (0u64, String::new());
    for c in text.chars() {
        match c {
            '0'..='9' => digits.push(c),
            's' | 'm' | 'h' => {
                let number: u64 = digits.parse().map_err(|_| wrong())?;
                let unit = match c {
                    's' => 1,
                    'm' => 60,
                    _ => 3600,
                };
                let part = number.checked_mul(unit).ok_or_else(wrong)?;
                total = total.checked_add(part).ok_or_else(wrong)?;
                digits.clear();
            }
            _ => return Err(wrong()),
        }
    }
    if !digits.is_empty() {
        if total > 0 {
            return Err(wrong());
        }
        total = digits.parse().map_err(|_| wrong())?;
    }
    if total == 0 {
        return Err(wrong());
    }
    Ok(std::time::Duration::from_secs(total))
}

/// A loopback address: nothing here is meant to be reached from outside.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| format!("`{text}` is not an address such as 127.0.0.1:6443"))?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(format!("{} is not a loopback address", address.ip()))
    }
}

/// A semantic version, with the `v` that Cluster API requires.
fn kubernetes_version(text: &str) -> Result<String, String> {
    let plain = text.strip_prefix('v').unwrap_or(text);
    let numbers = plain.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<_> = numbers.split('.').collect();
    if parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok()) {
        Ok(format!("v{plain}"))
    } else {
        Err(format!(
            "`{text}` is not a Kubernetes version such as v1.34.2"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn values_are_checked_where_they_are_given() {
        assert_eq!(duration("1h30m").unwrap().as_secs(), 5400);
        assert_eq!(duration("45").unwrap().as_secs(), 45);
        for wrong in [
            "",
            "0s",
            "10x",
            "m",
            "5m3",
            "99999999999999999999s",
            "9999999999999999h",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(kubernetes_version("1.34.2").unwrap(), "v1.34.2");
        assert_eq!(kubernetes_version("v1.35.0-rc.1").unwrap(), "v1.35.0-rc.1");
        for wrong in ["1.34", "v1.x.2", "latest", ""] {
            assert!(kubernetes_version(wrong).is_err(), "{wrong}");
        }
        assert!(loopback("127.3.2.1:80").is_ok());
        assert!(loopback("0.0.0.0:80").is_err());
        assert!(loopback("127.0.0.1").is_err());
    }
}
