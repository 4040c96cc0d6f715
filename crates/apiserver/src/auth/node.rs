//! Node authorizer: a node may read the objects that its pods refer to, and write its own status.
//! [`super::restriction`] checks the content of a node's writes.
//!
//! Source of the rules and messages: `plugin/pkg/auth/authorizer/node` of kube-apiserver.

pub(super) mod references;

use super::rules::{Attributes, Denied, is_read};
use crate::core::Core;
use crate::user::UserInfo;

use references::{Kind, is_related};

pub(super) const LEASES: &str = "kube-node-lease";

/// Name of the node, if the user is one.
pub(crate) fn name(user: &UserInfo) -> Option<&str> {
    let name = user.name.strip_prefix("system:node:")?;
    user.is_in("system:nodes").then_some(name)
}

/// Authorizes a request of a node.
///
/// # Errors
/// The reason for the denial.
pub(super) fn decide(core: &Core, node: &str, wanted: &Attributes) -> Result<(), Denied> {
    if node.is_empty() {
        return deny("unknown node for user \"system:node:\"");
    }
    let asked = Asked { core, node, wanted };
    match (wanted.group.as_str(), wanted.resource.as_str()) {
        ("", "secrets") => asked.read(Kind::Secret),
        ("", "configmaps") => asked.read(Kind::ConfigMap),
        ("", "persistentvolumeclaims") if wanted.subresource == "status" => {
            asked.report(Kind::Claim)
        }
        ("", "persistentvolumeclaims") => asked.get(Kind::Claim),
        ("", "persistentvolumes") => asked.get(Kind::Volume),
        ("storage.k8s.io", "volumeattachments") => asked.get(Kind::Attachment),
        ("", "serviceaccounts") if wanted.verb == "get" && wanted.subresource.is_empty() => {
            asked.read(Kind::Account)
        }
        ("", "serviceaccounts") => asked.token(),
        ("coordination.k8s.io", "leases") => asked.lease(),
        ("storage.k8s.io", "csinodes") => asked.csi_node(),
        ("", "nodes") => asked.node(),
        ("", "pods") => asked.pod(),
        _ if is_of_all_nodes(wanted) => Ok(()),
        _ => deny(""),
    }
}

fn deny(reason: impl Into<String>) -> Result<(), Denied> {
    Err(Denied {
        reason: reason.into(),
    })
}

/// True for permissions of every node, regardless of the object (`NodeRules` of the bootstrap policy).
fn is_of_all_nodes(wanted: &Attributes) -> bool {
    let verb = wanted.verb.as_str();
    wanted.subresource.is_empty()
        && match (wanted.group.as_str(), wanted.resource.as_str()) {
            ("authentication.k8s.io", "tokenreviews")
            | ("authorization.k8s.io", "subjectaccessreviews" | "localsubjectaccessreviews") => {
                verb == "create"
            }
            ("", "services") => is_read(verb),
            ("", "events") => matches!(verb, "create" | "update" | "patch"),
            ("", "endpoints") => verb == "get",
            ("certificates.k8s.io", "certificatesigningrequests") => {
                is_read(verb) || verb == "create"
            }
            ("storage.k8s.io", "csidrivers") | ("node.k8s.io", "runtimeclasses") => is_read(verb),
            _ => false,
        }
}

/// Request of a node.
struct Asked<'a> {
    core: &'a Core,
    node: &'a str,
    wanted: &'a Attributes,
}

impl Asked<'_> {
    /// get, list and watch of single objects in a namespace.
    fn read(&self, kind: Kind) -> Result<(), Denied> {
        if !is_read(&self.wanted.verb) {
            return deny("can only read resources of this type");
        }
        if !self.wanted.subresource.is_empty() {
            return deny("cannot read subresource");
        }
        if self.wanted.namespace.is_empty() {
            return deny("can only read namespaced object of this type");
        }
        self.related(kind)
    }

    fn get(&self, kind: Kind) -> Result<(), Denied> {
        if self.wanted.verb != "get" {
            return deny("can only get individual resources of this type");
        }
        if !self.wanted.subresource.is_empty() {
            return deny("cannot get subresource");
        }
        self.related(kind)
    }

    /// Update of a status.
    fn report(&self, kind: Kind) -> Result<(), Denied> {
        if !matches!(self.wanted.verb.as_str(), "update" | "patch") {
            return deny("can only get/update/patch this type");
        }
        self.related(kind)
    }

    fn related(&self, kind: Kind) -> Result<(), Denied> {
        if self.wanted.name.is_empty() {
            return deny("No Object name found");
        }
        let (namespace, name) = (&self.wanted.namespace, &self.wanted.name);
        if is_related(self.core, self.node, kind, namespace, name) {
            return Ok(());
        }
        deny(format!(
            "no relationship found between node '{}' and this object",
            self.node
        ))
    }

    fn token(&self) -> Result<(), Denied> {
        if self.wanted.verb != "create" || self.wanted.name.is_empty() {
            return deny("can only create tokens for individual service accounts");
        }
        if self.wanted.subresource != "token" {
            return deny("can only create token subresource of serviceaccount");
        }
        self.related(Kind::Account)
    }

    /// On a create, admission checks the name.
    fn lease(&self) -> Result<(), Denied> {
        if !self.keeps_one_object() {
            return deny("can only get, create, update, patch, or delete a node lease");
        }
        if self.wanted.namespace != LEASES {
            return deny(format!(
                "can only access leases in the {LEASES:?} system namespace"
            ));
        }
        if self.wanted.verb != "create" && self.wanted.name != self.node {
            return deny("can only access node lease with the same name as the requesting node");
        }
        Ok(())
    }

    fn csi_node(&self) -> Result<(), Denied> {
        if !self.keeps_one_object() {
            return deny("can only get, create, update, patch, or delete a CSINode");
        }
        if !self.wanted.subresource.is_empty() {
            return deny("cannot authorize CSINode subresources");
        }
        if self.wanted.verb != "create" && self.wanted.name != self.node {
            return deny("can only access CSINode with the same name as the requesting node");
        }
        Ok(())
    }

    fn keeps_one_object(&self) -> bool {
        let verbs = ["get", "create", "update", "patch", "delete"];
        verbs.contains(&self.wanted.verb.as_str())
    }

    fn node(&self) -> Result<(), Denied> {
        let (node, name) = (self.node, self.wanted.name.as_str());
        match (self.wanted.subresource.as_str(), self.wanted.verb.as_str()) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
            ("", "get" | "list" | "watch") if name == node => Ok(()),
            ("", "get" | "list" | "watch") if name.is_empty() => deny(format!(
                "node '{node}' cannot read all nodes, only its own Node object"
            )),
            ("", "get" | "list" | "watch") => deny(format!(
                "node '{node}' cannot read '{name}', only its own Node object"
            )),
            _ => deny(""),
        }
    }

    fn pod(&self) -> Result<(), Denied> {
        let of_this_node = self.wanted.fields.required("spec.nodeName") == Some(self.node);
        match (self.wanted.subresource.as_str(), self.wanted.verb.as_str()) {
            ("", "get") => self.related(Kind::Pod),
            ("", "list" | "watch") if of_this_node => Ok(()),
            ("", "list" | "watch") if !self.wanted.name.is_empty() => self.related(Kind::Pod),
            ("", "list" | "watch") => {
                deny("can only list/watch pods with spec.nodeName field selector")
            }
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => deny(""),
        }
    }
}
