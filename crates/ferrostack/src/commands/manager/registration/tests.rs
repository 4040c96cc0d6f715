use std::sync::Arc;

use apiserver::ApiServer;
use installer::names;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use operator::client::Api;
use serde_json::Value;

use super::*;

const NAMESPACE: &str = names::NAMESPACE;

/// Applies the definitions and webhook configurations of the manifests as `kubectl apply --server-side` does.
async fn apply(client: &Client) {
    let text = manifests::render(&Subset::all(), NAMESPACE, None, None).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    for document in documents {
        let kind = document["kind"].as_str().unwrap();
        if !kind.ends_with("Definition") && !kind.ends_with("WebhookConfiguration") {
            continue;
        }
        let (group, version) = document["apiVersion"]
            .as_str()
            .unwrap()
            .split_once('/')
            .unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        let name = document["metadata"]["name"].as_str().unwrap();
        let (params, patch) = (PatchParams::apply("kubectl"), Patch::Apply(&document));
        api.patch(name, &params, &patch).await.unwrap();
    }
}

/// The addresses of all webhooks: URLs, or names of Services.
async fn addresses(client: &Client) -> Vec<String> {
    let mut found = Vec::new();
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
    for hook in mutating.get(CONFIGURATION).await.unwrap().webhooks.unwrap() {
        let config = hook.client_config;
        found.extend(config.url.or(config.service.map(|service| service.name)));
        assert!(config.ca_bundle.is_some());
    }
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let clusters = definitions
        .get("openstackclusters.infrastructure.cluster.x-k8s.io")
        .await;
    let conversion = clusters.unwrap().spec.conversion.unwrap();
    let config = conversion.webhook.unwrap().client_config.unwrap();
    found.extend(config.url.or(config.service.map(|service| service.name)));
    found
}

#[tokio::test]
async fn the_manifests_can_be_applied_again_after_a_manager_registered_a_url() {
    let options = apiserver::Options {
        hooks: Arc::new(apiserver::NoHooks),
        ..apiserver::Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let client = Client::new(server.in_process(), "default");
    let authority = crate::pki::self_issued("test", vec!["localhost".to_owned()]);
    let (authority, _) = authority.unwrap();
    apply(&client).await;
    let url = "https://127.0.0.1:9443";
    let subset = Subset::all();
    let registration = Registration::new(&subset, NAMESPACE, Some(url));
    for _ in 0..2 {
        registration.write(&client, Some(&authority)).await.unwrap();
        let expected = [format!("{url}/mutate"), format!("{url}/convert")];
        assert_eq!(addresses(&client).await, expected);
        apply(&client).await;
        assert_eq!(addresses(&client).await, [SERVICE, SERVICE]);
    }
    // A manager behind the Service writes the authority only.
    let registration = Registration::new(&subset, NAMESPACE, None);
    registration.write(&client, Some(&authority)).await.unwrap();
    apply(&client).await;
    assert_eq!(addresses(&client).await, [SERVICE, SERVICE]);
}
