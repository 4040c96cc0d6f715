use std::sync::Arc;

use apiserver::ApiServer;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{ListParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::installed;
use crate::names::{MANAGER, NAMESPACE};

fn options(image: Option<&str>, namespace: &str) -> Options {
    Options {
        providers: Named::default(),
        older: Older::default(),
        namespace: namespace.to_owned(),
        image: image.map(str::to_owned),
        clouds: None,
    }
}

/// The infrastructure provider alone.
fn of_openstack(image: Option<&str>, namespace: &str) -> Options {
    let providers = Named {
        infrastructure: vec!["openstack".to_owned()],
        ..Named::default()
    };
    Options {
        providers,
        ..options(image, namespace)
    }
}

async fn cluster() -> Client {
    let options = apiserver::Options {
        hooks: Arc::new(apiserver::NoHooks),
        ..apiserver::Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    Client::new(server.in_process(), "default")
}

#[tokio::test]
async fn an_empty_cluster_gets_everything_and_again_changes_nothing() {
    let client = cluster().await;
    let options = options(Some("example.org/ferrostack:1"), "capi");
    let lines = Mutex::new(Vec::new());
    let say = |line: &str| lines.lock().push(line.to_owned());
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "capi");
    let mut versions = Vec::new();
    for _ in 0..2 {
        install(&client, &options, &say).await.unwrap();
        let deployment = deployments.get(MANAGER).await.unwrap();
        let spec = serde_json::to_value(&deployment.spec).unwrap();
        let image = &spec["template"]["spec"]["containers"][0]["image"];
        assert_eq!(image, "example.org/ferrostack:1");
        versions.push(deployment.metadata.resource_version);
        let stored = definitions.list(&ListParams::default()).await.unwrap();
        assert_eq!(stored.items.len(), api::crds::all().len());
    }
    assert_eq!(versions[0], versions[1]);
    let lines = lines.into_inner();
    assert!(
        lines[0].starts_with("installed: ") && lines[0].ends_with("with namespace capi"),
        "{}",
        lines[0]
    );
}

#[tokio::test]
async fn a_cluster_with_the_same_providers_of_another_program_is_left_as_it_is() {
    let client = cluster().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut theirs = api::crds::all().remove(0);
    theirs
        .labels_mut()
        .insert("clusterctl.cluster.x-k8s.io".to_owned(), String::new());
    definitions
        .create(&PostParams::default(), &theirs)
        .await
        .unwrap();
    for core in [None, Some("cluster-api".to_owned())] {
        let mut options = options(None, NAMESPACE);
        options.providers.core = core;
        let error = install(&client, &options, &|_: &str| {}).await;
        assert!(error.is_err(), "{options:?}");
    }
    let stored = definitions.list(&ListParams::default()).await.unwrap();
    assert_eq!(stored.items.len(), 1);
}

#[tokio::test]
async fn beside_the_core_provider_of_another_program_only_the_named_one_is_installed() {
    let client = cluster().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let ours = |it: &CustomResourceDefinition| it.labels()["cluster.x-k8s.io/provider"].clone();
    for mut theirs in api::providers::Provider::Core.definitions() {
        let labels = theirs.labels_mut();
        labels.insert("clusterctl.cluster.x-k8s.io".to_owned(), String::new());
        definitions
            .create(&PostParams::default(), &theirs)
            .await
            .unwrap();
    }
    let before = definitions.list(&ListParams::default()).await.unwrap();
    let options = of_openstack(Some("example.org/ferrostack:1"), NAMESPACE);
    for _ in 0..2 {
        install(&client, &options, &|_: &str| {}).await.unwrap();
    }
    let stored = definitions.list(&ListParams::default()).await.unwrap();
    for definition in &stored.items {
        let known = before
            .items
            .iter()
            .find(|it| it.name_any() == definition.name_any());
        match known {
            Some(known) => assert_eq!(known.metadata, definition.metadata),
            None => assert_eq!(ours(definition), "infrastructure-openstack"),
        }
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    deployments
        .get("ferrostack-manager-infrastructure")
        .await
        .unwrap();
    // Its manager stays the one that it is.
    let other = of_openstack(None, "other");
    let error = install(&client, &other, &|_: &str| {}).await;
    assert!(error.unwrap_err().to_string().contains("two managers"));
}

#[test]
fn definitions_of_an_up_and_of_another_program_are_not_those_of_our_managers() {
    let ours = api::crds::all().remove(0);
    assert!(!installed::is_in_process(&ours) && !installed::is_of_another(&ours));
    let embedded = ::management::converted(ours.clone());
    assert!(installed::is_in_process(&embedded));
    let webhook = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "capi-webhook-service", "namespace": "capi-system"}}}});
    let mut theirs = ours;
    theirs.spec.conversion = serde_json::from_value(webhook).unwrap();
    assert!(installed::is_of_another(&theirs) && !installed::is_in_process(&theirs));
}

#[test]
fn a_deployment_is_available_when_its_condition_says_so() {
    let with = |conditions: serde_json::Value| -> Deployment {
        serde_json::from_value(
            json!({"spec": {"selector": {}, "template": {}}, "status": {"conditions": conditions}}),
        )
        .unwrap()
    };
    let condition =
        |status: &str| json!([{"type": "Available", "status": status, "message": "no pods"}]);
    assert_eq!(available(&with(condition("True"))), Ok(()));
    assert_eq!(
        available(&with(condition("False"))),
        Err("no pods".to_owned())
    );
    assert_eq!(
        available(&with(json!([]))),
        Err("it has no status".to_owned())
    );
}
