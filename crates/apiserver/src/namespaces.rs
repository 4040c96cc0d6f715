//! The namespaces that every cluster has, and the objects that every namespace has.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::crd::seconds;
use crate::patch::managed::{self, Writer};
use crate::rest::view::Kind;
use crate::server::{Core, OpenError};
use crate::store::{Write, WriteError};

/// The ConfigMap with the certificate authority of the server.
const ROOT_CA: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const DESCRIBED: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";
const ALWAYS: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates missing default namespaces, the objects that every namespace has, and the Service of the server.
pub(crate) async fn bootstrap(core: &Arc<Core>) -> Result<(), OpenError> {
    fill(core).await.map_err(|problem| OpenError::Option {
        option: "store",
        problem,
    })
}

async fn fill(core: &Core) -> Result<(), String> {
    for name in ALWAYS {
        create_missing(core, "/namespaces", name, || namespace(name)).await?;
    }
    let open: Vec<String> = {
        let state = core.store.read();
        let all = state.range("/namespaces", "", None);
        let open = all.filter(|namespace| !namespace.facts.deleting);
        open.map(|namespace| namespace.name().to_owned()).collect()
    };
    for namespace in open {
        create_defaults(core, &namespace).await?;
    }
    if let Some(port) = core.options.kubernetes_service_port {
        let service = || kubernetes_service(port);
        create_missing(core, "/services", "default/kubernetes", service).await?;
    }
    Ok(())
}

/// Creates the objects that every namespace has: its default service account, and the ConfigMap with the authority by
/// which pods verify the server.
pub(crate) async fn create_defaults(core: &Core, namespace: &str) -> Result<(), String> {
    let key = format!("{namespace}/default");
    let account = || object("ServiceAccount", namespace, "default", json!({}));
    create_missing(core, "/serviceaccounts", &key, account).await?;
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
    create_missing(core, "/configmaps", &key, map).await
}

/// Whether an object is one of those that every namespace has.
pub(crate) fn is_in_every_namespace(collection: &str, name: &str) -> bool {
    matches!(
        (collection, name),
        ("/serviceaccounts", "default") | ("/configmaps", ROOT_CA)
    )
}

/// Restores the content of the authority's ConfigMap. Returns whether it changed.
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

async fn create_missing(
    core: &Core,
    collection: &str,
    key: &str,
    object: impl Fn() -> Value,
) -> Result<(), String> {
    if core.store.get(collection, key).is_some() {
        return Ok(());
    }
    let mut object = object();
    record(core, collection, &mut object);
    let write = Write::create(collection, key, &object).map_err(|error| error.to_string())?;
    match core.store.write(write).await {
        // Nothing is created in a namespace that is being deleted.
        Ok(_) | Err(WriteError::Conflict | WriteError::Closed(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Sets the managers of an object: `kube-controller-manager` for objects that its controllers create in a real cluster,
/// `kube-apiserver` for all others.
fn record(core: &Core, collection: &str, object: &mut Value) {
    let Some(resource) = core.store.registry().find("", &collection[1..]) else {
        return;
    };
    let manager = match object["kind"].as_str() {
        Some("ConfigMap" | "ServiceAccount") => "kube-controller-manager",
        _ => "kube-apiserver",
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
        api_version: "v1",
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

fn object(kind: &str, namespace: &str, name: &str, mut fields: Value) -> Value {
    fields["apiVersion"] = Value::from("v1");
    fields["kind"] = Value::from(kind);
    fields["metadata"] = json!({
        "name": name, "namespace": namespace, "uid": uuid::Uuid::new_v4().to_string(),
        "creationTimestamp": seconds(jiff::Timestamp::now()),
    });
    fields
}

/// The Service `kubernetes`, by which pods reach the server.
fn kubernetes_service(port: u16) -> Value {
    let spec = json!({
        "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "type": "ClusterIP", "sessionAffinity": "None",
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
    });
    let fields = json!({"spec": spec, "status": {"loadBalancer": {}}});
    let mut service = object("Service", "default", "kubernetes", fields);
    service["metadata"]["labels"] = json!({"component": "apiserver", "provider": "kubernetes"});
    service
}

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": name, "uid": uuid::Uuid::new_v4().to_string(),
            "creationTimestamp": seconds(jiff::Timestamp::now()),
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}
