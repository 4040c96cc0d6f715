//! Progress of a rollout, and its history, as functions of the objects.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;
use status::snapshot::Kind;

use super::plan::{Revision, revisions};
use crate::cli::Resource;

/// State of a rollout.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Every machine is up to date and available.
    Done,
    /// Missing machines, in words.
    Waiting(String),
    /// Reason why the rollout cannot end.
    Stopped(String),
}

/// [`Progress`] of the rollout of a MachineDeployment or KubeadmControlPlane, by the rules of `kubectl rollout status`.
pub(super) fn progress(kind: Kind, object: &DynamicObject) -> Progress {
    let number = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_i64);
    let count = |field: &str| number(&format!("/status/{field}")).unwrap_or(0);
    if super::plan::is_paused(kind, object) {
        return Progress::Stopped("is paused: run `rollout resume` first".to_owned());
    }
    if number("/status/observedGeneration") < object.metadata.generation {
        return Progress::Waiting("the controller has not seen the last change".to_owned());
    }
    let wanted = number("/spec/replicas").unwrap_or(1);
    let (all, new, available) = (
        count("replicas"),
        count("upToDateReplicas"),
        count("availableReplicas"),
    );
    if new < wanted {
        return Progress::Waiting(format!("{new} of {wanted} machines are up to date"));
    }
    if all > new {
        let left = all - new;
        let are = if left == 1 {
            "machine is"
        } else {
            "machines are"
        };
        return Progress::Waiting(format!("{left} old {are} left"));
    }
    if available < wanted {
        return Progress::Waiting(format!("{available} of {wanted} machines are available"));
    }
    Progress::Done
}

/// The column that a narrow terminal does without: INFRASTRUCTURE.
pub(super) const EXPENDABLE: [usize; 1] = [3];

/// Rows of `rollout history`: revisions still kept by MachineSets, the oldest first.
pub(super) fn rows(deployment: &DynamicObject, sets: &[DynamicObject]) -> Vec<[String; 6]> {
    let header = [
        "REVISION",
        "CURRENT",
        "VERSION",
        "INFRASTRUCTURE",
        "MACHINES",
        "MACHINESET",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    let current = &deployment.data["spec"]["template"];
    for it in revisions(deployment, sets) {
        let text = |pointer: &str| {
            let value = it.template.pointer(pointer).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let mark = if it.template == *current { "*" } else { "" };
        rows.push(terminal::cells([
            it.number.to_string(),
            mark.to_owned(),
            text("/spec/version"),
            text("/spec/infrastructureRef/name"),
            it.machines.to_string(),
            it.set.clone(),
        ]));
    }
    rows
}

/// Template of one [`Revision`].
///
/// # Errors
/// The existing revisions.
pub(super) fn template(
    deployment: &DynamicObject,
    sets: &[DynamicObject],
    number: i64,
) -> Result<Value, String> {
    let known = revisions(deployment, sets);
    let found = known.iter().find(|it| it.number == number);
    found.map(|it| it.template.clone()).ok_or_else(|| {
        let known: Vec<String> = known.iter().map(|it| it.number.to_string()).collect();
        format!("has no revision {number}; there are: {}", known.join(", "))
    })
}

/// History as JSON.
pub(super) fn json(
    resource: &Resource,
    deployment: &DynamicObject,
    sets: &[DynamicObject],
) -> Value {
    let current = &deployment.data["spec"]["template"];
    let of = |it: Revision| {
        serde_json::json!({"revision": it.number, "machineSet": it.set, "machines": it.machines,
            "current": it.template == *current, "template": it.template})
    };
    let revisions: Vec<Value> = revisions(deployment, sets).into_iter().map(of).collect();
    serde_json::json!({"name": resource.name, "namespace": deployment.namespace(), "revisions": revisions})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn deployment(paused: bool, generation: i64, [all, new, available]: [i64; 3]) -> DynamicObject {
        object(
            json!({"metadata": {"name": "md", "generation": generation, "uid": "u"},
            "spec": {"replicas": 3, "paused": paused, "template": {"spec": {"version": "v1.34.2"}}},
            "status": {"observedGeneration": 2, "replicas": all, "upToDateReplicas": new, "availableReplicas": available}}),
        )
    }

    #[test]
    fn a_rollout_is_done_when_every_machine_is_new_and_available() {
        let of = |paused, generation, counts| {
            progress(
                Kind::MachineDeployment,
                &deployment(paused, generation, counts),
            )
        };
        let waiting = |text: &str| Progress::Waiting(text.to_owned());
        assert_eq!(of(false, 2, [3, 3, 3]), Progress::Done);
        assert!(matches!(of(true, 2, [3, 3, 3]), Progress::Stopped(_)));
        for (generation, counts, text) in [
            (3, [3, 3, 3], "the controller has not seen the last change"),
            (2, [3, 1, 3], "1 of 3 machines are up to date"),
            (2, [4, 3, 3], "1 old machine is left"),
            (2, [5, 3, 3], "2 old machines are left"),
            (2, [3, 3, 2], "2 of 3 machines are available"),
        ] {
            assert_eq!(of(false, generation, counts), waiting(text));
        }
    }

    fn set(name: &str, revision: &str, version: &str, replicas: i64) -> DynamicObject {
        object(json!({"metadata": {"name": name,
                "annotations": {api::names::REVISION_ANNOTATION: revision},
                "ownerReferences": [{"apiVersion": "v1", "kind": "M", "name": "md", "uid": "u", "controller": true}]},
            "spec": {"template": {"spec": {"version": version, "infrastructureRef": {"name": "t"}}}},
            "status": {"replicas": replicas}}))
    }

    #[test]
    fn the_history_has_the_revisions_in_their_order() {
        let deployment = deployment(false, 2, [3, 3, 3]);
        let sets = [
            set("b", "2", "v1.34.2", 3),
            set("a", "1", "v1.34.1", 0),
            set("c", "none", "v1.34.1", 0),
        ];
        let rows = rows(&deployment, &sets);
        assert_eq!(rows.len(), 3);
        assert_eq!(
            rows[1],
            ["1", "", "v1.34.1", "t", "0", "a"].map(str::to_owned)
        );
        assert_eq!(rows[2][0], "2");
        let found = template(&deployment, &sets, 1).unwrap();
        assert_eq!(found["spec"]["version"], "v1.34.1");
        let error = template(&deployment, &sets, 7).unwrap_err();
        assert_eq!(error, "has no revision 7; there are: 1, 2");
    }
}
