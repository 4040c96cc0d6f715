//! Field by field, both ways.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::infra::{v1beta1 as one, v1beta2 as two};

mod cluster;
mod machine;

/// The reason of a v1beta1 condition that gives none: `metav1.Condition` must have one.
const NO_REASON: &str = "NoReasonReported";
/// The type that v1beta1 gives to the condition `APIServerIngressReady`.
const OLD_INGRESS: &str = "APIServerIngressReadyCondition";
const INGRESS: &str = "APIServerIngressReady";

fn conditions_up(conditions: Vec<one::Condition>) -> Vec<meta::Condition> {
    let mut by_type = BTreeMap::new();
    for old in conditions {
        let type_ = if old.type_ == OLD_INGRESS {
            INGRESS.to_owned()
        } else {
            old.type_
        };
        let condition = meta::Condition {
            type_: type_.clone(),
            status: old.status,
            reason: if old.reason.is_empty() {
                NO_REASON.to_owned()
            } else {
                old.reason
            },
            message: old.message,
            // Which generation it was about is not known; claiming the current one would be a guess.
            observed_generation: None,
            last_transition_time: old.last_transition_time,
        };
        by_type.insert(type_, condition);
    }
    by_type.into_values().collect()
}

fn conditions_down(conditions: Vec<meta::Condition>) -> Vec<one::Condition> {
    conditions
        .into_iter()
        .map(|new| one::Condition {
            type_: if new.type_ == INGRESS {
                OLD_INGRESS.to_owned()
            } else {
                new.type_
            },
            status: new.status,
            severity: String::new(),
            last_transition_time: new.last_transition_time,
            reason: if new.reason == NO_REASON {
                String::new()
            } else {
                new.reason
            },
            message: new.message,
        })
        .collect()
}

/// What v1beta1 calls ready: the Ready condition or, before there is one, the first provisioning.
fn ready(conditions: &[meta::Condition], initialization: Option<&two::Initialization>) -> bool {
    match crate::conditions::find(conditions, "Ready") {
        Some(condition) => condition.status == "True",
        None => initialization.and_then(|i| i.provisioned).unwrap_or(false),
    }
}

/// The first provisioning of an object that v1beta1 calls ready.
fn provisioned(known: Option<two::Initialization>, ready: bool) -> Option<two::Initialization> {
    match known {
        None if ready => Some(two::Initialization {
            provisioned: Some(true),
        }),
        known => known,
    }
}

fn all<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}
