//! Defaults and rules of pods and workloads.

use apimachinery::kinds::Resource;
use apimachinery::schema::FieldError;
use serde_json::{Map, Value, json};

use super::{default, rollout};
use crate::rest::meta;

pub(super) fn workload(kind: &str, new: &mut Value, live: Option<&Value>) {
    match kind {
        "StatefulSet" => claim_templates(new),
        "DaemonSet" => template_generation(new, live),
        _ => {}
    }
}

pub(super) fn workload_rules(
    resource: &Resource,
    new: &Value,
    live: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    let selector = &new["spec"]["selector"];
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
    }
    let labels = &new["spec"]["template"]["metadata"]["labels"];
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    if selector.is_null()
        || wanted
            .into_iter()
            .any(|(key, value)| labels.get(key) != Some(value))
    {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(
            "spec.template.metadata.labels",
            labels,
            detail,
        ));
    }
    pod_rules(
        "spec.template.spec",
        &new["spec"]["template"]["spec"],
        errors,
    );
    if let Some(replicas) = new["spec"]["replicas"].as_i64()
        && replicas < 0
    {
        let value = &new["spec"]["replicas"];
        errors.push(FieldError::invalid(
            "spec.replicas",
            value,
            "must be greater than or equal to 0",
        ));
    }
    rollout::rules(&resource.kind, &new["spec"], errors);
    if let Some(live) = live
        && live["spec"]["selector"] != *selector
        && resource.kind != "StatefulSet"
    {
        let detail = "field is immutable";
        errors.push(FieldError::invalid("spec.selector", selector, detail));
    }
}

pub(super) fn pod(new: &mut Value, created: bool) {
    if created {
        tolerate(new);
        let class = quality_class(&new["spec"]);
        default(new, "status", "qosClass", json!(class));
    }
    default(new, "spec", "serviceAccountName", json!("default"));
    let account = new["spec"]["serviceAccountName"].clone();
    default(new, "spec", "serviceAccount", account);
    default(new, "spec", "priority", json!(0));
    default(
        new,
        "spec",
        "preemptionPolicy",
        json!("PreemptLowerPriority"),
    );
}

/// Rules of every pod.
pub(super) fn pod_rules(path: &str, spec: &Value, errors: &mut Vec<FieldError>) {
    let containers = spec["containers"].as_array().map_or(&[][..], Vec::as_slice);
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    let mut names = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let path = format!("{path}.containers[{index}]");
        let name = &container["name"];
        if name.as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        } else if names.contains(&name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), name));
        }
        names.push(name);
        if container["image"].as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(format!("{path}.image"), ""));
        }
    }
}

pub(super) fn job(new: &mut Value, created: bool) {
    if created && new["spec"]["manualSelector"] != true {
        default_selector(new);
    }
    // A job without labels takes the labels of its pods.
    let labels = new["spec"]["template"]["metadata"]["labels"].clone();
    let unlabelled = |labels: &Value| labels.as_object().is_none_or(Map::is_empty);
    if unlabelled(&new["metadata"]["labels"]) && !unlabelled(&labels) {
        meta::of(new).insert("labels".to_owned(), labels);
    }
}

/// Sets the default selector: a job finds its pods by its uid.
fn default_selector(job: &mut Value) {
    let uid = job["metadata"]["uid"].clone();
    let name = job["metadata"]["name"].clone();
    let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    default(job, "spec", "selector", selector);
    let template = &mut job["spec"]["template"];
    if !template.is_object() {
        return;
    }
    let labels = meta::of(template)
        .entry("labels")
        .or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        for (label, value) in [("controller-uid", &uid), ("job-name", &name)] {
            labels.insert(label.to_owned(), value.clone());
            labels.insert(format!("batch.kubernetes.io/{label}"), value.clone());
        }
    }
}

/// Sets version and kind in the claims of a StatefulSet, as in whole objects.
fn claim_templates(set: &mut Value) {
    let templates = set["spec"]
        .get_mut("volumeClaimTemplates")
        .and_then(Value::as_array_mut);
    for claim in templates
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        claim.entry("apiVersion").or_insert(json!("v1"));
        claim
            .entry("kind")
            .or_insert(json!("PersistentVolumeClaim"));
    }
}

/// Counts the changes of a DaemonSet's template, as expected by clients of old versions.
fn template_generation(set: &mut Value, live: Option<&Value>) {
    const NAME: &str = "deprecated.daemonset.template.generation";
    let counted = |set: &Value| -> i64 {
        let text = set["metadata"]["annotations"][NAME].as_str();
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    let before = live.map_or(0, counted);
    let same = live.is_some_and(|live| live["spec"]["template"] == set["spec"]["template"]);
    let generation = if same { before } else { before + 1 };
    let annotations = meta::of(set)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(NAME.to_owned(), Value::from(generation.to_string()));
    }
}

/// Adds the default tolerations of every pod (`DefaultTolerationSeconds`).
fn tolerate(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let all = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(all) = all.as_array_mut() else {
        return;
    };
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let tolerated = all.iter().any(|given| {
            (given["key"] == key || given["key"].is_null())
                && (given["effect"] == "NoExecute" || given["effect"].is_null())
        });
        if !tolerated {
            all.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}

/// Quality of service class: order of eviction on a node under pressure (`GetPodQOS`).
fn quality_class(spec: &Value) -> &'static str {
    const RESOURCES: [&str; 2] = ["cpu", "memory"];
    let containers: Vec<&Value> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| spec[list].as_array().into_iter().flatten())
        .collect();
    let amount = |container: &'_ Value, part: &str, resource: &str| {
        container["resources"][part][resource].clone()
    };
    let asks = |container: &Value| {
        RESOURCES.iter().any(|resource| {
            !amount(container, "requests", resource).is_null()
                || !amount(container, "limits", resource).is_null()
        })
    };
    if !containers.iter().any(|container| asks(container)) {
        return "BestEffort";
    }
    let guaranteed = containers.iter().all(|container| {
        RESOURCES.iter().all(|resource| {
            let limit = amount(container, "limits", resource);
            let request = amount(container, "requests", resource);
            !limit.is_null() && (request.is_null() || request == limit)
        })
    });
    if guaranteed {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
