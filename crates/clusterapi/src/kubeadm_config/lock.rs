//! Who may run `kubeadm init`: whoever creates the ConfigMap `<cluster>-lock`.

use std::collections::{BTreeMap, HashSet};

use api::core::v1beta2::{Cluster, Machine};
use api::k8s_openapi::api::core::v1::ConfigMap;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::kube::api::{Api, DeleteParams, ObjectMeta, PostParams, Preconditions};
use api::kube::{Resource, ResourceExt};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::BootstrapError;
use crate::Context;

/// The ConfigMap's key.
const INFORMATION: &str = "lock-information";

/// The name of the lock of `cluster`.
pub(super) fn name(cluster: &str) -> String {
    format!("{cluster}-lock")
}

/// Takes the lock of `cluster` for `machine`; false when another machine that exists holds it.
pub(super) async fn acquire(
    locks: &Api<ConfigMap>,
    cluster: &Cluster,
    machine: &Machine,
    context: &Context,
) -> Result<bool, BootstrapError> {
    let name = name(&cluster.name_any());
    let lock = lock(cluster, machine);
    match locks.create(&PostParams::default(), &lock).await {
        Ok(_) => return Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(source) => {
            return Err(BootstrapError::api(format!("creating configmap {name}"))(
                source,
            ));
        }
    }
    let known = locks.get_opt(&name).await;
    let Some(known) = known.map_err(BootstrapError::api(format!("reading configmap {name}")))?
    else {
        return Ok(false);
    };
    let holder = holder(&known);
    if holder.as_deref() == Some(machine.name_any().as_str()) {
        return Ok(true);
    }
    let machines: Api<Machine> = context.api(&machine.namespace().unwrap_or_default());
    let alive = match &holder {
        Some(holder) => machines
            .get_opt(holder)
            .await
            .map_err(BootstrapError::api(format!("reading machine {holder}")))?
            .is_some(),
        // Nobody can release what nobody holds.
        None => false,
    };
    if !alive {
        delete(locks, &known).await?;
    }
    Ok(false)
}

/// Clusters whose lock is known to be gone: it is deleted once, not looked for on every reconcile.
#[derive(Debug, Default)]
pub(super) struct Released {
    uids: Mutex<HashSet<String>>,
}

impl Released {
    /// Deletes the lock of `cluster`, unless that was done before.
    pub(super) async fn release(
        &self,
        locks: &Api<ConfigMap>,
        cluster: &Cluster,
    ) -> Result<(), BootstrapError> {
        let uid = cluster.uid().unwrap_or_default();
        if self.uids.lock().contains(&uid) {
            return Ok(());
        }
        let name = name(&cluster.name_any());
        let known = locks.get_opt(&name).await;
        if let Some(known) =
            known.map_err(BootstrapError::api(format!("reading configmap {name}")))?
        {
            delete(locks, &known).await?;
        }
        self.uids.lock().insert(uid);
        Ok(())
    }
}

async fn delete(locks: &Api<ConfigMap>, lock: &ConfigMap) -> Result<(), BootstrapError> {
    let name = lock.name_any();
    // Only the very lock that was seen: a new one has a new holder.
    let preconditions = Preconditions {
        uid: lock.uid(),
        resource_version: lock.resource_version(),
    };
    let params = DeleteParams {
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    };
    match locks.delete(&name, &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(source) => Err(BootstrapError::api(format!("deleting configmap {name}"))(
            source,
        )),
    }
}

fn lock(cluster: &Cluster, machine: &Machine) -> ConfigMap {
    let information = json!({"machineName": machine.name_any()}).to_string();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name(&cluster.name_any())),
            labels: Some(BTreeMap::from([(
                api::names::CLUSTER_NAME_LABEL.to_owned(),
                cluster.name_any(),
            )])),
            owner_references: Some(vec![OwnerReference {
                api_version: Cluster::api_version(&()).into_owned(),
                kind: Cluster::kind(&()).into_owned(),
                name: cluster.name_any(),
                uid: cluster.uid().unwrap_or_default(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(INFORMATION.to_owned(), information)])),
        ..ConfigMap::default()
    }
}

fn holder(lock: &ConfigMap) -> Option<String> {
    let information: Value = serde_json::from_str(lock.data.as_ref()?.get(INFORMATION)?).ok()?;
    information.get("machineName")?.as_str().map(str::to_owned)
}
