use std::path::PathBuf;

use serde_json::Value;

use super::*;

/// The schema of a kind in a version of a release of the Go provider; `None` where the reference data is absent.
fn released(release: &str, kind: &str, version: &str) -> Option<Value> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/upstream/crds")
        .join(format!("capo-{release}"))
        .join(format!(
            "infrastructure.cluster.x-k8s.io_{}s.yaml",
            kind.to_lowercase()
        ));
    let Ok(text) = std::fs::read_to_string(&path) else {
        skipped::because(format_args!("no {}", path.display()));
        return None;
    };
    let crd: Value = serde_saphyr::from_str(&text).unwrap();
    let mut versions = crd["spec"]["versions"].as_array().unwrap().iter();
    let found = versions.find(|it| it["name"] == version).unwrap();
    Some(found["schema"]["openAPIV3Schema"].clone())
}

/// The fields of a schema, one line each, with all that limits them.
fn lines(schema: &Value, path: &str, into: &mut Vec<String>) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let mut field = field;
        let mut path = format!("{path}.{name}");
        let mut line = String::new();
        if required.iter().any(|it| it == name.as_str()) {
            line.push_str(" required");
        }
        loop {
            for (key, value) in field.as_object().unwrap() {
                let inner = ["properties", "items", "additionalProperties"];
                let text = ["description", "required", "x-kubernetes-map-type"];
                if !inner.contains(&key.as_str()) && !text.contains(&key.as_str()) {
                    line.push_str(&format!(" {key}={value}"));
                }
            }
            if field["items"].is_object() {
                field = &field["items"];
                path.push_str("[]");
            } else if field["additionalProperties"].is_object() {
                field = &field["additionalProperties"];
                path.push_str("{}");
            } else {
                break;
            }
        }
        into.push(format!("{path}{line}"));
        lines(field, &path, into);
    }
}

fn of(kind: &str, version: &str) -> Value {
    let kinds = older();
    let mut kinds = kinds.iter();
    let definition = kinds.find(|it| it.spec.names.kind == kind).unwrap();
    let mut versions = definition.spec.versions.iter();
    let found = versions.find(|it| it.name == version).unwrap();
    serde_json::to_value(found.schema.as_ref().unwrap()).unwrap()["openAPIV3Schema"].clone()
}

#[test]
fn older_versions_have_the_fields_and_limits_of_their_releases() {
    let releases = [
        ("v1alpha4", "v0.7.2"),
        ("v1alpha5", "v0.10.0"),
        ("v1alpha6", "v0.10.0"),
        ("v1alpha7", "v0.12.0"),
    ];
    for kind in [
        "OpenStackCluster",
        "OpenStackClusterTemplate",
        "OpenStackMachine",
        "OpenStackMachineTemplate",
    ] {
        for (version, release) in releases {
            let Some(theirs) = released(release, kind, version) else {
                return;
            };
            let (mut wanted, mut found) = (Vec::new(), Vec::new());
            lines(&theirs, "", &mut wanted);
            lines(&of(kind, version), "", &mut found);
            // Without rules, a security group is one of v1alpha5.
            let eased = |line: &String| line.contains("SecurityGroup.rules[] required");
            wanted.sort();
            found.sort();
            let missing: Vec<_> = wanted
                .iter()
                .filter(|line| !found.contains(line) && !eased(line))
                .collect();
            let more: Vec<_> = found
                .iter()
                .filter(|line| !wanted.contains(line) && !line.contains("SecurityGroup.rules[]"))
                .collect();
            assert!(
                missing.is_empty() && more.is_empty(),
                "{kind} {version}: missing {missing:#?}, more {more:#?}"
            );
        }
    }
}

#[test]
fn versions_are_added_served_or_kept_for_what_is_stored() {
    let mut definitions = all();
    let served = ["v1alpha7".to_owned(), "v1".to_owned()];
    let stored = |it: &CustomResourceDefinition| match it.spec.names.kind.as_str() {
        "OpenStackMachine" => vec!["v1alpha5".to_owned(), "v1beta1".to_owned()],
        _ => Vec::new(),
    };
    add_older(&mut definitions, &served, stored);
    for definition in definitions {
        let versions: Vec<_> = definition
            .spec
            .versions
            .iter()
            .map(|it| (it.name.as_str(), it.served, it.storage))
            .collect();
        match definition.spec.names.kind.as_str() {
            "OpenStackCluster" => assert_eq!(
                versions,
                [
                    ("v1alpha7", true, false),
                    ("v1beta1", true, false),
                    ("v1beta2", true, true)
                ]
            ),
            "OpenStackMachine" => assert_eq!(
                versions,
                [
                    ("v1alpha5", false, false),
                    ("v1alpha7", true, false),
                    ("v1beta1", true, false),
                    ("v1beta2", true, true)
                ]
            ),
            _ => assert!(
                versions.len() <= 3 && !versions.contains(&("v1alpha5", false, false)),
                "{versions:?}"
            ),
        }
    }
}
