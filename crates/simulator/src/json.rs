//! Client for JSON objects of an API server, by path, with texts for its errors.

use apiserver::{InProcess, UserInfo};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::core::Status;
use serde_json::Value;
use tower::Service as _;

/// Client with the user agent of a program.
#[derive(Clone)]
pub(crate) struct Json {
    server: Server,
    agent: &'static str,
}

/// Where requests are sent.
#[derive(Clone)]
pub(crate) enum Server {
    Client(Client),
    /// Server in this process, without a [`Client`], which has a task and a queue of its own.
    InProcess(InProcess),
}

impl From<Client> for Server {
    fn from(client: Client) -> Self {
        Self::Client(client)
    }
}

impl From<InProcess> for Server {
    fn from(server: InProcess) -> Self {
        Self::InProcess(server)
    }
}

impl Server {
    async fn send(&self, request: Request<Vec<u8>>) -> kube::Result<Value> {
        match self {
            Self::Client(client) => client.request(request).await,
            Self::InProcess(server) => {
                let request = request.map(|body| Full::new(body.into()));
                let Ok(response) = server.clone().call(request).await;
                let status = response.status();
                let Ok(body) = response.into_body().collect().await;
                let body = body.to_bytes();
                if status.is_success() {
                    return serde_json::from_slice(&body).map_err(kube::Error::SerdeError);
                }
                let answer = serde_json::from_slice::<Status>(&body);
                let answer = answer.map_err(kube::Error::SerdeError)?;
                Err(kube::Error::Api(answer.boxed()))
            }
        }
    }
}

/// Failed request.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path}: {}", answer(.source))]
pub(crate) struct Error {
    method: Method,
    path: String,
    source: Box<kube::Error>,
}

impl Error {
    /// Returns the status of the answer, if there was one.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self.source.as_ref() {
            kube::Error::Api(status) => StatusCode::from_u16(status.code).ok(),
            _ => None,
        }
    }
}

/// Returns the answer of the API server, without the debug form of its [`Status`], or the reason why there is none.
fn answer(source: &kube::Error) -> String {
    match source {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) => format!("{} {}", status.code, status.reason),
        other => other.to_string(),
    }
}

/// Returns a text of an object; empty without one.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Json {
    pub(crate) fn new(server: impl Into<Server>, agent: &'static str) -> Self {
        let server = server.into();
        Self { server, agent }
    }

    /// Returns the same client for another program.
    pub(crate) fn of(&self, agent: &'static str) -> Self {
        Self::new(self.server.clone(), agent)
    }

    /// Returns the same client with the rights of a node, inside the process; a client of another server keeps its
    /// user.
    pub(crate) fn as_node(&self, name: &str) -> Self {
        let server = match &self.server {
            Server::InProcess(server) => {
                let groups = ["system:nodes", "system:authenticated"];
                let user = UserInfo::new(&format!("system:node:{name}"), groups);
                Server::InProcess(server.as_user(user))
            }
            client @ Server::Client(_) => client.clone(),
        };
        Self::new(server, self.agent)
    }

    /// Returns the objects of a collection.
    pub(crate) async fn list(&self, collection: &str) -> Result<Vec<Value>, Error> {
        let mut list = self.send(Method::GET, collection, None, "").await?;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Sends a request. `content_type` is the type of the body.
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
        self.server.send(request).await.map_err(fail)
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
