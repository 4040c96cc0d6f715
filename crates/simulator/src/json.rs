//! A client for JSON objects of an API server, by path, and their texts.

use http::{Method, Request, StatusCode};
use kube::Client;
use serde_json::Value;

/// A client whose requests have the user agent of a program.
#[derive(Clone)]
pub(crate) struct Json {
    client: Client,
    agent: &'static str,
}

/// A failed request.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path}: {}", answer(.source))]
pub(crate) struct Error {
    method: Method,
    path: String,
    source: Box<kube::Error>,
}

impl Error {
    /// The status of the answer, if there was one.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self.source.as_ref() {
            kube::Error::Api(status) => StatusCode::from_u16(status.code).ok(),
            _ => None,
        }
    }
}

/// What the API server answered, without the debug form of its Status, or why there is no answer.
fn answer(source: &kube::Error) -> String {
    match source {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) => format!("{} {}", status.code, status.reason),
        other => other.to_string(),
    }
}

/// A text of an object; empty where there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Json {
    pub(crate) fn new(client: Client, agent: &'static str) -> Self {
        Self { client, agent }
    }

    /// The same client for another program.
    pub(crate) fn of(&self, agent: &'static str) -> Self {
        Self::new(self.client.clone(), agent)
    }

    /// The objects of a collection.
    pub(crate) async fn list(&self, collection: &str) -> Result<Vec<Value>, Error> {
        let mut list = self.send(Method::GET, collection, None, "").await?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Sends a request. The content type is that of the body.
    pub(crate) async fn send(
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

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_failed_request_has_the_message_of_its_status_alone() {
        let status = Status::failure("etcdserver: request timed out", "Timeout")
            .with_code(500)
            .boxed();
        let error = Error {
            method: Method::DELETE,
            path: "/api/v1/nodes/a".to_owned(),
            source: Box::new(kube::Error::Api(status)),
        };
        let text = "DELETE /api/v1/nodes/a: etcdserver: request timed out";
        assert_eq!(error.to_string(), text);
    }
}
