//! Labels, annotations and finalizers of Cluster API (reference: its contract documents), and of Ferrostack.

/// Label: name of the owning Cluster.
pub const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Label: marks control plane Machines and their Nodes' objects; the value is empty.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Label: name of the control plane object of a Machine.
pub const CONTROL_PLANE_NAME_LABEL: &str = "cluster.x-k8s.io/control-plane-name";
/// Label: name of the MachineDeployment of a Machine or MachineSet.
pub const DEPLOYMENT_NAME_LABEL: &str = "cluster.x-k8s.io/deployment-name";
/// Label: name of the MachineSet of a Machine.
pub const SET_NAME_LABEL: &str = "cluster.x-k8s.io/set-name";
/// Label: hash of the template, different for each MachineSet of a MachineDeployment.
pub const TEMPLATE_HASH_LABEL: &str = "machine-template-hash";
/// Annotation of a MachineSet: revision of the template in the history of the MachineDeployment.
pub const REVISION_ANNOTATION: &str = "machinedeployment.clusters.x-k8s.io/revision";
/// Label: value for a manager's `--watch-filter`.
pub const WATCH_FILTER_LABEL: &str = "cluster.x-k8s.io/watch-filter";
/// Label on CRDs and components: name of the provider.
pub const PROVIDER_LABEL: &str = "cluster.x-k8s.io/provider";
/// Label: makes an object part of the inventory of `clusterctl`; a CRD without the label is invisible to `clusterctl`.
pub const CLUSTERCTL_LABEL: &str = "clusterctl.cluster.x-k8s.io";
/// Label: `clusterctl move` also moves this object.
pub const MOVE_LABEL: &str = "clusterctl.cluster.x-k8s.io/move";
/// Label: `clusterctl move` moves this object and all its dependents.
pub const MOVE_HIERARCHY_LABEL: &str = "clusterctl.cluster.x-k8s.io/move-hierarchy";

/// Annotation: controllers do not reconcile the object.
pub const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";
/// Annotation: a provider is not ready for a move of the object yet.
pub const BLOCK_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// Annotation, for the webhooks of providers: the object is deleted after a move to another cluster.
pub const DELETE_FOR_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
/// Annotation: the object takes part in an unfinished `ferrostack move`.
pub const MOVE_ANNOTATION: &str = "ferrostack.dev/move";
/// Annotation of a KubeadmControlPlane after a loss of etcd's quorum: name of the Machine whose etcd
/// member was restarted alone. All other Machines are deleted, then the annotation is removed.
pub const ETCD_SURVIVOR_ANNOTATION: &str = "ferrostack.dev/etcd-survivor";
/// Annotation of an OpenStackCluster, set by users or by `ferrostack adopt`: with the value `true`, resources created
/// by cluster-api-provider-openstack are taken over. The annotation stays.
pub const ADOPT_ANNOTATION: &str = "ferrostack.dev/adopt";
/// Annotation of an OpenStackCluster, set by users: programs with an application credential of their own, such as
/// `cloud-controller-manager,cinder-csi-plugin`.
pub const APPLICATION_CREDENTIALS_ANNOTATION: &str = "ferrostack.dev/application-credentials";
/// Annotation of an OpenStackCluster, set by users: lifetime of application credentials, in hours or days (`30d`).
pub const APPLICATION_CREDENTIALS_LIFETIME_ANNOTATION: &str =
    "ferrostack.dev/application-credentials-lifetime";
/// Annotation of a MachineDeployment, set by users: strategy of its updates
/// ([`Strategy`](crate::in_place::Strategy)).
pub const IN_PLACE_UPDATE_ANNOTATION: &str = "ferrostack.dev/in-place-update";
/// Annotation of a Machine and of its infrastructure object: an update in place is under way. The value is, on the
/// Machine, the name of the infrastructure template, and on the infrastructure object the name of the Secret with the
/// bootstrap data to begin anew with.
pub const UPDATE_IN_PROGRESS_ANNOTATION: &str =
    "in-place-updates.internal.cluster.x-k8s.io/update-in-progress";
/// Annotation of a MachineSet: Machines of these MachineSets, separated by commas, move to this one.
pub const RECEIVE_MACHINES_ANNOTATION: &str =
    "in-place-updates.internal.cluster.x-k8s.io/receive-machines-from-machinesets";
/// Annotation of an infrastructure object, set by its provider: name of the Secret of the last update that is done.
pub const UPDATED_IN_PLACE_ANNOTATION: &str = "ferrostack.dev/updated-in-place";
/// Annotation of an infrastructure object, set by its provider: name of the Secret of an update that failed, a space, and
/// the cause.
pub const UPDATE_FAILED_ANNOTATION: &str = "ferrostack.dev/in-place-update-failed";
/// Annotation of a Machine under an update in place: time at which its Node was left, a space, and the uid of the Node.
pub const LEFT_NODE_ANNOTATION: &str = "ferrostack.dev/left-node";
/// Annotation: the infrastructure is managed externally.
pub const MANAGED_BY_ANNOTATION: &str = "cluster.x-k8s.io/managed-by";
/// Annotation: this Machine is the first to be deleted on scaling down.
pub const DELETE_MACHINE_ANNOTATION: &str = "cluster.x-k8s.io/delete-machine";
/// Annotation: a MachineHealthCheck marks this Machine as unhealthy.
pub const REMEDIATE_MACHINE_ANNOTATION: &str = "cluster.x-k8s.io/remediate-machine";
/// Annotation: no MachineHealthCheck checks this Machine.
pub const SKIP_REMEDIATION_ANNOTATION: &str = "cluster.x-k8s.io/skip-remediation";
/// Annotation of a control plane machine, set by users, and of its KubeadmConfig: expiry of the API server's
/// certificate in RFC 3339.
pub const CERTIFICATES_EXPIRY_ANNOTATION: &str = "machine.cluster.x-k8s.io/certificates-expiry";
/// Annotation of a Cluster: uid of the namespace kube-system in the workload cluster, used as a mark on resources in
/// the cloud by programs inside.
pub const WORKLOAD_UID_ANNOTATION: &str = "ferrostack.dev/workload-cluster-uid";
/// Annotation of a Cluster, set by users: resources of workloads to delete with the cluster
/// ([`Wanted`](crate::deletion::Wanted)).
pub const DELETE_WITH_CLUSTER_ANNOTATION: &str = "ferrostack.dev/delete-with-cluster";
/// Annotation of a Cluster under deletion: result of the deletion of Services and claims in the workload cluster, one
/// word. Afterwards the machines are deleted.
pub const EMPTIED_ANNOTATION: &str = "ferrostack.dev/emptied";
/// Name of the CSI driver of Cinder, in PersistentVolumes and StorageClasses.
pub const CINDER_DRIVER: &str = "cinder.csi.openstack.org";
/// Annotation: identity of an OpenStackCluster, a UUID on all of the cluster's resources in the cloud.
pub const CLUSTER_IDENTITY_ANNOTATION: &str =
    "infrastructure.cluster.x-k8s.io/ferrostack-cluster-id";
/// Annotation: identity of an OpenStackMachine, a UUID on all of the machine's resources in the cloud.
pub const MACHINE_IDENTITY_ANNOTATION: &str =
    "infrastructure.cluster.x-k8s.io/ferrostack-machine-id";
/// Annotation: identity of an OpenStackFloatingIPPool, a UUID on all floating IPs allocated by the pool.
pub const POOL_IDENTITY_ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/ferrostack-pool-id";
/// Annotation: name of the template of a cloned object.
pub const CLONED_FROM_NAME_ANNOTATION: &str = "cluster.x-k8s.io/cloned-from-name";
/// Annotation: kind and group of the template of a cloned object.
pub const CLONED_FROM_GROUP_KIND_ANNOTATION: &str = "cluster.x-k8s.io/cloned-from-groupkind";

/// Type of all Secrets of Cluster API.
pub const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

/// True for a UUID in the form of Kubernetes: lower case, with hyphens.
#[must_use]
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.char_indices().all(|(at, letter)| match at {
            8 | 13 | 18 | 23 => letter == '-',
            _ => matches!(letter, '0'..='9' | 'a'..='f'),
        })
}
