//! Requests to the API server of a workload cluster. Tenants control it, so lists, steps and times have limits.

use std::fmt::Debug;
use std::time::Duration;

use api::deletion::{Volumes, Wanted};
use api::k8s_openapi::api::apps::v1::StatefulSet;
use api::k8s_openapi::api::core::v1::{
    Node, PersistentVolume, PersistentVolumeClaim, Pod, Service,
};
use api::kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use api::kube::core::NamespaceResourceScope;
use api::kube::{self, Client, Resource, ResourceExt};
use api::names::CINDER_DRIVER;
use operator::client::Api;
use operator::words::chain;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::plan::{self, Claim, Object, Seen, Step, User, Volume};
use crate::error::is_absent;

/// Timeout of one look, and of the writes afterwards.
const LIMIT: Duration = Duration::from_secs(20);
/// Objects on a page of a list, and the maximum number of pages.
const PAGE: u32 = 500;
const PAGES: usize = 40;
/// Maximum number of writes after one look.
const WRITES: usize = 100;

/// Reads the `wanted` objects.
///
/// # Errors
/// A message: the API server does not answer in time, refuses, or has more than 20 000 objects of a kind.
pub(super) async fn look(client: &Client, wanted: Wanted) -> Result<Seen, String> {
    within(read(client, wanted)).await
}

/// Performs the first hundred of `steps`. A missing object is no error.
///
/// # Errors
/// A message about the first failed write.
pub(super) async fn apply(client: &Client, steps: &[Step]) -> Result<(), String> {
    within(async {
        for step in steps.iter().take(WRITES) {
            match write(client, step).await {
                Err(error) if !is_absent(&error) => return Err(chain(&error)),
                _ => {}
            }
        }
        Ok(())
    })
    .await
}

async fn within<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let silent = || format!("no answer within {} s", LIMIT.as_secs());
    tokio::time::timeout(LIMIT, work)
        .await
        .unwrap_or_else(|_| Err(silent()))
}

async fn read(client: &Client, wanted: Wanted) -> Result<Seen, String> {
    let mut seen = Seen::default();
    if wanted.services {
        seen.services = list(client, |service: Service| {
            let type_ = service.spec.as_ref()?.type_.as_deref()?;
            (type_ == "LoadBalancer").then(|| object(&service))
        })
        .await?;
    }
    if wanted.volumes == Volumes::Keep {
        return Ok(seen);
    }
    seen.volumes = list(client, volume).await?;
    seen.claims = list(client, claim).await?;
    if plan::doomed(&seen.volumes, &seen.claims, wanted.volumes).is_empty() {
        return Ok(seen);
    }
    seen.users = list(client, user).await?;
    if seen.users.iter().any(|user| user.ephemeral) {
        seen.nodes = list(client, |node: Node| {
            let spec = node.spec.as_ref();
            let is_free = spec.is_none_or(|spec| spec.unschedulable != Some(true));
            is_free.then(|| object(&node))
        })
        .await?;
    }
    Ok(seen)
}

/// Reads all pages of a kind; `keep` selects and shortens objects.
async fn list<K, T>(client: &Client, keep: impl Fn(K) -> Option<T>) -> Result<Vec<T>, String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api = Api::<K>::all(client.clone());
    let mut params = ListParams::default().limit(PAGE);
    let mut found = Vec::new();
    for _ in 0..PAGES {
        let page = api.list(&params).await.map_err(|error| chain(&error))?;
        found.extend(page.items.into_iter().filter_map(&keep));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
    let kind = K::plural(&()).into_owned();
    Err(format!("it has too many {kind}"))
}

fn object<K: ResourceExt>(of: &K) -> Object {
    Object {
        name: (of.namespace().unwrap_or_default(), of.name_any()),
        uid: of.uid().unwrap_or_default(),
        deleting: of.meta().deletion_timestamp.is_some(),
    }
}

fn volume(volume: PersistentVolume) -> Option<Volume> {
    let is_ours = volume
        .annotations()
        .get("pv.kubernetes.io/provisioned-by")
        .is_some_and(|driver| driver == CINDER_DRIVER);
    let object = object(&volume);
    let spec = volume.spec.filter(|_| is_ours)?;
    let text = |text: Option<String>| text.unwrap_or_default();
    Some(Volume {
        object,
        retained: spec.persistent_volume_reclaim_policy.as_deref() != Some("Delete"),
        claim: spec
            .claim_ref
            .map(|it| ((text(it.namespace), text(it.name)), text(it.uid))),
    })
}

fn claim(claim: PersistentVolumeClaim) -> Option<Claim> {
    let provisioner = [
        "volume.kubernetes.io/storage-provisioner",
        "volume.beta.kubernetes.io/storage-provisioner",
    ];
    let annotations = claim.annotations();
    let mut of = provisioner.iter().filter_map(|name| annotations.get(*name));
    let is_ours = of.any(|driver| driver == CINDER_DRIVER);
    let spec = claim.spec.as_ref();
    let is_bound =
        spec.is_some_and(|spec| spec.volume_name.as_ref().is_some_and(|it| !it.is_empty()));
    Some(Claim {
        object: object(&claim),
        pending: is_ours && !is_bound,
    })
}

fn user(pod: Pod) -> Option<User> {
    let volumes = pod.spec.as_ref()?.volumes.iter().flatten();
    let (mut claims, mut ephemeral) = (Vec::new(), false);
    for volume in volumes {
        if let Some(source) = &volume.persistent_volume_claim {
            claims.push(source.claim_name.clone());
        } else if volume.ephemeral.is_some() {
            claims.push(format!("{}-{}", pod.name_any(), volume.name));
            ephemeral = true;
        }
    }
    if claims.is_empty() {
        return None;
    }
    let mut owners = pod.owner_references().iter();
    let set = owners.find(|owner| owner.kind == "StatefulSet" && owner.controller == Some(true));
    Some(User {
        object: object(&pod),
        claims,
        ephemeral,
        set: set.map(|owner| (owner.name.clone(), owner.uid.clone())),
    })
}

async fn write(client: &Client, step: &Step) -> kube::Result<()> {
    match step {
        Step::Service(object) => delete::<Service>(client, object).await,
        Step::Claim(object) => delete::<PersistentVolumeClaim>(client, object).await,
        Step::Set(object) => delete::<StatefulSet>(client, object).await,
        Step::Pod(object) => delete::<Pod>(client, object).await,
        Step::Reclaim(object) => {
            let spec = json!({"persistentVolumeReclaimPolicy": "Delete"});
            patch::<PersistentVolume>(client, object, spec).await
        }
        Step::Cordon(object) => patch::<Node>(client, object, json!({"unschedulable": true})).await,
    }
}

async fn delete<K>(client: &Client, object: &Object) -> kube::Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let (namespace, name) = &object.name;
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(object.uid.clone()),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    let api = Api::<K>::namespaced(client.clone(), namespace);
    match api.delete(name, &params).await {
        // Another object has taken the name: the next look sees it.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => other,
    }
}

async fn patch<K>(client: &Client, object: &Object, spec: serde_json::Value) -> kube::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api = Api::<K>::all(client.clone());
    let change = Patch::Merge(json!({"metadata": {"uid": object.uid}, "spec": spec}));
    match api
        .patch(&object.name.1, &PatchParams::default(), &change)
        .await
    {
        // Another object has taken the name, and a uid cannot change.
        Err(kube::Error::Api(status)) if matches!(status.code, 409 | 422) => Ok(()),
        other => other.map(drop),
    }
}
