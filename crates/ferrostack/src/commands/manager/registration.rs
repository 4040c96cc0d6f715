//! Registers the address and the certificate authority of the manager's webhooks.
//!
//! The objects are part of the manifests (`generate manager`). The leader writes the address and the authority into
//! these objects, and again after the manifests were applied again.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Context;
use installer::manifests;
use installer::names::{CONFIGURATION, SERVICE};
use installer::subset::Subset;
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

use super::certificate::Source;
use super::certificate::rotation::Step;
use super::ownership;

/// Maximum number of writes to one object: the values, their ownership, and retries after conflicts.
const TRIES: usize = 5;
/// Interval between checks of the registration.
const INTERVAL: Duration = Duration::from_secs(30);
/// Number of checks in a row that must find the authorities registered, before a certificate of another authority is
/// served. API servers see a change of the configurations within seconds.
const SETTLED: u32 = 4;
/// Field manager of the writes.
const FIELD_MANAGER: &str = "ferrostack-manager";

/// Address and certificate authority of the webhooks.
pub(super) struct Registration<'a> {
    subset: &'a Subset,
    namespace: &'a str,
    url: Option<&'a str>,
    /// CRDs with several versions. Their schemas are not read again in each check.
    converted: Vec<String>,
}

/// Number of checks in a row with these authorities registered.
#[derive(Default)]
pub(super) struct Registered {
    authorities: String,
    looks: u32,
}

impl<'a> Registration<'a> {
    /// Webhooks at `url`, or else behind the Service in `namespace`.
    pub(super) fn new(subset: &'a Subset, namespace: &'a str, url: Option<&'a str>) -> Self {
        Self {
            subset,
            namespace,
            url,
            converted: subset.converted(),
        }
    }

    /// Writes address and authorities again after a replacement, and renews the certificate of the [`Source`] in time.
    pub(super) async fn keep(&self, client: &Client, source: &Source) -> Infallible {
        let mut registered = Registered::default();
        loop {
            tokio::time::sleep(INTERVAL).await;
            match self.look(client, source, &mut registered).await {
                Ok(Some(step)) => {
                    tracing::info!("the certificate of the webhooks: {}", step.text())
                }
                Ok(None) => {}
                Err(problem) => tracing::warn!("the webhooks may be unreachable: {problem:#}"),
            }
        }
    }

    /// Writes differences, and takes a step towards the next certificate when due.
    pub(super) async fn look(
        &self,
        client: &Client,
        source: &Source,
        registered: &mut Registered,
    ) -> anyhow::Result<Option<Step>> {
        let authorities = source.authorities().await?;
        self.write(client, authorities.as_deref()).await?;
        let authorities = authorities.unwrap_or_default();
        registered.looks = match registered.authorities == authorities {
            true => registered.looks.saturating_add(1),
            false => 1,
        };
        registered.authorities = authorities;
        source.advance(registered.looks > SETTLED).await
    }

    /// Writes address and authorities that differ; without authorities, existing ones stay.
    pub(super) async fn write(
        &self,
        client: &Client,
        authorities: Option<&str>,
    ) -> anyhow::Result<()> {
        let bundle = authorities.map(|it| ByteString(it.as_bytes().to_vec()));
        let bundle = |there: &Option<ByteString>| bundle.clone().or_else(|| there.clone());
        let configuration = self.subset.named(CONFIGURATION);
        if manifests::has_defaults(self.subset)? {
            let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
            change(&mutating, &configuration, |stored| {
                for hook in stored.webhooks.iter_mut().flatten() {
                    let bundle = bundle(&hook.client_config.ca_bundle);
                    hook.client_config = self.admission(webhook::MUTATE, bundle);
                }
            })
            .await?;
        }
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        change(&validating, &configuration, |stored| {
            for hook in stored.webhooks.iter_mut().flatten() {
                let bundle = bundle(&hook.client_config.ca_bundle);
                hook.client_config = self.admission(webhook::VALIDATE, bundle);
            }
        })
        .await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        for name in &self.converted {
            change(&definitions, name, |stored| {
                let there = stored.spec.conversion.as_ref();
                let there = there.and_then(|it| it.webhook.as_ref()?.client_config.as_ref());
                let bundle = bundle(&there.and_then(|it| it.ca_bundle.clone()));
                stored.spec.conversion = Some(self.conversion(bundle));
            })
            .await?;
        }
        Ok(())
    }

    fn conversion(&self, bundle: Option<ByteString>) -> CustomResourceConversion {
        CustomResourceConversion {
            strategy: "Webhook".to_owned(),
            webhook: Some(WebhookConversion {
                client_config: Some(WebhookClientConfig {
                    ca_bundle: bundle,
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

    fn admission(&self, path: &str, ca_bundle: Option<ByteString>) -> AdmissionClientConfig {
        AdmissionClientConfig {
            ca_bundle,
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
