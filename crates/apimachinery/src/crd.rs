//! CustomResourceDefinitions: the resources that they define, defaults and status.

pub mod names;
pub mod rules;
mod written;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Cell, Column, Conversion, Origin, Resource, Scale, Version, columns, shape};
use crate::schema::{FieldError, Schema};
use crate::time::seconds;

/// Finalizer that keeps a definition until its custom objects are deleted.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Compiles a definition to its [`Resource`].
///
/// # Errors
/// All violations of the definition, with the paths of their fields.
pub fn compile(crd: &Value) -> Result<Resource, Vec<FieldError>> {
    let spec = &crd["spec"];
    let names = &spec["names"];
    let mut errors = Vec::new();
    let group = required(spec, "spec", "group", &mut errors);
    let plural = required(names, "spec.names", "plural", &mut errors);
    let kind = required(names, "spec.names", "kind", &mut errors);
    let scope = required(spec, "spec", "scope", &mut errors);
    if !matches!(scope.as_str(), "" | "Namespaced" | "Cluster") {
        let known = ["Cluster".to_owned(), "Namespaced".to_owned()];
        errors.push(FieldError::not_supported(
            "spec.scope",
            &spec["scope"],
            &known,
        ));
    }
    let name = crd["metadata"]["name"].as_str().unwrap_or_default();
    if errors.is_empty() && name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid(
            "metadata.name",
            &crd["metadata"]["name"],
            detail,
        ));
    }
    let mut versions = Vec::new();
    for index in 0..items(&spec["versions"]).len() {
        versions.push(compile_version(&group, spec, index, &mut errors));
    }
    let stored: Vec<&Value> = items(&spec["versions"])
        .iter()
        .filter(|version| version["storage"] == true)
        .collect();
    if stored.len() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(
            "spec.versions",
            &spec["versions"],
            detail,
        ));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    versions.sort_by_key(|version| std::cmp::Reverse(priority(&version.name)));
    let or = |field: &str, default: String| text(names, field).map_or(default, str::to_owned);
    Ok(Resource {
        singular: or("singular", kind.to_lowercase()),
        list_kind: or("listKind", format!("{kind}List")),
        short_names: strings(&names["shortNames"]),
        categories: strings(&names["categories"]),
        namespaced: scope == "Namespaced",
        versions,
        stored: format!("{group}/{}", text(stored[0], "name").unwrap_or_default()),
        collection: format!("{group}/{plural}").into(),
        origin: Origin::Custom {
            converts: spec["conversion"]["strategy"] == "Webhook",
        },
        conversion: conversion(&spec["conversion"]).map(Arc::new),
        group,
        plural,
        kind,
    })
}

/// Fills in the defaults of a definition before the write to the store, and adds the storage version to
/// `status.storedVersions`. `old` is the stored definition on an update. A new definition has neither accepted names
/// nor conditions until [`names::accept`] sets them.
pub fn prepare(crd: &mut Value, old: Option<&Value>) {
    default_spec(crd);
    written::schemas(crd);
    let mut versions = items(&crd["spec"]["versions"]).iter();
    let storage = versions
        .find(|version| version["storage"] == true)
        .and_then(|version| text(version, "name"))
        .map(str::to_owned);
    let mut stored = old.map_or_else(Vec::new, |old| strings(&old["status"]["storedVersions"]));
    stored.extend(storage.filter(|storage| !stored.contains(storage)));
    let mut status = match old {
        Some(old) if old["status"].is_object() => old["status"].clone(),
        _ => json!({"acceptedNames": {"plural": "", "kind": ""}, "conditions": null}),
    };
    status["storedVersions"] = json!(stored);
    crd["status"] = status;
}

/// Decodes a status like its Go type, and writes the empty fields that Go writes.
///
/// # Errors
/// The error of Go's decoder.
pub fn read_status(status: &mut Value) -> Result<(), String> {
    let Some(shape) = shape::definition_status() else {
        return Ok(());
    };
    shape.read_field("CustomResourceDefinition", "status", status)?;
    shape.write(status);
    Ok(())
}

/// Sets the condition `Terminating` of a definition under deletion.
pub fn terminate(crd: &mut Value, now: Timestamp) {
    let (reason, message) = (
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
    names::set(crd, "Terminating", true, reason, message, &seconds(now));
}

/// Errors for changed fields that are immutable.
pub(crate) fn unchangeable(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let established = names::is_established(old);
    for path in [
        "/spec/scope",
        "/spec/names/kind",
        "/spec/group",
        "/spec/names/plural",
    ] {
        // Scope and kind may change until the definition is established.
        if !established && matches!(path, "/spec/scope" | "/spec/names/kind") {
            continue;
        }
        let now = new.pointer(path).unwrap_or(&Value::Null);
        if old.pointer(path).is_some_and(|before| before != now) {
            let field = path[1..].replace('/', ".");
            errors.push(FieldError::invalid(field, now, "field is immutable"));
        }
    }
    errors
}

/// Checks groups under `k8s.io` and `kubernetes.io` for the annotation of an approval by the Kubernetes community.
pub(crate) fn unapproved(crd: &Value) -> Vec<FieldError> {
    const NAME: &str = "api-approved.kubernetes.io";
    let group = crd["spec"]["group"].as_str().unwrap_or_default();
    let protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        let rest = group.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let given = crd["metadata"]["annotations"][NAME]
        .as_str()
        .unwrap_or_default();
    if !protected || !given.is_empty() {
        return Vec::new();
    }
    let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
    vec![FieldError::required(
        format!("metadata.annotations[{NAME}]"),
        detail,
    )]
}

/// Returns the sort key of a [`Version`] in discovery, greatest first: `v2`, then `v1`, then `v1beta1`, then all other
/// names (kube-aware version order).
pub fn priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let other = || (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else {
        return other();
    };
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let Ok(major) = rest[..digits].parse() else {
        return other();
    };
    let none = std::cmp::Reverse(String::new());
    match &rest[digits..] {
        "" => (3, major, 0, none),
        beta if beta.starts_with("beta") => match beta[4..].parse() {
            Ok(minor) => (2, major, minor, none),
            Err(_) => other(),
        },
        alpha if alpha.starts_with("alpha") => match alpha[5..].parse() {
            Ok(minor) => (1, major, minor, none),
            Err(_) => other(),
        },
        _ => other(),
    }
}

/// Returns the warning for clients of a deprecated version, with a newer served version if there is one.
fn deprecation(group: &str, spec: &Value, name: &str) -> String {
    let kind = text(&spec["names"], "kind").unwrap_or_default();
    let newer = items(&spec["versions"])
        .iter()
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .filter_map(|other| text(other, "name"))
        .max_by_key(|other| priority(other))
        .filter(|other| priority(other) > priority(name));
    match newer {
        Some(newer) => {
            format!("{group}/{name} {kind} is deprecated; use {group}/{newer} {kind}")
        }
        None => format!("{group}/{name} {kind} is deprecated"),
    }
}

fn compile_version(
    group: &str,
    spec: &Value,
    index: usize,
    errors: &mut Vec<FieldError>,
) -> Version {
    let version = &spec["versions"][index];
    let path = format!("spec.versions[{index}]");
    let name = required(version, &path, "name", errors);
    let open_api = &version["schema"]["openAPIV3Schema"];
    let mut schema = None;
    if open_api.is_null() {
        let path = format!("{path}.schema.openAPIV3Schema");
        errors.push(FieldError::required(path, "schemas are required"));
    } else {
        match Schema::compile(open_api) {
            Ok(compiled) => schema = Some(compiled),
            Err(problems) => errors.extend(problems.into_iter().map(|mut problem| {
                let dot = if problem.path.is_empty() || problem.path.starts_with('[') {
                    ""
                } else {
                    "."
                };
                problem.path = format!("{path}.schema.openAPIV3Schema{dot}{}", problem.path);
                problem
            })),
        }
    }
    let api_version = format!("{group}/{name}");
    Version {
        served: version["served"] == true,
        status: version["subresources"]["status"].is_object(),
        scale: scale(&version["subresources"]["scale"]),
        subresources: Vec::new(),
        columns: printer_columns(&version["additionalPrinterColumns"]),
        schema,
        open_api: Some(open_api.clone()),
        selectable: items(&version["selectableFields"])
            .iter()
            .filter_map(|field| text(field, "jsonPath"))
            .map(|path| path.trim_start_matches('.').to_owned())
            .collect(),
        warning: (version["deprecated"] == true).then(|| {
            text(version, "deprecationWarning")
                .map_or_else(|| deprecation(group, spec, &name), str::to_owned)
        }),
        name,
        api_version,
    }
}

/// Returns the conversion webhook, if there is one. The definition is valid, so either a URL or a Service is set.
fn conversion(conversion: &Value) -> Option<Conversion> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let webhook = &conversion["webhook"];
    let client_config = &webhook["clientConfig"];
    let has_address = client_config["url"].is_string() || client_config["service"].is_object();
    (conversion["strategy"] == "Webhook" && has_address).then(|| Conversion {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        client_config: client_config.clone(),
        review_versions: strings(&webhook["conversionReviewVersions"]),
    })
}

fn scale(scale: &Value) -> Option<Scale> {
    Some(Scale {
        spec: text(scale, "specReplicasPath")?.to_owned(),
        status: text(scale, "statusReplicasPath")?.to_owned(),
        selector: text(scale, "labelSelectorPath").map(str::to_owned),
    })
}

fn printer_columns(given: &Value) -> Vec<Column> {
    let mut all = vec![columns::name()];
    let given = items(given);
    if given.is_empty() {
        all.push(columns::age());
    }
    all.extend(given.iter().map(|column| {
        let field = |name: &str| text(column, name).unwrap_or_default().to_owned();
        Column {
            declared_kind: None,
            name: field("name"),
            kind: field("type"),
            format: field("format"),
            description: text(column, "description").map_or_else(
                || {
                    "Custom resource definition column (in JSONPath format): ".to_owned()
                        + &field("jsonPath")
                },
                str::to_owned,
            ),
            priority: column["priority"].as_i64().unwrap_or(0),
            cell: Cell::Path(field("jsonPath")),
        }
    }));
    all
}

fn default_spec(crd: &mut Value) {
    let spec = &mut crd["spec"];
    let kind = text(&spec["names"], "kind").unwrap_or_default().to_owned();
    if let Some(names) = spec["names"].as_object_mut() {
        names
            .entry("singular")
            .or_insert_with(|| Value::from(kind.to_lowercase()));
        if !kind.is_empty() {
            names
                .entry("listKind")
                .or_insert_with(|| Value::from(format!("{kind}List")));
        }
    }
    if let Some(spec) = spec.as_object_mut() {
        let conversion = spec.entry("conversion").or_insert_with(|| json!({}));
        if conversion["strategy"].is_null() && conversion.is_object() {
            conversion["strategy"] = Value::from("None");
        }
    }
}

fn required(object: &Value, path: &str, field: &str, errors: &mut Vec<FieldError>) -> String {
    match text(object, field) {
        Some(text) if !text.is_empty() => text.to_owned(),
        _ => {
            errors.push(FieldError::required(format!("{path}.{field}"), ""));
            String::new()
        }
    }
}

fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str)
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn strings(list: &Value) -> Vec<String> {
    items(list)
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
