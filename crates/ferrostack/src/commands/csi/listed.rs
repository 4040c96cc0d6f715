//! Lists of a cluster's objects, some of optional CRDs.

use std::fmt::Debug;

use anyhow::Context;
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Client, Resource};
use operator::client::Api;
use serde::de::DeserializeOwned;

/// All objects of a kind.
pub(crate) async fn all<K>(client: &Client) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let listed = api.list(&ListParams::default()).await;
    let listed = listed.with_context(|| format!("cannot list {}", K::plural(&())))?;
    Ok(listed.items)
}

/// All objects of a CRD's kind, in the first served one of these versions; none if no version is served.
pub(crate) async fn of_crd(
    client: &Client,
    group: &str,
    versions: &[&str],
    kind: &str,
) -> anyhow::Result<Vec<DynamicObject>> {
    for version in versions {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        match api.list(&ListParams::default()).await {
            Ok(listed) => return Ok(listed.items),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot list {}.{group}", resource.plural));
            }
        }
    }
    Ok(Vec::new())
}
