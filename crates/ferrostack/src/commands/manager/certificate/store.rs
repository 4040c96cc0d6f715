//! Secret of the certificate.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use installer::names::{CERTIFICATE, SERVICE};
use installer::subset::Subset;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::PostParams;
use operator::client::Api;
use secrecy::ExposeSecret;

use super::rotation::{self, Step};
use super::{Pair, Stored};
use crate::pki;

/// Validity of a certificate, in days.
const DAYS: i64 = 365;
/// Keys of the Secret, of type kubernetes.io/tls, including the keys of the next certificate.
const AUTHORITIES: &str = "ca.crt";
const SERVED: (&str, &str) = ("tls.crt", "tls.key");
const NEXT: (&str, &str) = ("next.crt", "next.key");

/// Secret of a manager's certificate.
pub(in crate::commands::manager) struct Store {
    secrets: Api<Secret>,
    name: String,
    title: String,
    /// Host names of the webhooks.
    names: Vec<String>,
}

impl Store {
    pub(super) fn new(
        client: &Client,
        subset: &Subset,
        namespace: &str,
        url: Option<&str>,
    ) -> Self {
        let name = subset.named(CERTIFICATE);
        let service = subset.named(SERVICE);
        let mut names = vec![
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
        ];
        if let Some(host) = url.and_then(host).filter(|host| !names.contains(host)) {
            names.push(host);
        }
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            title: format!("Secret {namespace}/{name}"),
            name,
            names,
        }
    }

    /// Reads the certificate, or issues one. If several managers find none, all use the certificate stored first.
    pub(super) async fn ensure(&self) -> anyhow::Result<Stored> {
        let title = &self.title;
        let stored = self.secrets.get_opt(&self.name).await;
        if stored
            .with_context(|| format!("reading the {title}"))?
            .is_none()
        {
            let secret = self.issued(DAYS)?;
            tracing::info!("creating the {title}");
            match self.secrets.create(&PostParams::default(), &secret).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                Err(source) => return Err(source).with_context(|| format!("creating the {title}")),
            }
        }
        self.read().await
    }

    pub(super) async fn read(&self) -> anyhow::Result<Stored> {
        Ok(self.get().await?.1)
    }

    async fn get(&self) -> anyhow::Result<(Secret, Stored)> {
        let title = &self.title;
        let secret = self.secrets.get(&self.name).await;
        let secret = secret.with_context(|| format!("reading the {title}"))?;
        let stored = stored(&secret).with_context(|| {
            format!(
                "the {title} is damaged: delete it, and the next manager to start creates another"
            )
        })?;
        Ok((secret, stored))
    }

    /// Takes the next [`Step`], if any. Another writer's change in between is left alone, and read the next time.
    pub(super) async fn advance(&self, is_registered: bool) -> anyhow::Result<Option<Step>> {
        let (mut secret, found) = self.get().await?;
        let Some(step) = rotation::step(&found, &self.names, is_registered, Timestamp::now())
        else {
            return Ok(None);
        };
        let data = secret.data.get_or_insert_default();
        match &step {
            Step::Prepare { names, authorities } => {
                let (authority, pair) = issue(names.clone(), DAYS)?;
                insert(data, AUTHORITIES, &format!("{authorities}{authority}"));
                insert(data, NEXT.0, &pair.certificate);
                insert(data, NEXT.1, pair.key.expose_secret());
            }
            Step::Switch => {
                for (next, served) in [(NEXT.0, SERVED.0), (NEXT.1, SERVED.1)] {
                    let Some(value) = data.remove(next) else {
                        bail!("the {} has no key {next}", self.title);
                    };
                    data.insert(served.to_owned(), value);
                }
            }
            Step::Forget { authorities } => insert(data, AUTHORITIES, authorities),
        }
        let params = PostParams::default();
        match self.secrets.replace(&self.name, &params, &secret).await {
            Ok(_) => Ok(Some(step)),
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(None),
            Err(source) => Err(source).with_context(|| format!("writing the {}", self.title)),
        }
    }

    /// [`Secret`] with a certificate, valid for this many days.
    pub(super) fn issued(&self, days: i64) -> anyhow::Result<Secret> {
        let (authority, pair) = issue(self.names.clone(), days)?;
        let mut data = BTreeMap::new();
        insert(&mut data, AUTHORITIES, &authority);
        insert(&mut data, SERVED.0, &pair.certificate);
        insert(&mut data, SERVED.1, pair.key.expose_secret());
        Ok(Secret {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(data),
            ..Secret::default()
        })
    }
}

fn insert(data: &mut BTreeMap<String, ByteString>, key: &str, text: &str) {
    data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
}

/// PEM of an authority, and an issued [`Pair`]. Each authority has a name of its own, to distinguish certificates of
/// different authorities.
fn issue(names: Vec<String>, days: i64) -> anyhow::Result<(String, Pair)> {
    let name = format!("ferrostack-webhook-{}", uuid::Uuid::new_v4());
    let (authority, identity) = pki::self_issued_for(&name, names, days)?;
    Ok((authority, identity.into()))
}

/// Content of a [`Secret`].
pub(super) fn stored(secret: &Secret) -> anyhow::Result<Stored> {
    let data = secret.data.as_ref();
    let text = |key: &str| {
        let value = data.and_then(|data| data.get(key));
        let value = value.with_context(|| format!("it has no key {key}"))?;
        String::from_utf8(value.0.clone()).with_context(|| format!("its key {key} is not UTF-8"))
    };
    let pair = |(certificate, key): (&str, &str)| -> anyhow::Result<Pair> {
        Ok(Pair {
            certificate: text(certificate)?,
            key: text(key)?.into(),
        })
    };
    let has_next = data.is_some_and(|it| it.contains_key(NEXT.0));
    Ok(Stored {
        authorities: text(AUTHORITIES)?,
        served: pair(SERVED)?,
        next: has_next.then(|| pair(NEXT)).transpose()?,
    })
}

/// Host of an https URL: without port, without the brackets of an IPv6 address.
fn host(url: &str) -> Option<String> {
    let url: http::Uri = url.parse().ok()?;
    let host = url.host()?.trim_matches(['[', ']']);
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_is_without_port_and_brackets() {
        assert_eq!(host("https://[::1]:9443").as_deref(), Some("::1"));
        assert_eq!(host("https://a.b/c").as_deref(), Some("a.b"));
        assert_eq!(host("https://"), None);
    }

    #[test]
    fn the_error_of_a_damaged_secret_names_the_missing_key() {
        let error = stored(&Secret::default()).err().unwrap();
        assert_eq!(error.to_string(), "it has no key ca.crt");
    }
}
