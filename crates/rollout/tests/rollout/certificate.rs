//! Certificate of the user, renewed, and replaced by an unusable one.

use std::time::Duration;

use api::openstack::conditions::Type;
use api::openstack::v1alpha1::OpenStack;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use operator::metrics::Metrics;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use testbed::eventually;

use crate::world::{CLOUD, World};

/// Certificate for this host until the end of this year, and its key.
fn pair(host: &str, year: i32) -> Value {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(year, 12, 31);
    let certificate = params.self_signed(&key).unwrap();
    json!({"tls.crt": STANDARD.encode(certificate.pem()), "tls.key": STANDARD.encode(key.serialize_pem())})
}

fn reconciles(metrics: &Metrics) -> u64 {
    let text = metrics.text();
    let lines = text.lines();
    let counts = lines.filter(|it| it.starts_with("controller_runtime_reconcile_total{"));
    let count = |line: &str| line.rsplit(' ').next()?.parse::<u64>().ok();
    counts.filter_map(count).sum()
}

/// Stored certificate of the edge.
async fn served(world: &World) -> Value {
    let secrets = world.list("", "Secret").await;
    let found = secrets
        .iter()
        .find(|it| it["metadata"]["name"] == "edge-certificate");
    found.map_or(Value::Null, |it| it["data"]["tls.crt"].clone())
}

#[tokio::test(start_paused = true)]
async fn the_last_good_certificate_stays_in_use_and_what_is_wrong_is_told() {
    let world = World::open().await;
    let good = pair("192.0.2.10", 2999);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": testbed::NAMESPACE},
        "type": "Opaque", "data": good});
    world.management.create(secret).await;
    world
        .create(json!({"release": "2026.1", "exposure":
            {"mode": "Edge", "host": "192.0.2.10", "tls": {"secretName": "mine"}}}))
        .await;
    let _controller = world.controller();
    world.ready().await;
    assert_eq!(served(&world).await, good["tls.crt"]);
    let pods = world.serving().await;

    for (data, told) in [
        (
            json!({"tls.crt": STANDARD.encode("garbage"), "tls.key": STANDARD.encode("garbage")}),
            "exposure.tls.secretName: Secret mine: tls.crt has no certificate in PEM form",
        ),
        (
            pair("192.0.2.11", 2999),
            "exposure.tls.secretName: Secret mine: tls.crt is not for exposure.host, which is 192.0.2.10: it is for 192.0.2.11",
        ),
        (
            json!({"tls.crt": pair("192.0.2.10", 2999)["tls.crt"]}),
            "exposure.tls.secretName: Secret mine: tls.key is not the key of the certificate in tls.crt",
        ),
        (
            pair("192.0.2.10", 2021),
            "exposure.tls.secretName: Secret mine: tls.crt: the certificate CN=rcgen self signed cert expired on Dec 31",
        ),
    ] {
        let patch = json!({"data": data});
        world.management.merge::<Secret>("mine", patch).await;
        let why = eventually("the reason to be told", || async {
            let why = world.condition(Type::Ready, "False").await;
            why.starts_with(told).then_some(why.clone()).ok_or(why)
        });
        why.await;
        assert_eq!(served(&world).await, good["tls.crt"], "{told}");
        // The rest of the cloud is looked after meanwhile.
        world.drift("apps", "Deployment").await;
    }
    // A renewed certificate is served, and no program restarts for it.
    let renewed = pair("192.0.2.10", 2998);
    world
        .management
        .merge::<Secret>("mine", json!({"data": renewed}))
        .await;
    eventually("the new one to be served", || async {
        let served = served(&world).await;
        (served == renewed["tls.crt"])
            .then_some(())
            .ok_or(served.to_string())
    })
    .await;
    world.ready().await;
    assert_eq!(world.serving().await, pods);
    world.assert_at_rest().await;
    // The copy goes with the cloud, and what is the user's stays.
    world.delete(true).await;
    world.management.gone::<OpenStack>(CLOUD).await;
    assert_eq!(served(&world).await, Value::Null);
    let secrets = world.list("", "Secret").await;
    assert!(secrets.iter().any(|it| it["metadata"]["name"] == "mine"));
}

#[tokio::test(start_paused = true)]
async fn one_that_expires_in_use_goes_on_being_served_and_nothing_spins() {
    let world = World::open().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": testbed::NAMESPACE},
        "type": "Opaque", "data": pair("192.0.2.10", 2999)});
    world.management.create(secret).await;
    world
        .create(json!({"release": "2026.1", "exposure":
            {"mode": "Edge", "host": "192.0.2.10", "tls": {"secretName": "mine"}}}))
        .await;
    let metrics = Metrics::default();
    let _controller = world.controller_counted(&metrics);
    world.ready().await;
    // The clock of certificates is not the paused one: the copy that is in use and the given one are over.
    let over = pair("192.0.2.10", 2021);
    for name in ["edge-certificate", "mine"] {
        let patch = json!({"data": over});
        world.management.merge::<Secret>(name, patch).await;
    }
    let why = world.condition(Type::Ready, "False").await;
    assert!(why.contains("expired on Dec 31"), "{why}");
    assert_eq!(served(&world).await, over["tls.crt"]);
    let before = reconciles(&metrics);
    tokio::time::sleep(Duration::from_secs(1800)).await;
    let more = reconciles(&metrics) - before;
    assert!(more <= 14, "{more} reconciles in half an hour");
    world.drift("apps", "Deployment").await;
}
