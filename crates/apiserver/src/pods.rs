//! Requests for kubelets: logs, commands and forwarded ports. The server connects to real kubelets with
//! [`KubeletClient`]; simulated nodes implement [`Kubelet`].
//!
//! ```text
//!   pods      finds pod, container and node, and checks that the kubelet is reachable
//!   log       the selected part of a container's log
//!   command   exec and attach
//!   proxy     nodes/NAME/proxy
//!   forward   connections to ports of a pod, multiplexed over one connection of the client:
//!     upgrade     switches a connection to another protocol
//!     spdy        kubectl, client-go: SPDY/3.1, directly or tunnelled through a WebSocket
//!     channels    kube-rs, browsers: a WebSocket with two channels for each port
//!   passed    requests to real kubelets, and their responses
//!   translate exec and attach over a WebSocket, translated to SPDY for real kubelets
//! ```
//!
//! Source of the rules and messages: `pkg/registry/core/pod` of kube-apiserver, and `pkg/cri/streaming` of the
//! kubelet.

mod command;
mod forward;
mod log;
mod passed;
mod proxy;
mod spdy;
mod translate;
mod upgrade;

use std::sync::Arc;

use apimachinery::value::text;
use http::{Extensions, HeaderMap, Method, Response, StatusCode};
use serde_json::Value;

use crate::body::{self, Body};
use crate::core::Core;
use crate::error::ApiError;
use crate::kubelet::{Kubelet, KubeletClient, PREFERRED, joined};
use crate::request::path::Path;
use crate::request::query::Query;

use passed::Backend;

pub(crate) use proxy::is_for_node;
pub(crate) use upgrade::Tunnels;

/// Request to a pod's kubelet.
pub(crate) struct Request<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) path: &'a Path,
    pub(crate) query: &'a Query,
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    /// [`Extensions`] of the HTTP request, with the handle for switching protocols.
    pub(crate) extensions: &'a mut Extensions,
}

/// True if kubelets serve the path.
pub(crate) fn is_for_kubelet(path: &Path) -> bool {
    let kinds = ["log", "portforward", "exec", "attach"];
    let subresource = path.subresource.as_deref().unwrap_or_default();
    (path.group.as_str(), path.version.as_str()) == ("", "v1")
        && path.plural == "pods"
        && path.namespace.is_some()
        && kinds.contains(&subresource)
}

/// Answers a [`Request`] for a kubelet.
pub(crate) async fn answer(request: Request<'_>) -> Result<Response<Body>, ApiError> {
    let kind = request.path.subresource.as_deref().unwrap_or_default();
    let fits = match kind {
        "log" => matches!(*request.method, Method::GET | Method::HEAD),
        _ => matches!(*request.method, Method::GET | Method::POST),
    };
    if !fits {
        return Err(ApiError::method_not_allowed());
    }
    if kind != "log" && request.query.all("dryRun").next().is_some() {
        return Err(ApiError::bad_request("dryRun is not supported"));
    }
    match kind {
        "log" => log::answer(&request).await,
        "portforward" => forward::answer(request).await,
        kind => command::answer(request, kind).await,
    }
}

/// Answers a [`Request`] for `nodes/NAME/proxy`.
pub(crate) async fn answer_node(
    request: Request<'_>,
    body: bytes::Bytes,
    raw: &http::Uri,
) -> Result<Response<Body>, ApiError> {
    proxy::answer(request, body, raw).await
}

impl Request<'_> {
    fn name(&self) -> &str {
        self.path.name.as_deref().unwrap_or_default()
    }

    fn pod(&self) -> Result<Value, ApiError> {
        let found = self.stored("pods", self.namespace(), self.name());
        found.ok_or_else(|| ApiError::not_found("", "pods", self.name()))
    }

    fn stored(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let store = &self.core.store;
        let resource = store.registry().find("", plural)?;
        let key = resource.key(namespace, name);
        let object = store.get(&resource.collection, &key)?;
        Some(object.value())
    }

    /// Requested container, or the only one of the pod.
    fn container(&self, pod: &Value, named: Option<&str>) -> Result<String, ApiError> {
        let names = |list: &str| -> Vec<String> {
            let containers = pod["spec"][list].as_array().into_iter().flatten();
            let names = containers.filter_map(|container| container["name"].as_str());
            names.map(str::to_owned).collect()
        };
        let all = || {
            let lists = ["initContainers", "containers", "ephemeralContainers"];
            lists.map(names).concat()
        };
        let pod = self.name();
        match (named, names("containers").as_slice()) {
            (Some(named), _) if all().iter().any(|name| name == named) => Ok(named.to_owned()),
            (Some(named), _) => Err(ApiError::bad_request(format!(
                "container {named} is not valid for pod {pod}"
            ))),
            (None, [only]) => Ok(only.clone()),
            (None, []) => Err(ApiError::bad_request(format!(
                "a container name must be specified for pod {pod}"
            ))),
            (None, _) => Err(ApiError::bad_request(format!(
                "a container name must be specified for pod {pod}, choose one of: [{}]",
                all().join(" ")
            ))),
        }
    }

    /// [`Node`] of a bound pod.
    fn node(&self, pod: &Value) -> Result<Node, ApiError> {
        let name = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if name.is_empty() {
            let pod = self.name();
            let why = format!("pod {pod} does not have a host assigned");
            return Err(ApiError::bad_request(why));
        }
        let node = self
            .stored("nodes", "", name)
            // kube-apiserver names the requested resource here, which is pods.
            .ok_or_else(|| ApiError::not_found("", "pods", name))?;
        self.listening(node)
    }

    fn listening(&self, node: Value) -> Result<Node, ApiError> {
        let client = self.core.options.kubelet_client.as_ref();
        Node::new(
            node,
            &client.map_or(PREFERRED.to_vec(), KubeletClient::preferred),
        )
    }

    /// Simulated [`Kubelet`]s, if the kubelet of `node` is one of them and reachable.
    fn simulated(&self, node: &Node) -> Option<Arc<dyn Kubelet>> {
        let kubelet = self.core.options.kubelet.clone()?;
        kubelet.is_reachable(&node.object).then_some(kubelet)
    }

    /// Real kubelet of `node`, if the kubelet is not simulated and the server has a client for real kubelets.
    fn backend<'n>(&self, node: &'n Node) -> Option<Backend<'n>>
    where
        Self: 'n,
    {
        if self.simulated(node).is_some() {
            return None;
        }
        let client = self.core.options.kubelet_client.clone()?;
        Some(Backend { client, node })
    }

    fn namespace(&self) -> &str {
        self.path.namespace.as_deref().unwrap_or_default()
    }
}

/// Node and address of its kubelet.
struct Node {
    object: Value,
    host: String,
    port: u16,
}

impl Node {
    fn new(object: Value, preferred: &[&str]) -> Result<Self, ApiError> {
        let status = &object["status"];
        let addresses = status["addresses"].as_array();
        let addresses = addresses.map(Vec::as_slice).unwrap_or_default();
        let found = preferred
            .iter()
            .find_map(|wanted| addresses.iter().find(|address| address["type"] == *wanted));
        let Some(host) = found.and_then(|address| address["address"].as_str()) else {
            let known: Vec<String> = addresses
                .iter()
                .map(|address| {
                    format!(
                        "{{{} {}}}",
                        text(&address["type"]),
                        text(&address["address"])
                    )
                })
                .collect();
            let message = format!(
                "no preferred addresses found; known addresses: [{}]",
                known.join(" ")
            );
            return Err(ApiError::new(500, "", message));
        };
        let port = status["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
        let port = port.and_then(|port| u16::try_from(port).ok());
        let host = host.to_owned();
        Ok(Self {
            object,
            host,
            port: port.filter(|port| *port > 0).unwrap_or(10250),
        })
    }

    /// Address of the kubelet, such as `10.6.0.5:10250`.
    fn address(&self) -> String {
        joined(&self.host, self.port)
    }

    /// Error of dialling an unreachable kubelet: nobody listens at the address, or the Node has only a name that does
    /// not resolve.
    fn not_reached(&self) -> String {
        let mut addresses = self.object["status"]["addresses"]
            .as_array()
            .into_iter()
            .flatten();
        match addresses.all(|address| address["type"] == "Hostname") {
            true => format!("dial tcp: lookup {}: no such host", self.host),
            false => format!("dial tcp {}: connect: connection refused", self.address()),
        }
    }
}

/// A plain-text [`Response`].
fn plain(code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let media = http::HeaderValue::from_static("text/plain");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, media);
    response
}

/// Plain-text [`Response`] with a whole [`Body`].
fn text_answer(code: StatusCode, text: String) -> Response<Body> {
    plain(code, body::full(text))
}
