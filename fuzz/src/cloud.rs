//! Targets for the simulated [`Cloud`]: each answer is one of the service, and the cloud keeps answering.

use std::cell::OnceCell;

use axum::body::Body;
use http::{HeaderValue, Request, StatusCode};
use serde_json::{Value, json};
use simulator::cloud::{Cloud, Options};
use tower::ServiceExt;

use crate::requests::{parts, read};

/// Sends up to eight requests, in the form of [`parts`], to a new cloud. `$1` stands for the id in the first answer,
/// and so on; `$p` for the project. Header `as: admin` sends the token of an administrator in place of a member's,
/// `as: nobody` no token.
pub fn request(data: &[u8]) {
    run(async |client: &Client| {
        let mut ids: Vec<String> = Vec::new();
        for part in parts(data) {
            let text = replaced(part, &ids, client);
            let answer = client.play(&text).await;
            ids.push(answer.as_ref().and_then(id_of).unwrap_or_default());
        }
    });
}

/// Lists objects: the first byte selects the list, the others are the query string.
pub fn query(data: &[u8]) {
    let Some((first, query)) = data.split_first() else {
        return;
    };
    let lists = [
        "/compute/v2.1/servers/detail",
        "/compute/v2.1/flavors/detail",
        "/compute/v2.1/os-keypairs",
        "/network/v2.0/networks",
        "/network/v2.0/ports",
        "/network/v2.0/security-group-rules",
        "/image/v2/images",
        "/volume/v3/$p/volumes/detail",
        "/volume/v3/$p/types",
        "/load-balancer/v2.0/lbaas/loadbalancers",
        "/identity/v3/projects",
        "/placement/resource_providers",
        "/_simulator/log",
    ];
    run(async |client: &Client| {
        let list = lists[usize::from(*first) % lists.len()].replace("$p", &client.project);
        // Other bytes are refused by the HTTP parser.
        let query: String = query.iter().map(|byte| visible(*byte)).collect();
        for token in [&client.member, &client.admin] {
            let request = Request::get(format!("{list}?{query}")).header("x-auth-token", token);
            if let Ok(request) = request.body(Body::empty()) {
                client.send(request).await;
            }
        }
    });
}

fn visible(byte: u8) -> String {
    match byte {
        b'!'..=b'~' if !b"\"#<>\\^`{|}".contains(&byte) => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    }
}

struct Client {
    router: axum::Router,
    member: String,
    admin: String,
    project: String,
}

thread_local! {
    static RUNTIME: OnceCell<tokio::runtime::Runtime> = const { OnceCell::new() };
}

/// Runs a target on a new cloud, and verifies that the cloud still answers.
fn run(target: impl AsyncFnOnce(&Client)) {
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_time().build().expect("a runtime")
        });
        runtime.block_on(async {
            let cloud = Cloud::open(Options::default()).await.expect("a cloud");
            let mut client = Client {
                router: cloud.router("http://127.0.0.1:1"),
                member: String::new(),
                admin: String::new(),
                project: String::new(),
            };
            (client.admin, _) = client.log_in("admin").await;
            (client.member, client.project) = client.log_in("demo").await;
            target(&client).await;
            let (status, resources) = client.send(get("/_simulator/resources")).await;
            assert_eq!(status, 200);
            assert!(resources.is_some_and(|body| body["resources"].is_object()));
        });
    });
}

fn get(path: &str) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = path.parse().expect("a path");
    request
}

impl Client {
    async fn log_in(&self, name: &str) -> (String, String) {
        let domain = json!({"name": "Default"});
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {
                "name": name, "domain": domain, "password": "secret"}}},
            "scope": {"project": {"name": name, "domain": domain}}}});
        let request = Request::post("/identity/v3/auth/tokens").body(Body::from(body.to_string()));
        let answer = self.router.clone().oneshot(request.expect("a request"));
        let answer = answer.await.unwrap_or_else(|never| match never {});
        let token = answer.headers()["x-subject-token"]
            .to_str()
            .map(str::to_owned);
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
        let body: Value = serde_json::from_slice(&body.expect("a body")).expect("JSON");
        let project = body["token"]["project"]["id"].as_str().unwrap_or_default();
        (token.expect("a token"), project.to_owned())
    }

    /// Sends a request in the form of [`read`]; `None` if the text is no request.
    async fn play(&self, text: &[u8]) -> Option<Value> {
        let mut request = read(text)?.map(Body::from);
        // Injected faults and delays are no finding.
        if request.uri().path().starts_with("/_simulator/faults") {
            return None;
        }
        let account = request.headers_mut().remove("as");
        let token = match account.as_ref().map(HeaderValue::as_bytes) {
            Some(b"admin") => Some(&self.admin),
            Some(b"nobody") => None,
            _ => Some(&self.member),
        };
        if let Some(token) = token.and_then(|token| HeaderValue::from_str(token).ok()) {
            request.headers_mut().entry("x-auth-token").or_insert(token);
        }
        self.send(request).await.1
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, Option<Value>) {
        let asked = format!("{} {}", request.method(), request.uri());
        let answer = self.router.clone().oneshot(request).await;
        let answer = answer.unwrap_or_else(|never| match never {});
        let status = answer.status();
        assert!(
            !status.is_server_error() || status == 501,
            "{asked}: {status}"
        );
        let json = answer.headers().get("content-type").is_some_and(|value| {
            value
                .to_str()
                .is_ok_and(|value| value.starts_with("application/json"))
        });
        let body = axum::body::to_bytes(answer.into_body(), 64 << 20).await;
        let body = body.expect("a body in memory");
        let value = serde_json::from_slice(&body).ok();
        assert!(
            !json || body.is_empty() || value.is_some(),
            "{asked}: no JSON"
        );
        (status, value)
    }
}

/// First id in an answer: of the object, of the object inside, or of the first one in a list.
fn id_of(answer: &Value) -> Option<String> {
    let inner = answer.as_object()?.values().next()?;
    let places = [answer.get("id"), inner.get("id"), inner.pointer("/0/id")];
    let found = places.into_iter().flatten().find_map(Value::as_str);
    found.map(str::to_owned)
}

fn replaced(text: &[u8], ids: &[String], client: &Client) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        let value = match (byte, rest.peek()) {
            (b'$', Some(b'p')) => Some(&client.project),
            (b'$', Some(digit @ b'1'..=b'8')) => ids.get(usize::from(digit - b'1')),
            _ => None,
        };
        match value {
            Some(value) => {
                out.extend_from_slice(value.as_bytes());
                rest.next();
            }
            None => out.push(byte),
        }
    }
    out
}
