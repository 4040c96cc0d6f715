//! All our CustomResourceDefinitions.
//!
//! They are generated from the types ([`generate`](crate::generate)) by `cargo xtask codegen`, into a file of this crate:
//! programs do without the code that describes each type, which the linker leaves out.

use flate2::{Decompress, FlushDecompress, Status};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::decode::decoded;

/// A list of the definitions as JSON, compressed by zlib.
const FILE: &[u8] = include_bytes!("crds/all.json.z");

/// The same of the kinds that have versions before v1beta1, with these alone.
const OLDER_FILE: &[u8] = include_bytes!("crds/older.json.z");

// The definitions are not kept: in the types of Kubernetes they take 30 MB. A file that is none is stale: `cargo xtask
// codegen --check`.
fn older() -> Vec<CustomResourceDefinition> {
    read(OLDER_FILE).unwrap_or_default()
}

fn read(file: &[u8]) -> Option<Vec<CustomResourceDefinition>> {
    let value: Value = serde_json::from_slice(&inflated(file)?).ok()?;
    decoded(&value).ok()
}

fn inflated(file: &[u8]) -> Option<Vec<u8>> {
    let mut inflating = Decompress::new(true);
    let mut text = Vec::new();
    loop {
        text.reserve(16 * file.len());
        let (read, written) = (usize::try_from(inflating.total_in()).ok()?, text.len());
        let rest = file.get(read..)?;
        let status = inflating.decompress_vec(rest, &mut text, FlushDecompress::Finish);
        if status.ok()? == Status::StreamEnd {
            return Some(text);
        }
        // The file ends too early.
        if text.len() == written {
            return None;
        }
    }
}

/// Every CustomResourceDefinition of the suite, in the order for `kubectl apply`.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    read(FILE).unwrap_or_default()
}

/// Those of API groups, in the same order.
#[must_use]
pub fn of(groups: &[&str]) -> Vec<CustomResourceDefinition> {
    let mut all = all();
    all.retain(|it| groups.contains(&it.spec.group.as_str()));
    all
}

/// All definitions, and those with the versions before v1beta1 alone.
pub(crate) fn known() -> Vec<CustomResourceDefinition> {
    let mut all = all();
    all.extend(older());
    all
}

/// The names of the versions before v1beta1, oldest first.
pub const OLDER_VERSIONS: [&str; 4] = ["v1alpha4", "v1alpha5", "v1alpha6", "v1alpha7"];

/// Adds versions before v1beta1 to the definitions of their kinds: those of `served`, and, without being served, those of
/// which `stored` says that objects of the definition may be stored in them. Other names are ignored.
pub fn add_older(
    definitions: &mut [CustomResourceDefinition],
    served: &[String],
    stored: impl Fn(&CustomResourceDefinition) -> Vec<String>,
) {
    let all = older();
    for definition in definitions {
        let older = all
            .iter()
            .find(|older| older.metadata.name == definition.metadata.name);
        let Some(older) = older else { continue };
        let stored = stored(definition);
        let wanted = older.spec.versions.iter().filter_map(|version| {
            let served = served.contains(&version.name);
            (served || stored.contains(&version.name)).then(|| {
                let mut version = version.clone();
                version.served = served;
                version
            })
        });
        let wanted: Vec<_> = wanted.collect();
        definition.spec.versions.splice(0..0, wanted);
    }
}

#[cfg(test)]
mod tests;
