//! The certificate of the webhooks: issued by the first manager, stored in a Secret, shared by all managers.

use std::collections::BTreeMap;

use anyhow::Context;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Client, ResourceExt};
use operator::client::Api;
use secrecy::{ExposeSecret, SecretString};

use super::registration::SERVICE;
use super::subset::Subset;
use crate::up::pki;

/// The Secret, of type kubernetes.io/tls, with the certificate authority in `ca.crt`.
const SECRET: &str = "ferrostack-webhook-certificate";

/// A server certificate with its key, and the certificate authority that issued it. All PEM.
pub(super) struct Certificate {
    pub(super) authority: String,
    pub(super) certificate: String,
    pub(super) key: SecretString,
}

/// Reads the certificate, or issues one that is valid for ten years. To replace it, delete the Secret and restart the
/// managers.
///
/// If several managers find none, the first one to store a certificate wins, and all use that one.
pub(super) async fn ensure(
    client: &Client,
    subset: &Subset,
    namespace: &str,
    url: Option<&str>,
) -> anyhow::Result<Certificate> {
    let name = subset.named(SECRET);
    let title = format!("Secret {namespace}/{name}");
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let stored = secrets.get_opt(&name).await;
    let stored = match stored.with_context(|| format!("reading the {title}"))? {
        Some(stored) => stored,
        None => match secrets
            .create(&PostParams::default(), &issued(subset, namespace, url)?)
            .await
        {
            Ok(created) => created,
            Err(kube::Error::Api(status)) if status.is_already_exists() => secrets
                .get(&name)
                .await
                .with_context(|| format!("reading the {title}"))?,
            Err(source) => return Err(source).with_context(|| format!("creating the {title}")),
        },
    };
    read(&stored).with_context(|| {
        format!("the {title} is damaged: delete it, and the next manager to start creates another")
    })
}

fn issued(subset: &Subset, namespace: &str, url: Option<&str>) -> anyhow::Result<Secret> {
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
    let (authority, identity) = pki::self_issued("ferrostack-webhook", names)?;
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(subset.named(SECRET)),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(BTreeMap::from([
            ("ca.crt".to_owned(), bytes(&authority)),
            ("tls.crt".to_owned(), bytes(&identity.certificate)),
            ("tls.key".to_owned(), bytes(identity.key.expose_secret())),
        ])),
        ..Secret::default()
    })
    .inspect(|secret| tracing::info!("creating the certificate {}", secret.name_any()))
}

fn read(secret: &Secret) -> anyhow::Result<Certificate> {
    let text = |key: &str| {
        let value = secret.data.as_ref().and_then(|data| data.get(key));
        let value = value.with_context(|| format!("it has no key {key}"))?;
        String::from_utf8(value.0.clone()).with_context(|| format!("its key {key} is not UTF-8"))
    };
    Ok(Certificate {
        authority: text("ca.crt")?,
        certificate: text("tls.crt")?,
        key: text("tls.key")?.into(),
    })
}

/// The host of an https URL: without port, without the brackets of an IPv6 address.
fn host(url: &str) -> Option<String> {
    let url: http::Uri = url.parse().ok()?;
    let host = url.host()?.trim_matches(['[', ']']);
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issued_certificate_can_be_read_and_served() {
        let subset = Subset::all();
        let secret = issued(&subset, "somewhere", Some("https://[::1]:9443")).unwrap();
        let certificate = read(&secret).unwrap();
        let (_, pem) = x509(&certificate.certificate);
        for name in ["ferrostack-webhook.somewhere.svc", "localhost"] {
            assert!(pem.contains(name), "{name}");
        }
        let key = certificate.key.expose_secret();
        apiserver::server_config(&certificate.certificate, key, None).unwrap();
        assert_eq!(host("https://[::1]:9443").as_deref(), Some("::1"));
        assert_eq!(host("https://a.b/c").as_deref(), Some("a.b"));
        assert_eq!(host("https://"), None);
    }

    #[test]
    fn the_error_of_a_damaged_secret_names_the_missing_key() {
        let error = read(&Secret::default()).err().unwrap();
        assert_eq!(error.to_string(), "it has no key ca.crt");
    }

    /// The DER of the first certificate, and the text readable in it.
    fn x509(pem: &str) -> (Vec<u8>, String) {
        use base64::Engine as _;
        let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let der = base64::engine::general_purpose::STANDARD
            .decode(body)
            .unwrap();
        let text = String::from_utf8_lossy(&der).into_owned();
        (der, text)
    }
}
