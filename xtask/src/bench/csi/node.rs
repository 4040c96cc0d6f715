//! Node half: times on loop devices, and memory.

use std::path::Path;
use std::time::Instant;

use csi_spec::{
    NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest,
    NodeUnstageVolumeRequest,
};
use grpc::{Client, Error};
use serde::Serialize;

use super::load::{attach, capability, create};
use super::percentile;
use crate::csi::disks::Disks;
use crate::csi::driver::{Driver, Half, PATIENCE, Program};
use crate::csi::world::World;

/// Number of volumes with a file system, staged in turn.
const VOLUMES: usize = 10;

/// Figures, in milliseconds and megabytes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figures {
    /// Median of the stages that make a file system.
    pub(super) format_median: f64,
    pub(super) stage: Times,
    pub(super) publish: Times,
    /// Resident memory afterwards: all, and without a file behind it.
    pub(super) rss: (f64, f64),
}

/// Milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Times {
    pub(super) median: f64,
    pub(super) percentile_99: f64,
}

impl Times {
    fn from_values(mut values: Vec<f64>) -> Self {
        Self {
            median: percentile(&mut values, 0.5),
            percentile_99: percentile(&mut values, 0.99),
        }
    }
}

/// Stages and publishes volumes `count` times.
pub(super) async fn measure(
    binary: &Path,
    program: &Program,
    count: usize,
) -> anyhow::Result<Figures> {
    crate::report(&format!("{}, node", program.name()));
    let mut world = World::open(binary, &[])?;
    let server = world.server("node-0")?;
    let controller = Driver::start(program, Half::Controller, &world, "csi", PATIENCE).await?;
    let node = Driver::start(program, Half::Node, &world, "node", PATIENCE).await?;
    let mut disks = Disks::new(&world, &server)?;
    let mut volumes = Vec::new();
    for number in 0..VOLUMES {
        let volume = create(controller.client(), &format!("pvc-{number}")).await?;
        let context = attach(controller.client(), &volume, &server).await?;
        volumes.push(Volume {
            staging: world
                .directory()
                .join(format!("stage-{number}"))
                .to_string_lossy()
                .into_owned(),
            target: world
                .directory()
                .join(format!("pod-{number}/mount"))
                .to_string_lossy()
                .into_owned(),
            volume,
            context,
        });
    }
    disks.follow(&mut world)?;
    // The kubelet creates these directories.
    for volume in &volumes {
        std::fs::create_dir_all(&volume.staging)?;
        if let Some(pod) = Path::new(&volume.target).parent() {
            std::fs::create_dir_all(pod)?;
        }
    }
    let (mut formats, mut stages, mut publishes) = (Vec::new(), Vec::new(), Vec::new());
    for volume in &volumes {
        formats.push(volume.stage(node.client()).await?);
        volume.unstage(node.client()).await?;
    }
    for number in 0..count {
        let volume = &volumes[number % VOLUMES];
        stages.push(volume.stage(node.client()).await?);
        publishes.push(volume.publish(node.client()).await?);
        volume.unpublish(node.client()).await?;
        volume.unstage(node.client()).await?;
    }
    Ok(Figures {
        format_median: percentile(&mut formats, 0.5),
        stage: Times::from_values(stages),
        publish: Times::from_values(publishes),
        rss: node.memory()?,
    })
}

struct Volume {
    volume: String,
    context: std::collections::BTreeMap<String, String>,
    staging: String,
    target: String,
}

impl Volume {
    async fn stage(&self, client: &Client) -> Result<f64, Error> {
        let request = NodeStageVolumeRequest {
            volume_id: self.volume.clone(),
            publish_context: self.context.clone(),
            staging_target_path: self.staging.clone(),
            volume_capability: Some(capability("ext4")),
            ..NodeStageVolumeRequest::default()
        };
        let begun = Instant::now();
        client.call(&request).await?;
        Ok(begun.elapsed().as_secs_f64() * 1000.0)
    }

    async fn publish(&self, client: &Client) -> Result<f64, Error> {
        let request = NodePublishVolumeRequest {
            volume_id: self.volume.clone(),
            publish_context: self.context.clone(),
            staging_target_path: self.staging.clone(),
            target_path: self.target.clone(),
            volume_capability: Some(capability("ext4")),
            ..NodePublishVolumeRequest::default()
        };
        let begun = Instant::now();
        client.call(&request).await?;
        Ok(begun.elapsed().as_secs_f64() * 1000.0)
    }

    async fn unpublish(&self, client: &Client) -> Result<(), Error> {
        let request = NodeUnpublishVolumeRequest {
            volume_id: self.volume.clone(),
            target_path: self.target.clone(),
        };
        client.call(&request).await.map(drop)
    }

    async fn unstage(&self, client: &Client) -> Result<(), Error> {
        let request = NodeUnstageVolumeRequest {
            volume_id: self.volume.clone(),
            staging_target_path: self.staging.clone(),
        };
        client.call(&request).await.map(drop)
    }
}
