//! Clusters with a topology: defaults and validation by the [`ClusterClass`].

use std::collections::BTreeSet;

use api::admission::{FieldError, RelatedObject, Review};
use api::core::v1beta2::{API_VERSION, ClusterClass, ClusterSpec, Topology};
use serde::Deserialize;
use serde_json::{Value, json};
use topology::cluster::{defaulted, incompatible, problems};
use topology::variables::{Definition, definitions};

/// Class of a Cluster; `None` for other objects, and for Clusters without a topology.
#[must_use]
pub fn class_of(object: &Value) -> Option<RelatedObject> {
    if object["apiVersion"] != API_VERSION || object["kind"] != "Cluster" {
        return None;
    }
    let class = object.pointer("/spec/topology/classRef")?;
    let of_cluster = &object["metadata"]["namespace"];
    let namespace = class.get("namespace").unwrap_or(of_cluster).as_str()?;
    Some(RelatedObject {
        api_version: API_VERSION,
        kind: "ClusterClass",
        plural: "clusterclasses",
        namespace: namespace.to_owned(),
        name: class.get("name")?.as_str()?.to_owned(),
    })
}

/// Fills in the defaults of the variables of the class. An unusable class leaves the object unchanged.
pub fn default_by(object: &mut Value, class: &Value) {
    let Some((_, definitions)) = usable(class) else {
        return;
    };
    if let Ok(topology) = Topology::deserialize(&object["spec"]["topology"]) {
        object["spec"]["topology"] = json!(defaulted(&topology, &definitions));
    }
}

/// Validates a Cluster against the class. `class` is `None` if no such class exists.
///
/// A missing or unreconciled class is a warning: users may create a class after its Clusters, and the controller
/// validates the Clusters then.
///
/// # Errors
/// Errors absent from the stored object, each with the path of a field.
pub fn validate_by(
    review: Review<'_>,
    class: Option<&Value>,
) -> Result<Vec<String>, Vec<FieldError>> {
    if !review.judges_spec() {
        return Ok(Vec::new());
    }
    let Some((class, definitions)) = class.and_then(usable) else {
        let state = match class {
            Some(_) => "is not reconciled yet",
            None => "does not exist",
        };
        let name = &review.object["spec"]["topology"]["classRef"]["name"];
        return Ok(vec![format!(
            "Cluster refers to ClusterClass {}, which {state}: its topology is not validated, and nothing is created before the class can be used",
            name.as_str().unwrap_or_default(),
        )]);
    };
    let known = review.old.and_then(spec_of);
    let reached = known.as_ref().and_then(|spec| spec.topology.as_ref());
    let reached = reached.map(|topology| topology.version.as_str());
    let errors = |spec: &ClusterSpec, reached: Option<&str>| {
        // Defaults are filled in here too, as the controller does: a class can become usable between the defaults and
        // the validation of one review.
        let topology = spec.topology.as_ref();
        let topology = topology.map(|topology| defaulted(topology, &definitions));
        let mut found = topology.map_or_else(Vec::new, |topology| {
            problems(&class, &definitions, &topology, reached)
        });
        found.extend(incompatible(&class, spec));
        found
    };
    let Some(spec) = spec_of(review.object) else {
        return Ok(Vec::new());
    };
    let old = known.iter().flat_map(|spec| errors(spec, None));
    let old: BTreeSet<_> = old.map(|error| (error.path, error.message)).collect();
    let mut found = errors(&spec, reached);
    found.retain(|error| !old.contains(&(error.path.clone(), error.message.clone())));
    match found.is_empty() {
        true => Ok(Vec::new()),
        false => Err(found),
    }
}

fn spec_of(object: &Value) -> Option<ClusterSpec> {
    ClusterSpec::deserialize(&object["spec"]).ok()
}

/// Class with compiled variables, if the controller has accepted the current generation.
fn usable(class: &Value) -> Option<(ClusterClass, Vec<Definition>)> {
    let class = ClusterClass::deserialize(class).ok()?;
    let observed = class.status.as_ref()?.observed_generation;
    if observed != class.metadata.generation {
        return None;
    }
    let definitions = definitions(class.variables()).ok()?;
    Some((class, definitions))
}

#[cfg(test)]
mod tests;
