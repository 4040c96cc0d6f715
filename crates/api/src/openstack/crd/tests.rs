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
    let bare = found
        .iter()
        .filter(|(_, schema)| schema.description.is_none());
    let bare: Vec<_> = bare.map(|(path, _)| path).collect();
    assert!(bare.iter().all(|path| *path == ".metadata"), "{bare:?}");
}

#[test]
fn each_setting_says_its_default_and_has_an_example() {
    let mut found = Vec::new();
    fields(&root(), "", &mut found);
    let is_built = |schema: &JSONSchemaProps| {
        let description = schema.description.as_deref().unwrap_or_default();
        !description.ends_with("every value is rejected.")
    };
    let settings = found.iter().filter(|(path, schema)| {
        path.starts_with(".spec.") && schema.properties.is_none() && is_built(schema)
    });
    let mut count = 0;
    for (path, schema) in settings {
        count += 1;
        let description = schema.description.as_deref().unwrap();
        let lower = description.to_lowercase();
        let has_default = ["default", "required"].iter().any(|it| lower.contains(it));
        let is_switch = schema.type_.as_deref() == Some("boolean");
        let has_example = is_switch || description.contains('`');
        assert!(has_default && has_example, "{path}: {description}");
        if schema.type_.as_deref() == Some("integer") {
            let has_unit = ["bytes", "seconds", "number"]
                .iter()
                .any(|unit| lower.contains(unit));
            assert!(has_unit, "{path}: {description}");
        }
    }
    assert!(count > 20, "{count}");
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
