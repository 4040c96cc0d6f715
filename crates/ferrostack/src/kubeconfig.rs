//! Kubeconfigs: the one of the management API, and those of workload clusters.

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject};
use serde_json::json;

use crate::cli::ConnectArgs;
use crate::connect;
use crate::describe;
use crate::environment::Environment;
use crate::snapshot::Kind;

/// The admin kubeconfig of the workload cluster `name`, from its Secret `<name>-kubeconfig`.
pub(crate) async fn of_workload(
    name: &str,
    args: &ConnectArgs,
    environment: &Environment,
) -> anyhow::Result<String> {
    let management = connect::management(args, environment).await?;
    let client = management.client.clone();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &args.namespace);
    let Some(secret) = secrets.get_opt(&format!("{name}-kubeconfig")).await? else {
        let clusters: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &args.namespace, &Kind::Cluster.resource());
        if clusters.get_opt(name).await?.is_none() {
            bail!(
                "{}",
                describe::missing(&client, name, &args.namespace).await?
            );
        }
        bail!(
            "cluster `{name}` in namespace {ns} has no kubeconfig yet. What it waits for: {} describe cluster {name} -n {ns}{}",
            environment.program,
            management.flags(),
            ns = args.namespace,
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
