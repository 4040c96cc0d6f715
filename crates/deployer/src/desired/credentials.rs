//! Secret with the administrator's clouds.yaml, found by clients if mounted at `/etc/openstack`, and Secret with the
//! given certificate.

use std::collections::BTreeMap;

use serde_json::json;

use super::{CLOUD, HELD, IDENTITIES, Names, Step};
use crate::certificate;
use crate::held::GIVEN;
use crate::object::{Object, ObjectKind, Password};
use crate::service::edge;

/// Name of the step.
const STEP: &str = "credentials";
/// Name of the edge's step.
const EDGE: &str = "edge";
/// Path of the authority of the edge's certificate in clients.
const AUTHORITY: &str = "/etc/openstack/ca.crt";

/// Secret `NAME-admin`, with `clouds.yaml` and, if the certificate is not one that clients trust anyway, `ca.crt`.
///
/// # Errors
/// Reason why there is no certificate.
pub(super) fn step(names: &Names<'_>) -> Result<Step, String> {
    let parameters = &names.cloud.parameters;
    let mut needs = vec![IDENTITIES.to_owned()];
    let mut authority = None;
    if let Some(exposure) = edge::of(parameters) {
        needs.push(EDGE.to_owned());
        authority = match exposure.given() {
            Some(_) => names.held.authority(exposure).map(str::to_owned),
            None => Some(certificate::issued(names.cloud, names.held, exposure)?.authority),
        };
    }
    let mut content = BTreeMap::new();
    content.insert("clouds.yaml".to_owned(), clouds(names, authority.is_some()));
    content.extend(authority.map(|it| ("ca.crt".to_owned(), Password::new(it))));
    let name = format!("{}-admin", names.cloud.name);
    let fields = json!({"type": "Opaque"});
    let object = Object::new(ObjectKind::Secret, &name, names.metadata(STEP), fields);
    Ok(Step {
        name: STEP.to_owned(),
        part: CLOUD,
        needs,
        objects: vec![object.with_secret(content)],
        ..Step::default()
    })
}

/// Given certificate, in a Secret of the cloud. The edge reads this Secret: a copy of the user's certificate as long as
/// the latter is good, and the last good one otherwise.
pub(super) fn certificate(names: &Names<'_>) -> Option<Step> {
    let exposure = edge::of(&names.cloud.parameters)?;
    let pair = names.held.pair(exposure)?;
    let mut content = BTreeMap::from([
        (
            "tls.crt".to_owned(),
            Password::new(pair.certificate.as_str()),
        ),
        ("tls.key".to_owned(), pair.key.clone()),
    ]);
    // With it clients trust the good one as long as that stays.
    if let Some(authority) = names.held.authority(exposure) {
        content.insert("ca.crt".to_owned(), Password::new(authority));
    }
    let metadata = names.metadata(edge::CERTIFICATE);
    let fields = json!({"type": "kubernetes.io/tls"});
    let object = Object::new(ObjectKind::Secret, GIVEN, metadata, fields);
    Some(Step {
        name: edge::CERTIFICATE.to_owned(),
        part: CLOUD,
        needs: vec![HELD.to_owned()],
        objects: vec![object.with_secret(content)],
        ..Step::default()
    })
}

/// Content of clouds.yaml. Texts are in the form of JSON, which is valid YAML.
fn clouds(names: &Names<'_>, has_authority: bool) -> Password {
    let parameters = &names.cloud.parameters;
    let password = names.held.password("identity-admin");
    let [name, url, region, password] = [
        names.cloud.name.as_str(),
        &edge::public(parameters, "http://keystone:5000/v3"),
        &parameters.region,
        password.expose(),
    ]
    .map(|text| json!(text).to_string());
    let mut text = format!(
        "clouds:
  {name}:
    auth:
      auth_url: {url}
      username: admin
      password: {password}
      project_name: admin
      user_domain_name: Default
      project_domain_name: Default
    region_name: {region}
    identity_api_version: 3
    interface: public
"
    );
    if has_authority {
        text += &format!("    cacert: {AUTHORITY}\n");
    }
    Password::new(text)
}
