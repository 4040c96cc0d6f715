use serde_json::Value;

use crate::crds;

fn ours() -> Vec<Value> {
    crds::all()
        .iter()
        .map(|crd| serde_json::to_value(crd).unwrap())
        .filter(|crd| {
            crd["spec"]["names"]["kind"]
                .as_str()
                .unwrap()
                .starts_with("Kubeadm")
        })
        .collect()
}

#[test]
fn both_versions_are_served_and_the_newer_is_stored() {
    let crds = ours();
    assert_eq!(crds.len(), 4);
    for crd in crds {
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let told: Vec<_> = versions
            .iter()
            .map(|v| (v["name"].as_str().unwrap(), v["storage"].as_bool().unwrap()))
            .collect();
        assert_eq!(told, [("v1beta1", false), ("v1beta2", true)]);
        let labels = &crd["metadata"]["labels"];
        assert_eq!(labels["cluster.x-k8s.io/v1beta1"], "v1beta1");
        assert_eq!(labels["cluster.x-k8s.io/v1beta2"], "v1beta2");
    }
}

/// Every property of the upstream schemas is one of ours, in both versions, and none is missing; types
/// and requirements agree. Skipped where upstream's CRDs are not at hand.
#[test]
fn schemas_have_the_shape_of_upstream() {
    let root = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/upstream/crds/capi-v1.15"
    );
    if !std::path::Path::new(root).is_dir() {
        skipped::because(format_args!("no released CRDs at {root}"));
        return;
    }
    for crd in ours() {
        let group = crd["spec"]["group"].as_str().unwrap();
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap();
        let Ok(text) = std::fs::read_to_string(format!("{root}/{group}_{plural}.yaml")) else {
            continue;
        };
        let upstream: Value = serde_saphyr::from_str(&text).unwrap();
        for version in ["v1beta1", "v1beta2"] {
            let mut problems = Vec::new();
            let (theirs, ours) = (schema(&upstream, version), schema(&crd, version));
            compare(
                &theirs["properties"]["spec"],
                &ours["properties"]["spec"],
                "spec",
                &mut problems,
            );
            compare(
                &theirs["properties"]["status"],
                &ours["properties"]["status"],
                "status",
                &mut problems,
            );
            // `deprecated` is shared by all kinds and knows more counters.
            problems.retain(|problem| !problem.contains("status.deprecated"));
            // What is no duration cannot be converted, upstream either; here the schema rejects it.
            problems.retain(|problem| !problem.contains("(ns|us|"));
            assert_eq!(problems, Vec::<String>::new(), "{plural} {version}");
        }
    }
}

fn schema(crd: &Value, version: &str) -> Value {
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let version = versions
        .iter()
        .find(|known| known["name"] == version)
        .unwrap();
    version["schema"]["openAPIV3Schema"].clone()
}

fn compare(theirs: &Value, ours: &Value, path: &str, problems: &mut Vec<String>) {
    if path.ends_with("valueFrom") {
        // Comes from k8s-openapi.
        return;
    }
    if theirs["type"] != ours["type"] {
        problems.push(format!(
            "{path}: type {} instead of {}",
            ours["type"], theirs["type"]
        ));
        return;
    }
    let rules: &[&str] = if path.contains("status.conditions") {
        &["required"]
    } else {
        &["enum", "required"]
    };
    for rule in rules {
        let sorted = |schema: &Value| {
            let mut words: Vec<String> = schema[rule]
                .as_array()
                .map(|list| list.iter().map(ToString::to_string).collect())
                .unwrap_or_default();
            words.sort();
            words
        };
        let (want, have) = (sorted(theirs), sorted(ours));
        if want != have {
            problems.push(format!("{path}: {rule} {have:?} instead of {want:?}"));
        }
    }
    for rule in [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "pattern",
    ] {
        let number = |schema: &Value| {
            schema[rule]
                .as_f64()
                .map_or(schema[rule].to_string(), |n| n.to_string())
        };
        let (want, have) = (number(theirs), number(ours));
        let zero = want == "0" && have == "null" || want == "null" && have == "0";
        // i32 and i64 bring their own bounds of format.
        if want != have && !zero && !path.contains("status") {
            problems.push(format!("{path}: {rule} {have} instead of {want}"));
        }
    }
    let names = |schema: &Value| -> Vec<String> {
        schema["properties"]
            .as_object()
            .map(|p| p.keys().cloned().collect())
            .unwrap_or_default()
    };
    for name in names(ours) {
        if theirs["properties"].get(&name).is_none() {
            problems.push(format!("{path}.{name}: not upstream"));
        }
    }
    for name in names(theirs) {
        match ours["properties"].get(&name) {
            None => problems.push(format!("{path}.{name}: missing")),
            Some(inner) => {
                compare(
                    &theirs["properties"][&name],
                    inner,
                    &format!("{path}.{name}"),
                    problems,
                );
            }
        }
    }
    if theirs.get("items").is_some() {
        compare(
            &theirs["items"],
            &ours["items"],
            &format!("{path}[]"),
            problems,
        );
    }
}
