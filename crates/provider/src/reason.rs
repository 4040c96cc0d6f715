//! Condition types and their reasons (those of the Go provider, with what it lacks).

/// A type of condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// All other conditions are met.
    Ready,
    /// Reconciling is suspended.
    Paused,
    /// The object is being deleted.
    Deleting,
    /// The cloud accepts the credentials.
    Authentication,
    /// Network and subnet are there.
    Network,
    /// The router is there and connects network and outside.
    Router,
    /// The security groups are there with all their rules.
    SecurityGroups,
    /// The API server has an address, and what leads to it is there.
    ApiEndpoint,
    /// The bastion is there.
    Bastion,
    /// The server is there and running.
    Instance,
    /// The control plane machine is reached through the API endpoint.
    ApiServerIngress,
}

impl Type {
    /// The word in `conditions[].type`.
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
        }
    }
}

/// Declares the reasons: the names of the variants are the words on the wire.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The reason of a condition.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason { $($(#[$doc])* $name),* }

        impl Reason {
            /// The word in `conditions[].reason`.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name)),* }
            }
        }
    };
}

reasons! {
    /// The condition is met.
    Ready,
    /// A condition that this one sums up is not met.
    NotReady,
    /// Reconciling is suspended.
    Paused,
    /// Reconciling is not suspended.
    NotPaused,
    /// The object is being deleted.
    Deleting,
    /// Deletion waits for something.
    WaitingForDeletion,
    /// The cloud accepted the credentials.
    OpenStackAuthenticationSucceeded,
    /// The credentials are missing, malformed or refused, or the cloud cannot be reached.
    OpenStackAuthenticationFailed,
    /// The Cluster that owns the object is not there (yet).
    WaitingForOwner,
    /// The cluster's part of the cloud is not there yet.
    WaitingForClusterInfrastructure,
    /// The Machine has no bootstrap data yet.
    WaitingForBootstrapData,
    /// Something is being created.
    Creating,
    /// The cloud is working on it.
    WaitingForCloud,
    /// No server can be created from the spec.
    InvalidMachineSpec,
    /// No cluster can be created from the spec.
    InvalidClusterSpec,
    /// The identity annotation is gone, and what was created does not prove what it was.
    IdentityUnknown,
    /// Something that the spec refers to is not there.
    DependencyFailed,
    /// Nova rejected the server.
    InstanceCreateFailed,
    /// The server was not found.
    InstanceNotFound,
    /// The server is in a state from which it does not come back by itself.
    InstanceStateError,
    /// The server was deleted by somebody else.
    InstanceDeleted,
    /// The server is not running yet.
    InstanceNotReady,
    /// The server could not be deleted.
    InstanceDeleteFailed,
    /// The server runs but did not become a Node.
    BootstrapFailed,
    /// Neutron rejected a port.
    PortCreateFailed,
    /// Cinder rejected a volume.
    VolumeCreateFailed,
    /// A call to the cloud failed.
    OpenStackError,
    /// A member of the load balancer could not be set.
    LoadBalancerMemberError,
    /// The floating IP could not be created or associated.
    FloatingIPError,
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
    /// It is asked for but not built yet.
    NotImplemented,
}
