use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::k8s_openapi::api::authentication::v1::SelfSubjectReview;
use api::k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use api::kube;
use api::kube::api::{Api, EvictParams, ListParams, PostParams, WatchParams};
use apiserver::{ApiServer, UserInfo};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// kube-apiserver's answer to an eviction that a disruption budget forbids; there is no Retry-After.
const FORBIDDEN: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web needs 2 healthy pods and has 2 currently"}]},"code":429}"#;

/// A server that answers every request with `FORBIDDEN`, and the number of requests.
async fn refusing() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = vec![0; 64 << 10];
            let _ = stream.read(&mut buffer).await.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let answer = format!(
                "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n{FORBIDDEN}",
                FORBIDDEN.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            // Closed with data unread, the connection would be reset.
            while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
        }
    });
    (url, requests)
}

#[tokio::test]
async fn an_eviction_that_a_budget_forbids_is_reported_and_not_repeated() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (url, requests) = refusing().await;
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"{url}\"}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    );
    let client = KubeconfigConnector::default()
        .connect(&ClusterKey::new("default", "demo"), &kubeconfig.into())
        .await
        .unwrap();
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let refused = pods.evict("web", &EvictParams::default()).await;
    let Err(kube::Error::Api(status)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(status.code, 429);
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

/// An API server behind TLS: its kubeconfig, and the number of connections that it has accepted.
async fn counting() -> (String, Arc<AtomicUsize>) {
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = key.cert.pem();
    let tls = apiserver::server_config(&certificate, &key.signing_key.serialize_pem(), None);
    let tls = tls.unwrap();
    let administrator = UserInfo {
        groups: vec!["system:masters".to_owned()],
        ..UserInfo::default()
    };
    let options = apiserver::Options {
        tokens: vec![("t".into(), administrator)],
        ..apiserver::Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let (server, tls) = (server.clone(), Arc::clone(&tls));
            tokio::spawn(async move { server.serve_stream(stream, tls, "v1.34.1".into()).await });
        }
    });
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"{url}\", certificate-authority-data: {}}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n",
        STANDARD.encode(certificate)
    );
    (kubeconfig, accepted)
}

#[tokio::test]
async fn requests_and_watches_share_a_connection_and_a_forwarded_port_has_its_own() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (kubeconfig, accepted) = counting().await;
    let key = ClusterKey::new("default", "demo");
    let connected = KubeconfigConnector::default()
        .connect(&key, &kubeconfig.into())
        .await;
    let client = connected.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut watches = Vec::new();
    for _ in 0..8 {
        let watch = namespaces
            .watch(&WatchParams::default(), "0")
            .await
            .unwrap();
        let mut watch = Box::pin(watch);
        assert!(watch.next().await.unwrap().is_ok());
        watches.push(watch);
    }
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let params = ListParams::default();
    let lists = futures::future::join_all((0..20).map(|_| maps.list(&params))).await;
    assert!(lists.iter().all(Result::is_ok));
    assert_eq!(accepted.load(Ordering::SeqCst), 1);

    // HTTP/2 has no such upgrade, so the answer is the API server's own.
    let pods: Api<Pod> = Api::namespaced(client, "kube-system");
    let refused = pods.portforward("etcd-nothing", &[2379]).await;
    let Err(kube::Error::Api(status)) = refused else {
        panic!("a port of no Pod was forwarded, or the request was not understood");
    };
    assert_eq!(status.code, 404);
    assert_eq!(accepted.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn the_user_whom_a_kubeconfig_impersonates_is_named_in_each_request() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (kubeconfig, _) = counting().await;
    let impersonating =
        kubeconfig.replace("{token: t}", "{token: t, as: reader, as-groups: [few]}");
    let key = ClusterKey::new("default", "demo");
    let connected = KubeconfigConnector::default()
        .connect(&key, &impersonating.into())
        .await;
    let reviews: Api<SelfSubjectReview> = Api::all(connected.unwrap());
    let asked = SelfSubjectReview::default();
    let answer = reviews
        .create(&PostParams::default(), &asked)
        .await
        .unwrap();
    let user = answer.status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("reader"));
    assert!(user.groups.unwrap().contains(&"few".to_owned()));
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_says_why_without_its_credentials() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cluster = "{name: c, cluster: {server: \"https://127.0.0.1:1\"}}";
    let user = "{name: u, user: {token: hunter2}}";
    let context = "{name: x, context: {cluster: c, user: u}}";
    let of = |current: &str, cluster: &str, user: &str, context: &str| {
        format!(
            "apiVersion: v1\nkind: Config\n{current}clusters: [{cluster}]\nusers: [{user}]\ncontexts: [{context}]\n"
        )
    };
    let current = "current-context: x\n";
    let with_cluster = |fields: &str| {
        let cluster = format!("{{name: c, cluster: {{{fields}}}}}");
        of(current, &cluster, user, context)
    };
    let with_user = |fields: &str| {
        let user = format!("{{name: u, user: {{{fields}}}}}");
        of(current, cluster, &user, context)
    };
    let server = "server: \"https://127.0.0.1:1\"";
    let (no_pem, no_base64) = (STANDARD.encode("hunter2"), "hunter2 is not base64");
    let cases = [
        (String::new(), "current-context is not set"),
        ("- a\n- list\n".to_owned(), "cannot be read"),
        ("hunter2: [".to_owned(), "cannot be read"),
        (of("", cluster, user, context), "current-context is not set"),
        (
            of("current-context: y\n", cluster, user, context),
            "has no context y",
        ),
        (of(current, cluster, user, ""), "has no context x"),
        (of(current, "", user, context), "has no cluster c"),
        (of(current, cluster, "", context), "has no user u"),
        (of(current, cluster, user, "{name: x}"), "has no context x"),
        (with_cluster(""), "has no server"),
        (with_cluster("server: \"\""), "has no server"),
        (with_cluster("server: \"not a url\""), "is not an address"),
        (
            with_cluster("server: \"ftp://127.0.0.1\""),
            "is not an address",
        ),
        (
            with_cluster(&format!("{server}, certificate-authority: /etc/ca.pem")),
            "names a file",
        ),
        (
            with_cluster(&format!("{server}, certificate-authority-data: {no_pem}")),
            "certificate-authority-data has no certificate",
        ),
        (
            with_cluster(&format!(
                "{server}, certificate-authority-data: \"{no_base64}\""
            )),
            "certificate-authority-data has no certificate",
        ),
        (
            with_user("exec: {command: sh}"),
            "names a program or a file",
        ),
        (
            with_user("auth-provider: {name: gcp}"),
            "names a program or a file",
        ),
        (
            with_user("tokenFile: /etc/token"),
            "names a program or a file",
        ),
        (
            with_user("client-certificate: /etc/crt"),
            "names a program or a file",
        ),
        (
            with_user("client-key: /etc/key"),
            "names a program or a file",
        ),
        (
            with_user(&format!(
                "client-certificate-data: {no_pem}, client-key-data: {no_pem}"
            )),
            "client-certificate-data has no certificate",
        ),
        (
            with_user(&format!("client-certificate-data: \"{no_base64}\"")),
            "client-certificate-data has no certificate",
        ),
    ];
    let key = ClusterKey::new("default", "demo");
    for (text, why) in cases {
        let outcome = KubeconfigConnector::default()
            .connect(&key, &text.clone().into())
            .await;
        let message = outcome.map(|_| ()).expect_err(&text);
        assert!(message.contains(why), "{text}: {message}");
        assert!(!message.contains("hunter2"), "{text}: {message}");
    }
    let fine = of(current, cluster, user, context);
    assert!(
        KubeconfigConnector::default()
            .connect(&key, &fine.into())
            .await
            .is_ok()
    );
}
