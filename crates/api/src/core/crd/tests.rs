use serde_json::Value;

fn schemas() -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for crd in super::all() {
        for version in &crd.spec.versions {
            let schema = version
                .schema
                .as_ref()
                .unwrap()
                .open_api_v3_schema
                .as_ref()
                .unwrap();
            let schema = serde_json::to_value(schema).unwrap();
            all.push((crd.spec.names.kind.clone(), version.name.clone(), schema));
        }
    }
    all
}

#[test]
fn both_versions_are_served_and_the_newer_one_is_stored() {
    for crd in super::all() {
        let versions: Vec<_> = crd
            .spec
            .versions
            .iter()
            .map(|v| (v.name.as_str(), v.served, v.storage))
            .collect();
        assert_eq!(
            versions,
            [("v1beta1", true, false), ("v1beta2", true, true)]
        );
        let labels = crd.metadata.labels.unwrap();
        assert_eq!(labels["cluster.x-k8s.io/v1beta2"], "v1beta2");
        assert_eq!(labels["cluster.x-k8s.io/v1beta1"], "v1beta1");
    }
}

#[test]
fn schemas_are_structural() {
    fn check(schema: &Value, path: &str) {
        let typed = schema.get("type").is_some()
            || schema.get("x-kubernetes-int-or-string").is_some()
            || schema.get("x-kubernetes-preserve-unknown-fields").is_some();
        assert!(typed, "{path} has no type: {schema}");
        for rule in ["$ref", "oneOf", "nullable", "definitions"] {
            assert!(schema.get(rule).is_none(), "{path} has {rule}");
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            check(property, &format!("{path}.{name}"));
        }
        if let Some(items) = schema.get("items") {
            check(items, &format!("{path}[]"));
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            let known = schema["properties"]
                .get(required.as_str().unwrap())
                .is_some();
            assert!(known, "{path} requires {required}, which it does not have");
        }
    }
    for (kind, version, schema) in schemas() {
        check(&schema, &format!("{kind} {version}"));
    }
}
