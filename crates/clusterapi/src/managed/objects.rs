//! Reads, trials and writes of objects of a topology, in the versions of the class's references to their templates.
//!
//! A dry run of server-side apply decides if an object has to be written: only the API server knows the defaults of
//! the kind and the managers of fields. Answers are remembered by the content of both sides, so that no request is
//! sent at rest.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use api::core::v1beta2::{Cluster, ContractReference, MachineDeployment, MachineHealthCheck};
use api::kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use api::kube::discovery::ApiResource;
use api::kube::{Resource, ResourceExt};
use api::names::CLUSTER_NAME_LABEL;
use operator::client::Api;
use serde_json::{Value, json};
use topology::names::{DRY_RUN_ANNOTATION, FIELD_MANAGER, OWNED_LABEL};

use super::blueprint::in_version;
use super::plan::reference;
use super::{Obstacle, Runner};
use crate::error::{Doing, is_absent};
use crate::external::ExternalError;
use crate::news::{self, PendingEvent};

/// Answers of trials, by object: a hash of the question, and true if the object would change.
pub(super) type Trials = BTreeMap<String, (u64, bool)>;

/// Fields of `metadata` that differ between an object and the answer of a trial without a change.
const UNSTABLE: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// Objects of one Cluster.
pub(super) struct Objects<'a> {
    runner: &'a Runner,
    cluster: &'a Cluster,
    namespace: String,
    trials: Trials,
}

impl<'a> Objects<'a> {
    pub(super) fn new(runner: &'a Runner, cluster: &'a Cluster) -> Self {
        Self {
            runner,
            cluster,
            namespace: cluster.namespace().unwrap_or_default(),
            trials: runner.trials.get(cluster).unwrap_or_default(),
        }
    }

    /// Remembers the answers of the trials.
    pub(super) fn remember(self) {
        self.runner.trials.insert(self.cluster, self.trials);
    }

    /// Creates or changes an object, if different. `referred` is true if the Cluster refers to the object: such an
    /// object belongs to the Cluster, as an object with the marks of its topology does.
    pub(super) async fn create_or_change(
        &mut self,
        wanted: &Value,
        referred: bool,
    ) -> Result<(), Obstacle> {
        let known = self.known(wanted).await?;
        let asked = question(wanted, known.as_ref());
        if known.is_some() && self.answered(&label(wanted), asked) == Some(false) {
            return Ok(());
        }
        let Some(live) = self.live(wanted).await? else {
            return self.create(wanted).await;
        };
        self.judge(&live, wanted, referred)?;
        if self.would_change(&live, wanted).await? {
            return self.apply(wanted, live.uid()).await.map(drop);
        }
        self.trials.insert(label(wanted), (asked, false));
        Ok(())
    }

    /// True if `wanted`, under the name of a template in use, would change the spec of the template, or if the
    /// template does not exist.
    pub(super) async fn differs(&mut self, wanted: &Value) -> Result<bool, Obstacle> {
        let known = self.known(wanted).await?;
        let asked = question(wanted, known.as_ref());
        // Apart from the answer for a write of the object.
        let key = format!("name of {}", label(wanted));
        if let Some(answer) = self.answered(&key, asked) {
            return Ok(answer);
        }
        let Some(live) = self.live(wanted).await? else {
            return Ok(true);
        };
        let after = self.trial(&live, wanted).await?;
        let differs = after.data["spec"] != live.data["spec"];
        self.trials.insert(key, (asked, differs));
        Ok(differs)
    }

    /// Deletes an object; a new object with the same name is left alone.
    pub(super) async fn delete(
        &mut self,
        object: &ContractReference,
        uid: Option<String>,
    ) -> Result<(), Obstacle> {
        let resource = self.resource(object).await?;
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid,
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        let deleted = match self.api(&resource).delete(&object.name, &params).await {
            Err(error) if is_absent(&error) => return Ok(()),
            other => other.map(drop).doing(|| self.of("deleting", object)),
        };
        let news = PendingEvent::of_deletion(&object.kind, &object.name, deleted.as_ref().copied());
        news::publish(self.runner, self.cluster, news).await;
        Ok(deleted?)
    }

    /// Object in a cache, in any version.
    async fn known(&self, wanted: &Value) -> Result<Option<Value>, Obstacle> {
        let object = reference(wanted);
        let (runner, namespace) = (self.runner, &self.namespace);
        let core = object.api_group == api::core::GROUP;
        Ok(match object.kind.as_str() {
            "MachineDeployment" if core => {
                let found = runner.machinedeployments.get(namespace, &object.name);
                found.map(|found| json!(*found))
            }
            "MachineHealthCheck" if core => {
                let found = runner.checks.get(namespace, &object.name);
                found.map(|found| json!(*found))
            }
            _ => {
                let found = runner.external.get(&object, namespace).await?;
                found.map(|found| json!(*found))
            }
        })
    }

    /// Object in the version of `wanted`.
    async fn live(&self, wanted: &Value) -> Result<Option<DynamicObject>, Obstacle> {
        let object = reference(wanted);
        let found = self.api_of(wanted).await?.get_opt(&object.name).await;
        Ok(found.doing(|| self.of("reading", &object))?)
    }

    /// Creates a missing object by server-side apply, so that fields can leave it later. The name contains a hash of
    /// the Cluster's UID: nobody else creates an object of this name meanwhile.
    async fn create(&self, wanted: &Value) -> Result<(), Obstacle> {
        let created = self.apply(wanted, None).await;
        let object = reference(wanted);
        let result = match &created {
            Ok(_) => Ok(()),
            Err(Obstacle::Request(error)) => Err(error),
            Err(_) => return created.map(drop),
        };
        let news = PendingEvent::of_creation(&object.kind, &object.name, result);
        news::publish(self.runner, self.cluster, news).await;
        created.map(drop)
    }

    async fn apply(&self, wanted: &Value, uid: Option<String>) -> Result<DynamicObject, Obstacle> {
        let params = PatchParams::apply(FIELD_MANAGER).force();
        self.send(wanted, uid, &params).await
    }

    async fn would_change(&self, live: &DynamicObject, wanted: &Value) -> Result<bool, Obstacle> {
        let after = self.trial(live, wanted).await?;
        Ok(stable(&after) != stable(live))
    }

    /// Result of a dry run.
    async fn trial(&self, live: &DynamicObject, wanted: &Value) -> Result<DynamicObject, Obstacle> {
        let mut wanted = wanted.clone();
        if reference(&wanted).kind.ends_with("Template") {
            wanted["metadata"]["annotations"][DRY_RUN_ANNOTATION] = json!("");
        }
        let params = PatchParams::apply(FIELD_MANAGER).force().dry_run();
        self.send(&wanted, live.uid(), &params).await
    }

    async fn send(
        &self,
        wanted: &Value,
        uid: Option<String>,
        params: &PatchParams,
    ) -> Result<DynamicObject, Obstacle> {
        let object = reference(wanted);
        let mut body = wanted.clone();
        if let Some(uid) = uid {
            // A new object with the same name must not be changed.
            body["metadata"]["uid"] = json!(uid);
        }
        let api = self.api_of(wanted).await?;
        let sent = api.patch(&object.name, params, &Patch::Apply(&body)).await;
        Ok(sent.doing(|| self.of("applying", &object))?)
    }

    /// Checks that an existing object belongs to the Cluster before a change.
    fn judge(&self, live: &DynamicObject, wanted: &Value, referred: bool) -> Result<(), Obstacle> {
        let object = reference(wanted);
        let cluster = self.cluster.name_any();
        let marked = live.labels().contains_key(OWNED_LABEL)
            && live.labels().get(CLUSTER_NAME_LABEL) == Some(&cluster);
        if !marked && !referred {
            return Err(ExternalError::Taken {
                kind: object.kind,
                namespace: self.namespace.clone(),
                name: object.name,
            }
            .into());
        }
        if live.metadata.deletion_timestamp.is_some() {
            return Err(Obstacle::Failed(format!(
                "{} {} is being deleted, and is created again when it is gone",
                object.kind, object.name
            )));
        }
        Ok(())
    }

    fn answered(&self, key: &str, asked: u64) -> Option<bool> {
        let known = self.trials.get(key);
        known
            .filter(|(hash, _)| *hash == asked)
            .map(|(_, answer)| *answer)
    }

    async fn api_of(&self, wanted: &Value) -> Result<Api<DynamicObject>, Obstacle> {
        let resource = self.resource(&reference(wanted)).await?;
        let version = wanted["apiVersion"].as_str().unwrap_or_default();
        Ok(self.api(&in_version(&resource, version)))
    }

    fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.runner.client.clone(), &self.namespace, resource)
    }

    async fn resource(&self, object: &ContractReference) -> Result<ApiResource, Obstacle> {
        let core = object.api_group == api::core::GROUP;
        Ok(match object.kind.as_str() {
            "MachineDeployment" if core => resource::<MachineDeployment>(),
            "MachineHealthCheck" if core => resource::<MachineHealthCheck>(),
            _ => {
                let kind = self
                    .runner
                    .external
                    .kind(&object.api_group, &object.kind)
                    .await?;
                kind.resource
            }
        })
    }

    fn of(&self, action: &str, object: &ContractReference) -> String {
        format!(
            "{action} {} {}/{}",
            object.kind, self.namespace, object.name
        )
    }
}

fn resource<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

/// Kind and name of an object.
fn label(object: &Value) -> String {
    let object = reference(object);
    format!("{}.{}/{}", object.kind, object.api_group, object.name)
}

/// Hash of the desired and the known object.
fn question(wanted: &Value, known: Option<&Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    wanted.to_string().hash(&mut hasher);
    if let Some(known) = known {
        for field in [
            "uid",
            "labels",
            "annotations",
            "ownerReferences",
            "deletionTimestamp",
        ] {
            known["metadata"][field].to_string().hash(&mut hasher);
        }
        known["spec"].to_string().hash(&mut hasher);
    }
    hasher.finish()
}

/// Object without the fields that differ after a trial without a change.
fn stable(object: &DynamicObject) -> Value {
    let mut stable = json!(object);
    if let Some(fields) = stable.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = stable["metadata"].as_object_mut() {
        metadata.retain(|field, _| !UNSTABLE.contains(&field.as_str()));
        if let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.remove(DRY_RUN_ANNOTATION);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    stable
}

#[cfg(test)]
mod tests;
