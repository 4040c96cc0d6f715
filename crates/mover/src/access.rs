//! Requests to one side of a move. A request that fails in transit, or that the server cannot answer now, is
//! repeated: all requests are idempotent.

use std::future::Future;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, Resource};
use operator::client::Api;
use serde_json::Value;

use crate::error::{Error, or_absent};
use crate::graph::Object;
use crate::kinds::Kind;

/// Maximum number of repetitions of a request.
const REPEATS: u32 = 5;
/// Pause before the first repetition, doubled before each further one.
const PAUSE: Duration = Duration::from_millis(200);
/// Objects in one page of a list.
const PAGE: u32 = 500;

/// One of the two clusters of a move.
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) client: Client,
    /// `source` or `target`.
    pub(crate) title: &'static str,
}

impl Side {
    pub(crate) fn new(client: &Client, title: &'static str) -> Self {
        Self {
            client: operator::client::named(client, "ferrostack-move"),
            title,
        }
    }

    /// API of a [`Kind`] in one version; of all namespaces if `namespace` is `None`.
    pub(crate) fn objects(
        &self,
        kind: &Kind,
        version: &str,
        namespace: &str,
    ) -> Api<DynamicObject> {
        let resource = kind.resource(version);
        match kind.namespaced && !namespace.is_empty() {
            true => Api::namespaced_with(self.client.clone(), namespace, &resource),
            false => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Sends a request, and repeats the request after transient errors.
    ///
    /// # Errors
    /// When the server rejects the request, or does not answer after [`REPEATS`] repetitions.
    pub(crate) async fn attempt<T, F>(
        &self,
        action: impl Fn() -> String,
        request: impl Fn() -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut pause = PAUSE;
        for repeats in 0.. {
            match request().await {
                Ok(value) => return Ok(value),
                Err(error) if repeats < REPEATS && is_transient(&error) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(cause) => {
                    return Err(Error::Request {
                        side: self.title,
                        action: action(),
                        cause: Box::new(cause),
                    });
                }
            }
        }
        Err(Error::Stuck(action()))
    }

    /// All objects of a [`Kind`] in a namespace.
    pub(crate) async fn list(&self, kind: &Kind, namespace: &str) -> Result<Vec<Object>, Error> {
        let api = self.objects(kind, kind.stored(), namespace);
        let action = || format!("listing {} in namespace {namespace}", kind.plural);
        let mut found = Vec::new();
        let mut next = None;
        loop {
            let mut params = ListParams::default().limit(PAGE);
            params.continue_token = next.take();
            let page = self.attempt(action, || api.list(&params)).await?;
            next = page.metadata.continue_.filter(|token| !token.is_empty());
            let items = page.items.into_iter();
            found.extend(items.map(|object| Object::read_in(kind, kind.stored(), object)));
            if next.is_none() {
                return Ok(found);
            }
        }
    }

    /// Object, or `None` if absent.
    pub(crate) async fn get(
        &self,
        kind: &Kind,
        version: &str,
        (namespace, name): (&str, &str),
    ) -> Result<Option<DynamicObject>, Error> {
        let api = self.objects(kind, version, namespace);
        let action = || format!("reading {} {namespace}/{name}", kind.name);
        or_absent(self.attempt(action, || api.get(name)).await)
    }

    /// Changes an object by a merge patch, if an object with the same uid still exists.
    ///
    /// # Errors
    /// When the patch is rejected; 404 and 409 are no errors.
    pub(crate) async fn merge(
        &self,
        object: &Object,
        version: &str,
        subresource: Option<&str>,
        mut patch: Value,
    ) -> Result<Option<DynamicObject>, Error> {
        let (namespace, name) = object.key();
        let api = self.objects(&object.kind, version, namespace);
        // The uid is a precondition of the patch.
        patch["metadata"]["uid"] = object.uid().into();
        let params = PatchParams::default();
        let patch = Patch::Merge(&patch);
        let action = || format!("changing {} {namespace}/{name}", object.kind.name);
        let result = match subresource {
            None => {
                self.attempt(action, || api.patch(name, &params, &patch))
                    .await
            }
            Some(part) => {
                self.attempt(action, || {
                    api.patch_subresource(part, name, &params, &patch)
                })
                .await
            }
        };
        match result {
            Ok(stored) => Ok(Some(stored)),
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Uid of the namespace kube-system: the identity of a cluster.
    pub(crate) async fn identity(&self) -> Result<String, Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let action =
            || "reading namespace kube-system, whose uid identifies the cluster".to_owned();
        let system = self
            .attempt(action, || namespaces.get("kube-system"))
            .await?;
        Ok(system.meta().uid.clone().unwrap_or_default())
    }
}

/// True if the same request can succeed soon.
fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 408 | 429) || status.code >= 500,
        kube::Error::Service(_) | kube::Error::HyperError(_) => true,
        _ => false,
    }
}
