//! Paused objects, exempt from reconciles.

use api::conditions::{self, Reason, Type, Verdict};
use api::core::v1beta2::Cluster;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::{Resource, ResourceExt};
use api::names::PAUSED_ANNOTATION;

/// Condition type `Paused`.
pub(crate) const PAUSED: Type = Type::Paused;

/// Reason for the pause of an object of a paused [`Cluster`].
pub(crate) const OF_CLUSTER: &str = "Cluster spec.paused is set to true";

/// Reason for the pause of `object`: its [`Cluster`] is paused, or it has the annotation. `None` without a pause.
pub(crate) fn reason<K: Resource<DynamicType = ()>>(
    cluster: Option<&Cluster>,
    object: &K,
) -> Option<String> {
    let mut reasons = Vec::new();
    if cluster.is_some_and(Cluster::is_paused) {
        reasons.push(OF_CLUSTER.to_owned());
    }
    if object.annotations().contains_key(PAUSED_ANNOTATION) {
        reasons.push(format!(
            "{} has the {PAUSED_ANNOTATION} annotation",
            K::kind(&())
        ));
    }
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

/// Condition `Paused`; false without a reason.
pub(crate) fn verdict(reason: Option<&str>) -> Verdict {
    match reason {
        Some(why) => Verdict::new(PAUSED, true, Reason::Paused).because(why),
        None => Verdict::new(PAUSED, false, Reason::NotPaused),
    }
}

/// Sets the [`Condition`] `Paused` in `list`.
pub(crate) fn record(
    list: &mut Vec<Condition>,
    reason: Option<&str>,
    generation: Option<i64>,
    now: Timestamp,
) {
    conditions::set(list, verdict(reason), generation, now);
}
