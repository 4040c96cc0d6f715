//! Writes to the objects of a cloud.
//!
//! A new object is created by a request that fails if the name is taken. Changes are applied with the uid of the
//! observed object, and deletions have the uid as a precondition: an object that took the place of ours is left.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use deployer::{
    Action, Cloud, FIELD_MANAGER, Graph, Object, ObjectKind, Password, Progress, Reference, Swap,
    Swaps, Verb,
};
use kube::Client;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    Preconditions, PropagationPolicy, ValidationDirective,
};
use operator::client::Api;
use serde_json::{Value, json};

use crate::problem::Problem;

/// Result of the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// All writes are done.
    All,
    /// The view is older than the cluster: an object has taken a free name. The watch will deliver the object.
    Stopped,
}

/// API of an [`ObjectKind`].
pub(crate) fn api(client: &Client, namespace: &str, kind: ObjectKind) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(kind.group(), "v1", kind.name());
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

/// Executes the actions and deletions of a [`Progress`].
pub(crate) async fn apply(
    client: &Client,
    cloud: &Cloud,
    graph: &Graph,
    progress: &Progress,
    objects: &[Value],
) -> Result<Applied, Problem> {
    for action in &progress.actions {
        let mut wanted = graph.objects().map(|(_, it)| it);
        let Some(object) = wanted.find(|it| *it.reference() == action.object) else {
            continue;
        };
        let api = api(client, &cloud.namespace, action.object.kind);
        let done = match action.verb {
            Verb::Create => create(&api, object).await?,
            Verb::Change => change(&api, object, there(objects, &action.object)).await?,
            Verb::Replace => {
                delete(&api, &action.object, there(objects, &action.object)).await?;
                // The next reconcile creates the object, after the deletion has finished.
                Applied::Stopped
            }
        };
        tracing::debug!("{}: {} {}", cloud.name, word(action), action.object);
        if done == Applied::Stopped && action.verb == Verb::Create {
            return Ok(done);
        }
    }
    for reference in &progress.deletions {
        let api = api(client, &cloud.namespace, reference.kind);
        delete(&api, reference, there(objects, reference)).await?;
    }
    Ok(Applied::All)
}

/// Gives Secrets of passwords and keys new content.
pub(crate) async fn swap_all(
    client: &Client,
    cloud: &Cloud,
    swaps: &Swaps,
    objects: &[Value],
) -> Result<Applied, Problem> {
    for (name, swap) in swaps {
        let reference = Reference {
            kind: ObjectKind::Secret,
            name: (*name).to_owned(),
        };
        if let Some(seen) = there(objects, &reference) {
            self::swap(client, cloud, (&reference, seen), swap).await?;
        }
    }
    match swaps.is_empty() {
        true => Ok(Applied::All),
        // The new content wakes the controller again.
        false => Ok(Applied::Stopped),
    }
}

/// Gives a Secret new content, if unchanged since the last read.
async fn swap(
    client: &Client,
    cloud: &Cloud,
    (reference, seen): (&Reference, &Value),
    swap: &Swap,
) -> Result<(), Problem> {
    let value = |(key, value): (&String, &Option<Password>)| {
        let encoded = value.as_ref().map(|it| STANDARD.encode(it.expose()));
        (key.clone(), json!(encoded))
    };
    let data: serde_json::Map<String, Value> = swap.iter().map(value).collect();
    let metadata = &seen["metadata"];
    let patch = json!({
        "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
        "data": data,
    });
    let api = api(client, &cloud.namespace, reference.kind);
    let params = PatchParams::default();
    match api
        .patch(&reference.name, &params, &Patch::Merge(patch))
        .await
    {
        Ok(_) => Ok(()),
        // Somebody was before: what is there now is looked at again.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(Problem::api(format!("changing {reference}"))(error)),
    }
}

fn word(action: &Action) -> &'static str {
    match action.verb {
        Verb::Create => "creates",
        Verb::Change => "changes",
        Verb::Replace => "replaces",
    }
}

/// Observed object of a [`Reference`].
pub(crate) fn there<'a>(objects: &'a [Value], reference: &Reference) -> Option<&'a Value> {
    let mut objects = objects.iter();
    objects.find(|it| Reference::from_object(it).as_ref() == Some(reference))
}

async fn create(api: &Api<DynamicObject>, object: &Object) -> Result<Applied, Problem> {
    let reference = object.reference();
    let body: DynamicObject = serde_json::from_value(object.exposed())
        .map_err(|error| Problem::Malformed(format!("{reference}: {error}")))?;
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    match api.create(&params, &body).await {
        Ok(_) => Ok(Applied::All),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Applied::Stopped),
        Err(error) => Err(Problem::api(format!("creating {reference}"))(error)),
    }
}

async fn change(
    api: &Api<DynamicObject>,
    object: &Object,
    there: Option<&Value>,
) -> Result<Applied, Problem> {
    let reference = object.reference();
    let Some(there) = there else {
        return Ok(Applied::Stopped);
    };
    if let Some(handover) = handover(there) {
        let params = PatchParams::default();
        let done = api
            .patch(&reference.name, &params, &Patch::Merge(handover))
            .await;
        done.map_err(Problem::api(format!("changing {reference}")))?;
    }
    let mut body = object.exposed();
    body["metadata"]["uid"] = there["metadata"]["uid"].clone();
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        field_validation: Some(ValidationDirective::Strict),
        force: true,
        dry_run: false,
    };
    let done = api
        .patch(&reference.name, &params, &Patch::Apply(body))
        .await;
    done.map_err(Problem::api(format!("changing {reference}")))?;
    Ok(Applied::All)
}

/// Patch that hands the fields of the creating request to server-side apply, so that an apply removes fields that are
/// no longer desired. `None` if the managed fields are in this state already.
fn handover(there: &Value) -> Option<Value> {
    let mut managers = there
        .pointer("/metadata/managedFields")?
        .as_array()?
        .clone();
    let is = |it: &Value, operation: &str| {
        it["manager"] == FIELD_MANAGER
            && it["operation"] == operation
            && it["subresource"].is_null()
    };
    if managers.iter().any(|it| is(it, "Apply")) {
        return None;
    }
    let ours = managers.iter_mut().find(|it| is(it, "Update"))?;
    ours["operation"] = "Apply".into();
    Some(json!({"metadata": {
        "resourceVersion": there["metadata"]["resourceVersion"],
        "managedFields": managers,
    }}))
}

/// Deletes an observed object, after its dependents. Succeeds when the object is gone.
pub(crate) async fn delete(
    api: &Api<DynamicObject>,
    reference: &Reference,
    there: Option<&Value>,
) -> Result<(), Problem> {
    let text = |field: &str| there?["metadata"][field].as_str().map(str::to_owned);
    let Some(uid) = text("uid") else {
        return Ok(());
    };
    if text("deletionTimestamp").is_some() {
        return Ok(());
    }
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid),
            resource_version: None,
        }),
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    match api.delete(&reference.name, &params).await {
        Ok(_) => Ok(()),
        // The object is gone, or another one has taken the name.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(Problem::api(format!("deleting {reference}"))(error)),
    }
}
