//! Lock for `kubeadm init`: the ConfigMap `<cluster>-lock`, created while the Cluster is not initialized.

use std::collections::BTreeMap;

use api::core::v1beta2::{Cluster, Machine};
use api::k8s_openapi::api::core::v1::ConfigMap;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use api::kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use api::kube::{Client, Resource, ResourceExt};
use operator::client::Api;
use serde_json::{Value, json};

use super::BootstrapError;
use crate::feed::Memory;

/// Data key of the machine with the lock.
const INFORMATION: &str = "lock-information";

/// Name of the lock of `cluster`.
pub(super) fn name(cluster: &str) -> String {
    format!("{cluster}-lock")
}

/// Acquires the lock of `cluster` for `machine`. Returns false if another existing [`Machine`] holds the lock, or the
/// cluster has been initialized.
pub(super) async fn acquire(
    client: &Client,
    cluster: &Cluster,
    machine: &Machine,
) -> Result<bool, BootstrapError> {
    let namespace = machine.namespace().unwrap_or_default();
    let locks: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let Some(lock) = take(&locks, cluster, machine).await? else {
        return Ok(false);
    };
    // `cluster` is from a cache, and the lock is deleted once the cluster is initialized: a missing lock may also
    // mean a complete initialization.
    if is_initialized(client, cluster).await? {
        delete(&locks, &lock).await?;
        return Ok(false);
    }
    Ok(true)
}

/// Lock, if `machine` holds it now.
async fn take(
    locks: &Api<ConfigMap>,
    cluster: &Cluster,
    machine: &Machine,
) -> Result<Option<ConfigMap>, BootstrapError> {
    let name = name(&cluster.name_any());
    let wanted = lock(cluster, machine);
    match locks.create(&PostParams::default(), &wanted).await {
        Ok(created) => return Ok(Some(created)),
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
        return Ok(None);
    };
    let holder = holder(&known);
    if holder.as_deref() == Some(machine.name_any().as_str()) {
        return Ok(Some(known));
    }
    let machines: Api<Machine> = Api::namespaced(
        locks.clone().into_client(),
        &machine.namespace().unwrap_or_default(),
    );
    let exists = match &holder {
        Some(holder) => machines
            .get_opt(holder)
            .await
            .map_err(BootstrapError::api(format!("reading machine {holder}")))?
            .is_some(),
        // A lock without a machine would never be released.
        None => false,
    };
    if !exists {
        delete(locks, &known).await?;
    }
    Ok(None)
}

/// True if the [`Cluster`], read live, is initialized, deleted or replaced by one with the same name.
async fn is_initialized(client: &Client, cluster: &Cluster) -> Result<bool, BootstrapError> {
    let name = cluster.name_any();
    let clusters: Api<Cluster> =
        Api::namespaced(client.clone(), &cluster.namespace().unwrap_or_default());
    let current = clusters.get_opt(&name).await;
    let current = current.map_err(BootstrapError::api(format!("reading Cluster {name}")))?;
    Ok(current.is_none_or(|current| {
        current.uid() != cluster.uid() || current.control_plane_initialized()
    }))
}

/// Deletes the lock of `cluster`, unless `released` has the [`Cluster`].
pub(super) async fn release(
    locks: &Api<ConfigMap>,
    cluster: &Cluster,
    released: &Memory<Cluster, ()>,
) -> Result<(), BootstrapError> {
    if released.get(cluster).is_some() {
        return Ok(());
    }
    let name = name(&cluster.name_any());
    let known = locks.get_opt(&name).await;
    if let Some(known) = known.map_err(BootstrapError::api(format!("reading configmap {name}")))? {
        delete(locks, &known).await?;
    }
    released.insert(cluster, ());
    Ok(())
}

async fn delete(locks: &Api<ConfigMap>, lock: &ConfigMap) -> Result<(), BootstrapError> {
    let name = lock.name_any();
    // The preconditions exclude a new lock of another machine.
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

#[cfg(test)]
mod tests;
