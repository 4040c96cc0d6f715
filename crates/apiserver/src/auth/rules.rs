//! Authorization without RBAC. Administrators may do everything, nodes have the permissions of the node authorizer,
//! joining machines the permissions of kubeadm's roles, and every user may read discovery documents.

use apimachinery::selector::FieldSelector;
use http::Method;

use super::node;
use crate::core::Core;
use crate::error::{ApiError, qualified};
use crate::request::path::{Path, Route, Target};
use crate::request::query::Query;
use crate::reviewer::Access;
use crate::user::UserInfo;

/// Attributes of a request that decide on authorization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// [`FieldSelector`] of a list, watch or deletecollection.
    pub(crate) fields: FieldSelector,
    /// URL path of a request without objects, such as `/healthz`.
    pub(crate) path: String,
}

impl Attributes {
    fn for_review(&self) -> Access {
        Access {
            verb: self.verb.clone(),
            group: self.group.clone(),
            resource: self.resource.clone(),
            subresource: self.subresource.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            path: self.path.clone(),
        }
    }
}

/// Reason of a denial; empty where no rule gives one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) reason: String,
}

/// [`Attributes`] of a request for objects (`RequestInfoFactory`).
pub(crate) fn attributes(path: &Path, method: &Method, query: &Query) -> Attributes {
    let named = path.name.is_some();
    let verb = match *method {
        Method::GET | Method::HEAD if named => "get",
        Method::GET | Method::HEAD if query.flag("watch") => "watch",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => "",
    };
    let mut fields = FieldSelector::default();
    if matches!(verb, "list" | "watch" | "deletecollection") {
        // A malformed selector is rejected when the request is processed.
        let text = query.all("fieldSelector").next().unwrap_or_default();
        fields = FieldSelector::parse(text).unwrap_or_default();
    }
    let mut name = path.name.clone().unwrap_or_default();
    // A list of one object by its name is authorized as a request for that object.
    if matches!(verb, "list" | "watch")
        && let Some(only) = fields.required("metadata.name")
        && !matches!(only, "." | "..")
        && !only.contains(['/', '%'])
    {
        name = only.to_owned();
    }
    Attributes {
        verb: verb.to_owned(),
        group: path.group.clone(),
        resource: path.plural.clone(),
        subresource: path.subresource.clone().unwrap_or_default(),
        // In RBAC, a namespace belongs to itself.
        namespace: match &path.namespace {
            Some(namespace) => namespace.clone(),
            None if path.group.is_empty() && path.plural == "namespaces" => {
                path.name.clone().unwrap_or_default()
            }
            None => String::new(),
        },
        name,
        fields,
        path: String::new(),
    }
}

/// Rejects a request without permission. Clients without credentials are `system:anonymous` and get a 403, because
/// joining machines read `cluster-info` anonymously; 401 is for invalid credentials.
pub(crate) async fn authorize(
    core: &Core,
    user: &UserInfo,
    target: &Target,
    method: &Method,
    query: &Query,
) -> Result<(), ApiError> {
    let wanted = match &target.route {
        Route::Object(path) | Route::Misplaced(path) => attributes(path, method, query),
        _ => Attributes {
            verb: method.as_str().to_lowercase(),
            path: target.path.clone(),
            ..Attributes::default()
        },
    };
    let decision = review(core, user, &wanted).await;
    decision.map_err(|denied| forbidden(user, &wanted, &denied))
}

/// Authorizes a request by the rules of the server, and then by the reviewer.
///
/// # Errors
/// The reason for the denial.
pub(crate) async fn review(
    core: &Core,
    user: &UserInfo,
    wanted: &Attributes,
) -> Result<(), Denied> {
    let Err(denied) = decide(core, user, wanted) else {
        return Ok(());
    };
    let Some(reviewer) = &core.options.reviewer else {
        return Err(denied);
    };
    match reviewer.allows(user, &wanted.for_review()).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(denied),
        Err(reason) => Err(Denied { reason }),
    }
}

/// Authorizes a request by the rules of the server.
///
/// # Errors
/// The reason for the denial.
pub(crate) fn decide(core: &Core, user: &UserInfo, wanted: &Attributes) -> Result<(), Denied> {
    if user.is_in("system:masters") || is_open(user, wanted) {
        return Ok(());
    }
    if user.is_in("system:unauthenticated") {
        return Err(Denied::default());
    }
    let node = match node::name(user) {
        Some(node) => node::decide(core, node, wanted),
        None => Err(Denied::default()),
    };
    let Err(denied) = node else {
        return Ok(());
    };
    let allowed = user.is_in("system:authenticated") && is_basic(wanted)
        || user.is_in("system:nodes")
            && is_kubeadm_config(wanted, &["kubeadm-config", "kubelet-config"])
        || user.is_in(JOINING) && joining_may(wanted)
        || is_cluster_admin(core, user);
    if allowed { Ok(()) } else { Err(denied) }
}

/// Documents for everybody, authenticated or not (the role `system:public-info-viewer`).
const PUBLIC: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];
/// Documents for every authenticated user (the role `system:discovery`).
const DISCOVERY: &[&str] = &[
    "/healthz",
    "/livez",
    "/readyz",
    "/version",
    "/version/",
    "/openapi",
    "/openapi/*",
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
];
/// Documents for the group `system:monitoring` (the role of the same name).
const MONITORING: &[&str] = &[
    "/metrics",
    "/metrics/slis",
    "/healthz",
    "/livez",
    "/readyz",
    "/healthz/*",
    "/livez/*",
    "/readyz/*",
];

/// True if a request reads one of the documents; `*` at the end of an entry matches any suffix.
fn reads(wanted: &Attributes, documents: &[&str]) -> bool {
    wanted.verb == "get"
        && documents
            .iter()
            .any(|document| match document.strip_suffix('*') {
                Some(start) => wanted.path.starts_with(start),
                None => wanted.path == *document,
            })
}

/// True for requests allowed for everybody: kubeadm reads `cluster-info` before a machine has credentials.
fn is_open(user: &UserInfo, wanted: &Attributes) -> bool {
    let everybody = ["system:authenticated", "system:unauthenticated"];
    everybody.iter().any(|group| user.is_in(group)) && reads(wanted, PUBLIC)
        || user.is_in("system:monitoring") && reads(wanted, MONITORING)
        || wanted.verb == "get"
            && (wanted.group.as_str(), wanted.resource.as_str()) == ("", "configmaps")
            && wanted.namespace == "kube-public"
            && wanted.name == "cluster-info"
            && wanted.subresource.is_empty()
}

/// True for requests allowed for every authenticated user (the roles `system:discovery` and `system:basic-user`).
fn is_basic(wanted: &Attributes) -> bool {
    let about_oneself = matches!(
        (wanted.group.as_str(), wanted.resource.as_str()),
        (
            "authorization.k8s.io",
            "selfsubjectaccessreviews" | "selfsubjectrulesreviews"
        ) | ("authentication.k8s.io", "selfsubjectreviews")
    );
    reads(wanted, DISCOVERY) || wanted.verb == "create" && about_oneself
}

pub(super) fn is_read(verb: &str) -> bool {
    matches!(verb, "get" | "list" | "watch")
}

/// True if a request reads one of the ConfigMaps that kubeadm makes readable to machines.
fn is_kubeadm_config(wanted: &Attributes, names: &[&str]) -> bool {
    wanted.verb == "get"
        && (wanted.group.as_str(), wanted.resource.as_str()) == ("", "configmaps")
        && wanted.namespace == "kube-system"
        && names.contains(&wanted.name.as_str())
}

/// Group of kubeadm's bootstrap tokens. Other bootstrap tokens have no permissions: the roles are bound to this
/// group.
const JOINING: &str = "system:bootstrappers:kubeadm:default-node-token";

/// True for requests of kubeadm on a joining machine (the roles that `kubeadm init` binds to bootstrap tokens). The
/// machine's kubelet requests a certificate with the token, and registers its Node with the certificate.
fn joining_may(wanted: &Attributes) -> bool {
    match (wanted.group.as_str(), wanted.resource.as_str()) {
        ("", "configmaps") => {
            is_kubeadm_config(wanted, &["kubeadm-config", "kubelet-config", "kube-proxy"])
        }
        ("", "nodes") => wanted.verb == "get" && wanted.subresource.is_empty(),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            wanted.subresource.is_empty() && (is_read(&wanted.verb) || wanted.verb == "create")
        }
        _ => false,
    }
}

/// True if a ClusterRoleBinding makes the user an administrator, as kubeadm's binding for `admin.conf` does.
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

/// 403 for a request without permission.
pub(super) fn forbidden(user: &UserInfo, wanted: &Attributes, denied: &Denied) -> ApiError {
    let reason = match denied.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    if !wanted.path.is_empty() {
        let message = format!(
            "forbidden: User {:?} cannot {} path {:?}{reason}",
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
        "User {:?} cannot {} resource {full:?} in API group {:?} {place}{reason}",
        user.name, wanted.verb, wanted.group
    );
    let mut error = ApiError::forbidden(&wanted.group, &wanted.resource, &wanted.name, &why);
    if wanted.resource.is_empty() {
        error.message = format!("forbidden: {why}");
    } else if wanted.name.is_empty() {
        error.message = format!(
            "{} is forbidden: {why}",
            qualified(&wanted.resource, &wanted.group)
        );
    }
    error
}
