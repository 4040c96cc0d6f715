//! `generate manager`: all manifests of the manager.

use api::names::CLUSTERCTL_LABEL;
use api::providers::Provider;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, ServiceReference, WebhookClientConfig,
    WebhookConversion,
};
use operator::webhook;
use serde_json::Value;

use super::installed;
use super::registration::{CONFIGURATION, SERVICE};
use super::subset::Subset;

/// The namespace in the manifests below.
pub(crate) const NAMESPACE: &str = "ferrostack-system";

/// Files of config/ in the order in which they are applied; the definitions come after the namespace.
const NAMESPACE_FILE: &str = include_str!("../../../../config/manager/namespace.yaml");
const ACCOUNT: &str = include_str!("../../../../config/rbac/rbac.yaml");
const ROLE: &str = include_str!("../../../../config/rbac/role.yaml");
const WEBHOOKS: &str = include_str!("../../../../config/webhook/webhooks.yaml");
const SERVICE_FILE: &str = include_str!("../../../../config/manager/service.yaml");
/// Deployment of the managers, with its budget and its policy; included only if an image is given.
const DEPLOYMENT: &str = include_str!("../../../../config/manager/deployment.yaml");
/// The name of the Deployment, of the account and of the roles of a manager of all providers.
pub(crate) const MANAGER: &str = "ferrostack-manager";
/// The image in the Deployment.
pub(crate) const IMAGE: &str = "ferrostack:latest";

/// The permissions of the controller of clouds, in their namespace.
const CLOUDS: &str = include_str!("../../../../config/rbac/openstack.yaml");
/// The namespace of clouds there, in a line of its own.
const OF_CLOUDS: &str = "namespace: openstack\n";
/// The last argument in the Deployment.
const LAST: &str = "        - --webhook-addr=:9443\n";

/// The manifests of a manager of `subset`, as one YAML stream; with a Deployment if `image` is given, and with the
/// permission to run clouds in a namespace.
pub(crate) fn render(
    subset: &Subset,
    namespace: &str,
    image: Option<&str>,
    clouds: Option<&str>,
) -> anyhow::Result<String> {
    let mut documents = vec![NAMESPACE_FILE.to_owned()];
    for definition in subset.definitions() {
        documents.push(definition_text(definition, subset, namespace)?);
    }
    documents.push(names(subset, ACCOUNT));
    documents.push(names(subset, &role(subset)));
    documents.extend(webhooks(subset)?);
    documents.push(names(subset, SERVICE_FILE));
    if let Some(image) = image {
        documents.push(names(subset, &deployment(subset, image, clouds)));
    }
    let text = documents.join("---\n").replace(NAMESPACE, namespace);
    let Some(clouds) = clouds else {
        return Ok(text);
    };
    let role = names(subset, CLOUDS).replace(NAMESPACE, namespace);
    let role = role.replace(OF_CLOUDS, &format!("namespace: {clouds}\n"));
    let role = role.replace("name: openstack\n", &format!("name: {clouds}\n"));
    Ok(format!("{text}---\n{role}"))
}

/// The ClusterRole: what every manager may do, and what the controllers of its providers may.
fn role(subset: &Subset) -> String {
    let rules = subset.providers().iter().map(|provider| match provider {
        Provider::Core => include_str!("../../../../config/rbac/core.yaml"),
        Provider::Bootstrap => include_str!("../../../../config/rbac/bootstrap.yaml"),
        Provider::ControlPlane => include_str!("../../../../config/rbac/control-plane.yaml"),
        Provider::Infrastructure => include_str!("../../../../config/rbac/infrastructure.yaml"),
    });
    std::iter::once(ROLE).chain(rules).collect()
}

/// The webhook configurations with the rules for kinds of the subset; without those that have no rule.
fn webhooks(subset: &Subset) -> anyhow::Result<Vec<String>> {
    let configurations = configurations(subset)?;
    let texts = configurations.iter().map(|it| {
        let text = serde_saphyr::to_string(it)?;
        Ok(names(subset, &text))
    });
    texts.collect()
}

/// Whether there are rules for defaults.
pub(super) fn has_defaults(subset: &Subset) -> anyhow::Result<bool> {
    let mut configurations = configurations(subset)?.into_iter();
    Ok(configurations.any(|it| it["kind"] == "MutatingWebhookConfiguration"))
}

fn configurations(subset: &Subset) -> anyhow::Result<Vec<Value>> {
    let groups = subset.groups();
    let mut all: Vec<Value> = serde_saphyr::from_multiple(WEBHOOKS)?;
    let ours = |rule: &Value| {
        let group = rule["apiGroups"][0].as_str();
        group.is_some_and(|group| groups.contains(group))
    };
    for configuration in &mut all {
        for hook in configuration["webhooks"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            if let Some(rules) = hook["rules"].as_array_mut() {
                rules.retain(&ours);
            }
        }
    }
    all.retain(|it| it["webhooks"][0]["rules"] != Value::Array(Vec::new()));
    Ok(all)
}

/// A document with the names that the objects of this subset have.
fn names(subset: &Subset, text: &str) -> String {
    if subset.is_all() {
        return text.to_owned();
    }
    let lease = "controller-leader-election-ferrostack]";
    let text = text.replace(
        lease,
        &format!("{}]", subset.named(lease.trim_end_matches(']'))),
    );
    let text = text.replace(MANAGER, &subset.named(MANAGER));
    let text = text.replace(SERVICE, &subset.named(SERVICE));
    let configuration = subset.named(CONFIGURATION);
    let text = text.replace(
        &format!("  name: {CONFIGURATION}\n"),
        &format!("  name: {configuration}\n"),
    );
    text.replace(&format!("[{CONFIGURATION}]"), &format!("[{configuration}]"))
}

fn deployment(subset: &Subset, image: &str, clouds: Option<&str>) -> String {
    let mut flags = LAST.to_owned();
    if !subset.is_all() {
        let providers = subset.names(",");
        flags.push_str(&format!("        - --providers={providers}\n"));
    }
    if let Some(clouds) = clouds {
        flags.push_str(&format!("        - --openstack-namespace={clouds}\n"));
    }
    DEPLOYMENT.replace(IMAGE, image).replace(LAST, &flags)
}

/// Whether a definition, whose kind is one of ours, was installed by another program: by clusterctl, or with webhooks that
/// are not ours. Definitions of ours have the labels of providers, too.
pub(crate) fn is_of_another(definition: &CustomResourceDefinition) -> bool {
    let labels = definition.metadata.labels.as_ref();
    let of_clusterctl = labels.is_some_and(|it| it.contains_key(CLUSTERCTL_LABEL));
    let conversion = definition.spec.conversion.as_ref();
    let webhook = conversion.and_then(|it| it.webhook.as_ref());
    let config = webhook.and_then(|it| it.client_config.as_ref());
    let service = config.and_then(|it| it.service.as_ref());
    of_clusterctl || service.is_some_and(|it| !it.name.starts_with(SERVICE))
}

/// Whether objects of a definition are converted by the API server itself: that of an `up`.
pub(crate) fn is_in_process(definition: &CustomResourceDefinition) -> bool {
    let conversion = definition.spec.conversion.as_ref();
    conversion.is_some_and(|it| it.strategy == "Webhook" && it.webhook.is_none())
}

/// A definition with conversion by the manager, which adds its certificate authority.
fn definition_text(
    mut definition: CustomResourceDefinition,
    subset: &Subset,
    namespace: &str,
) -> anyhow::Result<String> {
    installed::annotate(&mut definition, subset, namespace);
    if definition.spec.versions.len() > 1 {
        definition.spec.conversion = Some(CustomResourceConversion {
            strategy: "Webhook".to_owned(),
            webhook: Some(WebhookConversion {
                client_config: Some(WebhookClientConfig {
                    service: Some(ServiceReference {
                        name: subset.named(SERVICE),
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
