//! Kubeconfigs: the one of the management API, and those of workload clusters.

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use serde_json::json;

use crate::cli::ConnectArgs;
use crate::connect;
use crate::environment::Environment;

/// The admin kubeconfig of the workload cluster `name`, from its Secret `<name>-kubeconfig`.
pub(crate) async fn of_workload(
    name: &str,
    args: &ConnectArgs,
    environment: &Environment,
) -> anyhow::Result<String> {
    let client = connect::client(args, environment).await?;
    let secrets: Api<Secret> = Api::namespaced(client, &args.namespace);
    let Some(secret) = secrets.get_opt(&format!("{name}-kubeconfig")).await? else {
        bail!(
            "cluster `{name}` in namespace {} has no kubeconfig yet; `ferrostack describe cluster {name}` shows what it waits for",
            args.namespace
        );
    };
    let value = secret.data.unwrap_or_default().remove("value");
    let value = value.with_context(|| format!("Secret {name}-kubeconfig has no key `value`"))?;
    String::from_utf8(value.0).with_context(|| format!("Secret {name}-kubeconfig is not text"))
}

/// A kubeconfig with one cluster, one user and one context. PEM texts are embedded.
pub(crate) fn admin(server: &str, ca: &str, certificate: &str, key: &str) -> String {
    let base64 = |text: &str| STANDARD.encode(text);
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "ferrostack", "cluster": {
            "server": server,
            "certificate-authority-data": base64(ca),
        }}],
        "users": [{"name": "ferrostack-admin", "user": {
            "client-certificate-data": base64(certificate),
            "client-key-data": base64(key),
        }}],
        "contexts": [{"name": "ferrostack", "context": {
            "cluster": "ferrostack",
            "user": "ferrostack-admin",
        }}],
        "current-context": "ferrostack",
    });
    // YAML is a superset of JSON, and kubectl reads both.
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}
