//! Kubeconfigs of the management API and of workload clusters.

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DynamicObject;
use operator::client::Api;
use serde_json::{Value, json};
use status::clusters;
use status::snapshot::Kind;

use crate::cli::GetKubeconfig;
use crate::connect;
use crate::data_dir::write_private;
use crate::environment::Environment;

/// The administrator's kubeconfig of a workload cluster.
pub(crate) struct OfWorkload {
    /// The name of the cluster.
    cluster: String,
    /// The kubeconfig in YAML.
    pub(crate) text: String,
}

/// The kubeconfig of a workload cluster, read from its Secret `<name>-kubeconfig`.
pub(crate) async fn of_workload(
    args: &GetKubeconfig,
    environment: &Environment,
) -> anyhow::Result<OfWorkload> {
    let (name, args) = (&args.name, &args.connect);
    let management = connect::management(&args.server, environment).await?;
    let client = management.client.clone();
    let name = match name {
        Some(name) => name.clone(),
        None => clusters::only_name(&client, &args.namespace).await?,
    };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &args.namespace);
    let Some(secret) = secrets.get_opt(&format!("{name}-kubeconfig")).await? else {
        let clusters: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &args.namespace, &Kind::Cluster.resource());
        if clusters.get_opt(&name).await?.is_none() {
            bail!(
                "{}",
                clusters::missing(&client, &name, &args.namespace).await?
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
    let text = String::from_utf8(value.0);
    let text = text.with_context(|| format!("Secret {name}-kubeconfig is not text"))?;
    Ok(OfWorkload {
        cluster: name,
        text,
    })
}

/// Merges the kubeconfig of a cluster into the user's kubeconfig; returns a message with the name of the context.
pub(crate) async fn merge(
    args: &GetKubeconfig,
    environment: &Environment,
) -> anyhow::Result<String> {
    let added = of_workload(args, environment).await?;
    let context = match args.connect.namespace.as_str() {
        "default" => added.cluster.clone(),
        namespace => format!("{namespace}-{}", added.cluster),
    };
    let listed = environment.non_empty("KUBECONFIG");
    let path = match listed.and_then(|paths| std::env::split_paths(paths).next()) {
        Some(first) => first,
        None => environment
            .home()
            .context(
                "HOME is not set: name a file with --write-to, or with the variable KUBECONFIG",
            )?
            .join(".kube/config"),
    };
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(source) => bail!("cannot read {}: {source}", path.display()),
    };
    let merged = merged(&before, &added.text, &context)
        .with_context(|| format!("{} cannot be changed", path.display()))?;
    write_private(&path, &merged).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(format!(
        "{} has the context {context}: kubectl --context {context} get nodes",
        path.display()
    ))
}

/// `before` with the cluster, user and context of `added`, all three renamed to `name`. Everything else is unchanged.
fn merged(before: &str, added: &str, name: &str) -> anyhow::Result<String> {
    let parse = |text: &str| -> anyhow::Result<Value> {
        if text.trim().is_empty() {
            return Ok(json!({"apiVersion": "v1", "kind": "Config"}));
        }
        serde_saphyr::from_str(text).map_err(|error| anyhow::anyhow!("{}", error.without_snippet()))
    };
    let (mut all, added) = (parse(before)?, parse(added)?);
    for (list, field) in [("clusters", "cluster"), ("users", "user")] {
        let content = added[list][0][field].clone();
        put(&mut all, list, json!({"name": name, field: content}))?;
    }
    let context = json!({"name": name, "context": {"cluster": name, "user": name}});
    put(&mut all, "contexts", context)?;
    if all
        .get("current-context")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .is_empty()
    {
        all["current-context"] = name.into();
    }
    Ok(serde_saphyr::to_string(&all)?)
}

/// Puts `entry` into the list, replacing one of the same name.
fn put(config: &mut Value, list: &str, entry: Value) -> anyhow::Result<()> {
    if !config.is_object() {
        bail!("it is not a kubeconfig");
    }
    if config[list].is_null() {
        config[list] = json!([]);
    }
    let Some(entries) = config[list].as_array_mut() else {
        bail!("{list} is not a list");
    };
    match entries
        .iter_mut()
        .find(|known| known["name"] == entry["name"])
    {
        Some(known) => *known = entry,
        None => entries.push(entry),
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_what_is_there_and_replaces_what_has_the_same_name() {
        let first = admin("https://a:1", "ca", "cert", "key");
        let mine = "apiVersion: v1\nkind: Config\ncurrent-context: mine\ncontexts:\n- name: mine\n  context: {cluster: c, user: u}\n";
        let once = merged(mine, &first, "demo").unwrap();
        let again = merged(&once, &admin("https://b:2", "ca", "cert", "key"), "demo").unwrap();
        let all: Value = serde_saphyr::from_str(&again).unwrap();
        assert_eq!(all["current-context"], "mine");
        assert_eq!(all["contexts"].as_array().unwrap().len(), 2);
        assert_eq!(all["clusters"].as_array().unwrap().len(), 1);
        assert_eq!(all["clusters"][0]["cluster"]["server"], "https://b:2");
        assert_eq!(all["contexts"][1]["context"]["user"], "demo");
    }

    #[test]
    fn the_first_context_is_the_current_one_and_nonsense_is_refused() {
        let added = admin("https://a:1", "ca", "cert", "key");
        let all: Value = serde_saphyr::from_str(&merged("", &added, "demo").unwrap()).unwrap();
        assert_eq!(all["current-context"], "demo");
        assert!(merged("[1]", &added, "demo").is_err());
        assert!(merged("clusters: no", &added, "demo").is_err());
    }
}
