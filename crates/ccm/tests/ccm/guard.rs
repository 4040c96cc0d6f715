//! Client with the permissions of roles, as in RBAC, and with a record of the used ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Permission of a role, with a single value for each part: namespace (empty for all), group, resource with its
/// subresource, verb, and the name of the object (empty for any).
type Allowed = (String, String, String, String, String);

/// Roles in manifests, and the requests under them.
#[derive(Clone)]
pub(crate) struct Guard {
    allowed: Arc<BTreeSet<Allowed>>,
    used: Arc<Mutex<BTreeSet<Allowed>>>,
    forbidden: Arc<Mutex<BTreeSet<String>>>,
}

impl Guard {
    /// The ClusterRoles and Roles among the documents.
    pub(crate) fn new(manifests: &str) -> Self {
        let documents: Vec<Value> = serde_saphyr::from_multiple(manifests).unwrap();
        let mut allowed = BTreeSet::new();
        for role in &documents {
            let namespace = match role["kind"].as_str().unwrap_or_default() {
                "ClusterRole" => "",
                "Role" => role["metadata"]["namespace"].as_str().unwrap(),
                _ => continue,
            };
            for rule in role["rules"].as_array().unwrap() {
                let list = |field: &str| match rule[field].as_array() {
                    Some(values) => values
                        .iter()
                        .map(|it| it.as_str().unwrap().to_owned())
                        .collect(),
                    None => vec![String::new()],
                };
                for group in list("apiGroups") {
                    for resource in list("resources") {
                        for verb in list("verbs") {
                            for name in list("resourceNames") {
                                let (group, resource) = (group.clone(), resource.clone());
                                allowed.insert((
                                    namespace.to_owned(),
                                    group,
                                    resource,
                                    verb.clone(),
                                    name,
                                ));
                            }
                        }
                    }
                }
            }
        }
        assert!(!allowed.is_empty(), "no role in {manifests}");
        Self {
            allowed: Arc::new(allowed),
            used: Arc::default(),
            forbidden: Arc::default(),
        }
    }

    /// `client` under the roles.
    pub(crate) fn of(&self, client: &Client) -> Client {
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
        Client::new(guarded, "default")
    }

    /// Denied requests.
    pub(crate) fn forbidden(&self) -> BTreeSet<String> {
        self.forbidden.lock().clone()
    }

    /// Permissions without a request.
    pub(crate) fn unused(&self) -> BTreeSet<Allowed> {
        let used = self.used.lock();
        self.allowed.difference(&used).cloned().collect()
    }

    fn denies(&self, request: &Request<Body>) -> Option<Response<Body>> {
        let (namespace, group, resource, verb, name) = asked(request)?;
        // `*` stands for every verb.
        let fits = |allowed: &&Allowed| {
            (allowed.0.is_empty() || allowed.0 == namespace)
                && allowed.1 == group
                && allowed.2 == resource
                && (allowed.3 == verb || allowed.3 == "*")
                && (allowed.4.is_empty() || allowed.4 == name)
        };
        let found: Vec<_> = self.allowed.iter().filter(fits).cloned().collect();
        if !found.is_empty() {
            self.used.lock().extend(found);
            return None;
        }
        let message = format!("{verb} of {resource}.{group} {namespace}/{name}");
        let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
            "reason": "Forbidden", "message": format!("{message} is not allowed")});
        self.forbidden.lock().insert(message);
        let mut response = Response::new(Body::from(status.to_string().into_bytes()));
        *response.status_mut() = StatusCode::FORBIDDEN;
        Some(response)
    }
}

/// Permission for a request for objects; discovery is open to everybody.
fn asked(request: &Request<Body>) -> Option<Allowed> {
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
    let watches = request
        .uri()
        .query()
        .is_some_and(|it| it.contains("watch=true"));
    let verb = match (request.method(), rest.len()) {
        (&Method::GET, 1) if watches => "watch",
        (&Method::GET, 1) => "list",
        (&Method::GET, _) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, _) => "delete",
        (other, _) => other.as_str(),
    };
    let name = rest.get(1).copied().unwrap_or_default();
    let text = |text: &str| text.to_owned();
    Some((
        text(namespace),
        text(group),
        resource,
        text(verb),
        text(name),
    ))
}
