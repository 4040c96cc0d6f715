//! A client for JSON objects, by path.

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

use super::object::Write;

/// A client for JSON objects, by path.
pub(super) struct Json {
    client: Client,
    agent: &'static str,
}

/// A failed request.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path}: {source}")]
pub(super) struct Error {
    method: Method,
    path: String,
    source: Box<kube::Error>,
}

impl Json {
    pub(super) fn new(client: Client, agent: &'static str) -> Self {
        Self { client, agent }
    }

    /// The objects of a collection.
    pub(super) async fn list(&self, collection: &str) -> Result<Vec<Value>, Error> {
        let mut list = self.send(Method::GET, collection, None, "").await?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Sends a write.
    pub(super) async fn write(&self, write: &Write) -> Result<(), Error> {
        let (json, merge) = ("application/json", "application/merge-patch+json");
        let sent = match write {
            Write::Create { collection, body } => {
                self.send(Method::POST, collection, Some(body), json).await
            }
            Write::Patch { path, body } => self.send(Method::PATCH, path, Some(body), merge).await,
            Write::Delete { path, uid, grace } => {
                let mut options = json!({
                    "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid},
                });
                if let Some(grace) = grace {
                    options["gracePeriodSeconds"] = (*grace).into();
                }
                self.send(Method::DELETE, path, Some(&options), json).await
            }
        };
        sent.map(drop)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        content_type: &str,
    ) -> Result<Value, Error> {
        let fail = |source: kube::Error| Error {
            method: method.clone(),
            path: path.to_owned(),
            source: Box::new(source),
        };
        let mut request = Request::builder().method(method.clone()).uri(path);
        request = request.header(http::header::USER_AGENT, self.agent);
        if body.is_some() {
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        let bytes = body.map(|body| body.to_string().into_bytes());
        let request = request
            .body(bytes.unwrap_or_default())
            .map_err(|error| fail(kube::Error::HttpError(error)))?;
        self.client.request::<Value>(request).await.map_err(fail)
    }
}
