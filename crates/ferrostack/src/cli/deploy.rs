//! Commands of OpenStack on Kubernetes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::OutputArg;
use super::values::duration;

#[derive(Debug, Subcommand)]
pub(crate) enum OpenStack {
    /// Make a cloud, or change it, and run its controller until Ctrl-C. What runs goes on running.
    ///
    /// Without --on, --kubeconfig and --context everything is simulated: an API server in this process and nodes on which no
    /// program runs.
    Up(OpenStackUp),
    /// Print how far a cloud is, and what each step waits for.
    Status(OpenStackStatus),
    /// Print the first cause why a cloud, or an object of it, is not ready.
    Why(OpenStackWhy),
    /// Print a clouds.yaml of the administrator of a cloud, with the password.
    CloudsYaml(OpenStackCloudsYaml),
    /// Delete a cloud; its volumes, passwords and keys stay, unless --purge-data is given.
    Delete(OpenStackDelete),
    /// Check a file of parameters, and print the configuration files of the services.
    Config(OpenStackConfig),
    /// Show what would be created, changed and deleted in a cluster. Nothing is written.
    ///
    /// Every object is sent to the API server as a dry run. The exit status is 0 when there is nothing to do, 2 when
    /// there is, and 1 after an error.
    Plan(OpenStackPlan),
    /// Create or change the object of a cloud, if its plan is still the one that was looked at. The controller does the
    /// rest.
    Apply(OpenStackApply),
}

/// Where a cloud is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlaceArgs {
    /// Kubeconfig of a cluster [default with --context: KUBECONFIG].
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default with --kubeconfig: its current context].
    #[arg(
        long,
        value_name = "NAME",
        visible_alias = "kubeconfig-context",
        conflicts_with = "data_dir"
    )]
    pub(crate) context: Option<String>,
    /// Directory of the simulated cluster [default: ~/.local/share/ferrostack-openstack].
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// Which cloud.
#[derive(Clone, Debug, Args)]
pub(crate) struct CloudArgs {
    /// Name of the cloud.
    #[arg(default_value = "cloud")]
    pub(crate) name: String,
    /// Its namespace.
    #[arg(short, long, default_value = "openstack")]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackUp {
    /// File of parameters (`-` is standard input) [default: the cloud that is there, or one with only defaults].
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// A field of the parameters above the file, such as `network.mtu=9000`; may be given more than once.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub(crate) set: Vec<String>,
    /// Exit with 0 once every step is ready, or with 1 at the timeout.
    #[arg(long)]
    pub(crate) exit_when_ready: bool,
    /// Timeout of --exit-when-ready, such as `90s` or `10m`.
    #[arg(long, default_value = "30m", value_name = "DURATION", value_parser = duration, requires = "exit_when_ready")]
    pub(crate) timeout: Duration,
    /// Where the cloud is, if not in a cluster of yours.
    #[arg(long, value_enum, value_name = "PLACE", conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) on: Option<On>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

/// Where a cloud is that is in no cluster of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// On nodes on which no program runs [default].
    Simulated,
    /// On a Kubernetes of one node, which the scripts of a checkout make on this machine, as root.
    ThisMachine,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackStatus {
    #[command(flatten)]
    pub(crate) cloud: CloudArgs,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackWhy {
    /// A step such as `nova-api`, an object such as `job/nova-schema-3f2a0b1c`, a Pod or a node [default: the whole
    /// cloud].
    pub(crate) object: Option<String>,
    /// Name of the cloud.
    #[arg(long, default_value = "cloud", value_name = "NAME")]
    pub(crate) cloud: String,
    /// Its namespace.
    #[arg(short, long, default_value = "openstack")]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackCloudsYaml {
    #[command(flatten)]
    pub(crate) cloud: CloudArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackDelete {
    #[command(flatten)]
    pub(crate) cloud: CloudArgs,
    /// Delete volumes, passwords and keys, too. They cannot be restored.
    #[arg(long)]
    pub(crate) purge_data: bool,
    /// How long to wait for the end, such as `90s` or `10m`.
    #[arg(long, default_value = "30m", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// The cluster of a plan.
#[derive(Debug, Args)]
pub(crate) struct PlanServer {
    /// Kubeconfig of the cluster [default: KUBECONFIG, then that of the default data directory of `openstack up`].
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context].
    #[arg(
        long,
        value_name = "NAME",
        visible_alias = "kubeconfig-context",
        conflicts_with = "data_dir"
    )]
    pub(crate) context: Option<String>,
    /// Directory of the simulated cluster of `openstack up`.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackApply {
    /// File of parameters (`-` is standard input).
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The digest that `openstack plan` printed for it.
    #[arg(long, value_name = "DIGEST")]
    pub(crate) plan: String,
    #[command(flatten)]
    pub(crate) server: PlanServer,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackPlan {
    /// File of parameters (`-` is standard input).
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) server: PlanServer,
    /// Plan for an empty namespace, and connect to no cluster.
    #[arg(long, conflicts_with_all = ["kubeconfig", "context", "data_dir"])]
    pub(crate) empty: bool,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackConfig {
    /// The service [default: all of them].
    #[arg(value_parser = services())]
    pub(crate) service: Option<String>,
    /// File of parameters (`-` is standard input) [default: a cloud with only defaults].
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Release of a cloud with only defaults.
    #[arg(long, value_name = "NAME", default_value = "2025.1", conflicts_with = "file", value_parser = releases())]
    pub(crate) release: String,
    /// Explain an option of the service: what it takes, its default, its value and where that comes from.
    #[arg(long, value_name = "[SECTION.]OPTION", requires = "service")]
    pub(crate) explain: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

fn services() -> Vec<&'static str> {
    deployer::Service::ALL.map(deployer::Service::name).to_vec()
}

fn releases() -> Vec<&'static str> {
    deployer::Release::ALL.map(deployer::Release::name).to_vec()
}
