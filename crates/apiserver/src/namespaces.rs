//! Default objects of every namespace.

use apimachinery::patch::managed::{self, Writer};
use apimachinery::time::seconds;
use serde_json::{Value, json};

use crate::core::Core;
use crate::store::{Write, WriteError};
use crate::view::Kind;

/// ConfigMap with the certificate authority of the server.
const ROOT_CA: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const DESCRIBED: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";
/// Field managers of objects created by kube-apiserver, and by kube-controller-manager.
pub(crate) const SERVER: &str = "kube-apiserver";
const CONTROLLERS: &str = "kube-controller-manager";
/// Creates the default objects of a namespace: the default service account, and the ConfigMap with the authority for
/// pods, which verify the server by it.
pub(crate) async fn create_defaults(core: &Core, namespace: &str) -> Result<(), String> {
    let key = format!("{namespace}/default");
    let account = || object("ServiceAccount", namespace, "default", json!({}));
    create_missing(core, CONTROLLERS, "/serviceaccounts", &key, account).await?;
    let Some(ca) = &core.options.root_ca else {
        return Ok(());
    };
    let key = format!("{namespace}/{ROOT_CA}");
    let map = || {
        let data = json!({"data": {"ca.crt": ca}});
        let mut map = object("ConfigMap", namespace, ROOT_CA, data);
        map["metadata"]["annotations"] = json!({DESCRIPTION: DESCRIBED});
        map
    };
    create_missing(core, CONTROLLERS, "/configmaps", &key, map).await
}

/// True for the default objects of namespaces.
pub(crate) fn is_in_every_namespace(collection: &str, name: &str) -> bool {
    matches!(
        (collection, name),
        ("/serviceaccounts", "default") | ("/configmaps", ROOT_CA)
    )
}

/// Restores the content of the authority's ConfigMap. Returns true if the content changed.
pub(crate) fn correct(core: &Core, map: &mut Value) -> bool {
    let Some(ca) = core
        .options
        .root_ca
        .as_ref()
        .filter(|_| map["kind"] == "ConfigMap")
    else {
        return false;
    };
    let data = json!({"ca.crt": ca});
    let description = map["metadata"]["annotations"][DESCRIPTION].as_str();
    if map["data"] == data && description.is_some_and(|text| !text.is_empty()) {
        return false;
    }
    map["data"] = data;
    map["metadata"]["annotations"][DESCRIPTION] = Value::from(DESCRIBED);
    true
}

/// Creates a missing object, with `manager` as the manager of its fields.
pub(crate) async fn create_missing(
    core: &Core,
    manager: &str,
    collection: &str,
    key: &str,
    object: impl Fn() -> Value,
) -> Result<(), String> {
    if core.store.get(collection, key).is_some() {
        return Ok(());
    }
    let mut object = object();
    record(core, manager, collection, &mut object);
    let write = Write::create(collection, key, &object).map_err(|error| error.to_string())?;
    match core.store.write(write).await {
        // Nothing is created in a namespace being deleted.
        Ok(_) | Err(WriteError::Conflict | WriteError::Closed(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn record(core: &Core, manager: &str, collection: &str, object: &mut Value) {
    let (group, plural) = collection.split_once('/').unwrap_or_default();
    let Some(resource) = core.store.registry().find(group, plural) else {
        return;
    };
    let mut owned = object.clone();
    // Addresses are set by the storage, finalizers by the strategy, so both have no manager.
    for field in ["clusterIPs", "ipFamilies", "finalizers"] {
        if let Some(spec) = owned.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove(field);
        }
    }
    let writer = Writer {
        manager,
        subresource: "",
        api_version: &resource.stored,
        time: &seconds(jiff::Timestamp::now()),
    };
    let kind = Kind {
        core,
        resource: &resource,
    };
    // A failure to record managers never fails a write.
    let _ = managed::update(None, &mut owned, writer, &kind);
    let fields = owned["metadata"]["managedFields"].take();
    if fields.is_array() {
        object["metadata"]["managedFields"] = fields;
    }
}

/// Object of the core group.
pub(crate) fn object(kind: &str, namespace: &str, name: &str, mut fields: Value) -> Value {
    fields["apiVersion"] = Value::from("v1");
    fields["kind"] = Value::from(kind);
    fields["metadata"] = json!({
        "name": name, "namespace": namespace, "uid": uuid::Uuid::new_v4().to_string(),
        "creationTimestamp": seconds(jiff::Timestamp::now()),
    });
    fields
}
