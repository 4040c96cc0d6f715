//! A server of webhooks for both sides: what a hook answers is the last part of its path, and what it was asked is kept
//! for the step that caused it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The server, and what it was asked.
pub(crate) struct Hooks {
    /// `https://127.0.0.1:PORT`.
    pub(crate) url: String,
    /// The authority, as `caBundle`.
    pub(crate) ca: String,
    /// An authority that did not sign the certificate.
    other_ca: String,
    asked: Asked,
}

type Asked = Arc<Mutex<Vec<Value>>>;

impl Hooks {
    pub(crate) async fn start() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "hooks");
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap().pem();
        let other_ca = {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(DnType::CommonName, "other");
            params.self_signed(&key).unwrap().pem()
        };
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let names = vec!["127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let tls = apiserver::server_config(&certificate.pem(), &key.serialize_pem(), None).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let asked = Asked::default();
        let router = Router::new()
            .route("/{hook}", post(answer))
            .with_state(Arc::clone(&asked));
        tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(tls);
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, router) = (acceptor.clone(), router.clone());
                tokio::spawn(async move {
                    // Who does not trust us goes away again.
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = TowerToHyperService::new(router);
                    let builder = Builder::new(TokioExecutor::new());
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            url,
            ca: STANDARD.encode(ca),
            other_ca: STANDARD.encode(other_ca),
            asked,
        }
    }

    /// What was asked since the last time, in an order of its own: validating hooks are asked all at the same time.
    pub(crate) fn asked(&self) -> Vec<Value> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.sort_by_cached_key(|review| review["hook"].to_string());
        asked
    }
}

async fn answer(State(asked): State<Asked>, Path(hook): Path<String>, body: String) -> Response {
    let review: Value = serde_json::from_str(&body).unwrap_or_default();
    // When a server converts is its own affair.
    if review["kind"] == "ConversionReview" {
        return conversion(&review).to_string().into_response();
    }
    asked
        .lock()
        .unwrap()
        .push(json!({"hook": hook, "review": review}));
    match hook.as_str() {
        "broken" => return (StatusCode::INTERNAL_SERVER_ERROR, "it broke").into_response(),
        "absent" => return StatusCode::NOT_FOUND.into_response(),
        "nonsense" => return "{}".into_response(),
        "slow" => tokio::time::sleep(Duration::from_secs(60)).await,
        _ => {}
    }
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    let more = admission(&hook, &review["request"]);
    response
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().cloned().unwrap_or_default());
    let version = &review["apiVersion"];
    json!({"kind": "AdmissionReview", "apiVersion": version, "response": response})
        .to_string()
        .into_response()
}

/// What an admission hook says besides that it allows.
fn admission(hook: &str, request: &Value) -> Value {
    let patch = |operations: Value| json!({"patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string())});
    let label = |name: &str, value: &str| {
        let path = format!("/metadata/labels/{name}");
        match request["object"]["metadata"]["labels"] {
            Value::Null => {
                patch(json!([{"op": "add", "path": "/metadata/labels", "value": {name: value}}]))
            }
            _ => patch(json!([{"op": "add", "path": path, "value": value}])),
        }
    };
    match hook {
        "deny" => {
            json!({"allowed": false, "status": {"message": "not this one", "reason": "Because", "code": 418}})
        }
        "deny-silently" => json!({"allowed": false}),
        "deny-with-reason" => json!({"allowed": false, "status": {"reason": "Forbidden"}}),
        "deny-with-details" => {
            json!({"allowed": false, "status": {"message": "see the details", "code": 422, "details": {"name": "x", "causes": [{"field": "data.k", "message": "bad"}]}}})
        }
        "warn" => json!({"warnings": ["mind the gap", "and the \"door\""]}),
        "label" => label("hooked", "yes"),
        "label-too" => label("second", "yes"),
        // Counts how often it was asked about the object.
        "count" => {
            let seen = request["object"]["metadata"]["labels"]["count"].as_str();
            let seen: u32 = seen.and_then(|count| count.parse().ok()).unwrap_or(0);
            label("count", &(seen + 1).to_string())
        }
        "nothing" => patch(json!([])),
        "bad-label" => label("hooked", "no!"),
        "unknown-field" => patch(json!([{"op": "add", "path": "/nothing", "value": 1}])),
        "bad-path" => patch(json!([{"op": "remove", "path": "/data/none"}])),
        "replicas" => patch(json!([{"op": "replace", "path": "/spec/replicas", "value": 7}])),
        "size" => patch(json!([{"op": "replace", "path": "/spec/size", "value": 0}])),
        "no-type" => json!({"patch": STANDARD.encode("[]")}),
        "other-uid" => json!({"uid": "other"}),
        _ => json!({}),
    }
}

/// Converts by counting in other units: `spec.size` of v1 is ten times that of v1beta1. `spec.mode` makes it fail.
fn conversion(review: &Value) -> Value {
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let convert = |object: &Value| {
        let mut object = object.clone();
        object["apiVersion"] = Value::from(to);
        if let Some(size) = object["spec"]["size"].as_i64() {
            let up = to.ends_with("/v1");
            object["spec"]["size"] = Value::from(if up { size * 10 } else { size / 10 });
        }
        match object["spec"]["mode"].as_str().unwrap_or_default() {
            "renames" => object["metadata"]["name"] = Value::from("other"),
            "labels" => object["metadata"]["labels"] = json!({"converted": "to"}),
            "kind" => object["kind"] = Value::from("Other"),
            "version" => object["apiVersion"] = Value::from("example.com/v9"),
            _ => {}
        }
        object
    };
    let objects = request["objects"].as_array().cloned().unwrap_or_default();
    let mut objects: Vec<Value> = objects.iter().map(convert).collect();
    let mut result = json!({"status": "Success"});
    let is = |mode: &str| objects.iter().any(|object| object["spec"]["mode"] == mode);
    if is("fails") {
        result = json!({"status": "Failure", "message": "cannot be converted"});
    } else if is("less") {
        objects.clear();
    }
    json!({
        "kind": "ConversionReview", "apiVersion": review["apiVersion"],
        "response": {"uid": request["uid"], "result": result, "convertedObjects": objects},
    })
}

/// The variables `$webhook`, `$ca` and `$otherCa`.
pub(crate) fn variables(hooks: &Hooks, variables: &mut Map<String, Value>) {
    variables.insert("webhook".to_owned(), Value::from(hooks.url.as_str()));
    variables.insert("ca".to_owned(), Value::from(hooks.ca.as_str()));
    variables.insert("otherCa".to_owned(), Value::from(hooks.other_ca.as_str()));
}
