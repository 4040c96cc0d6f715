use std::sync::Arc;

use apiserver::ApiServer;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::json;

use super::*;
use crate::subset::Subset;

async fn cluster(managers: &[&[Provider]]) -> Client {
    let options = apiserver::Options {
        hooks: Arc::new(apiserver::NoHooks),
        ..apiserver::Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let client = Client::new(server.in_process(), "default");
    for providers in managers {
        let subset = Subset::new(providers.iter().copied(), false);
        let image = Some("example.org/ferrostack:1");
        let clouds = providers.contains(&Provider::Infrastructure);
        let clouds = clouds.then_some("clouds");
        let text = manifests::render(&subset, "capi", image, clouds).unwrap();
        let documents = manifest::read("manifests", &text).unwrap();
        apply::all(&client, &documents, "capi").await.unwrap();
    }
    client
}

async fn definitions(client: &Client) -> usize {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    api.list(&ListParams::default()).await.unwrap().items.len()
}

const TWO: [&[Provider]; 2] = [&[Provider::Infrastructure], &[Provider::Bootstrap]];

#[tokio::test]
async fn a_manager_goes_and_the_kinds_and_the_other_manager_stay() {
    let client = cluster(&TWO).await;
    let before = definitions(&client).await;
    let providers = Named {
        infrastructure: vec!["openstack".to_owned()],
        ..Named::default()
    };
    let options = Options {
        providers,
        ..Options::default()
    };
    for _ in 0..2 {
        delete(&client, &options, &|_: &str| {}).await.unwrap();
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "capi");
    let left = deployments.list(&ListParams::default()).await.unwrap();
    let left: Vec<String> = left.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, ["ferrostack-manager-bootstrap"]);
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let left = roles.list(&ListParams::default()).await.unwrap();
    let left: Vec<String> = left.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, ["ferrostack-manager-bootstrap"]);
    assert_eq!(definitions(&client).await, before);
}

#[tokio::test]
async fn kinds_go_only_when_there_are_no_objects_of_them() {
    let client = cluster(&TWO).await;
    let gvk = GroupVersionKind::gvk(
        "infrastructure.cluster.x-k8s.io",
        "v1beta2",
        "OpenStackCluster",
    );
    let resource = ApiResource::from_gvk(&gvk);
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), "default", &resource);
    // Without the manager, which converts and validates.
    let mut options = Options {
        all: true,
        ..Options::default()
    };
    delete(&client, &options, &|_: &str| {}).await.unwrap();
    options.include_crd = true;
    let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "OpenStackCluster",
        "metadata": {"name": "x"}, "spec": {"identityRef": {"name": "a", "cloudName": "b"}}});
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    drop(api.create(&Default::default(), &object).await.unwrap());
    let error = delete(&client, &options, &|_: &str| {}).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("there are objects of openstackclusters."),
        "{error}"
    );
    api.delete("x", &DeleteParams::default()).await.unwrap();
    delete(&client, &options, &|_: &str| {}).await.unwrap();
    assert_eq!(definitions(&client).await, 0);
}

#[test]
fn a_manager_is_deleted_as_a_whole() {
    let manager = |providers: &[Provider]| Manager {
        subset: Subset::new(providers.iter().copied(), false),
        namespace: "capi".to_owned(),
        version: None,
    };
    let managers = [
        manager(&[Provider::Core, Provider::Bootstrap]),
        manager(&[Provider::Infrastructure]),
    ];
    let of = |named: &[Provider], all: bool| {
        let named = named.iter().copied().collect();
        chosen(&managers, &named, all)
            .map(|it| it.len())
            .map_err(|error| error.to_string())
    };
    assert_eq!(of(&[], true), Ok(2));
    assert_eq!(of(&[Provider::Infrastructure], false), Ok(1));
    assert_eq!(of(&[Provider::Core, Provider::Bootstrap], false), Ok(1));
    let error = of(&[Provider::Core], false).unwrap_err();
    assert!(
        error.starts_with("one manager runs core, bootstrap in namespace capi"),
        "{error}"
    );
    let error = of(&[Provider::ControlPlane], false).unwrap_err();
    assert_eq!(error, "ferrostack has not installed control-plane-kubeadm");
    assert!(of(&[], false).unwrap_err().starts_with("nothing is named"));
}
