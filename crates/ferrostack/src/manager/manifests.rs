//! `generate manager`: all manifests of the manager.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, ServiceReference, WebhookClientConfig,
    WebhookConversion,
};
use operator::webhook;

use super::registration::SERVICE;

/// The namespace in the manifests below.
pub(crate) const NAMESPACE: &str = "ferrostack-system";

/// Files of config/ in the order in which they are applied; the definitions come after the namespace.
const NAMESPACE_FILE: &str = include_str!("../../../../config/manager/namespace.yaml");
const FILES: [&str; 3] = [
    include_str!("../../../../config/rbac/rbac.yaml"),
    include_str!("../../../../config/webhook/webhooks.yaml"),
    include_str!("../../../../config/manager/service.yaml"),
];
/// Included only if an image is given.
const DEPLOYMENT: &str = include_str!("../../../../config/manager/deployment.yaml");
/// The image in the Deployment.
pub(crate) const IMAGE: &str = "ferrostack:latest";

/// The label of what clusterctl has installed.
const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";

/// The permissions of the controller of clouds, in their namespace.
const CLOUDS: &str = include_str!("../../../../config/rbac/openstack.yaml");
/// The namespace of clouds there, in a line of its own.
const OF_CLOUDS: &str = "namespace: openstack\n";
/// The last argument in the Deployment.
const LAST: &str = "        - --webhook-addr=:9443\n";

/// The manifests, as one YAML stream; with a Deployment if `image` is given, and with the permission to run clouds in a
/// namespace.
pub(crate) fn render(
    namespace: &str,
    image: Option<&str>,
    clouds: Option<&str>,
) -> anyhow::Result<String> {
    let mut documents = vec![NAMESPACE_FILE.to_owned()];
    for definition in api::crds::all() {
        documents.push(definition_text(definition, namespace)?);
    }
    documents.extend(FILES.map(str::to_owned));
    if let Some(image) = image {
        let deployment = DEPLOYMENT.replace(IMAGE, image);
        documents.push(match clouds {
            Some(clouds) => {
                let flag = format!("{LAST}        - --openstack-namespace={clouds}\n");
                deployment.replace(LAST, &flag)
            }
            None => deployment,
        });
    }
    let text = documents.join("---\n").replace(NAMESPACE, namespace);
    let Some(clouds) = clouds else {
        return Ok(text);
    };
    let role = CLOUDS.replace(NAMESPACE, namespace);
    let role = role.replace(OF_CLOUDS, &format!("namespace: {clouds}\n"));
    let role = role.replace("name: openstack\n", &format!("name: {clouds}\n"));
    Ok(format!("{text}---\n{role}"))
}

/// Whether a definition, whose kind is one of ours, was installed by another program: by clusterctl, or with webhooks that
/// are not ours. Definitions of ours have the labels of providers, too.
pub(crate) fn is_of_another(definition: &CustomResourceDefinition) -> bool {
    let labels = definition.metadata.labels.as_ref();
    let of_clusterctl = labels.is_some_and(|it| it.contains_key(CLUSTERCTL));
    let conversion = definition.spec.conversion.as_ref();
    let webhook = conversion.and_then(|it| it.webhook.as_ref());
    let config = webhook.and_then(|it| it.client_config.as_ref());
    let service = config.and_then(|it| it.service.as_ref());
    of_clusterctl || service.is_some_and(|it| it.name != SERVICE)
}

/// Whether objects of a definition are converted by the API server itself: that of an `up`.
pub(crate) fn is_in_process(definition: &CustomResourceDefinition) -> bool {
    let conversion = definition.spec.conversion.as_ref();
    conversion.is_some_and(|it| it.strategy == "Webhook" && it.webhook.is_none())
}

/// A definition with conversion by the manager, which adds its certificate authority.
fn definition_text(
    mut definition: CustomResourceDefinition,
    namespace: &str,
) -> anyhow::Result<String> {
    if definition.spec.versions.len() > 1 {
        definition.spec.conversion = Some(CustomResourceConversion {
            strategy: "Webhook".to_owned(),
            webhook: Some(WebhookConversion {
                client_config: Some(WebhookClientConfig {
                    service: Some(ServiceReference {
                        name: SERVICE.to_owned(),
                        namespace: namespace.to_owned(),
                        path: Some(webhook::CONVERT.to_owned()),
                        port: Some(443),
                    }),
                    ..WebhookClientConfig::default()
                }),
                conversion_review_versions: vec!["v1".to_owned()],
            }),
        });
    }
    let mut document = serde_json::to_value(&definition)?;
    document["apiVersion"] = "apiextensions.k8s.io/v1".into();
    document["kind"] = "CustomResourceDefinition".into();
    Ok(serde_saphyr::to_string(&document)?)
}

#[cfg(test)]
mod tests;
