//! Deletion of a cloud.

use api::openstack::v1alpha1::{OpenStack, OpenStackStatus};
use api::openstack::{FINALIZER, PURGE_DATA};
use deployer::{Cloud, Credentials, Parameters, Reference, Release};
use kube::{Client, ResourceExt as _};
use operator::client::Api;
use operator::{finalizer, patch};

use crate::apply;
use crate::described;
use crate::drain;
use crate::problem::Problem;
use crate::rendered::Rendered;
use crate::status;
use crate::view::Seen;

/// Deletes the remaining objects, last step first, and then the [`FINALIZER`]. Returns true if nothing remains.
pub(crate) async fn remove(
    api: &Api<OpenStack>,
    object: &OpenStack,
    client: &Client,
    rendered: &Rendered,
    seen: &Seen,
) -> Result<bool, Problem> {
    if !finalizer::has(object, FINALIZER) {
        return Ok(true);
    }
    let guards = drain::guards_left(object, client, seen).await?;
    let groups = left(object, rendered, seen)?;
    let Some(group) = groups.first() else {
        if guards {
            return Ok(false);
        }
        let removed = finalizer::remove(api, object, FINALIZER).await;
        removed.map_err(Problem::api("removing the finalizer"))?;
        return Ok(true);
    };
    let namespace = object.namespace().unwrap_or_default();
    for reference in group {
        let there = apply::there(&seen.objects, reference);
        let api = apply::api(client, &namespace, reference.kind);
        apply::delete(&api, reference, there).await?;
    }
    let mut after = object.clone();
    let count = groups.iter().map(Vec::len).sum();
    after.status = Some(OpenStackStatus {
        conditions: status::deleting(object, count, group),
        ..object.status.clone().unwrap_or_default()
    });
    let written = patch::status(api, object, &after).await;
    written.map_err(Problem::api("writing the status"))?;
    Ok(false)
}

/// Objects to delete, in the reverse order of the steps.
fn left(
    object: &OpenStack,
    rendered: &Rendered,
    seen: &Seen,
) -> Result<Vec<Vec<Reference>>, Problem> {
    let name = object.name_any();
    // Rejected parameters have created nothing; the order of the steps is the same for every cloud.
    let cloud = described::cloud(object)?.unwrap_or_else(|_| Cloud {
        name: name.clone(),
        namespace: object.namespace().unwrap_or_default(),
        parameters: Parameters::from_release(Release::Epoxy),
        spec: serde_json::Value::Null,
    });
    let held = Credentials::complete(&name, &seen.objects, rand::random);
    let recorded = object.status.as_ref().and_then(|it| it.uid.clone());
    let uid = recorded.unwrap_or_else(|| held.uid().to_owned());
    let graph = rendered.of(&cloud, &held);
    let annotations = object.annotations();
    let purge = annotations.get(PURGE_DATA).is_some_and(|it| it == "true");
    Ok(deployer::removal(&graph, &uid, &seen.objects, purge))
}
