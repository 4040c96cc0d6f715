//! A client of a workload API server for JSON objects.

use apiserver::InProcess;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::objects::Manifest;
pub(crate) use crate::json::Error;
use crate::json::Json;

/// Client for JSON objects, by path.
#[derive(Clone)]
pub(crate) struct Api {
    json: Json,
}

impl Api {
    /// Creates a client with the user agent of `program`.
    pub(crate) fn new(server: InProcess, program: &'static str) -> Self {
        Self {
            json: Json::new(server, program),
        }
    }

    /// Returns the same client for another program.
    pub(crate) fn of(&self, program: &'static str) -> Self {
        Self {
            json: self.json.of(program),
        }
    }

    /// Returns a client of a node's kubelet, with the rights of its certificate.
    pub(crate) fn of_kubelet(&self, node: &str) -> Self {
        Self {
            json: self.json.of("kubelet").as_node(node),
        }
    }

    /// Returns the object, or `None` if none exists.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>, Error> {
        match self.json.send(Method::GET, path, None, "").await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the items of a collection.
    pub(crate) async fn list(&self, collection: &str) -> Result<Vec<Value>, Error> {
        self.json.list(collection).await
    }

    /// Creates the object unless it exists, and returns it. Writes the status, too, which needs a second request for
    /// most kinds. A Node is created with its status, like by a kubelet: a second request could undo writes by others
    /// since.
    pub(crate) async fn ensure(&self, manifest: &Manifest) -> Result<Value, Error> {
        let path = format!("{}/{}", manifest.collection, manifest.name());
        match self
            .json
            .send(
                Method::POST,
                &manifest.collection,
                Some(&manifest.body),
                "application/json",
            )
            .await
        {
            Ok(created) => match manifest.body.get("status") {
                Some(status) if manifest.body["kind"] != "Node" => {
                    self.patch_status(&path, status).await
                }
                _ => Ok(created),
            },
            Err(error) if error.status() == Some(StatusCode::CONFLICT) => Ok(self
                .get(&path)
                .await?
                .unwrap_or_else(|| manifest.body.clone())),
            Err(error) => Err(error),
        }
    }

    /// Creates and returns an object. The name may be generated.
    pub(crate) async fn create(&self, collection: &str, body: &Value) -> Result<Value, Error> {
        let json = "application/json";
        self.json
            .send(Method::POST, collection, Some(body), json)
            .await
    }

    /// Updates fields of the status by JSON merge patch.
    pub(crate) async fn patch_status(&self, path: &str, status: &Value) -> Result<Value, Error> {
        self.patch(&format!("{path}/status"), &json!({"status": status}))
            .await
    }

    /// Applies a JSON merge patch.
    pub(crate) async fn patch(&self, path: &str, patch: &Value) -> Result<Value, Error> {
        self.json
            .send(
                Method::PATCH,
                path,
                Some(patch),
                "application/merge-patch+json",
            )
            .await
    }

    /// Deletes the object without grace period, if it exists.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), Error> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
        });
        match self
            .json
            .send(Method::DELETE, path, Some(&options), "application/json")
            .await
        {
            Ok(_) => Ok(()),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
