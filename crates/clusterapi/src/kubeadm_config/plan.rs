//! Next step of a KubeadmConfig: a pure function of the observed state.

use api::bootstrap::v1beta2::KubeadmConfig;
use api::core::v1beta2::Cluster;

use super::{Subject, status};
use crate::update;

/// Input of the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// True if the Cluster or the object is paused.
    pub(super) paused: bool,
    /// True if the status of the config reports existing data.
    pub(super) has_data: bool,
    /// True if the Machine has a data Secret (of this config before a move, or of a user).
    pub(super) machine_has_data: bool,
    /// True if the Machine has a Node.
    pub(super) has_node: bool,
    /// True for a control plane machine.
    pub(super) control_plane: bool,
    /// True if the infrastructure of the Cluster is provisioned.
    pub(super) infrastructure: bool,
    /// True if the control plane of the Cluster is initialized.
    pub(super) initialized: bool,
    /// True if the endpoint of the Cluster is set.
    pub(super) endpoint: bool,
    /// True if the spec is for joining only: such a machine never initializes a cluster.
    pub(super) joins_only: bool,
}

impl Facts {
    pub(super) fn from_subject(subject: &Subject) -> Self {
        let Subject {
            config,
            machine,
            cluster,
            ..
        } = subject;
        let annotations = config.metadata.annotations.as_ref();
        let paused = annotations.is_some_and(|a| a.contains_key(api::names::PAUSED_ANNOTATION));
        // Data and Node of a machine under an update in place are of its former config.
        let is_of_former = update::is_under_way(machine);
        Self {
            paused: cluster.is_paused() || paused,
            has_data: status::has_data(config),
            machine_has_data: !is_of_former && machine.spec.bootstrap.data_secret_name.is_some(),
            has_node: !is_of_former && machine.node_name().is_some(),
            control_plane: machine.is_control_plane(),
            infrastructure: cluster.infrastructure_provisioned(),
            initialized: cluster.control_plane_initialized(),
            endpoint: cluster.endpoint().is_some(),
            joins_only: joins_only(config, cluster),
        }
    }
}

/// True if a config is for joining only: with a join configuration and without an init configuration. Without a
/// control plane object, a cluster configuration must be absent too, since it alone suffices to initialize a machine,
/// as upstream.
fn joins_only(config: &KubeadmConfig, cluster: &Cluster) -> bool {
    let spec = &config.spec;
    let is_join = spec.join_configuration.is_some() && spec.init_configuration.is_none();
    is_join && (spec.cluster_configuration.is_none() || cluster.spec.control_plane_ref.is_some())
}

/// Awaited change of the Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The infrastructure of the Cluster.
    Infrastructure,
    /// The initialization of the control plane.
    ControlPlane,
    /// The endpoint of the API server.
    Endpoint,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// No step, because the config is paused.
    Paused,
    /// Wait for a change.
    Wait(Wait),
    /// Restore the status from the Machine.
    Restore,
    /// No step, because the machine has a Node.
    Done,
    /// Extend the token.
    Refresh,
    /// Write the data of the first machine.
    Init,
    /// Write the data of any other machine.
    Join {
        /// True for a control plane machine.
        control_plane: bool,
    },
}

/// Decides the next step.
pub(super) fn decide(facts: &Facts) -> Plan {
    if facts.paused {
        return Plan::Paused;
    }
    if facts.has_data {
        return if facts.has_node {
            Plan::Done
        } else {
            Plan::Refresh
        };
    }
    if facts.machine_has_data {
        return Plan::Restore;
    }
    if !facts.infrastructure {
        return Plan::Wait(Wait::Infrastructure);
    }
    if !facts.endpoint {
        return Plan::Wait(Wait::Endpoint);
    }
    match (facts.initialized, facts.control_plane) {
        // Even with an init configuration: a second `kubeadm init` would create a second cluster, with a separate etcd,
        // behind the same endpoint.
        (true, control_plane) => Plan::Join { control_plane },
        (false, true) if !facts.joins_only => Plan::Init,
        (false, _) => Plan::Wait(Wait::ControlPlane),
    }
}

#[cfg(test)]
mod tests;
