//! Labels, annotations and finalizers of Cluster API (reference: its contract documents).

/// Label: the Cluster that an object belongs to.
pub const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Label: marks control plane Machines and their Nodes' objects; the value is empty.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Label: the control plane object that created a Machine.
pub const CONTROL_PLANE_NAME_LABEL: &str = "cluster.x-k8s.io/control-plane-name";
/// Label: the MachineDeployment that a Machine or MachineSet belongs to.
pub const DEPLOYMENT_NAME_LABEL: &str = "cluster.x-k8s.io/deployment-name";
/// Label: the MachineSet that a Machine belongs to.
pub const SET_NAME_LABEL: &str = "cluster.x-k8s.io/set-name";
/// Label: the hash that distinguishes the MachineSets of a MachineDeployment.
pub const TEMPLATE_HASH_LABEL: &str = "machine-template-hash";
/// Annotation of a MachineSet: the number of its template in the history of its MachineDeployment.
pub const REVISION_ANNOTATION: &str = "machinedeployment.clusters.x-k8s.io/revision";
/// Label: the value that a manager's `--watch-filter` selects.
pub const WATCH_FILTER_LABEL: &str = "cluster.x-k8s.io/watch-filter";
/// Label on CRDs and components: their provider.
pub const PROVIDER_LABEL: &str = "cluster.x-k8s.io/provider";
/// Label: `clusterctl` has to do with the object; without it, it does not see a CRD.
pub const CLUSTERCTL_LABEL: &str = "clusterctl.cluster.x-k8s.io";
/// Label: `clusterctl move` moves this object, too.
pub const MOVE_LABEL: &str = "clusterctl.cluster.x-k8s.io/move";
/// Label: `clusterctl move` moves this object and everything that it owns.
pub const MOVE_HIERARCHY_LABEL: &str = "clusterctl.cluster.x-k8s.io/move-hierarchy";

/// Annotation: controllers do not reconcile the object.
pub const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";
/// Annotation: a provider is not ready for a move of the object yet.
pub const BLOCK_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// Annotation: the object is deleted because it has moved, for the webhooks of providers.
pub const DELETE_FOR_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
/// Annotation: the object takes part in a `ferrostack move` that has not ended.
pub const MOVE_ANNOTATION: &str = "ferrostack.dev/move";
/// Annotation of a KubeadmControlPlane whose etcd had lost its quorum: the Machine whose etcd was restarted alone. The
/// other Machines are deleted, and the annotation is removed after them.
pub const ETCD_SURVIVOR_ANNOTATION: &str = "ferrostack.dev/etcd-survivor";
/// Annotation of an OpenStackCluster, set by users or by `ferrostack adopt`: with the value `true`, what
/// cluster-api-provider-openstack has created for the cluster is taken over. It stays afterwards.
pub const ADOPT_ANNOTATION: &str = "ferrostack.dev/adopt";
/// Annotation: the infrastructure is managed externally.
pub const MANAGED_BY_ANNOTATION: &str = "cluster.x-k8s.io/managed-by";
/// Annotation: scaling down deletes this Machine first.
pub const DELETE_MACHINE_ANNOTATION: &str = "cluster.x-k8s.io/delete-machine";
/// Annotation: a MachineHealthCheck marks this Machine as unhealthy.
pub const REMEDIATE_MACHINE_ANNOTATION: &str = "cluster.x-k8s.io/remediate-machine";
/// Annotation: no MachineHealthCheck checks this Machine.
pub const SKIP_REMEDIATION_ANNOTATION: &str = "cluster.x-k8s.io/skip-remediation";
/// Annotation of a control plane machine, set by users, and of its KubeadmConfig: when the certificate of its API server
/// expires, as RFC 3339.
pub const CERTIFICATES_EXPIRY_ANNOTATION: &str = "machine.cluster.x-k8s.io/certificates-expiry";
/// Annotation of a Cluster: the uid of the namespace kube-system in it, by which the programs in it mark what they create in
/// the cloud.
pub const WORKLOAD_UID_ANNOTATION: &str = "ferrostack.dev/workload-cluster-uid";
/// Annotation of a Cluster, set by users: what of the programs in it is deleted with it ([`Wanted`](crate::deletion::Wanted)).
pub const DELETE_WITH_CLUSTER_ANNOTATION: &str = "ferrostack.dev/delete-with-cluster";
/// Annotation of a Cluster that is being deleted: what became of its Services and claims in the workload cluster, one word.
/// From then on its machines go.
pub const EMPTIED_ANNOTATION: &str = "ferrostack.dev/emptied";
/// The name of the CSI driver of Cinder, in PersistentVolumes and StorageClasses.
pub const CINDER_DRIVER: &str = "cinder.csi.openstack.org";
/// Annotation: the identity of an OpenStackCluster, a UUID that marks all of its resources in the cloud.
pub const CLUSTER_IDENTITY_ANNOTATION: &str =
    "infrastructure.cluster.x-k8s.io/ferrostack-cluster-id";
/// Annotation: the identity of an OpenStackMachine, a UUID that marks all of its resources in the cloud.
pub const MACHINE_IDENTITY_ANNOTATION: &str =
    "infrastructure.cluster.x-k8s.io/ferrostack-machine-id";
/// Annotation: the identity of an OpenStackFloatingIPPool, a UUID that marks the floating IPs that it has allocated.
pub const POOL_IDENTITY_ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/ferrostack-pool-id";
/// Annotation: the template that an object was cloned from.
pub const CLONED_FROM_NAME_ANNOTATION: &str = "cluster.x-k8s.io/cloned-from-name";
/// Annotation: the kind and group of the template that an object was cloned from.
pub const CLONED_FROM_GROUP_KIND_ANNOTATION: &str = "cluster.x-k8s.io/cloned-from-groupkind";

/// The type of all Secrets of Cluster API.
pub const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

/// True if `text` is a UUID as Kubernetes writes them: lower case, with hyphens.
#[must_use]
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.char_indices().all(|(at, letter)| match at {
            8 | 13 | 18 | 23 => letter == '-',
            _ => matches!(letter, '0'..='9' | 'a'..='f'),
        })
}
