//! Files of a KubeadmConfig that are Go templates.

use std::collections::BTreeMap;
use std::time::Duration;

use api::bootstrap::v1beta2::KubeadmConfig;
use api::conditions;
use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::Secret;
use api::kube::ResourceExt;
use serde_json::{Value, json};

use crate::world::{NS, World, cluster, eventually};

const PATH: &str = "/etc/kubernetes-version";

fn template(content: &str) -> Value {
    json!({"path": PATH, "contentFormat": "Template", "content": content})
}

/// A plain file, and a template.
fn config(content: &str) -> Value {
    json!({
        "clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"},
        "files": [{"path": "/etc/raw", "content": "{{ .controlPlane.version }}"}, template(content)],
    })
}

/// Files of each Machine, by its name and their paths.
async fn files(world: &World) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for machine in world.list::<Machine>().await {
        let data = machine.spec.bootstrap.data_secret_name.clone().unwrap();
        let secret = world.api::<Secret>().get(&data).await.unwrap();
        let text = String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap();
        let document: Value = serde_saphyr::from_str(&text).unwrap();
        let files = document["write_files"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let files = files.map(|file| (text(&file["path"]), text(&file["content"])));
        all.insert(machine.name_any(), files.collect());
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_comes_up_with_files_that_are_templates_and_follow_its_version() {
    let world = World::start().await;
    let content = "{{ if .controlPlane.version }}is {{ .controlPlane.version }}{{ end }}";
    world.apply(cluster(3, config(content))).await;
    world.settled(3).await;
    let all = files(&world).await;
    assert_eq!(all.len(), 3);
    for files in all.values() {
        assert_eq!(files[PATH], "is v1.34.1");
        assert_eq!(files["/etc/raw"], "{{ .controlPlane.version }}");
    }
    let upgrade = json!({"spec": {"version": "v1.35.0"}});
    world.merge::<KubeadmControlPlane>("demo", upgrade).await;
    eventually("the files of new machines", || async {
        world.settled(3).await;
        let all = files(&world).await;
        match all.values().all(|files| files[PATH] == "is v1.35.0") {
            true => Ok(()),
            false => Err(format!("{all:?}")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_that_is_wrong_is_told_with_file_and_line_and_boots_nothing_until_it_is_mended()
{
    let world = World::start().await;
    let wrong = "one line\nversion: {{ .controlPlane.version\n";
    world.apply(cluster(1, config(wrong))).await;
    let name = eventually("the condition", || async {
        let configs = world.list::<KubeadmConfig>().await;
        let Some(found) = configs.first() else {
            return Err("no KubeadmConfig".to_owned());
        };
        let conditions = found.status.clone().unwrap_or_default().conditions;
        let condition = conditions::find(&conditions, "DataSecretAvailable").cloned();
        let message = condition.as_ref().map_or("", |it| it.message.as_str());
        let words = "spec.files[1].content (/etc/kubernetes-version): the template cannot be rendered: line 2: ";
        match condition.as_ref().is_some_and(|it| it.status == "False") && message.contains(words) {
            true => Ok(found.name_any()),
            false => Err(format!("{condition:?}")),
        }
    })
    .await;
    let machine = world.api::<Machine>().get(&name).await.unwrap();
    assert_eq!(machine.spec.bootstrap.data_secret_name, None);
    let right = "version: {{ .controlPlane.version }}\n";
    let mended = json!({"spec": {"kubeadmConfigSpec": config(right)}});
    world.merge::<KubeadmControlPlane>("demo", mended).await;
    let mended = json!({"spec": {"files": config(right)["files"]}});
    world.merge::<KubeadmConfig>(&name, mended).await;
    world.settled(1).await;
    // The machine may be another one: a reconcile in between replaces the machine of the wrong template.
    let all = files(&world).await;
    let texts: Vec<&str> = all.values().map(|files| files[PATH].as_str()).collect();
    assert_eq!(texts, ["version: v1.34.1\n"]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_comes_after_its_config_is_noticed_at_once() {
    let world = World::start().await;
    let from = json!({"secret": {"name": "late", "key": "text"}});
    let config = json!({
        "clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"},
        "files": [{"path": "/etc/late", "contentFrom": from}],
    });
    world.apply(cluster(1, config)).await;
    eventually("the config to wait", || async {
        let configs = world.list::<KubeadmConfig>().await;
        let reasons: Vec<_> = configs.iter().flat_map(|it| it.status.clone()).collect();
        match format!("{reasons:?}") {
            text if text.contains("secret late") => Ok(()),
            text => Err(text),
        }
    })
    .await;
    // After this, retries of an error are a minute apart.
    tokio::time::sleep(Duration::from_secs(120)).await;
    let begun = tokio::time::Instant::now();
    world
        .create(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late", "namespace": NS},
            "stringData": {"text": "words"},
        }))
        .await;
    eventually("the data", || async {
        let machines = world.list::<Machine>().await;
        match machines[0].spec.bootstrap.data_secret_name {
            Some(_) => Ok(()),
            None => Err(format!("{:?}", machines[0].status)),
        }
    })
    .await;
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(files(&world).await.len(), 1);
}
