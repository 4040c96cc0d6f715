//! Keystone behind a socket with every fault: each answer ends as in the table, and reveals nothing of a token.

use std::sync::Arc;
use std::time::Duration;

use axum::response::IntoResponse as _;
use http::HeaderValue;
use jiff::Timestamp;
use keystone_auth::keystone::Http;
use keystone_auth::tokens::{self, Tokens};
use keystone_auth::webhook::Webhook;
use keystone_auth::{Metrics, user};
use openstack::transport::{HttpTransport, Trust};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const TOKEN: &str = "secret-token";

/// Answer on a connection, to any request.
#[derive(Clone)]
enum Says {
    /// These bytes, and then the end.
    Text(String),
    /// Nothing, for as long as it stays.
    Nothing,
}

/// The address of a server that says the same to everybody.
async fn server(says: Says) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let says = says.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                match says {
                    Says::Text(text) => {
                        let _ = stream.write_all(text.as_bytes()).await;
                    }
                    Says::Nothing => std::future::pending().await,
                }
            });
        }
    });
    format!("http://{address}/v3")
}

/// Status of the webhook's answer, true for a Retry-After, and the text.
async fn answer(says: Says) -> (u16, bool, String) {
    // Another one may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let trust = Trust {
        verify: true,
        ca_pem: None,
        client_certificate: None,
    };
    let transport = Arc::new(HttpTransport::new(&trust).unwrap());
    // Half a second is long for what answers at all.
    let (time, agent) = (Duration::from_millis(500), HeaderValue::from_static("test"));
    let url = server(says).await;
    let keystone = Http::new(url, transport, time, &agent, Metrics::default()).unwrap();
    let options = tokens::Options::default();
    let tokens = Tokens::new(
        Arc::new(keystone),
        options,
        Timestamp::now,
        Metrics::default(),
    );
    let users = user::Options::default();
    let webhook = Webhook::new(tokens, users, Vec::new(), Metrics::default());
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": TOKEN}});
    let answer = webhook.answer(body.to_string().as_bytes()).await;
    let text = String::from_utf8(answer.body.clone()).unwrap();
    let response = answer.into_response();
    let retry = response.headers().contains_key("retry-after");
    (response.status().as_u16(), retry, text)
}

fn http(status: &str, headers: &str, body: &str) -> Says {
    let length = body.len();
    Says::Text(format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    ))
}

fn fault(status: &str) -> Says {
    let code: u16 = status[..3].parse().unwrap();
    let error = json!({"code": code, "title": "x", "message": TOKEN});
    http(status, "", &json!({"error": error}).to_string())
}

fn token(more: &Value) -> String {
    let user = json!({"id": "u1", "name": "alice", "domain": {"id": "d", "name": "D"}, "OS-FEDERATION": {"groups": []}});
    let mut token = json!({"user": user, "project": {"id": "p1", "name": "demo"}, "expires_at": "2999-01-01T00:00:00Z"});
    for (key, value) in more.as_object().unwrap() {
        token[key] = value.clone();
    }
    json!({"token": token}).to_string()
}

#[tokio::test]
async fn each_answer_of_keystone_ends_in_what_the_table_says() {
    let good = token(&json!({}));
    let cut = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}",
        good.len(),
        &good[..good.len() / 2]
    );
    let endless = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\nx: {}",
        "y".repeat(3000)
    );
    let large = format!("\"{}\"", "y".repeat(2 << 20));
    let ended = token(&json!({"expires_at": "2001-01-01T00:00:00Z"}));
    let proxy = format!("<html>{TOKEN}</html>");
    let retry = "retry-after: 7\r\n";
    for (what, says, status, words) in [
        (
            "all is well",
            http("200 OK", "", &good),
            200,
            "\"authenticated\":true",
        ),
        ("slow", Says::Nothing, 503, "no answer within"),
        ("closed", Says::Text(String::new()), 503, "Keystone: "),
        (
            "half of the headers",
            Says::Text(endless),
            503,
            "Keystone: ",
        ),
        (
            "no HTTP",
            Says::Text(format!("{TOKEN}\n")),
            503,
            "Keystone: ",
        ),
        ("half of the body", Says::Text(cut), 503, "Keystone: "),
        (
            "a large body",
            http("200 OK", "", &large),
            503,
            "the answer of Keystone",
        ),
        ("HTML", http("200 OK", "", &proxy), 503, "is not JSON"),
        ("no body", http("200 OK", "", ""), 503, "is not JSON"),
        (
            "300",
            http("300 Multiple Choices", "", "{}"),
            503,
            "answers 300",
        ),
        (
            "302",
            http("302 Found", "location: http://127.0.0.1:1/\r\n", ""),
            503,
            "Keystone",
        ),
        (
            "401",
            fault("401 Unauthorized"),
            200,
            "does not accept the token",
        ),
        ("403", fault("403 Forbidden"), 200, "forbids the token"),
        (
            "404",
            fault("404 Not Found"),
            200,
            "does not accept the token",
        ),
        (
            "404 of a proxy",
            http("404 Not Found", "", &proxy),
            503,
            "answers 404",
        ),
        (
            "429",
            http("429 Too Many Requests", retry, "{}"),
            503,
            "answers 429",
        ),
        (
            "500",
            fault("500 Internal Server Error"),
            503,
            "answers 500",
        ),
        (
            "502 of a proxy",
            http("502 Bad Gateway", "", &proxy),
            503,
            "answers 502",
        ),
        (
            "of another token",
            http("200 OK", "x-subject-token: other\r\n", &good),
            503,
            "is about another token",
        ),
        (
            "ended",
            http("200 OK", "", &ended),
            200,
            "has expired, by the clock",
        ),
        (
            "no user",
            http("200 OK", "", &token(&json!({"user": {}}))),
            503,
            "the id of the user is empty",
        ),
    ] {
        let (answered, retry, text) = answer(says).await;
        assert_eq!(answered, status, "{what}: {text}");
        assert!(text.contains(words), "{what}: {text}");
        assert!(!text.contains(TOKEN), "{what}: {text}");
        // An API server would ask again and again, and its client wait for all attempts.
        assert!(!retry, "{what}");
    }
}
