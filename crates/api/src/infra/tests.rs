use std::fs;
use std::path::PathBuf;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use super::crd::crds;

/// A released CRD of the Go provider; `None` where the reference data is not at hand.
fn upstream(kind: &str) -> Option<CustomResourceDefinition> {
    let plural = if kind.ends_with("Identity") {
        format!("{}ies", kind.trim_end_matches('y').to_lowercase())
    } else {
        format!("{}s", kind.to_lowercase())
    };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/upstream/crds/capo-v0.15.0-beta.0")
        .join(format!("infrastructure.cluster.x-k8s.io_{plural}.yaml"));
    let Ok(text) = fs::read_to_string(&path) else {
        skipped::because(format_args!("no {}", path.display()));
        return None;
    };
    Some(serde_saphyr::from_str(&text).unwrap())
}

/// Where our schemas are meant to differ.
const MEANT: &[&str] = &[
    // Upstream requires members of the status that are not always there.
    "status.apiServerManagedLoadBalancer required",
    // Names in Neutron may be empty.
    "status.apiServerManagedLoadBalancer.loadBalancerNetwork.subnets[]",
    "status.network.subnets[]",
    "status.router required",
    "status.router.name minLength",
    // Came after the release that we compare with.
    "OpenStackClusterTemplate v1beta2 + spec.template.metadata",
    // The contract asks for it.
    "+ status.failureDomain type",
    // `x-kubernetes-int-or-string` says the same without an `anyOf`.
    "status.capacity additionalProperties",
    // Merge behaviour inside a map that is atomic anyway.
    "spec.namespaceSelector.matchExpressions",
];

/// What an API server makes of a schema: everything but documentation, with every path spelled out.
fn flat(schema: &Value, path: &str, into: &mut Vec<String>) {
    let Some(members) = schema.as_object() else {
        return;
    };
    for (key, value) in members {
        match key.as_str() {
            "description" => {}
            "properties" => {
                for (name, inner) in value.as_object().unwrap() {
                    flat(inner, &format!("{path}.{name}"), into);
                }
            }
            "items" => flat(value, &format!("{path}[]"), into),
            "required" => {
                let mut names: Vec<_> = value
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(Value::to_string)
                    .collect();
                names.sort();
                into.push(format!("{path} required {}", names.join(",")));
            }
            "minimum" | "maximum" => into.push(format!("{path} {key} {}", value.as_f64().unwrap())),
            _ => into.push(format!("{path} {key} {value}")),
        }
    }
}

fn differences(ours: &CustomResourceDefinition, theirs: &CustomResourceDefinition) -> Vec<String> {
    let mut found = Vec::new();
    for version in &ours.spec.versions {
        let Some(other) = theirs.spec.versions.iter().find(|v| v.name == version.name) else {
            found.push(format!("{} is not upstream", version.name));
            continue;
        };
        let lines = |v: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion| {
            let value = serde_json::to_value(v.schema.as_ref().unwrap()).unwrap();
            let mut lines = Vec::new();
            let schema = &value["openAPIV3Schema"];
            flat(&schema["properties"]["spec"], "spec", &mut lines);
            flat(&schema["properties"]["status"], "status", &mut lines);
            for column in v.additional_printer_columns.iter().flatten() {
                lines.push(format!("column {} {} {:?}", column.name, column.json_path, column.priority));
            }
            lines.sort();
            lines
        };
        let (mut mine, mut upstream) = (lines(version), lines(other));
        if version.name == "v1beta1" {
            // It shares the building blocks of v1beta2, with their stricter limits: only the fields count.
            for lines in [&mut mine, &mut upstream] {
                lines.retain(|line| line.contains(" type ") || line.starts_with("column"));
            }
        }
        found.extend(
            mine.iter()
                .filter(|l| !upstream.contains(l))
                .map(|l| format!("{} + {l}", version.name)),
        );
        found.extend(
            upstream
                .iter()
                .filter(|l| !mine.contains(l))
                .map(|l| format!("{} - {l}", version.name)),
        );
    }
    found
}

#[test]
fn schemas_differ_from_upstream_only_where_we_mean_it() {
    let mut all = Vec::new();
    for crd in crds() {
        let kind = crd.spec.names.kind.clone();
        let Some(theirs) = upstream(&kind) else {
            return;
        };
        assert_eq!(crd.spec.names.short_names, theirs.spec.names.short_names);
        assert_eq!(crd.spec.names.categories, theirs.spec.names.categories);
        assert_eq!(crd.spec.names.plural, theirs.spec.names.plural);
        assert_eq!(crd.spec.scope, theirs.spec.scope);
        all.extend(
            differences(&crd, &theirs)
                .into_iter()
                .map(|line| format!("{kind} {line}")),
        );
    }
    all.retain(|line| !MEANT.iter().any(|meant| line.contains(meant)));
    assert_eq!(all, Vec::<String>::new());
}
