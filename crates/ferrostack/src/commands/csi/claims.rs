//! `--pvc-annotations`: claims of the cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use csi::Claims;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use operator::client::Api;

use super::cluster::ClusterFlags;
use crate::cli::CinderCsiPlugin;
use crate::environment::Environment;

/// Claims as stored in the API server. Nothing is cached: each claim is read when its volume is made.
struct Cluster(kube::Client);

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

/// [`Claims`], if requested by the flags. The API server is not contacted before a volume is to be made.
pub(super) async fn of(
    args: &CinderCsiPlugin,
    environment: &Environment,
) -> anyhow::Result<Option<Arc<dyn Claims>>> {
    if !args.pvc_annotations || !args.provide_controller_service {
        return Ok(None);
    }
    let client = ClusterFlags::from(args).client(environment).await;
    let client = client.context("--pvc-annotations needs the cluster of the claims")?;
    Ok(Some(Arc::new(Cluster(client))))
}

impl Claims for Cluster {
    fn annotations<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<BTreeMap<String, String>>, String>> {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.0.clone(), namespace);
        async move {
            match claims.get_metadata_opt(name).await {
                Ok(claim) => Ok(claim.map(|it| it.metadata.annotations.unwrap_or_default())),
                Err(error) => Err(words(&error)),
            }
        }
        .boxed()
    }
}

/// Advice about an error.
fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => format!(
            "{}; the driver's service account needs `get` on persistentvolumeclaims",
            operator::words::of_request(error)
        ),
        error => operator::words::of_request(error),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: CinderCsiPlugin,
    }

    /// An API server that answers with a status and a body, and the paths that it was asked for.
    fn server(status: u16, body: serde_json::Value) -> Cluster {
        let answer = move |request: Request<Body>| {
            assert_eq!(
                request.uri().path(),
                "/api/v1/namespaces/shop/persistentvolumeclaims/data"
            );
            let body = Body::from(body.to_string().into_bytes());
            let response = Response::builder().status(status).body(body).unwrap();
            async move { Ok::<_, std::convert::Infallible>(response) }
        };
        Cluster(kube::Client::new(service_fn(answer), "default"))
    }

    fn failure(code: u16, reason: &str, message: &str) -> serde_json::Value {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": message})
    }

    #[tokio::test]
    async fn a_claim_has_annotations_or_is_gone_or_cannot_be_read() {
        let claim = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"name": "data", "namespace": "shop", "annotations": {"a": "b"}}});
        let read = async |status: u16, body: serde_json::Value| {
            let cluster = server(status, body);
            let read = cluster.annotations("shop", "data");
            tokio::time::timeout(Duration::from_secs(60), read)
                .await
                .unwrap()
        };
        let found = read(200, claim).await.unwrap().unwrap();
        assert_eq!(found, BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        let gone = read(404, failure(404, "NotFound", "claims \"data\" not found")).await;
        assert_eq!(gone, Ok(None));
        let denied = read(403, failure(403, "Forbidden", "claims is forbidden")).await;
        let words = denied.unwrap_err();
        assert!(
            words.contains("claims is forbidden; the driver's"),
            "{words}"
        );
        let failed = read(500, failure(500, "InternalError", "etcd")).await;
        assert!(failed.unwrap_err().contains("etcd"));
    }

    #[tokio::test]
    async fn without_the_flag_no_cluster_is_needed() {
        let of = async |flags: &[&str]| {
            let words = ["csi", "--endpoint=tcp://:1"]
                .into_iter()
                .chain(flags.iter().copied());
            let args = Command::try_parse_from(words).unwrap().args;
            of(&args, &Environment::default()).await
        };
        assert!(of(&[]).await.unwrap().is_none());
        let node = ["--pvc-annotations", "--provide-controller-service=false"];
        assert!(of(&node).await.unwrap().is_none());
        let error = of(&["--pvc-annotations"]).await.unwrap_err();
        assert!(
            format!("{error:#}").contains("neither --kubeconfig nor KUBECONFIG is set"),
            "{error:#}"
        );
    }
}
