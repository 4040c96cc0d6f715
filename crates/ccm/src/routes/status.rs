//! Condition `NetworkUnavailable` of Nodes, and events about routes that cannot be created.

use std::sync::Arc;

use api::k8s_openapi::api::core::v1::{Node, NodeCondition};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use api::k8s_openapi::jiff::Timestamp;
use futures::future::join_all;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use operator::client::Api;
use serde_json::json;

use crate::context::{Context, Error};

const CONDITION: &str = "NetworkUnavailable";
/// Maximum number of concurrent writes.
const CONCURRENCY: usize = 10;

/// Reachability of the pods of a node, in the form of the Go manager's condition.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) node: Arc<Node>,
    pub(crate) has_routes: bool,
    pub(crate) problem: Option<String>,
}

impl Status {
    /// Condition to write, if different from the Node's.
    pub(crate) fn condition(&self, now: Timestamp) -> Option<NodeCondition> {
        let (status, reason, message) = match self.has_routes {
            true => ("False", "RouteCreated", "RouteController created a route"),
            false => (
                "True",
                "NoRouteCreated",
                "RouteController failed to create a route",
            ),
        };
        let known = self.node.status.as_ref();
        let mut known = known
            .and_then(|s| s.conditions.as_ref())
            .into_iter()
            .flatten();
        if known.any(|known| known.type_ == CONDITION && known.status == status) {
            return None;
        }
        Some(NodeCondition {
            type_: CONDITION.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: Some(Time(now)),
            last_heartbeat_time: Some(Time(now)),
        })
    }
}

/// Writes the changed conditions.
pub(crate) async fn publish(ctx: &Context, all: &[Status]) -> Result<(), Error> {
    for some in all.chunks(CONCURRENCY) {
        let writes = some.iter().map(|status| write(ctx, status));
        let results = join_all(writes).await;
        results.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(())
}

async fn write(ctx: &Context, status: &Status) -> Result<(), Error> {
    let node = &*status.node;
    if let Some(problem) = &status.problem {
        tracing::warn!(node = node.name_any(), "{problem}");
        let recorder = &ctx.recorder;
        recorder
            .warning(node, "FailedToCreateRoute", "CreateRoute", problem.clone())
            .await;
    }
    let Some(condition) = status.condition(Timestamp::now()) else {
        return Ok(());
    };
    // A strategic merge replaces the condition of this type alone.
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    let nodes = Api::<Node>::all(ctx.client.clone());
    let written = nodes
        .patch_status(&node.name_any(), &PatchParams::default(), &patch)
        .await;
    match written {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        result => result
            .map(drop)
            .map_err(Error::kubernetes("writing the condition of the Node")),
    }
}
