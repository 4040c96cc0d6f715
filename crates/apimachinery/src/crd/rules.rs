//! Validation of a CustomResourceDefinition (`apiextensions-apiserver/pkg/apis/apiextensions/validation`).
//!
//! The internal type of kube-apiserver has top-level fields for values shared by all versions, and errors name those
//! fields: `spec.validation` rather than `spec.versions[0].schema`. The [`FieldError`]s here do the same.

mod fields;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{items, strings, text, unapproved, unchangeable};
use crate::names::{label_1035, subdomain};
use crate::schema::{FieldError, Schema, go_json};

/// Validates a definition before it is stored; `live` is the stored definition on an update.
pub fn check(crd: &Value, live: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    name(crd, &mut errors);
    spec(crd, &mut errors);
    errors.extend(live.into_iter().flat_map(|live| unchangeable(crd, live)));
    stored_versions(crd, &mut errors);
    if live.is_none() {
        errors.extend(unapproved(crd));
    }
    errors
}

/// Validates a definition with an unchanged spec. In a status written by a client, the accepted names must be valid;
/// any other write must keep the versions of stored objects.
pub fn check_status(crd: &Value, live: &Value) -> Vec<FieldError> {
    const PATH: &str = "status.acceptedNames";
    let mut errors = Vec::new();
    if crd["status"] == live["status"] {
        stored_versions(crd, &mut errors);
    } else {
        valid_names(&crd["status"]["acceptedNames"], PATH, &mut errors);
    }
    errors
}

fn name(crd: &Value, errors: &mut Vec<FieldError>) {
    let spec = &crd["spec"];
    let plural = text(&spec["names"], "plural").unwrap_or_default();
    let group = text(spec, "group").unwrap_or_default();
    let name = &crd["metadata"]["name"];
    if *name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
}

fn spec(crd: &Value, errors: &mut Vec<FieldError>) {
    let spec = &crd["spec"];
    let group = text(spec, "group").unwrap_or_default();
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if let Some(problem) = subdomain(group) {
        errors.push(FieldError::invalid("spec.group", &spec["group"], problem));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &spec["group"], detail));
    }
    choice(
        "spec.scope",
        &spec["scope"],
        &["Cluster", "Namespaced"],
        errors,
    );
    let versions = items(&spec["versions"]);
    let shared = Shared::from_versions(versions);
    for (index, version) in versions.iter().enumerate() {
        if version["schema"]["openAPIV3Schema"].is_null() {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(path, ""));
        }
    }
    for (index, version) in versions.iter().enumerate() {
        self::version(version, &format!("spec.versions[{index}]"), &shared, errors);
    }
    together(versions, &shared, errors);
    names(&spec["names"], errors);
    let first = versions.first().unwrap_or(&Value::Null);
    if shared.schema {
        schema(&first["schema"], "spec.validation", errors);
    }
    if shared.subresources {
        fields::subresources(&first["subresources"], "spec.subresources", errors);
    }
    if shared.columns {
        fields::columns(first, "spec.additionalPrinterColumns", errors);
    }
    if shared.selectable {
        fields::selectable(first, "spec.selectableFields", errors);
    }
}

/// Fields that are equal in all versions, and so are top-level fields in the internal type.
struct Shared {
    schema: bool,
    subresources: bool,
    columns: bool,
    selectable: bool,
}

impl Shared {
    fn from_versions(versions: &[Value]) -> Self {
        let same = |field: &str| {
            let mut values = versions.iter().map(|version| &version[field]);
            values
                .next()
                .is_some_and(|first| values.all(|value| value == first))
        };
        Self {
            schema: same("schema"),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
        }
    }
}

fn version(version: &Value, path: &str, shared: &Shared, errors: &mut Vec<FieldError>) {
    let name = text(version, "name").unwrap_or_default();
    if let Some(problem) = label_1035(name) {
        errors.push(FieldError::invalid(
            format!("{path}.name"),
            &json!(name),
            problem,
        ));
    }
    let warning = &version["deprecationWarning"];
    if let Some(given) = warning.as_str() {
        let problem = match version["deprecated"] == true {
            false => Some("can only be set for deprecated versions"),
            true if given.is_empty() => Some("must not be an empty string"),
            true if given.len() > 256 => Some("must be <= 256 characters long"),
            true => None,
        };
        let path = format!("{path}.deprecationWarning");
        errors.extend(problem.map(|problem| FieldError::invalid(path, warning, problem)));
    }
    if !shared.schema {
        schema(&version["schema"], &format!("{path}.schema"), errors);
    }
    if !shared.subresources {
        let path = format!("{path}.subresources");
        fields::subresources(&version["subresources"], &path, errors);
    }
    if !shared.columns {
        fields::columns(version, &format!("{path}.additionalPrinterColumns"), errors);
    }
    if !shared.selectable {
        fields::selectable(version, &format!("{path}.selectableFields"), errors);
    }
}

fn schema(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let schema = &schema["openAPIV3Schema"];
    if schema.is_null() {
        return;
    }
    let path = format!("{path}.openAPIV3Schema");
    let problems = Schema::compile(schema).err().unwrap_or_default();
    errors.extend(problems.into_iter().map(|problem| problem.under(&path)));
}

/// Validates rules across versions.
fn together(versions: &[Value], shared: &Shared, errors: &mut Vec<FieldError>) {
    let names: Vec<&str> = versions
        .iter()
        .filter_map(|version| text(version, "name"))
        .collect();
    let mut refused = |detail: &str| {
        let versions: Vec<String> = versions
            .iter()
            .map(|version| printed(version, shared))
            .collect();
        let detail = format!("[{}]: {detail}", versions.join(","));
        errors.push(FieldError::invalid_unprinted("spec.versions", detail));
    };
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        refused("must contain unique version names");
    }
    if versions
        .iter()
        .filter(|version| version["storage"] == true)
        .count()
        != 1
    {
        refused("must have exactly one version marked as storage version");
    }
    // The internal type also has a field for the name of the first version.
    if let Some(first) = names.first()
        && let Some(problem) = label_1035(first)
    {
        errors.push(FieldError::invalid("spec.version", &json!(first), problem));
    }
}

/// Formats a version like Go's internal type in errors.
fn printed(version: &Value, shared: &Shared) -> String {
    let field = |name: &str, shared: bool| {
        let value = if shared { &Value::Null } else { &version[name] };
        go_json(value)
    };
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
        go_json(&json!(text(version, "name").unwrap_or_default())),
        version["served"] == true,
        version["storage"] == true,
        version["deprecated"] == true,
        go_json(&version["deprecationWarning"]),
        field("schema", shared.schema),
        field("subresources", shared.subresources),
        field("additionalPrinterColumns", shared.columns),
        field("selectableFields", shared.selectable),
    )
}

fn names(names: &Value, errors: &mut Vec<FieldError>) {
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(names, field).unwrap_or_default().is_empty() {
            errors.push(FieldError::required(format!("spec.names.{field}"), ""));
        }
    }
    valid_names(names, "spec.names", errors);
}

/// Validates the names that are set.
fn valid_names(names: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for field in ["plural", "singular", "kind", "listKind"] {
        let Some(given) = text(names, field).filter(|given| !given.is_empty()) else {
            continue;
        };
        let kind = matches!(field, "kind" | "listKind");
        let problem = match kind {
            true => label_1035(&given.to_lowercase())
                .map(|why| format!("may have mixed case, but should otherwise match: {why}")),
            false => label_1035(given),
        };
        let path = format!("{at}.{field}");
        errors.extend(problem.map(|why| FieldError::invalid(path, &names[field], why)));
    }
    let labels = |field: &str, errors: &mut Vec<FieldError>| {
        for (index, given) in strings(&names[field]).iter().enumerate() {
            let path = format!("{at}.{field}[{index}]");
            let problem = label_1035(given);
            errors.extend(problem.map(|why| FieldError::invalid(path, &json!(given), why)));
        }
    };
    labels("shortNames", errors);
    if text(names, "kind").is_some_and(|kind| !kind.is_empty() && names["listKind"] == kind) {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(
            format!("{at}.listKind"),
            &names["listKind"],
            detail,
        ));
    }
    labels("categories", errors);
}

fn stored_versions(crd: &Value, errors: &mut Vec<FieldError>) {
    const PATH: &str = "status.storedVersions";
    let stored = strings(&crd["status"]["storedVersions"]);
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        errors.push(FieldError::invalid(PATH, &Value::Null, detail));
        return;
    }
    let versions = items(&crd["spec"]["versions"]);
    for version in versions.iter().filter(|version| version["storage"] == true) {
        let name = text(version, "name").unwrap_or_default();
        if !stored.iter().any(|stored| stored == name) {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(PATH, &json!(stored), detail));
        }
    }
    for (index, stored) in stored.iter().enumerate() {
        if !versions
            .iter()
            .any(|version| version["name"] == stored.as_str())
        {
            let detail = format!(
                "missing from spec.versions; {stored} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {stored} and removes {stored} from status.storedVersions"
            );
            errors.push(FieldError::invalid(
                format!("{PATH}[{index}]"),
                &json!(stored),
                detail,
            ));
        }
    }
}

/// Validates a text that must be one of a few.
fn choice(path: &str, given: &Value, known: &[&str], errors: &mut Vec<FieldError>) {
    match given.as_str().unwrap_or_default() {
        "" => errors.push(FieldError::required(path, "")),
        text if known.contains(&text) => {}
        _ => {
            let known: Vec<String> = known.iter().map(|&known| known.to_owned()).collect();
            errors.push(FieldError::not_supported(path, given, &known));
        }
    }
}
