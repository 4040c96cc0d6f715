//! By every way in, an object is stored so that it can be read back, or rejected.

use apiserver::ApiServer;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::local::{THINGS, call, definition_of_things, open};

const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    definition_of_things(&schema)
}

async fn send(
    server: &ApiServer,
    method: &str,
    path: &str,
    media: &str,
    body: &[u8],
) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(Full::new(Bytes::copy_from_slice(body)))
        .unwrap();
    let response = server.in_process().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// Objects within objects, so many.
fn nested(levels: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

/// A field of protobuf with bytes in it.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend_from_slice(bytes);
    out
}

/// A ControllerRevision with JSON inside, as typed clients send it.
fn controller_revision(name: &str, data: &str) -> Vec<u8> {
    let kind = [field(1, b"apps/v1"), field(2, b"ControllerRevision")].concat();
    let data = field(2, &field(1, data.as_bytes()));
    let object = [field(1, &field(1, name.as_bytes())), data, vec![3 << 3, 1]].concat();
    [b"k8s\0".to_vec(), field(1, &kind), field(2, &object)].concat()
}

#[tokio::test]
async fn what_is_acknowledged_is_there_when_the_file_is_opened_again_whatever_the_way_in() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("objects.db");
    let server = open(&path).await.unwrap();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(
        call(&server, "POST", definitions, &definition()).await.0,
        201
    );
    let mut stored = Vec::new();
    // Around what can be stored, around what readers take, and far beyond.
    for levels in [
        60, 110, 113, 114, 115, 116, 117, 118, 119, 120, 121, 124, 125, 126, 127, 128, 130, 300,
    ] {
        let (name, deep) = (format!("d{levels}"), nested(levels));
        let thing = format!(
            r#"{{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"NAME"}},"spec":{deep}}}"#
        );
        let named = |prefix: &str| {
            thing
                .replace("NAME", &format!("{prefix}-{name}"))
                .into_bytes()
        };
        let empty = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": format!("patched-{name}")}});
        assert_eq!(call(&server, "POST", THINGS, &empty).await.0, 201);
        let patched = format!("{THINGS}/patched-{name}");
        let add = format!(r#"[{{"op":"add","path":"/spec","value":{deep}}}]"#);
        let merge = format!(r#"{{"spec":{deep}}}"#);
        let protobuf = controller_revision(&format!("protobuf-{name}"), &deep);
        let applied = format!("{THINGS}/applied-{name}?fieldManager=test");
        let yaml = thing
            .replace("NAME", &format!("yaml-{name}"))
            .replace(',', " ,\n");
        let ways = [
            ("POST", THINGS, "application/json", named("json")),
            ("POST", THINGS, "application/yaml", yaml.into_bytes()),
            ("POST", REVISIONS, PROTOBUF, protobuf),
            (
                "PATCH",
                &patched,
                "application/json-patch+json",
                add.into_bytes(),
            ),
            (
                "PATCH",
                &patched,
                "application/merge-patch+json",
                merge.into_bytes(),
            ),
            (
                "PATCH",
                &applied,
                "application/apply-patch+yaml",
                named("applied"),
            ),
        ];
        for (method, path, media, body) in ways {
            let (code, answer) = send(&server, method, path, media, &body).await;
            match code {
                200 | 201 => stored.push((path.split('?').next().unwrap().to_owned(), answer)),
                400 | 422 if levels > 110 => {}
                _ => panic!("{method} {path} as {media}: {code} {answer}"),
            }
        }
    }
    assert!(stored.len() > 12, "{} were stored", stored.len());
    let lists = [THINGS, REVISIONS];
    let mut before = Vec::new();
    for list in lists {
        before.push(call(&server, "GET", list, &Value::Null).await.1["items"].clone());
        assert!(
            before.last().unwrap().is_array(),
            "{list} cannot be read by a client"
        );
    }
    server.close().await;
    let server = open(&path).await.unwrap();
    for (list, before) in lists.iter().zip(before) {
        assert_eq!(
            call(&server, "GET", list, &Value::Null).await.1["items"],
            before
        );
    }
    server.close().await;
}

#[tokio::test]
async fn an_object_larger_than_etcd_takes_is_rejected_and_one_grown_by_patches_too() {
    let directory = tempfile::tempdir().unwrap();
    let server = open(&directory.path().join("objects.db")).await.unwrap();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(
        call(&server, "POST", definitions, &definition()).await.0,
        201
    );
    let thing = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
    let text = "x".repeat(1 << 20);
    let (code, status) = call(&server, "POST", THINGS, &thing(json!([text, text]))).await;
    assert_eq!(
        (code, &status["message"]),
        (500, &json!("etcdserver: request is too large"))
    );
    let small = thing(json!({"a": text}));
    assert_eq!(call(&server, "POST", THINGS, &small).await.0, 201);
    let copy = br#"[{"op":"copy","from":"/spec/a","path":"/spec/b"}]"#;
    let path = format!("{THINGS}/a");
    let (code, status) = send(&server, "PATCH", &path, "application/json-patch+json", copy).await;
    assert_eq!(
        (code, &status["message"]),
        (500, &json!("etcdserver: request is too large"))
    );
    server.close().await;
}
