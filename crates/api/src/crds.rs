//! All CustomResourceDefinitions of the suite, as [`CustomResourceDefinition`]s.
//!
//! [`generate`](crate::generate) builds the definitions from the types, and `cargo xtask codegen` writes the result to
//! a file in this crate. So programs do without the code for type schemas; the linker leaves it out.

use flate2::{Decompress, FlushDecompress, Status};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::decode::decoded;

/// List of the definitions as JSON, compressed by zlib.
const FILE: &[u8] = include_bytes!("crds/all.json.z");

/// List of the kinds with versions before v1beta1, with these versions alone.
const OLDER_FILE: &[u8] = include_bytes!("crds/older.json.z");

// Not cached: in the types of Kubernetes the definitions take 30 MB. An unreadable file is stale:
// `cargo xtask codegen --check`.
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
        // The file is truncated.
        if text.len() == written {
            return None;
        }
    }
}

/// Every [`CustomResourceDefinition`] of the suite, in the order for `kubectl apply`.
#[must_use]
pub fn all() -> Vec<CustomResourceDefinition> {
    read(FILE).unwrap_or_default()
}

/// [`CustomResourceDefinition`]s of API groups, in the same order.
#[must_use]
pub fn of(groups: &[&str]) -> Vec<CustomResourceDefinition> {
    let mut all = all();
    all.retain(|it| groups.contains(&it.spec.group.as_str()));
    all
}

/// All definitions, and the ones with versions before v1beta1 alone.
pub(crate) fn known() -> Vec<CustomResourceDefinition> {
    let mut all = all();
    all.extend(older());
    all
}

/// Names of the versions before v1beta1, oldest first.
pub const OLDER_VERSIONS: [&str; 4] = ["v1alpha4", "v1alpha5", "v1alpha6", "v1alpha7"];

/// Adds versions before v1beta1 to the definitions of their kinds: the ones in `served`, and, unserved, the ones that
/// `stored` reports as possible storage versions of a definition. Other names are ignored.
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
