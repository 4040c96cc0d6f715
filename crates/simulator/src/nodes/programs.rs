//! Programs on the ports of Pods of simulated nodes, through the API server's forwarded ports.
//!
//! No program runs; the answers of known programs are simulated, and their data live as long as their volume.

mod broker;
mod deployed;
mod gateway;
mod namespace;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use apiserver::{Connection, Kubelet, Log};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpStream;

use self::broker::Broker;
use self::deployed::Deployed;
use self::namespace::Namespace;
use super::Faults;
use super::object::{holds, text};
use crate::cloud::{Cloud, Service};
use crate::json::Json;

/// Buffer of a connection, in each direction, in bytes.
const BUFFER: usize = 64 << 10;
/// Container of RabbitMQ, and the port of its management API.
const BROKER: (&str, u16) = ("rabbitmq", 15672);
/// Containers of the APIs of OpenStack. Each is on the standard port of its service.
const APIS: [(&str, Service); 7] = [
    ("keystone-api", Service::Identity),
    ("glance-api", Service::Image),
    ("placement-api", Service::Placement),
    ("nova-api", Service::Compute),
    ("neutron-api", Service::Network),
    ("cinder-api", Service::Volume),
    ("octavia-api", Service::LoadBalancer),
];
/// Suffix of the file with the content of a RabbitMQ volume.
const DEFINITIONS: &str = ".rabbitmq.json";
/// Container whose volume has the data of the [`APIS`].
const DATABASE: &str = "mariadb";

/// Reason why a program does not answer.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Answer; `None` closes the connection without one.
pub type Answering = BoxFuture<'static, Option<Response<Full<Bytes>>>>;

/// Gate in front of the programs, which sees every request: the gate may answer in place of a program, or lose an
/// answer. Only polling the second argument makes the program execute the request.
pub type Gate = Arc<dyn Fn(Request<Bytes>, Answering) -> Answering + Send + Sync>;

/// Programs of Pods. Clones share the programs.
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
    clouds: Mutex<HashMap<String, Deployed>>,
    /// Last lists, by the name of the namespace.
    namespaces: Mutex<HashMap<String, Arc<Namespace>>>,
    /// Directory of the clouds; `None` for clouds in memory.
    directory: OnceLock<PathBuf>,
    opening: tokio::sync::Mutex<()>,
    gate: Mutex<Option<Gate>>,
    /// Where real ones are, by container.
    real: Mutex<HashMap<String, SocketAddr>>,
}

/// Program with an answer.
#[derive(Clone)]
enum Program {
    Broker(Broker),
    Api(Service, Deployed),
}

impl Programs {
    /// Creates programs on nodes with these [`Faults`].
    pub fn new(faults: &Faults) -> Self {
        let inner = Inner {
            faults: faults.clone(),
            ..Inner::default()
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Sets the client for reading the files and volumes of Pods. Without a client, no port is open.
    pub fn serve(&self, client: Client) {
        // A second client is of the same server.
        let _ = self.inner.client.set(client);
    }

    /// Keeps the data of clouds and brokers in this directory, created with the first of them. Without a directory, the
    /// data are in memory.
    pub fn keep_in(&self, directory: PathBuf) {
        // A second directory would be without what is in the first one.
        let _ = self.inner.directory.set(directory);
    }

    /// Sets the [`Gate`] in front of the programs.
    pub fn guard(&self, gate: Option<Gate>) {
        *self.inner.gate.lock() = gate;
    }

    /// Leads the port of the program in this container to a real address, without the [`Gate`].
    pub fn lead_to(&self, container: &str, address: SocketAddr) {
        self.inner.real.lock().insert(container.to_owned(), address);
    }

    /// Sends a request to the only RabbitMQ as its administrator, without the [`Gate`]. Returns status and body.
    pub fn broker(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let brokers = self.inner.brokers.lock();
        let broker = brokers.values().next()?;
        Some(broker.asked(method, path, &body.to_string()))
    }

    /// Sends a request to the only Keystone as its administrator, without the [`Gate`]. Returns status and body.
    pub fn identity(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let cloud = self.inner.clouds.lock().values().next()?.clone();
        Some(cloud.asked(Service::Identity, method, path, body))
    }

    /// Sends a request to the only Nova as Keystone's administrator, without the [`Gate`]. Returns status and body.
    pub fn compute(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let cloud = self.inner.clouds.lock().values().next()?.clone();
        Some(cloud.asked(Service::Compute, method, path, body))
    }

    /// Sends a request to the only Neutron as Keystone's administrator, without the [`Gate`]. Returns status and body.
    pub fn network(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let cloud = self.inner.clouds.lock().values().next()?.clone();
        Some(cloud.asked(Service::Network, method, path, body))
    }

    /// The only cloud behind the Pods.
    pub fn cloud_of_pods(&self) -> Option<Cloud> {
        let clouds = self.inner.clouds.lock();
        Some(clouds.values().next()?.cloud.clone())
    }

    /// Empties the volumes of RabbitMQ.
    pub fn lose_messages(&self) {
        for (volume, _) in self.inner.brokers.lock().drain() {
            if let Some(file) = self.inner.definitions(&volume) {
                // Without the file the volume is empty.
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

impl Inner {
    /// Returns the file with the content of a RabbitMQ volume.
    fn definitions(&self, volume: &str) -> Option<PathBuf> {
        let directory = self.directory.get()?;
        Some(directory.join(format!("{volume}{DEFINITIONS}")))
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
        let missing = format!("container \"{container}\" in pod \"{pod}\" is not available");
        async move { Err(missing) }.boxed()
    }

    fn connect<'a>(
        &'a self,
        _: &'a Value,
        pod: &'a Value,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, String>> {
        async move {
            let container = text(&pod["spec"]["containers"][0]["name"]);
            let real = self.inner.real.lock().get(container).copied();
            if let Some(address) = real.filter(|_| is_known(container, port)) {
                let stream = TcpStream::connect(address).await;
                let stream = stream.map_err(|error| error.to_string())?;
                return Ok(Box::new(stream) as Box<dyn Connection>);
            }
            let program = self.of(pod, port).await?;
            let (here, there) = tokio::io::duplex(BUFFER);
            let gate = self.inner.gate.lock().clone();
            tokio::spawn(served(there, program, gate));
            Ok(Box::new(here) as Box<dyn Connection>)
        }
        .boxed()
    }
}

impl Programs {
    /// Returns the program of a Pod on this port, with the data on its volume.
    async fn of(&self, pod: &Value, port: u16) -> Result<Program, String> {
        let container = text(&pod["spec"]["containers"][0]["name"]);
        let running = &pod["status"]["containerStatuses"][0]["state"]["running"];
        let known = is_known(container, port) && running.is_object();
        let Some(client) = self.inner.client.get().filter(|_| known) else {
            return Err(refused(pod, port));
        };
        let client = Json::new(client.clone(), "simulated-programs");
        let program = match api(container, port) {
            _ if container == BROKER.0 => self.broker_of(pod, &client).await,
            Some(service) => self.api_of(pod, &client, service).await,
            None => return Err(refused(pod, port)),
        };
        program.map_err(|error| error.to_string())
    }

    async fn broker_of(&self, pod: &Value, client: &Json) -> Result<Program, Failure> {
        let name = text(&pod["metadata"]["namespace"]);
        let namespace = self.namespace(client, name).await?;
        let volume = namespace::volume(pod, &namespace.claims);
        if let Some(broker) = self.inner.brokers.lock().get(&volume) {
            return Ok(Program::Broker(broker.clone()));
        }
        let options = namespace::options(pod, &namespace::secrets(client, name).await?);
        // Another connection may have opened the broker in the meantime.
        let mut brokers = self.inner.brokers.lock();
        if let Some(broker) = brokers.get(&volume) {
            return Ok(Program::Broker(broker.clone()));
        }
        let broker = Broker::open(&options, self.inner.definitions(&volume))?;
        brokers.insert(volume, broker.clone());
        Ok(Program::Broker(broker))
    }

    async fn api_of(
        &self,
        pod: &Value,
        client: &Json,
        service: Service,
    ) -> Result<Program, Failure> {
        let name = text(&pod["metadata"]["namespace"]);
        let namespace = self.namespace(client, name).await?;
        // The data of an API are in the database.
        let database = namespace::pod_of(DATABASE, &namespace.pods).unwrap_or(pod);
        let cloud = self.cloud(namespace::volume(database, &namespace.claims));
        let cloud = cloud.await?;
        let last = namespace::bootstrap_job(&namespace.jobs);
        if last.is_some_and(|job| !cloud.is_bootstrapped(job)) {
            let secrets = namespace::secrets(client, name).await?;
            if let Some((job, bootstrap)) = namespace::bootstrap(&namespace.jobs, &secrets) {
                cloud.bootstrap(&job, &bootstrap)?;
            }
        }
        let computes = namespace::computes(&namespace.pods);
        cloud.cloud.hosts(&computes)?;
        Ok(Program::Api(service, cloud))
    }

    /// Returns the objects of a namespace now.
    async fn namespace(&self, client: &Json, name: &str) -> Result<Arc<Namespace>, Failure> {
        let known = self.inner.namespaces.lock().get(name).cloned();
        if let Some(known) = known
            && known.is_current(client, name).await?
        {
            return Ok(known);
        }
        let read = Arc::new(Namespace::read(client, name).await?);
        let mut all = self.inner.namespaces.lock();
        all.insert(name.to_owned(), Arc::clone(&read));
        Ok(read)
    }

    /// Returns the cloud on a volume; a new one on a new volume.
    async fn cloud(&self, volume: String) -> Result<Deployed, String> {
        // One store is opened once, so one request after the other asks for it.
        let _opening = self.inner.opening.lock().await;
        if let Some(cloud) = self.inner.clouds.lock().get(&volume) {
            return Ok(cloud.clone());
        }
        let directory = self.inner.directory.get();
        let store = directory.map(|it| it.join(format!("{volume}.db")));
        let opened = Deployed::open(store).await?;
        let mut clouds = self.inner.clouds.lock();
        clouds.insert(volume, opened.clone());
        Ok(opened)
    }
}

/// Returns the [`Service`] of a container on a port.
fn api(container: &str, port: u16) -> Option<Service> {
    let mut apis = APIS.into_iter();
    let found = apis.find(|(name, it)| *name == container && it.port() == Some(port));
    found.map(|(_, service)| service)
}

fn is_known(container: &str, port: u16) -> bool {
    (container, port) == BROKER || api(container, port).is_some()
}

impl Program {
    async fn answer(&self, request: Request<Bytes>) -> Response<Full<Bytes>> {
        match self {
            Self::Broker(broker) => broker.answer(&request),
            Self::Api(service, cloud) => cloud.answer(*service, request).await,
        }
    }
}

fn refused(pod: &Value, port: u16) -> String {
    let network = format!("/var/run/netns/cni-{}", text(&pod["metadata"]["uid"]));
    format!(
        "failed to execute portforward in network namespace \"{network}\": failed to connect to localhost:{port} inside namespace \"{network}\", IPv4: dial tcp4 127.0.0.1:{port}: connect: connection refused IPv6 dial tcp6 [::1]:{port}: connect: connection refused "
    )
}

async fn served(stream: tokio::io::DuplexStream, program: Program, gate: Option<Gate>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (program, gate) = (program.clone(), gate.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let request = Request::from_parts(head, body);
            let (asked, lost) = (request.clone(), || io::Error::other("closed"));
            let answering: Answering = async move { Some(program.answer(asked).await) }.boxed();
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

/// Returns a response with a body in JSON.
fn json(status: u16, body: &Value) -> Response<Full<Bytes>> {
    let text = match body {
        Value::Null => Bytes::new(),
        body => Bytes::from(body.to_string()),
    };
    let mut response = Response::new(Full::new(text));
    if let Ok(status) = http::StatusCode::from_u16(status) {
        *response.status_mut() = status;
    }
    let json = HeaderValue::from_static("application/json");
    if !body.is_null() {
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, json);
    }
    response
}

#[cfg(test)]
mod tests;
