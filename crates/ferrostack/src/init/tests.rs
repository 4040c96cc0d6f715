use std::sync::Arc;

use apiserver::ApiServer;
use clap::Parser;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{ListParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::cli::{Cli, Command};

fn args(words: &[&str]) -> Init {
    let words = [&["ferrostack", "init"], words].concat();
    match Cli::try_parse_from(words).unwrap().command {
        Command::Init(args) => *args,
        _ => panic!("another command"),
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
    let args = args(&["--image", "example.org/ferrostack:1", "-n", "capi"]);
    let lines = Mutex::new(Vec::new());
    let say = |line: &str| lines.lock().push(line.to_owned());
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "capi");
    let mut versions = Vec::new();
    for _ in 0..2 {
        install(&client, &args, &say).await.unwrap();
        let deployment = deployments.get(manifests::MANAGER).await.unwrap();
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
    for words in [&[][..], &["--core", "cluster-api"]] {
        let error = install(&client, &args(words), &|_: &str| {}).await;
        assert!(error.is_err(), "{words:?}");
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
    let words = ["-i", "openstack", "--image", "example.org/ferrostack:1"];
    for _ in 0..2 {
        install(&client, &args(&words), &|_: &str| {})
            .await
            .unwrap();
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
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), manifests::NAMESPACE);
    deployments
        .get("ferrostack-manager-infrastructure")
        .await
        .unwrap();
    // Its manager stays the one that it is.
    let error = install(
        &client,
        &args(&["-i", "openstack", "-n", "other"]),
        &|_: &str| {},
    )
    .await;
    assert!(error.unwrap_err().to_string().contains("two managers"));
}

#[test]
fn definitions_of_an_up_and_of_another_program_are_not_those_of_our_managers() {
    let ours = api::crds::all().remove(0);
    assert!(!manifests::is_in_process(&ours) && !manifests::is_of_another(&ours));
    let embedded = ::management::converted(ours.clone());
    assert!(manifests::is_in_process(&embedded));
    let webhook = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "capi-webhook-service", "namespace": "capi-system"}}}});
    let mut theirs = ours;
    theirs.spec.conversion = serde_json::from_value(webhook).unwrap();
    assert!(manifests::is_of_another(&theirs) && !manifests::is_in_process(&theirs));
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

#[test]
fn the_images_are_listed_for_people_and_for_programs() {
    assert_eq!(images(Some("a:1"), Output::Text), "a:1\n");
    let listed: Vec<String> = serde_json::from_str(&images(None, Output::Json)).unwrap();
    assert_eq!(listed, ["ferrostack:latest"]);
}

#[tokio::test]
async fn manifests_are_validated_and_a_flag_against_it_is_rejected() {
    assert!(args(&["--validate"]).validate && args(&["--validate=true"]).validate);
    let without = args(&["--validate=false"]);
    let error = run(
        &without,
        &Environment::default(),
        |_: &str| Ok(()),
        |_: &str| {},
    )
    .await
    .unwrap_err()
    .to_string();
    assert!(error.starts_with("--validate=false: "), "{error}");
}

#[tokio::test]
async fn images_are_listed_for_providers_that_exist() {
    let list = async |words: &[&str]| {
        let words = [&["list-images"], words].concat();
        let printed = Mutex::new(String::new());
        let print = |text: &str| {
            printed.lock().push_str(text);
            Ok(())
        };
        let listed = run(&args(&words), &Environment::default(), print, |_: &str| {}).await;
        listed
            .map(|()| printed.into_inner())
            .map_err(|error| error.to_string())
    };
    let image = format!("{}\n", manifests::IMAGE);
    assert_eq!(list(&[]).await.unwrap(), image);
    assert_eq!(list(&["-i", "openstack"]).await.unwrap(), image);
    let error = list(&["-i", "aws"]).await.unwrap_err();
    assert!(error.starts_with("--infrastructure aws: "), "{error}");
}
