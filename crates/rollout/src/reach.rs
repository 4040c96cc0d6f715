//! HTTP to a program of a cloud, by a port of its Pod that the API server forwards.
//!
//! A connection to the cluster is enough, from inside or outside: no Service name has to resolve.

mod forwarded;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kube::Client;
use tokio::sync::oneshot;

use self::forwarded::{Copying, Forwarded};

/// Timeout of a connection, and of an answer.
const LIMIT: Duration = Duration::from_secs(5);
/// Time after the end of a connection in which the reason may arrive.
const SOON: Duration = Duration::from_millis(100);
/// Maximum size of an answer in bytes.
const LONGEST: usize = 4 << 20;

/// Maximum number of requests in flight: programs queue a hundred, and may have other clients.
const WIDEST: usize = 16;

/// Port of a Pod, as target of requests.
pub(crate) struct Port<'a> {
    client: &'a Client,
    namespace: &'a str,
    pod: &'a str,
    port: u16,
    /// Microversion of every request.
    version: Option<&'static str>,
    open: Option<Connection>,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Reason why the kubelet has no connection to the port: more exact than a missing answer.
    refused: oneshot::Receiver<String>,
    /// The [`Copying`] task runs as long as the connection exists.
    _copying: Arc<Copying>,
}

/// Answer of a program.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Request to a program.
pub(crate) struct Sent<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    /// Name and value of the header that authenticates the request; `None` if the body does.
    pub(crate) login: Option<(&'static str, &'a str)>,
    /// Body as JSON.
    pub(crate) body: Option<&'a str>,
}

impl Connection {
    /// Reason why the connection is missing, if known by now.
    async fn refused(&mut self) -> Option<String> {
        let refused = tokio::time::timeout(SOON, &mut self.refused).await;
        refused.ok()?.ok()
    }

    async fn from_forwarded(forwarded: Forwarded) -> Result<Self, String> {
        let (sender, connection) = http1::handshake(TokioIo::new(forwarded.stream))
            .await
            .map_err(|error| operator::words::chain(&error))?;
        // The task ends with the sender, or when the port is closed. The request reports the same error.
        tokio::spawn(connection);
        Ok(Self {
            sender,
            refused: forwarded.refused,
            _copying: forwarded.copying,
        })
    }

    /// Sends a request, and reads the whole [`Answer`], up to [`LONGEST`].
    async fn answer(&mut self, request: Request<Full<Bytes>>) -> Result<Answer, String> {
        let answer = match self.sender.send_request(request).await {
            Ok(answer) => answer,
            Err(error) => {
                let refused = self.refused().await;
                return Err(refused.unwrap_or_else(|| operator::words::chain(&error)));
            }
        };
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, LONGEST).collect().await;
        let body = body.map_err(|error| error.to_string())?;
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
        })
    }
}

impl<'a> Port<'a> {
    /// Port without a connection; the first request opens one.
    pub(crate) fn new(client: &'a Client, namespace: &'a str, pod: &'a str, port: u16) -> Self {
        Self {
            client,
            namespace,
            pod,
            port,
            version: None,
            open: None,
        }
    }

    /// With this microversion in every request, such as `compute 2.84`.
    pub(crate) fn with_version(self, version: &'static str) -> Self {
        Self {
            version: Some(version),
            ..self
        }
    }

    /// Sends a request. The error is the reason for the missing answer.
    pub(crate) async fn send(&mut self, sent: &Sent<'_>) -> Result<Answer, String> {
        let request = self.request(sent)?;
        let answered = tokio::time::timeout(LIMIT, self.answered(request)).await;
        answered.unwrap_or_else(|_| Err(self.silent()))
    }

    /// Sends independent requests at once: each has a connection of its own, and one request to the API server opens
    /// all of them. The answers have the order of the requests.
    pub(crate) async fn send_all(&mut self, sent: &[Sent<'_>]) -> Vec<Result<Answer, String>> {
        let mut answers = Vec::with_capacity(sent.len());
        for sent in sent.chunks(WIDEST) {
            let connections = tokio::time::timeout(LIMIT, self.connect(sent.len())).await;
            match connections.unwrap_or_else(|_| Err(self.silent())) {
                Ok(connections) => answers.extend(self.answers(connections, sent).await),
                Err(why) => answers.extend(sent.iter().map(|_| Err(why.clone()))),
            }
        }
        answers
    }

    /// Answers on the connections. A busy program answers one request after another.
    async fn answers(
        &self,
        connections: Vec<Connection>,
        sent: &[Sent<'_>],
    ) -> Vec<Result<Answer, String>> {
        let exchanges = connections.into_iter().zip(sent).enumerate();
        let mut exchanges: FuturesUnordered<_> = exchanges
            .map(|(index, (mut connection, sent))| async move {
                let answer = match self.request(sent) {
                    Ok(request) => {
                        let answer = connection.answer(request).await;
                        answer.map_err(|why| self.failed(&why))
                    }
                    Err(why) => Err(why),
                };
                (index, answer)
            })
            .collect();
        let mut answers: Vec<_> = sent.iter().map(|_| Err(self.silent())).collect();
        while let Ok(Some((index, answer))) = tokio::time::timeout(LIMIT, exchanges.next()).await {
            if let Some(place) = answers.get_mut(index) {
                *place = answer;
            }
        }
        answers
    }

    fn silent(&self) -> String {
        format!(
            "{} did not answer within {} s",
            self.name(),
            LIMIT.as_secs()
        )
    }

    fn failed(&self, why: &str) -> String {
        format!("{} gave no answer: {why}", self.name())
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
        if let Some(version) = self.version {
            request = request.header("openstack-api-version", version);
        }
        if let Some((name, value)) = sent.login {
            // The text of the error would repeat the invalid value, which may be a secret.
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
        let mut connection = self.connection().await?;
        let answer = connection.answer(request).await;
        let answer = answer.map_err(|why| self.failed(&why))?;
        self.open = Some(connection);
        Ok(answer)
    }

    /// Open connection, or a new one: a program may close its connection after each answer.
    async fn connection(&mut self) -> Result<Connection, String> {
        if let Some(mut kept) = self.open.take()
            && kept.sender.ready().await.is_ok()
        {
            return Ok(kept);
        }
        let connection = self.connect(1).await?.pop();
        connection.ok_or_else(|| self.failed("there is no connection"))
    }

    /// `count` connections to the port, by one request to the API server.
    async fn connect(&self, count: usize) -> Result<Vec<Connection>, String> {
        let name = self.name();
        let opened = forwarded::open(self.client, self.namespace, self.pod, self.port, count).await;
        let opened = opened.map_err(|error| {
            let why = operator::words::chain(&error);
            format!("{name} cannot be forwarded (verbs get and create of pods/portforward): {why}")
        })?;
        let mut connections = Vec::with_capacity(opened.len());
        for forwarded in opened {
            let connection = Connection::from_forwarded(forwarded).await;
            connections.push(connection.map_err(|why| format!("{name}: {why}"))?);
        }
        Ok(connections)
    }
}
