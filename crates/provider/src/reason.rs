//! Condition types and reasons of the Go provider, with additions.

/// The type of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// All other conditions are met.
    Ready,
    /// Reconciling is paused.
    Paused,
    /// The object is being deleted.
    Deleting,
    /// The cloud accepts the credentials.
    Authentication,
    /// Network and subnet exist.
    Network,
    /// The router exists and connects the network to the external network.
    Router,
    /// The security groups exist with all their rules.
    SecurityGroups,
    /// The API server has an address, and the load balancer or floating IP in front of it exists.
    ApiEndpoint,
    /// The bastion exists.
    Bastion,
    /// The server exists and is running.
    Instance,
    /// The control plane machine is reachable through the API endpoint.
    ApiServerIngress,
    /// The server has a floating IP of its pool.
    FloatingAddress,
    /// The pool of floating IPs answers claims. The spelling is that of the Go provider.
    Pool,
}

impl Type {
    /// The value of `conditions[].type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Type::Ready => "Ready",
            Type::Paused => "Paused",
            Type::Deleting => "Deleting",
            Type::Authentication => "OpenStackAuthenticationSucceeded",
            Type::Network => "NetworkReady",
            Type::Router => "RouterReady",
            Type::SecurityGroups => "SecurityGroupsReady",
            Type::ApiEndpoint => "APIEndpointReady",
            Type::Bastion => "BastionReady",
            Type::Instance => "InstanceReady",
            Type::ApiServerIngress => "APIServerIngressReady",
            Type::FloatingAddress => "FloatingAddressFromPoolReady",
            Type::Pool => "OpenstackFloatingIPPoolReadyCondition",
        }
    }
}

/// Declares the reasons: the names of the variants are the serialized values.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The reason of a condition.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason { $($(#[$doc])* $name),* }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The value of `conditions[].reason`.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name)),* }
            }
        }
    };
}

reasons! {
    /// The condition is met.
    Ready,
    /// A condition that this one summarizes is not met.
    NotReady,
    /// Reconciling is paused.
    Paused,
    /// Reconciling is not paused.
    NotPaused,
    /// The object is being deleted.
    Deleting,
    /// Deletion waits for dependents or for the cloud.
    WaitingForDeletion,
    /// The cloud accepted the credentials.
    OpenStackAuthenticationSucceeded,
    /// The credentials are missing, malformed or rejected, or the cloud is not reachable.
    OpenStackAuthenticationFailed,
    /// The Cluster that owns the object does not exist (yet).
    WaitingForOwner,
    /// The infrastructure of the cluster is not provisioned yet.
    WaitingForClusterInfrastructure,
    /// The Machine has no bootstrap data yet.
    WaitingForBootstrapData,
    /// A resource is being created.
    Creating,
    /// The cloud has not finished an operation.
    WaitingForCloud,
    /// No server can be created from the spec.
    InvalidMachineSpec,
    /// No cluster can be created from the spec.
    InvalidClusterSpec,
    /// The identity annotation is missing, and the resources of the object do not prove its identity.
    IdentityUnknown,
    /// The resources of a cluster of the Go provider are not taken over: the evidence is not clear.
    AdoptionRefused,
    /// Another object has the same identity annotation.
    IdentityShared,
    /// A resource that the spec refers to does not exist.
    DependencyFailed,
    /// Nova rejected the server.
    InstanceCreateFailed,
    /// The server was not found.
    InstanceNotFound,
    /// The server is in a state that it does not leave without intervention.
    InstanceStateError,
    /// Nova had no room for the server, and another one takes its place.
    InstanceRetried,
    /// The server was deleted, but not by this provider.
    InstanceDeleted,
    /// The server is not running yet.
    InstanceNotReady,
    /// The server could not be deleted.
    InstanceDeleteFailed,
    /// The server runs but did not register a Node.
    BootstrapFailed,
    /// Neutron rejected a port.
    PortCreateFailed,
    /// Neutron rejected a change of a port.
    PortUpdateFailed,
    /// Cinder rejected a volume.
    VolumeCreateFailed,
    /// A request to the cloud failed.
    OpenStackError,
    /// A member of the load balancer could not be changed.
    LoadBalancerMemberError,
    /// The floating IP could not be created or associated.
    FloatingIPError,
    /// The provider of the pool has not answered the claim of an address.
    WaitingForIPAMProvider,
    /// The pool has given out as many addresses as it may.
    MaxIPsReached,
    /// The external network of a pool could not be found.
    UnableToFindNetwork,
    /// Network or subnet could not be created or found.
    NetworkCreateFailed,
    /// The subnet could not be created.
    SubnetCreateFailed,
    /// The router could not be created or found.
    RouterCreateFailed,
    /// A security group or its rules could not be created.
    SecurityGroupCreateFailed,
    /// The load balancer or floating IP of the API server could not be created.
    APIEndpointConfigFailed,
}
