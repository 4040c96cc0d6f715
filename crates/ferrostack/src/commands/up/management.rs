//! Embedded management API: storage, TLS, admission, and the built-in CustomResourceDefinitions.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use apiserver::{ApiServer, Kubelet, NotRun, Options, Reviewer, Store, Synchronous};
use installer::names::NAMESPACE;
use installer::older::Older;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ObjectMeta, Patch, PatchParams, PostParams,
};
use kube::{Client, ResourceExt};
use operator::client::Api;
use operator::metrics::Metrics;
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::kept;
use crate::commands::get::kubeconfig;
use crate::data_dir::DataDir;
use crate::pki::Authority;

/// Number of past events of each resource. The controllers are in the same process, and an informer elsewhere that
/// missed more lists anew.
const HISTORY: usize = 400;

/// Nodes of the management API.
pub(crate) enum Nodes {
    /// No nodes; the reason why a Pod does not run.
    None(Option<NotRun>),
    /// Simulated ones.
    Simulated(Arc<dyn Kubelet>),
}

/// Running management API.
pub(crate) struct Management {
    pub(crate) client: Client,
    server: ApiServer,
    serving: JoinHandle<()>,
}

impl Management {
    /// Opens the store, writes the admin kubeconfig and serves on `listener`. `/metrics` includes the [`Metrics`] of
    /// the controllers; `older` are versions served besides the current ones.
    pub(crate) async fn start(
        data: &DataDir,
        listener: TcpListener,
        metrics: &Metrics,
        nodes: Nodes,
        reviewer: Option<Arc<dyn Reviewer>>,
        older: &Older,
        shutdown: CancellationToken,
    ) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        let authority = Authority::open(data)?;
        let controllers = metrics.clone();
        let (not_run, kubelet, synchronous) = match nodes {
            Nodes::None(not_run) => (not_run, None, Synchronous::Full),
            // What is lost with the power is done again: nothing outside depends on it.
            Nodes::Simulated(kubelet) => (None, Some(kubelet), Synchronous::Normal),
        };
        let server = ApiServer::open(Options {
            store: Store::Sqlite {
                path: data.file("management.db"),
                synchronous,
            },
            hooks: Arc::new(::management::Rules),
            client_ca: Some(authority.certificate.clone()),
            not_run,
            kept: Some(kept::kept()),
            kubelet,
            reviewer,
            more_metrics: Some(Arc::new(move || controllers.prometheus_text())),
            history: HISTORY,
            ..Options::default()
        })
        .await?;
        let server_identity = authority.server(&address.ip().to_string())?;
        let tls = apiserver::server_config(
            &server_identity.certificate,
            server_identity.key.expose_secret(),
            Some(&authority.certificate),
        )?;
        let client = Client::new(server.in_process(), "default");
        let client = operator::client::named(&client, "ferrostack");
        install_definitions(&client, older).await?;
        install_inventory(&client).await?;
        write_kubeconfig(data, &authority, address)?;
        let serving = tokio::spawn({
            let server = server.clone();
            async move { server.serve(listener, tls, shutdown).await }
        });
        Ok(Self {
            client,
            server,
            serving,
        })
    }

    /// Problem of the latest write, if failed.
    pub(super) fn write_problem(&self) -> Option<String> {
        self.server.write_problem()
    }

    /// Waits for the end of all tasks after the shutdown given to [`start`](Self::start), with all data on disk.
    pub(crate) async fn stopped(self) {
        let _ = self.serving.await;
        drop(self.client);
        self.server.close().await;
    }
}

/// Reason why a Pod or workload on the management API is not run.
pub(super) fn not_run(object: &Value) -> Option<String> {
    let what = match object["kind"].as_str()? {
        "Pod" => "this Pod stays Pending".to_owned(),
        kind => format!("no Pods are created for this {kind}"),
    };
    Some(format!(
        "the management API of `ferrostack up` has no nodes: {what}. `ferrostack get kubeconfig NAME` prints the \
         kubeconfig of a workload cluster"
    ))
}

fn write_kubeconfig(
    data: &DataDir,
    authority: &Authority,
    address: SocketAddr,
) -> anyhow::Result<()> {
    let admin = authority.admin()?;
    let server = format!("https://{address}");
    let text = kubeconfig::admin(
        &server,
        &authority.certificate,
        &admin.certificate,
        admin.key.expose_secret(),
    );
    Ok(data.write("kubeconfig", &text)?)
}

/// Creates or updates the inventory of providers in this management cluster, for `clusterctl`.
async fn install_inventory(client: &Client) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    if namespaces.get_opt(NAMESPACE).await?.is_none() {
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let created = namespaces.create(&PostParams::default(), &namespace).await;
        created.with_context(|| format!("creating the namespace {NAMESPACE}"))?;
    }
    for provider in ::api::inventory::providers(NAMESPACE) {
        let object: DynamicObject = serde_json::from_value(provider)?;
        let Some(types) = &object.types else { continue };
        let kind = GroupVersionKind::try_from(types)?;
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
        let name = object.name_any();
        let params = PatchParams::apply("ferrostack").force();
        let applied = api.patch(&name, &params, &Patch::Apply(&object)).await;
        applied.with_context(|| format!("writing the Provider {name}"))?;
    }
    Ok(())
}

/// Installs or updates the built-in CustomResourceDefinitions, with [`Older`] versions if requested.
pub(crate) async fn install_definitions(client: &Client, older: &Older) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut definitions = ::management::definitions();
    older.add(&mut definitions);
    for mut definition in definitions {
        let name = definition.metadata.name.clone().unwrap_or_default();
        let stored = api.get_opt(&name).await?;
        let installed = match stored {
            None => api.create(&PostParams::default(), &definition).await,
            Some(stored) => {
                definition.metadata.resource_version = stored.metadata.resource_version;
                api.replace(&name, &PostParams::default(), &definition)
                    .await
            }
        };
        installed.with_context(|| format!("installing the kind {name}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
