//! The writes of simulated nodes.

use http::Method;
use serde_json::{Value, json};

use super::object::Write;
use crate::json::{Error, Json};

impl Json {
    /// Sends a write, and returns the answer.
    pub(super) async fn write(&self, write: &Write) -> Result<Value, Error> {
        let (json, merge) = ("application/json", "application/merge-patch+json");
        match write {
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
        }
    }
}
