//! Conversion between v1alpha4 to v1alpha7, v1beta1 and v1beta2 of the OpenStack kinds, without loss.
//!
//! The steps between the older versions are tables of moves in [`older`]. Fields without equivalent in the other
//! version are preserved by the [stash](crate::conversion::stash).

mod cluster;
mod machine;
pub(crate) mod older;
mod status;

use serde_json::{Value, json};

use super::GROUP;
use crate::conversion::fields::{Done, Fields, nested, within};
use crate::conversion::{ConversionError, Mapping};

/// Name of v1beta1 in the book of the Go provider.
const V1ALPHA8: &str = "infrastructure.cluster.x-k8s.io/v1alpha8";
const V1BETA1: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// Converts an object of this group; `None` for other kinds and versions.
pub(crate) fn convert(
    object: &Value,
    kind: &str,
    from: &str,
    to: &str,
) -> Option<Result<Value, ConversionError>> {
    let mapping = match kind {
        "OpenStackCluster" => Mapping {
            up: cluster::up,
            down: cluster::down,
            status: Some((status::cluster_up, status::cluster_down)),
            older: &older::CLUSTER,
        },
        "OpenStackClusterTemplate" => Mapping {
            up: |fields| within(fields, &["template", "spec"], cluster::up),
            down: cluster_template_down,
            status: None,
            older: &older::CLUSTER_TEMPLATE,
        },
        "OpenStackMachine" => Mapping {
            up: machine::up,
            down: machine::down,
            status: Some((status::machine_up, status::machine_down)),
            older: &older::MACHINE,
        },
        "OpenStackMachineTemplate" => Mapping {
            up: |fields| within(fields, &["template", "spec"], machine::up),
            down: |fields| within(fields, &["template", "spec"], machine::down),
            status: Some((status::template_up, status::template_down)),
            older: &older::MACHINE_TEMPLATE,
        },
        _ => return None,
    };
    let from = if from == V1ALPHA8 { V1BETA1 } else { from };
    let mut converted = mapping.convert(object, GROUP, kind, from, to)?;
    if let Ok(converted) = &mut converted
        && kind == "OpenStackMachine"
    {
        instance_id(object, converted);
    }
    Some(converted)
}

/// Moves the id of the server: a field of the spec before v1beta1, and of the status since.
fn instance_id(object: &Value, converted: &mut Value) {
    let given = |pointer: &str| {
        let id = object.pointer(pointer).filter(|id| **id != json!(""));
        id.filter(|id| id.is_string()).cloned()
    };
    let is_older = older::is_older(&object["apiVersion"]);
    let becomes_older = older::is_older(&converted["apiVersion"]);
    let Some(fields) = converted.as_object_mut() else {
        return;
    };
    if is_older && !becomes_older {
        if let Some(id) = given("/spec/instanceID") {
            nested(fields, &["status"]).insert("instanceID".to_owned(), id);
        }
    } else if becomes_older
        && !is_older
        && fields.get("spec").is_some_and(Value::is_object)
        && let Some(id) = given("/status/instanceID")
    {
        nested(fields, &["spec"]).insert("instanceID".to_owned(), id);
    }
}

fn cluster_template_down(fields: &mut Fields) -> Done {
    // v1beta1 has no metadata in this template.
    within(fields, &["template"], |template| {
        template.remove("metadata");
        Ok(())
    })?;
    within(fields, &["template", "spec"], cluster::down)
}

#[cfg(test)]
pub(super) mod tests;
