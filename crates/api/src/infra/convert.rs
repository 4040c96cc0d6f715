//! v1beta1 <-> v1beta2 of the OpenStack kinds, without loss.
//!
//! Fields without equivalent in the other version are preserved by [`crate::convert::stash`].

mod cluster;
mod machine;
mod status;

use serde_json::Value;

use super::GROUP;
use crate::convert::fields::{Done, Fields, within};
use crate::convert::{ConversionError, Mapping};

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
        },
        "OpenStackClusterTemplate" => Mapping {
            up: |fields| within(fields, &["template", "spec"], cluster::up),
            down: cluster_template_down,
            status: None,
        },
        "OpenStackMachine" => Mapping {
            up: machine::up,
            down: machine::down,
            status: Some((status::machine_up, status::machine_down)),
        },
        "OpenStackMachineTemplate" => Mapping {
            up: |fields| within(fields, &["template", "spec"], machine::up),
            down: |fields| within(fields, &["template", "spec"], machine::down),
            status: Some((status::template_up, status::template_down)),
        },
        _ => return None,
    };
    mapping.convert(object, GROUP, kind, from, to)
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
