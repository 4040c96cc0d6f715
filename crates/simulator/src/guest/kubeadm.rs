//! kubeadm's command line and configuration files, v1beta3 and v1beta4.
//!
//! Reference: the kubeadm API (`kubeadm.k8s.io`); errors have kubeadm's messages, so that the console log of a
//! simulated guest reads like the log of a real machine.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;

use super::pki;
use super::user_data::Command;

/// Default port of the API server.
pub(crate) const DEFAULT_PORT: u16 = 6443;

/// `kubeadm` command in `runcmd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// `kubeadm init --config PATH`.
    Init(String),
    /// `kubeadm join --config PATH`.
    Join(String),
}

/// Why a configuration is invalid, with kubeadm's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("`kubeadm {0}` without --config is not simulated")]
    NoConfig(&'static str),
    #[error("invalid YAML: {0}")]
    Yaml(String),
    #[error("no {0} found in the file")]
    Missing(&'static str),
    #[error("invalid configuration for GroupVersionKind {kind}: {problem}")]
    Kind {
        /// Version and kind of the document.
        kind: String,
        /// Error.
        problem: String,
    },
    #[error("{field}: {problem}")]
    Field {
        /// Path of the field.
        field: &'static str,
        /// Error.
        problem: String,
    },
}

/// Configuration of `kubeadm init`.
#[derive(Clone, Debug)]
pub(crate) struct Init {
    /// ClusterConfiguration as written, for the ConfigMap `kubeadm-config`.
    pub(crate) document: Value,
    /// Parsed form of the ClusterConfiguration.
    pub(crate) cluster: ClusterConfiguration,
    /// How the node registers.
    pub(crate) node: NodeRegistration,
    /// Port of the API server.
    pub(crate) bind_port: u16,
    /// Bootstrap tokens to create.
    pub(crate) tokens: Vec<Token>,
    /// Phases to skip, such as `addon/kube-proxy`.
    pub(crate) skip_phases: Vec<String>,
}

/// Configuration of `kubeadm join`.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    /// How the node registers.
    pub(crate) node: NodeRegistration,
    /// Host and port of the API server to join.
    pub(crate) endpoint: String,
    /// Bootstrap token that authenticates `cluster-info`.
    pub(crate) discovery_token: Token,
    /// Bootstrap token that authenticates the node.
    pub(crate) tls_token: Token,
    /// `sha256:<hex>` of accepted authorities; empty if verification is disabled.
    pub(crate) ca_hashes: Vec<String>,
    /// Port of the API server of a future control plane node.
    pub(crate) control_plane: Option<u16>,
}

/// Bootstrap token, such as `abcdef.0123456789abcdef`.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    /// Public part, which names the Secret.
    pub(crate) id: String,
    /// Secret part.
    pub(crate) secret: SecretString,
}

/// Fields of a ClusterConfiguration used by the simulation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClusterConfiguration {
    pub(crate) cluster_name: Option<String>,
    pub(crate) kubernetes_version: Option<String>,
    pub(crate) control_plane_endpoint: Option<String>,
    pub(crate) image_repository: Option<String>,
    pub(crate) networking: Networking,
    pub(crate) api_server: ApiServer,
    pub(crate) etcd: Etcd,
    pub(crate) dns: Image,
    /// As Go writes durations.
    pub(crate) certificate_validity_period: Option<String>,
}

impl ClusterConfiguration {
    /// Returns the validity of the certificates issued by kubeadm.
    ///
    /// # Errors
    /// The period is not a duration.
    pub(crate) fn certificate_validity(&self) -> Result<Duration, String> {
        let Some(text) = self.certificate_validity_period.as_deref() else {
            return Ok(pki::VALIDITY);
        };
        hours_minutes_seconds(text)
            .ok_or_else(|| format!("certificateValidityPeriod: time: invalid duration {text:?}"))
    }
}

/// Parses a duration such as `8760h0m0s`.
fn hours_minutes_seconds(text: &str) -> Option<Duration> {
    let mut seconds: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, unit) = rest.split_at(digits);
        let unit_seconds = match unit.chars().next()? {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        seconds = seconds.checked_add(number.parse::<u64>().ok()?.checked_mul(unit_seconds)?)?;
        rest = &unit[1..];
    }
    (!text.is_empty()).then_some(Duration::from_secs(seconds))
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Networking {
    pub(crate) service_subnet: Option<String>,
    pub(crate) dns_domain: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ApiServer {
    #[serde(rename = "certSANs")]
    pub(crate) cert_sans: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Etcd {
    pub(crate) local: Option<Image>,
    pub(crate) external: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Image {
    pub(crate) image_repository: Option<String>,
    pub(crate) image_tag: Option<String>,
}

/// How a node registers with the cluster.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NodeRegistration {
    pub(crate) name: Option<String>,
    pub(crate) cri_socket: Option<String>,
    /// `None`: the default of the role. An empty list: no taints.
    pub(crate) taints: Option<Vec<Taint>>,
    kubelet_extra_args: Arguments,
}

/// Taint of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Taint {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) effect: String,
}

/// Map in v1beta3, a list in v1beta4.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Arguments {
    None(()),
    Map(BTreeMap<String, String>),
    List(Vec<Argument>),
}

impl Default for Arguments {
    fn default() -> Self {
        Self::None(())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Argument {
    name: String,
    value: String,
}

impl NodeRegistration {
    /// Returns the last value of a kubelet flag, without the shell quotes that templates add (`openstack:///'<id>'`):
    /// systemd removes the quotes at the start of the kubelet.
    pub(crate) fn kubelet_argument(&self, name: &str) -> Option<String> {
        let value = match &self.kubelet_extra_args {
            Arguments::None(()) => None,
            Arguments::Map(map) => map.get(name).map(String::as_str),
            Arguments::List(list) => list
                .iter()
                .rev()
                .find(|argument| argument.name == name)
                .map(|argument| argument.value.as_str()),
        };
        value.map(|value| value.replace(['\'', '"'], ""))
    }
}

impl ClusterConfiguration {
    /// Returns host and port of the control plane endpoint.
    pub(crate) fn endpoint(&self) -> Option<(String, u16)> {
        split_endpoint(self.control_plane_endpoint.as_deref()?)
    }
}

/// Returns the first kubeadm command of the user data.
pub(crate) fn command(commands: &[Command]) -> Result<Option<Run>, Error> {
    for command in commands {
        let words: Vec<&str> = match command {
            Command::Shell(line) => shell_words(line),
            Command::Program(words) => words.iter().flat_map(|word| shell_words(word)).collect(),
        };
        let found = words.windows(2).position(|pair| {
            let program = pair
                .first()
                .map(|word| word.rsplit('/').next().unwrap_or(word));
            program == Some("kubeadm") && matches!(pair.get(1), Some(&"init" | &"join"))
        });
        let Some(at) = found else { continue };
        let arguments = words.get(at + 2..).unwrap_or_default();
        let config = config_flag(arguments);
        return match (words.get(at + 1), config) {
            (Some(&"init"), Some(path)) => Ok(Some(Run::Init(path))),
            (Some(&"init"), None) => Err(Error::NoConfig("init")),
            (_, Some(path)) => Ok(Some(Run::Join(path))),
            (_, None) => Err(Error::NoConfig("join")),
        };
    }
    Ok(None)
}

fn shell_words(line: &str) -> Vec<&str> {
    line.split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')'))
        .map(|word| word.trim_matches(['\'', '"']))
        .filter(|word| !word.is_empty())
        .collect()
}

fn config_flag(arguments: &[&str]) -> Option<String> {
    arguments.iter().enumerate().find_map(|(index, word)| {
        if *word == "--config" {
            return arguments.get(index + 1).map(|path| (*path).to_owned());
        }
        Some(
            word.strip_prefix("--config=")?
                .trim_matches(['\'', '"'])
                .to_owned(),
        )
    })
}

/// Parses the file of `kubeadm init`.
pub(crate) fn init(text: &str) -> Result<Init, Error> {
    let documents = documents(text)?;
    let cluster = documents
        .iter()
        .find(|document| document.kind == "ClusterConfiguration")
        .ok_or(Error::Missing("ClusterConfiguration"))?;
    let init = documents
        .iter()
        .find(|document| document.kind == "InitConfiguration");
    let configuration: ClusterConfiguration = cluster.read()?;
    check_version(cluster, &configuration)?;
    if let Some(endpoint) = &configuration.control_plane_endpoint
        && split_endpoint(endpoint).is_none()
    {
        return Err(Error::Field {
            field: "controlPlaneEndpoint",
            problem: format!("Invalid value: {endpoint:?}: expected host or host:port"),
        });
    }
    let written: InitDocument = init.map(Document::read).transpose()?.unwrap_or_default();
    if let Some(init) = init {
        check_arguments(init, &written.node_registration)?;
    }
    Ok(Init {
        document: cluster.value.clone(),
        cluster: configuration,
        node: written.node_registration,
        bind_port: written.local_api_endpoint.bind_port.unwrap_or(DEFAULT_PORT),
        tokens: written
            .bootstrap_tokens
            .iter()
            .filter_map(|entry| entry.token.as_ref())
            .map(|token| parse_token(token.expose_secret(), "bootstrapTokens.token"))
            .collect::<Result<_, _>>()?,
        skip_phases: written.skip_phases,
    })
}

/// Parses the file of `kubeadm join`.
pub(crate) fn join(text: &str) -> Result<Join, Error> {
    let documents = documents(text)?;
    let document = documents
        .iter()
        .find(|document| document.kind == "JoinConfiguration")
        .ok_or(Error::Missing("JoinConfiguration"))?;
    let written: JoinDocument = document.read()?;
    check_arguments(document, &written.node_registration)?;
    let field = |field, problem: &str| Error::Field {
        field,
        problem: problem.to_owned(),
    };
    let Some(bootstrap) = written.discovery.bootstrap_token else {
        return Err(match written.discovery.file {
            Some(_) => field("discovery.file", "discovery by file is not simulated"),
            None => field(
                "discovery",
                "Invalid value: \"\": bootstrapToken or file must be set",
            ),
        });
    };
    let token = bootstrap.token.unwrap_or_else(|| SecretString::from(""));
    let discovery_token = parse_token(token.expose_secret(), "discovery.bootstrapToken.token")?;
    let tls_token = match &written.discovery.tls_bootstrap_token {
        Some(token) if !token.expose_secret().is_empty() => {
            parse_token(token.expose_secret(), "discovery.tlsBootstrapToken")?
        }
        _ => discovery_token.clone(),
    };
    if bootstrap.ca_cert_hashes.is_empty() && !bootstrap.unsafe_skip_ca_verification {
        return Err(field(
            "discovery.bootstrapToken.caCertHashes",
            "Invalid value: \"\": using token-based discovery without caCertHashes can be unsafe. Set unsafeSkipCAVerification as true in your kubeadm config file to continue",
        ));
    }
    for hash in &bootstrap.ca_cert_hashes {
        let hex = hash.strip_prefix("sha256:").unwrap_or_default();
        if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Error::Field {
                field: "discovery.bootstrapToken.caCertHashes",
                problem: format!(
                    "invalid public key hash {hash:?}, expected \"sha256:\" and 64 hexadecimal digits"
                ),
            });
        }
    }
    let endpoint = bootstrap.api_server_endpoint.unwrap_or_default();
    if split_endpoint(&endpoint).is_none() {
        return Err(Error::Field {
            field: "discovery.bootstrapToken.apiServerEndpoint",
            problem: format!("Invalid value: {endpoint:?}: expected host:port"),
        });
    }
    Ok(Join {
        node: written.node_registration,
        endpoint,
        discovery_token,
        tls_token,
        ca_hashes: if bootstrap.unsafe_skip_ca_verification && bootstrap.ca_cert_hashes.is_empty() {
            Vec::new()
        } else {
            bootstrap
                .ca_cert_hashes
                .iter()
                .map(|hash| hash.to_ascii_lowercase())
                .collect()
        },
        control_plane: written
            .control_plane
            .map(|it| it.local_api_endpoint.bind_port.unwrap_or(DEFAULT_PORT)),
    })
}

/// Parses the ClusterConfiguration in `kubeadm-config`.
pub(crate) fn stored(text: &str) -> Result<ClusterConfiguration, Error> {
    documents(text)?
        .iter()
        .find(|document| document.kind == "ClusterConfiguration")
        .ok_or(Error::Missing("ClusterConfiguration"))?
        .read()
}

/// Parses the host and port in `host`, `host:port`, `address` or `[address]:port`; the port defaults to 6443.
pub(crate) fn split_endpoint(endpoint: &str) -> Option<(String, u16)> {
    let endpoint = endpoint
        .strip_prefix("https://")
        .unwrap_or(endpoint)
        .trim_end_matches('/');
    if let Some(rest) = endpoint.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        host.parse::<IpAddr>().ok()?;
        return Some((host.to_owned(), port_of(port)?));
    }
    if endpoint.parse::<IpAddr>().is_ok() {
        return Some((endpoint.to_owned(), DEFAULT_PORT));
    }
    let at = endpoint.find(':').unwrap_or(endpoint.len());
    let (host, port) = endpoint.split_at(at);
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (!host.is_empty() && host.chars().all(valid)).then_some(())?;
    Some((host.to_owned(), port_of(port)?))
}

fn port_of(text: &str) -> Option<u16> {
    if text.is_empty() {
        return Some(DEFAULT_PORT);
    }
    text.strip_prefix(':')?
        .parse()
        .ok()
        .filter(|port| *port != 0)
}

fn parse_token(token: &str, field: &'static str) -> Result<Token, Error> {
    let valid = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    match token.split_once('.') {
        Some((id, secret))
            if id.len() == 6 && secret.len() == 16 && valid(id) && valid(secret) =>
        {
            Ok(Token { id: id.to_owned(), secret: SecretString::from(secret) })
        }
        // The message must not contain the token: consoles are readable by the whole project.
        _ => Err(Error::Field {
            field,
            problem: "the bootstrap token is not of the form \"\\\\A([a-z0-9]{6})\\\\.([a-z0-9]{16})\\\\z\""
                .to_owned(),
        }),
    }
}

/// YAML document of a kubeadm file.
struct Document {
    version: String,
    kind: String,
    value: Value,
}

impl Document {
    fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(&self.value).map_err(|error| self.unfit(error.to_string()))
    }

    fn unfit(&self, problem: String) -> Error {
        Error::Kind {
            kind: format!("kubeadm.k8s.io/{}, Kind={}", self.version, self.kind),
            problem,
        }
    }
}

fn documents(text: &str) -> Result<Vec<Document>, Error> {
    // A snippet could contain tokens.
    let options = serde_saphyr::options! { with_snippet: false };
    let values: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| Error::Yaml(error.to_string()))?;
    let mut documents = Vec::new();
    for value in values {
        let part = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (part("apiVersion").to_owned(), part("kind").to_owned());
        let Some(version) = api_version.strip_prefix("kubeadm.k8s.io/") else {
            continue; // The file may also contain KubeletConfiguration and others.
        };
        let version = version.to_owned();
        let document = Document {
            version,
            kind,
            value,
        };
        if !matches!(document.version.as_str(), "v1beta3" | "v1beta4") {
            return Err(document.unfit(format!(
                "your configuration file uses an API spec that is not supported: {api_version:?}"
            )));
        }
        documents.push(document);
    }
    Ok(documents)
}

/// kubeadm before 1.31 rejects v1beta4.
fn check_version(document: &Document, cluster: &ClusterConfiguration) -> Result<(), Error> {
    let Some(version) = cluster.kubernetes_version.as_deref() else {
        return Err(Error::Field {
            field: "kubernetesVersion",
            problem: "a version is needed; the simulation does not ask the internet for the latest"
                .to_owned(),
        });
    };
    let minor = minor(version).ok_or_else(|| Error::Field {
        field: "kubernetesVersion",
        problem: format!("version {version:?} doesn't match patterns for neither semantic version nor labels (stable, latest, ...)"),
    })?;
    if document.version == "v1beta4" && minor < 31 {
        return Err(document.unfit(format!(
            "no kind \"ClusterConfiguration\" is registered for version \"kubeadm.k8s.io/v1beta4\" in kubeadm {version}"
        )));
    }
    Ok(())
}

/// Returns the minor version of a version such as `v1.34.2`.
pub(super) fn minor(version: &str) -> Option<u32> {
    let mut numbers = version.strip_prefix('v').unwrap_or(version).split('.');
    numbers.next().filter(|major| *major == "1")?;
    let minor = numbers.next()?.parse().ok()?;
    numbers
        .next()?
        .split(['-', '+'])
        .next()?
        .parse::<u32>()
        .ok()?;
    Some(minor)
}

/// Extra arguments are a map in v1beta3 and a list since v1beta4; each rejects the form of the other.
fn check_arguments(document: &Document, node: &NodeRegistration) -> Result<(), Error> {
    let problem = match (&node.kubelet_extra_args, document.version.as_str()) {
        (Arguments::List(_), "v1beta3") => {
            "json: cannot unmarshal array into Go struct field nodeRegistration.kubeletExtraArgs of type map[string]string"
        }
        (Arguments::Map(_), "v1beta4") => {
            "json: cannot unmarshal object into Go struct field nodeRegistration.kubeletExtraArgs of type []v1beta4.Arg"
        }
        _ => return Ok(()),
    };
    Err(document.unfit(problem.to_owned()))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InitDocument {
    node_registration: NodeRegistration,
    #[serde(rename = "localAPIEndpoint")]
    local_api_endpoint: LocalApiEndpoint,
    bootstrap_tokens: Vec<BootstrapTokenEntry>,
    skip_phases: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JoinDocument {
    node_registration: NodeRegistration,
    discovery: Discovery,
    control_plane: Option<JoinControlPlane>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JoinControlPlane {
    #[serde(rename = "localAPIEndpoint")]
    local_api_endpoint: LocalApiEndpoint,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LocalApiEndpoint {
    bind_port: Option<u16>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BootstrapTokenEntry {
    token: Option<SecretString>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Discovery {
    bootstrap_token: Option<BootstrapDiscovery>,
    file: Option<Value>,
    tls_bootstrap_token: Option<SecretString>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BootstrapDiscovery {
    token: Option<SecretString>,
    api_server_endpoint: Option<String>,
    ca_cert_hashes: Vec<String>,
    #[serde(rename = "unsafeSkipCAVerification")]
    unsafe_skip_ca_verification: bool,
}

#[cfg(test)]
mod tests;
