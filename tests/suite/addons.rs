//! A ClusterResourceSet on a cluster of a simulated guest: applied as soon as the cluster is there, and again when it changes.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};

use crate::main_job::{kind, workload_client};
use crate::process::{Up, eventually};

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
