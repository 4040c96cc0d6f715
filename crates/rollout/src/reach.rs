//! HTTP to a program of a cloud: through the API server, by a forwarded port of its Pod. That needs nothing but the
//! connection to the cluster, inside of it and outside, and no name of a Service that resolves.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, Portforwarder};

/// The longest time for a connection, and for each answer.
const LIMIT: Duration = Duration::from_secs(5);
/// How much later than the end of a connection its reason may come.
const SOON: Duration = Duration::from_millis(100);
/// The longest answer in bytes.
const LONGEST: usize = 4 << 20;

/// A port of a Pod, to which requests are sent one after the other.
pub(crate) struct Port<'a> {
    client: &'a Client,
    namespace: &'a str,
    pod: &'a str,
    port: u16,
    open: Option<Connection>,
}

struct Connection {
    forwarder: Portforwarder,
    sender: SendRequest<Full<Bytes>>,
    /// Why the kubelet has no connection to the port, which is more exact than that an answer is missing.
    refused: Option<BoxFuture<'static, Option<String>>>,
}

/// An answer of a program.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A request to a program.
pub(crate) struct Sent<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    /// The name and value of the header that authenticates it, if it does not in its body.
    pub(crate) login: Option<(&'static str, &'a str)>,
    /// The body as JSON.
    pub(crate) body: Option<&'a str>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.forwarder.abort();
    }
}

impl Connection {
    /// Why there is no connection, if that is known by now.
    async fn refused(&mut self) -> Option<String> {
        let refused = self.refused.take()?;
        tokio::time::timeout(SOON, refused).await.ok().flatten()
    }
}

impl<'a> Port<'a> {
    /// A port that is opened by the first request.
    pub(crate) fn of(client: &'a Client, namespace: &'a str, pod: &'a str, port: u16) -> Self {
        Self {
            client,
            namespace,
            pod,
            port,
            open: None,
        }
    }

    /// Sends a request. The error tells why there is no answer.
    pub(crate) async fn send(&mut self, sent: &Sent<'_>) -> Result<Answer, String> {
        let request = self.request(sent)?;
        let (name, at) = (self.name(), LIMIT.as_secs());
        let silent = |_| format!("{name} did not answer within {at} s");
        let answered = tokio::time::timeout(LIMIT, self.answered(request)).await;
        let answer = answered.map_err(silent).and_then(|answer| answer);
        if answer.is_err() {
            self.open = None;
        }
        answer
    }

    fn name(&self) -> String {
        let (namespace, pod, port) = (self.namespace, self.pod, self.port);
        format!("port {port} of Pod {namespace}/{pod}")
    }

    fn request(&self, sent: &Sent<'_>) -> Result<Request<Full<Bytes>>, String> {
        let body = sent.body.unwrap_or_default();
        let mut request = Request::builder()
            .method(sent.method)
            .uri(sent.path)
            .header(HOST, self.pod)
            .header(CONTENT_TYPE, "application/json");
        if let Some((name, value)) = sent.login {
            // Words of the error would repeat what cannot be in a header.
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| format!("the password cannot be sent in the header {name}"))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        request
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .map_err(|error| format!("{}: {error}", sent.path))
    }

    async fn answered(&mut self, request: Request<Full<Bytes>>) -> Result<Answer, String> {
        let name = self.name();
        let mut connection = self.connection().await?;
        let failed = |why: String| format!("{name} gave no answer: {why}");
        let answer = match connection.sender.send_request(request).await {
            Ok(answer) => answer,
            Err(error) => {
                let refused = connection.refused().await;
                return Err(failed(
                    refused.unwrap_or_else(|| operator::words::chain(&error)),
                ));
            }
        };
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, LONGEST).collect().await;
        let body = body.map_err(|error| failed(error.to_string()))?;
        self.open = Some(connection);
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
        })
    }

    /// The open connection, or a new one: a program may close its connection after each answer.
    async fn connection(&mut self) -> Result<Connection, String> {
        if let Some(mut kept) = self.open.take()
            && kept.sender.ready().await.is_ok()
        {
            return Ok(kept);
        }
        self.connect().await
    }

    async fn connect(&mut self) -> Result<Connection, String> {
        let (name, port) = (self.name(), self.port);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), self.namespace);
        let forwarded = pods.portforward(self.pod, &[port]).await;
        let mut forwarder = forwarded.map_err(|error| {
            let why = operator::words::chain(&error);
            format!("{name} cannot be forwarded (verbs get and create of pods/portforward): {why}")
        })?;
        let refused = forwarder.take_error(port).map(|it| it.boxed());
        let stream = forwarder
            .take_stream(port)
            .ok_or("the port has no stream")?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| format!("{name}: {}", operator::words::chain(&error)))?;
        // It ends with its sender, or when the port is closed. Its error is also that of the request.
        tokio::spawn(connection);
        Ok(Connection {
            forwarder,
            sender,
            refused,
        })
    }
}
