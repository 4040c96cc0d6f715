//! Command of the exec plugin for kubectl, and of the kubeconfig with the plugin.

use std::convert::Infallible;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use keystone_auth::exec_info;
use secrecy::SecretString;

/// Flags of the Go plugin, by their names, and further ones.
#[derive(Debug, Default, Args)]
#[command(args_override_self = true)]
pub(crate) struct ClientKeystoneAuth {
    /// URL of Keystone (OS_AUTH_URL).
    #[arg(long, value_name = "URL")]
    pub(crate) keystone_url: Option<String>,
    /// Domain of the user and of the project, by name (OS_USER_DOMAIN_NAME, OS_PROJECT_DOMAIN_NAME).
    #[arg(long, value_name = "NAME")]
    pub(crate) domain_name: Option<String>,
    /// User (OS_USERNAME).
    #[arg(long, value_name = "NAME")]
    pub(crate) user_name: Option<String>,
    /// Project (OS_PROJECT_NAME).
    #[arg(long, value_name = "NAME")]
    pub(crate) project_name: Option<String>,
    /// Password of the user, which every user of the machine can read there; better OS_PASSWORD or secure.yaml.
    #[arg(long, value_name = "PASSWORD", value_parser = secret)]
    pub(crate) password: Option<SecretString>,
    /// Application credential, by id (OS_APPLICATION_CREDENTIAL_ID).
    #[arg(long, value_name = "ID")]
    pub(crate) application_credential_id: Option<String>,
    /// Application credential, by name among those of the user (OS_APPLICATION_CREDENTIAL_NAME).
    #[arg(long, value_name = "NAME")]
    pub(crate) application_credential_name: Option<String>,
    /// Secret of the application credential; better OS_APPLICATION_CREDENTIAL_SECRET or secure.yaml.
    #[arg(long, value_name = "SECRET", value_parser = secret)]
    pub(crate) application_credential_secret: Option<SecretString>,
    /// Certificate of the client, PEM (OS_CERT).
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<String>,
    /// Key of the certificate, PEM (OS_KEY).
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<String>,
    /// CAs of Keystone, PEM (OS_CACERT).
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<String>,
    /// Entry of clouds.yaml, which is searched for where the `openstack` client does (OS_CLOUD).
    #[arg(long, value_name = "NAME")]
    pub(crate) os_cloud: Option<String>,
    /// Keep the token in a file below $XDG_CACHE_HOME that only its owner can read, until shortly before its end.
    #[arg(long)]
    pub(crate) cache: bool,
    /// Word for the User-Agent header; may be repeated.
    #[arg(long, value_name = "WORD")]
    pub(crate) user_agent: Vec<String>,
    /// Log level of the Go plugin; changes nothing.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", hide = true)]
    pub(crate) go_level: Option<String>,
    /// Log levels of the Go plugin; change nothing.
    #[arg(long = "vmodule", value_name = "LEVELS", hide = true)]
    pub(crate) go_levels: Option<String>,
    /// Flag of the Go plugin; changes nothing.
    #[arg(long = "log-flush-frequency", value_name = "DURATION", hide = true)]
    pub(crate) go_flush: Option<String>,
}

/// Flags of `generate kubeconfig`.
#[derive(Debug, Default, Args)]
pub(crate) struct GenerateKubeconfig {
    /// Log in with Keystone, by this program as an exec plugin.
    #[arg(long, required = true)]
    pub(crate) keystone: bool,
    /// Name of the user entry.
    #[arg(
        id = "user_entry",
        long = "user",
        value_name = "NAME",
        default_value = "keystone"
    )]
    pub(crate) user: String,
    /// Entry of clouds.yaml that the user logs in with [default: the environment's].
    #[arg(long, value_name = "NAME")]
    pub(crate) os_cloud: Option<String>,
    /// URL of Keystone; with a cluster it is given with that.
    #[arg(long, value_name = "URL")]
    pub(crate) keystone_url: Option<String>,
    /// Keep tokens between two calls of kubectl.
    #[arg(long)]
    pub(crate) cache: bool,
    /// Version of ExecCredential.
    #[arg(long, value_enum, default_value_t = ExecVersion::V1)]
    pub(crate) exec_version: ExecVersion,
    /// Command of the plugin [default: this program].
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Kubeconfig whose current cluster is added, with a context; its users are not.
    #[arg(
        long,
        value_name = "FILE",
        group = "whose_cluster",
        conflicts_with = "server"
    )]
    pub(crate) cluster_of: Option<PathBuf>,
    /// URL of an API server; adds its cluster and a context.
    #[arg(long, value_name = "URL", group = "whose_cluster")]
    pub(crate) server: Option<String>,
    /// CAs of the API server, PEM [default: the system's].
    #[arg(long, value_name = "FILE", requires = "server")]
    pub(crate) certificate_authority: Option<PathBuf>,
    /// Name of the cluster and of the context.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "keystone",
        requires = "whose_cluster"
    )]
    pub(crate) cluster: String,
    /// File to write to [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub(crate) write_to: Option<PathBuf>,
}

/// Version of `client.authentication.k8s.io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExecVersion {
    /// Version since Kubernetes 1.22.
    #[default]
    V1,
    /// Version before, used by the Go plugin.
    V1beta1,
}

impl ExecVersion {
    /// The `apiVersion`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V1 => exec_info::ExecVersion::V1.name(),
            Self::V1beta1 => exec_info::ExecVersion::V1beta1.name(),
        }
    }
}

fn secret(text: &str) -> Result<SecretString, Infallible> {
    Ok(SecretString::from(text))
}
