//! `delete cluster`.

mod preview;
mod providers;

use std::time::{Duration, Instant};

use anyhow::bail;
use api::names::DELETE_WITH_CLUSTER_ANNOTATION;
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use operator::client::Api;
use serde_json::json;
use status::clusters;
use status::readiness::waits_for;
use status::snapshot::{Item, Kind, Snapshot};
use terminal::counted;

use self::preview::Preview;
use crate::cli::{Delete, DeleteCluster, DeleteCommand, Output};
use crate::connect;
use crate::environment::Environment;
use crate::output::{self, print, say};

/// Runs the command.
pub(super) async fn execute(args: &Delete, environment: &Environment) -> anyhow::Result<()> {
    match &args.command {
        None => providers::run(&args.providers, environment, say).await,
        Some(DeleteCommand::Cluster(args)) => cluster(args, environment, print, say).await,
    }
}

/// The label with the name of the cluster of an object.
const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";

/// Interval of the polls of `--wait`. The management API is local and serves lists from memory.
const LOOK: Duration = Duration::from_millis(250);

/// Deletes a cluster; with `--wait`, returns after the deletion of the cluster and all its machines. `say` is called
/// whenever the set of remaining objects changes. With `--dry-run`, only prints the objects to delete.
pub(crate) async fn cluster(
    wishes: &DeleteCluster,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let (name, args) = (wishes.name.as_str(), &wishes.connect);
    let wait = wishes.wait.then_some(wishes.timeout);
    let management = connect::management(&args.server, environment).await?;
    let client = management.client.clone();
    // Read before the objects with the references are deleted.
    let snapshot = Snapshot::read(&client, Some(&args.namespace)).await?;
    let credentials = credentials(&snapshot, name);
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &args.namespace, &Kind::Cluster.resource());
    if wishes.dry_run || wishes.with.is_some() {
        anyhow::ensure!(
            api.get_opt(name).await?.is_some(),
            "{}",
            clusters::missing(&client, name, &args.namespace).await?
        );
    }
    if wishes.dry_run {
        let namespace = &args.namespace;
        let preview = Preview::new(&client, &snapshot, name, namespace, wishes.with).await?;
        return print(&match wishes.output {
            Output::Text => preview.text(output::layout(environment)),
            Output::Json => terminal::json(&preview.document())?,
        });
    }
    if let Some(with) = wishes.with {
        let annotations = json!({DELETE_WITH_CLUSTER_ANNOTATION: with.to_string()});
        let patch = json!({"metadata": {"annotations": annotations}});
        let patch = Patch::Merge(&patch);
        api.patch(name, &PatchParams::default(), &patch).await?;
    }
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => say(&format!("cluster {name} is being deleted")),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            bail!(
                "{}",
                clusters::missing(&client, name, &args.namespace).await?
            )
        }
        Err(other) => return Err(other.into()),
    }
    for secret in &credentials {
        say(&secret.line(&args.namespace, &management.kubectl_flags()));
    }
    let Some(limit) = wait else { return Ok(()) };
    let started = Instant::now();
    let mut printed = String::new();
    loop {
        let snapshot = Snapshot::read(&client, Some(&args.namespace)).await?;
        let left = left_over(&snapshot, name);
        if left.is_empty() {
            say(&format!(
                "cluster {name} is gone after {:.1} s",
                started.elapsed().as_secs_f64()
            ));
            return Ok(());
        }
        let line = summary(&left);
        if line != printed {
            say(&line);
            printed = line;
        }
        if started.elapsed() > limit {
            let stuck: Vec<String> = left.iter().map(|item| reason(item)).collect();
            bail!(
                "cluster {name} is not gone after {} s:\n{}",
                limit.as_secs(),
                stuck.join("\n")
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Secret with credentials of the cloud, not deleted with its cluster.
#[derive(Debug, PartialEq)]
struct Credentials {
    secret: String,
    /// Other clusters with a reference to the Secret.
    others: Vec<String>,
}

impl Credentials {
    /// Message about the remaining Secret, with the reason and what to do.
    fn line(&self, namespace: &str, flags: &str) -> String {
        let secret = &self.secret;
        if self.others.is_empty() {
            format!(
                "Secret {secret} with the credentials of the cloud stays, because other objects may use it; when the cluster is \
                 gone, delete it with: kubectl{flags} -n {namespace} delete secret {secret}"
            )
        } else {
            format!(
                "Secret {secret} with the credentials of the cloud stays: {} of this namespace use it",
                self.others.join(", ")
            )
        }
    }
}

/// [`Credentials`] in the identityRefs of the infrastructure of cluster `name`.
fn credentials(snapshot: &Snapshot, name: &str) -> Vec<Credentials> {
    let secret_of = |item: &Item| {
        let kind = item.field("/spec/identityRef/type").as_str();
        let secret = item.field("/spec/identityRef/name").as_str();
        secret
            .filter(|_| matches!(kind, None | Some("Secret")))
            .map(str::to_owned)
    };
    let Some(cluster) = snapshot
        .of_kind(Kind::Cluster)
        .find(|cluster| cluster.name() == name)
    else {
        return Vec::new();
    };
    let mut names: Vec<String> = snapshot
        .belonging(cluster, Kind::OpenStackCluster)
        .filter_map(secret_of)
        .collect();
    names.dedup();
    names
        .into_iter()
        .map(|secret| {
            let others = snapshot
                .of_kind(Kind::OpenStackCluster)
                .filter(|infra| secret_of(infra).as_ref() == Some(&secret))
                .filter(|infra| {
                    infra
                        .object
                        .labels()
                        .get(CLUSTER_NAME)
                        .is_none_or(|of| of != name)
                })
                .map(Item::label)
                .collect();
            Credentials { secret, others }
        })
        .collect()
}

fn left_over<'a>(snapshot: &'a Snapshot, name: &str) -> Vec<&'a Item> {
    let belongs = |item: &Item| {
        (item.kind == Kind::Cluster && item.name() == name)
            || item
                .object
                .metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get(CLUSTER_NAME))
                == Some(&name.to_owned())
    };
    snapshot.items.iter().filter(|item| belongs(item)).collect()
}

fn summary(left: &[&Item]) -> String {
    let counts = Kind::ALL.iter().filter_map(|kind| {
        let count = left.iter().filter(|item| item.kind == *kind).count();
        (count > 0).then(|| counted(count, kind.as_str()))
    });
    format!("waiting for {}", counts.collect::<Vec<_>>().join(", "))
}

fn reason(item: &Item) -> String {
    let why = item
        .condition("Deleting")
        .filter(|deleting| deleting.status == "True" && !deleting.message.is_empty())
        .map(|deleting| {
            deleting
                .message
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .or_else(|| waits_for(item))
        .unwrap_or_else(|| "its finalizer is still there".to_owned());
    format!("  {}: {why}", item.label())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::item;

    fn snapshot(clusters: &[(&str, &str)]) -> Snapshot {
        let mut items = Vec::new();
        for (name, secret) in clusters {
            let metadata =
                json!({"name": name, "namespace": "default", "labels": {CLUSTER_NAME: name}});
            items.push(item(Kind::Cluster, json!({"metadata": metadata})));
            let spec = json!({"identityRef": {"name": secret, "cloudName": "x"}});
            items.push(item(
                Kind::OpenStackCluster,
                json!({"metadata": metadata, "spec": spec}),
            ));
        }
        Snapshot::from(items)
    }

    #[test]
    fn the_secret_that_stays_is_named_with_the_reason() {
        let found = credentials(&snapshot(&[("a", "s"), ("b", "other")]), "a");
        let line = found[0].line("default", " --kubeconfig /k");
        assert!(
            line.ends_with("kubectl --kubeconfig /k -n default delete secret s"),
            "{line}"
        );
        let found = credentials(&snapshot(&[("a", "s"), ("b", "s")]), "a");
        let line = found[0].line("default", "");
        assert!(
            line.ends_with("stays: OpenStackCluster/b of this namespace use it"),
            "{line}"
        );
        assert_eq!(credentials(&snapshot(&[]), "a"), []);
    }
}
