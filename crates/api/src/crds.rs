//! All our CustomResourceDefinitions.
//!
//! They are generated from the types ([`generate`](crate::generate)) by `cargo xtask codegen`, into a file of this crate:
//! programs do without the code that describes each type, which the linker leaves out.

use std::sync::LazyLock;

use flate2::{Decompress, FlushDecompress, Status};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::decode::decoded;

/// A list of the definitions as JSON, compressed by zlib.
const FILE: &[u8] = include_bytes!("crds/all.json.z");

// A file that is none is stale: `cargo xtask codegen --check`.
static ALL: LazyLock<Vec<CustomResourceDefinition>> =
    LazyLock::new(|| read(FILE).unwrap_or_default());

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
    ALL.clone()
}

/// Those of API groups, in the same order.
#[must_use]
pub fn of(groups: &[&str]) -> Vec<CustomResourceDefinition> {
    let is_of = |it: &&CustomResourceDefinition| groups.contains(&it.spec.group.as_str());
    ALL.iter().filter(is_of).cloned().collect()
}
