use std::net::SocketAddr;

use api::providers::Provider;
use apiserver::ApiServer;
use installer::{manifests, names};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use operator::client::Api;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::commands::manager::registration::{Registered, Registration};
use crate::serve;

const NAMESPACE: &str = names::NAMESPACE;

/// An API server with the objects in which webhooks are registered.
async fn cluster(subset: &Subset) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = apiserver::Options {
        hooks: Arc::new(apiserver::NoHooks),
        ..apiserver::Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let client = Client::new(server.in_process(), NAMESPACE);
    let text = manifests::render(subset, NAMESPACE, None, None).unwrap();
    for document in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
        let kind = document["kind"].as_str().unwrap();
        let kinds = ["Namespace", "CustomResourceDefinition"];
        if !kinds.contains(&kind) && !kind.ends_with("WebhookConfiguration") {
            continue;
        }
        let version = document["apiVersion"].as_str().unwrap();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        let name = document["metadata"]["name"].as_str().unwrap();
        let params = PatchParams::apply("kubectl");
        api.patch(name, &params, &Patch::Apply(&document))
            .await
            .unwrap();
    }
    client
}

/// A manager: its certificate, and where it answers.
async fn manager(
    client: &Client,
    subset: &Subset,
    source: &Source,
    stop: &CancellationToken,
) -> (Served, SocketAddr) {
    let served = Served::open(source).await.unwrap();
    let router = crate::commands::manager::webhooks(client, subset);
    let found = Arc::new(parking_lot::Mutex::new(String::new()));
    let line = Arc::clone(&found);
    let any = "127.0.0.1:0".parse().unwrap();
    let say = move |text: &str| text.clone_into(&mut line.lock());
    serve::tls_by("webhooks", any, served.current(), router, stop, &say)
        .await
        .unwrap();
    let address = found.lock().rsplit('/').next().unwrap().parse().unwrap();
    (served, address)
}

/// A review as an API server asks for it, which accepts the authorities that are registered: its HTTP status.
async fn review(client: &Client, address: SocketAddr) -> Result<String, String> {
    let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let found = api.list(&Default::default()).await.unwrap().items.remove(0);
    let bundle = found.webhooks.unwrap().remove(0).client_config.ca_bundle;
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(&bundle.unwrap().0) {
        roots.add(authority.unwrap()).unwrap();
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connected = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await;
    let mut stream = connected.map_err(|error| error.to_string())?;
    let body = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","kind":{"group":"x","version":"v1","kind":"X"},"object":{"apiVersion":"x/v1","kind":"X","metadata":{"name":"a"}}}}"#;
    let request = format!(
        "POST /validate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn no_review_fails_while_the_certificate_of_two_managers_is_replaced() {
    let subset = Subset::new([Provider::Infrastructure], false);
    let client = cluster(&subset).await;
    // One that ends soon, as the first manager would have issued it nearly a year ago.
    let store = Store::new(&client, &subset, NAMESPACE, None);
    let secrets = Api::<Secret>::namespaced(client.clone(), NAMESPACE);
    let ending = store.issued(30).unwrap();
    secrets
        .create(&PostParams::default(), &ending)
        .await
        .unwrap();
    let source = Source::open(&client, &subset, NAMESPACE, None, None)
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let (leader, first) = manager(&client, &subset, &source, &stop).await;
    let (follower, second) = manager(&client, &subset, &source, &stop).await;

    let registration = Registration::new(&subset, NAMESPACE, None);
    let mut registered = Registered::default();
    let (mut steps, mut reviews) = (Vec::new(), 0);
    for look in 0..20 {
        let step = registration
            .look(&client, &source, &mut registered)
            .await
            .unwrap();
        steps.extend(step.map(|it| (look, it)));
        // The leader before the follower, the follower before the leader, and one of them late by several looks.
        for (index, managers) in [&leader, &follower].into_iter().enumerate() {
            for address in [first, second] {
                let answer = review(&client, address).await;
                assert_eq!(answer.as_deref(), Ok("HTTP/1.1 200 OK"), "{look}");
                reviews += 1;
            }
            if index == 0 || look % 5 == 4 {
                managers.refresh(&source).await.unwrap();
            }
        }
    }
    assert_eq!(reviews, 80);
    let [(prepared, Step::Prepare { .. }), (switched, Step::Switch)] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert!(switched - prepared >= 4, "{steps:?}");
    let stored = store.read().await.unwrap();
    assert!(stored.next.is_none());
    for served in [&leader, &follower] {
        assert_eq!(*served.text.read(), stored.served.certificate);
    }
    let old = store::stored(&ending).unwrap();
    assert_ne!(old.served.certificate, stored.served.certificate);
    // Late managers are accepted until their certificate ends.
    assert!(stored.authorities.contains(old.authorities.trim()));
}

#[tokio::test]
async fn a_certificate_in_files_is_followed_and_its_authority_is_left_to_who_writes_it() {
    let subset = Subset::new([Provider::Infrastructure], false);
    let client = cluster(&subset).await;
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let issued = pki::self_issued(name, vec!["localhost".to_owned()]);
        let (authority, identity) = issued.unwrap();
        std::fs::write(directory.path().join("tls.crt"), &identity.certificate).unwrap();
        let key = identity.key.expose_secret();
        std::fs::write(directory.path().join("tls.key"), key).unwrap();
        (authority, identity.certificate)
    };
    let open =
        async || Source::open(&client, &subset, NAMESPACE, None, Some(directory.path())).await;
    let source = open().await.unwrap();
    let error = Served::open(&source).await.err().unwrap();
    assert!(format!("{error:#}").contains("tls.crt"), "{error:#}");
    let (authority, _) = write("one");
    let registration = Registration::new(&subset, NAMESPACE, None);
    registration.write(&client, Some(&authority)).await.unwrap();
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let (served, address) = manager(&client, &subset, &source, &stop).await;
    let mut registered = Registered::default();
    for _ in 0..6 {
        let step = registration
            .look(&client, &source, &mut registered)
            .await
            .unwrap();
        assert_eq!(step, None);
    }
    assert_eq!(
        review(&client, address).await.as_deref(),
        Ok("HTTP/1.1 200 OK")
    );
    let (_, certificate) = write("two");
    served.refresh(&source).await.unwrap();
    assert_eq!(*served.text.read(), certificate);
    assert!(review(&client, address).await.is_err());
    // A file that is written at the moment.
    std::fs::write(directory.path().join("tls.crt"), "-----BEGIN").unwrap();
    assert!(served.refresh(&source).await.is_err());
    assert_eq!(*served.text.read(), certificate);
    let secrets = Api::<Secret>::namespaced(client.clone(), NAMESPACE);
    assert!(
        secrets
            .list(&Default::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}
