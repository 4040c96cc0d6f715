//! `describe cluster`.

use anyhow::bail;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt};

use crate::cli::{ConnectArgs, Output};
use crate::connect;
use crate::environment::Environment;
use crate::snapshot::{Item, Kind, Snapshot};
use crate::tree;

/// The tree of a cluster, as text or as JSON.
pub(crate) async fn cluster(
    name: &str,
    args: &ConnectArgs,
    grouping: bool,
    output: Output,
    environment: &Environment,
) -> anyhow::Result<String> {
    let client = connect::client(args, environment).await?;
    let snapshot = Snapshot::read(&client, Some(&args.namespace)).await?;
    let Some(cluster) = find(&snapshot, name) else {
        bail!("{}", missing(&client, name, &args.namespace).await?);
    };
    // JSON lists each machine separately.
    let root = tree::of_cluster(&snapshot, cluster, grouping && output == Output::Text);
    match output {
        Output::Text => Ok(tree::table(&root, Timestamp::now())),
        Output::Json => Ok(serde_json::to_string_pretty(&root)? + "\n"),
    }
}

fn find<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a Item> {
    snapshot
        .of_kind(Kind::Cluster)
        .find(|cluster| cluster.name() == name)
}

/// The error for a missing cluster `name`, with the existing ones: of the namespace, or else of other namespaces.
pub(crate) async fn missing(
    client: &Client,
    name: &str,
    namespace: &str,
) -> anyhow::Result<String> {
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &Kind::Cluster.resource());
    let clusters = all.list(&ListParams::default()).await?.items;
    let known: Vec<(String, String)> = clusters
        .iter()
        .map(|cluster| (cluster.namespace().unwrap_or_default(), cluster.name_any()))
        .collect();
    Ok(there_is_no(name, namespace, &known))
}

fn there_is_no(name: &str, namespace: &str, known: &[(String, String)]) -> String {
    let here: Vec<&str> = known
        .iter()
        .filter(|(of, _)| of == namespace)
        .map(|(_, name)| name.as_str())
        .collect();
    let start = format!("there is no cluster `{name}` in namespace {namespace}");
    if !here.is_empty() {
        return format!("{start}; there are: {}", here.join(", "));
    }
    if known.is_empty() {
        return format!("{start}, nor any other");
    }
    let elsewhere: Vec<String> = known
        .iter()
        .map(|(namespace, name)| format!("{name} (-n {namespace})"))
        .collect();
    format!(
        "{start}; in other namespaces there are: {}",
        elsewhere.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_of_the_namespace_are_named_before_those_of_others() {
        let known = |known: &[(&str, &str)]| -> Vec<(String, String)> {
            let owned = known
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
            owned.collect()
        };
        let both = known(&[("default", "a"), ("default", "b"), ("prod", "c")]);
        let text = "there is no cluster `x` in namespace default";
        assert_eq!(
            there_is_no("x", "default", &both),
            format!("{text}; there are: a, b")
        );
        assert_eq!(
            there_is_no("x", "default", &known(&[("prod", "c")])),
            format!("{text}; in other namespaces there are: c (-n prod)")
        );
        assert_eq!(
            there_is_no("x", "default", &[]),
            format!("{text}, nor any other")
        );
    }
}
