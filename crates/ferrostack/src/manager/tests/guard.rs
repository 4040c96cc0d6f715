//! A client that may do what a role allows, as RBAC would have it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::manifests;
use super::super::subset::Subset;

/// A request: group, resource with its subresource, verb.
pub(super) type Asked = (String, String, String);

/// The ClusterRole of a manager, and what was asked for under it.
#[derive(Clone)]
pub(super) struct Guard {
    rules: Arc<Vec<Value>>,
    asked: Arc<Mutex<BTreeMap<Asked, usize>>>,
    forbidden: Arc<Mutex<BTreeSet<Asked>>>,
}

impl Guard {
    /// The ClusterRole in the manifests of a subset.
    pub(super) fn new(subset: &Subset) -> Self {
        Self::with(subset, &["ClusterRole"])
    }

    /// The same with the Role in the namespace of the manager, for what it does there.
    pub(super) fn in_its_namespace(subset: &Subset) -> Self {
        Self::with(subset, &["ClusterRole", "Role"])
    }

    fn with(subset: &Subset, kinds: &[&str]) -> Self {
        let text = manifests::render(subset, "system", None, None).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let rules: Vec<Value> = kinds
            .iter()
            .flat_map(|kind| {
                let role = documents.iter().find(|it| it["kind"] == *kind);
                role.unwrap()["rules"].as_array().unwrap().clone()
            })
            .collect();
        Self {
            rules: Arc::new(rules),
            asked: Arc::default(),
            forbidden: Arc::default(),
        }
    }

    /// `client` under the role.
    pub(super) fn of(&self, client: &Client) -> Client {
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

    /// What was denied.
    pub(super) fn forbidden(&self) -> BTreeSet<Asked> {
        self.forbidden.lock().clone()
    }

    /// The writes, and how many of each.
    pub(super) fn writes(&self) -> BTreeMap<Asked, usize> {
        let mut asked = self.asked.lock().clone();
        asked.retain(|(_, _, verb), _| !["get", "list", "watch"].contains(&verb.as_str()));
        asked
    }

    fn denies(&self, request: &Request<Body>) -> Option<Response<Body>> {
        let (asked, name) = asked(request)?;
        if self.allows(&asked, name) {
            *self.asked.lock().entry(asked).or_default() += 1;
            return None;
        }
        let message = format!("{} of {}.{} is not allowed", asked.2, asked.1, asked.0);
        self.forbidden.lock().insert(asked);
        let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
            "reason": "Forbidden", "message": message});
        let mut response = Response::new(Body::from(status.to_string().into_bytes()));
        *response.status_mut() = StatusCode::FORBIDDEN;
        Some(response)
    }

    fn allows(&self, (group, resource, verb): &Asked, name: &str) -> bool {
        let has = |values: &Value, value: &str| {
            let mut values = values.as_array().into_iter().flatten();
            values.any(|it| it == value)
        };
        self.rules.iter().any(|rule| {
            has(&rule["apiGroups"], group)
                && has(&rule["resources"], resource)
                && has(&rule["verbs"], verb)
                && (rule["resourceNames"].is_null() || has(&rule["resourceNames"], name))
        })
    }
}

/// What a request for objects asks for, and the name of the object; discovery is open to everybody.
fn asked(request: &Request<Body>) -> Option<(Asked, &str)> {
    let path = request.uri().path().trim_start_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return None,
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let resource = match rest {
        [] => return None,
        [resource, _, sub] => format!("{resource}/{sub}"),
        [resource, ..] => (*resource).to_owned(),
    };
    let query = request.uri().query();
    let watches = query.is_some_and(|it| it.contains("watch=true"));
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
    Some(((group.to_owned(), resource, verb.to_owned()), name))
}
