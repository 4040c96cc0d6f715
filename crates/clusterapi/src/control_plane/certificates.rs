//! The expiry of the certificates of the API servers.
//!
//! kubeadm issues them on the machines, for a year unless the configuration says otherwise. They are not in the
//! management cluster, so each API server is asked for its certificate once, through its forwarded port, when its machine
//! has a Node. The expiry is recorded in an annotation of the machine's KubeadmConfig, as upstream does. The Machine
//! controller copies it to `status.certificatesExpiryDate`, by which `rollout.before` decides.

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

/// The interval after which an API server that did not answer is asked again. Nothing waits for its answer.
pub(super) const AGAIN: Duration = Duration::from_secs(30);

/// The timeout of one API server.
const LIMIT: Duration = Duration::from_secs(5);

/// The port of an API server whose configuration names none.
const PORT: u16 = 6443;

/// An API server whose certificate's expiry is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    /// Its Node.
    node: String,
    /// Its port.
    port: u16,
    /// Name and UID of its KubeadmConfig.
    config: (String, String),
}

impl Unread {
    /// The name of the static Pod.
    fn pod(&self) -> String {
        format!("{}-{}", Component::ApiServer.name(), self.node)
    }

    /// True if the Pod is ready, as far as the watch has seen.
    fn is_ready(&self, workload: &Reached) -> bool {
        let name = self.pod();
        let mut pods = workload.pods.iter();
        pods.any(|pod| pod.name_any() == name && health::is_ready(pod))
    }
}

/// When API servers were last asked, by the UID of the KubeadmConfig.
pub(super) type Asked = BTreeMap<String, Instant>;

/// The API server of `machine`, unless its expiry is recorded, or there is nowhere to record it.
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

/// Reads and records what is not recorded. An API server that does not answer is asked again later.
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

/// The API servers that were not asked a moment ago: the watch may not have seen the annotation yet, or there was no
/// answer.
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

/// The end of the validity of the certificate that an API server presents.
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

/// The port of the API server that `config` configures.
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
