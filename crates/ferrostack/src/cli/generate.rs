//! Flags of `generate`, and flags to choose and fill a cluster template.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::kubernetes_version;
use super::{
    GenerateCcm, GenerateCsi, GenerateKeystone, GenerateKubeconfig, GenerateProvider,
    GenerateRepository, OlderVersions, Output, OutputArg, ProviderArg, ServerArgs,
};

#[derive(Debug, Args)]
pub(crate) struct Env {
    /// Entry of clouds.yaml, which is searched for where the `openstack` client does.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: String,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Print the manifests of a cluster, generated from a template.
    ///
    /// Variables get their values from flags, the environment, the configuration file of clusterctl and the cloud, in
    /// this order. In a terminal, you are asked for values that the cloud does not determine.
    Cluster(Box<GenerateCluster>),
    /// Substitute the variables in a template, such as the manifest of an addon, and print the result.
    ///
    /// Variables get their values from the environment and the configuration file of clusterctl.
    Yaml(GenerateYaml),
    /// Print the manifests that `ferrostack manager` needs in a cluster: CRDs, RBAC and webhooks.
    Manager(GenerateManager),
    /// Write a chart for Helm with the manifests of the managers.
    Chart(GenerateChart),
    /// Print what Prometheus and Grafana need to watch the managers: ServiceMonitor, alerts and a dashboard.
    Monitoring(GenerateMonitoring),
    /// Print the manifests of providers, or describe them.
    Provider(Box<GenerateProvider>),
    /// Write the release files of providers for clusterctl: components, metadata, templates, and its configuration.
    Repository(Box<GenerateRepository>),
    /// Print the manifests of the cloud controller manager: Secret, RBAC and DaemonSet.
    CloudControllerManager(GenerateCcm),
    /// Print the manifests of the Cinder CSI driver: Secret, RBAC, CSIDriver, StorageClasses, Deployment and DaemonSet.
    CinderCsiPlugin(GenerateCsi),
    /// Print a kubeconfig whose user logs in with Keystone.
    Kubeconfig(Box<GenerateKubeconfig>),
    /// Print the manifests of the Keystone webhook, and the files and flags that API servers need for it.
    KeystoneAuth(GenerateKeystone),
}

#[derive(Debug, Args)]
pub(crate) struct GenerateManager {
    /// Namespace of the managers.
    #[arg(short, long, default_value = crate::defaults::NAMESPACE)]
    pub(crate) namespace: String,
    /// Container image of ferrostack; adds a Deployment of two managers.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Providers run by the managers; other programs run the others [default: all].
    #[arg(long, value_name = "TYPES", value_enum, value_delimiter = ',')]
    pub(crate) providers: Vec<ProviderArg>,
    /// Namespace of OpenStack clouds; adds the namespace, and the permissions to run the controller of clouds in it.
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) openstack_namespace: Option<String>,
    /// Have cert-manager issue the certificate of the webhooks: adds an Issuer and a Certificate.
    #[arg(long)]
    pub(crate) cert_manager: bool,
    /// Write the manifests as a base of kustomize into this directory, instead of printing them.
    #[arg(long, value_name = "DIR")]
    pub(crate) kustomize: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) older: OlderVersions,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateChart {
    /// Directory of the chart; it is created, or has such a chart already.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) older: OlderVersions,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateMonitoring {
    /// Namespace of the managers.
    #[arg(short, long, default_value = crate::defaults::NAMESPACE)]
    pub(crate) namespace: String,
    /// Providers run by the managers [default: all].
    #[arg(long, value_name = "TYPES", value_enum, value_delimiter = ',')]
    pub(crate) providers: Vec<ProviderArg>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateYaml {
    /// Template: a file, a URL, or `-` for standard input.
    #[arg(long, value_name = "FILE|URL|-", default_value = "-")]
    pub(crate) from: PathBuf,
    /// List the template's variables with their values, and where the values come from, instead of manifests.
    #[arg(long)]
    pub(crate) list_variables: bool,
    /// Output format of --list-variables.
    #[arg(short, long, value_enum, default_value_t = Output::Text, requires = "list_variables")]
    pub(crate) output: Output,
    /// Configuration file of clusterctl, with values of variables.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Template in a ConfigMap of the management cluster.
#[derive(Clone, Debug, Args)]
pub(crate) struct FromConfigMap {
    /// ConfigMap with the template.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "flavor"])]
    pub(crate) from_config_map: Option<String>,
    /// Namespace of the ConfigMap.
    #[arg(
        long,
        value_name = "NAMESPACE",
        default_value = "default",
        requires = "from_config_map"
    )]
    pub(crate) from_config_map_namespace: String,
    /// Key of the ConfigMap with the template.
    #[arg(
        long,
        value_name = "KEY",
        default_value = "template",
        requires = "from_config_map"
    )]
    pub(crate) from_config_map_key: String,
}

impl FromConfigMap {
    /// Flags, each preceded by a blank.
    pub(crate) fn flags(&self) -> String {
        let Some(name) = &self.from_config_map else {
            return String::new();
        };
        format!(
            " --from-config-map {name} --from-config-map-namespace {} --from-config-map-key {}",
            self.from_config_map_namespace, self.from_config_map_key
        )
    }
}

// `-f` is the flavor in clusterctl; `up` has manifests of its own there.
#[derive(Debug, Args)]
#[command(mut_arg("flavor", |flavor| flavor.visible_short_alias('f')))]
pub(crate) struct GenerateCluster {
    /// Name of the cluster (CLUSTER_NAME).
    pub(crate) name: String,
    /// List the template's variables with their values, and where the values come from, instead of manifests.
    #[arg(long)]
    pub(crate) list_variables: bool,
    /// Output format of --list-variables.
    #[arg(short, long, value_enum, default_value_t = Output::Text, requires = "list_variables")]
    pub(crate) output: Output,
    /// File to write to [default: standard output]. If it contains secrets, only its owner can read it.
    #[arg(long, value_name = "FILE")]
    pub(crate) write_to: Option<PathBuf>,
    /// Infrastructure provider that the templates are for: `openstack`, in any version; they are those of this program.
    #[arg(short = 'i', long = "infrastructure", value_name = "NAME[:VERSION]", conflicts_with_all = ["from", "from_config_map"])]
    pub(crate) provider: Option<String>,
    /// Entry of clouds.yaml; variables without a value are filled in from this cloud [default: the cloud of a running
    /// `up`].
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: Option<String>,
    #[command(flatten)]
    pub(crate) config_map: FromConfigMap,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) options: ClusterOptions,
}

/// Options to choose and fill a cluster template.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ClusterOptions {
    /// Built-in template: `default`, `without-lb`, `flatcar`, `flatcar-sysext`, `topology`, `clusterclass-dev-test` or
    /// `capi-v1beta1`.
    #[arg(short = 'F', long, value_name = "FLAVOR", conflicts_with = "from")]
    pub(crate) flavor: Option<String>,
    /// Template: a file, a URL, or `-` for standard input.
    ///
    /// The template language is that of clusterctl, so that templates of cluster-api-provider-openstack can be used.
    /// The URL of a page of GitHub that shows a file is accepted.
    #[arg(long, value_name = "FILE|URL|-")]
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
    /// Configuration file of clusterctl, with values of variables.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
