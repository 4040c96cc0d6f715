//! What is known of etcd's members.
//!
//! The controller asks through [`EtcdView`]. The implementation here, [`MirrorPods`], judges by what the
//! workload's API server shows: an `etcd-<node>` mirror Pod is a member, a ready one on an existing
//! Node a healthy member. It cannot see learners, alarms or leadership and cannot remove a member from
//! etcd itself; that takes a connection to etcd (port-forward), which is planned as a second
//! implementation. Until then, on a real etcd, the member of a deleted machine stays in the member list
//! and has to be removed by hand (`etcdctl member remove`) after a scale down or a replacement.

use std::fmt::Debug;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::{Node, Pod};
use api::kube::{Client, ResourceExt};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::ControlPlaneError;
use super::health::{self, Component};
use super::quorum::Members;

/// One member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The Node that it runs on, which is also its name.
    pub node: String,
    /// Whether it works.
    pub healthy: bool,
    /// Whether it does not vote yet.
    pub learner: bool,
}

/// What the view may look at without asking anybody.
#[derive(Clone, Copy)]
pub struct Workload<'a> {
    /// The workload cluster.
    pub client: &'a Client,
    /// Static Pods of the control plane.
    pub pods: &'a [Arc<Pod>],
    /// Nodes.
    pub nodes: &'a [Arc<Node>],
}

/// What is known of, and done to, etcd's members.
pub trait EtcdView: Debug + Send + Sync {
    /// The members.
    fn members<'a>(
        &'a self,
        workload: Workload<'a>,
    ) -> BoxFuture<'a, Result<Vec<Member>, ControlPlaneError>>;

    /// Removes the member on `node`, after handing leadership to another if it leads. Called again for
    /// a member that is gone, it does nothing.
    fn remove<'a>(
        &'a self,
        workload: Workload<'a>,
        node: &'a str,
    ) -> BoxFuture<'a, Result<(), ControlPlaneError>>;
}

/// Judges by mirror Pods and Nodes; see the module's documentation for what that cannot see or do.
#[derive(Clone, Copy, Debug, Default)]
pub struct MirrorPods;

impl EtcdView for MirrorPods {
    fn members<'a>(
        &'a self,
        workload: Workload<'a>,
    ) -> BoxFuture<'a, Result<Vec<Member>, ControlPlaneError>> {
        futures::future::ready(Ok(judge(workload.pods, workload.nodes))).boxed()
    }

    fn remove<'a>(
        &'a self,
        _workload: Workload<'a>,
        node: &'a str,
    ) -> BoxFuture<'a, Result<(), ControlPlaneError>> {
        tracing::info!(
            node,
            "the etcd member of this node is left to etcd: no connection to it"
        );
        futures::future::ready(Ok(())).boxed()
    }
}

fn judge(pods: &[Arc<Pod>], nodes: &[Arc<Node>]) -> Vec<Member> {
    let member = |pod: &Arc<Pod>| {
        let node = health::node_of(pod, Component::Etcd)?.to_owned();
        let exists = nodes.iter().any(|known| known.name_any() == node);
        let healthy = exists && health::is_ready(pod);
        Some(Member {
            node,
            healthy,
            learner: false,
        })
    };
    pods.iter().filter_map(member).collect()
}

/// The members, counted.
pub fn count(members: &[Member]) -> Members {
    Members {
        voters: members.iter().filter(|member| !member.learner).count(),
        unhealthy: members
            .iter()
            .filter(|member| !member.learner && !member.healthy)
            .count(),
        learners: members.iter().filter(|member| member.learner).count(),
    }
}

#[cfg(test)]
mod tests;
