//! What `up` keeps of its management API, whatever other programs want to do with it.

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::json;

use crate::process::Up;

const NOTHING: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nothing, namespace: default}\n";

fn api(
    client: &kube::Client,
    namespace: Option<&str>,
    kind: (&str, &str, &str),
) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(kind.0, kind.1, kind.2));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

fn refused<T: std::fmt::Debug>(answer: kube::Result<T>) -> String {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 => status.message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_and_inventory_are_not_deleted_or_replaced_under_the_controllers() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("nothing.yaml");
    std::fs::write(&file, NOTHING).unwrap();
    let mut up = Up::start(home.path(), &["-f", file.to_str().unwrap()], &[]);
    up.read_lines(2).await;
    let client = up.client().await;
    let definitions = api(
        &client,
        None,
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    );
    let (name, params) = ("clusters.cluster.x-k8s.io", PatchParams::default());
    // What `clusterctl delete --include-crd` and `upgrade apply` would do.
    let why = refused(definitions.delete(name, &DeleteParams::default()).await);
    assert!(
        why.contains("it is not deleted: `ferrostack up` keeps it"),
        "{why}"
    );
    let webhook = json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "capi-webhook-service", "namespace": "capi-system", "path": "/convert"}},
    }}}});
    let why = refused(
        definitions
            .patch(name, &params, &Patch::Merge(&webhook))
            .await,
    );
    assert!(
        why.contains("it is not changed: `ferrostack up` keeps it"),
        "{why}"
    );
    let (all, any) = (DeleteParams::default(), ListParams::default());
    refused(definitions.delete_collection(&all, &any).await);
    let label = json!({"metadata": {"labels": {"team": "a"}}});
    definitions
        .patch(name, &params, &Patch::Merge(&label))
        .await
        .unwrap();

    let provider = ("clusterctl.cluster.x-k8s.io", "v1alpha3", "Provider");
    let providers = api(&client, Some("ferrostack-system"), provider);
    let name = "infrastructure-openstack";
    refused(providers.delete(name, &DeleteParams::default()).await);
    let version = json!({"version": "v9.9.9"});
    refused(
        providers
            .patch(name, &params, &Patch::Merge(&version))
            .await,
    );
    let namespaces = api(&client, None, ("", "v1", "Namespace"));
    refused(
        namespaces
            .delete("ferrostack-system", &DeleteParams::default())
            .await,
    );

    assert_eq!(
        providers
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        4
    );
    let served = api(
        &client,
        Some("default"),
        ("cluster.x-k8s.io", "v1beta2", "Cluster"),
    );
    served.list(&ListParams::default()).await.unwrap();
    up.stop().await;
}
