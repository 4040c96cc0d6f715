use std::sync::Arc;

use api::providers::Provider;
use apiserver::ApiServer;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::subset::Subset;

const IMAGE: &str = "example.org/ferrostack:1";

/// A cluster with managers of these providers.
async fn cluster(managers: &[&[Provider]], image: Option<&str>) -> Client {
    let options = apiserver::Options {
        hooks: Arc::new(apiserver::NoHooks),
        ..apiserver::Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let client = Client::new(server.in_process(), "default");
    for providers in managers {
        let subset = Subset::new(providers.iter().copied(), false);
        let text = manifests::render(&subset, "capi", image, None).unwrap();
        let documents = manifest::read("manifests", &text).unwrap();
        apply::all(&client, &documents, "capi").await.unwrap();
    }
    client
}

/// Writes another version on all definitions.
async fn was_installed_by(client: &Client, version: Option<&str>) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions.list(&ListParams::default()).await.unwrap() {
        let patch = json!({"metadata": {"annotations": {"ferrostack.dev/version": version}}});
        definitions
            .patch(
                &definition.name_any(),
                &PatchParams::default(),
                &Patch::Merge(patch),
            )
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn the_plan_names_each_provider_with_its_version_and_the_next() {
    let client = cluster(&[&[Provider::Infrastructure]], None).await;
    let plan = read(&client).await.unwrap();
    let text = plan.text("ferrostack");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("NAME                       NAMESPACE   TYPE "),
        "{text}"
    );
    assert!(
        lines[1].starts_with("infrastructure-openstack   capi        InfrastructureProvider   v"),
        "{text}"
    );
    assert!(lines[1].ends_with("Already up to date"), "{text}");
    assert_eq!(lines.len(), 2, "{text}");
    was_installed_by(&client, Some("v0.0.9")).await;
    let plan = read(&client).await.unwrap();
    let row = plan.json()["providers"][0].clone();
    assert_eq!(row["currentVersion"], "v0.0.9");
    assert_eq!(row["nextVersion"], installed::THIS);
    assert_eq!(row["upToDate"], false);
    assert!(
        plan.text("ferrostack")
            .contains("ferrostack upgrade apply installs v")
    );
    let nothing = cluster(&[], None).await;
    let text = read(&nothing).await.unwrap().text("ferrostack");
    assert!(
        text.starts_with("ferrostack has installed no providers here"),
        "{text}"
    );
}

#[tokio::test]
async fn an_upgrade_applies_the_manifests_of_each_manager_and_again_changes_nothing() {
    let managers: [&[Provider]; 2] = [
        &[Provider::Infrastructure],
        &[Provider::Bootstrap, Provider::ControlPlane],
    ];
    let client = cluster(&managers, Some(IMAGE)).await;
    was_installed_by(&client, Some("v0.0.9")).await;
    let error = upgrade(&client, None, Older::default(), &|_: &str| {})
        .await
        .unwrap_err();
    assert!(error.to_string().contains("with --image"), "{error}");
    let lines = Mutex::new(Vec::new());
    let say = |line: &str| lines.lock().push(line.to_owned());
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "capi");
    let mut seen = Vec::new();
    for _ in 0..2 {
        upgrade(
            &client,
            Some("example.org/ferrostack:2"),
            Older::default(),
            &say,
        )
        .await
        .unwrap();
        let deployment = deployments
            .get("ferrostack-manager-infrastructure")
            .await
            .unwrap();
        let spec = serde_json::to_value(&deployment.spec).unwrap();
        let image = &spec["template"]["spec"]["containers"][0]["image"];
        assert_eq!(image, "example.org/ferrostack:2");
        seen.push(deployment.metadata.resource_version);
    }
    assert_eq!(seen[0], seen[1]);
    let plan = read(&client).await.unwrap();
    assert_eq!(plan.json()["providers"].as_array().unwrap().len(), 3);
    assert!(
        plan.json()["providers"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["upToDate"] == true)
    );
    assert!(
        lines.lock()[0].starts_with("upgraded bootstrap, control-plane to v"),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_newer_version_is_not_replaced_and_nothing_is_nothing() {
    let client = cluster(&[&[Provider::Infrastructure]], None).await;
    was_installed_by(&client, Some("v99.0.0")).await;
    let error = upgrade(&client, None, Older::default(), &|_: &str| {})
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("v99.0.0 is installed, which is newer"),
        "{error}"
    );
    let nothing = cluster(&[], None).await;
    let error = upgrade(&nothing, None, Older::default(), &|_: &str| {})
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("`init` installs them"),
        "{error}"
    );
    // Before versions were written, too.
    was_installed_by(&client, None).await;
    upgrade(&client, None, Older::default(), &|_: &str| {})
        .await
        .unwrap();
}

#[tokio::test]
async fn versions_in_which_objects_may_be_stored_are_named_and_cleared_by_the_upgrade() {
    let client = cluster(&[&[Provider::Infrastructure]], None).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut names = Vec::new();
    for definition in Provider::Infrastructure.definitions() {
        let name = definition.name_any();
        if definition.spec.versions.len() < 2 {
            continue;
        }
        let both = Patch::Merge(json!({"status": {"storedVersions": ["v1beta1", "v1beta2"]}}));
        let params = PatchParams::default();
        definitions
            .patch_status(&name, &params, &both)
            .await
            .unwrap();
        names.push(name);
    }
    let plan = read(&client).await.unwrap();
    let listed = plan.json()["storedInOtherVersions"].clone();
    let first = format!("{} (v1beta1)", names[0]);
    assert!(
        listed.as_array().unwrap().contains(&json!(first)),
        "{listed}"
    );
    assert!(plan.text("ferrostack").contains(&first));
    let lines = Mutex::new(Vec::new());
    let say = |line: &str| lines.lock().push(line.to_owned());
    upgrade(&client, None, Older::default(), &say)
        .await
        .unwrap();
    for name in &names {
        let status = definitions.get(name).await.unwrap().status.unwrap();
        assert_eq!(status.stored_versions.unwrap(), ["v1beta2"], "{name}");
        let line = format!("{name}: stored in v1beta2 alone, 0 objects written");
        assert!(lines.lock().contains(&line), "{lines:?}");
    }
    assert!(read(&client).await.unwrap().stored.is_empty());
}

#[test]
fn versions_in_which_objects_may_still_be_stored_are_named() {
    let mut definition = Provider::Infrastructure.definitions().remove(0);
    assert!(storage::Outdated::from_definition(&definition).is_none());
    let status = json!({"storedVersions": ["v1alpha7", "v1beta2"]});
    definition.status = serde_json::from_value(status).unwrap();
    let name = definition.name_any();
    let outdated = storage::Outdated::from_definition(&definition).unwrap();
    assert_eq!(outdated.words(), [format!("{name} (v1alpha7)")]);
}

#[tokio::test]
async fn nothing_is_rewritten_before_the_managers_are_available() {
    let client = cluster(&[], None).await;
    let manager = Manager {
        subset: Subset::new([Provider::Core], false),
        namespace: "default".to_owned(),
        version: None,
    };
    let managers = [manager];
    let wait = |limit| managers_available(&client, &managers, limit);
    // Managers elsewhere are not looked at.
    wait(Duration::ZERO).await.unwrap();
    let pod = json!({"containers": [{"name": "manager", "image": "x"}]});
    let labels = json!({"a": "b"});
    let deployment = json!({"metadata": {"name": "ferrostack-manager-core"}, "spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }});
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let deployment: Deployment = serde_json::from_value(deployment).unwrap();
    deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    let error = wait(Duration::ZERO).await.unwrap_err().to_string();
    assert!(
        error.contains("default/ferrostack-manager-core is not available"),
        "{error}"
    );
    let status = json!({"conditions": [{"type": "Available", "status": "True"}]});
    let patch = Patch::Merge(json!({"status": status}));
    let params = PatchParams::default();
    let written = deployments
        .patch_status("ferrostack-manager-core", &params, &patch)
        .await;
    written.unwrap();
    wait(Duration::ZERO).await.unwrap();
}
