//! `generate manager`: all manifests of the manager.

use api::providers::Provider;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, ServiceReference, WebhookClientConfig,
    WebhookConversion,
};
use operator::webhook;
use serde_json::Value;

use crate::installed;
use crate::names::{CERTIFICATE, CONFIGURATION, IMAGE, MANAGER, NAMESPACE, SERVICE};
use crate::subset::Subset;

/// Files of config/ in the order of their application; the CRDs come after the namespace.
const NAMESPACE_FILE: &str = include_str!("../../../config/manager/namespace.yaml");
const ACCOUNT: &str = include_str!("../../../config/rbac/rbac.yaml");
const ROLE: &str = include_str!("../../../config/rbac/role.yaml");
const WEBHOOKS: &str = include_str!("../../../config/webhook/webhooks.yaml");
const SERVICE_FILE: &str = include_str!("../../../config/manager/service.yaml");
/// Deployment of the managers, with its budget and its policy; included only with an image.
const DEPLOYMENT: &str = include_str!("../../../config/manager/deployment.yaml");

/// Permissions of the controller of clouds, in their namespace.
const CLOUDS: &str = include_str!("../../../config/rbac/openstack.yaml");
/// ClusterRole in [`CLOUDS`], and its binding.
pub(crate) const NODES_OF_CLOUDS: &str = "ferrostack-manager-nodes";
/// Namespace of clouds in [`CLOUDS`], on a line of its own.
const OF_CLOUDS: &str = "namespace: openstack\n";
/// Objects for cert-manager to issue the certificate of the webhooks.
pub(crate) const CERT_MANAGER: &str = include_str!("../../../config/manager/certificate.yaml");
/// Annotation with a Certificate, `NAMESPACE/NAME`: cert-manager writes its authority into the annotated object.
pub(crate) const INJECT: &str = "cert-manager.io/inject-ca-from";
/// Lines added to the Deployment for the certificate of cert-manager, each with the line after it.
pub(crate) const MOUNTED: [(&str, &str); 3] = [
    (
        "      containers:\n",
        "      volumes:
      - name: webhook-certificate
        secret:
          secretName: ferrostack-webhook-cert-manager
",
    ),
    (
        "        ports:\n",
        "        - --webhook-cert-dir=/etc/ferrostack/webhook\n",
    ),
    (
        "        livenessProbe:\n",
        "        volumeMounts:
        - name: webhook-certificate
          mountPath: /etc/ferrostack/webhook
          readOnly: true
",
    ),
];

/// Certificate of cert-manager in a namespace, as named in the annotation [`INJECT`].
pub(crate) fn certificate(namespace: &str) -> String {
    format!("{namespace}/{SERVICE}")
}

/// Issuer of the certificate of the webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issuer {
    /// The manager itself.
    Manager,
    /// cert-manager, by an Issuer and a Certificate.
    CertManager,
}

/// Last argument in the Deployment.
const LAST: &str = "        - --webhook-addr=:9443\n";

/// Manifests of a manager of a [`Subset`], as one YAML stream; with a Deployment if `image` is given, and with the
/// permission to run clouds in a namespace.
///
/// # Errors
/// If a manifest cannot be written as YAML.
pub fn render(
    subset: &Subset,
    namespace: &str,
    image: Option<&str>,
    clouds: Option<&str>,
) -> anyhow::Result<String> {
    render_by(subset, namespace, image, clouds, Issuer::Manager)
}

/// As [`render`], with the issuer of the certificate of the webhooks.
///
/// # Errors
/// If a manifest cannot be written as YAML.
pub fn render_by(
    subset: &Subset,
    namespace: &str,
    image: Option<&str>,
    clouds: Option<&str>,
    issuer: Issuer,
) -> anyhow::Result<String> {
    let by_cert_manager = issuer == Issuer::CertManager;
    let authority = format!("{namespace}/{}", subset.named(SERVICE));
    let authority = by_cert_manager.then_some(authority.as_str());
    // The names in webhook configurations are replaced afterwards.
    let renamed_later = certificate(NAMESPACE);
    let renamed_later = by_cert_manager.then_some(renamed_later.as_str());
    let mut documents = vec![NAMESPACE_FILE.to_owned()];
    for definition in subset.definitions() {
        documents.push(definition_text(definition, subset, namespace, authority)?);
    }
    documents.push(names(subset, ACCOUNT));
    documents.push(names(subset, &role(subset)));
    documents.extend(webhooks(subset, renamed_later)?);
    documents.push(names(subset, SERVICE_FILE));
    if by_cert_manager {
        documents.push(names(subset, CERT_MANAGER));
    }
    if let Some(image) = image {
        let mut text = deployment(subset, image, clouds);
        if by_cert_manager {
            for (line, more) in MOUNTED {
                text = text.replace(line, &format!("{more}{line}"));
            }
        }
        documents.push(names(subset, &text));
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

/// [`NODES_OF_CLOUDS`] and its binding, of a manager with clouds.
pub(crate) fn nodes_of_clouds(subset: &Subset, namespace: &str) -> String {
    let documents = CLOUDS.split("---\n");
    let documents: Vec<&str> = documents
        .filter(|it| it.contains(NODES_OF_CLOUDS))
        .collect();
    names(subset, &documents.join("---\n")).replace(NAMESPACE, namespace)
}

/// ClusterRole: permissions of every manager, and of the controllers of its providers.
fn role(subset: &Subset) -> String {
    let rules = subset.providers().iter().map(|it| rules(*it));
    std::iter::once(ROLE).chain(rules).collect()
}

/// Rules of the ClusterRole for the controllers of a [`Provider`], as the lines of a list.
pub(crate) fn rules(provider: Provider) -> &'static str {
    match provider {
        Provider::Core => include_str!("../../../config/rbac/core.yaml"),
        Provider::Bootstrap => include_str!("../../../config/rbac/bootstrap.yaml"),
        Provider::ControlPlane => include_str!("../../../config/rbac/control-plane.yaml"),
        Provider::Infrastructure => include_str!("../../../config/rbac/infrastructure.yaml"),
    }
}

/// Webhook configurations with the rules for kinds of the [`Subset`]; without configurations that lack rules.
fn webhooks(subset: &Subset, authority: Option<&str>) -> anyhow::Result<Vec<String>> {
    let mut configurations = configurations(subset)?;
    if let Some(authority) = authority {
        for it in &mut configurations {
            it["metadata"]["annotations"] = serde_json::json!({INJECT: authority});
        }
    }
    let texts = configurations.iter().map(|it| {
        let text = serde_saphyr::to_string(it)?;
        Ok(names(subset, &text))
    });
    texts.collect()
}

/// True if there are rules for defaults.
///
/// # Errors
/// If the configurations are no YAML.
pub fn has_defaults(subset: &Subset) -> anyhow::Result<bool> {
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

/// Document with the names for objects of this [`Subset`].
fn names(subset: &Subset, text: &str) -> String {
    if subset.is_all() {
        return text.to_owned();
    }
    renamed(text, |name| subset.named(name))
}

/// Document with its per-manager names replaced by `named`.
pub fn renamed(text: &str, named: impl Fn(&str) -> String) -> String {
    let lease = "controller-leader-election-ferrostack]";
    let text = text.replace(lease, &format!("{}]", named(lease.trim_end_matches(']'))));
    let text = text.replace(MANAGER, &named(MANAGER));
    // The name of the Secret begins with that of the Service.
    let parts = text.split(CERTIFICATE);
    let parts: Vec<String> = parts
        .map(|part| part.replace(SERVICE, &named(SERVICE)))
        .collect();
    let text = parts.join(&named(CERTIFICATE));
    let configuration = named(CONFIGURATION);
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

/// [`CustomResourceDefinition`] with conversion by the manager, whose certificate authority the manager adds.
fn definition_text(
    mut definition: CustomResourceDefinition,
    subset: &Subset,
    namespace: &str,
    authority: Option<&str>,
) -> anyhow::Result<String> {
    installed::annotate(&mut definition, subset, namespace);
    if definition.spec.versions.len() > 1 {
        if let (Some(authority), Some(annotations)) =
            (authority, &mut definition.metadata.annotations)
        {
            annotations.insert(INJECT.to_owned(), authority.to_owned());
        }
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
