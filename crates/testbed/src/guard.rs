//! A client under the roles of manifests, as RBAC judges requests, with a record of the requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Group, resource with subresource, and verb of a request.
pub type Asked = (String, String, String);

/// One permission of a role, or the permission for a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// Namespace; empty for all namespaces, and for requests across namespaces.
    pub namespace: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural of the kind, with a subresource after `/`.
    pub resource: String,
    /// Verb; `*` in a role for every verb.
    pub verb: String,
    /// Name of the object; empty for any object, and for requests about collections.
    pub name: String,
}

impl Permission {
    /// Permission for a request about objects. `None` for discovery, which is open to everybody.
    pub fn asked<B>(request: &Request<B>) -> Option<Self> {
        let path = request.uri().path().trim_start_matches('/');
        let parts: Vec<&str> = path.split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let resource = match rest {
            [] => return None,
            [resource, _, sub] => format!("{resource}/{sub}"),
            [resource, ..] => (*resource).to_owned(),
        };
        let name = rest.get(1).copied().unwrap_or_default();
        Some(Self {
            namespace: namespace.to_owned(),
            group: group.to_owned(),
            resource,
            verb: verb(request, rest.len() == 1).to_owned(),
            name: name.to_owned(),
        })
    }

    /// [`Asked`]: group, resource and verb alone.
    pub fn kind(&self) -> Asked {
        (self.group.clone(), self.resource.clone(), self.verb.clone())
    }

    /// True if the permission of a role covers `asked`.
    fn covers(&self, asked: &Self) -> bool {
        (self.namespace.is_empty() || self.namespace == asked.namespace)
            && self.group == asked.group
            && self.resource == asked.resource
            && (self.verb == asked.verb || self.verb == "*")
            && (self.name.is_empty() || self.name == asked.name)
    }
}

fn verb<B>(request: &Request<B>, is_collection: bool) -> &str {
    let query = request.uri().query();
    let watches = query.is_some_and(|it| it.contains("watch=true"));
    match (request.method(), is_collection) {
        (&Method::GET, true) if watches => "watch",
        (&Method::GET, true) => "list",
        (&Method::GET, false) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, _) => "delete",
        (other, _) => other.as_str(),
    }
}

/// Roles, and the requests of a client under these roles.
#[derive(Clone)]
pub struct Guard {
    allowed: Arc<BTreeSet<Permission>>,
    asked: Arc<Mutex<BTreeMap<Permission, usize>>>,
    forbidden: Arc<Mutex<BTreeSet<String>>>,
}

impl Guard {
    /// Every ClusterRole and Role in `manifests`.
    ///
    /// # Panics
    /// Without a role.
    pub fn new(manifests: &str) -> Self {
        Self::of_kinds(manifests, &["ClusterRole", "Role"])
    }

    /// Roles of some `kinds` in `manifests`.
    ///
    /// # Panics
    /// Without a role.
    pub fn of_kinds(manifests: &str, kinds: &[&str]) -> Self {
        let documents: Vec<Value> = serde_saphyr::from_multiple(manifests).unwrap();
        let roles = documents
            .iter()
            .filter(|it| kinds.iter().any(|kind| it["kind"] == *kind));
        let allowed: BTreeSet<Permission> = roles.flat_map(permissions).collect();
        assert!(!allowed.is_empty(), "no role in {manifests}");
        Self {
            allowed: Arc::new(allowed),
            asked: Arc::default(),
            forbidden: Arc::default(),
        }
    }

    /// A [`Client`] under the roles, for the requests of `client`.
    pub fn of(&self, client: &Client) -> Client {
        let (guard, inner) = (self.clone(), client.clone());
        let guarded = tower::service_fn(move |request: Request<Body>| {
            let (client, denied) = (inner.clone(), guard.denies(&request));
            async move {
                match denied {
                    Some(status) => Ok(status),
                    None => client.send(request).await,
                }
            }
        });
        Client::new(guarded, crate::NAMESPACE)
    }

    /// Denied requests.
    pub fn forbidden(&self) -> BTreeSet<String> {
        self.forbidden.lock().clone()
    }

    /// [`Permission`]s without a request.
    pub fn unused(&self) -> BTreeSet<Permission> {
        let asked = self.asked.lock();
        let unused = |it: &&Permission| !asked.keys().any(|asked| it.covers(asked));
        self.allowed.iter().filter(unused).cloned().collect()
    }

    /// Allowed writes, with their number.
    pub fn writes(&self) -> BTreeMap<Asked, usize> {
        let mut writes = BTreeMap::new();
        for (permission, count) in &*self.asked.lock() {
            if !["get", "list", "watch"].contains(&permission.verb.as_str()) {
                *writes.entry(permission.kind()).or_default() += count;
            }
        }
        writes
    }

    fn denies(&self, request: &Request<Body>) -> Option<Response<Body>> {
        let asked = Permission::asked(request)?;
        if self.allowed.iter().any(|it| it.covers(&asked)) {
            *self.asked.lock().entry(asked).or_default() += 1;
            return None;
        }
        let Permission {
            namespace,
            group,
            resource,
            verb,
            name,
        } = asked;
        let message = format!("{verb} of {resource}.{group} {namespace}/{name}");
        let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
            "reason": "Forbidden", "message": format!("{message} is not allowed")});
        self.forbidden.lock().insert(message);
        let mut response = Response::new(Body::from(status.to_string().into_bytes()));
        *response.status_mut() = StatusCode::FORBIDDEN;
        Some(response)
    }
}

/// Permissions of a ClusterRole or Role.
fn permissions(role: &Value) -> Vec<Permission> {
    let namespace = match role["kind"] == "Role" {
        true => role["metadata"]["namespace"].as_str().unwrap(),
        false => "",
    };
    let mut permissions = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        let list = |field: &str| match rule[field].as_array() {
            Some(values) => values.iter().map(|it| it.as_str().unwrap()).collect(),
            None => vec![""],
        };
        for group in list("apiGroups") {
            for resource in list("resources") {
                for verb in list("verbs") {
                    for name in list("resourceNames") {
                        permissions.push(Permission {
                            namespace: namespace.to_owned(),
                            group: group.to_owned(),
                            resource: resource.to_owned(),
                            verb: verb.to_owned(),
                            name: name.to_owned(),
                        });
                    }
                }
            }
        }
    }
    permissions
}
