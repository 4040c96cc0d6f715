//! Policy and role mappings from ConfigMaps in kube-system, each watched by its name.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use keystone_auth::Metrics;
use keystone_auth::policy::{Mode, Policy};
use keystone_auth::reload::not_replaced;
use keystone_auth::sync::Config;
use keystone_auth::webhook::Webhook;
use kube::Client;
use operator::client::Api;
use operator::events::Recorder;
use tokio_util::sync::CancellationToken;

use super::events::{NOT_USABLE, PROGRAM, READING};
use super::{POLICY, SYNC, given};
use crate::cli::KeystoneWebhook;
use crate::commands::manager;
use crate::connect;
use crate::environment::Environment;

/// Namespace of the ConfigMaps in the Go program.
const NAMESPACE: &str = "kube-system";
/// Wait before the next request to an API server without a response.
const WAIT: Duration = Duration::from_secs(5);

/// Flags to find the API server.
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

/// Takes over the text, or returns the reason why it is unusable.
type Set = Box<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// ConfigMap, and the function for its text.
struct Source {
    name: String,
    key: &'static str,
    what: &'static str,
    apply: Set,
    /// Last version read; empty before the first.
    seen: Option<String>,
}

/// Follows the ConfigMaps of the flags. The webhook does not wait for an API server, which may wait for the webhook.
pub(super) fn follow(
    args: &KeystoneWebhook,
    environment: &Environment,
    webhook: &Arc<Webhook>,
    metrics: &Metrics,
    stop: &CancellationToken,
) {
    for source in sources(args, webhook) {
        let (connection, environment) = (Connection::new(args), environment.clone());
        let metrics = metrics.clone();
        let following = async move {
            let client = reached(&connection, &environment).await;
            watch(&client, source, &metrics).await;
        };
        let stop = stop.clone();
        tokio::spawn(async move { stop.run_until_cancelled_owned(following).await });
    }
}

/// API server, once it responds.
async fn reached(connection: &Connection, environment: &Environment) -> Client {
    let mut failure = Failure::default();
    loop {
        match connected(connection, environment).await {
            Ok(client) => return client,
            Err(error) => failure.log(operator::words::chain(&*error)),
        }
        tokio::time::sleep(WAIT).await;
    }
}

/// Reason why nothing can be read, logged once.
#[derive(Default)]
struct Failure(String);

impl Failure {
    fn log(&mut self, now: String) {
        if !now.is_empty() && now != self.0 {
            tracing::error!("ConfigMaps: {now}; what was read before stays");
        }
        self.0 = now;
    }
}

pub(super) async fn connected(
    args: &Connection,
    environment: &Environment,
) -> anyhow::Result<Client> {
    let (kubeconfig, context) = (args.kubeconfig.as_deref(), args.context.as_deref());
    let config = manager::config(kubeconfig, context, environment).await?;
    connect::connected(config, PROGRAM)
}

/// Takes over the content of the ConfigMap, at first and after each change.
async fn watch(client: &Client, mut source: Source, metrics: &Metrics) {
    let recorder = Recorder::new(client.clone(), PROGRAM);
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let mut changes = operator::watch::object(&api, &source.name);
    let mut failure = Failure::default();
    while let Some(change) = changes.next().await {
        let found = match change {
            Ok(found) => found,
            Err(error) => {
                let why = operator::words::chain(&error);
                failure.log(format!("watching {}: {why}", source.title()));
                tokio::time::sleep(WAIT).await;
                continue;
            }
        };
        let taken = source.take(found.as_ref());
        metrics.unusable(source.what, taken.is_err());
        let why = taken.err().unwrap_or_default();
        if let Some(map) = found.filter(|_| !why.is_empty()) {
            let note = not_replaced(source.what, &why);
            recorder.warning(&map, NOT_USABLE, READING, note).await;
        }
        failure.log(why);
    }
}

impl Source {
    fn title(&self) -> String {
        format!("ConfigMap {NAMESPACE}/{}", self.name)
    }

    fn take(&mut self, found: Option<&ConfigMap>) -> Result<(), String> {
        let title = self.title();
        let version = found.and_then(|it| it.metadata.resource_version.clone());
        let version = version.unwrap_or_default();
        if self.seen.as_ref() == Some(&version) {
            return Ok(());
        }
        let text = found.map(|it| it.data.as_ref().and_then(|data| data.get(self.key)));
        match text {
            // As in the Go program, its deletion is that of what it says.
            None => (self.apply)("")?,
            Some(None) => return Err(format!("{title} has no key {}", self.key)),
            Some(Some(text)) => {
                (self.apply)(text).map_err(|why| format!("{title}: {}: {why}", self.key))?
            }
        }
        match text {
            Some(_) => tracing::info!("{} has been read from {title}", self.what),
            None => tracing::warn!("{title} is not there: {} is empty", self.what),
        }
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
