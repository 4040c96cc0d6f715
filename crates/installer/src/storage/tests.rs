use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use apiserver::ApiServer;
use http::{Method, Request, Response};
use kube::api::PostParams;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use tower::ServiceExt as _;

use super::*;

const NAME: &str = "widgets.example.org";

fn definition(stored: &str) -> CustomResourceDefinition {
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == stored,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [version("v1"), version("v2")],
        },
    });
    serde_json::from_value(definition).unwrap()
}

async fn server() -> ApiServer {
    let options = apiserver::Options {
        hooks: Arc::new(apiserver::NoHooks),
        ..apiserver::Options::default()
    };
    ApiServer::open(options).await.unwrap()
}

fn definitions(client: &Client) -> Api<CustomResourceDefinition> {
    Api::all(client.clone())
}

/// Writes the definition with this version as the one that is stored, and returns what has to be rewritten then.
async fn store_in(client: &Client, version: &str) -> Option<Outdated> {
    let params = PatchParams::apply("test").force();
    let patch = Patch::Apply(definition(version));
    definitions(client)
        .patch(NAME, &params, &patch)
        .await
        .unwrap();
    Outdated::from_definition(&definitions(client).get(NAME).await.unwrap())
}

fn widgets(client: &Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "example.org".to_owned(),
        version: "v1".to_owned(),
        api_version: "example.org/v1".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
    };
    Api::namespaced_with(client.clone(), "default", &resource)
}

async fn create(client: &Client, name: &str) {
    let widget = json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}});
    let widget = serde_json::from_value(widget).unwrap();
    let created = widgets(client)
        .create(&PostParams::default(), &widget)
        .await;
    created.unwrap();
}

/// Names, revisions and specs.
async fn all(client: &Client) -> Vec<(String, Option<String>, Value)> {
    let list = widgets(client).list(&ListParams::default()).await.unwrap();
    let rows = list.items.into_iter().map(|it| {
        let spec = it.data["spec"].clone();
        (it.name_any(), it.metadata.resource_version, spec)
    });
    rows.collect()
}

async fn stored(client: &Client) -> Vec<String> {
    let definition = definitions(client).get(NAME).await.unwrap();
    definition.status.unwrap().stored_versions.unwrap()
}

#[tokio::test]
async fn each_object_is_written_once_unchanged_page_by_page_and_then_the_versions_are_cleared() {
    let server = server().await;
    let client = Client::new(server.in_process(), "default");
    assert_eq!(store_in(&client, "v1").await, None);
    for number in 0..7 {
        create(&client, &format!("w{number}")).await;
    }
    let kind = store_in(&client, "v2").await.unwrap();
    assert_eq!(kind.words(), ["widgets.example.org (v1)"]);
    let before = all(&client).await;
    let lines = Mutex::new(Vec::new());
    let say = |line: &str| lines.lock().push(line.to_owned());
    assert_eq!(of_kind(&client, &kind, 3, &say).await.unwrap(), 7);
    let pages = [
        "widgets.example.org: 3 objects written, and there are more",
        "widgets.example.org: 6 objects written, and there are more",
    ];
    assert_eq!(*lines.lock(), pages);
    let after = all(&client).await;
    for (before, after) in before.iter().zip(&after) {
        assert_ne!(before.1, after.1, "{} is written", before.0);
        assert_eq!((&before.0, &before.2), (&after.0, &after.2));
    }
    assert_eq!(stored(&client).await, ["v2"]);
    let definition = definitions(&client).get(NAME).await.unwrap();
    assert_eq!(Outdated::from_definition(&definition), None);
    // Interrupted before the versions were cleared: nothing is written twice.
    rewrite(&client, &[kind], &|_: &str| {}).await.unwrap();
    assert_eq!(all(&client).await, after);
}

/// A client of `server`; `before` is called with the number of each PATCH before it is sent.
fn disturbed<F>(
    server: &ApiServer,
    before: impl Fn(usize) -> F + Clone + Send + Sync + 'static,
) -> Client
where
    F: Future<Output = ()> + Send,
{
    let inner = server.in_process();
    let count = Arc::new(AtomicUsize::new(0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, count, before) = (inner.clone(), Arc::clone(&count), before.clone());
        async move {
            if request.method() == Method::PATCH {
                before(count.fetch_add(1, Ordering::Relaxed)).await;
            }
            let answer: Result<Response<_>, _> = inner.oneshot(request).await;
            answer
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn an_object_that_others_change_is_tried_again_and_one_that_is_gone_is_left_out() {
    let server = server().await;
    let client = Client::new(server.in_process(), "default");
    store_in(&client, "v1").await;
    for name in ["a", "b", "c"] {
        create(&client, name).await;
    }
    let kind = store_in(&client, "v2").await.unwrap();
    let others = client.clone();
    let client = disturbed(&server, move |number| {
        let others = widgets(&others);
        async move {
            let grown = Patch::Merge(json!({"spec": {"size": 2}}));
            match number {
                0 => drop(
                    others
                        .patch("a", &PatchParams::default(), &grown)
                        .await
                        .unwrap(),
                ),
                2 => others.delete("b", &Default::default()).await.unwrap(),
                _ => {}
            }
        }
    });
    rewrite(&client, &[kind], &|_: &str| {}).await.unwrap();
    let left = all(&client).await.into_iter();
    let left: Vec<_> = left
        .map(|(name, _, spec)| (name, spec["size"].clone()))
        .collect();
    assert_eq!(
        left,
        [("a".to_owned(), json!(2)), ("c".to_owned(), json!(1))]
    );
    assert_eq!(stored(&client).await, ["v2"]);
}

#[tokio::test]
async fn a_version_that_is_written_again_is_not_cleared_and_the_error_names_the_definition() {
    let server = server().await;
    let client = Client::new(server.in_process(), "default");
    store_in(&client, "v1").await;
    create(&client, "a").await;
    let kind = store_in(&client, "v2").await.unwrap();
    store_in(&client, "v1").await;
    let error = rewrite(&client, &[kind], &|_: &str| {}).await.unwrap_err();
    let words = error.to_string();
    assert!(
        words.contains("`upgrade apply` goes on with them: widgets.example.org: the definition has been changed"),
        "{words}"
    );
    assert_eq!(stored(&client).await, ["v1", "v2"]);
}

#[test]
fn only_a_webhook_that_cannot_be_called_is_waited_for() {
    let error = |code: u16, message: &str| {
        let status = json!({"kind": "Status", "status": "Failure", "code": code, "message": message, "reason": ""});
        let status: kube::core::Status = serde_json::from_value(status).unwrap();
        anyhow::Error::from(kube::Error::Api(Box::new(status))).context("cannot write a")
    };
    for (code, message, expected) in [
        (
            500,
            "Internal error occurred: failed calling webhook \"a.b\": failed to call webhook: service \"s\" not found",
            true,
        ),
        (
            500,
            "conversion webhook for b/v1, Kind=C failed: Post \"https://s.n.svc:443/convert\": no such host",
            true,
        ),
        (500, "etcdserver: request timed out", false),
        (
            403,
            "admission webhook \"a.b\" denied the request: no",
            false,
        ),
    ] {
        assert_eq!(is_unreachable(&error(code, message)), expected, "{message}");
    }
    assert!(!is_unreachable(&anyhow::anyhow!("a webhook")));
}
