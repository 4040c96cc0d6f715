//! Restriction of the writes of nodes, by the content of the request: a node may write its own Node, Lease and
//! CSINode, the status of pods bound to the node, and tokens of such pods.
//!
//! Source of the rules and messages: `plugin/pkg/admission/noderestriction` of kube-apiserver.

mod token;

use apimachinery::value::text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer as _, X509CertificationRequest};

use super::node::{self, LEASES, references};
use crate::admission::Operation;
use crate::call::Call;
use crate::error::ApiError;

/// Annotation of mirror pods, the copies of a node's static pods.
pub(crate) const MIRROR: &str = "kubernetes.io/config.mirror";

/// Rejects a write of a node to an object of another node.
///
/// `object`: the object in the request, `None` on a deletion. `old`: the stored object, `None` on a create.
///
/// # Errors
/// 403 with the reason; 404 for a missing pod or Node that the write refers to.
pub(crate) fn admit(
    call: &Call,
    operation: Operation,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let node = node::name(&call.user);
    let write = Write {
        call,
        node: node.unwrap_or_default(),
        operation,
        object: object.unwrap_or(&Value::Null),
        old: old.unwrap_or(&Value::Null),
    };
    let subresource = call.subresource.as_deref().unwrap_or_default();
    let place = (call.group(), call.resource.plural.as_str(), subresource);
    if place == ("", "pods", "") && operation == Operation::Create {
        write.mirror()?;
    }
    let Some(node) = node else {
        return Ok(());
    };
    match place {
        _ if node.is_empty() => write.forbid("could not determine node from user \"system:node:\""),
        ("", "pods", "") => write.pod(),
        ("", "pods", "status") => write.pod_status(),
        ("", "pods", "eviction") => write.eviction(),
        ("", "pods", other) => write.forbid(format!(
            "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
        )),
        ("", "nodes", _) => write.node(),
        ("", "persistentvolumeclaims", "status") => write.claim_status(),
        ("", "persistentvolumeclaims", _) => write.forbid("may only update PVC status"),
        ("", "serviceaccounts", "token") => token::admit(&write),
        ("coordination.k8s.io", "leases", _) => write.lease(),
        ("storage.k8s.io", "csinodes", _) => write.csi_node(),
        ("certificates.k8s.io", "certificatesigningrequests", "") => write.signing_request(),
        _ => Ok(()),
    }
}

/// Write of a node.
struct Write<'a> {
    call: &'a Call,
    node: &'a str,
    operation: Operation,
    object: &'a Value,
    old: &'a Value,
}

impl Write<'_> {
    fn forbid(&self, why: impl AsRef<str>) -> Result<(), ApiError> {
        let metadata = &self.object["metadata"];
        let sent = [&metadata["name"], &metadata["generateName"]];
        let sent = sent.into_iter().filter_map(Value::as_str);
        let name = std::iter::once(self.call.name()).chain(sent);
        let name = name.into_iter().find(|name| !name.is_empty());
        Err(ApiError::forbidden(
            self.call.group(),
            &self.call.resource.plural,
            name.unwrap_or("Unknown"),
            why.as_ref(),
        ))
    }

    /// Name in the path, or of the new object.
    fn name(&self) -> &str {
        match self.call.name() {
            "" => text(&self.object["metadata"]["name"]),
            name => name,
        }
    }

    /// Stored object; 404 in the words of the listers of admission.
    fn stored(&self, plural: &str, namespace: &str, name: &str) -> Result<Value, ApiError> {
        let core = &self.call.core;
        let resource = core.store.registry().find("", plural);
        let resource = resource.ok_or_else(ApiError::unknown_resource)?;
        let key = resource.key(namespace, name);
        let found = core.store.get(&resource.collection, &key);
        let found = found.ok_or_else(|| ApiError::not_found("", &resource.singular, name))?;
        Ok(found.value())
    }

    fn pod(&self) -> Result<(), ApiError> {
        let node = self.node;
        match self.operation {
            Operation::Create => self.mirror_pod(),
            Operation::Delete if self.old["spec"]["nodeName"] == node => Ok(()),
            Operation::Delete => self.forbid(format!(
                "node {node:?} can only delete pods with spec.nodeName set to itself"
            )),
            Operation::Update => self.forbid(format!(
                "unexpected operation \"UPDATE\", node {node:?} can only create and delete mirror pods"
            )),
        }
    }

    /// Rejects a mirror pod with a service account or Secrets, for every user (the admission plugin
    /// `ServiceAccount`).
    fn mirror(&self) -> Result<(), ApiError> {
        let pod = self.object;
        if pod["metadata"]["annotations"][MIRROR].is_null() {
            return Ok(());
        }
        match references::any(pod) {
            Some("serviceaccounts") => {
                self.forbid("a mirror pod may not reference service accounts")
            }
            Some("secrets") => self.forbid("a mirror pod may not reference secrets"),
            Some("serviceaccounts (via projected volumes)") => {
                self.forbid("a mirror pod may not use service account token volume projections")
            }
            _ => Ok(()),
        }
    }

    fn mirror_pod(&self) -> Result<(), ApiError> {
        let (node, pod) = (self.node, self.object);
        if pod["metadata"]["annotations"][MIRROR].is_null() {
            return self.forbid(format!(
                "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
            ));
        }
        if pod["spec"]["nodeName"] != node {
            return self.forbid(format!(
                "node {node:?} can only create pods with spec.nodeName set to itself"
            ));
        }
        let owners = pod["metadata"]["ownerReferences"].as_array();
        let owner = match owners.map(Vec::as_slice).unwrap_or_default() {
            [owner] => owner,
            [] => {
                return self.forbid(format!(
                    "node {node:?} can only create pods with an owner reference set to itself"
                ));
            }
            _ => {
                return self.forbid(format!(
                    "node {node:?} can only create pods with a single owner reference set to itself"
                ));
            }
        };
        if owner["apiVersion"] != "v1" || owner["kind"] != "Node" || owner["name"] != node {
            return self.forbid(format!(
                "node {node:?} can only create pods with an owner reference set to itself"
            ));
        }
        if owner["controller"] != true {
            return self.forbid(format!(
                "node {node:?} can only create pods with a controller owner reference set to itself"
            ));
        }
        if owner["blockOwnerDeletion"] == true {
            return self.forbid(format!(
                "node {node:?} must not set blockOwnerDeletion on an owner reference"
            ));
        }
        let uid = self.stored("nodes", "", node)?["metadata"]["uid"].clone();
        if owner["uid"] != uid {
            return self.forbid(format!(
                "node {node} UID mismatch: expected {} got {}",
                text(&owner["uid"]),
                text(&uid)
            ));
        }
        match references::any(pod) {
            Some(kind) => self.forbid(format!(
                "node {node:?} can not create pods that reference {kind}"
            )),
            None => Ok(()),
        }
    }

    fn pod_status(&self) -> Result<(), ApiError> {
        let (node, old, new) = (self.node, self.old, self.object);
        if old["spec"]["nodeName"] != node {
            return self.forbid(format!(
                "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
            ));
        }
        let labels = |pod: &Value| pod["metadata"]["labels"].as_object().cloned();
        if labels(old).unwrap_or_default() != labels(new).unwrap_or_default() {
            return self.forbid(format!(
                "node {node:?} cannot update labels through pod status"
            ));
        }
        Ok(())
    }

    fn eviction(&self) -> Result<(), ApiError> {
        let pod = self.stored("pods", &self.call.namespace, self.name())?;
        if pod["spec"]["nodeName"] == self.node {
            return Ok(());
        }
        self.forbid(format!(
            "node {} can only evict pods with spec.nodeName set to itself",
            self.node
        ))
    }

    fn claim_status(&self) -> Result<(), ApiError> {
        let reported = [
            "capacity",
            "conditions",
            "allocatedResources",
            "allocatedResourceStatuses",
        ];
        let rest = |claim: &Value| {
            let mut claim = claim.clone();
            for (within, fields) in [
                ("status", reported.as_slice()),
                ("metadata", &["resourceVersion", "managedFields"]),
            ] {
                if let Some(within) = claim.get_mut(within).and_then(Value::as_object_mut) {
                    within.retain(|field, _| !fields.contains(&field.as_str()));
                }
            }
            if claim["status"] == json!({}) {
                claim["status"] = Value::Null;
            }
            claim
        };
        if rest(self.old) == rest(self.object) {
            return Ok(());
        }
        self.forbid(format!(
            "node {:?} is not allowed to update fields other than status.quantity and status.conditions",
            self.node
        ))
    }

    fn node(&self) -> Result<(), ApiError> {
        let (node, old, new) = (self.node, self.old, self.object);
        if self.name() != node {
            return self.forbid(format!(
                "node {node:?} is not allowed to modify node {:?}",
                self.name()
            ));
        }
        let labels = forbidden_labels(&new["metadata"]["labels"], &old["metadata"]["labels"]);
        let labels = labels.join(", ");
        match self.operation {
            Operation::Create if !new["spec"]["configSource"].is_null() => self.forbid(format!(
                "node {node:?} is not allowed to create pods with a non-nil configSource"
            )),
            Operation::Create if !labels.is_empty() => self.forbid(format!(
                "node {node:?} is not allowed to set the following labels: {labels}"
            )),
            Operation::Create | Operation::Delete => Ok(()),
            Operation::Update => {
                let changed = |part: &str, field: &str| {
                    let of = |object: &Value| match &object[part][field] {
                        Value::Array(items) if items.is_empty() => Value::Null,
                        value => value.clone(),
                    };
                    of(old) != of(new)
                };
                if !new["spec"]["configSource"].is_null() && changed("spec", "configSource") {
                    return self.forbid(format!(
                        "node {node:?} is not allowed to update configSource to a new non-nil configSource"
                    ));
                }
                if changed("spec", "taints") {
                    return self.forbid(format!("node {node:?} is not allowed to modify taints"));
                }
                if changed("metadata", "ownerReferences") {
                    return self.forbid(format!(
                        "node {node:?} is not allowed to modify ownerReferences"
                    ));
                }
                if !labels.is_empty() {
                    return self.forbid(format!("is not allowed to modify labels: {labels}"));
                }
                Ok(())
            }
        }
    }

    fn lease(&self) -> Result<(), ApiError> {
        if self.call.namespace != LEASES {
            return self.forbid(format!(
                "can only access leases in the {LEASES:?} system namespace"
            ));
        }
        if self.name() != self.node {
            let why = "can only access node lease with the same name as the requesting node";
            return self.forbid(why);
        }
        Ok(())
    }

    fn csi_node(&self) -> Result<(), ApiError> {
        if self.name() != self.node {
            let why = "can only access CSINode with the same name as the requesting node";
            return self.forbid(why);
        }
        Ok(())
    }

    /// Checks a certificate request: nodes may request certificates for themselves only.
    fn signing_request(&self) -> Result<(), ApiError> {
        let spec = &self.object["spec"];
        let signer = text(&spec["signerName"]);
        let of_nodes = [
            "kubernetes.io/kubelet-serving",
            "kubernetes.io/kube-apiserver-client-kubelet",
        ];
        if self.operation != Operation::Create || !of_nodes.contains(&signer) {
            return Ok(());
        }
        let Some(name) = common_name(text(&spec["request"])) else {
            return self.forbid("unable to parse csr: PEM block type must be CERTIFICATE REQUEST");
        };
        if name != format!("system:node:{}", self.node) {
            return self.forbid(format!(
                "can only create a node CSR with CN=system:node:{}",
                self.node
            ));
        }
        Ok(())
    }
}

/// Common name in a certificate request, empty if absent. `None` for a malformed request.
fn common_name(request: &str) -> Option<String> {
    let pem = STANDARD.decode(request).ok()?;
    let der = CertificateSigningRequestDer::from_pem_slice(&pem).ok()?;
    let (_, request) = X509CertificationRequest::from_der(&der).ok()?;
    let subject = &request.certification_request_info.subject;
    let name = subject.iter_common_name().next();
    let name = name.and_then(|name| name.as_str().ok());
    Some(name.unwrap_or_default().to_owned())
}

/// Changed labels that a node may not set on itself, sorted.
fn forbidden_labels(new: &Value, old: &Value) -> Vec<String> {
    let (new, old) = (new.as_object(), old.as_object());
    let labels = |map: Option<&serde_json::Map<String, Value>>| map.cloned().unwrap_or_default();
    let (new, old) = (labels(new), labels(old));
    let mut keys: Vec<&String> = new.keys().chain(old.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter()
        .filter(|key| new.get(*key) != old.get(*key) && is_forbidden(key))
        .cloned()
        .collect()
}

/// True for labels that restrict workloads to certain nodes, and for labels of Kubernetes that kubelets do not set.
fn is_forbidden(label: &str) -> bool {
    const OF_KUBELETS: [&str; 11] = [
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    ];
    let prefix = label.split_once('/').map_or("", |(prefix, _)| prefix);
    let within = |domain: &str| {
        prefix
            .strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let of_kubelets = OF_KUBELETS.contains(&label)
        || within("kubelet.kubernetes.io")
        || within("node.kubernetes.io");
    within("node-restriction.kubernetes.io")
        || (within("kubernetes.io") || within("k8s.io")) && !of_kubelets
}

#[cfg(test)]
mod tests;
