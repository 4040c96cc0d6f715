//! Leaving objects alone when somebody asked for it.

use api::conditions::{self, Verdict};
use api::core::v1beta2::Cluster;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::{Resource, ResourceExt};
use api::names::PAUSED_ANNOTATION;

/// The condition that tells whether an object is left alone.
pub(crate) const PAUSED: &str = "Paused";

/// Why `object` is to be left alone: its Cluster is paused, or it carries the annotation.
pub(crate) fn reason<K: Resource<DynamicType = ()>>(
    cluster: Option<&Cluster>,
    object: &K,
) -> Option<String> {
    let mut reasons = Vec::new();
    if cluster.is_some_and(Cluster::is_paused) {
        reasons.push("Cluster spec.paused is set to true".to_owned());
    }
    if object.annotations().contains_key(PAUSED_ANNOTATION) {
        reasons.push(format!(
            "{} has the {PAUSED_ANNOTATION} annotation",
            K::kind(&())
        ));
    }
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

/// The `Paused` condition: `None` as reason means that the object is worked on.
pub(crate) fn verdict(reason: Option<&str>) -> Verdict {
    match reason {
        Some(why) => Verdict::new(PAUSED, true, "Paused").because(why),
        None => Verdict::new(PAUSED, false, "NotPaused"),
    }
}

/// Sets the `Paused` condition among `list`.
pub(crate) fn record(
    list: &mut Vec<Condition>,
    reason: Option<&str>,
    generation: Option<i64>,
    now: Timestamp,
) {
    conditions::set(list, verdict(reason), generation, now);
}
