//! Objects that the server publishes and restores: the Service `kubernetes` with its endpoints, the address of the
//! server for pods, and the CA of client certificates, for extension API servers.
//!
//! Source of the objects: `pkg/controlplane` of kube-apiserver (`reconcilers`, `controller/kubernetesservice`,
//! `controller/clusterauthenticationtrust`).

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::core::Core;
use crate::namespaces::{SERVER, create_missing, object};
use crate::rest::edit;
use crate::store::{ObjectKey, WriteError};

const SERVICE: &str = "default/kubernetes";
const AUTHENTICATION: &str = "kube-system/extension-apiserver-authentication";

/// Object that is recreated after a deletion, with the fields that are restored after a change.
struct Kept {
    collection: &'static str,
    key: &'static str,
    object: Value,
    fields: &'static [&'static str],
}

/// Creates missing objects, and restores changed fields.
pub(crate) async fn keep(core: &Core) -> Result<(), String> {
    for kept in all(core) {
        let copy = || kept.object.clone();
        create_missing(core, SERVER, kept.collection, kept.key, copy).await?;
        kept.correct(core).await?;
    }
    Ok(())
}

/// True if the object at `place` is one of the [`Kept`] objects.
pub(crate) fn is_kept(core: &Core, place: &ObjectKey) -> bool {
    matches!(&*place.key, SERVICE | AUTHENTICATION)
        && all(core)
            .iter()
            .any(|kept| kept.collection == &*place.collection && kept.key == &*place.key)
}

impl Kept {
    async fn correct(&self, core: &Core) -> Result<(), String> {
        let (group, plural) = self.collection.split_once('/').unwrap_or_default();
        let Some(resource) = core.store.registry().find(group, plural) else {
            return Ok(());
        };
        let key: Arc<str> = self.key.into();
        let done = edit(core, &resource, &key, |live| {
            let differs = |field: &&&str| live[**field] != self.object[**field];
            let wrong: Vec<_> = self.fields.iter().filter(differs).collect();
            for field in &wrong {
                live[**field] = self.object[**field].clone();
            }
            !wrong.is_empty()
        });
        match done.await {
            Ok(_) | Err(WriteError::Conflict | WriteError::Closed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn all(core: &Core) -> Vec<Kept> {
    let options = &core.options;
    let mut all = Vec::new();
    if let Some(port) = options.kubernetes_service_port {
        all.push(Kept {
            collection: "/services",
            key: SERVICE,
            object: service(port),
            // The cluster IP and ports of an existing Service are kept.
            fields: &[],
        });
    }
    if let Some(address) = options.advertised {
        all.push(Kept {
            collection: "/endpoints",
            key: SERVICE,
            object: endpoints(address),
            fields: &["subsets"],
        });
        all.push(Kept {
            collection: "discovery.k8s.io/endpointslices",
            key: SERVICE,
            object: slice(address),
            fields: &["endpoints", "ports"],
        });
    }
    if let Some(ca) = &options.client_ca {
        let data = json!({"data": {"client-ca-file": ca}});
        let name = "extension-apiserver-authentication";
        all.push(Kept {
            collection: "/configmaps",
            key: AUTHENTICATION,
            object: object("ConfigMap", "kube-system", name, data),
            fields: &["data"],
        });
    }
    all
}

/// Service of the API server.
fn service(port: u16) -> Value {
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

fn port(address: SocketAddr) -> Value {
    json!([{"name": "https", "port": address.port(), "protocol": "TCP"}])
}

fn endpoints(address: SocketAddr) -> Value {
    let subsets = json!([{"addresses": [{"ip": address.ip()}], "ports": port(address)}]);
    let fields = json!({"subsets": subsets});
    let mut endpoints = object("Endpoints", "default", "kubernetes", fields);
    // The server writes the slice as well, so no controller has to derive one from this object.
    endpoints["metadata"]["labels"] = json!({"endpointslice.kubernetes.io/skip-mirror": "true"});
    endpoints
}

fn slice(address: SocketAddr) -> Value {
    let fields = json!({
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [address.ip()], "conditions": {"ready": true}}],
        "ports": port(address),
    });
    let mut slice = object("EndpointSlice", "default", "kubernetes", fields);
    slice["apiVersion"] = Value::from("discovery.k8s.io/v1");
    slice["metadata"]["labels"] = json!({"kubernetes.io/service-name": "kubernetes"});
    slice["metadata"]["generation"] = Value::from(1);
    slice
}
