//! Writes of guards.

use api::openstack::v1alpha1::OpenStack;
use deployer::Credentials;
use deployer::drain::{self, GuardWrite, Verb};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    Preconditions,
};
use kube::{Client, ResourceExt as _};
use operator::client::Api;

use crate::problem::Problem;
use crate::view::Seen;

fn api(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let group = if kind == "Pod" { "" } else { "policy" };
    let kind = GroupVersionKind::gvk(group, "v1", kind);
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

/// Sends [`GuardWrite`]s, up to the first object with a change since the observation.
pub(super) async fn write(
    client: &Client,
    namespace: &str,
    writes: &[GuardWrite],
) -> Result<(), Problem> {
    for write in writes {
        let (kind, name) = (write.kind, write.name.as_str());
        let api = api(client, namespace, kind);
        let (doing, done) = match &write.verb {
            Verb::Create(object) => {
                let object: DynamicObject = serde_json::from_value(object.clone())
                    .map_err(|error| Problem::Malformed(format!("{kind} {name}: {error}")))?;
                let params = PostParams {
                    field_manager: Some(deployer::FIELD_MANAGER.to_owned()),
                    ..PostParams::default()
                };
                ("creating", api.create(&params, &object).await.map(drop))
            }
            Verb::Patch(patch) => {
                let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
                ("changing", api.patch(name, &params, &patch).await.map(drop))
            }
            Verb::Delete(uid) => {
                let params = DeleteParams {
                    preconditions: Some(Preconditions {
                        uid: Some(uid.clone()),
                        resource_version: None,
                    }),
                    ..DeleteParams::default()
                };
                ("deleting", api.delete(name, &params).await.map(drop))
            }
        };
        match done {
            Ok(()) => tracing::debug!("{doing} {kind} {name}"),
            // Somebody was before: what is there now wakes the controller.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return Ok(()),
            Err(error) => return Err(Problem::api(format!("{doing} {kind} {name}"))(error)),
        }
    }
    Ok(())
}

/// Deletes the guards of a deleted [`OpenStack`]. True while guards remain.
pub(crate) async fn left(
    object: &OpenStack,
    client: &Client,
    seen: &Seen,
) -> Result<bool, Problem> {
    let recorded = object.status.as_ref().and_then(|it| it.uid.clone());
    let name = object.name_any();
    let uid = recorded.unwrap_or_else(|| {
        let held = Credentials::complete(&name, &seen.objects, rand::random);
        held.uid().to_owned()
    });
    let nodes = seen.nodes.as_deref().unwrap_or_default();
    let observed = seen.observed(nodes);
    let namespace = object.namespace().unwrap_or_default();
    write(client, &namespace, &drain::left(&uid, observed)).await?;
    Ok(drain::are_left(&uid, observed))
}
