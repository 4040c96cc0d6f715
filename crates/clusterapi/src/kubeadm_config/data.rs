//! Bootstrap data: the content of the document, and its Secret.

use std::collections::BTreeMap;

use api::bootstrap::v1beta2::{
    ContentFormat, Discovery, ExternalEtcd, Format, JoinControlPlane, KubeadmConfig, SecretKey,
};
use api::core::v1beta2::Cluster;
use api::infra::USER_DATA_LIMIT;
use api::k8s_openapi::ByteString;
use api::k8s_openapi::api::core::v1::{Secret, Taint};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use api::kube::{Resource, ResourceExt};
use api::names;
use api::version::Version;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use operator::client::Api;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use topology::template::{Template, TemplateError};
use zeroize::Zeroizing;

use super::{BootstrapError, Subject};
use crate::cloudinit::{self, Command, Document, File, User, yaml};
use crate::ignition;
use crate::kubeadm::{self, ApiVersion, ClusterFacts};
use crate::pki::store::{Certificates, Recipe};
use crate::pki::{CA_DAYS, Purpose};

/// Taint against Pods on a new worker, until the labels of its Machine are set on the Node.
const UNINITIALIZED: &str = "node.cluster.x-k8s.io/uninitialized";

/// Differences between the first machine and the others.
pub(super) struct Parts {
    pub(super) command: Command,
    pub(super) certificates: Vec<File>,
    pub(super) kubeadm: SecretString,
}

impl Parts {
    /// Parts for the first machine.
    pub(super) fn init(
        subject: &Subject,
        certificates: &Certificates,
        kubeadm: SecretString,
    ) -> Self {
        let certificates = certificate_files(&subject.config, certificates);
        Self {
            command: Command::Init,
            certificates,
            kubeadm,
        }
    }

    /// Parts for any other machine: certificates are only for control plane machines.
    pub(super) fn join(
        subject: &Subject,
        certificates: &Certificates,
        kubeadm: SecretString,
        control_plane: bool,
    ) -> Self {
        let files = if control_plane {
            certificate_files(&subject.config, certificates)
        } else {
            Vec::new()
        };
        Self {
            command: Command::Join,
            certificates: files,
            kubeadm,
        }
    }
}

/// Name of the data Secret of a KubeadmConfig.
pub(super) fn secret_name(config: &str) -> String {
    config.to_owned()
}

/// Required key material for the data.
pub(super) fn needed(subject: &Subject) -> Vec<Purpose> {
    match (
        subject.machine.is_control_plane(),
        external_etcd(&subject.config).is_some(),
    ) {
        (true, false) => Purpose::ALL.to_vec(),
        (true, true) => {
            vec![
                Purpose::Cluster,
                Purpose::FrontProxy,
                Purpose::ServiceAccount,
            ]
        }
        (false, _) => vec![Purpose::Cluster],
    }
}

/// Parameters for certificates of a cluster without a control plane object.
pub(super) fn certificate_recipe(subject: &Subject) -> Result<Recipe, BootstrapError> {
    let config = subject
        .config
        .spec
        .cluster_configuration
        .clone()
        .unwrap_or_default();
    let external = external_etcd(&subject.config).is_some();
    Ok(Recipe {
        owner: owner(&subject.config),
        algorithm: config.encryption_algorithm,
        validity_days: config
            .ca_certificate_validity_period_days
            .unwrap_or(CA_DAYS),
        except: if external {
            vec![Purpose::Etcd]
        } else {
            Vec::new()
        },
    })
}

/// ClusterConfiguration and InitConfiguration, in one file.
pub(super) fn init_documents(subject: &Subject) -> Result<SecretString, BootstrapError> {
    let (version, api) = versions(subject)?;
    let spec = &subject.config.spec;
    let cluster = spec.cluster_configuration.clone().unwrap_or_default();
    let cluster = kubeadm::with_local_mode(cluster, &version);
    let mut init = spec.init_configuration.clone().unwrap_or_default();
    init.local_api_endpoint = with_port(init.local_api_endpoint, &subject.cluster);
    let facts = facts(subject);
    let cluster = kubeadm::cluster_document(&cluster, &facts, init.timeouts.as_ref(), api);
    let init = Zeroizing::new(kubeadm::init_document(&init, api));
    Ok(SecretString::from(format!(
        "---\n{cluster}\n---\n{}",
        init.as_str()
    )))
}

/// The JoinConfiguration.
pub(super) fn join_document(
    subject: &Subject,
    discovery: &Discovery,
    control_plane: bool,
) -> Result<SecretString, BootstrapError> {
    let (_, api) = versions(subject)?;
    let mut join = subject
        .config
        .spec
        .join_configuration
        .clone()
        .unwrap_or_default();
    join.discovery = Some(discovery.clone());
    if control_plane {
        let plane = join
            .control_plane
            .get_or_insert_with(JoinControlPlane::default);
        plane.local_api_endpoint = with_port(plane.local_api_endpoint.take(), &subject.cluster);
    } else {
        join.control_plane = None;
        let registration = join.node_registration.get_or_insert_default();
        let taints = registration.taints.get_or_insert_default();
        if !taints.iter().any(|taint| taint.key == UNINITIALIZED) {
            taints.push(Taint {
                key: UNINITIALIZED.to_owned(),
                effect: "NoSchedule".to_owned(),
                ..Taint::default()
            });
        }
    }
    Ok(SecretString::from(kubeadm::join_document(&join, api)))
}

/// Kubeconfig [`File`] for file discovery; `None` if the spec has no content for the file.
pub(super) fn discovery_file(discovery: &Discovery) -> Result<Option<File>, BootstrapError> {
    let Some(file) = &discovery.file else {
        return Ok(None);
    };
    let Some(content) = &file.kube_config else {
        return Ok(None);
    };
    let cluster = serde_json::to_value(&content.cluster).unwrap_or_default();
    let user = serde_json::to_value(&content.user).unwrap_or_default();
    let renamed = |name: &str| cluster.get(name).cloned();
    let mut entry = serde_json::Map::new();
    for (from, to) in [
        ("server", "server"),
        ("tlsServerName", "tls-server-name"),
        ("insecureSkipTLSVerify", "insecure-skip-tls-verify"),
        ("certificateAuthorityData", "certificate-authority-data"),
        ("proxyURL", "proxy-url"),
    ] {
        entry.extend(renamed(from).map(|value| (to.to_owned(), value)));
    }
    let mut account = serde_json::Map::new();
    account.extend(
        user.get("exec")
            .cloned()
            .map(|exec| ("exec".to_owned(), exec)),
    );
    let provider = user.get("authProvider").cloned();
    account.extend(provider.map(|provider| ("auth-provider".to_owned(), provider)));
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": entry}],
        "users": [{"name": "default", "user": account}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
    });
    let content = SecretString::from(yaml::document(&document));
    Ok(Some(File::of_root(
        file.kube_config_path.clone(),
        "0640",
        content,
    )))
}

/// Complete document, or an error if too large.
pub(super) async fn document(
    secrets: &Api<Secret>,
    subject: &Subject,
    parts: Parts,
    values: &Value,
) -> Result<SecretString, BootstrapError> {
    let spec = &subject.config.spec;
    let document = Document {
        command: parts.command,
        certificates: parts.certificates,
        files: files(secrets, &subject.config, values).await?,
        kubeadm: parts.kubeadm,
        boot_commands: spec.boot_commands.clone(),
        pre_commands: spec.pre_kubeadm_commands.clone(),
        post_commands: spec.post_kubeadm_commands.clone(),
        verbosity: spec.verbosity,
        users: users(secrets, &subject.config).await?,
        ntp: spec.ntp.clone(),
        disks: spec.disk_setup.clone(),
        mounts: spec.mounts.clone(),
    };
    let more = spec.ignition.as_ref();
    let more = more.and_then(|it| it.container_linux_config.as_ref());
    let rendered = match spec.format.unwrap_or_default() {
        Format::CloudConfig => cloudinit::render(&document),
        Format::Ignition => ignition::render(&document, more)?,
    };
    let size = rendered.expose_secret().len();
    // The limits of other infrastructures are not known.
    let limited = subject.machine.spec.infrastructure_ref.kind == "OpenStackMachine";
    if limited && size > USER_DATA_LIMIT {
        Err(BootstrapError::TooLarge { size })
    } else {
        Ok(rendered)
    }
}

/// Creates the [`Secret`], or updates its content; an update has no effect after the creation of the server.
pub(super) async fn store(
    secrets: &Api<Secret>,
    subject: &Subject,
    document: &SecretString,
) -> Result<(), BootstrapError> {
    let name = secret_name(&subject.config.name_any());
    let format = subject.config.spec.format.unwrap_or_default();
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(BTreeMap::from([(
                names::CLUSTER_NAME_LABEL.to_owned(),
                subject.key.name.clone(),
            )])),
            owner_references: Some(vec![owner(&subject.config)]),
            ..ObjectMeta::default()
        },
        type_: Some(names::SECRET_TYPE.to_owned()),
        data: Some(BTreeMap::from([
            ("value".to_owned(), bytes(document.expose_secret())),
            ("format".to_owned(), bytes(format.as_str())),
        ])),
        ..Secret::default()
    };
    let write = || BootstrapError::api(format!("writing secret {name}"));
    match secrets.create(&PostParams::default(), &secret).await {
        Ok(_) => return Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(source) => return Err(write()(source)),
    }
    let known = secrets.get(&name).await.map_err(write())?;
    let ours = subject.config.uid();
    if !known
        .owner_references()
        .iter()
        .any(|owner| Some(&owner.uid) == ours.as_ref())
    {
        return Err(BootstrapError::Taken { name });
    }
    if known.data == secret.data {
        return Ok(());
    }
    let patch = json!({
        "metadata": {"resourceVersion": known.resource_version()},
        "data": {
            "value": STANDARD.encode(document.expose_secret()),
            "format": STANDARD.encode(format.as_str()),
        },
    });
    let patched = secrets
        .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    patched.map(|_| ()).map_err(write())
}

fn certificate_files(config: &KubeadmConfig, certificates: &Certificates) -> Vec<File> {
    let external = external_etcd(config);
    let mut files = Vec::new();
    for (purpose, material) in certificates.iter() {
        let (certificate, key) = match (purpose, external) {
            (Purpose::Etcd, Some(etcd)) => (etcd.ca_file.clone(), None),
            (Purpose::EtcdClient, Some(etcd)) => {
                (etcd.cert_file.clone(), Some(etcd.key_file.clone()))
            }
            _ => {
                let (certificate, key) = purpose.files();
                let path = |name: &str| format!("/etc/kubernetes/pki/{name}");
                (path(certificate), Some(path(key)))
            }
        };
        let content = SecretString::from(material.public.as_ref());
        files.push(File::of_root(certificate, "0640", content));
        let key = key.zip(material.private.clone());
        files.extend(key.map(|(path, content)| File::of_root(path, "0600", content)));
    }
    files
}

/// True if a file is a template, and so needs values.
pub(super) fn has_templates(config: &KubeadmConfig) -> bool {
    let mut files = config.spec.files.iter();
    files.any(|file| file.content_format == Some(ContentFormat::Template))
}

/// Values of templates: the version of the control plane, if any (API reference of `contentFormat`).
pub(super) fn values(control_plane: Option<&DynamicObject>) -> Value {
    let version = control_plane.and_then(|it| it.data["spec"]["version"].as_str());
    match version {
        Some(version) => json!({"controlPlane": {"version": version}}),
        None => json!({}),
    }
}

/// Rendered content of a file in the format of a Go template.
fn rendered(content: &SecretString, values: &Value) -> Result<SecretString, TemplateError> {
    let template = Template::parse(content.expose_secret())?;
    let text = template.render(&topology::template::Value::from(values))?;
    Ok(SecretString::from(text))
}

async fn files(
    secrets: &Api<Secret>,
    config: &KubeadmConfig,
    values: &Value,
) -> Result<Vec<File>, BootstrapError> {
    let mut files = Vec::new();
    for (at, file) in config.spec.files.iter().enumerate() {
        let content = match &file.content_from {
            Some(source) => {
                let field = format!("spec.files[{at}].contentFrom.secret");
                fetch(secrets, &source.secret, field).await?
            }
            None => SecretString::from(file.content.clone().unwrap_or_default()),
        };
        let content = match file.content_format {
            Some(ContentFormat::Template) => {
                rendered(&content, values).map_err(|source| BootstrapError::Template {
                    field: format!("spec.files[{at}]"),
                    path: file.path.clone(),
                    source,
                })?
            }
            Some(ContentFormat::Raw) | None => content,
        };
        files.push(File {
            path: file.path.clone(),
            owner: file.owner.clone(),
            permissions: file.permissions.clone(),
            encoding: file.encoding,
            append: file.append == Some(true),
            content,
        });
    }
    Ok(files)
}

async fn users(secrets: &Api<Secret>, config: &KubeadmConfig) -> Result<Vec<User>, BootstrapError> {
    let mut users = Vec::new();
    for (at, user) in config.spec.users.iter().enumerate() {
        let passwd = match &user.passwd_from {
            Some(source) => {
                let field = format!("spec.users[{at}].passwdFrom.secret");
                Some(fetch(secrets, &source.secret, field).await?)
            }
            None => user.passwd.clone().map(SecretString::from),
        };
        users.push(User {
            spec: user.clone(),
            passwd,
        });
    }
    Ok(users)
}

async fn fetch(
    secrets: &Api<Secret>,
    from: &SecretKey,
    field: String,
) -> Result<SecretString, BootstrapError> {
    let SecretKey { name, key } = from.clone();
    let secret = secrets.get_opt(&name).await;
    let secret = secret.map_err(BootstrapError::api(format!("reading secret {name}")))?;
    let bytes = secret.and_then(|secret| secret.data.and_then(|mut data| data.remove(&key)));
    let Some(bytes) = bytes else {
        return Err(BootstrapError::MissingSecret { field, name, key });
    };
    let text = String::from_utf8(bytes.0);
    let text = text.map_err(|_| BootstrapError::NotText { field, name, key })?;
    Ok(SecretString::from(text))
}

fn versions(subject: &Subject) -> Result<(Version, ApiVersion), BootstrapError> {
    let text = subject
        .machine
        .spec
        .version
        .as_deref()
        .ok_or(BootstrapError::NoVersion)?;
    let version: Version = text.parse()?;
    let api = ApiVersion::from_version(&version)?;
    Ok((version, api))
}

fn facts(subject: &Subject) -> ClusterFacts {
    let version = subject.machine.spec.version.as_deref().unwrap_or_default();
    kubeadm::facts_of(&subject.cluster, version)
}

/// Endpoint with the port of the API server, if specified by the [`Cluster`] and not by the config.
fn with_port(
    endpoint: Option<api::bootstrap::v1beta2::LocalApiEndpoint>,
    cluster: &Cluster,
) -> Option<api::bootstrap::v1beta2::LocalApiEndpoint> {
    let port = cluster
        .spec
        .cluster_network
        .as_ref()
        .and_then(|network| network.api_server_port);
    let Some(port) = port else { return endpoint };
    let mut endpoint = endpoint.unwrap_or_default();
    endpoint.bind_port.get_or_insert(port);
    Some(endpoint)
}

pub(super) fn external_etcd(config: &KubeadmConfig) -> Option<&ExternalEtcd> {
    let cluster = config.spec.cluster_configuration.as_ref()?;
    cluster.etcd.as_ref()?.external.as_ref()
}

/// Controlling reference to a [`KubeadmConfig`].
fn owner(config: &KubeadmConfig) -> OwnerReference {
    config.controller_owner_ref(&()).unwrap_or_default()
}
