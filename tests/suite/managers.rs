//! Who wrote what: every writer names itself in `managedFields`.

use std::collections::BTreeSet;

use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::{Discovery, verbs};
use kube::{Client, ResourceExt};

/// The field managers of everything that `client` can list.
///
/// # Panics
/// When one of them is empty or `unknown`.
pub(crate) async fn all(client: &Client) -> BTreeSet<String> {
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    let resources = discovery
        .groups()
        .flat_map(|group| group.recommended_resources());
    let mut managers = BTreeSet::new();
    for (resource, capabilities) in resources {
        if !capabilities.supports_operation(verbs::LIST) {
            continue;
        }
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        for object in api.list(&ListParams::default()).await.unwrap() {
            for entry in object.managed_fields() {
                let manager = entry.manager.clone().unwrap_or_default();
                let of = format!("{} {}: {entry:?}", resource.kind, object.name_any());
                assert!(!manager.is_empty() && manager != "unknown", "{of}");
                managers.insert(manager);
            }
        }
    }
    managers
}
