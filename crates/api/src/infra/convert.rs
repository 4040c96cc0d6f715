//! v1beta1 to v1beta2 and back, without loss.
//!
//! The mapping is typed ([`mapping`]). What has no image in the other version is kept in an
//! annotation ([`stash`]); that covers the spec only, never metadata or status.

mod mapping;
mod stash;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{GROUP, v1beta1, v1beta2};
use crate::convert::ConversionError;

/// Converts an object of this group; `None` when this pair of versions is not one of ours.
pub(crate) fn convert(
    object: &Value,
    kind: &str,
    from: &str,
    to: &str,
) -> Option<Result<Value, ConversionError>> {
    let from = from.strip_prefix(GROUP)?.strip_prefix('/')?;
    let to = to.strip_prefix(GROUP)?.strip_prefix('/')?;
    let up = match (from, to) {
        ("v1beta1", "v1beta2") => true,
        ("v1beta2", "v1beta1") => false,
        _ => return None,
    };
    use {v1beta1 as one, v1beta2 as two};
    Some(match kind {
        "OpenStackCluster" => pair::<
            one::OpenStackClusterSpec,
            two::OpenStackClusterSpec,
            one::OpenStackClusterStatus,
            two::OpenStackClusterStatus,
        >(object, up),
        "OpenStackClusterTemplate" => pair::<
            one::OpenStackClusterTemplateSpec,
            two::OpenStackClusterTemplateSpec,
            NoStatus,
            NoStatus,
        >(object, up),
        "OpenStackMachine" => pair::<
            one::OpenStackMachineSpec,
            two::OpenStackMachineSpec,
            one::OpenStackMachineStatus,
            two::OpenStackMachineStatus,
        >(object, up),
        "OpenStackMachineTemplate" => pair::<
            one::OpenStackMachineTemplateSpec,
            two::OpenStackMachineTemplateSpec,
            one::OpenStackMachineTemplateStatus,
            two::OpenStackMachineTemplateStatus,
        >(object, up),
        _ => return None,
    })
}

/// The status of a kind that has none.
#[derive(Default, Serialize, serde::Deserialize)]
struct NoStatus {}

/// A type that is written and read as JSON.
trait Part: Serialize + DeserializeOwned {}
impl<T: Serialize + DeserializeOwned> Part for T {}

fn pair<S1, S2, T1, T2>(object: &Value, up: bool) -> Result<Value, ConversionError>
where
    S1: Part + From<S2>,
    S2: Part + From<S1>,
    T1: Part + From<T2>,
    T2: Part + From<T1>,
{
    if up {
        one_way::<S1, S2, T1, T2>(object, "v1beta1", "v1beta2")
    } else {
        one_way::<S2, S1, T2, T1>(object, "v1beta2", "v1beta1")
    }
}

/// Converts from spec `A` and status `S` to spec `B` and status `T`.
fn one_way<A, B, S, T>(object: &Value, from: &str, to: &str) -> Result<Value, ConversionError>
where
    A: Part + From<B>,
    B: Part + From<A>,
    S: Part,
    T: Part + From<S>,
{
    let kind = object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let malformed = |part: &str, source: serde_json::Error| ConversionError::Malformed {
        kind: kind.to_owned(),
        version: format!("{GROUP}/{from}"),
        problem: format!("{part}: {source}"),
    };
    let mut members = object.as_object().cloned().unwrap_or_default();
    members.insert(
        "apiVersion".to_owned(),
        Value::String(format!("{GROUP}/{to}")),
    );

    let mut annotations = annotations(object);
    let kept = annotations.remove(stash::ANNOTATION);
    if let Some(spec) = members.get("spec") {
        let typed: A = serde_json::from_value(spec.clone()).map_err(|e| malformed("spec", e))?;
        let write = |e| malformed("spec", e);
        let before = serde_json::to_value(&typed).map_err(write)?;
        let converted = B::from(typed);
        let mut after = serde_json::to_value(&converted).map_err(write)?;
        let back = serde_json::to_value(A::from(converted)).map_err(write)?;
        if let Some(kept) = kept.as_ref().and_then(Value::as_str) {
            stash::restore(kept, to, &mut after);
        }
        if let Some(stash) = stash::lost(&before, &back, from) {
            annotations.insert(stash::ANNOTATION.to_owned(), Value::String(stash));
        }
        members.insert("spec".to_owned(), after);
    }
    if let Some(status) = members.get("status") {
        let typed: S =
            serde_json::from_value(status.clone()).map_err(|e| malformed("status", e))?;
        let status = serde_json::to_value(T::from(typed)).map_err(|e| malformed("status", e))?;
        members.insert("status".to_owned(), status);
    }
    put_annotations(&mut members, annotations);
    Ok(Value::Object(members))
}

fn annotations(object: &Value) -> Map<String, Value> {
    object
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

fn put_annotations(object: &mut Map<String, Value>, annotations: Map<String, Value>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        if !annotations.is_empty() {
            object.insert(
                "metadata".to_owned(),
                serde_json::json!({"annotations": annotations}),
            );
        }
        return;
    };
    if annotations.is_empty() {
        metadata.remove("annotations");
    } else {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
}

#[cfg(test)]
pub(super) mod tests;
