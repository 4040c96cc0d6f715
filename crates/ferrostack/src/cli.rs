//! Commands and flags; equal ones have the names of clusterctl and kubectl.

mod admin;
mod adopt;
mod audit;
mod ccm;
mod client_keystone_auth;
mod cluster;
mod convert;
mod csi;
mod deploy;
mod documentation;
mod generate;
mod groups;
mod habits;
mod idle;
mod init;
mod keystone;
mod klog;
mod manager;
mod moving;
mod plan;
mod programs;
mod providers;
mod rolling;
mod runner;
mod session;
mod simulate;
mod topology;
mod up;
mod upgrade;
mod values;
mod waiting;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::admin::{Admin, Backup, Restore};
pub(crate) use self::adopt::{Adopt, AdoptCluster};
pub(crate) use self::audit::Audit;
#[cfg(test)]
pub(crate) use self::ccm::CloudConfSource;
pub(crate) use self::ccm::{CloudConf, CloudControllerManager, GenerateCcm, GenerateCloudConf};
pub(crate) use self::client_keystone_auth::{ClientKeystoneAuth, ExecVersion, GenerateKubeconfig};
pub(crate) use self::cluster::{
    Color, Delete, DeleteCluster, DeleteCommand, Describe, DescribeCluster, Get, GetClusters,
    GetKubeconfig, Listing, Why,
};
pub(crate) use self::convert::Convert;
pub(crate) use self::csi::{CinderCsiPlugin, Csi, CsiCheck, CsiOrphans, GenerateCsi, OnNode};
pub(crate) use self::deploy::{
    CloudArgs, FaultCommand, On, OpenStack, OpenStackApply, OpenStackBackup, OpenStackConfig,
    OpenStackDelete, OpenStackFault, OpenStackPlan, OpenStackRestore, OpenStackRotate,
    OpenStackStatus, OpenStackUp, OpenStackUpgrade, OpenStackWhy, PlaceArgs, PlanServer,
};
pub(crate) use self::documentation::{command, parse};
pub(crate) use self::generate::{
    ClusterOptions, Env, FromConfigMap, Generate, GenerateChart, GenerateCluster, GenerateManager,
    GenerateMonitoring, GenerateYaml,
};
pub(crate) use self::init::{Init, InitCommand, OlderVersions, Providers};
pub(crate) use self::keystone::{
    CheckedFiles, GenerateKeystone, GroupsFrom, KeystoneAuth, KeystoneCheck, KeystoneExplain,
    KeystoneWebhook, Prune,
};
pub(crate) use self::manager::{Election, Listen, Manager, MigrationPhase};
pub(crate) use self::moving::{Hidden, Move};
pub(crate) use self::plan::{Plan, PlanCommand};
pub(crate) use self::programs::arguments_of;
pub(crate) use self::providers::ProviderArg;
pub(crate) use self::rolling::{Resource, Rollout, RolloutHistory, RolloutStatus};
pub(crate) use self::runner::{ProgramArgs, RunnerArgs};
pub(crate) use self::session::{Apply, Completion, Docs, Down, DryRun, Man, Status, Version};
pub(crate) use self::simulate::{Simulate, SimulateCommand, SimulateGuests};
pub(crate) use self::topology::{Topology, TopologyPlan};
pub(crate) use self::up::Up;
pub(crate) use self::upgrade::{
    ConfigCommand, DeleteProviders, GenerateProvider, GenerateRepository, Upgrade, UpgradeApply,
    UpgradePlan,
};
pub(crate) use self::values::LatencyArg;
pub(crate) use self::waiting::{Awaited, EventType, Events, Logs, Wait};

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
    #[command(flatten)]
    pub(crate) logging: Logging,
}

/// Filter and format of the log.
#[derive(Debug, Args)]
pub(crate) struct Logging {
    /// Filter for the log on standard error, such as `info` or `provider=debug,warn`.
    #[arg(
        long,
        global = true,
        value_name = "FILTER",
        env = "FERROSTACK_LOG",
        hide_env_values = true,
        default_value = "error"
    )]
    pub(crate) log: String,
    /// Write the log as JSON, one object per line.
    #[arg(long, global = true)]
    pub(crate) log_json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create clusters: start an API server, the controllers and, without --cloud, a simulated OpenStack.
    Up(Box<Up>),
    /// Show whether `up` is running, and what its clusters are waiting for.
    Status(Status),
    /// Stop an `up` that is running in the background; its clusters are kept in the data directory.
    Down(Down),
    /// Apply manifests; if one of them is rejected, none is applied.
    Apply(Apply),
    /// Make an existing Kubernetes cluster a management cluster: install CRDs, RBAC, webhooks and managers.
    ///
    /// If the cluster already has the core provider of another program, only the providers that are named are
    /// installed, as by `clusterctl init`. Nothing is changed if a part is rejected, or if controllers of another
    /// program already manage the same kinds.
    Init(Box<Init>),
    /// Run the controllers against a Kubernetes cluster.
    Manager(Box<Manager>),
    /// Run the cloud controller manager of a cluster on OpenStack: nodes, routes and load balancers.
    CloudControllerManager(Box<CloudControllerManager>),
    /// Run the Cinder CSI driver: volumes, snapshots and attachments, and their mounts on nodes.
    CinderCsiPlugin(Box<CinderCsiPlugin>),
    /// Check the storage of a cluster on OpenStack, and find what it has left behind in the cloud.
    #[command(subcommand)]
    Csi(Csi),
    /// Print a token of Keystone for kubectl, as an exec plugin.
    ClientKeystoneAuth(Box<ClientKeystoneAuth>),
    /// Run the Keystone webhook of an API server: identities of the cloud's tokens, and permissions of their users.
    #[command(name = "k8s-keystone-auth")]
    KeystoneWebhook(Box<KeystoneWebhook>),
    /// Explain and check policies of the Keystone webhook.
    #[command(subcommand)]
    KeystoneAuth(KeystoneAuth),
    /// Check or generate cloud.conf, the configuration file of the cloud controller manager and of the CSI driver.
    #[command(subcommand)]
    CloudConf(CloudConf),
    /// Print the template variables with a cloud's credentials, including secrets, for use in a shell.
    Env(Env),
    /// Generate manifests.
    #[command(subcommand)]
    Generate(Generate),
    /// Convert manifests of Cluster API and of this provider to another API version.
    ///
    /// Objects of other kinds are not changed. Fields that the other version does not have are kept in an annotation.
    Convert(Convert),
    /// Show the objects of clusters and their state.
    #[command(subcommand)]
    Describe(Describe),
    /// Explain why an object is not ready: what it is waiting for, the root cause, and what to do about it.
    Why(Why),
    /// List clusters, or print a cluster's kubeconfig.
    #[command(subcommand)]
    Get(Get),
    /// Delete a cluster, or providers that `init` installed.
    ///
    /// `delete cluster` deletes a cluster and everything that belongs to it. With the flags for providers, what
    /// `init` installed for these providers is deleted; their CRDs and the namespace are kept unless --include-crd
    /// and --include-namespace are given.
    Delete(Box<Delete>),
    /// Show the writes to the cloud for new, changed or stored clusters, and whether the quota has room for them.
    ///
    /// Nothing is changed. The exit status is 2 if something would be written, and 0 if nothing would be.
    Plan(Box<Plan>),
    /// Take over a cluster of another provider.
    #[command(subcommand)]
    Adopt(Adopt),
    /// Find what clusters have left behind in a cloud, what has their names and no mark, and what is missing.
    ///
    /// The exit status is 2 if something is found, and 0 if nothing is, or if all of it was deleted.
    Audit(Audit),
    /// Upgrade the providers that `init` installed to the version of this program.
    #[command(subcommand)]
    Upgrade(Upgrade),
    /// Show what this program can install.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Wait until objects exist, are gone, or have a condition.
    ///
    /// The exit status is 1 if they do not after --timeout.
    Wait(Wait),
    /// List what controllers report about objects, the newest last.
    Events(Events),
    /// Print the log of an `up` in the background, or the console of a machine's server.
    Logs(Logs),
    /// Restart, pause, resume, undo or follow the rollout of machines.
    #[command(subcommand)]
    Rollout(Rollout),
    /// Preview changes of ClusterClasses and of clusters that have a topology.
    #[command(subcommand)]
    Topology(Topology),
    /// Move clusters to another management cluster, or to and from files.
    Move(Box<Move>),
    /// Back up and restore the data directory of `up`.
    #[command(subcommand)]
    Admin(Admin),
    /// Run a simulated OpenStack cloud, or simulated guests on the servers of another cloud.
    Simulate(Simulate),
    /// Deploy OpenStack on Kubernetes, or rehearse it on simulated nodes.
    #[command(subcommand, name = "openstack")]
    OpenStack(OpenStack),
    /// Print a shell completion script.
    Completion(Completion),
    /// Print the version of this program and of the running API server.
    Version(Version),
    /// Print a page of the documentation, or find a word in all of them.
    Docs(Docs),
    /// Write manual pages of all commands to a directory.
    Man(Man),
}

/// Flags to find the running API server.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerArgs {
    /// Kubeconfig of the management cluster [default: that of --data-dir, then KUBECONFIG, then that of the default
    /// data directory].
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", visible_alias = "kubeconfig-context")]
    pub(crate) context: Option<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
}

/// Namespace of the running API server.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConnectArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Namespace of the cluster [default: the context's, or else `default`].
    #[arg(id = "namespace", short, long, value_name = "NAMESPACE")]
    pub(crate) given_namespace: Option<String>,
    /// Effective namespace; the namespace of the context is filled in once the kubeconfig is known.
    #[arg(skip = "default".to_owned())]
    pub(crate) namespace: String,
}

impl Command {
    /// Namespace of a running API server, of commands with one.
    pub(crate) fn connection(&mut self) -> Option<&mut ConnectArgs> {
        Some(match self {
            Self::Describe(Describe::Cluster(args)) => &mut args.connect,
            Self::Why(args) => &mut args.connect,
            Self::Get(Get::Kubeconfig(args)) => &mut args.connect,
            Self::Get(Get::Clusters(args)) => &mut args.connect,
            Self::Delete(args) => match &mut args.command {
                Some(DeleteCommand::Cluster(args)) => &mut args.connect,
                None => return None,
            },
            Self::Rollout(
                Rollout::Restart(args) | Rollout::Pause(args) | Rollout::Resume(args),
            ) => &mut args.connect,
            Self::Rollout(Rollout::Undo(args)) => &mut args.connect,
            Self::Rollout(Rollout::Status(args)) => &mut args.connect,
            Self::Rollout(Rollout::History(args)) => &mut args.connect,
            Self::Wait(args) => &mut args.connect,
            Self::Events(args) => &mut args.connect,
            Self::Logs(args) => &mut args.connect,
            Self::Topology(Topology::Plan(args)) => &mut args.connect,
            Self::Plan(args) => match &mut args.command {
                Some(PlanCommand::Cluster(args)) => &mut args.connect,
                None => &mut args.of_files.connect,
            },
            Self::Adopt(Adopt::Cluster(args)) => &mut args.connect,
            Self::Move(args) => &mut args.connect,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DataDirArg {
    /// Data directory of `up` [env: FERROSTACK_DATA_DIR] [default: ~/.local/share/ferrostack].
    // The variable is not read by clap, which cannot tell it from the flag: it does not conflict with others.
    #[arg(long, value_name = "DIR")]
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands of ferrostack in the Markdown of `page`: lines of code blocks, and code in sentences.
    fn commands_in(page: &str) -> Vec<String> {
        let mut found = Vec::new();
        for (index, part) in page.split("```").enumerate() {
            if index % 2 == 1 {
                found.extend(part.lines().map(str::to_owned));
            } else {
                found.extend(part.split('`').skip(1).step_by(2).map(str::to_owned));
            }
        }
        found
            .iter()
            .flat_map(|line| line.split(['|', ';']))
            .filter_map(|line| {
                let line = line.split(" #").next().unwrap_or_default();
                let line = line.split(" > ").next().unwrap_or_default();
                let line = line.trim().replace("cargo run --release --", "ferrostack");
                let line = line.replace("target/release/ferrostack", "ferrostack");
                let known = line.starts_with("ferrostack ");
                // An ellipsis stands for something that is not written out.
                (known && !line.contains('…') && !line.contains("...")).then_some(line)
            })
            .collect()
    }

    /// Values for the words that stand for one.
    fn with_values(word: &str) -> String {
        match word {
            "N" => "1".to_owned(),
            "V" => "v1.34.2".to_owned(),
            other => other.trim_matches('\'').to_owned(),
        }
    }

    #[test]
    fn every_command_in_the_documentation_is_one() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let mut pages = vec![format!("{root}/README.md")];
        let files = crate::commands::docs::tests::files().into_iter();
        pages.extend(files.map(|file| file.display().to_string()));
        let mut seen = 0;
        for page in pages {
            for command in commands_in(&std::fs::read_to_string(&page).unwrap()) {
                let words: Vec<String> = command.split_whitespace().map(with_values).collect();
                // `ferrostack up` in a sentence may be the beginning of a command only.
                if let Err(error) = Cli::try_parse_from(&words) {
                    use clap::error::ErrorKind;
                    let partial = matches!(
                        error.kind(),
                        ErrorKind::MissingRequiredArgument
                            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                            | ErrorKind::MissingSubcommand
                    ) && !command.contains(" --");
                    assert!(partial, "{page}: `{command}`: {error}");
                }
                seen += 1;
            }
        }
        assert!(seen > 20, "{seen}");
    }
}
