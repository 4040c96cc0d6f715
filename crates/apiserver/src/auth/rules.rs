//! What a user may do. There is no evaluation of RBAC: administrators may do everything, nodes what
//! kubelets need, machines that join what kubeadm needs, everybody may look at what is served.

use http::Method;

use crate::error::{ApiError, qualified};
use crate::http::path::{Path, Route};
use crate::http::query::Query;
use crate::server::Core;
use crate::user::UserInfo;

/// What a request is about to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// For what is no object: the URL path.
    pub(crate) path: String,
}

/// What a request for objects is about to do.
pub(crate) fn attributes(path: &Path, method: &Method, query: &Query) -> Attributes {
    let named = path.name.is_some();
    let verb = match *method {
        Method::GET | Method::HEAD if query.flag("watch") => "watch",
        Method::GET | Method::HEAD if named => "get",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => "",
    };
    Attributes {
        verb: verb.to_owned(),
        group: path.group.clone(),
        resource: path.plural.clone(),
        subresource: path.subresource.clone().unwrap_or_default(),
        // A namespace is in itself, as RBAC sees it.
        namespace: match &path.namespace {
            Some(namespace) => namespace.clone(),
            None if path.group.is_empty() && path.plural == "namespaces" => {
                path.name.clone().unwrap_or_default()
            }
            None => String::new(),
        },
        name: path.name.clone().unwrap_or_default(),
        path: String::new(),
    }
}

/// Refuses what a user may not do. Whoever shows no credentials is `system:anonymous` and gets a 403,
/// as from a kube-apiserver that lets joining machines read `cluster-info`; 401 is for wrong ones.
pub(crate) fn authorize(
    core: &Core,
    user: &UserInfo,
    route: &Route,
    method: &Method,
    url: &str,
    query: &Query,
) -> Result<(), ApiError> {
    let wanted = match route {
        Route::Object(path) => attributes(path, method, query),
        _ => Attributes {
            verb: method.as_str().to_lowercase(),
            path: url.to_owned(),
            ..Attributes::default()
        },
    };
    if allowed(core, user, &wanted) {
        return Ok(());
    }
    Err(refused(user, &wanted))
}

/// Whether a user may do something.
pub(crate) fn allowed(core: &Core, user: &UserInfo, wanted: &Attributes) -> bool {
    if user.is_in("system:masters") {
        return true;
    }
    if is_open(wanted) {
        return true;
    }
    if user.is_in("system:unauthenticated") {
        return false;
    }
    is_public(wanted)
        || user.is_in("system:nodes") && node_may(wanted, &user.name)
        || user.is_in("system:bootstrappers") && joining_may(wanted)
        || is_cluster_admin(core, user)
}

/// What needs no credentials: kubeadm reads `cluster-info` before it has any.
fn is_open(wanted: &Attributes) -> bool {
    let health = ["/healthz", "/livez", "/readyz"];
    let path = wanted.path.as_str();
    let looks = wanted.verb == "get" || wanted.verb == "head";
    looks && (path == "/version" || health.iter().any(|open| path.starts_with(open)))
        || wanted.verb == "get"
            && wanted.resource == "configmaps"
            && wanted.namespace == "kube-public"
            && wanted.name == "cluster-info"
}

/// What everybody with credentials may do.
fn is_public(wanted: &Attributes) -> bool {
    let document = !wanted.path.is_empty() && wanted.path != "/metrics" && wanted.verb == "get";
    document || wanted.verb == "create" && wanted.resource.starts_with("selfsubject")
}

fn is_read(verb: &str) -> bool {
    matches!(verb, "get" | "list" | "watch")
}

/// What kubelets need (the `system:node` role).
fn node_may(wanted: &Attributes, user: &str) -> bool {
    let read = is_read(&wanted.verb);
    let own = user.strip_prefix("system:node:") == Some(&wanted.name);
    match (
        wanted.group.as_str(),
        wanted.resource.as_str(),
        wanted.subresource.as_str(),
    ) {
        ("", "nodes", _) => read || wanted.verb == "create" || own,
        ("", "pods", "status" | "") => true,
        ("", "pods", "eviction") | ("", "serviceaccounts", "token") => wanted.verb == "create",
        ("", "events", _) | ("events.k8s.io", "events", _) => true,
        ("coordination.k8s.io", "leases", _) => true,
        ("storage.k8s.io", "csinodes", _) => read || own || wanted.verb == "create",
        ("certificates.k8s.io", "certificatesigningrequests", "") => {
            read || wanted.verb == "create"
        }
        ("authentication.k8s.io", "tokenreviews", _)
        | ("authorization.k8s.io", "subjectaccessreviews" | "localsubjectaccessreviews", _) => true,
        (
            "",
            "services"
            | "endpoints"
            | "configmaps"
            | "secrets"
            | "persistentvolumes"
            | "persistentvolumeclaims"
            | "serviceaccounts",
            _,
        )
        | ("storage.k8s.io", "csidrivers" | "volumeattachments" | "storageclasses", _)
        | ("discovery.k8s.io", "endpointslices", _)
        | ("node.k8s.io", "runtimeclasses", _) => read,
        _ => false,
    }
}

/// What kubeadm needs of a machine that joins (the roles that `kubeadm init` binds to bootstrap tokens).
fn joining_may(wanted: &Attributes) -> bool {
    match (wanted.group.as_str(), wanted.resource.as_str()) {
        ("", "configmaps") => {
            let known = matches!(
                wanted.name.as_str(),
                "kubeadm-config" | "kubelet-config" | "kube-proxy"
            );
            wanted.verb == "get" && wanted.namespace == "kube-system" && known
        }
        ("", "nodes") => matches!(wanted.verb.as_str(), "get" | "create"),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            wanted.subresource.is_empty() && (is_read(&wanted.verb) || wanted.verb == "create")
        }
        _ => false,
    }
}

/// Whether a ClusterRoleBinding makes the user an administrator, as kubeadm does for its `admin.conf`.
fn is_cluster_admin(core: &Core, user: &UserInfo) -> bool {
    let state = core.store.read();
    let mut bindings = state.range("rbac.authorization.k8s.io/clusterrolebindings", "", None);
    bindings.any(|binding| {
        let binding = binding.value();
        binding["roleRef"]["name"] == "cluster-admin"
            && binding["subjects"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|subject| {
                    let name = subject["name"].as_str().unwrap_or_default();
                    match subject["kind"].as_str() {
                        Some("Group") => user.is_in(name),
                        Some("User") => user.name == name,
                        Some("ServiceAccount") => {
                            let namespace = subject["namespace"].as_str().unwrap_or_default();
                            user.name == format!("system:serviceaccount:{namespace}:{name}")
                        }
                        _ => false,
                    }
                })
    })
}

/// 403 for what a user may not do.
pub(super) fn refused(user: &UserInfo, wanted: &Attributes) -> ApiError {
    if !wanted.path.is_empty() {
        let message = format!(
            "forbidden: User {:?} cannot {} path {:?}",
            user.name, wanted.verb, wanted.path
        );
        let mut error = ApiError::new(403, "Forbidden", message);
        error.details = Some(Box::new(serde_json::json!({})));
        return error;
    }
    let full = match wanted.subresource.as_str() {
        "" => wanted.resource.clone(),
        subresource => format!("{}/{subresource}", wanted.resource),
    };
    let place = match wanted.namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    let why = format!(
        "User {:?} cannot {} resource {full:?} in API group {:?} {place}",
        user.name, wanted.verb, wanted.group
    );
    let mut error = ApiError::forbidden(&wanted.group, &wanted.resource, &wanted.name, &why);
    if wanted.name.is_empty() {
        error.message = format!(
            "{} is forbidden: {why}",
            qualified(&wanted.resource, &wanted.group)
        );
    }
    error
}
