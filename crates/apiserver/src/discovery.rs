//! `/version`; discovery of groups, versions and resources under `/api` and `/apis`, in the legacy and the aggregated
//! form; and the OpenAPI documents.

use apimachinery::crd;
use apimachinery::kinds::{Origin, Registry, Resource, Version};
use apimachinery::openapi::{self, Model};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Response, header};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::body::{self, Body};
use crate::core::Core;
use crate::error::ApiError;
use crate::request::accept;
use crate::request::path::Route;
use crate::response::json_document;

const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Document `/version` of a version such as `v1.34.1`.
pub(crate) fn version(version: &str) -> Value {
    let mut parts = version.trim_start_matches('v').split('.');
    json!({
        "major": parts.next().unwrap_or("1"), "minor": parts.next().unwrap_or("0"),
        "gitVersion": version, "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, arch()),
    })
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Answers a request for a discovery or OpenAPI document.
pub(crate) fn document(
    core: &Core,
    route: &Route,
    headers: &HeaderMap,
) -> Result<Response<Body>, ApiError> {
    let registry = core.store.registry();
    let wanted = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    let aggregated = accept::aggregated_discovery(wanted);
    let document = match route {
        Route::Api if aggregated => return Ok(aggregate(&registry, true)),
        Route::Apis if aggregated => return Ok(aggregate(&registry, false)),
        Route::Api => {
            json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        }
        Route::Apis => {
            let groups: Vec<Value> = groups(&registry)
                .into_iter()
                .filter(|g| !g.is_empty())
                .map(|g| group(&registry, g))
                .collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        Route::Group(name) if registry.has_group(name) => {
            let mut group = group(&registry, name);
            group["kind"] = Value::from("APIGroup");
            group["apiVersion"] = Value::from("v1");
            group
        }
        Route::Resources { group, version } => match resources(&registry, group, version) {
            Some(list) => list,
            None => return Err(ApiError::unknown_resource()),
        },
        Route::OpenApiV2 => {
            return Ok(match accept::open_api_v2_in_protobuf(wanted) {
                Some(false) => open_api(&registry, OpenApi::V2),
                Some(true) => open_api(&registry, OpenApi::V2Protobuf),
                None => crate::response::empty(406),
            });
        }
        Route::OpenApiV3 => return Ok(open_api(&registry, OpenApi::Index)),
        Route::OpenApiV3Group { group, version } => {
            return Ok(open_api(&registry, OpenApi::V3 { group, version }));
        }
        _ => return Err(ApiError::unknown_resource()),
    };
    Ok(json_document(document))
}

/// All groups: the built-in ones in the order of the table, then groups of custom resources by name.
fn groups(registry: &Registry) -> Vec<&str> {
    let mut groups: Vec<&str> = Vec::new();
    for resource in registry.all() {
        if !groups.contains(&resource.group.as_str()) {
            groups.push(&resource.group);
        }
    }
    groups
}

/// Served versions of a group, the preferred one first.
fn versions<'a>(registry: &'a Registry, group: &str) -> Vec<&'a str> {
    let mut versions: Vec<&str> = Vec::new();
    for resource in registry.all().filter(|resource| resource.group == group) {
        for version in resource.versions.iter().filter(|version| version.served) {
            if !versions.contains(&version.name.as_str()) {
                versions.push(&version.name);
            }
        }
    }
    versions.sort_by_key(|version| std::cmp::Reverse(crd::priority(version)));
    versions
}

fn group(registry: &Registry, name: &str) -> Value {
    let versions: Vec<Value> = versions(registry, name)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

fn served<'a>(
    registry: &'a Registry,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = (&'a Resource, &'a Version)> {
    registry
        .all()
        .filter(move |resource| resource.group == group)
        .filter_map(move |resource| {
            Some((
                &**resource,
                resource.version(version).filter(|version| version.served)?,
            ))
        })
}

/// Same verbs in the order of the custom resource handler.
const CUSTOM_VERBS: &[&str] = &[
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// Namespaces have no deletecollection.
const NAMESPACE_VERBS: &[&str] = &[
    "create", "delete", "get", "list", "patch", "update", "watch",
];

fn verbs(resource: &Resource) -> &'static [&'static str] {
    match resource.origin {
        Origin::BuiltIn(traits) if traits.virtual_ => &["create"],
        Origin::Custom { .. } => CUSTOM_VERBS,
        _ if &*resource.collection == "/namespaces" => NAMESPACE_VERBS,
        _ => VERBS,
    }
}

/// Subresource: name, kind with group and version, verbs.
struct Subresource<'a> {
    name: &'static str,
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    verbs: &'static [&'static str],
}

fn subresources<'a>(resource: &'a Resource, version: &'a Version) -> Vec<Subresource<'a>> {
    const WRITE: &[&str] = &["get", "patch", "update"];
    const CREATE: &[&str] = &["create"];
    let gvk = (
        resource.group.as_str(),
        version.name.as_str(),
        resource.kind.as_str(),
    );
    let make = |name, (group, version, kind), verbs| Subresource {
        name,
        group,
        version,
        kind,
        verbs,
    };
    let mut all: Vec<Subresource<'a>> = version
        .subresources
        .iter()
        .map(|name| match *name {
            "eviction" => make("eviction", ("policy", "v1", "Eviction"), CREATE),
            "binding" => make("binding", ("", "v1", "Binding"), CREATE),
            "token" => make(
                "token",
                ("authentication.k8s.io", "v1", "TokenRequest"),
                CREATE,
            ),
            "finalize" => make("finalize", gvk, &["update"]),
            "log" => make("log", gvk, &["get"]),
            "portforward" => make(
                "portforward",
                ("", "v1", "PodPortForwardOptions"),
                &["create", "get"],
            ),
            name => make(name, gvk, WRITE),
        })
        .collect();
    let scale = version.scale.is_some();
    let scale = scale.then(|| make("scale", ("autoscaling", "v1", "Scale"), WRITE));
    let status = version.status.then(|| make("status", gvk, WRITE));
    // kube-apiserver sorts the subresources of built-in kinds by name, and subresources of custom resources as
    // follows.
    if resource.is_custom() {
        all.extend(status.into_iter().chain(scale));
    } else {
        all.extend(scale.into_iter().chain(status));
    }
    all
}

/// Hash of the storage version, for clients that migrate objects to another one (`discovery.StorageVersionHash`).
fn storage_version_hash(resource: &Resource) -> Option<String> {
    const LENGTH: usize = 8;
    if matches!(resource.origin, Origin::BuiltIn(traits) if traits.virtual_) {
        return None;
    }
    let (group, version) = resource
        .stored
        .rsplit_once('/')
        .unwrap_or(("", &resource.stored));
    let hash = Sha256::digest(format!("{group}/{version}/{}", resource.kind));
    Some(STANDARD.encode(&hash[..LENGTH]))
}

/// `APIResourceList` of a group and version; `None` if not served.
fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for (resource, served) in served(registry, group, version) {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": verbs(resource),
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        if let Some(hash) = storage_version_hash(resource) {
            entry["storageVersionHash"] = Value::from(hash);
        }
        list.push(entry);
        for sub in subresources(resource, served) {
            let mut entry = json!({
                "name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
                "namespaced": resource.namespaced, "kind": sub.kind, "verbs": sub.verbs,
            });
            if (sub.group, sub.version) != (group, version) {
                entry["group"] = Value::from(sub.group);
                entry["version"] = Value::from(sub.version);
            }
            list.push(entry);
        }
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    (!list.is_empty()).then(|| {
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list})
    })
}

/// `APIGroupDiscoveryList` of the core group, or of all other groups.
fn aggregate(registry: &Registry, core: bool) -> Response<Body> {
    let items: Vec<Value> = groups(registry)
        .into_iter()
        .filter(|group| group.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = versions(registry, group)
                .into_iter()
                .map(|v| aggregate_version(registry, group, v))
                .collect();
            let metadata = if core {
                json!({"creationTimestamp": null})
            } else {
                json!({"name": group, "creationTimestamp": null})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    });
    let mut response = json_document(list);
    let media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

fn aggregate_version(registry: &Registry, group: &str, version: &str) -> Value {
    let gvk = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let resources: Vec<Value> = served(registry, group, version)
        .map(|(resource, served)| {
            let scope = if resource.namespaced {
                "Namespaced"
            } else {
                "Cluster"
            };
            let mut entry = json!({
                "resource": resource.plural, "responseKind": gvk(group, version, &resource.kind),
                "scope": scope, "singularResource": resource.singular, "verbs": verbs(resource),
            });
            if !resource.short_names.is_empty() {
                entry["shortNames"] = json!(resource.short_names);
            }
            if !resource.categories.is_empty() {
                entry["categories"] = json!(resource.categories);
            }
            let subresources: Vec<Value> = subresources(resource, served)
                .into_iter()
                .map(|sub| {
                    let kind = gvk(sub.group, sub.version, sub.kind);
                    json!({"subresource": sub.name, "responseKind": kind, "verbs": sub.verbs})
                })
                .collect();
            if !subresources.is_empty() {
                entry["subresources"] = Value::Array(subresources);
            }
            entry
        })
        .collect();
    json!({"version": version, "freshness": "Current", "resources": resources})
}

enum OpenApi<'a> {
    V2,
    V2Protobuf,
    Index,
    V3 { group: &'a str, version: &'a str },
}

fn open_api(registry: &Registry, wanted: OpenApi<'_>) -> Response<Body> {
    let mut names: Vec<Vec<&str>> = Vec::new();
    let mut all: Vec<(&Resource, &Version)> = Vec::new();
    for resource in registry.all() {
        for version in resource.versions.iter().filter(|version| version.served) {
            names.push(
                subresources(resource, version)
                    .into_iter()
                    .map(|sub| sub.name)
                    .collect(),
            );
            all.push((resource, version));
        }
    }
    let models: Vec<Model<'_>> = all
        .iter()
        .zip(&names)
        .map(|((resource, version), subresources)| Model {
            group: &resource.group,
            version: &version.name,
            kind: &resource.kind,
            plural: &resource.plural,
            namespaced: resource.namespaced,
            verbs: verbs(resource),
            subresources,
            schema: version.open_api.as_ref(),
        })
        .collect();
    json_document(match wanted {
        OpenApi::V2 => openapi::v2(&models),
        OpenApi::V2Protobuf => {
            let document = openapi::protobuf::document(&openapi::v2(&models));
            let mut response = Response::new(body::full(document));
            let media = HeaderValue::from_static(accept::OPENAPI_V2_PROTOBUF);
            response.headers_mut().insert(header::CONTENT_TYPE, media);
            return response;
        }
        OpenApi::Index => openapi::v3_index(&models),
        OpenApi::V3 { group, version } => openapi::v3(&models, group, version),
    })
}
