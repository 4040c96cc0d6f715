//! Paths of the documents: methods, kinds, parameters and media types of each resource.

use serde_json::{Map, Value, json};

use super::{
    Model,
    definitions::{Dialect, name_of},
    path_of,
};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
/// Action of requests to kubelets, whose answers are not objects.
const CONNECT: &str = "connect";

/// Adds the paths of a [`Model`].
pub(super) fn add(model: &Model<'_>, dialect: Dialect, paths: &mut Map<String, Value>) {
    let root = format!("/{}", path_of(model.group, model.version));
    let plural = model.plural;
    let collection = if model.namespaced {
        format!("{root}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{root}/{plural}")
    };
    let item = format!("{collection}/{{name}}");
    let writer = Writer { model, dialect };

    let collection_verbs = [
        ("get", "list", "list"),
        ("post", "create", "post"),
        ("delete", "deletecollection", "deletecollection"),
    ];
    let item_verbs = [
        ("get", "get", "get"),
        ("put", "update", "put"),
        ("delete", "delete", "delete"),
        ("patch", "patch", "patch"),
    ];
    writer.path(paths, collection, "", &collection_verbs);
    writer.path(paths, item.clone(), "", &item_verbs);
    if model.namespaced {
        writer.path(
            paths,
            format!("{root}/{plural}"),
            "",
            &collection_verbs[..1],
        );
    }
    for subresource in model.subresources {
        let verbs: &[_] = match *subresource {
            "status" | "scale" => &[item_verbs[0], item_verbs[1], item_verbs[3]],
            "log" => &item_verbs[..1],
            "portforward" => &[("get", CONNECT, CONNECT), ("post", CONNECT, CONNECT)],
            _ => &[collection_verbs[1]],
        };
        writer.path(paths, format!("{item}/{subresource}"), subresource, verbs);
    }
}

struct Writer<'a> {
    model: &'a Model<'a>,
    dialect: Dialect,
}

impl Writer<'_> {
    /// Adds one path, with the operations whose verbs the resource has: (method, verb, action).
    fn path(
        &self,
        paths: &mut Map<String, Value>,
        path: String,
        subresource: &str,
        operations: &[(&str, &str, &str)],
    ) {
        let mut methods = Map::new();
        for (method, verb, action) in operations {
            if !subresource.is_empty() || self.model.verbs.contains(verb) {
                let operation = self.operation((method, verb, action), &path, subresource);
                methods.insert((*method).to_owned(), operation);
            }
        }
        if methods.is_empty() {
            return;
        }
        let mut parameters = Vec::new();
        if path.contains("{name}") {
            let description = format!("name of the {}", self.model.kind);
            parameters.push(self.parameter("name", "path", "string", &description));
        }
        if path.contains("{namespace}") {
            let description = "object name and auth scope, such as for teams and projects";
            parameters.push(self.parameter("namespace", "path", "string", description));
        }
        parameters.push(self.parameter(
            "pretty",
            "query",
            "string",
            "If 'true', then the output is pretty printed.",
        ));
        methods.insert("parameters".to_owned(), Value::from(parameters));
        paths.insert(path, Value::Object(methods));
    }

    fn operation(
        &self,
        (method, verb, action): (&str, &str, &str),
        path: &str,
        subresource: &str,
    ) -> Value {
        let model = self.model;
        let scale = subresource == "scale";
        let kind = if scale {
            json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
        } else if verb == CONNECT {
            json!({"group": "", "version": "v1", "kind": "PodPortForwardOptions"})
        } else {
            json!({"group": model.group, "version": model.version, "kind": model.kind})
        };
        let object = if scale {
            SCALE.to_owned()
        } else {
            name_of(model)
        };
        let (body, result) = match verb {
            "create" | "update" => (Some(object.clone()), object),
            "patch" => (Some(format!("{META}.Patch")), object),
            "delete" => (
                Some(format!("{META}.DeleteOptions")),
                format!("{META}.Status"),
            ),
            "deletecollection" => (
                Some(format!("{META}.DeleteOptions")),
                format!("{META}.Status"),
            ),
            _ => (None, object),
        };
        let mut operation = json!({
            "operationId": self.operation_id((method, verb), path, subresource),
            "description": self.description(verb, subresource),
            "parameters": self.parameters(verb),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind,
        });
        if let Some(body) = body {
            self.add_body(&mut operation, verb, &body);
        }
        match subresource {
            "log" => self.add_text(&mut operation, "text/plain"),
            _ if verb == CONNECT => self.add_text(&mut operation, "*/*"),
            _ => self.add_responses(&mut operation, verb, &result),
        }
        operation
    }

    fn add_body(&self, operation: &mut Value, verb: &str, body: &str) {
        let media: &[&str] = match verb {
            "patch" if self.model.schema.is_some() => &[
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
            ],
            "patch" => &[
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
            ],
            _ => &["application/json", "application/yaml"],
        };
        // A patch may be any JSON.
        let schema = match verb {
            "patch" => json!({"type": "object"}),
            _ => json!({"$ref": self.dialect.reference(body)}),
        };
        let required = !verb.starts_with("delete");
        match self.dialect {
            Dialect::V2 => {
                let parameter =
                    json!({"name": "body", "in": "body", "required": required, "schema": schema});
                if let Some(Value::Array(parameters)) = operation.get_mut("parameters") {
                    parameters.insert(0, parameter);
                }
                operation["consumes"] = json!(media);
            }
            Dialect::V3 => {
                let content: Map<String, Value> = media
                    .iter()
                    .map(|media| ((*media).to_owned(), json!({"schema": schema})))
                    .collect();
                operation["requestBody"] = json!({"content": content, "required": required});
            }
        }
    }

    fn add_responses(&self, operation: &mut Value, verb: &str, result: &str) {
        // List kinds have no definition.
        let schema = match verb {
            "list" => json!({"type": "object"}),
            _ => json!({"$ref": self.dialect.reference(result)}),
        };
        let codes: &[(&str, &str)] = match verb {
            "create" => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
            "update" | "patch" => &[("200", "OK"), ("201", "Created")],
            "delete" => &[("200", "OK"), ("202", "Accepted")],
            _ => &[("200", "OK")],
        };
        let mut responses = Map::new();
        for (code, description) in codes {
            let response = match self.dialect {
                Dialect::V2 => json!({"description": description, "schema": schema}),
                Dialect::V3 => json!({
                    "description": description,
                    "content": {
                        "application/json": {"schema": schema},
                        "application/yaml": {"schema": schema},
                    },
                }),
            };
            responses.insert((*code).to_owned(), response);
        }
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        operation["responses"] = Value::Object(responses);
        if self.dialect == Dialect::V2 {
            operation["produces"] = json!(["application/json", "application/yaml"]);
        }
    }

    /// Adds an answer that is not an object.
    fn add_text(&self, operation: &mut Value, media: &str) {
        let schema = json!({"type": "string"});
        let answer = match self.dialect {
            Dialect::V2 => json!({"description": "OK", "schema": schema}),
            Dialect::V3 => json!({"description": "OK", "content": {media: {"schema": schema}}}),
        };
        operation["responses"] = json!({"200": answer, "401": {"description": "Unauthorized"}});
        if self.dialect == Dialect::V2 {
            operation["produces"] = json!([media]);
        }
    }

    fn parameters(&self, verb: &str) -> Vec<Value> {
        let mut parameters = Vec::new();
        let mut add = |name: &str, kind: &str, description: &str| {
            parameters.push(self.parameter(name, "query", kind, description));
        };
        let writes = matches!(verb, "create" | "update" | "patch");
        if writes || verb.starts_with("delete") {
            add(
                "dryRun",
                "string",
                "`All`: every stage is processed, nothing is stored.",
            );
        }
        if writes {
            add(
                "fieldManager",
                "string",
                "The name of the actor that makes the changes.",
            );
            add(
                "fieldValidation",
                "string",
                "What to do with unknown and duplicate fields: `Ignore`, `Warn` or `Strict`.",
            );
        }
        if verb == "patch" {
            add(
                "force",
                "boolean",
                "For apply: take over fields that others own.",
            );
        }
        if verb.starts_with("delete") {
            add(
                "gracePeriodSeconds",
                "integer",
                "Seconds before the object is deleted.",
            );
            add(
                "propagationPolicy",
                "string",
                "`Orphan`, `Background` or `Foreground`.",
            );
        }
        if matches!(verb, "list" | "deletecollection") {
            add(
                "labelSelector",
                "string",
                "Restricts the objects by their labels.",
            );
            add(
                "fieldSelector",
                "string",
                "Restricts the objects by their fields.",
            );
            add(
                "limit",
                "integer",
                "The largest number of objects in one answer.",
            );
            add("continue", "string", "Where a limited list goes on.");
            add("resourceVersion", "string", "The revision to start from.");
            add(
                "resourceVersionMatch",
                "string",
                "How `resourceVersion` is meant.",
            );
            add(
                "timeoutSeconds",
                "integer",
                "Ends the call after this time.",
            );
            add(
                "sendInitialEvents",
                "boolean",
                "Begins a watch with the objects that are there.",
            );
        }
        if verb == "list" {
            add("watch", "boolean", "Answers with changes as they happen.");
            add(
                "allowWatchBookmarks",
                "boolean",
                "Asks for bookmarks in a watch.",
            );
        }
        parameters
    }

    fn parameter(&self, name: &str, place: &str, kind: &str, description: &str) -> Value {
        let mut parameter = json!({
            "name": name, "in": place, "description": description, "uniqueItems": true,
        });
        if place == "path" {
            parameter["required"] = Value::Bool(true);
        }
        match self.dialect {
            Dialect::V2 => parameter["type"] = Value::from(kind),
            Dialect::V3 => {
                if let Some(fields) = parameter.as_object_mut() {
                    fields.remove("uniqueItems");
                }
                parameter["schema"] = json!({"type": kind, "uniqueItems": true});
            }
        }
        parameter
    }

    /// Returns an operation id such as `patchAppsV1NamespacedDeploymentStatus`.
    fn operation_id(&self, (method, verb): (&str, &str), path: &str, subresource: &str) -> String {
        let model = self.model;
        let verb = match verb {
            "get" => "read",
            "update" => "replace",
            "deletecollection" => "deleteCollection",
            verb => verb,
        };
        let group = if model.group.is_empty() {
            "core"
        } else {
            model.group
        };
        let group = group.strip_suffix(".k8s.io").unwrap_or(group);
        let group: String = group.split(['.', '-']).map(capitalized).collect();
        let namespaced = if path.contains("{namespace}") {
            "Namespaced"
        } else {
            ""
        };
        let everywhere = if model.namespaced && namespaced.is_empty() {
            "ForAllNamespaces"
        } else {
            ""
        };
        let subresource = capitalized(subresource);
        let mut version = capitalized(model.version);
        if verb == CONNECT {
            version.push_str(&capitalized(method));
        }
        format!(
            "{verb}{group}{version}{namespaced}{}{subresource}{everywhere}",
            model.kind
        )
    }

    fn description(&self, verb: &str, subresource: &str) -> String {
        let kind = self.model.kind;
        let of = if subresource.is_empty() {
            String::new()
        } else {
            format!("{subresource} of ")
        };
        match verb {
            "list" => format!("list or watch objects of kind {kind}"),
            "get" => format!("read {of}the specified {kind}"),
            "update" => format!("replace {of}the specified {kind}"),
            "patch" => format!("partially update {of}the specified {kind}"),
            "deletecollection" => format!("delete collection of {kind}"),
            verb => format!("{verb} {of}a {kind}"),
        }
    }
}

fn capitalized(word: &str) -> String {
    let mut characters = word.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}
