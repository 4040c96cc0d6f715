mod limits;
mod logins;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{Query, Request};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get, post, put};
use axum::{Json, Router};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::network::PortCreate;
use crate::tests::testing::{self, Keystone};
use crate::{CloudConfig, ErrorKind, Service, Session};

type Pairs = Query<Vec<(String, String)>>;

fn count() -> (Arc<AtomicUsize>, impl Fn() -> usize + Clone) {
    let counter = Arc::new(AtomicUsize::new(0));
    let read = Arc::clone(&counter);
    (counter, move || read.load(Ordering::SeqCst))
}

#[tokio::test]
async fn concurrent_requests_cause_one_login() {
    let keystone = Keystone::default();
    let options = testing::options(&keystone, Router::new());
    let session = Session::new(testing::config("secret"), &options).unwrap();
    let tokens = join_all((0..20).map(|_| session.token())).await;
    assert!(tokens.iter().all(Result::is_ok));
    assert_eq!(keystone.logins(), 1);
    assert_eq!(session.project_id().await.unwrap(), "p1");
    assert_eq!(session.region().await.unwrap().as_deref(), Some("one"));
}

#[tokio::test]
async fn a_rejected_login_fails_all_waiting_requests_and_names_the_cloud() {
    let keystone = Keystone::default();
    let options = testing::options(&keystone, Router::new());
    let session = Session::new(testing::config("wrong"), &options).unwrap();
    for result in join_all((0..20).map(|_| session.token())).await {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated);
        assert_eq!(
            error.to_string(),
            "identity POST /identity/v3/auth/tokens: 401 cloud `test`: Keystone does not accept \
             the credential; check auth in clouds.yaml (The request you have made requires \
             authentication.)"
        );
    }
    assert_eq!(keystone.logins(), 1);
    assert!(session.token().await.is_err(), "who comes later tries anew");
    assert_eq!(keystone.logins(), 2);
}

#[tokio::test]
async fn an_expired_token_is_replaced_once_for_all_concurrent_requests() {
    let keystone = Keystone::default();
    let (refused, refusals) = count();
    let check = keystone.clone();
    let handler = move |headers: HeaderMap| {
        let (check, refused) = (check.clone(), Arc::clone(&refused));
        async move {
            let accepted = check.accepts(&headers);
            tokio::task::yield_now().await;
            if accepted {
                return Json(json!({"server": {"id": "s", "name": null}})).into_response();
            }
            refused.fetch_add(1, Ordering::SeqCst);
            StatusCode::UNAUTHORIZED.into_response()
        }
    };
    let routes = Router::new().route("/compute/v2.1/servers/{id}", get(handler));
    let session = Session::new(
        testing::config("secret"),
        &testing::options(&keystone, routes),
    )
    .unwrap();
    session.compute().server("s").await.unwrap();
    // Another login makes the Keystone of the test reject the token.
    let other = testing::options(&keystone, Router::new());
    Session::connect(testing::config("secret"), &other)
        .await
        .unwrap();
    assert_eq!(keystone.logins(), 2);
    let compute = session.compute();
    let results = join_all((0..10).map(|_| compute.server("s"))).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(refusals(), 10);
    assert_eq!(keystone.logins(), 3, "ten refusals, one login");
}

#[tokio::test]
async fn a_token_that_is_rejected_again_is_an_error() {
    let routes = Router::new().route(
        "/compute/v2.1/servers/{id}",
        get(|| async { StatusCode::UNAUTHORIZED }),
    );
    let keystone = Keystone::default();
    let session = Session::new(
        testing::config("secret"),
        &testing::options(&keystone, routes),
    )
    .unwrap();
    let error = session.compute().server("s").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert_eq!(keystone.logins(), 2);
}

#[tokio::test]
async fn endpoints_follow_region_interface_alias_override_and_version_path() {
    let session = testing::session(Router::new());
    let url = async |service| session.endpoint(service).await;
    assert_eq!(
        url(Service::Compute).await.unwrap(),
        "http://cloud.test/compute/v2.1"
    );
    assert_eq!(
        url(Service::Network).await.unwrap(),
        "http://cloud.test/network/v2.0"
    );
    assert_eq!(
        url(Service::Image).await.unwrap(),
        "http://cloud.test/image/v2"
    );
    assert_eq!(
        url(Service::Volume).await.unwrap(),
        "http://cloud.test/volume/v3/p1"
    );
    assert_eq!(
        url(Service::LoadBalancer).await.unwrap(),
        "http://cloud.test/load-balancer/v2.0"
    );
    assert_eq!(
        url(Service::Placement).await.unwrap_err().message(),
        "cloud `test` lists no public endpoint of placement in region `one`; its regions: one, two"
    );

    let mut config = testing::config("secret").with_region(Some("two"));
    config
        .endpoint_overrides
        .insert("block_storage".into(), "http://v.test/".into());
    let options = testing::options(&Keystone::default(), Router::new());
    let session = Session::new(config, &options).unwrap();
    let url = async |service| session.endpoint(service).await.unwrap();
    assert_eq!(url(Service::Network).await, "http://two.test/network/v2.0");
    assert_eq!(url(Service::Volume).await, "http://v.test/v3/p1");
}

#[tokio::test]
async fn application_credentials_log_in_without_a_scope() {
    let seen = Arc::new(parking_lot::Mutex::new(Value::Null));
    let keep = Arc::clone(&seen);
    let login = post(move |Json(body): Json<Value>| async move {
        *keep.lock() = body;
        (
            StatusCode::CREATED,
            [("x-subject-token", "t")],
            Json(json!({"token": {}})),
        )
    });
    let transport = crate::InProcess::new(Router::new().route("/v3/auth/tokens", login));
    let options = crate::SessionOptions {
        transport: Some(Arc::new(transport)),
        ..crate::SessionOptions::default()
    };
    let config = CloudConfig::parse(
        "clouds: {a: {auth: {auth_url: 'http://k/v3/', application_credential_name: n, \
         username: u, user_domain_id: d, application_credential_secret: s}}}",
        "a",
    )
    .unwrap();
    let session = Session::connect(config, &options).await.unwrap();
    assert_eq!(
        *seen.lock(),
        json!({"auth": {"identity": {"methods": ["application_credential"],
            "application_credential": {
                "name": "n", "secret": "s", "user": {"name": "u", "domain": {"id": "d"}}}}}})
    );
    let error = session.project_id().await.unwrap_err();
    assert!(
        error.message().contains("the login is for no project"),
        "{error}"
    );
}

/// A list of `total` items in pages of two, with links from `link`.
fn pages(
    key: &'static str,
    total: usize,
    link: fn(&mut Value, String),
) -> axum::routing::MethodRouter {
    get(move |Query(query): Pairs| async move {
        let pair = |name: &str| {
            query
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, v)| v.clone())
        };
        assert_eq!(pair("limit").is_none(), key == "projects", "{key}");
        let start = pair("marker").map_or(0, |marker| marker.parse::<usize>().unwrap() + 1);
        let end = (start + 2).min(total);
        let items: Vec<_> = (start..end).map(|n| json!({"id": n.to_string()})).collect();
        let mut body = json!({key: items});
        if end < total {
            let others: Vec<_> = query.iter().filter(|(key, _)| key != "marker").collect();
            let mut text: String = others
                .iter()
                .map(|(key, value)| format!("{key}={value}&"))
                .collect();
            text.push_str(&format!("marker={}", end - 1));
            link(&mut body, format!("https://wrong.host/x?{text}"));
        }
        Json(body)
    })
}

#[tokio::test]
async fn lists_follow_the_links_of_every_service() {
    let by_relation = |body: &mut Value, href: String| {
        let key = body.as_object().unwrap().keys().next().unwrap().clone();
        body[format!("{key}_links")] =
            json!([{"rel": "previous", "href": "?"}, {"rel": "next", "href": href}]);
    };
    let routes = Router::new()
        .route(
            "/compute/v2.1/servers/detail",
            pages("servers", 5, by_relation),
        )
        .route("/network/v2.0/ports", pages("ports", 5, by_relation))
        .route(
            "/load-balancer/v2.0/lbaas/loadbalancers",
            pages("loadbalancers", 5, by_relation),
        )
        .route(
            "/volume/v3/p1/volumes/detail",
            pages("volumes", 4, by_relation),
        )
        .route(
            "/image/v2/images",
            pages("images", 5, |body, href| body["next"] = json!(href)),
        )
        .route(
            "/identity/v3/auth/projects",
            pages("projects", 5, |body, href| {
                body["links"] = json!({"next": href})
            }),
        );
    let session = testing::session(routes);
    assert_eq!(
        session
            .compute()
            .servers(&Default::default())
            .await
            .unwrap()
            .len(),
        5
    );
    assert_eq!(
        session
            .network()
            .ports(&[("name", "a b&c")])
            .await
            .unwrap()
            .len(),
        5
    );
    assert_eq!(
        session
            .load_balancer()
            .load_balancers("p1")
            .await
            .unwrap()
            .len(),
        5
    );
    assert_eq!(session.volume().list().await.unwrap().len(), 4);
    assert_eq!(
        session
            .image()
            .list(&Default::default())
            .await
            .unwrap()
            .len(),
        5
    );
    assert_eq!(session.identity().projects().await.unwrap().len(), 5);
}

#[tokio::test]
async fn a_list_is_restarted_when_its_marker_is_deleted() {
    let (calls, counted) = count();
    let handler = move |Query(query): Pairs| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        async move {
            let marker = query.iter().any(|(key, _)| key == "marker");
            match (call, marker) {
                (1, true) => testing::absent("Marker a").into_response(),
                (_, true) => Json(json!({"servers": [{"id": "b"}]})).into_response(),
                (_, false) => Json(json!({"servers": [{"id": "a"}],
                    "servers_links": [{"rel": "next", "href": "/x?marker=a"}]}))
                .into_response(),
            }
        }
    };
    let routes = Router::new().route("/compute/v2.1/servers/detail", get(handler));
    let servers = testing::session(routes)
        .compute()
        .servers(&Default::default())
        .await
        .unwrap();
    assert_eq!(servers.len(), 2);
    assert_eq!(counted(), 4);
}

#[tokio::test]
async fn a_list_that_repeats_itself_ends_with_an_error() {
    let handler = || async {
        Json(json!({"servers": [{"id": "a"}],
            "servers_links": [{"rel": "next", "href": "/x?marker=a"}]}))
    };
    let routes = Router::new().route("/compute/v2.1/servers/detail", get(handler));
    let error = testing::session(routes)
        .compute()
        .servers(&Default::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
}

/// Answers with `status`, such as 503, and this Retry-After, until call number `good`.
fn flaky(
    status: StatusCode,
    wait: Option<&'static str>,
    good: usize,
    body: Value,
) -> (
    impl Fn() -> usize,
    impl Fn(Request) -> std::future::Ready<Response> + Clone + Send + 'static,
) {
    let (calls, counted) = count();
    let handler = move |_: Request| {
        let call = calls.fetch_add(1, Ordering::SeqCst) + 1;
        std::future::ready(match wait {
            _ if call >= good => Json(body.clone()).into_response(),
            Some(wait) => (status, [("retry-after", wait)]).into_response(),
            None => status.into_response(),
        })
    };
    (counted, handler)
}

#[tokio::test]
async fn short_waits_happen_within_a_call_and_long_ones_are_returned() {
    let server = json!({"server": {"id": "s"}});
    let busy = StatusCode::SERVICE_UNAVAILABLE;
    let (counted, handler) = flaky(busy, Some("0"), 3, server.clone());
    let routes = Router::new().route("/compute/v2.1/servers/{id}", get(handler));
    testing::session(routes)
        .compute()
        .server("s")
        .await
        .unwrap();
    assert_eq!(counted(), 3);

    let (counted, handler) = flaky(busy, Some("30"), 2, server.clone());
    let routes = Router::new().route("/compute/v2.1/servers/{id}", get(handler));
    let error = testing::session(routes)
        .compute()
        .server("s")
        .await
        .unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
    assert_eq!(counted(), 1);

    let (counted, handler) = flaky(busy, Some("0"), 9, server);
    let routes = Router::new().route("/compute/v2.1/servers/{id}", get(handler));
    let error = testing::session(routes)
        .compute()
        .server("s")
        .await
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Transient { .. }));
    assert_eq!(counted(), 3, "three attempts at most");
}

#[tokio::test]
async fn a_create_is_repeated_only_if_it_was_not_processed() {
    let port = json!({"port": {"id": "p"}});
    let (counted, handler) = flaky(StatusCode::SERVICE_UNAVAILABLE, Some("0"), 2, port.clone());
    let routes = Router::new().route("/network/v2.0/ports", post(handler));
    let error = testing::session(routes)
        .network()
        .create_port(&PortCreate::default())
        .await;
    assert!(error.is_err());
    assert_eq!(counted(), 1);

    let (counted, handler) = flaky(StatusCode::TOO_MANY_REQUESTS, Some("0"), 2, port);
    let routes = Router::new().route("/network/v2.0/ports", post(handler));
    testing::session(routes)
        .network()
        .create_port(&PortCreate::default())
        .await
        .unwrap();
    assert_eq!(counted(), 2);
}

#[tokio::test]
async fn ids_are_escaped_and_empty_ids_are_rejected() {
    let (calls, counted) = count();
    let handler = move |request: Request| {
        calls.fetch_add(1, Ordering::SeqCst);
        let path = request.uri().path().to_owned();
        async move { Json(json!({"port": {"id": path}})) }
    };
    let session = testing::session(Router::new().fallback(any(handler)));
    let network = session.network();
    let port = network.port("a/../b?c#d%e ü").await.unwrap();
    assert_eq!(
        port.id,
        "/network/v2.0/ports/a%2F..%2Fb%3Fc%23d%25e%20%C3%BC"
    );
    for id in ["", ".", ".."] {
        let error = network.delete_port(id).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert_eq!(counted(), 1);
}

#[tokio::test]
async fn requests_carry_microversion_agent_and_token_and_are_counted_by_route() {
    let handler = |headers: HeaderMap| async move {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        assert_eq!(header("openstack-api-version"), Some("compute 2.60"));
        assert_eq!(header("x-openstack-nova-api-version"), Some("2.60"));
        assert_eq!(header("x-auth-token"), Some("token-1"));
        assert!(header("user-agent").is_some_and(|agent| agent.starts_with("ferrostack/")));
        testing::absent("Instance s")
    };
    let routes = Router::new().route("/compute/v2.1/servers/{id}", get(handler));
    let options = testing::options(&Keystone::default(), routes);
    let session = Session::new(testing::config("secret"), &options).unwrap();
    let error = session.compute().server("s").await.unwrap_err();
    assert!(error.is_absent());
    assert_eq!(error.path(), "/compute/v2.1/servers/s");
    let error = session.polling().compute().server("s").await.unwrap_err();
    assert!(error.is_absent());
    let counts: Vec<_> = options
        .metrics
        .counts()
        .into_iter()
        .map(|(labels, n)| (labels.method, labels.route, labels.status, labels.poll, n))
        .collect();
    assert_eq!(
        counts,
        [
            ("GET", "/servers/{id}", 404, "false", 1),
            ("GET", "/servers/{id}", 404, "true", 1),
            ("POST", "/auth/tokens", 201, "false", 1),
        ]
    );
    let mut registry = prometheus_client::registry::Registry::default();
    options.metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(
        text.contains(
            "ferrostack_openstack_requests_total{service=\"compute\",method=\"GET\",\
             route=\"/servers/{id}\",status=\"404\",poll=\"true\"} 1"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn a_server_is_created_with_encoded_user_data_and_nothing_secret_is_printed() {
    let seen = Arc::new(parking_lot::Mutex::new(Value::Null));
    let keep = Arc::clone(&seen);
    let handler = move |Json(body): Json<Value>| async move {
        *keep.lock() = body;
        (
            StatusCode::ACCEPTED,
            Json(json!({"server": {"id": "s", "adminPass": "x"}})),
        )
    };
    let session = testing::session(Router::new().route("/compute/v2.1/servers", post(handler)));
    let create = crate::compute::ServerCreate {
        name: "node".into(),
        flavor_id: "f".into(),
        user_data: Some(crate::compute::UserData::new("hunter2")),
        networks: vec![crate::compute::ServerNetwork::port("p")],
        tags: vec!["t".into()],
        scheduler_hints: [("group".to_owned(), json!("g"))].into_iter().collect(),
        ..Default::default()
    };
    assert!(!format!("{create:?}").contains("hunter2"));
    let server = session.compute().create_server(&create).await.unwrap();
    assert_eq!((server.id.as_str(), server.status.as_str()), ("s", "BUILD"));
    assert_eq!(server.tags, ["t"]);
    assert_eq!(
        *seen.lock(),
        json!({"os:scheduler_hints": {"group": "g"}, "server": {
            "name": "node", "flavorRef": "f", "user_data": "aHVudGVyMg==", "tags": ["t"],
            "networks": [{"port": "p"}]}})
    );
}

#[tokio::test]
async fn bulk_creates_and_answers_without_a_body_are_decoded() {
    let routes = Router::new()
        .route(
            "/network/v2.0/ports",
            post(|Json(body): Json<Value>| async move { (StatusCode::CREATED, Json(body)) }),
        )
        .route(
            "/network/v2.0/ports/{id}",
            delete(|| async { StatusCode::NO_CONTENT }),
        )
        .route(
            "/load-balancer/v2.0/lbaas/pools/{id}/members",
            put(|| async { StatusCode::ACCEPTED }),
        );
    let session = testing::session(routes);
    let ports = ["a", "b"].map(|name| PortCreate {
        name: name.into(),
        ..Default::default()
    });
    let ports = session.network().create_ports(&ports).await.unwrap();
    assert_eq!(
        ports
            .iter()
            .map(|port| port.name.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert!(
        session
            .network()
            .create_ports(&[])
            .await
            .unwrap()
            .is_empty()
    );
    session.network().delete_port("a").await.unwrap();
    session.load_balancer().set_members("p", &[]).await.unwrap();
}

#[tokio::test]
async fn versions_are_requested_once() {
    let (calls, counted) = count();
    let handler = move || {
        calls.fetch_add(1, Ordering::SeqCst);
        async {
            let versions = json!({"versions": [{"id": "v2.0"}, {"id": "v2.26"}, {"id": "v2.9"}]});
            (StatusCode::MULTIPLE_CHOICES, Json(versions))
        }
    };
    let nova = || async {
        Json(json!({"version": {"id": "v2.1", "version": "2.93", "min_version": "2.1"}}))
    };
    let routes = Router::new()
        .route("/load-balancer/", get(handler))
        .route("/compute/v2.1/", get(nova));
    let session = testing::session(routes);
    for _ in 0..2 {
        let range = session.versions(Service::LoadBalancer).await.unwrap();
        assert!(range.has(2, 12) && !range.has(2, 27), "{range:?}");
    }
    assert_eq!(counted(), 1);
    assert_eq!(
        session.versions(Service::Compute).await.unwrap().max,
        (2, 93)
    );
}

// The clock advances only while everything waits, so that no other request times out on a busy machine.
#[tokio::test(start_paused = true)]
async fn a_time_out_is_unreachable_and_not_repeated() {
    let (calls, counted) = count();
    let handler = move || {
        calls.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<StatusCode>()
    };
    let routes = Router::new().route("/compute/v2.1/servers/{id}", get(handler));
    let mut options = testing::options(&Keystone::default(), routes);
    options.timeouts.read = Duration::from_millis(20);
    let session = Session::new(testing::config("secret"), &options).unwrap();
    let error = session.compute().server("s").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(counted(), 1);
}

#[tokio::test]
async fn http_reaches_a_real_socket_and_reports_a_refused_connection() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let keystone = Keystone::default();
    let server = tokio::spawn(async move { axum::serve(listener, keystone.router()).await });
    let mut config = testing::config("secret");
    config.auth_url = format!("http://{address}/identity");
    let session = Session::connect(config.clone(), &Default::default())
        .await
        .unwrap();
    assert_eq!(session.project_id().await.unwrap(), "p1");
    server.abort();
    // Bound, so that no other process listens there, but not listening.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    config.auth_url = format!("http://{}/identity", closed.local_addr().unwrap());
    let error = Session::connect(config.clone(), &Default::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.message().contains("refused"), "{error}");

    let error = Session::new(config.with_ca(Some("not PEM")), &Default::default()).unwrap_err();
    assert!(error.message().contains("cacert"), "{error}");
}

#[test]
fn debug_output_of_sessions_and_tokens_has_no_secrets() {
    let session = testing::session(Router::new());
    assert!(!format!("{session:?}").contains("secret"));
}

#[test]
fn a_login_is_scoped_to_the_system_or_the_trust() {
    for (auth, scope) in [
        ("system_scope: all", json!({"system": {"all": true}})),
        ("trust_id: abc", json!({"OS-TRUST:trust": {"id": "abc"}})),
    ] {
        let text = format!(
            "clouds: {{c: {{auth: {{auth_url: 'https://k/v3', user_id: u, password: p, {auth}}}}}}}"
        );
        let config = CloudConfig::parse(&text, "c").unwrap();
        let body = super::auth::login_body(&config).unwrap();
        assert_eq!(body["auth"]["scope"], scope);
    }
}

#[tokio::test]
async fn pages_without_end_are_refused_at_their_limit() {
    for (page, most) in [
        (json!([{"id": "a".repeat(20 << 20)}]), 8),
        (json!(vec![json!({}); 90_000]), 4),
    ] {
        let (calls, counted) = count();
        let handler = move || {
            let next = format!("/?marker={}", calls.fetch_add(1, Ordering::SeqCst));
            let links = json!([{"rel": "next", "href": next}]);
            let page = page.clone();
            async move { Json(json!({"servers": page, "servers_links": links})) }
        };
        let routes = Router::new().route("/compute/v2.1/servers/detail", get(handler));
        let session = testing::session(routes);
        let list = session.compute().servers(&Default::default()).await;
        assert_eq!(
            list.unwrap_err().message(),
            "the list has more than 200000 items or 128 MiB"
        );
        assert!(counted() < most);
    }
}

#[tokio::test]
async fn a_next_page_is_asked_of_the_same_service_whatever_host_its_link_names() {
    let (calls, counted) = count();
    let handler = move |request: Request| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        let host = request.uri().authority().map(ToString::to_string);
        async move {
            assert_eq!(host.as_deref(), Some("cloud.test"));
            let next = json!([{"rel": "next", "href": "http://evil.test/steal?marker=a#x"}]);
            match call {
                0 => Json(json!({"servers": [{"id": "a"}], "servers_links": next})),
                _ => Json(json!({"servers": [{"id": "b"}]})),
            }
        }
    };
    let routes = Router::new().route("/compute/v2.1/servers/detail", get(handler));
    let session = testing::session(routes);
    let list = session.compute().servers(&Default::default()).await;
    assert_eq!(list.unwrap().len(), 2);
    assert_eq!(counted(), 2);
}

/// Keystone that gives the same answer to each login.
fn refusing(status: StatusCode, body: String) -> Session {
    let login = post(move || async move { (status, body) });
    let transport = crate::InProcess::new(Router::new().route("/identity/v3/auth/tokens", login));
    let options = crate::SessionOptions {
        transport: Some(Arc::new(transport)),
        ..crate::SessionOptions::default()
    };
    Session::new(testing::config("secret"), &options).unwrap()
}

#[tokio::test]
async fn a_login_refused_with_404_is_about_the_credential_and_no_object_is_absent() {
    let fault = json!({"error": {"code": 404, "title": "Not Found",
        "message": "Could not find Application Credential: 818a."}});
    for (body, kind, words) in [
        (
            fault.to_string(),
            ErrorKind::Unauthenticated,
            "cloud `test`: Keystone does not know the credential, which may have been deleted; check \
             auth in clouds.yaml (Could not find Application Credential: 818a.)",
        ),
        (
            "<html>secret</html>".to_owned(),
            ErrorKind::Protocol,
            "cloud `test`: auth.auth_url is not a Keystone v3 (cloud.test answers 404 Not Found, \
             without an error of OpenStack)",
        ),
    ] {
        let session = refusing(StatusCode::NOT_FOUND, body);
        let error = session.compute().delete_server("s").await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (kind, words));
        assert!(error.is_login() && !error.is_absent());
    }
}

#[tokio::test]
async fn no_answer_to_a_login_shows_its_text_unless_it_is_a_fault() {
    for (status, body) in [
        (StatusCode::OK, "canary"),
        (StatusCode::OK, r#"{"token": "canary"}"#),
        (StatusCode::OK, r#"{"token": {"catalog": {"canary": 1}}}"#),
        (
            StatusCode::OK,
            r#"{"token": {"roles": "canary, expected x"}}"#,
        ),
        (StatusCode::FOUND, "canary"),
        (StatusCode::UNAUTHORIZED, "canary"),
        (StatusCode::NOT_FOUND, r#"{"message": "canary"}"#),
        (
            StatusCode::FORBIDDEN,
            r#"{"kind": "Status", "code": 403, "message": "canary"}"#,
        ),
        (StatusCode::BAD_GATEWAY, "<html><body>canary</body></html>"),
    ] {
        let mut session = refusing(status, body.to_owned());
        if status.is_success() {
            let login = post(move || async move { ([("x-subject-token", "t")], body) });
            let routes = Router::new().route("/identity/v3/auth/tokens", login);
            let options = crate::SessionOptions {
                transport: Some(Arc::new(crate::InProcess::new(routes))),
                ..crate::SessionOptions::default()
            };
            session = Session::new(testing::config("secret"), &options).unwrap();
        }
        let error = session.token().await.unwrap_err();
        assert!(!error.to_string().contains("canary"), "{error}");
        assert!(error.message().contains("cloud.test"), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn no_refusal_of_a_login_says_that_an_object_is_absent(
        status in 300u16..600,
        body in r#"(\{"error":\{"code":404,"title":"x","message":"y"\}\}|\{"itemNotFound":\{"code":404,"message":"x"\}\}|.{0,20})"#,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let session = refusing(StatusCode::from_u16(status).unwrap(), body);
        let error = runtime.block_on(session.network().delete_port("p")).unwrap_err();
        proptest::prop_assert!(error.is_login() && !error.is_absent(), "{}", error);
    }
}
