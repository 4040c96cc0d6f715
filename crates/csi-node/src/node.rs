//! Calls of the CSI node service.
//!
//! A call is parsed, takes the lock of its volume, and does its blocking work on a thread of its own. The work goes on
//! after the caller has left; the next call sees the result of each step in mountinfo and on the device.

mod answers;
mod expand;
mod health;
mod layers;
mod lock;
mod publish;
mod request;
mod stage;
mod stats;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use csi_spec::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetCapabilitiesRequest,
    NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse,
    NodeGetVolumeHealthRequest, NodeGetVolumeHealthResponse, NodeGetVolumeStatsRequest,
    NodeGetVolumeStatsResponse, NodePublishVolumeRequest, NodePublishVolumeResponse,
    NodeServiceCapability, NodeStageVolumeRequest, NodeStageVolumeResponse,
    NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse, NodeUnstageVolumeRequest,
    NodeUnstageVolumeResponse, Reply, Topology, node_service_capability as capability,
};
use grpc::{Code, Context, Status};
use tokio::time::Instant;

use crate::context::{DRIVER, ZONE};
use crate::device::Devices;
use crate::limits;
use crate::metadata::{Metadata, label};
use crate::mountinfo;

/// Wait for a device in a call without a deadline.
const PATIENCE: Duration = Duration::from_secs(60);
/// Share of the caller's time for all work but the wait for a device.
const RESERVE: Duration = Duration::from_secs(2);

/// Settings of the [`Node`] service.
pub struct Options {
    /// `node-volume-attach-limit` of cloud.conf; `None` for a limit computed by [`limits::volumes`].
    pub volume_limit: Option<i64>,
    /// True if the topology of the node has its availability zone.
    pub topology: bool,
    /// Further labels of the topology, by key.
    pub additional_topology: BTreeMap<String, String>,
    /// Directory of device nodes: `/dev`.
    pub dev: PathBuf,
    /// True to serve the alpha part of the specification: the health of volumes.
    pub alpha: bool,
}

/// CSI node service. Clones share the locks.
#[derive(Clone)]
pub struct Node(Arc<Shared>);

struct Shared {
    options: Options,
    devices: Arc<dyn Devices>,
    metadata: Arc<Metadata>,
    locks: lock::Locks,
    /// Locks of calls that only read. Such a call may hang with a lost device, and must not block the call that
    /// unmounts the volume.
    looks: lock::Locks,
}

/// Environment of the blocking work of a call.
struct Machine<'a> {
    devices: &'a dyn Devices,
    options: &'a Options,
    /// Longest wait for a device.
    patience: Duration,
}

impl Node {
    /// Service for these disks, with [`Metadata`] as the source of id and zone.
    pub fn new(options: Options, devices: Arc<dyn Devices>, metadata: Arc<Metadata>) -> Self {
        Self(Arc::new(Shared {
            options,
            devices,
            metadata,
            locks: lock::Locks::default(),
            looks: lock::Locks::default(),
        }))
    }

    /// Runs the work of a call on a blocking thread while holding the lock of the volume. A second call for the volume
    /// gets `ABORTED`.
    fn locked<P, T>(
        &self,
        context: Context,
        (volume, locks): (&str, &lock::Locks),
        parsed: P,
        work: fn(&Machine<'_>, P) -> Result<T, Status>,
    ) -> Reply<'static, T>
    where
        P: Send + 'static,
        T: Send + 'static,
    {
        let shared = Arc::clone(&self.0);
        let taken = locks.take(volume);
        let patience = context.deadline.map_or(PATIENCE, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            left.saturating_sub(RESERVE).min(PATIENCE)
        });
        let volume = volume.to_owned();
        Box::pin(async move {
            let Some(lock) = taken else {
                return Err(Status::new(
                    Code::Aborted,
                    format!("volume {volume}: another call is at work on it: call again"),
                ));
            };
            let work = move || {
                let _lock = lock;
                let machine = Machine {
                    devices: shared.devices.as_ref(),
                    options: &shared.options,
                    patience,
                };
                work(&machine, parsed)
            };
            let done = tokio::task::spawn_blocking(work).await;
            done.unwrap_or_else(|error| Err(Status::new(Code::Internal, error.to_string())))
        })
    }

    async fn info(&self) -> Result<NodeGetInfoResponse, Status> {
        let facts = self.0.metadata.facts().await;
        let facts = facts.map_err(|error| Status::new(Code::Unavailable, error.to_string()))?;
        let mut segments = self.0.options.additional_topology.clone();
        let zone = label(&facts.zone);
        if self.0.options.topology && !zone.is_empty() {
            segments.insert(ZONE.to_owned(), zone);
        }
        let mounts = mountinfo::read()
            .map_err(|error| Status::new(Code::Unavailable, format!("mountinfo: {error}")))?;
        let ours = layers::volumes_in_use(&mounts);
        let buses = self.0.devices.buses();
        Ok(NodeGetInfoResponse {
            node_id: facts.id,
            max_volumes_per_node: limits::volumes(self.0.options.volume_limit, &buses, ours),
            accessible_topology: (!segments.is_empty()).then_some(Topology { segments }),
        })
    }
}

/// Reply to a call with an invalid request.
fn refused<T: Send + 'static>(status: Status) -> Reply<'static, T> {
    Box::pin(futures::future::ready(Err(status)))
}

/// Parses a request, then runs the work by [`Node::locked`].
macro_rules! work {
    ($node:expr, $locks:ident, $context:expr, $request:expr, $parse:path, $work:path) => {
        match $parse($request) {
            Ok(parsed) => {
                let volume = parsed.volume.clone();
                $node.locked($context, (&volume, &$node.0.$locks), parsed, $work)
            }
            Err(status) => refused(status),
        }
    };
}

impl csi_spec::Node for Node {
    fn node_stage_volume(
        &self,
        context: Context,
        request: NodeStageVolumeRequest,
    ) -> Reply<'_, NodeStageVolumeResponse> {
        work!(
            self,
            locks,
            context,
            request,
            request::Stage::parse,
            stage::stage
        )
    }

    fn node_unstage_volume(
        &self,
        context: Context,
        request: NodeUnstageVolumeRequest,
    ) -> Reply<'_, NodeUnstageVolumeResponse> {
        work!(
            self,
            locks,
            context,
            request,
            request::Unstage::parse,
            stage::unstage
        )
    }

    fn node_publish_volume(
        &self,
        context: Context,
        request: NodePublishVolumeRequest,
    ) -> Reply<'_, NodePublishVolumeResponse> {
        work!(
            self,
            locks,
            context,
            request,
            request::Publish::parse,
            publish::publish
        )
    }

    fn node_unpublish_volume(
        &self,
        context: Context,
        request: NodeUnpublishVolumeRequest,
    ) -> Reply<'_, NodeUnpublishVolumeResponse> {
        work!(
            self,
            locks,
            context,
            request,
            request::Unpublish::parse,
            publish::unpublish
        )
    }

    fn node_get_volume_stats(
        &self,
        context: Context,
        request: NodeGetVolumeStatsRequest,
    ) -> Reply<'_, NodeGetVolumeStatsResponse> {
        work!(
            self,
            looks,
            context,
            request,
            request::Stats::parse,
            stats::stats
        )
    }

    fn node_get_volume_health(
        &self,
        context: Context,
        request: NodeGetVolumeHealthRequest,
    ) -> Reply<'_, NodeGetVolumeHealthResponse> {
        if !self.0.options.alpha {
            return refused(grpc::unimplemented(
                <NodeGetVolumeHealthRequest as grpc::Method>::PATH,
            ));
        }
        work!(
            self,
            looks,
            context,
            request,
            request::Health::parse,
            health::health
        )
    }

    fn node_expand_volume(
        &self,
        context: Context,
        request: NodeExpandVolumeRequest,
    ) -> Reply<'_, NodeExpandVolumeResponse> {
        work!(
            self,
            locks,
            context,
            request,
            request::Expand::parse,
            expand::expand
        )
    }

    fn node_get_capabilities(
        &self,
        _: Context,
        _: NodeGetCapabilitiesRequest,
    ) -> Reply<'_, NodeGetCapabilitiesResponse> {
        use capability::rpc::Type;
        let types = [
            Type::StageUnstageVolume,
            Type::GetVolumeStats,
            Type::ExpandVolume,
            Type::SingleNodeMultiWriter,
        ];
        let alpha = self.0.options.alpha.then_some(Type::GetVolumeHealth);
        let capabilities = types.into_iter().chain(alpha);
        let capabilities = capabilities.map(|one| NodeServiceCapability {
            r#type: Some(capability::Type::Rpc(capability::Rpc {
                r#type: one.into(),
            })),
        });
        let response = NodeGetCapabilitiesResponse {
            capabilities: capabilities.collect(),
        };
        Box::pin(futures::future::ready(Ok(response)))
    }

    fn node_get_info(&self, _: Context, _: NodeGetInfoRequest) -> Reply<'_, NodeGetInfoResponse> {
        Box::pin(self.info())
    }
}

/// True for paths of the kubelet for volumes of this driver, and of block volumes of any driver.
fn is_ours(path: &str) -> bool {
    path.contains(&format!("/kubernetes.io/csi/{DRIVER}/"))
        || path.contains("/kubernetes.io/csi/volumeDevices/")
}

#[cfg(test)]
mod tests;
