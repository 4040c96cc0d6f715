//! A cloud is made, changed and deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::openstack::conditions::Type;
use api::openstack::v1alpha1::{OpenStack, Phase};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::client::Body;
use serde_json::{Value, json};
use testbed::eventually;

use crate::world::{CLOUD, MINUTE, World, start};

#[tokio::test(start_paused = true)]
async fn every_step_becomes_ready_and_its_time_is_noted() {
    for release in ["zed", "2025.1", "2026.1"] {
        let world = World::open().await;
        let _controller = world.controller();
        world.create(json!({"release": release})).await;
        world.ready().await;
        let status = world.cloud().await.status.unwrap();
        assert!(status.steps.len() > 20, "{}", status.steps.len());
        for step in &status.steps {
            let ready = step.phase == Phase::Ready && step.seconds.is_some();
            assert!(ready && step.message.is_empty(), "{step:?}");
        }
        assert_eq!(status.uid.map(|it| it.len()), Some(32));
        world.assert_at_rest().await;
        let owned = world.owned().await.len();
        assert!(owned > 60, "{owned}");
    }
}

/// Names of all fields of a schema, without the fields that exist to be rejected by name.
fn fields(schema: &Value, found: &mut BTreeSet<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if field["x-kubernetes-validations"][0]["rule"] == "false" {
            continue;
        }
        found.insert(name.clone());
        fields(field, found);
        fields(&field["items"], found);
    }
}

#[tokio::test(start_paused = true)]
async fn the_sample_has_every_field_and_makes_a_cloud() {
    let sample = include_str!("../../../../config/openstack/sample.yaml");
    assert!(sample.lines().count() <= 120);
    let definition = serde_json::to_value(&api::openstack::crd::all()[0]).unwrap();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut names = BTreeSet::new();
    fields(&schema["properties"]["spec"], &mut names);
    assert!(names.len() > 15, "{names:?}");
    let words = |line: &str| line.trim_start_matches(['#', ' ', '-', '\t']).to_owned();
    for name in names {
        let named = |line: &str| words(line).starts_with(&format!("{name}:"));
        let inline = [format!("{{{name}: "), format!(", {name}: ")];
        let inline = inline.iter().any(|it| sample.contains(it));
        assert!(
            inline || sample.lines().any(named),
            "the sample has no {name}"
        );
    }
    let mut object: Value = serde_saphyr::from_str(sample).unwrap();
    object["metadata"]["namespace"] = testbed::NAMESPACE.into();
    let world = World::open().await;
    let _controller = world.controller();
    world.management.create(object).await;
    world.ready().await;
    world.assert_at_rest().await;
}

/// The programs of which the Pods are others.
fn restarted(before: &Serving, after: &Serving) -> Vec<String> {
    let changed = before
        .iter()
        .filter(|(name, uids)| after.get(*name) != Some(*uids));
    changed.map(|(name, _)| name.clone()).collect()
}

type Serving = BTreeMap<String, Vec<String>>;

#[tokio::test(start_paused = true)]
async fn a_changed_option_restarts_the_programs_that_read_it() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    let before = world.serving().await;
    let config = json!({"scheduler": {"workers": 3}});
    world
        .changed(json!({"spec": {"services": {"nova": {"config": config}}}}))
        .await;
    world.ready().await;
    eventually("the old Pod to end", || async {
        let after = world.serving().await;
        let single = after.values().all(|it| it.len() == 1);
        single.then_some(()).ok_or(format!("{after:?}"))
    })
    .await;
    let after = world.serving().await;
    assert_eq!(restarted(&before, &after), ["nova-scheduler"]);
    world.assert_at_rest().await;

    // An option of all programs of the service: no other service restarts, and one program after the other.
    let config = json!({"DEFAULT": {"debug": true}});
    world
        .changed(json!({"spec": {"services": {"nova": {"config": config}}}}))
        .await;
    world.ready().await;
    eventually("the old Pods to end", || async {
        let last = world.serving().await;
        let single = last.values().all(|it| it.len() == 1);
        single.then_some(()).ok_or(format!("{last:?}"))
    })
    .await;
    let last = world.serving().await;
    let all = [
        "nova-api",
        "nova-conductor",
        "nova-metadata",
        "nova-novncproxy",
        "nova-scheduler",
    ];
    assert_eq!(restarted(&after, &last), all);
    world.assert_at_rest().await;
}

#[tokio::test(start_paused = true)]
async fn a_setting_of_the_dashboard_restarts_it_and_one_that_is_unknown_is_named() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    let before = world.serving().await;
    let config = json!({"SITE_BRANDING": "Ours"});
    world
        .changed(json!({"spec": {"services": {"horizon": {"config": config}}}}))
        .await;
    world.ready().await;
    eventually("the old Pod to end", || async {
        let after = world.serving().await;
        let single = after.values().all(|it| it.len() == 1);
        single.then_some(()).ok_or(format!("{after:?}"))
    })
    .await;
    assert_eq!(restarted(&before, &world.serving().await), ["horizon"]);
    world.assert_at_rest().await;
    let config = json!({"SITE_BRANDIN": "Ours"});
    let patch = json!({"spec": {"services": {"horizon": {"config": config}}}});
    let clouds: Api<OpenStack> = world.management.api();
    let rejected = clouds
        .patch(CLOUD, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap_err()
        .to_string();
    let part = "horizon 2026.1 has no setting SITE_BRANDIN; did you mean SITE_BRANDING?";
    assert!(rejected.contains(part), "{rejected}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_goes_away_and_its_data_only_when_asked() {
    let world = World::open().await;
    let _controller = world.controller();
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    let uid = world.cloud().await.status.unwrap().uid;
    world.delete(false).await;
    world.management.gone::<OpenStack>(CLOUD).await;
    let left = world.owned().await;
    let data = left.iter().all(|it| {
        it.starts_with("PersistentVolumeClaim ")
            || [
                "openstack-accounts",
                "keystone-fernet-keys",
                "keystone-credential-keys",
            ]
            .iter()
            .any(|name| *it == format!("Secret {name}"))
    });
    assert!(data && left.len() > 5, "{left:#?}");

    // The cloud is created again with its data, and then purged.
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    assert_eq!(world.cloud().await.status.unwrap().uid, uid);
    world.delete(true).await;
    world.management.gone::<OpenStack>(CLOUD).await;
    assert_eq!(world.owned().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn at_rest_no_request_is_sent() {
    let world = World::open().await;
    let sent = Arc::new(AtomicUsize::new(0));
    let (count, inner) = (Arc::clone(&sent), world.management.client.clone());
    let counted = tower::service_fn(move |request: http::Request<Body>| {
        let client = inner.clone();
        count.fetch_add(1, Ordering::SeqCst);
        async move { client.send(request).await }
    });
    let _controller = start(Client::new(counted, testbed::NAMESPACE));
    world.create(json!({"release": "2026.1"})).await;
    world.ready().await;
    let objects = world.owned().await.len();
    // The last status was written when everything was ready; its own event is the last one.
    tokio::time::sleep(MINUTE).await;
    let at_rest = sent.load(Ordering::SeqCst);
    assert!(
        at_rest < 4 * objects,
        "{at_rest} requests for {objects} objects"
    );
    // Accounts are looked at again, and watches begin again, after five minutes.
    tokio::time::sleep(MINUTE * 3).await;
    assert_eq!(sent.load(Ordering::SeqCst), at_rest);
}

#[tokio::test(start_paused = true)]
async fn a_paused_cloud_is_left_as_it_is() {
    let world = World::open().await;
    let _controller = world.controller();
    world
        .create(json!({"release": "2026.1", "paused": true}))
        .await;
    world.condition(Type::Paused, "True").await;
    assert_eq!(world.owned().await, Vec::<String>::new());
    world.changed(json!({"spec": {"paused": false}})).await;
    world.ready().await;
}
