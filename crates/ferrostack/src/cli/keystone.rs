//! Commands of the Keystone webhook.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use keystone_auth::policy::Mode;
use keystone_auth::user::{Accepted, Format};

use super::Listen;
use super::OutputArg;
use super::klog;
use super::manager::{address, listen};
use super::values::duration;

const ONE_LOG: &str = "the log goes to standard error as text; --log and --v choose what is in it";

/// Flags of the Go webhook, by their names, and more.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct KeystoneWebhook {
    /// Address of the webhook, over TLS.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8443", value_parser = address)]
    pub(crate) listen: std::net::SocketAddr,
    /// Paths at which reviews are answered besides /webhook.
    #[arg(long, value_name = "PATH", value_delimiter = ',', value_parser = path)]
    pub(crate) path: Vec<String>,
    /// Certificate of the webhook, with intermediate authorities.
    #[arg(
        long,
        value_name = "FILE",
        env = "TLS_CERT_FILE",
        hide_env_values = true
    )]
    pub(crate) tls_cert_file: PathBuf,
    /// Key of --tls-cert-file.
    #[arg(
        long,
        value_name = "FILE",
        env = "TLS_PRIVATE_KEY_FILE",
        hide_env_values = true
    )]
    pub(crate) tls_private_key_file: PathBuf,
    /// Authorities whose certificates clients have to present [default: clients need none].
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,
    /// URL of Keystone.
    #[arg(long, value_name = "URL", env = "OS_AUTH_URL", hide_env_values = true)]
    pub(crate) keystone_url: String,
    /// Authorities of Keystone's certificate [default: the system's].
    #[arg(
        long,
        value_name = "FILE",
        env = "KEYSTONE_CA_FILE",
        hide_env_values = true
    )]
    pub(crate) keystone_ca_file: Option<PathBuf>,
    /// cloud.conf with a service user, who asks Keystone about tokens [default: each token asks about itself].
    #[arg(long, value_name = "FILE")]
    pub(crate) cloud_config: Option<PathBuf>,
    /// How long Keystone may take for an answer.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) keystone_timeout: Duration,
    /// Policy, in JSON; takes precedence over --policy-configmap-name.
    #[arg(
        long,
        value_name = "FILE",
        env = "KEYSTONE_POLICY_FILE",
        hide_env_values = true
    )]
    pub(crate) keystone_policy_file: Option<PathBuf>,
    /// ConfigMap in kube-system whose key `policies` is the policy.
    #[arg(
        long,
        value_name = "NAME",
        env = "KEYSTONE_POLICY_CONFIGMAP_NAME",
        hide_env_values = true
    )]
    pub(crate) policy_configmap_name: Option<String>,
    /// How the policy is read.
    #[arg(long, value_enum, default_value_t = PolicyMode::Compatible)]
    pub(crate) policy_mode: PolicyMode,
    /// Mappings of roles, in YAML; takes precedence over --sync-configmap-name.
    #[arg(
        long,
        value_name = "FILE",
        env = "KEYSTONE_SYNC_CONFIG_FILE",
        hide_env_values = true
    )]
    pub(crate) sync_config_file: Option<PathBuf>,
    /// ConfigMap in kube-system whose key `syncConfig` has the mappings of roles.
    #[arg(
        long,
        value_name = "NAME",
        env = "KEYSTONE_SYNC_CONFIGMAP_NAME",
        hide_env_values = true
    )]
    pub(crate) sync_configmap_name: Option<String>,
    /// Action on namespaces made by logins for projects that are gone; needs --cloud-config [default: nothing].
    #[arg(long, value_enum, value_name = "HOW", requires = "cloud_config")]
    pub(crate) prune: Option<Prune>,
    /// How often it is looked for such namespaces.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub(crate) prune_interval: Duration,
    /// Kubeconfig of the cluster with the ConfigMaps [default: the service account of the pod].
    #[arg(
        long,
        value_name = "FILE",
        env = "KEYSTONE_KUBECONFIG_FILE",
        hide_env_values = true
    )]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", visible_alias = "kubeconfig-context")]
    pub(crate) context: Option<String>,
    /// Accepted scopes of tokens: project, trust, domain, system, unscoped.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "project,trust"
    )]
    pub(crate) scopes: Vec<Accepted>,
    /// Names of users: %n is the name in Keystone, %i the id, %D the name of the domain, %d its id.
    #[arg(long, value_name = "FORMAT", default_value = "%n")]
    pub(crate) username_format: Format,
    /// Names of groups, in the same form.
    #[arg(long, value_name = "FORMAT", default_value = "%n")]
    pub(crate) group_format: Format,
    /// Where the groups of users come from.
    #[arg(long, value_enum, value_name = "FROM", default_value_t = GroupsFrom::Keystone)]
    pub(crate) groups: GroupsFrom,
    /// Ids or names of the domains whose users may log in [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) allowed_domains: Vec<String>,
    /// Ids or names of the projects for which users may log in [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) allowed_projects: Vec<String>,
    /// Audiences of tokens [default: the API server's].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) audience: Vec<String>,
    /// Time to keep Keystone's answer about a token; 0s asks each time.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration_or_none)]
    pub(crate) cache_ttl: Duration,
    /// Tokens in a second about which Keystone is asked.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) new_tokens_per_second: u32,
    /// Address of /healthz, /readyz and /metrics, over plain HTTP, such as :8081; 0 for none.
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = listen)]
    pub(crate) health_address: Listen,
    /// Added to the User-Agent of requests to OpenStack; may be given more than once.
    #[arg(long, value_name = "TEXT")]
    pub(crate) user_agent: Vec<String>,
    /// Log level of klog: errors with 0, what is done from 1 on, details from 5 on; --log takes precedence.
    #[arg(short = 'v', long = "v", value_name = "N", default_value_t = 0)]
    pub(crate) verbosity: u8,
    #[arg(long, hide = true, value_name = "DURATION")]
    log_flush_frequency: Option<String>,
    #[arg(long, hide = true, value_name = "LIST")]
    vmodule: Option<String>,
}

/// Duration, possibly zero.
fn duration_or_none(text: &str) -> Result<Duration, String> {
    match text {
        "0" | "0s" => Ok(Duration::ZERO),
        other => duration(other),
    }
}

/// Mode of reading a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyMode {
    /// As the Go webhook reads it.
    Compatible,
    /// Texts that the Go webhook ignores are errors; sub-resources and API groups count in version 2.
    Strict,
}

/// Source of the groups of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupsFrom {
    /// Keystone is asked for them, once for each user and --cache-ttl.
    Keystone,
    /// From the answer about the token, which has those of federated users; others have none.
    Token,
}

/// Action on namespaces of deleted projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Prune {
    /// They are named in the log.
    Look,
    /// They are named in the log, and deleted when that is so at the next look, too.
    Delete,
}

impl From<PolicyMode> for Mode {
    fn from(mode: PolicyMode) -> Self {
        match mode {
            PolicyMode::Compatible => Self::Compatible,
            PolicyMode::Strict => Self::Strict,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeystoneAuth {
    /// Print what each rule of a policy says of a request.
    Explain(KeystoneExplain),
    /// Check a policy and the files around it; exit with 1 if something will not work.
    Check(KeystoneCheck),
}

#[derive(Debug, Args)]
pub(crate) struct KeystoneExplain {
    /// Policy, or `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: PathBuf,
    /// How the policy is read.
    #[arg(long, value_enum, default_value_t = PolicyMode::Compatible)]
    pub(crate) policy_mode: PolicyMode,
    /// Name of the user.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) user: String,
    /// Groups of the user.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) group: Vec<String>,
    /// Roles of the user in Keystone.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) role: Vec<String>,
    /// Project of the user, by id and by name.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) project: Vec<String>,
    /// Verb of the request.
    #[arg(long, value_name = "VERB")]
    pub(crate) verb: String,
    /// Resource, such as pods, pods/exec or deployments.apps.
    #[arg(long, value_name = "RESOURCE", required_unless_present = "url")]
    pub(crate) resource: Option<String>,
    /// Path that is no resource, such as /healthz.
    #[arg(long, value_name = "PATH", conflicts_with = "resource")]
    pub(crate) url: Option<String>,
    /// Namespace of the request [default: none, as for objects without a namespace].
    #[arg(
        id = "of_namespace",
        short = 'n',
        long = "namespace",
        value_name = "NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct KeystoneCheck {
    #[command(flatten)]
    pub(crate) files: CheckedFiles,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

/// Files to check, at least one.
#[derive(Debug, Args)]
#[group(id = "checked", required = true, multiple = true)]
pub(crate) struct CheckedFiles {
    /// Policy.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Mappings of roles and what is written to the cluster.
    #[arg(long, value_name = "FILE")]
    pub(crate) sync_config: Option<PathBuf>,
    /// Certificate of the webhook, with --key.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// Key of --certificate.
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// Kubeconfig by which API servers reach the webhook.
    #[arg(long, value_name = "FILE")]
    pub(crate) webhook_kubeconfig: Option<PathBuf>,
    /// Manifest of a kube-apiserver, such as /etc/kubernetes/manifests/kube-apiserver.yaml.
    #[arg(long, value_name = "FILE")]
    pub(crate) apiserver: Option<PathBuf>,
    /// AuthorizationConfiguration of an API server.
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateKeystone {
    /// URL of Keystone.
    #[arg(long, value_name = "URL")]
    pub(crate) keystone_url: String,
    /// Print a static pod to run beside kube-apiserver, with everything in files.
    #[arg(long)]
    pub(crate) static_pod: bool,
    /// Let the webhook make namespaces of projects, and RoleBindings of roles; adds the ConfigMap and the rights for that.
    #[arg(long, conflicts_with = "static_pod")]
    pub(crate) sync: bool,
    /// Let it delete namespaces that it has made and whose projects are gone, too; needs the Secret keystone-auth-cloud-config.
    #[arg(long, requires = "sync")]
    pub(crate) prune: bool,
    /// Namespace of the webhook.
    #[arg(short, long, default_value = crate::defaults::KUBE_SYSTEM)]
    pub(crate) namespace: String,
    /// Container image of ferrostack.
    #[arg(long, value_name = "IMAGE", default_value = crate::defaults::IMAGE)]
    pub(crate) image: String,
}

impl KeystoneWebhook {
    /// Value of `--log` for the level of klog.
    pub(crate) fn log_filter(&self) -> &'static str {
        match self.verbosity {
            // What is refused and what cannot be read is worth a line.
            0 => "warn",
            level => klog::filter(level),
        }
    }

    /// Given flags without an effect, each with the reason.
    pub(crate) fn without_effect(&self) -> Vec<(&'static str, &'static str)> {
        let mut given = Vec::new();
        if self.log_flush_frequency.is_some() {
            given.push(("--log-flush-frequency", ONE_LOG));
        }
        if self.vmodule.is_some() {
            given.push(("--vmodule", ONE_LOG));
        }
        given
    }
}

fn path(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~/".contains(letter);
    match text.starts_with('/') && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{text}` is not a path such as /webhook")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        args: KeystoneWebhook,
    }

    fn parsed(flags: &[&str]) -> Result<KeystoneWebhook, String> {
        let words = [
            "webhook",
            "--tls-cert-file=c",
            "--tls-private-key-file=k",
            "--keystone-url=http://k",
        ];
        let program = Program::try_parse_from(words.into_iter().chain(flags.iter().copied()));
        Ok(program.map_err(|error| error.to_string())?.args)
    }

    /// Each flag has a row with its variable and its default, and each row is of flags that there are.
    #[test]
    fn the_table_in_the_documentation_is_that_of_the_flags() {
        use clap::CommandFactory as _;

        const PAGE: &str = include_str!("../../../../docs/guides/keystone-authentication.md");
        let (_, section) = PAGE.split_once("\n## Flags\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| `-"));
        let rows: Vec<Vec<&str>> = rows.map(|line| line.split(" | ").collect()).collect();
        let names = |row: &[&str]| {
            let names = row[0].split('`').filter(|name| name.starts_with("--"));
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut known = Vec::new();
        for arg in Program::command().get_arguments() {
            let Some(name) = arg.get_long().filter(|_| !arg.is_hide_set()) else {
                continue;
            };
            let name = format!("--{name}");
            known.push(name.clone());
            let row = rows.iter().find(|row| names(row).contains(&name));
            let row = row.unwrap_or_else(|| panic!("{name} has no row"));
            match arg.get_env() {
                Some(variable) => assert!(row[1].contains(variable.to_str().unwrap()), "{row:?}"),
                None => assert!(!row[1].contains('`'), "{row:?}"),
            }
            let default = arg.get_default_values().first();
            let default = default.map_or("", |it| it.to_str().unwrap());
            // The word for no address is another one.
            let is_there = name == "--health-address" || row[2].contains(default);
            assert!(is_there, "{row:?}: {default}");
        }
        for name in rows.iter().flat_map(|row| names(row)) {
            assert!(known.contains(&name), "there is no {name}");
        }
    }

    #[test]
    fn flags_and_their_defaults_are_those_of_the_go_webhook() {
        let args = parsed(&[]).unwrap();
        assert_eq!(args.listen.to_string(), "0.0.0.0:8443");
        // Another port might be taken where the Go webhook ran.
        assert_eq!(args.health_address, Listen::Off);
        assert_eq!(args.scopes, [Accepted::Project, Accepted::Trust]);
        assert_eq!(args.username_format, Format::default());
        assert_eq!(Mode::from(args.policy_mode), Mode::Compatible);
        assert_eq!(args.log_filter(), "warn");
        assert!(args.without_effect().is_empty());
        let nothing = parsed(&["--cache-ttl=0s"]).unwrap();
        assert_eq!(nothing.cache_ttl, Duration::ZERO);
        let args = parsed(&[
            "--listen=127.0.0.1:9443",
            "--keystone-ca-file=ca",
            "--keystone-policy-file=p",
            "--policy-configmap-name=k8s-auth-policy",
            "--sync-config-file=s",
            "--sync-configmap-name=keystone-sync-policy",
            "--kubeconfig=config",
            "--user-agent=a",
            "--user-agent=b",
            "--v=4",
            "--vmodule=a=1",
            "--log-flush-frequency=5s",
            "--path=/a,/b",
        ])
        .unwrap();
        assert_eq!(args.user_agent, ["a", "b"]);
        assert_eq!(
            (args.path, args.verbosity),
            (vec!["/a".to_owned(), "/b".to_owned()], 4)
        );
        for (flag, words) in [
            ("--path=webhook", "is not a path such as /webhook"),
            ("--path=/{a}", "is not a path"),
            ("--scopes=projects", "is no scope"),
            ("--username-format=x", "neither %n nor %i"),
            ("--group-format=system:%n", "are Kubernetes' own"),
            ("--listen=8443", "is not an address"),
            ("--new-tokens-per-second=0", "0 is not in"),
            ("--groups=none", "invalid value"),
            ("--prune=delete", "--cloud-config"),
        ] {
            let error = parsed(&[flag]).unwrap_err();
            assert!(error.contains(words), "{flag}: {error}");
        }
    }
}
