//! Identity of the cluster: the uid of its namespace kube-system.

use std::time::Duration;

use anyhow::{Context, bail};
use csi::ClusterUid;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Client, ResourceExt as _};
use operator::client::Api;
use tokio_util::sync::CancellationToken;

use super::cluster::ClusterFlags;
use crate::environment::Environment;

/// Pause after an attempt to read the uid.
const PAUSE: Duration = Duration::from_secs(60);

/// Uid of the namespace kube-system, never empty.
pub(super) async fn uid(client: &Client) -> anyhow::Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces.get("kube-system").await;
    let namespace = namespace.context("cannot read the uid of the namespace kube-system")?;
    match namespace.uid() {
        Some(uid) if !uid.is_empty() => Ok(uid),
        _ => bail!("the namespace kube-system has no uid"),
    }
}

/// Tells the driver the uid, if the cluster can be read. Volumes created before have none, and are only harder to tell
/// from another cluster's.
pub(super) async fn learn(
    known: ClusterUid,
    place: ClusterFlags,
    environment: Environment,
    stop: CancellationToken,
) {
    if !place.is_named(&environment) {
        return;
    }
    let mut last_problem = String::new();
    loop {
        match of_cluster(&place, &environment).await {
            Ok(uid) => {
                tracing::info!(
                    uid,
                    "what is created has the uid of this cluster in its metadata"
                );
                known.set(uid);
                return;
            }
            Err(problem) => {
                let problem = format!("{problem:#}");
                if problem != last_problem {
                    tracing::warn!(
                        "what is created has no uid of this cluster in its metadata: {problem}"
                    );
                }
                last_problem = problem;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn of_cluster(place: &ClusterFlags, environment: &Environment) -> anyhow::Result<String> {
    uid(&place.client(environment).await?).await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use axum::Router;
    use axum::routing::get;
    use clap::Parser;
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;
    use crate::cli::CinderCsiPlugin;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: CinderCsiPlugin,
    }

    /// The URL of an API server whose namespace kube-system has this uid.
    async fn server(uid: &'static str) -> String {
        let namespace = move || async move {
            let object = json!({"kind": "Namespace", "apiVersion": "v1",
                "metadata": {"name": "kube-system", "uid": uid}});
            axum::Json(object)
        };
        let path = "/api/v1/namespaces/kube-system";
        let router = Router::new().route(path, get(namespace));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    fn kubeconfig(path: &Path, url: &str) -> String {
        let document = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": url}}], "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]});
        std::fs::write(path, document.to_string()).unwrap();
        path.display().to_string()
    }

    #[tokio::test]
    async fn the_flag_comes_before_the_variable_and_a_master_before_both() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, url: &str| kubeconfig(&directory.path().join(name), url);
        let of_flag = format!("--kubeconfig={}", file("flag", &server("flag").await));
        let of_variable = file("variable", &server("variable").await);
        let of_master = format!("--master={}", server("master").await);
        let learned = async |flags: &[&str], variable: Option<&str>| {
            let words = ["csi", "--endpoint=tcp://:1"].into_iter();
            let args = Command::try_parse_from(words.chain(flags.iter().copied()));
            let variables: Vec<_> = variable.map(|it| ("KUBECONFIG", it)).into_iter().collect();
            let environment = Environment::with(&variables);
            let known = ClusterUid::default();
            let place = ClusterFlags::from(&args.unwrap().args);
            let learning = learn(known.clone(), place, environment, CancellationToken::new());
            tokio::time::timeout(PAUSE / 2, learning).await.unwrap();
            known.get().map(str::to_owned)
        };
        let variable = Some(of_variable.as_str());
        for (flags, variable, expected) in [
            (&[of_flag.as_str()][..], variable, Some("flag")),
            (&[&of_flag], None, Some("flag")),
            (&[], variable, Some("variable")),
            (&[&of_flag, &of_master], variable, Some("master")),
            (&[], None, None),
        ] {
            assert_eq!(
                learned(flags, variable).await.as_deref(),
                expected,
                "{flags:?}"
            );
        }
    }
}
