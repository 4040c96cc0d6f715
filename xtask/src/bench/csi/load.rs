//! Calls of sidecars, many at a time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::volume_capability::{AccessMode, AccessType, MountVolume};
use csi_spec::{
    CapacityRange, ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest,
    CreateVolumeRequest, DeleteVolumeRequest, VolumeCapability,
};
use grpc::{Client, Error, Method};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Number of repetitions of a failed call, as by a sidecar, and the pause in between.
const TRIES: (usize, Duration) = (60, Duration::from_secs(1));

/// [`Future`] for one volume.
type Task<T> = Pin<Box<dyn Future<Output = anyhow::Result<T>> + Send>>;

/// [`VolumeCapability`] of a file system for one node.
pub(super) fn capability(file_system: &str) -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter as i32,
        }),
        access_type: Some(AccessType::Mount(MountVolume {
            fs_type: file_system.to_owned(),
            ..MountVolume::default()
        })),
    }
}

/// Repeats a call until success.
async fn until_done<M: Method>(client: &Client, request: &M) -> anyhow::Result<M::Response> {
    let mut last = String::new();
    for _ in 0..TRIES.0 {
        match client.call(request).await {
            Ok(answer) => return Ok(answer),
            Err(error @ (Error::Status(_) | Error::Timeout(_))) => last = error.to_string(),
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(TRIES.1).await;
    }
    bail!(
        "{}: it does not succeed, however often it is repeated: {last}",
        M::PATH
    )
}

pub(super) async fn create(client: &Client, name: &str) -> anyhow::Result<String> {
    let request = CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(CapacityRange {
            required_bytes: 1 << 30,
            limit_bytes: 0,
        }),
        volume_capabilities: vec![capability("")],
        ..CreateVolumeRequest::default()
    };
    let answer = until_done(client, &request).await?;
    Ok(answer.volume.unwrap_or_default().volume_id)
}

pub(super) async fn attach(
    client: &Client,
    volume: &str,
    node: &str,
) -> anyhow::Result<std::collections::BTreeMap<String, String>> {
    let request = ControllerPublishVolumeRequest {
        volume_id: volume.to_owned(),
        node_id: node.to_owned(),
        volume_capability: Some(capability("")),
        ..ControllerPublishVolumeRequest::default()
    };
    let answer = until_done(client, &request).await?;
    Ok(answer.publish_context)
}

pub(super) async fn detach(client: &Client, volume: &str, node: &str) -> anyhow::Result<()> {
    let request = ControllerUnpublishVolumeRequest {
        volume_id: volume.to_owned(),
        node_id: node.to_owned(),
        ..ControllerUnpublishVolumeRequest::default()
    };
    until_done(client, &request).await?;
    Ok(())
}

pub(super) async fn delete(client: &Client, volume: &str) -> anyhow::Result<()> {
    let request = DeleteVolumeRequest {
        volume_id: volume.to_owned(),
        ..DeleteVolumeRequest::default()
    };
    until_done(client, &request).await?;
    Ok(())
}

/// Runs a task for each number, `at_once` at a time; returns the results in order, and the milliseconds of each.
pub(super) async fn each<T: Send + 'static>(
    count: usize,
    at_once: usize,
    task: impl Fn(usize) -> Task<T>,
) -> anyhow::Result<(Vec<T>, Vec<f64>)> {
    let permits = Arc::new(Semaphore::new(at_once));
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let (permits, task) = (Arc::clone(&permits), task(number));
        tasks.spawn(async move {
            let _permit = permits.acquire_owned().await?;
            let begun = Instant::now();
            let result = task.await?;
            let milliseconds = begun.elapsed().as_secs_f64() * 1000.0;
            anyhow::Ok((number, result, milliseconds))
        });
    }
    let mut done = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        done.push(ended??);
    }
    done.sort_by_key(|(number, _, _)| *number);
    let times = done.iter().map(|(_, _, time)| *time).collect();
    let results = done.into_iter().map(|(_, result, _)| result).collect();
    Ok((results, times))
}
