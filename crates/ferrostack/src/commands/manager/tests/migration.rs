//! Objects in versions that are not written any more, migrated by a manager with nothing but its role.

use std::sync::Arc;

use api::providers::Provider;
use clap::Parser;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::discovery::ApiResource;
use operator::client::Api;
use parking_lot::Mutex;
use serde_json::json;

use super::super::migration;
use super::role;
use super::*;
use crate::cli::{Cli, Command};

const TEMPLATES: &str = "openstackmachinetemplates.infrastructure.cluster.x-k8s.io";

/// An API server with the kinds of a provider, which store their objects in `version`.
async fn stored_in(version: &str) -> (ApiServer, Client) {
    let options = apiserver::Options {
        hooks: Arc::new(::management::Rules),
        ..apiserver::Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let client = Client::new(server.in_process(), NAMESPACE);
    for definition in Provider::Infrastructure.definitions() {
        let mut definition = ::management::converted(definition);
        store_in(&mut definition, version);
        definitions(&client)
            .create(&PostParams::default(), &definition)
            .await
            .unwrap();
    }
    (server, client)
}

fn definitions(client: &Client) -> Api<CustomResourceDefinition> {
    Api::all(client.clone())
}

/// Kinds without this version are left as they are.
fn store_in(definition: &mut CustomResourceDefinition, version: &str) {
    let versions = &mut definition.spec.versions;
    if versions.iter().any(|it| it.name == version) {
        for it in versions {
            it.storage = it.name == version;
        }
    }
}

/// The definitions of this program in place of those that are there, as `kubectl apply` writes them.
async fn install(client: &Client) {
    for definition in Provider::Infrastructure.definitions() {
        let name = definition.name_any();
        let mut there = definitions(client).get(&name).await.unwrap();
        there.spec = ::management::converted(definition).spec;
        let written = definitions(client)
            .replace(&name, &PostParams::default(), &there)
            .await;
        written.unwrap();
    }
}

fn templates(client: &Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "infrastructure.cluster.x-k8s.io".to_owned(),
        version: "v1beta2".to_owned(),
        api_version: "infrastructure.cluster.x-k8s.io/v1beta2".to_owned(),
        kind: "OpenStackMachineTemplate".to_owned(),
        plural: "openstackmachinetemplates".to_owned(),
    };
    Api::namespaced_with(client.clone(), NAMESPACE, &resource)
}

async fn create(client: &Client, name: &str) {
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackMachineTemplate",
        "metadata": {"name": name}, "spec": machine_template()["spec"]});
    let object = serde_json::from_value(object).unwrap();
    let created = templates(client)
        .create(&PostParams::default(), &object)
        .await;
    created.unwrap();
}

async fn versions(client: &Client) -> Vec<(String, Option<String>)> {
    let listed = templates(client).list(&ListParams::default()).await;
    let objects = listed.unwrap().items.into_iter();
    objects
        .map(|it| (it.name_any(), it.metadata.resource_version))
        .collect()
}

async fn stored(client: &Client) -> Vec<String> {
    let definition = definitions(client).get(TEMPLATES).await.unwrap();
    definition.status.unwrap().stored_versions.unwrap()
}

#[tokio::test]
async fn a_manager_writes_each_object_in_an_old_version_once_under_its_own_role() {
    let (_server, client) = stored_in("v1beta1").await;
    create(&client, "a").await;
    create(&client, "b").await;
    install(&client).await;
    assert_eq!(stored(&client).await, ["v1beta1", "v1beta2"]);
    let before = versions(&client).await;

    let subset = Subset::new([Provider::Infrastructure], false);
    let guard = role(&subset);
    let of_manager = guard.of(&client);
    let lines = Mutex::new(Vec::new());
    let say = |line: &str| lines.lock().push(line.to_owned());
    migration::once(&of_manager, &subset, &say).await.unwrap();
    assert!(guard.forbidden().is_empty(), "{:#?}", guard.forbidden());
    let line = format!("{TEMPLATES}: stored in v1beta2 alone, 2 objects written");
    assert!(lines.lock().contains(&line), "{lines:?}");
    assert_eq!(stored(&client).await, ["v1beta2"]);
    let after = versions(&client).await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before.0, after.0);
        assert_ne!(before.1, after.1, "{} is written", before.0);
    }

    // Another leader has nothing to do.
    let writes = guard.writes();
    migration::once(&of_manager, &subset, &say).await.unwrap();
    assert_eq!(guard.writes(), writes);
    assert_eq!(versions(&client).await, after);
}

#[tokio::test]
async fn every_kind_of_every_provider_may_be_migrated_by_its_manager() {
    let options = apiserver::Options {
        hooks: Arc::new(::management::Rules),
        ..apiserver::Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let client = Client::new(server.in_process(), NAMESPACE);
    for provider in Provider::ALL {
        let subset = Subset::new([provider], false);
        for definition in subset.definitions() {
            let mut definition = ::management::converted(definition);
            store_in(&mut definition, "v1beta1");
            let name = definition.name_any();
            let api = definitions(&client);
            api.create(&PostParams::default(), &definition)
                .await
                .unwrap();
            let mut there = api.get(&name).await.unwrap();
            store_in(&mut there, "v1beta2");
            api.replace(&name, &PostParams::default(), &there)
                .await
                .unwrap();
        }
        let guard = role(&subset);
        let migrated = migration::once(&guard.of(&client), &subset, &|_: &str| {}).await;
        migrated.unwrap_or_else(|problem| panic!("{provider}: {problem:#}"));
        assert!(guard.forbidden().is_empty(), "{:#?}", guard.forbidden());
        for definition in subset.definitions() {
            let stored = definitions(&client).get(&definition.name_any()).await;
            let stored = stored.unwrap().status.unwrap().stored_versions.unwrap();
            assert_eq!(stored.len(), 1, "{}: {stored:?}", definition.name_any());
        }
    }
}

#[test]
fn phases_of_the_go_managers_turn_it_off() {
    for (phases, expected) in [
        (None, true),
        (Some("All"), false),
        (Some("StorageVersionMigration"), false),
        (Some("CleanupManagedFields"), true),
        (Some("CleanupManagedFields,StorageVersionMigration"), false),
    ] {
        let flag = phases.map(|it| format!("--skip-crd-migration-phases={it}"));
        let words = ["ferrostack", "manager"].into_iter().map(str::to_owned);
        let parsed = Cli::try_parse_from(words.chain(flag)).unwrap();
        let Command::Manager(args) = parsed.command else {
            panic!("another command");
        };
        let skipped = &args.skip_crd_migration_phases;
        assert_eq!(migration::is_wanted(skipped), expected, "{phases:?}");
    }
}
