//! Policy and role mappings from ConfigMaps in kube-system, read by their names every few seconds.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use keystone_auth::Metrics;
use keystone_auth::policy::{Mode, Policy};
use keystone_auth::sync::Config;
use keystone_auth::webhook::Webhook;
use kube::Client;
use operator::client::Api;
use tokio_util::sync::CancellationToken;

use super::{POLICY, SYNC, given};
use crate::cli::KeystoneWebhook;
use crate::connect;
use crate::environment::Environment;
use crate::manager;

/// Where the Go program looks.
const NAMESPACE: &str = "kube-system";
/// How often they are read.
const INTERVAL: Duration = Duration::from_secs(5);

/// How the API server is found.
pub(super) struct Connection {
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
}

impl Connection {
    pub(super) fn new(args: &KeystoneWebhook) -> Self {
        Self {
            kubeconfig: given(args.kubeconfig.as_deref()).map(Into::into),
            context: args.context.clone(),
        }
    }
}

/// Takes the text, or says why it cannot be used.
type Set = Box<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// A ConfigMap, and what is done with its text.
struct Source {
    name: String,
    key: &'static str,
    what: &'static str,
    apply: Set,
    /// The version that was read last; empty if there was none.
    seen: Option<String>,
}

/// Follows the ConfigMaps that the flags name. The webhook does not wait for an API server, which may wait for it.
pub(super) fn follow(
    args: &KeystoneWebhook,
    environment: &Environment,
    webhook: &Arc<Webhook>,
    metrics: &Metrics,
    stop: &CancellationToken,
) {
    let mut sources = sources(args, webhook);
    if sources.is_empty() {
        return;
    }
    let (connection, environment) = (Connection::new(args), environment.clone());
    let (metrics, stop) = (metrics.clone(), stop.clone());
    let following = async move {
        let mut client = None;
        let mut failure = String::new();
        loop {
            let result = match &client {
                None => match connected(&connection, &environment).await {
                    Ok(new) => {
                        client = Some(new);
                        continue;
                    }
                    Err(error) => Err(operator::words::chain(&*error)),
                },
                Some(client) => read_all(client, &mut sources, &metrics).await,
            };
            let now = result.err().unwrap_or_default();
            if !now.is_empty() && now != failure {
                tracing::error!("ConfigMaps: {now}; what was read before stays");
            }
            failure = now;
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::spawn(async move { stop.run_until_cancelled_owned(following).await });
}

pub(super) async fn connected(
    args: &Connection,
    environment: &Environment,
) -> anyhow::Result<Client> {
    let (kubeconfig, context) = (args.kubeconfig.as_deref(), args.context.as_deref());
    let config = manager::config(kubeconfig, context, environment).await?;
    connect::connected(config, "ferrostack-keystone-auth")
}

async fn read_all(
    client: &Client,
    sources: &mut [Source],
    metrics: &Metrics,
) -> Result<(), String> {
    let mut failures = Vec::new();
    for source in sources {
        let result = source.read(client).await;
        metrics.unusable(source.what, result.is_err());
        failures.extend(result.err());
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("; ")),
    }
}

impl Source {
    async fn read(&mut self, client: &Client) -> Result<(), String> {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let title = format!("ConfigMap {NAMESPACE}/{}", self.name);
        let found = api.get_opt(&self.name).await;
        let found = found
            .map_err(|error| format!("reading {title}: {}", operator::words::chain(&error)))?;
        let version = found
            .as_ref()
            .and_then(|it| it.metadata.resource_version.clone());
        let version = version.unwrap_or_default();
        if self.seen.as_ref() == Some(&version) {
            return Ok(());
        }
        let data = found.and_then(|it| it.data.map(|mut data| data.remove(self.key)));
        match data {
            // As in the Go program, its deletion is that of what it says.
            None if version.is_empty() => (self.apply)("")?,
            None | Some(None) => return Err(format!("{title} has no key {}", self.key)),
            Some(Some(text)) => {
                (self.apply)(&text).map_err(|why| format!("{title}: {}: {why}", self.key))?
            }
        }
        tracing::info!("{} has been read from {title}", self.what);
        self.seen = Some(version);
        Ok(())
    }
}

fn sources(args: &KeystoneWebhook, webhook: &Arc<Webhook>) -> Vec<Source> {
    let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    let mut sources = Vec::new();
    let policy = named(&args.policy_configmap_name);
    if let Some(name) = policy.filter(|_| given(args.keystone_policy_file.as_deref()).is_none()) {
        let (webhook, mode) = (Arc::clone(webhook), Mode::from(args.policy_mode));
        sources.push(Source {
            name,
            key: "policies",
            what: POLICY,
            apply: Box::new(move |text| set_policy(&webhook, text, mode)),
            seen: None,
        });
    }
    let sync = named(&args.sync_configmap_name);
    if let Some(name) = sync.filter(|_| given(args.sync_config_file.as_deref()).is_none()) {
        let webhook = Arc::clone(webhook);
        sources.push(Source {
            name,
            key: "syncConfig",
            what: SYNC,
            apply: Box::new(move |text| {
                webhook.set_sync(Config::parse(text).map_err(|error| error.to_string())?);
                Ok(())
            }),
            seen: None,
        });
    }
    sources
}

fn set_policy(webhook: &Webhook, text: &str, mode: Mode) -> Result<(), String> {
    if text.is_empty() {
        webhook.set_policy(Policy::default());
        return Ok(());
    }
    let compiled = Policy::compile(text, mode).map_err(|error| error.to_string())?;
    for doubt in &compiled.doubts {
        tracing::warn!("{POLICY}: {doubt}");
    }
    webhook.set_policy(compiled.policy);
    Ok(())
}

#[cfg(test)]
mod tests;
