use std::sync::Arc;

use api::core::v1beta2::Machine;
use futures::StreamExt as _;
use http::{Request as Sent, Response};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::client::Body as Stream;
use kube::runtime::watcher::{self, Event};
use parking_lot::Mutex;
use serde_json::json;

use super::*;

/// Method, path, headers and body of a request.
type Seen = (String, String, Vec<String>, Value);

/// Client whose requests are recorded. `answer` makes status and text of each response from method and path.
fn answering(
    answer: impl Fn(&str, &str) -> (u16, String) + Clone + Send + Sync + 'static,
) -> (Client, Arc<Mutex<Vec<Seen>>>) {
    let seen = Arc::<Mutex<Vec<Seen>>>::default();
    let kept = Arc::clone(&seen);
    let service = tower::service_fn(move |request: Sent<Stream>| {
        let (kept, answer) = (Arc::clone(&kept), answer.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
                format!("{name}: {}", value.to_str().unwrap())
            };
            let mut headers: Vec<_> = parts.headers.iter().map(header).collect();
            headers.sort();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let (method, path) = (parts.method.to_string(), parts.uri.to_string());
            let (status, text) = answer(&method, &path);
            kept.lock().push((method, path, headers, body));
            let response = Response::builder().status(status);
            Ok::<_, kube::Error>(response.body(Stream::from(text.into_bytes())).unwrap())
        }
    });
    (Client::new(service, "default"), seen)
}

fn text(value: Value) -> (u16, String) {
    (200, value.to_string())
}

/// A macro, since the two types have nothing in common but the names of their methods.
macro_rules! requests {
    ($api:ty, $metadata:ty, $client:expr) => {{
        let maps: $api = <$api>::namespaced($client, "default");
        let secrets: $metadata = <$metadata>::namespaced($client, "default");
        let (post, apply) = (PostParams::default(), PatchParams::apply("test"));
        let change = json!({"metadata": {"labels": {"a": "b"}}});
        let plain = PatchParams::default();
        let page = ListParams::default().limit(5).labels("a=b");
        let map = ConfigMap {
            data: Some([("b".to_owned(), "1".to_owned())].into()),
            ..ConfigMap::default()
        };
        let _ = maps.get("a").await;
        let _ = maps.get_opt("a").await;
        let _ = maps.get("").await;
        let _ = maps.get_metadata_opt("a").await;
        let _ = maps.list(&page).await;
        let _ = maps.list_metadata(&page).await;
        let _ = maps.create(&post, &map).await;
        let _ = maps.replace("a", &post, &map).await;
        let _ = maps.patch("a", &plain, &Patch::Merge(&change)).await;
        let _ = maps.patch("a", &plain, &Patch::Strategic(&change)).await;
        let _ = maps.patch("a", &apply, &Patch::Apply(&map)).await;
        // Not an apply patch.
        let _ = maps.patch("a", &apply.clone().force(), &Patch::Merge(&map)).await;
        let _ = maps.patch_status("a", &plain, &Patch::Merge(&change)).await;
        let _ = maps.patch_subresource("scale", "a", &plain, &Patch::Merge(&change)).await;
        let _ = maps.patch_metadata("a", &plain, &Patch::Merge(&change)).await;
        let _ = maps.delete("a", &DeleteParams::background()).await;
        let _ = secrets.get("a").await;
        let _ = secrets.list(&page).await;
        let _ = secrets.patch("a", &plain, &Patch::Merge(&change)).await;
    }};
}

#[tokio::test]
async fn requests_are_those_of_kube() {
    let map = |_: &str, _: &str| text(json!({"metadata": {"name": "a"}, "items": []}));
    let ((ours, seen), (theirs, expected)) = (answering(map), answering(map));
    requests!(Api<ConfigMap>, Api<PartialObjectMeta<Secret>>, ours.clone());
    requests!(
        kube::Api<ConfigMap>,
        kube::Api<PartialObjectMeta<Secret>>,
        theirs.clone()
    );
    let (seen, expected) = (seen.lock(), expected.lock());
    assert_eq!(seen.len(), 17);
    assert_eq!(*seen, *expected);
}

#[tokio::test]
async fn answers_are_those_of_kube() {
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7", "continue": "more"},
        "items": [{"metadata": {"name": "a"}, "data": {"k": "v"}}, {"metadata": {"name": "b"}}],
    });
    let answers = [
        list,
        json!({"items": null, "metadata": {}}),
        json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}),
    ];
    for answer in answers {
        let answer = move |_: &str, _: &str| text(answer.clone());
        let (client, _) = answering(answer);
        let ours = Api::<ConfigMap>::all(client.clone());
        let theirs = kube::Api::<ConfigMap>::all(client);
        let params = ListParams::default();
        let (ours, theirs) = (ours.list(&params).await, theirs.list(&params).await);
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        assert_eq!(ours.types, theirs.types);
        assert_eq!(ours.metadata, theirs.metadata);
        assert_eq!(ours.items, theirs.items);
    }
}

#[tokio::test]
async fn what_is_absent_is_none_and_other_refusals_are_errors() {
    let refused = |code: u16, reason: &'static str| {
        move |_: &str, _: &str| {
            let status =
                json!({"kind": "Status", "code": code, "reason": reason, "message": "why"});
            (code, status.to_string())
        }
    };
    let maps = Api::<ConfigMap>::default_namespaced(answering(refused(404, "NotFound")).0);
    assert_eq!(maps.get_opt("a").await.unwrap(), None);
    assert!(maps.get_metadata_opt("a").await.unwrap().is_none());
    let maps = Api::<ConfigMap>::default_namespaced(answering(refused(403, "Forbidden")).0);
    for error in [
        maps.get_opt("a").await.unwrap_err(),
        maps.delete("a", &DeleteParams::default())
            .await
            .unwrap_err(),
    ] {
        let kube::Error::Api(status) = error else {
            panic!("{error}");
        };
        assert_eq!((status.code, status.message.as_str()), (403, "why"));
    }
}

fn machine(seconds: i64) -> Value {
    let reference = json!({"apiGroup": "g", "kind": "K", "name": "n"});
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "m", "namespace": "default", "resourceVersion": "5"},
        "spec": {"clusterName": "demo", "bootstrap": {"dataSecretName": "s"}, "infrastructureRef": reference,
            "deletion": {"nodeDrainTimeoutSeconds": seconds}},
    })
}

#[tokio::test]
async fn an_answer_of_another_shape_is_an_error_with_object_and_field() {
    const FIELD: &str =
        "spec.deletion.nodeDrainTimeoutSeconds: invalid value: integer `99999999999`, expected i32";
    let (client, _) = answering(|_, path| match path.ends_with("/m") {
        true => text(machine(99_999_999_999)),
        false => text(json!({"metadata": {}, "items": [machine(99_999_999_999)]})),
    });
    let machines = Api::<Machine>::namespaced(client, "default");
    let of_get = machines.get("m").await.unwrap_err();
    let of_list = machines.list(&ListParams::default()).await.unwrap_err();
    for error in [of_get, of_list] {
        assert!(matches!(error, kube::Error::SerdeError(_)), "{error:?}");
        let expected = format!("Machine default/m: {FIELD}");
        assert!(error.to_string().ends_with(&expected), "{error}");
    }
    let (client, _) = answering(|_, _| text(json!({"metadata": {}, "items": {}})));
    let machines = Api::<Machine>::namespaced(client, "default");
    let error = machines.list(&ListParams::default()).await.unwrap_err();
    let expected = "list of Machine: items: invalid type: map, expected a sequence";
    assert!(error.to_string().ends_with(expected), "{error}");
}

/// An object that cannot be decoded is missing from the list, and would count as absent once the list is complete.
#[tokio::test]
async fn a_watch_begins_anew_after_an_object_of_another_shape() {
    let asked = Arc::new(Mutex::new(0));
    let (client, _) = answering(move |_, path| {
        if path.contains("watch=true") {
            return text(json!({"type": "DELETED", "object": machine(2)}));
        }
        let mut asked = asked.lock();
        *asked += 1;
        let seconds = if *asked == 1 { 99_999_999_999 } else { 1 };
        text(json!({"metadata": {"resourceVersion": "9"}, "items": [machine(seconds)]}))
    });
    let machines = Api::<Machine>::namespaced(client, "default");
    let events = crate::watch::objects(&machines, watcher::Config::default());
    let seen: Vec<_> = events.take(6).collect().await;
    let words = |event: &watcher::Result<Event<Machine>>| match event {
        Ok(Event::Init) => "Init",
        Ok(Event::InitApply(_)) => "InitApply",
        Ok(Event::InitDone) => "InitDone",
        Ok(Event::Apply(_)) => "Apply",
        Ok(Event::Delete(_)) => "Delete",
        Err(_) => "Err",
    };
    let seen: Vec<_> = seen.iter().map(words).collect();
    assert_eq!(
        seen,
        ["Init", "Err", "Init", "InitApply", "InitDone", "Delete"]
    );
}

#[tokio::test]
async fn metadata_is_asked_for_alone() {
    let (client, seen) = answering(|_, path| match path.contains("watch=true") {
        true => text(
            json!({"type": "MODIFIED", "object": {"metadata": {"name": "s", "resourceVersion": "10"}}}),
        ),
        false => text(json!({"metadata": {"resourceVersion": "9"}, "items": []})),
    });
    let secrets = Api::<PartialObjectMeta<Secret>>::all(client);
    let events = crate::watch::metadata(&secrets, watcher::Config::default());
    let last = events.take(3).collect::<Vec<_>>().await.pop().unwrap();
    assert!(
        matches!(last, Ok(Event::Apply(secret)) if secret.metadata.name.as_deref() == Some("s"))
    );
    let seen = seen.lock();
    let accepted = |(_, _, headers, _): &Seen| {
        headers.iter().any(|header| {
            header.starts_with("accept: ") && header.contains("PartialObjectMetadata")
        })
    };
    assert!(seen.len() >= 2 && seen.iter().all(accepted), "{seen:?}");
}
