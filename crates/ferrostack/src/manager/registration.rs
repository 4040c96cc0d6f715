//! Registers the address and the certificate authority of our webhooks.
//!
//! The objects are part of the manifests (`generate manager`). The leader writes the address and the authority into
//! them, and again after the manifests were applied again.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ServiceReference as AdmissionService,
    ValidatingWebhookConfiguration, WebhookClientConfig as AdmissionClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, ServiceReference, WebhookClientConfig,
    WebhookConversion,
};
use kube::Client;
use kube::api::PostParams;
use operator::client::Api;
use operator::webhook;
use serde::de::DeserializeOwned;

use super::certificate::Certificate;
use super::subset::Subset;
use super::{manifests, ownership};

/// The Service through which the API server reaches the webhooks of a manager of all providers.
pub(super) const SERVICE: &str = "ferrostack-webhook";
/// The name of both webhook configurations of a manager of all providers.
pub(super) const CONFIGURATION: &str = "ferrostack";
/// The maximum number of writes to one object: the values, their ownership, and retries after conflicts.
const TRIES: usize = 5;
/// The interval in which the registration is checked.
const INTERVAL: Duration = Duration::from_secs(30);
/// The field manager of these writes.
const FIELD_MANAGER: &str = "ferrostack-manager";

/// The address and the certificate authority of the webhooks.
pub(super) struct Registration<'a> {
    subset: &'a Subset,
    namespace: &'a str,
    url: Option<&'a str>,
    authority: ByteString,
    /// The definitions with several versions. Their schemas are not read again for each look.
    converted: Vec<String>,
}

impl<'a> Registration<'a> {
    /// Webhooks at `url`, or else behind the Service in `namespace`.
    pub(super) fn new(
        subset: &'a Subset,
        namespace: &'a str,
        url: Option<&'a str>,
        certificate: &Certificate,
    ) -> Self {
        Self {
            subset,
            namespace,
            url,
            authority: ByteString(certificate.authority.clone().into_bytes()),
            converted: subset.converted(),
        }
    }

    /// Writes address and authority again whenever they were replaced.
    pub(super) async fn keep(&self, client: &Client) -> Infallible {
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Err(problem) = self.write(client).await {
                tracing::warn!("the webhooks may be unreachable: {problem:#}");
            }
        }
    }

    /// Writes address and authority where they differ.
    pub(super) async fn write(&self, client: &Client) -> anyhow::Result<()> {
        let configuration = self.subset.named(CONFIGURATION);
        if manifests::has_defaults(self.subset)? {
            let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
            change(&mutating, &configuration, |stored| {
                for hook in stored.webhooks.iter_mut().flatten() {
                    hook.client_config = self.admission(webhook::MUTATE);
                }
            })
            .await?;
        }
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        change(&validating, &configuration, |stored| {
            for hook in stored.webhooks.iter_mut().flatten() {
                hook.client_config = self.admission(webhook::VALIDATE);
            }
        })
        .await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        for name in &self.converted {
            change(&definitions, name, |stored| {
                stored.spec.conversion = Some(self.conversion());
            })
            .await?;
        }
        Ok(())
    }

    fn conversion(&self) -> CustomResourceConversion {
        CustomResourceConversion {
            strategy: "Webhook".to_owned(),
            webhook: Some(WebhookConversion {
                client_config: Some(WebhookClientConfig {
                    ca_bundle: Some(self.authority.clone()),
                    service: self.url.is_none().then(|| ServiceReference {
                        name: self.subset.named(SERVICE),
                        namespace: self.namespace.to_owned(),
                        path: Some(webhook::CONVERT.to_owned()),
                        port: Some(443),
                    }),
                    url: self.url.map(|url| format!("{url}{}", webhook::CONVERT)),
                }),
                conversion_review_versions: vec!["v1".to_owned()],
            }),
        }
    }

    fn admission(&self, path: &str) -> AdmissionClientConfig {
        AdmissionClientConfig {
            ca_bundle: Some(self.authority.clone()),
            service: self.url.is_none().then(|| AdmissionService {
                name: self.subset.named(SERVICE),
                namespace: self.namespace.to_owned(),
                path: Some(path.to_owned()),
                port: Some(443),
            }),
            url: self.url.map(|url| format!("{url}{path}")),
        }
    }
}

/// Changes the object `name` until `edit` changes nothing and the addresses belong to the field manager that applied
/// the object. Retries after conflicts.
async fn change<K>(api: &Api<K>, name: &str, edit: impl Fn(&mut K)) -> anyhow::Result<()>
where
    K: kube::Resource<DynamicType = ()>
        + Clone
        + PartialEq
        + DeserializeOwned
        + serde::Serialize
        + std::fmt::Debug,
{
    let title = format!("{} {name}", K::kind(&()));
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    for tries in 1..=TRIES {
        let stored = api.get(name).await;
        let stored = stored.with_context(|| {
            format!("reading {title}, which comes with `ferrostack generate manager`")
        })?;
        let mut wanted = stored.clone();
        edit(&mut wanted);
        // The server records the owner of a changed value, so the ownership is changed in the next iteration.
        if wanted == stored
            && let Some(owners) = &mut wanted.meta_mut().managed_fields
        {
            ownership::give_back(owners);
        }
        if wanted == stored {
            return Ok(());
        }
        match api.replace(name, &params, &wanted).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_conflict() && tries < TRIES => {}
            Err(source) => {
                return Err(source).with_context(|| format!("writing the webhooks to {title}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
