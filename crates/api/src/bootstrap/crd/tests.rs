use serde_json::Value;

use crate::crds;

/// Kinds of other groups whose schemas are compared as well.
const COMPARED: [&str; 11] = [
    "Cluster",
    "Machine",
    "MachineSet",
    "MachineDeployment",
    "ClusterClass",
    "MachineHealthCheck",
    "MachineDrainRule",
    "ClusterResourceSet",
    "ClusterResourceSetBinding",
    "IPAddressClaim",
    "IPAddress",
];

fn ours() -> Vec<Value> {
    crds::all()
        .iter()
        .map(|crd| serde_json::to_value(crd).unwrap())
        .filter(|crd| {
            let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
            kind.starts_with("Kubeadm") || COMPARED.contains(&kind)
        })
        .collect()
}

#[test]
fn both_versions_are_served_and_the_newer_is_stored() {
    let crds = ours();
    assert_eq!(crds.len(), 4 + COMPARED.len());
    for crd in crds {
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let found: Vec<_> = versions
            .iter()
            .map(|v| (v["name"].as_str().unwrap(), v["storage"].as_bool().unwrap()))
            .collect();
        assert_eq!(found, [("v1beta1", false), ("v1beta2", true)]);
        let labels = &crd["metadata"]["labels"];
        assert_eq!(labels["cluster.x-k8s.io/v1beta1"], "v1beta1");
        assert_eq!(labels["cluster.x-k8s.io/v1beta2"], "v1beta2");
    }
}

/// Our schemas have exactly the properties of the upstream schemas in both versions, with the same types and
/// requirements. Skipped if upstream's CRDs are not available.
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
            // `deprecated` is shared by all kinds and has more counters.
            problems.retain(|problem| !problem.contains("status.deprecated"));
            // An invalid duration cannot be converted, upstream neither; here the schema rejects it.
            problems.retain(|problem| !problem.contains("(ns|us|"));
            assert_eq!(problems, Vec::<String>::new(), "{plural} {version}");
        }
    }
}

/// Our printer columns are those of upstream in both versions, in the same order.
#[test]
fn columns_are_those_of_upstream() {
    let root = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/upstream/crds/capi-v1.15"
    );
    if !std::path::Path::new(root).is_dir() {
        skipped::because(format_args!("no released CRDs at {root}"));
        return;
    }
    let mut compared = 0;
    for crd in ours() {
        let group = crd["spec"]["group"].as_str().unwrap();
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap();
        let Ok(text) = std::fs::read_to_string(format!("{root}/{group}_{plural}.yaml")) else {
            continue;
        };
        let upstream: Value = serde_saphyr::from_str(&text).unwrap();
        for version in ["v1beta1", "v1beta2"] {
            assert_eq!(
                columns(&crd, version),
                columns(&upstream, version),
                "{plural} {version}"
            );
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

/// Name, type, path and priority of each column.
fn columns(crd: &Value, version: &str) -> Vec<[String; 4]> {
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let version = versions
        .iter()
        .find(|known| known["name"] == version)
        .unwrap();
    let columns = version["additionalPrinterColumns"].as_array();
    let columns = columns.map(Vec::as_slice).unwrap_or_default();
    columns
        .iter()
        .map(|column| {
            ["name", "type", "jsonPath", "priority"].map(|field| match &column[field] {
                Value::Null => "0".to_owned(),
                value => value.to_string(),
            })
        })
        .collect()
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
        // Generated by k8s-openapi.
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
        // i32 and i64 have bounds by their formats.
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
