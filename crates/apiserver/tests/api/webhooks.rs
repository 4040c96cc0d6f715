//! Webhooks: admission and conversion by a server of the test.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::*;

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// Server of webhooks that answers every review by a function, and records the reviews.
struct Hook {
    port: u16,
    ca: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Hook {
    /// `respond` makes the `response` of a request; `uid` is added. `names` are those of the certificate.
    async fn start(name: &str, respond: fn(&Value) -> Value) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let tls = apiserver::server_config(&certificate.pem(), &key.serialize_pem(), None).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, kept) = (TlsAcceptor::from(Arc::clone(&tls)), Arc::clone(&kept));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request: Request<Incoming>| {
                        let kept = Arc::clone(&kept);
                        async move {
                            let body = request.into_body().collect().await?.to_bytes();
                            let mut review: Value = serde_json::from_slice(&body).unwrap();
                            let request = review["request"].take();
                            let mut response = respond(&request);
                            response["uid"] = request["uid"].clone();
                            review["response"] = response;
                            kept.lock().unwrap().push(request);
                            let body = Full::new(Bytes::from(review.to_string()));
                            Ok::<_, hyper::Error>(Response::new(body))
                        }
                    });
                    let builder = Builder::new(TokioExecutor::new());
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            port,
            ca: STANDARD.encode(ca),
            asked,
        }
    }

    fn client_config(&self) -> Value {
        json!({"url": format!("https://127.0.0.1:{}/x", self.port), "caBundle": self.ca})
    }

    fn configuration(&self, kind: &str, operations: &[&str]) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "c"},
            "webhooks": [{
                "name": "h.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "clientConfig": self.client_config(),
                "rules": [{"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["configmaps", "widgets"]}],
            }],
        })
    }

    fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn patch_of(operations: &Value) -> Value {
    let patch = STANDARD.encode(operations.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

#[tokio::test]
async fn a_validating_hook_refuses_what_it_does_not_like_and_leaves_no_trace() {
    let server = server().await;
    let hook = Hook::start("127.0.0.1", |request| {
        let bad = request["object"]["data"]["k"] == "bad";
        json!({"allowed": !bad, "status": {"message": "k is bad", "code": 403, "reason": "Forbidden"}})
    })
    .await;
    let configuration = hook.configuration("ValidatingWebhookConfiguration", &["CREATE", "UPDATE"]);
    assert_eq!(post(&server, VALIDATING, &configuration).await.0, 201);
    let (code, status) = post(&server, MAPS, &config_map("a", "bad")).await;
    assert_eq!(code, 403, "{status}");
    assert_eq!(
        status["message"],
        "admission webhook \"h.example.com\" denied the request: k is bad"
    );
    assert_eq!(get(&server, &format!("{MAPS}/a")).await.0, 404);
    let (code, created) = post(&server, MAPS, &config_map("a", "good")).await;
    assert_eq!(code, 201, "{created}");
    let worse = json!({"data": {"k": "bad"}});
    let path = format!("{MAPS}/a");
    assert_eq!(patch(&server, &path, MERGE, &worse).await.0, 403);
    assert_eq!(get(&server, &path).await.1, created);
    let asked = hook.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2]["oldObject"]["data"]["k"], "good");
    assert_eq!(delete(&server, &path).await.0, 200);
    assert!(hook.asked().is_empty());
}

#[tokio::test]
async fn what_a_mutating_hook_sets_is_validated_and_nobodys() {
    let server = server().await;
    let hook = Hook::start("127.0.0.1", |request| {
        let size = request["object"]["spec"]["size"].as_i64().unwrap_or(0);
        patch_of(&json!([{"op": "add", "path": "/spec/size", "value": size - 3}]))
    })
    .await;
    assert_eq!(post(&server, CRDS, &widgets()).await.0, 201);
    let configuration = hook.configuration("MutatingWebhookConfiguration", &["CREATE"]);
    assert_eq!(post(&server, MUTATING, &configuration).await.0, 201);
    let mut wanted = widget("w");
    wanted["spec"]["size"] = json!(8);
    let (code, created) = post(&server, WIDGETS, &wanted).await;
    assert_eq!(
        (code, &created["spec"]["size"]),
        (201, &json!(5)),
        "{created}"
    );
    // The default of 3 is filled in before the hook sees the object; nothing is below what the schema allows.
    let (code, status) = post(&server, WIDGETS, &widget("x")).await;
    assert_eq!(code, 422, "{status}");
    let asked = hook.asked();
    assert_eq!(asked[1]["object"]["spec"]["size"], 3);
    assert_eq!(asked[0]["object"]["metadata"].get("uid"), None);
}

#[tokio::test]
async fn a_hook_that_cannot_be_called_fails_or_is_passed_over() {
    let server = server().await;
    let hook = Hook::start("elsewhere.example.com", |_| json!({"allowed": true})).await;
    let mut configuration = hook.configuration("ValidatingWebhookConfiguration", &["CREATE"]);
    assert_eq!(post(&server, VALIDATING, &configuration).await.0, 201);
    let (code, status) = post(&server, MAPS, &config_map("a", "1")).await;
    assert_eq!(code, 500);
    let message = status["message"].as_str().unwrap();
    let begin = "Internal error occurred: failed calling webhook \"h.example.com\": failed to call webhook: Post \"https://127.0.0.1:";
    assert!(message.starts_with(begin), "{message}");
    assert!(
        message.contains("tls: failed to verify certificate: x509:"),
        "{message}"
    );
    configuration["webhooks"][0]["failurePolicy"] = json!("Ignore");
    let path = format!("{VALIDATING}/c");
    let (_, stored) = get(&server, &path).await;
    configuration["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    assert_eq!(put(&server, &path, &configuration).await.0, 200);
    assert_eq!(post(&server, MAPS, &config_map("a", "1")).await.0, 201);
}

#[tokio::test]
async fn a_hook_behind_a_service_is_found_through_its_endpoints() {
    let server = server().await;
    let hook = Hook::start(
        "hook.default.svc",
        |_| json!({"allowed": true, "warnings": ["seen"]}),
    )
    .await;
    let service =
        json!({"metadata": {"name": "hook"}, "spec": {"ports": [{"name": "https", "port": 443}]}});
    let services = "/api/v1/namespaces/default/services";
    assert_eq!(post(&server, services, &service).await.0, 201);
    let mut configuration = hook.configuration("ValidatingWebhookConfiguration", &["CREATE"]);
    configuration["webhooks"][0]["clientConfig"] = json!({
        "service": {"namespace": "default", "name": "hook", "path": "/x"}, "caBundle": hook.ca,
    });
    assert_eq!(post(&server, VALIDATING, &configuration).await.0, 201);
    let (_, status) = post(&server, MAPS, &config_map("a", "1")).await;
    let message = status["message"].as_str().unwrap();
    assert!(
        message.ends_with("no endpoints available for service \"hook\""),
        "{message}"
    );
    let slice = json!({
        "addressType": "IPv4", "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "ports": [{"name": "https", "port": hook.port}], "endpoints": [{"addresses": ["127.0.0.1"]}],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let (code, created) = post(&server, slices, &slice).await;
    assert_eq!(code, 201, "{created}");
    let response = send(
        &server,
        Method::POST,
        MAPS,
        &[("content-type", "application/json")],
        config_map("a", "1").to_string(),
    )
    .await;
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["warning"], "299 - \"seen\"");
}

#[tokio::test]
async fn objects_are_converted_by_the_webhook_of_their_definition_once() {
    let server = server().await;
    let hook = Hook::start("127.0.0.1", |request| {
        let to = &request["desiredAPIVersion"];
        let objects = request["objects"].as_array().unwrap().iter();
        let objects: Vec<Value> = objects
            .map(|object| {
                let mut object = object.clone();
                object["apiVersion"] = to.clone();
                let size = object["spec"]["size"].as_i64().unwrap_or(0);
                let up = to == "example.org/v1";
                object["spec"]["size"] = json!(if up { size * 10 } else { size / 10 });
                object
            })
            .collect();
        json!({"result": {"status": "Success"}, "convertedObjects": objects})
    })
    .await;
    let mut definition = widgets();
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": hook.client_config(), "conversionReviewVersions": ["v1"],
    }});
    let (code, created) = post(&server, CRDS, &definition).await;
    assert_eq!(code, 201, "{created}");
    let older = "/apis/example.org/v1beta1/namespaces/default/widgets";
    for name in ["a", "b", "c"] {
        let mut widget = widget(name);
        widget["spec"]["size"] = json!(50);
        assert_eq!(post(&server, WIDGETS, &widget).await.0, 201);
    }
    hook.asked();
    let (code, list) = get(&server, older).await;
    assert_eq!(
        (code, &list["items"][2]["spec"]["size"]),
        (200, &json!(5)),
        "{list}"
    );
    let asked = hook.asked();
    assert_eq!(asked.len(), 1, "one call for the list");
    assert_eq!(asked[0]["objects"].as_array().unwrap().len(), 3);
    assert_eq!(get(&server, older).await.1, list);
    assert!(hook.asked().is_empty(), "what is known is not asked again");
    let bigger = json!({"spec": {"size": 7}});
    let (code, created) = patch(&server, &format!("{older}/a"), MERGE, &bigger).await;
    assert_eq!(
        (code, &created["spec"]["size"]),
        (200, &json!(7)),
        "{created}"
    );
    let (_, stored) = get(&server, &format!("{WIDGETS}/a")).await;
    assert_eq!(stored["spec"]["size"], 70);
}
