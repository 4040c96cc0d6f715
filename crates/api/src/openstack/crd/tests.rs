use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};

use super::*;

fn root() -> JSONSchemaProps {
    let mut versions = all().remove(0).spec.versions;
    let schema = versions.remove(0).schema.unwrap();
    schema.open_api_v3_schema.unwrap()
}

/// Every field below `schema` with its path.
fn fields(schema: &JSONSchemaProps, at: &str, found: &mut Vec<(String, JSONSchemaProps)>) {
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
        fields(item, at, found);
    }
    for (name, property) in schema.properties.iter().flatten() {
        let path = format!("{at}.{name}");
        found.push((path.clone(), property.clone()));
        fields(property, &path, found);
    }
}

#[test]
fn the_definition_is_small_and_every_field_is_documented() {
    let crd = all().remove(0);
    let size = serde_json::to_string(&crd).unwrap().len();
    assert!(size <= 100_000, "{size} bytes");
    let mut found = Vec::new();
    fields(&root(), "", &mut found);
    assert!(found.len() > 50, "{}", found.len());
    // Conditions are those of apimachinery, whose fields are documented there.
    let bare = found.iter().filter(|(path, schema)| {
        schema.description.is_none() && !path.starts_with(".status.conditions.")
    });
    let bare: Vec<_> = bare.map(|(path, _)| path).collect();
    assert!(bare.iter().all(|path| *path == ".metadata"), "{bare:?}");
}

#[test]
fn every_field_that_is_not_built_has_a_rule_that_rejects_it() {
    let mut found = Vec::new();
    fields(&root(), "", &mut found);
    let paths = REJECTED.map(|(path, ..)| format!(".spec.{path}"));
    let mut expected = Vec::from(paths);
    for service in SERVICES {
        let of_service = REJECTED_OF_SERVICES;
        expected.extend(of_service.map(|(field, _)| format!(".spec.services.{service}.{field}")));
    }
    let rejects = |schema: &JSONSchemaProps| {
        let rules = schema.x_kubernetes_validations.iter().flatten();
        rules.into_iter().any(|rule| rule.rule == "false")
    };
    let mut rejected: Vec<String> = found
        .into_iter()
        .filter(|(_, schema)| rejects(schema))
        .map(|(path, _)| path)
        .collect();
    rejected.sort();
    expected.sort();
    assert_eq!(rejected, expected);
}
