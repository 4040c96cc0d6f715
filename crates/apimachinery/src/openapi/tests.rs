use serde_json::{Value, json};

use super::*;

const ALL: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

fn models(schema: &Value) -> Vec<Model<'_>> {
    let model = |group, version, kind, plural, namespaced, subresources| Model {
        group,
        version,
        kind,
        plural,
        namespaced,
        verbs: ALL,
        subresources,
        schema: None,
    };
    vec![
        model("", "v1", "Pod", "pods", true, &["status"]),
        model("", "v1", "Node", "nodes", false, &["status"]),
        model(
            "apps",
            "v1",
            "Deployment",
            "deployments",
            true,
            &["status", "scale"],
        ),
        model(
            "unknown.example.com",
            "v1",
            "Nothing",
            "nothings",
            true,
            &[],
        ),
        Model {
            schema: Some(schema),
            ..model("example.com", "v1", "Foo", "foos", true, &["status"])
        },
    ]
}

fn schema() -> Value {
    json!({
        "type": "object",
        "description": "A foo.",
        "properties": {"spec": {"type": "object", "nullable": true, "properties": {
            "size": {"type": "integer", "description": "How large.", "default": 1},
            "any": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"a": {"type": "string"}}},
            "one": {"type": "string", "oneOf": [{"minLength": 1}]},
        }}},
    })
}

/// Checks that every reference in a document has a target.
fn check_references(document: &Value, value: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                let pointer = reference.strip_prefix('#').unwrap();
                let known = document.pointer(pointer).is_some();
                assert!(
                    known || reference.contains("unknown"),
                    "{reference} leads nowhere"
                );
            }
            fields
                .values()
                .for_each(|value| check_references(document, value));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| check_references(document, item)),
        _ => {}
    }
}

#[test]
fn the_descriptions_of_built_in_kinds_parse_and_are_complete() {
    let definitions = builtin::definitions();
    assert!(definitions.len() > 400);
    for name in definitions.keys() {
        assert!(builtin::shape(name).is_some());
    }
    let document = json!({ "definitions": definitions });
    check_references(&document, &document);
}

#[test]
fn every_reference_in_a_document_has_a_target() {
    let schema = schema();
    let models = models(&schema);
    let document = v2(&models);
    check_references(&document, &document);
    for (group, version) in [
        ("", "v1"),
        ("apps", "v1"),
        ("example.com", "v1"),
        ("none", "v1"),
    ] {
        let document = v3(&models, group, version);
        check_references(&document, &document);
    }
}

#[test]
fn kinds_are_found_by_group_version_and_kind_with_their_descriptions() {
    let schema = schema();
    let models = models(&schema);
    let document = v3(&models, "apps", "v1");
    let deployment = &document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        deployment["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "version": "v1", "kind": "Deployment"}])
    );
    assert_eq!(
        deployment["properties"]["spec"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"
    );
    assert!(
        document["components"]["schemas"]
            .get("io.k8s.api.core.v1.Node")
            .is_none()
    );

    let document = v3(&models, "example.com", "v1");
    let foo = &document["components"]["schemas"]["com.example.v1.Foo"];
    assert_eq!(foo["description"], "A foo.");
    assert_eq!(
        foo["properties"]["spec"]["properties"]["size"]["description"],
        "How large."
    );
    assert_eq!(foo["properties"]["kind"]["type"], "string");
    assert_eq!(
        foo["properties"]["spec"]["properties"]["any"]["required"],
        json!(["kind", "apiVersion"])
    );
}

#[test]
fn the_v2_document_has_merge_keys_and_no_keywords_of_v3() {
    let schema = schema();
    let document = v2(&models(&schema));
    let spec = &document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(spec["x-kubernetes-patch-merge-key"], "name");
    let text = document["definitions"].to_string();
    for unknown in ["\"oneOf\"", "\"nullable\"", "\"default\":", "\"allOf\""] {
        assert!(!text.contains(unknown), "{unknown}");
    }
    let quantity = &document["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
    assert_eq!(quantity["type"], "string");
}

#[test]
fn int_or_string_is_unfolded_and_embedded_objects_have_descriptions() {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let schema = json!({"type": "object", "properties": {
        "bare": {"x-kubernetes-int-or-string": true},
        "spelt": {"x-kubernetes-int-or-string": true, "anyOf": either},
        "more": {"x-kubernetes-int-or-string": true, "anyOf": [{"pattern": "^1"}]},
        "any": {"type": "object", "x-kubernetes-embedded-resource": true},
    }});
    let document = v3(&models(&schema), "example.com", "v1");
    let fields = &document["components"]["schemas"]["com.example.v1.Foo"]["properties"];
    assert_eq!(fields["bare"]["anyOf"], either);
    assert_eq!(fields["spelt"]["anyOf"], either);
    assert_eq!(fields["spelt"].get("allOf"), None);
    assert_eq!(fields["more"]["allOf"], json!([{ "anyOf": either }]));
    let words = fields["any"]["properties"]["kind"]["description"].as_str();
    assert!(
        words
            .unwrap_or_default()
            .starts_with("kind is a string value")
    );
    assert_eq!(fields["any"]["required"], json!(["kind", "apiVersion"]));
}

#[test]
fn every_patch_takes_field_validation_and_dry_run() {
    let schema = schema();
    let models = models(&schema);
    for model in &models {
        let document = v3(&models, model.group, model.version);
        let wanted = json!({"group": model.group, "version": model.version, "kind": model.kind});
        let mut patches = 0;
        for path in document["paths"].as_object().unwrap().values() {
            let patch = &path["patch"];
            if patch["x-kubernetes-group-version-kind"] != wanted {
                continue;
            }
            patches += 1;
            let names: Vec<&str> = patch["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .map(|p| p["name"].as_str().unwrap())
                .collect();
            assert!(
                names.contains(&"fieldValidation") && names.contains(&"dryRun"),
                "{}",
                model.kind
            );
        }
        assert!(patches > 0, "{}", model.kind);
    }
}

#[test]
fn custom_resources_take_no_strategic_merge_patches() {
    let schema = schema();
    let models = models(&schema);
    let media = |group: &str, path: &str| {
        let document = v3(&models, group, "v1");
        document["paths"][path]["patch"]["requestBody"]["content"]
            .as_object()
            .unwrap()
            .len()
    };
    assert_eq!(
        media(
            "example.com",
            "/apis/example.com/v1/namespaces/{namespace}/foos/{name}"
        ),
        3
    );
    assert_eq!(
        media(
            "apps",
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        ),
        4
    );
}

#[test]
fn the_index_changes_exactly_when_a_schema_changes() {
    let (one, mut two) = (schema(), schema());
    let index = v3_index(&models(&one));
    assert_eq!(index, v3_index(&models(&two)));
    two["description"] = json!("Another foo.");
    let changed = v3_index(&models(&two));
    assert_ne!(
        index["paths"]["apis/example.com/v1"],
        changed["paths"]["apis/example.com/v1"]
    );
    assert_eq!(index["paths"]["api/v1"], changed["paths"]["api/v1"]);
    let url = index["paths"]["api/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    assert!(url.starts_with("/openapi/v3/api/v1?hash="), "{url}");
}

#[test]
fn operation_ids_are_unique() {
    let schema = schema();
    let document = v2(&models(&schema));
    let mut names = BTreeSet::new();
    for path in document["paths"].as_object().unwrap().values() {
        for operation in path
            .as_object()
            .unwrap()
            .values()
            .filter(|operation| operation.is_object())
        {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
        }
    }
    assert!(names.contains("patchAppsV1NamespacedDeploymentStatus"));
    assert!(names.contains("listCoreV1PodForAllNamespaces"));
}
