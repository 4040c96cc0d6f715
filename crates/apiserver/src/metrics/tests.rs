use std::time::Duration;

use http::Method;

use super::{Durations, Labels};
use crate::options::Options;
use crate::request::path::target;
use crate::request::query::Query;
use crate::server::ApiServer;

#[test]
fn a_duration_counts_in_all_buckets_whose_bound_it_does_not_exceed() {
    let mut durations = Durations::default();
    durations.observe(0.03);
    durations.observe(1000.0);
    assert_eq!((durations.count, durations.buckets[1]), (2, 0));
    assert_eq!((durations.buckets[2], durations.buckets[23]), (1, 1));
}

#[tokio::test]
async fn labels_contain_served_resources_only() {
    let server = ApiServer::open(Options::default()).await.unwrap();
    let core = server.core();
    let label = |method: Method, path: &str, query: Option<&str>| {
        let labels = Labels::for_route(
            &core.store.registry(),
            &target(path).route,
            &method,
            &Query::parse(query),
        );
        (labels.verb, labels.resource, labels.scope)
    };
    let pods = "/api/v1/namespaces/a/pods";
    let owned = |verb, resource: &str, scope| (verb, resource.to_owned(), scope);
    for (method, path, query, expected) in [
        (Method::GET, pods, None, owned("LIST", "pods", "namespace")),
        (
            Method::GET,
            pods,
            Some("watch=1"),
            owned("WATCH", "pods", "namespace"),
        ),
        (Method::POST, pods, None, owned("POST", "pods", "resource")),
        (
            Method::DELETE,
            pods,
            None,
            owned("DELETECOLLECTION", "pods", "namespace"),
        ),
        (
            Method::GET,
            "/api/v1/pods",
            None,
            owned("LIST", "pods", "cluster"),
        ),
        (Method::GET, "/api/v1/x-1", None, owned("GET", "", "")),
        (Method::GET, "/nothing", None, owned("GET", "", "")),
    ] {
        assert_eq!(label(method, path, query), expected, "{path}");
    }
}

#[tokio::test]
async fn requests_are_counted_under_the_names_of_kube_apiserver() {
    let server = ApiServer::open(Options::default()).await.unwrap();
    let core = server.core();
    let labels = Labels::for_route(
        &core.store.registry(),
        &target("/api/v1/nodes").route,
        &Method::GET,
        &Query::default(),
    );
    core.requests
        .begin(labels)
        .end(200, Duration::from_millis(1));
    let text = super::text(core.stats(), &core.requests, &core.store);
    for line in [
        "apiserver_request_total{code=\"200\",component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"nodes\",scope=\"cluster\",subresource=\"\",verb=\"LIST\",version=\"v1\"} 1",
        "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 0",
        "apiserver_storage_objects{resource=\"namespaces\"} 4",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("apiserver_request_duration_seconds_bucket{"));
}
