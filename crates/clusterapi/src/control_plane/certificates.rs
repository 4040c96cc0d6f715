//! Expiry of the certificates of the API servers.
//!
//! kubeadm issues the certificates on the machines, for a year unless configured otherwise. The management cluster
//! has no copy, so each API server is asked for its certificate once, through its forwarded port, after its machine
//! has a Node. As upstream, an annotation of the machine's KubeadmConfig records the expiry. The Machine controller
//! copies the annotation to `status.certificatesExpiryDate`, the input of `rollout.before`.

mod handshake;

use std::collections::BTreeMap;
use std::time::Duration;

use api::bootstrap::v1beta2::{KubeadmConfig, LocalApiEndpoint};
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::Pod;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::api::{Patch, PatchParams};
use api::kube::{Client, ResourceExt};
use api::names::CERTIFICATES_EXPIRY_ANNOTATION;
use operator::client::Api;
use serde_json::json;
use tokio::time::Instant;
use tracing::debug;

use super::health::{self, Component};
use super::observe::{Observation, Reached};
use super::{ControlPlaneError, Scope, Subject, error};

/// Interval after which a silent API server is asked again. Nothing waits for the answer.
pub(super) const AGAIN: Duration = Duration::from_secs(30);

/// Timeout of the request to one API server.
const LIMIT: Duration = Duration::from_secs(5);

/// Default port of an API server.
const PORT: u16 = 6443;

/// API server without a recorded expiry of its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    /// Name of the Node.
    node: String,
    /// Port of the API server.
    port: u16,
    /// Name and UID of the KubeadmConfig.
    config: (String, String),
}

impl Unread {
    /// Name of the static Pod.
    fn pod(&self) -> String {
        format!("{}-{}", Component::ApiServer.name(), self.node)
    }

    /// True if the Pod is ready, according to the watch.
    fn is_ready(&self, workload: &Reached) -> bool {
        let name = self.pod();
        let mut pods = workload.pods.iter();
        pods.any(|pod| pod.name_any() == name && health::is_ready(pod))
    }
}

/// Times of the last requests to API servers, by the UID of the KubeadmConfig.
pub(super) type Asked = BTreeMap<String, Instant>;

/// API server of `machine`, unless the expiry is recorded, or there is no place to record it.
pub(super) fn unread(machine: &Machine, config: Option<&KubeadmConfig>) -> Option<Unread> {
    let config = config.filter(|config| config.metadata.deletion_timestamp.is_none())?;
    if machine.is_deleting()
        || config
            .annotations()
            .contains_key(CERTIFICATES_EXPIRY_ANNOTATION)
    {
        return None;
    }
    Some(Unread {
        node: machine.node_name()?.to_owned(),
        port: port(config),
        config: (config.name_any(), config.uid()?),
    })
}

/// Reads and records missing expiries. A silent API server is asked again later.
pub(super) async fn record(
    scope: &Scope,
    subject: &Subject,
    seen: &Observation,
) -> Result<(), ControlPlaneError> {
    let Some(workload) = &seen.workload else {
        return Ok(());
    };
    let unread = seen.machines.iter().filter_map(|seen| seen.unread.as_ref());
    let unread: Vec<_> = unread.filter(|it| it.is_ready(workload)).collect();
    let due = due(scope, subject, unread);
    let asked = due.into_iter().map(|it| async move {
        let answer = tokio::time::timeout(LIMIT, ask(&workload.client, it)).await;
        let silent = || Err(format!("no answer within {} s", LIMIT.as_secs()));
        (it, answer.unwrap_or_else(|_| silent()))
    });
    for (it, answer) in futures::future::join_all(asked).await {
        match answer {
            Ok(expiry) => annotate(scope, subject, it, expiry).await?,
            Err(why) => debug!(
                pod = it.pod(),
                "the expiry of its certificate cannot be read: {why}"
            ),
        }
    }
    Ok(())
}

/// API servers without a recent request: the watch may not have seen the annotation yet, or there was no answer.
fn due<'a>(scope: &Scope, subject: &Subject, unread: Vec<&'a Unread>) -> Vec<&'a Unread> {
    if unread.is_empty() {
        return unread;
    }
    let now = Instant::now();
    let mut asked: Asked = scope.certificates.get(&subject.plane).unwrap_or_default();
    asked.retain(|_, at| now.duration_since(*at) < AGAIN);
    let mut due = unread;
    due.retain(|it| asked.insert(it.config.1.clone(), now).is_none());
    scope.certificates.insert(&subject.plane, asked);
    due
}

/// End of the validity of the certificate that an API server presents.
async fn ask(client: &Client, of: &Unread) -> Result<Timestamp, String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    let forwarding = pods.portforward(&of.pod(), &[of.port]).await;
    let mut forwarder = forwarding.map_err(|source| operator::words::chain(&source))?;
    let stream = forwarder.take_stream(of.port);
    let expiry = match stream {
        Some(stream) => handshake::expiry(stream).await,
        None => Err("the port has no stream".to_owned()),
    };
    forwarder.abort();
    expiry
}

async fn annotate(
    scope: &Scope,
    subject: &Subject,
    of: &Unread,
    expiry: Timestamp,
) -> Result<(), ControlPlaneError> {
    let configs: Api<KubeadmConfig> = scope.context.api(&subject.key.namespace);
    let (name, uid) = &of.config;
    // The UID is a precondition: another object of this name has another machine.
    let annotations = json!({CERTIFICATES_EXPIRY_ANNOTATION: expiry.to_string()});
    let patch = Patch::Merge(json!({"metadata": {"uid": uid, "annotations": annotations}}));
    match configs
        .patch_metadata(name, &PatchParams::default(), &patch)
        .await
    {
        Ok(_) => Ok(()),
        Err(source) if crate::error::is_absent(&source) => Ok(()),
        Err(source) => Err(error::doing(format!("annotating KubeadmConfig {name}"))(
            source,
        )),
    }
}

/// Port of the API server in `config`.
fn port(config: &KubeadmConfig) -> u16 {
    let spec = &config.spec;
    let of_init = spec
        .init_configuration
        .as_ref()
        .and_then(|init| init.local_api_endpoint.as_ref());
    let of_join = spec
        .join_configuration
        .as_ref()
        .and_then(|join| join.control_plane.as_ref()?.local_api_endpoint.as_ref());
    let bind = |endpoint: &LocalApiEndpoint| endpoint.bind_port;
    let named = of_join.or(of_init).and_then(bind);
    let named = named.and_then(|port| u16::try_from(port).ok());
    named.filter(|port| *port != 0).unwrap_or(PORT)
}

#[cfg(test)]
mod tests;
