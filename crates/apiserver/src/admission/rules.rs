//! Matching of hooks and requests: rules, selectors of namespace and object, equivalent resources.

use apimachinery::kinds::Origin;
use serde_json::Value;

use super::options;
use crate::call::Call;
use crate::error::ApiError;
use crate::webhook::configuration::{Hook, Rule};

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// Group, version and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gvk {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl Gvk {
    pub(crate) fn new(group: &str, version: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Attributes of a request for admission.
#[derive(Clone)]
pub(crate) struct Attributes<'a> {
    pub(crate) call: &'a Call,
    pub(crate) operation: Operation,
    /// Kind of the object in the request. A subresource may have another kind than its resource.
    pub(crate) kind: Gvk,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) subresource: String,
    pub(crate) options: Value,
    pub(crate) dry_run: bool,
}

impl<'a> Attributes<'a> {
    /// Attributes from path and query of a [`Call`].
    pub(crate) fn new(call: &'a Call, operation: Operation, dry_run: bool) -> Self {
        let resource = &call.resource;
        let subresource = call.subresource.clone().unwrap_or_default();
        let kind = if subresource == "scale" {
            Gvk::new("autoscaling", "v1", "Scale")
        } else {
            Gvk::new(&resource.group, &call.version, &resource.kind)
        };
        let name = call.name().to_owned();
        Self {
            call,
            operation,
            kind,
            namespace: if &*resource.collection == "/namespaces" {
                name.clone()
            } else {
                call.namespace.clone()
            },
            name,
            subresource,
            options: options(call, operation),
            dry_run,
        }
    }

    /// Same attributes for an object that is not named in the path.
    pub(crate) fn named(mut self, name: &str) -> Self {
        if &*self.call.resource.collection == "/namespaces" {
            self.namespace = name.to_owned();
        }
        self.name = name.to_owned();
        self
    }

    /// Webhook configurations are exempt: a broken hook could never be deleted otherwise.
    pub(super) fn is_exempt(&self) -> bool {
        self.kind.group == "admissionregistration.k8s.io"
    }

    /// True if the object is of the resource's kind and not of a subresource's kind.
    pub(super) fn is_of_resource(&self) -> bool {
        let resource = &self.call.resource;
        self.kind.group == resource.group && self.kind.kind == resource.kind
    }
}

/// Equivalent resource for the call of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Invocation {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: Gvk,
    /// True if the hook gets another resource than the request has.
    pub(super) equivalent: bool,
}

/// True if a rule of the [`Hook`] matches the request.
pub(super) fn ruled(hook: &Hook, attributes: &Attributes<'_>) -> bool {
    resource_of(hook, attributes).is_some()
}

/// [`Invocation`] of a [`Hook`]; `None` if the hook does not match the request. Error if the namespace does not exist.
pub(super) fn invocation(
    hook: &Hook,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<Option<Invocation>, ApiError> {
    let Some(invocation) = resource_of(hook, attributes) else {
        return Ok(None);
    };
    let selected = |value: Option<&Value>| {
        value.is_some_and(|value| hook.object_selector.matches(&value["metadata"]["labels"]))
    };
    if !hook.object_selector.is_empty() && !selected(object) && !selected(old) {
        return Ok(None);
    }
    Ok(namespace_selected(hook, attributes, object)?.then_some(invocation))
}

fn namespace_selected(
    hook: &Hook,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<bool, ApiError> {
    let is_namespace = attributes.call.resource.plural == "namespaces";
    let selector = &hook.namespace_selector;
    if selector.is_empty() || attributes.namespace.is_empty() && !is_namespace {
        return Ok(true);
    }
    if is_namespace && let Some(object) = object {
        return Ok(selector.matches(&object["metadata"]["labels"]));
    }
    let store = &attributes.call.core.store;
    match store.get("/namespaces", &attributes.namespace) {
        Some(namespace) => Ok(selector.matches(&namespace.facts.labels)),
        None => Err(ApiError::not_found("", "namespaces", &attributes.namespace)),
    }
}

fn resource_of(hook: &Hook, attributes: &Attributes<'_>) -> Option<Invocation> {
    let resource = &attributes.call.resource;
    let requested = (resource.group.clone(), attributes.call.version.clone());
    let fits =
        |rule: &Rule, (group, version): &(String, String)| fits(rule, attributes, group, version);
    if hook.rules.iter().any(|rule| fits(rule, &requested)) {
        return Some(Invocation {
            group: requested.0,
            version: requested.1,
            kind: attributes.kind.clone(),
            equivalent: false,
        });
    }
    if !hook.equivalent {
        return None;
    }
    let others = equivalents(attributes);
    let found = hook.rules.iter().find_map(|rule| {
        let mut others = others.iter();
        others.find(|other| fits(rule, other))
    });
    let (group, version) = found?.clone();
    let kind = if attributes.is_of_resource() {
        Gvk::new(&group, &version, &attributes.kind.kind)
    } else {
        attributes.kind.clone()
    };
    Some(Invocation {
        group,
        version,
        kind,
        equivalent: true,
    })
}

/// Groups and versions that serve the same objects.
fn equivalents(attributes: &Attributes<'_>) -> Vec<(String, String)> {
    let resource = &attributes.call.resource;
    if resource.plural == "events" && matches!(resource.origin, Origin::BuiltIn(_)) {
        let other = if resource.group.is_empty() {
            "events.k8s.io"
        } else {
            ""
        };
        return vec![(other.to_owned(), "v1".to_owned())];
    }
    let others = resource.versions.iter();
    others
        .filter(|version| version.served && version.name != attributes.call.version)
        .map(|version| (resource.group.clone(), version.name.clone()))
        .collect()
}

fn fits(rule: &Rule, attributes: &Attributes<'_>, group: &str, version: &str) -> bool {
    let named = |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
    let plural = attributes.call.resource.plural.as_str();
    let is_namespace = plural == "namespaces" && group.is_empty();
    let namespaced = !is_namespace && !attributes.namespace.is_empty();
    let scoped = match rule.scope.as_str() {
        "Namespaced" => namespaced,
        "Cluster" => !namespaced,
        _ => true,
    };
    let of_resource = |one: &String| {
        let (resource, subresource) = one.split_once('/').unwrap_or((one, ""));
        (resource == "*" || resource == plural)
            && (subresource == "*" || subresource == attributes.subresource)
    };
    scoped
        && named(&rule.operations, attributes.operation.as_str())
        && named(&rule.groups, group)
        && named(&rule.versions, version)
        && rule.resources.iter().any(of_resource)
}
