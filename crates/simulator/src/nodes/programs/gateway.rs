//! APIs of a cloud at one address of this machine: for simulated nodes, in place of the edge of a cluster.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde_json::Value;

use super::{APIS, Program, Programs};
use crate::cloud::Service;
use crate::json::Json;
use crate::nodes::object::{holds, text};

/// Label with the name of a program.
const PROGRAM: &str = "app.kubernetes.io/name";

impl Programs {
    /// Returns the routes of all APIs of the cloud behind one URL, such as `http://127.0.0.1:5000`, each below its own
    /// segment: a login begins with `/identity/v3`, and the catalog of a token leads to the others. As behind an edge,
    /// an API without a ready Pod answers 503.
    pub fn gateway(&self, url: &str) -> Router {
        let (programs, url) = (self.clone(), url.trim_end_matches('/').to_owned());
        Router::new().fallback(move |request: Request| {
            let (programs, url) = (programs.clone(), url.clone());
            async move {
                match programs.passed(&url, request).await {
                    Ok(answer) => answer,
                    Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why).into_response(),
                }
            }
        })
    }

    async fn passed(&self, url: &str, request: Request) -> Result<Response<Body>, String> {
        let path = request.uri().path().trim_start_matches('/');
        let segment = path.split('/').next().unwrap_or_default();
        let asked = Service::of_segment(segment);
        let api = APIS.iter().find(|(_, service)| Some(*service) == asked);
        let Some((container, service)) = api else {
            let names = APIS.map(|(_, service)| service.segment()).join(", ");
            let words = format!("no service of this cloud is at /{segment}; there are {names}\n");
            return Ok((StatusCode::NOT_FOUND, words).into_response());
        };
        let none = || format!("no Pod of {container} is ready\n");
        let pod = self.ready(container).await.ok_or_else(none)?;
        let port = service.port().unwrap_or_default();
        match self.of(&pod, port).await? {
            Program::Api(_, deployed) => Ok(deployed.cloud.answer(url, request).await),
            Program::Broker(_) => Err(none()),
        }
    }

    /// Returns a ready Pod of the program, on an existing node.
    async fn ready(&self, program: &str) -> Option<Value> {
        let client = self.inner.client.get()?.clone();
        let path = format!("/api/v1/pods?labelSelector={PROGRAM}%3D{program}");
        let pods = Json::new(client, "simulated-gateway").list(&path).await;
        let mut pods = pods.ok()?.into_iter();
        pods.find(|pod| {
            let node = text(&pod["spec"]["nodeName"]);
            holds(pod, "Ready") && !self.inner.faults.is_gone(node)
        })
    }
}
