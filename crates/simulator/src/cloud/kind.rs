//! The kinds of resources of a cloud.

macro_rules! kinds {
    ($($variant:ident $name:literal [$($index:literal),*],)+) => {
        /// Kind of resource.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Kind { $($variant,)+ }

        impl Kind {
            /// Every kind.
            pub(crate) const ALL: &'static [Kind] = &[$(Kind::$variant,)+];

            /// Returns the name in the store, in counts and in messages.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name,)+ }
            }

            /// Returns the fields with an index.
            pub(crate) fn indexed(self) -> &'static [&'static str] {
                match self { $(Kind::$variant => &[$($index),*],)+ }
            }
        }
    };
}

kinds! {
    Domain "domain" ["name"],
    Project "project" ["name"],
    User "user" ["name"],
    Group "group" ["name"],
    Membership "group_membership" ["user_id", "group_id"],
    Role "role" ["name"],
    Assignment "role_assignment" ["user_id", "group_id", "project_id"],
    Credential "application_credential" ["user_id", "project_id", "name"],
    Trust "trust" ["trustor_user_id", "trustee_user_id"],
    Token "token" ["user_id"],
    Receipt "receipt" [],
    SecondFactor "credential" ["user_id"],
    IdentityProvider "identity_provider" [],
    Mapping "mapping" [],
    Protocol "federation_protocol" [],
    Region "region" [],
    CatalogService "service" ["type"],
    Endpoint "endpoint" ["service_id"],
    Flavor "flavor" ["name"],
    Keypair "keypair" ["user_id", "name"],
    ServerGroup "server_group" ["project_id", "name"],
    Server "server" ["project_id", "name"],
    DeletedServer "deleted_server" ["project_id"],
    ComputeHost "compute_host" [],
    Migration "migration" ["instance_uuid"],
    NetworkAgent "network_agent" [],
    Network "network" ["project_id", "name"],
    Subnet "subnet" ["project_id", "network_id", "subnetpool_id", "name"],
    SubnetPool "subnetpool" ["project_id", "address_scope_id", "name"],
    AddressScope "address_scope" ["project_id", "name"],
    Port "port" ["project_id", "network_id", "device_id", "name"],
    Router "router" ["project_id", "name"],
    SecurityGroup "security_group" ["project_id", "name"],
    SecurityGroupRule "security_group_rule" ["project_id", "security_group_id", "remote_group_id", "_same"],
    FloatingIp "floatingip" ["project_id", "port_id", "router_id", "floating_network_id", "floating_ip_address"],
    Trunk "trunk" ["project_id", "port_id", "name"],
    Image "image" ["name"],
    ImageMember "image_member" ["image_id"],
    VolumeType "volume_type" ["name"],
    Volume "volume" ["project_id", "name"],
    Snapshot "snapshot" ["project_id", "volume_id", "name"],
    Backup "backup" ["project_id", "volume_id", "name"],
    GroupType "volume_group_type" ["name"],
    VolumeGroup "volume_group" ["project_id", "name"],
    GroupSnapshot "volume_group_snapshot" ["project_id", "name"],
    Message "volume_message" ["project_id"],
    Secret "secret" ["project_id", "name"],
    Container "secret_container" ["project_id", "name"],
    LoadBalancer "loadbalancer" ["project_id", "name", "vip_port_id"],
    Listener "listener" ["project_id", "loadbalancer_id", "name", "default_pool_id"],
    Pool "pool" ["project_id", "loadbalancer_id", "name"],
    Member "member" ["project_id", "loadbalancer_id", "pool_id"],
    HealthMonitor "healthmonitor" ["project_id", "loadbalancer_id", "pool_id", "name"],
    L7Policy "l7policy" ["project_id", "loadbalancer_id", "listener_id", "name"],
    L7Rule "l7rule" ["project_id", "loadbalancer_id", "l7policy_id"],
    BalancerFlavorProfile "loadbalancer_flavor_profile" [],
    BalancerFlavor "loadbalancer_flavor" ["name", "flavor_profile_id"],
    BalancerZoneProfile "loadbalancer_zone_profile" [],
    BalancerZone "loadbalancer_zone" ["name", "availability_zone_profile_id"],
    Quota "quota" [],
    Pending "pending" [],
}

impl Kind {
    /// Returns the kind with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// True for a resource of a project, as opposed to the catalog or internal state of the cloud.
    pub(crate) fn counted(self) -> bool {
        !matches!(
            self,
            Self::Token
                | Self::Receipt
                | Self::Region
                | Self::CatalogService
                | Self::Endpoint
                | Self::DeletedServer
                | Self::ComputeHost
                | Self::Migration
                | Self::NetworkAgent
                | Self::Quota
                | Self::Message
                | Self::Pending
        )
    }

    /// True if a change can affect guests.
    pub(crate) fn visible_to_guests(self) -> bool {
        use Kind::{FloatingIp, Listener, LoadBalancer, Member, Pool, Port, Server};
        matches!(
            self,
            Server | Port | FloatingIp | LoadBalancer | Listener | Pool | Member
        )
    }
}
