//! HTTP to a program of a cloud: through the API server, by a forwarded port of its Pod. That needs nothing but the
//! connection to the cluster, inside of it and outside, and no name of a Service that resolves.

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

/// The longest time for a connection, and without an answer.
const LIMIT: Duration = Duration::from_secs(5);
/// How much later than the end of a connection its reason may come.
const SOON: Duration = Duration::from_millis(100);
/// The longest answer in bytes.
const LONGEST: usize = 4 << 20;

/// The most requests that are sent at once: programs queue a hundred, and may have other clients.
const WIDEST: usize = 16;

/// A port of a Pod, to which requests are sent.
pub(crate) struct Port<'a> {
    client: &'a Client,
    namespace: &'a str,
    pod: &'a str,
    port: u16,
    open: Option<Connection>,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Why the kubelet has no connection to the port, which is more exact than that an answer is missing.
    refused: oneshot::Receiver<String>,
    /// Copies as long as the connection is there.
    _copying: Arc<Copying>,
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

impl Connection {
    /// Why there is no connection, if that is known by now.
    async fn refused(&mut self) -> Option<String> {
        let refused = tokio::time::timeout(SOON, &mut self.refused).await;
        refused.ok()?.ok()
    }

    async fn of(forwarded: Forwarded) -> Result<Self, String> {
        let (sender, connection) = http1::handshake(TokioIo::new(forwarded.stream))
            .await
            .map_err(|error| operator::words::chain(&error))?;
        // It ends with its sender, or when the port is closed. Its error is also that of the request.
        tokio::spawn(connection);
        Ok(Self {
            sender,
            refused: forwarded.refused,
            _copying: forwarded.copying,
        })
    }

    /// Sends a request, and reads the whole answer.
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
        let answered = tokio::time::timeout(LIMIT, self.answered(request)).await;
        answered.unwrap_or_else(|_| Err(self.silent()))
    }

    /// Sends requests of which none depends on another, at once: each has a connection of its own, and all of these
    /// together are one request to the API server. The answers are in the same order.
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

    /// The answers on these connections. A program that is busy answers one after the other.
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
        let mut connection = self.connection().await?;
        let answer = connection.answer(request).await;
        let answer = answer.map_err(|why| self.failed(&why))?;
        self.open = Some(connection);
        Ok(answer)
    }

    /// The open connection, or a new one: a program may close its connection after each answer.
    async fn connection(&mut self) -> Result<Connection, String> {
        if let Some(mut kept) = self.open.take()
            && kept.sender.ready().await.is_ok()
        {
            return Ok(kept);
        }
        let connection = self.connect(1).await?.pop();
        connection.ok_or_else(|| self.failed("there is no connection"))
    }

    /// Connections to the port, by one request to the API server.
    async fn connect(&self, count: usize) -> Result<Vec<Connection>, String> {
        let name = self.name();
        let opened = forwarded::open(self.client, self.namespace, self.pod, self.port, count).await;
        let opened = opened.map_err(|error| {
            let why = operator::words::chain(&error);
            format!("{name} cannot be forwarded (verbs get and create of pods/portforward): {why}")
        })?;
        let mut connections = Vec::with_capacity(opened.len());
        for forwarded in opened {
            let connection = Connection::of(forwarded).await;
            connections.push(connection.map_err(|why| format!("{name}: {why}"))?);
        }
        Ok(connections)
    }
}
