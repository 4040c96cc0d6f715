//! What answers on the ports of Pods of simulated nodes, through the API server's forwarded ports.
//!
//! No program runs; of those that are known here, what they answer is simulated, and it stays as long as their volume.

mod broker;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};

use apiserver::{Connection, Kubelet, Log};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;

use self::broker::Broker;
use super::Faults;
use super::client::Json;
use super::object::{holds, items, text};

/// The buffer of a connection, in each direction, in bytes.
const BUFFER: usize = 64 << 10;
/// The container of RabbitMQ, and the port of its management API.
const BROKER: (&str, u16) = ("rabbitmq", 15672);

/// An answer; `None` closes the connection without one.
pub type Answering = BoxFuture<'static, Option<Response<Full<Bytes>>>>;

/// What stands before the programs and sees every request: it may answer in their place, or lose an answer. Polling the
/// second argument is what makes the program do what is requested.
pub type Gate = Arc<dyn Fn(Request<Bytes>, Answering) -> Answering + Send + Sync>;

/// The programs of Pods. Clones share them.
#[derive(Clone, Default)]
pub struct Programs {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    client: OnceLock<Client>,
    faults: Faults,
    /// By the uid of the volume.
    brokers: Mutex<HashMap<String, Broker>>,
    gate: Mutex<Option<Gate>>,
}

impl Programs {
    /// Programs on nodes with these faults.
    pub fn new(faults: &Faults) -> Self {
        let inner = Inner {
            faults: faults.clone(),
            ..Inner::default()
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Sets the client by which the files and volumes of Pods are read. Without one, no port is open.
    pub fn serve(&self, client: Client) {
        // A second client is of the same server.
        let _ = self.inner.client.set(client);
    }

    /// Sets what stands before the programs.
    pub fn guard(&self, gate: Option<Gate>) {
        *self.inner.gate.lock() = gate;
    }

    /// Does something behind the backs of all: sends a request to the only RabbitMQ that there is, as its administrator.
    /// Returns status and body.
    pub fn broker(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let brokers = self.inner.brokers.lock();
        let broker = brokers.values().next()?;
        Some(broker.asked(method, path, &body.to_string()))
    }

    /// Empties every volume, as a new one would be.
    pub fn lose_volumes(&self) {
        self.inner.brokers.lock().clear();
    }
}

impl Kubelet for Programs {
    fn is_reachable(&self, node: &Value) -> bool {
        let name = text(&node["metadata"]["name"]);
        holds(node, "Ready") && !self.inner.faults.is_gone(name)
    }

    fn log<'a>(
        &'a self,
        _: &'a Value,
        pod: &'a Value,
        container: &'a str,
        _: bool,
    ) -> BoxFuture<'a, Result<Log, String>> {
        let pod = text(&pod["metadata"]["name"]);
        let missing = format!("container {container:?} in pod {pod:?} is not available");
        async move { Err(missing) }.boxed()
    }

    fn connect<'a>(
        &'a self,
        _: &'a Value,
        pod: &'a Value,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, String>> {
        async move {
            let container = &pod["spec"]["containers"][0];
            let running = &pod["status"]["containerStatuses"][0]["state"]["running"];
            let known = (text(&container["name"]), port) == BROKER && running.is_object();
            let broker = match (known, self.inner.client.get()) {
                (true, Some(client)) => self.of(pod, client).await?,
                _ => return Err(refused(pod, port)),
            };
            let (here, there) = tokio::io::duplex(BUFFER);
            let gate = self.inner.gate.lock().clone();
            tokio::spawn(served(there, broker, gate));
            Ok(Box::new(here) as Box<dyn Connection>)
        }
        .boxed()
    }
}

impl Programs {
    /// The broker on the volume of a Pod; a new one if it is empty.
    async fn of(&self, pod: &Value, client: &Client) -> Result<Broker, String> {
        let client = Json::new(client.clone(), "simulated-programs");
        let namespace = text(&pod["metadata"]["namespace"]);
        let list = |kind: &str| format!("/api/v1/namespaces/{namespace}/{kind}");
        let named = |all: Vec<Value>, names: Vec<&str>| -> Vec<Value> {
            let is = |it: &Value| names.contains(&text(&it["metadata"]["name"]));
            all.into_iter().filter(is).collect()
        };
        let volumes = || items(&pod["spec"]["volumes"]);
        let claims = volumes().filter_map(|it| it["persistentVolumeClaim"]["claimName"].as_str());
        let secrets = volumes().filter_map(|it| it["secret"]["secretName"].as_str());
        let (claims, secrets): (Vec<&str>, Vec<&str>) = (claims.collect(), secrets.collect());
        let lists = async {
            let all = client.list(&list("persistentvolumeclaims")).await?;
            let files = client.list(&list("secrets")).await?;
            Ok::<_, super::client::Error>((named(all, claims), named(files, secrets)))
        };
        let (claims, files) = lists.await.map_err(|error| error.to_string())?;
        // Without a volume, what it has is that of the Pod.
        let uid = claims.first().unwrap_or(pod)["metadata"]["uid"].clone();
        let mut brokers = self.inner.brokers.lock();
        let broker = brokers.entry(text(&uid).to_owned());
        Ok(broker.or_insert_with(|| Broker::new(&files)).clone())
    }
}

fn refused(pod: &Value, port: u16) -> String {
    let network = format!("/var/run/netns/cni-{}", text(&pod["metadata"]["uid"]));
    format!(
        "failed to execute portforward in network namespace {network:?}: failed to connect to localhost:{port} inside namespace {network:?}, IPv4: dial tcp4 127.0.0.1:{port}: connect: connection refused IPv6 dial tcp6 [::1]:{port}: connect: connection refused "
    )
}

async fn served(stream: tokio::io::DuplexStream, broker: Broker, gate: Option<Gate>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (broker, gate) = (broker.clone(), gate.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let request = Request::from_parts(head, body);
            let (asked, lost) = (request.clone(), || io::Error::other("closed"));
            let answering: Answering = async move { Some(broker.answer(&asked)) }.boxed();
            let answer = match gate {
                Some(gate) => gate(request, answering).await,
                None => answering.await,
            };
            answer.ok_or_else(lost)
        }
    });
    let serving = hyper::server::conn::http1::Builder::new();
    // An error is a connection that was closed.
    let _ = serving
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// A body as JSON.
fn json(status: u16, body: &Value) -> Response<Full<Bytes>> {
    let text = match body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    };
    let mut response = Response::new(Full::new(text));
    if let Ok(status) = http::StatusCode::from_u16(status) {
        *response.status_mut() = status;
    }
    let json = http::HeaderValue::from_static("application/json");
    if !body.is_null() {
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, json);
    }
    response
}

#[cfg(test)]
mod tests;
