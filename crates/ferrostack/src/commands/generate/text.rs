//! Sources of a template's text: a file, standard input, a URL or a ConfigMap.

use std::path::Path;

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::ListParams;
use operator::client::Api;

use crate::cli::FromConfigMap;
use crate::source;

/// Text of a template, with its name for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Reads the template of `--from`.
pub(crate) async fn read(from: &Path) -> anyhow::Result<Text> {
    let name = source::name(from);
    match source::text(from).await {
        Ok(text) => Ok(Text { name, text }),
        Err(problem) => bail!("cannot read template {name}: {problem}"),
    }
}

/// Reads the template of `--from-config-map`.
pub(crate) async fn of_config_map(
    client: &Client,
    from: &FromConfigMap,
    name: &str,
) -> anyhow::Result<Text> {
    let (namespace, key) = (&from.from_config_map_namespace, &from.from_config_map_key);
    let label = format!("ConfigMap {namespace}/{name}");
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let found = api.get_opt(name).await;
    let Some(map) = found.with_context(|| format!("cannot read {label}"))? else {
        let listed = api.list(&ListParams::default()).await;
        let known = listed.map(|it| it.items).unwrap_or_default();
        let known: Vec<String> = known
            .into_iter()
            .filter_map(|it| it.metadata.name)
            .collect();
        bail!("there is no {label}; {}", there_are(&known));
    };
    let data = map.data.unwrap_or_default();
    match data.get(key) {
        Some(text) => Ok(Text {
            name: format!("{label}, key {key}"),
            text: text.clone(),
        }),
        None => {
            let keys: Vec<String> = data.into_keys().collect();
            bail!(
                "{label} has no key `{key}` (--from-config-map-key); {}",
                there_are(&keys)
            )
        }
    }
}

fn there_are(names: &[String]) -> String {
    match names {
        [] => "there is none".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use apiserver::ApiServer;
    use kube::api::PostParams;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_template_in_a_config_map_is_found_by_its_key() {
        let options = apiserver::Options {
            hooks: Arc::new(apiserver::NoHooks),
            ..apiserver::Options::default()
        };
        let server = ApiServer::open(options).await.unwrap();
        let client = Client::new(server.in_process(), "default");
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        let map = json!({"metadata": {"name": "templates"}, "data": {"template": "a: ${X}", "other": "b: 1"}});
        let map = serde_json::from_value(map).unwrap();
        api.create(&PostParams::default(), &map).await.unwrap();
        let read = async |name: &str, key: &str| {
            let from = FromConfigMap {
                from_config_map: Some(name.to_owned()),
                from_config_map_namespace: "default".to_owned(),
                from_config_map_key: key.to_owned(),
            };
            of_config_map(&client, &from, name).await
        };
        let found = read("templates", "template").await.unwrap();
        assert_eq!(found.text, "a: ${X}");
        assert_eq!(found.name, "ConfigMap default/templates, key template");
        let error = read("templates", "x").await.unwrap_err().to_string();
        assert_eq!(
            error,
            "ConfigMap default/templates has no key `x` (--from-config-map-key); there are: other, template"
        );
        let error = read("nothing", "x").await.unwrap_err().to_string();
        assert!(
            error.starts_with("there is no ConfigMap default/nothing; there are: ")
                && error.contains("templates"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_is_named() {
        let error = read(Path::new("/nowhere/t.yaml")).await.unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("cannot read template /nowhere/t.yaml: "),
            "{error}"
        );
    }
}
