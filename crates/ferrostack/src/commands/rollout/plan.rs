//! Writes of a rollout, as a function of the object, by the rules of `clusterctl alpha rollout`.

use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use api::names::{PAUSED_ANNOTATION, REVISION_ANNOTATION as REVISION, TEMPLATE_HASH_LABEL as HASH};

use status::snapshot::Kind;

/// Request of the user.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    /// Replace all machines created before this time.
    Restart(Timestamp),
    /// Replace no machines.
    Pause,
    /// End a pause.
    Resume,
}

/// Change of an object.
#[derive(Debug)]
pub(super) struct Change {
    patch: Value,
    /// Report after the write.
    pub(super) done: String,
}

impl Change {
    fn new(patch: Value, done: impl Into<String>) -> Self {
        Self {
            patch,
            done: done.into(),
        }
    }

    /// Merge patch, for the object at a version alone.
    pub(super) fn patch(&self, version: Option<&str>) -> Value {
        let mut patch = self.patch.clone();
        patch["metadata"]["resourceVersion"] = version.into();
        patch
    }
}

/// [`Change`] for a request, or the reason why the request is rejected.
pub(super) fn change(
    kind: Kind,
    object: &DynamicObject,
    request: Request,
) -> Result<Change, &'static str> {
    let is_deployment = kind == Kind::MachineDeployment;
    let is_paused = is_paused(kind, object);
    let pause = |value: Value| match is_deployment {
        true => json!({"spec": {"paused": value}}),
        false => json!({"metadata": {"annotations": {PAUSED_ANNOTATION: value}}}),
    };
    match (request, is_paused) {
        (Request::Restart(_), true) => Err("is paused: run `rollout resume` first"),
        (Request::Restart(now), false) => {
            let after = object.data["spec"]["rollout"]["after"].as_str();
            let after = after.and_then(|it| it.parse::<Timestamp>().ok());
            if after.is_some_and(|after| after > now) {
                return Err("has a time in the future in spec.rollout.after: remove it first");
            }
            // Times of Kubernetes have no fractions of a second.
            let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let patch = json!({"spec": {"rollout": {"after": now}}});
            Ok(Change::new(patch, "its machines are replaced"))
        }
        (Request::Pause, true) => Err("is paused already"),
        (Request::Pause, false) => Ok(Change::new(
            pause(match is_deployment {
                true => true.into(),
                false => "true".into(),
            }),
            "paused",
        )),
        (Request::Resume, false) => Err("is not paused"),
        (Request::Resume, true) => Ok(Change::new(pause(Value::Null), "resumed")),
    }
}

/// True if no machine is replaced until `rollout resume`.
pub(super) fn is_paused(kind: Kind, object: &DynamicObject) -> bool {
    match kind {
        Kind::MachineDeployment => object.data["spec"]["paused"] == true,
        _ => object.annotations().contains_key(PAUSED_ANNOTATION),
    }
}

/// [`Change`] to the template of an earlier revision, among the MachineSets of the namespace; or the reason why there
/// is none. The default is the last template that differs from the current one: a restart leaves sets with equal
/// templates, and the set of a new template may not exist yet.
pub(super) fn undo(
    deployment: &DynamicObject,
    sets: &[DynamicObject],
    to: Option<i64>,
) -> Result<Change, String> {
    if deployment.data["spec"]["paused"] == true {
        return Err("is paused: run `rollout resume` first".to_owned());
    }
    let before = &deployment.data["spec"]["template"];
    let known = revisions(deployment, sets);
    let found = match to {
        Some(to) => known.iter().find(|it| it.number == to),
        None => known.iter().rfind(|it| it.template != *before),
    };
    let Some(Revision {
        number, template, ..
    }) = found
    else {
        return Err(missing(to, &known));
    };
    if template == before {
        return Err(format!("has the template of revision {number} already"));
    }
    let patch = json!({"spec": {"template": replaced(before, template)}});
    let done = format!("goes back to the template of revision {number}");
    Ok(Change::new(patch, done))
}

/// Revision of a MachineDeployment, kept in its MachineSet.
pub(super) struct Revision {
    pub(super) number: i64,
    /// Name of the MachineSet.
    pub(super) set: String,
    pub(super) template: Value,
    /// Machines of the MachineSet.
    pub(super) machines: i64,
}

/// Remaining [`Revision`]s of a deployment, in order.
pub(super) fn revisions(deployment: &DynamicObject, sets: &[DynamicObject]) -> Vec<Revision> {
    let uid = deployment.metadata.uid.as_deref();
    let is_of = |set: &&DynamicObject| {
        let mut owners = set.owner_references().iter();
        owners.any(|owner| owner.controller == Some(true) && Some(owner.uid.as_str()) == uid)
    };
    let revision = |set: &DynamicObject| {
        Some(Revision {
            number: set.annotations().get(REVISION)?.parse().ok()?,
            set: set.name_any(),
            template: template(set),
            machines: set.data["status"]["replicas"].as_i64().unwrap_or(0),
        })
    };
    let mut known: Vec<Revision> = sets.iter().filter(is_of).filter_map(revision).collect();
    known.sort_by_key(|it| it.number);
    known
}

/// Template of a MachineSet without the label of the set alone.
fn template(set: &DynamicObject) -> Value {
    let mut template = set.data["spec"]["template"].clone();
    let labels = template.pointer_mut("/metadata/labels");
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.remove(HASH);
    }
    template
}

fn missing(to: Option<i64>, known: &[Revision]) -> String {
    let known: Vec<String> = known.iter().map(|it| it.number.to_string()).collect();
    match to {
        Some(to) if !known.is_empty() => {
            format!("has no revision {to}; there are: {}", known.join(", "))
        }
        _ => "has no earlier template: a MachineSet is deleted when its last machine is replaced"
            .to_owned(),
    }
}

/// Merge patch from `before` to `after`: fields missing in `after` are removed.
fn replaced(before: &Value, after: &Value) -> Value {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else {
        return after.clone();
    };
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let mut patch: serde_json::Map<String, Value> =
        gone.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in after {
        let was = before.get(key).unwrap_or(&Value::Null);
        patch.insert(key.clone(), replaced(was, value));
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests;
