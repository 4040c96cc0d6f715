//! Commands of OpenStack on Kubernetes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::values::duration;
use super::{Output, OutputArg};

#[derive(Debug, Subcommand)]
pub(crate) enum OpenStack {
    /// Create or change a cloud, and run its controller until Ctrl-C. A cloud in a cluster keeps running after that.
    ///
    /// Without --on, --kubeconfig and --context everything is simulated: an API server in this process, and nodes on
    /// which no containers run.
    Up(OpenStackUp),
    /// Show the progress of a cloud, and what each step is waiting for.
    Status(OpenStackStatus),
    /// Explain why a cloud, or an object of it, is not ready: the root cause.
    Why(OpenStackWhy),
    /// Print a clouds.yaml for the administrator of a cloud, including the password.
    CloudsYaml(OpenStackCloudsYaml),
    /// Delete a cloud; its volumes, passwords and keys are kept unless --purge-data is given.
    Delete(OpenStackDelete),
    /// Check a parameter file, and print the configuration files of the services.
    Config(OpenStackConfig),
    /// Let a part of a simulated cloud fail, or mend it; without a fault, list what is faulty.
    ///
    /// The faults stay until they are mended, also when the cloud starts again.
    Fault(OpenStackFault),
    /// Print a parameter file with every field, its default and a comment, to be edited.
    Sample,
    /// Show what would be created, changed and deleted in a cluster, without changing anything.
    ///
    /// Every object is sent to the API server as a dry run. The exit status is 0 if there is nothing to do, 2 if
    /// there are changes, and 1 after an error.
    Plan(OpenStackPlan),
    /// Upgrade a cloud to the next release of OpenStack, the same as changing `release`, and show its phases.
    ///
    /// The way back, --abort, ends when the first program of the new release starts. The same command goes on after an
    /// interruption or a failure.
    Upgrade(OpenStackUpgrade),
    /// Back up a cloud to the volume that `backup.claimName` names: databases, networks, and passwords and keys, which are
    /// encrypted to `backup.certificate`.
    ///
    /// Makes an OpenStackOperation, shows its steps and waits. Images, volumes and the disks of guests are not part of it.
    Backup(OpenStackBackup),
    /// Restore a backup into the cloud that it is of. Its APIs are away until the backup is loaded.
    ///
    /// Makes an OpenStackOperation, shows its steps and waits. A backup of another cloud, of another release or with
    /// other keys, and one that is broken, is refused before anything changes.
    Restore(OpenStackRestore),
    /// Replace passwords and keys of a cloud while it runs. At the end, a login with each former password was refused.
    ///
    /// Makes an OpenStackOperation, shows its steps and waits. Programs restart one after the other; interrupted, the
    /// controller goes on. The administrator's clouds.yaml is another one afterwards.
    Rotate(OpenStackRotate),
    /// Create or change a cloud, if its plan is still the one that `openstack plan` showed. The controller then
    /// carries it out.
    Apply(OpenStackApply),
}

/// Cluster of a cloud.
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
    /// Data directory of the simulated cluster [default: ~/.local/share/ferrostack-openstack].
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// Name and cluster of a cloud.
#[derive(Clone, Debug, Args)]
pub(crate) struct CloudArgs {
    /// Name of the cloud.
    #[arg(default_value = "cloud")]
    pub(crate) name: String,
    /// Namespace of the cloud.
    #[arg(short, long, default_value = "openstack")]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackUp {
    /// Parameter file, or `-` for standard input [default: the parameters of the existing cloud, or the defaults for
    /// a new one].
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Set a parameter, which takes precedence over the file, such as `network.mtu=9000`; may be given more than
    /// once.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub(crate) set: Vec<String>,
    /// Exit with 0 once every step is ready, or with 1 at the timeout.
    #[arg(long, group = "awaited")]
    pub(crate) exit_when_ready: bool,
    /// Run a simulated cloud in the background, and return once it is ready; see also `logs` and `down`.
    #[arg(long, group = "awaited")]
    pub(crate) detach: bool,
    /// Timeout of --exit-when-ready and --detach, such as `90s` or `10m`.
    #[arg(long, default_value = "30m", value_name = "DURATION", value_parser = duration, requires = "awaited")]
    pub(crate) timeout: Duration,
    /// Where the cloud runs, if not in a cluster of your own.
    #[arg(long, value_enum, value_name = "PLACE", conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) on: Option<On>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

/// Place of a cloud outside of the user's clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// On simulated nodes, on which no containers run [default].
    Simulated,
    /// On a Kubernetes of one node, which the scripts of a source checkout set up on this machine, as root.
    ThisMachine,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackFault {
    #[command(subcommand)]
    pub(crate) command: Option<FaultCommand>,
    /// Data directory of the simulated cluster [default: ~/.local/share/ferrostack-openstack].
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) data_dir: Option<PathBuf>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text, global = true)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FaultCommand {
    /// Turn off a node.
    Node {
        /// Name of the node.
        name: String,
        /// Turn it on again.
        #[arg(long)]
        mend: bool,
    },
    /// Take an image from all nodes. Containers that run go on.
    Image {
        /// Name of the image, as in a Pod.
        image: String,
        /// Put it there again.
        #[arg(long)]
        mend: bool,
    },
    /// Let containers of a name end whenever they run: services crash, and tasks fail.
    Container {
        /// Name of the container, such as nova-api.
        name: String,
        /// Exit status.
        #[arg(long, value_name = "N", default_value_t = 1)]
        status: u8,
        /// Log of the container.
        #[arg(long, value_name = "TEXT")]
        log: Option<String>,
        /// Let them run again.
        #[arg(long, conflicts_with_all = ["status", "log"])]
        mend: bool,
    },
    /// Mend everything.
    MendAll,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackUpgrade {
    #[command(flatten)]
    pub(crate) cloud: CloudArgs,
    /// Release to upgrade to, such as `2026.1`.
    #[arg(long, value_name = "RELEASE", value_parser = releases(), required_unless_present = "abort")]
    pub(crate) to: Option<String>,
    /// Only run the checks of the new release against the cloud, and change nothing.
    #[arg(long)]
    pub(crate) check: bool,
    /// Go back to the release that the cloud came from, while no program of the new one has started.
    #[arg(long, conflicts_with_all = ["to", "check"])]
    pub(crate) abort: bool,
    /// How long to wait, such as `90s` or `30m`. The controller goes on afterwards.
    #[arg(long, default_value = "60m", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackBackup {
    #[command(flatten)]
    pub(crate) cloud: CloudArgs,
    /// Name of the backup, and of its operation [default: the name of the cloud with the time].
    #[arg(long, value_name = "NAME")]
    pub(crate) backup_name: Option<String>,
    /// How long to wait, such as `90s` or `30m`. The controller goes on afterwards.
    #[arg(long, default_value = "30m", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackRestore {
    #[command(flatten)]
    pub(crate) cloud: CloudArgs,
    /// Name of the backup on the volume.
    #[arg(long, value_name = "NAME")]
    pub(crate) backup: String,
    /// How long to wait, such as `90s` or `30m`. The controller goes on afterwards.
    #[arg(long, default_value = "60m", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackRotate {
    #[command(flatten)]
    pub(crate) cloud: CloudArgs,
    /// Stores, such as `database` with all of its accounts, accounts, such as `identity-nova`, or the keys `fernet` and
    /// `credential` of Keystone [default: everything].
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = rotated())]
    pub(crate) only: Vec<String>,
    /// How long to wait, such as `90s` or `30m`. The controller goes on afterwards.
    #[arg(long, default_value = "60m", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArg,
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
    /// Step such as `nova-api`, object such as `job/nova-schema-3f2a0b1c`, Pod or node to explain [default: the whole
    /// cloud].
    pub(crate) object: Option<String>,
    /// Name of the cloud.
    #[arg(long, default_value = "cloud", value_name = "NAME")]
    pub(crate) cloud: String,
    /// Namespace of the cloud.
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
    /// Also delete volumes, passwords and keys, which cannot be restored; those of a cloud that was deleted before, too.
    #[arg(long)]
    pub(crate) purge_data: bool,
    /// How long to wait until everything is deleted, such as `90s` or `10m`.
    #[arg(long, default_value = "30m", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// Cluster of a plan.
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
    /// Data directory of the simulated cluster of `openstack up`.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Where the cloud runs, as with `openstack up`, which also decides about what its file does not name.
    #[arg(long, value_enum, value_name = "PLACE", conflicts_with_all = ["kubeconfig", "context", "data_dir"])]
    pub(crate) on: Option<On>,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackApply {
    /// Parameter file, or `-` for standard input.
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Digest of the plan, as printed by `openstack plan`.
    #[arg(long, value_name = "DIGEST")]
    pub(crate) plan: String,
    #[command(flatten)]
    pub(crate) server: PlanServer,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackPlan {
    /// Parameter file, or `-` for standard input.
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) server: PlanServer,
    /// Plan for an empty namespace, without connecting to a cluster.
    #[arg(long, conflicts_with_all = ["kubeconfig", "context", "data_dir"])]
    pub(crate) empty: bool,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackConfig {
    /// Service whose configuration is printed [default: all services].
    #[arg(value_parser = services())]
    pub(crate) service: Option<String>,
    /// Parameter file, or `-` for standard input [default: the defaults of --release].
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// OpenStack release, if no parameter file is given.
    #[arg(long, value_name = "NAME", default_value = deployer::Release::DEFAULT.name(), conflicts_with = "file", value_parser = releases())]
    pub(crate) release: String,
    /// Explain an option of the service: its type, its default, its value, where the value comes from, and its description.
    #[arg(long, value_name = "[SECTION.]OPTION", requires = "service")]
    pub(crate) explain: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

fn services() -> Vec<&'static str> {
    deployer::Service::ALL.map(deployer::Service::name).to_vec()
}

fn rotated() -> Vec<&'static str> {
    api::openstack::operation::ROTATED.to_vec()
}

fn releases() -> Vec<&'static str> {
    deployer::Release::ALL.map(deployer::Release::name).to_vec()
}
