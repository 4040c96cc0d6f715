//! A ClusterResourceSet on a cluster of a simulated guest: applied as soon as the cluster is there, and again when it changes.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};

use crate::cloud::TestCloud;
use crate::main_job::{data, kind, workload_client};
use crate::process::{Up, eventually, run, texts};

const GROUP: &str = "addons.cluster.x-k8s.io";

/// A kind, an object of this kind, and a DaemonSet in a Namespace of its own.
fn manifests(image: &str) -> Value {
    let stream = format!(
        "apiVersion: example.net/v1
kind: Widget
metadata: {{name: w, namespace: agents}}
spec: {{size: 3}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, namespace: agents}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec: {{containers: [{{name: agent, image: {image}}}]}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: agents}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.example.net}}
spec:
  group: example.net
  scope: Namespaced
  names: {{kind: Widget, plural: widgets}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    );
    json!({ "agent.yaml": stream })
}

async fn image(agents: &Api<DaemonSet>) -> Option<String> {
    let found = agents.get_opt("agent").await.ok()??;
    found.spec.template.spec?.containers[0].image.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_cluster_gets_its_addons_and_follows_their_changes() {
    let home = tempfile::tempdir().unwrap();
    let counts = [
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "0",
    ];
    let mut up = Up::start(home.path(), &counts, &[]);
    up.ready().await;
    let client = up.client().await;
    let configmaps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let source = json!({ "metadata": { "name": "agent" }, "data": manifests("agent:1") });
    let source = serde_json::from_value(source).unwrap();
    let create = PostParams::default();
    configmaps.create(&create, &source).await.unwrap();
    let resource = kind(GROUP, "ClusterResourceSet");
    let sets: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let set = json!({
        "apiVersion": format!("{GROUP}/v1beta2"), "kind": "ClusterResourceSet",
        "metadata": { "name": "agent" },
        "spec": {
            "strategy": "Reconcile", "clusterSelector": { "matchLabels": { "agent": "yes" } },
            "resources": [{ "kind": "ConfigMap", "name": "agent" }],
        },
    });
    let set = serde_json::from_value(set).unwrap();
    sets.create(&create, &set).await.unwrap();
    let resource = kind("cluster.x-k8s.io", "Cluster");
    let clusters: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let (params, label) = (
        PatchParams::default(),
        json!({ "metadata": { "labels": { "agent": "yes" } } }),
    );
    let labelled = clusters.patch("demo", &params, &Patch::Merge(&label)).await;
    labelled.unwrap();

    eventually("the condition", || async {
        let set = sets.get("agent").await.ok()?;
        let conditions = set.data["status"]["conditions"].as_array()?.clone();
        let applied = |c: &Value| c["type"] == "ResourcesApplied" && c["status"] == "True";
        conditions.iter().any(applied).then_some(())
    })
    .await;
    let workload = workload_client(home.path()).await;
    let agents: Api<DaemonSet> = Api::namespaced(workload.clone(), "agents");
    assert_eq!(image(&agents).await.as_deref(), Some("agent:1"));
    let widget = GroupVersionKind::gvk("example.net", "v1", "Widget");
    let widgets: Api<DynamicObject> =
        Api::namespaced_with(workload, "agents", &ApiResource::from_gvk(&widget));
    assert_eq!(widgets.get("w").await.unwrap().data["spec"]["size"], 3);

    let change = json!({ "data": manifests("agent:2") });
    let changed = configmaps
        .patch("agent", &params, &Patch::Merge(&change))
        .await;
    changed.unwrap();
    eventually("the new image", || async {
        (image(&agents).await.as_deref() == Some("agent:2")).then_some(())
    })
    .await;
    up.stop().await;
}

/// The clusters of a cloud that `up` takes for a real one.
#[tokio::test(flavor = "multi_thread")]
async fn install_ccm_brings_the_manager_with_the_credentials_of_the_cluster_into_it() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::start(home.path()).await;
    let args = [
        "--cloud",
        "simulated",
        "--install-ccm=registry/ferrostack:1",
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "0",
    ];
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    let client = up.client().await;
    let name = "demo-cloud-controller-manager";
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let secret = eventually("the Secret", || async { secrets.get_opt(name).await.ok()? }).await;
    let kind_of_set = Some("addons.cluster.x-k8s.io/resource-set");
    assert_eq!(secret.type_.as_deref(), kind_of_set);
    let owners = secret.metadata.owner_references.unwrap();
    assert!(
        owners
            .iter()
            .any(|owner| owner.kind == "Cluster" && owner.name == "demo")
    );
    let workload = workload_client(home.path()).await;
    let daemons: Api<DaemonSet> = Api::namespaced(workload.clone(), "kube-system");
    let name = "openstack-cloud-controller-manager";
    let daemon = eventually("the manager", || async {
        daemons.get_opt(name).await.ok()?
    })
    .await;
    let container = daemon.spec.template.spec.unwrap().containers[0].clone();
    assert_eq!(container.image.as_deref(), Some("registry/ferrostack:1"));
    let flags = container.args.unwrap();
    assert!(
        flags.contains(&"--cluster-name=demo".to_owned()),
        "{flags:?}"
    );
    let secrets: Api<Secret> = Api::namespaced(workload, "kube-system");
    let conf = secrets.get("cloud-config").await.unwrap().data.unwrap()["cloud.conf"].clone();
    let conf = String::from_utf8(conf.0).unwrap();
    let parsed =
        cloud_conf::CloudConf::parse(&conf, cloud_conf::Program::CloudControllerManager).unwrap();
    let keystone = format!("{}/identity", cloud.url);
    assert!(
        parsed
            .conf
            .global
            .get("auth-url")
            .is_some_and(|url| url.starts_with(&keystone))
    );
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn install_ccm_is_refused_on_the_simulated_cloud_with_the_reason() {
    let home = tempfile::tempdir().unwrap();
    let output = run(
        home.path(),
        &["up", "--install-ccm", "--data-dir", &data(home.path())],
    )
    .await;
    let (_, errors) = texts(&output);
    assert!(!output.status.success());
    assert!(
        errors.contains("--install-ccm is for a real cloud (--cloud NAME)"),
        "{errors}"
    );
    assert!(errors.contains("runs in this process"), "{errors}");
}
