//! Applies manifests to the management API, with errors that name file, line and field.

use std::collections::HashMap;

use kube::Client;
use kube::api::{DynamicObject, GroupVersionKind, Patch, PatchParams, ValidationDirective};
use kube::core::Status;
use kube::discovery::{ApiCapabilities, ApiResource, Scope, oneshot};
use operator::client::Api;
use serde_json::Value;

use manifest::Document;

/// The field manager of applied objects.
pub const FIELD_MANAGER: &str = "ferrostack";

/// Reason why manifests could not be applied: all problems, one per line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ApplyError(
    /// Problems, each with file, line and field.
    pub Vec<String>,
);

/// Applies `documents` in the order of their dependencies. All [`Document`]s are validated by a dry run first, so that
/// an error in the last one leaves nothing partially applied.
///
/// # Errors
/// [`ApplyError`] with all problems of the dry run, or of the requests after the dry run.
pub async fn all(
    client: &Client,
    documents: &[Document],
    namespace: &str,
) -> Result<(), ApplyError> {
    let mut ordered: Vec<&Document> = documents.iter().collect();
    ordered.sort_by_key(|document| rank(document.text(&["kind"])));
    let mut kinds = Kinds {
        client,
        known: HashMap::new(),
    };
    let new_namespaces = new_namespaces(ordered.iter().copied());
    let mut problems = Vec::new();
    for document in &ordered {
        // A dry run in a namespace that does not exist yet is not possible.
        if new_namespaces.contains(&document.text(&["metadata", "namespace"])) {
            continue;
        }
        if let Err(mut found) = one(&mut kinds, document, namespace, true).await {
            problems.append(&mut found);
        }
    }
    if problems.is_empty() {
        for document in ordered {
            if let Err(mut found) = one(&mut kinds, document, namespace, false).await {
                problems.append(&mut found);
            }
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        problems.sort_by_key(|problem| place(problem));
        Err(ApplyError(problems))
    }
}

/// File and line of a problem, since problems are listed in the order of the file.
fn place(problem: &str) -> (String, usize) {
    // The name of a file can have colons, too, above all if it is a URL.
    for (colon, _) in problem.match_indices(':') {
        let (file, rest) = problem.split_at(colon);
        let line = rest[1..].split_once(':').map(|(line, _)| line.parse());
        if let Some(Ok(line)) = line {
            return (file.to_owned(), line);
        }
    }
    (problem.to_owned(), 0)
}

/// Sort key of kinds: namespaces and CRDs first, then objects that others refer to.
fn rank(kind: &str) -> u8 {
    match kind {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        "Secret" | "ConfigMap" => 2,
        _ if kind.ends_with("Template") => 3,
        // Clusters are validated by their class.
        "ClusterClass" => 4,
        _ => 5,
    }
}

/// Object in the store, and as changed by an apply.
pub struct Preview {
    /// `Kind name`.
    pub label: String,
    /// The stored object.
    pub before: Option<DynamicObject>,
    /// The object after an apply.
    pub after: DynamicObject,
}

/// Dry run of all `documents`, as [`Preview`]s with the stored objects; writes nothing. An object in a namespace that
/// does not exist yet is shown as written in the document, without fields that are null.
///
/// # Errors
/// [`ApplyError`] with the problems of all documents.
pub async fn preview(
    client: &Client,
    documents: &[Document],
    namespace: &str,
) -> Result<Vec<Preview>, ApplyError> {
    let mut kinds = Kinds {
        client,
        known: HashMap::new(),
    };
    let new_namespaces: Vec<&str> = new_namespaces(documents.iter());
    let (mut previews, mut problems) = (Vec::new(), Vec::new());
    for document in documents {
        let is_new = new_namespaces.contains(&document.text(&["metadata", "namespace"]));
        match previewed(&mut kinds, document, namespace, is_new).await {
            Ok(preview) => previews.push(preview),
            Err(mut found) => problems.append(&mut found),
        }
    }
    match problems.is_empty() {
        true => Ok(previews),
        false => Err(ApplyError(problems)),
    }
}

async fn previewed(
    kinds: &mut Kinds<'_>,
    document: &Document,
    namespace: &str,
    is_new: bool,
) -> Result<Preview, Vec<String>> {
    let api = kinds.api(document, namespace).await?;
    let before = api.get_opt(document.text(&["metadata", "name"])).await;
    let before = before.map_err(|error| unanswered(document, &error))?;
    let after = match before.is_none() && is_new {
        // The fields that an apply would give, as in `one`.
        true => serde_json::from_value(without_nulls(&document.value))
            .map_err(|error| vec![format!("{}: {error}", document.place(""))])?,
        false => one(kinds, document, namespace, true).await?,
    };
    Ok(Preview {
        label: document.label(),
        before,
        after,
    })
}

/// Namespaces among the documents, which need not exist yet.
fn new_namespaces<'a>(documents: impl Iterator<Item = &'a Document>) -> Vec<&'a str> {
    documents
        .filter(|document| document.text(&["kind"]) == "Namespace")
        .map(|document| document.text(&["metadata", "name"]))
        .collect()
}

/// Value without null fields. The API server drops a null of a field that is not nullable from a created object, but
/// rejects an applied one with such a null; published templates, such as `matchLabels:` without labels, were written
/// for creation.
pub fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let given = fields.iter().filter(|(_, value)| !value.is_null());
            given
                .map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect()
        }
        Value::Array(elements) => elements.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

async fn one(
    kinds: &mut Kinds<'_>,
    document: &Document,
    namespace: &str,
    dry_run: bool,
) -> Result<DynamicObject, Vec<String>> {
    let name = document.text(&["metadata", "name"]);
    let api = kinds.api(document, namespace).await?;
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        field_validation: Some(ValidationDirective::Strict),
        force: true,
        dry_run,
    };
    let given = without_nulls(&document.value);
    match api.patch(name, &params, &Patch::Apply(&given)).await {
        Ok(object) => Ok(object),
        Err(kube::Error::Api(status)) => Err(explain(document, &status)),
        Err(other) => Err(unanswered(document, &other)),
    }
}

fn unanswered(document: &Document, error: &kube::Error) -> Vec<String> {
    let cause = operator::words::chain(error);
    vec![format!(
        "{}: {}: {cause}",
        document.place(""),
        document.label()
    )]
}

/// Rejection by the API server, one line for each field named in the [`Status`].
fn explain(document: &Document, status: &Status) -> Vec<String> {
    let causes = status
        .details
        .as_ref()
        .map(|details| details.causes.as_slice())
        .unwrap_or_default();
    let named: Vec<_> = causes
        .iter()
        .filter(|cause| !cause.field.is_empty())
        .collect();
    if !named.is_empty() {
        return named
            .iter()
            .map(|cause| {
                let place = document.place(&cause.field);
                format!(
                    "{place}: {}: {}: {}",
                    document.label(),
                    cause.field,
                    cause.message
                )
            })
            .collect();
    }
    let fields = fields_in(&status.message);
    if !fields.is_empty() {
        return fields
            .into_iter()
            .map(|(field, problem)| {
                let place = document.place(&field);
                match problem {
                    Some(problem) => format!("{place}: {}: {field}: {problem}", document.label()),
                    None => format!("{place}: {}: there is no field {field}", document.label()),
                }
            })
            .collect();
    }
    vec![format!(
        "{}: {}: {}",
        document.place(""),
        document.label(),
        status.message
    )]
}

/// Fields in the message of a rejection, each with its problem, if known.
///
/// Strict decoding reports `unknown field "spec.x"`; apply reports `.spec.x: field not declared in schema` or
/// `.spec.replicas: expected numeric (int or float), got string`, each on a line or after `): `.
fn fields_in(message: &str) -> Vec<(String, Option<String>)> {
    let quoted = message.split("unknown field \"").skip(1);
    let quoted = quoted.filter_map(|rest| Some((rest.split('"').next()?.to_owned(), None)));
    let typed = message.split(['\n']).filter_map(|line| {
        let line = line.rsplit_once("): ").map_or(line, |(_, rest)| rest);
        let (path, problem) = line.trim().strip_prefix('.')?.split_once(": ")?;
        let unknown = problem == "field not declared in schema";
        Some((path.to_owned(), (!unknown).then(|| problem.to_owned())))
    });
    let mut fields: Vec<_> = quoted.chain(typed).collect();
    fields.dedup();
    fields
}

/// Kinds of the API server, with one discovery request for each.
struct Kinds<'a> {
    client: &'a Client,
    known: HashMap<GroupVersionKind, (ApiResource, ApiCapabilities)>,
}

impl Kinds<'_> {
    /// Objects of a document's kind, in its own namespace or in the given one.
    async fn api(
        &mut self,
        document: &Document,
        namespace: &str,
    ) -> Result<Api<DynamicObject>, Vec<String>> {
        let found = self.find(document).await;
        let (resource, capabilities) = found.map_err(|problem| vec![problem])?;
        let client = self.client.clone();
        Ok(
            match (
                &capabilities.scope,
                document.text(&["metadata", "namespace"]),
            ) {
                (Scope::Cluster, _) => Api::all_with(client, &resource),
                (Scope::Namespaced, "") => Api::namespaced_with(client, namespace, &resource),
                (Scope::Namespaced, own) => Api::namespaced_with(client, own, &resource),
            },
        )
    }

    async fn find(
        &mut self,
        document: &Document,
    ) -> Result<(ApiResource, ApiCapabilities), String> {
        let (api_version, kind) = (document.text(&["apiVersion"]), document.text(&["kind"]));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        if let Some(known) = self.known.get(&gvk) {
            return Ok(known.clone());
        }
        match oneshot::pinned_kind(self.client, &gvk).await {
            Ok(found) => {
                self.known.insert(gvk, found.clone());
                Ok(found)
            }
            Err(kube::Error::Api(status)) if status.code != 404 => Err(format!(
                "{}: {}: {}",
                document.place("kind"),
                document.label(),
                status.message
            )),
            Err(kube::Error::Api(_) | kube::Error::Discovery(_)) => Err(format!(
                "{}: {}",
                document.place("kind"),
                not_served(group, api_version, kind)
            )),
            Err(other) => Err(operator::words::chain(&other)),
        }
    }
}

fn not_served(group: &str, api_version: &str, kind: &str) -> String {
    if (group, kind) == ("cluster.x-k8s.io", api::core::pool::KIND) {
        return api::core::pool::NOT_BUILT.to_owned();
    }
    format!("the kind {kind} of {api_version} is not known here")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> Document {
        let text = "apiVersion: v1\nkind: X\nmetadata:\n  name: a\nspec:\n  replicas: many\n  list:\n  - bar: 1\n";
        manifest::read("f.yaml", text).unwrap().remove(0)
    }

    fn refused(message: &str, causes: Value) -> Vec<String> {
        let status = json!({"status": "Failure", "message": message, "reason": "Invalid", "code": 422,
                            "details": {"causes": causes}});
        explain(&document(), &serde_json::from_value(status).unwrap())
    }

    #[test]
    fn a_machine_pool_is_refused_with_what_to_use_instead() {
        let of = |group: &str, kind: &str| not_served(group, &format!("{group}/v1beta2"), kind);
        assert_eq!(
            of("cluster.x-k8s.io", "MachinePool"),
            "MachinePools are not built: use a MachineDeployment"
        );
        assert_eq!(
            of("example.com", "MachinePool"),
            "the kind MachinePool of example.com/v1beta2 is not known here"
        );
    }

    #[test]
    fn a_field_that_is_null_is_not_given_and_an_element_of_a_list_is() {
        let value =
            json!({"a": null, "b": {"c": null, "d": 1}, "e": [null, {"f": null}], "g": false});
        assert_eq!(
            without_nulls(&value),
            json!({"b": {"d": 1}, "e": [null, {}], "g": false})
        );
    }

    #[test]
    fn problems_come_in_the_order_of_files_and_lines() {
        let mut problems = ["b.yaml:2: x", "a.yaml:10: x", "a.yaml:9: x"];
        problems.sort_by_key(|problem| place(problem));
        assert_eq!(problems, ["a.yaml:9: x", "a.yaml:10: x", "b.yaml:2: x"]);
        let url = "http://127.0.0.1:80/a.yaml";
        let mut problems = [format!("{url}:10: x"), format!("{url}:9: x")];
        problems.sort_by_key(|problem| place(problem));
        assert_eq!(problems, [format!("{url}:9: x"), format!("{url}:10: x")]);
    }

    #[test]
    fn refusals_name_the_line_of_each_field() {
        assert_eq!(
            refused(
                "X \"a\" is invalid",
                json!([{"field": "spec.replicas", "message": "must be of type integer"}])
            ),
            ["f.yaml:6: X a: spec.replicas: must be of type integer"]
        );
        assert_eq!(
            refused(
                "strict decoding error: unknown field \"spec.list[0].bar\", unknown field \"foo\"",
                json!([])
            ),
            [
                "f.yaml:8: X a: there is no field spec.list[0].bar",
                "f.yaml:1: X a: there is no field foo"
            ]
        );
        assert_eq!(
            refused(
                "failed (a; b): .spec.list[0].bar: field not declared in schema",
                json!([])
            ),
            ["f.yaml:8: X a: there is no field spec.list[0].bar"]
        );
        assert_eq!(
            refused(
                "failed (a; b): .spec.replicas: expected numeric, got string",
                json!([])
            ),
            ["f.yaml:6: X a: spec.replicas: expected numeric, got string"]
        );
        assert_eq!(refused("no", json!([])), ["f.yaml:1: X a: no"]);
    }
}
