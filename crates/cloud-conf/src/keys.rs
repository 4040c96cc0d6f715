//! Every section and key of a cloud.conf.

use crate::recovery::Recovery;

/// A section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Cloud and credentials.
    Global,
    /// Addresses of nodes.
    Networking,
    /// Load balancers.
    LoadBalancer,
    /// Networks of load balancers, chosen by name in Services.
    LoadBalancerClass,
    /// Routes to pod networks.
    Route,
    /// Metadata of servers.
    Metadata,
    /// Settings of the Cinder CSI driver.
    BlockStorage,
    /// Settings of the KMS plugin.
    KeyManager,
}

impl Section {
    const ALL: [Self; 8] = [
        Self::Global,
        Self::Networking,
        Self::LoadBalancer,
        Self::LoadBalancerClass,
        Self::Route,
        Self::Metadata,
        Self::BlockStorage,
        Self::KeyManager,
    ];

    /// Name as written in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "Global",
            Self::Networking => "Networking",
            Self::LoadBalancer => "LoadBalancer",
            Self::LoadBalancerClass => "LoadBalancerClass",
            Self::Route => "Route",
            Self::Metadata => "Metadata",
            Self::BlockStorage => "BlockStorage",
            Self::KeyManager => "KeyManager",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|section| section.name().eq_ignore_ascii_case(name))
    }

    /// Name with a subsection: `Global "NAME"`. An empty subsection counts as none.
    pub(super) fn titled(self, subsection: Option<&str>) -> String {
        match subsection {
            None | Some("") => self.name().to_owned(),
            Some(name) => format!("{} \"{}\"", self.name(), name.escape_debug()),
        }
    }

    /// Only program that reads the section, if there is one.
    pub(super) const fn read_by(self) -> Option<ReadBy> {
        match self {
            Self::Global | Self::Metadata => None,
            Self::Networking | Self::LoadBalancer | Self::LoadBalancerClass | Self::Route => {
                Some(ReadBy::Program(Program::CloudControllerManager))
            }
            Self::BlockStorage => Some(ReadBy::Program(Program::CinderCsi)),
            Self::KeyManager => Some(ReadBy::Other("the KMS plugin")),
        }
    }
}

/// Program that reads the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `cloud-controller-manager`.
    CloudControllerManager,
    /// `cinder-csi-plugin`, its controller and its nodes.
    CinderCsi,
}

impl Program {
    /// Name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CloudControllerManager => "the cloud controller manager",
            Self::CinderCsi => "the Cinder CSI driver",
        }
    }
}

/// Reader of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadBy {
    Program(Program),
    /// Program outside of this suite.
    Other(&'static str),
}

impl ReadBy {
    /// Name of another program that reads the section instead of this one.
    const fn other_than(self, program: Program) -> Option<&'static str> {
        match (self, program) {
            (Self::Program(Program::CloudControllerManager), Program::CloudControllerManager)
            | (Self::Program(Program::CinderCsi), Program::CinderCsi) => None,
            (Self::Program(other), _) => Some(other.name()),
            (Self::Other(name), _) => Some(name),
        }
    }
}

/// Form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Any text.
    Text,
    /// Any text; the key can be repeated, and each occurrence adds a value.
    Repeated,
    /// Any text, never printed.
    Secret,
    /// `http://...` or `https://...`.
    Url,
    /// `true`, `yes`, `on`, `1`, and their opposites.
    Bool,
    /// Go duration: `5s`, `1m30s`.
    Duration,
    /// A duration in whole seconds, at least one.
    Seconds,
    /// Number with a minimum.
    Number(u32),
    /// Number from 0 to a maximum; every other number counts as the maximum.
    UpTo(u32),
    /// Comma-separated list of sources of a server's metadata, in order.
    Sources,
    /// Comma-separated list of `NOVA=CINDER`: zones of servers, and zones of their volumes.
    Zones,
    /// One of several words.
    Choice(&'static [&'static str]),
    /// A pattern of names.
    Pattern,
    /// A list of tags.
    Tags,
    /// A comma-separated list of CIDRs.
    Networks,
    /// A comma-separated list of `key=value`.
    Labels,
}

/// Support for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The key is supported.
    Served,
    /// The feature is not implemented, and the program does not start: reason and remedy.
    Rejected(&'static str),
    /// The key has no effect: the reason, for a warning.
    NoEffect(&'static str),
    /// The key belongs to another component, with this name.
    Elsewhere(&'static str),
}

/// Key of a [`Section`].
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// [`Section`] of the key.
    pub section: Section,
    /// The name.
    pub name: &'static str,
    /// [`Form`] of the values.
    pub form: Form,
    /// The default value.
    pub default: &'static str,
    /// The meaning.
    pub meaning: &'static str,
    manager: Support,
    driver: Support,
}

impl Key {
    /// [`Support`] by a program.
    pub const fn support(&self, program: Program) -> Support {
        match program {
            Program::CloudControllerManager => self.manager,
            Program::CinderCsi => self.driver,
        }
    }

    pub(super) fn named(section: Section, name: &str) -> Option<&'static Self> {
        KEYS.iter()
            .find(|key| key.section == section && key.name == name)
    }
}

/// [`Section`] of a key with this name, for a hint, if there is exactly one.
pub(super) fn misplaced(name: &str) -> Option<Section> {
    let mut sections = KEYS
        .iter()
        .filter(|key| key.name == name)
        .map(|key| key.section);
    let first = sections.next();
    first.filter(|_| sections.next().is_none())
}

const fn key(
    section: Section,
    name: &'static str,
    form: Form,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key {
        section,
        name,
        form,
        default,
        meaning,
        manager: of_section(section, Program::CloudControllerManager),
        driver: of_section(section, Program::CinderCsi),
    }
}

/// [`Support`] for the keys of a section, unless the key has an exception.
pub(super) const fn of_section(section: Section, program: Program) -> Support {
    match section.read_by() {
        None => Support::Served,
        Some(read_by) => match read_by.other_than(program) {
            None => Support::Served,
            Some(other) => Support::Elsewhere(other),
        },
    }
}

impl Key {
    const fn rejected(mut self, reason: &'static str) -> Self {
        self.manager = Support::Rejected(reason);
        self.driver = Support::Rejected(reason);
        self
    }

    /// Marks a key that the reading program ignores, with the reason.
    const fn no_effect(mut self, reason: &'static str) -> Self {
        match self.manager {
            Support::Served => self.manager = Support::NoEffect(reason),
            _ => self.driver = Support::NoEffect(reason),
        }
        self
    }

    /// Marks a key of the driver in a section of both programs.
    const fn of_driver(mut self) -> Self {
        self.manager = Support::Elsewhere(Program::CinderCsi.name());
        self
    }
}

const ENDPOINTS: &[&str] = &[
    "public",
    "internal",
    "admin",
    "publicURL",
    "internalURL",
    "adminURL",
    "",
];
/// Algorithms of Octavia's drivers.
pub const METHODS: &[&str] = &[
    "ROUND_ROBIN",
    "LEAST_CONNECTIONS",
    "SOURCE_IP",
    "SOURCE_IP_PORT",
];

use Form::{
    Bool, Choice, Duration, Labels, Networks, Number, Pattern, Repeated, Seconds, Secret, Sources,
    Tags, Text, UpTo, Url, Zones,
};
use Section::{
    BlockStorage, Global, KeyManager, LoadBalancer, LoadBalancerClass, Metadata, Networking, Route,
};

/// All keys, in the order of the documentation.
pub const KEYS: &[Key] = &[
    key(Global, "auth-url", Url, "", "Keystone"),
    key(Global, "username", Text, "", "user, by name"),
    key(Global, "user-id", Text, "", "user, by id"),
    key(Global, "password", Secret, "", "the user's password"),
    key(Global, "tenant-id", Text, "", "project, by id"),
    key(Global, "tenant-name", Text, "", "project, by name"),
    key(Global, "domain-id", Text, "", "domain of user and project, by id"),
    key(Global, "domain-name", Text, "", "domain of user and project, by name"),
    key(Global, "tenant-domain-id", Text, "", "domain of the project, by id"),
    key(Global, "tenant-domain-name", Text, "", "domain of the project, by name"),
    key(Global, "user-domain-id", Text, "", "domain of the user, by id"),
    key(Global, "user-domain-name", Text, "", "domain of the user, by name"),
    key(Global, "trust-id", Text, "", "Keystone trust that the login is scoped to"),
    key(Global, "trustee-id", Text, "", "user that logs in with the trust, in place of user-id"),
    key(Global, "trustee-password", Secret, "", "its password, in place of password"),
    key(Global, "application-credential-id", Text, "", "application credential, by id"),
    key(Global, "application-credential-name", Text, "", "application credential, by name, with user and domain"),
    key(Global, "application-credential-secret", Secret, "", "its secret"),
    key(Global, "token", Secret, "", "a token in place of a password")
        .rejected("a token cannot be renewed, so that logging in with one is not built; use an application credential"),
    key(Global, "region", Text, "any", "region of the catalog, and the label of nodes"),
    key(Global, "os-endpoint-type", Choice(ENDPOINTS), "public", "which URLs of the catalog are used"),
    key(Global, "ca-file", Text, "the system's", "PEM file of the certificate authorities to trust"),
    key(Global, "cert-file", Text, "", "client certificate")
        .rejected("client certificates are not built; remove the key, or put a proxy that has the certificate in between"),
    key(Global, "key-file", Text, "", "key of the client certificate")
        .rejected("client certificates are not built; remove the key, or put a proxy that has the certificate in between"),
    key(Global, "tls-insecure", Text, "false", "`true` turns the verification of certificates off; any other value does not"),
    key(Global, "use-clouds", Bool, "false", "read the cloud from a clouds.yaml; keys of this section win over it"),
    key(Global, "clouds-file", Text, "searched", "the clouds.yaml"),
    key(Global, "cloud", Text, "openstack", "its entry"),
    key(Networking, "ipv6-support-disabled", Bool, "false", "leave out the IPv6 addresses of nodes"),
    key(Networking, "public-network-name", Repeated, "none", "networks whose addresses are ExternalIP"),
    key(Networking, "internal-network-name", Repeated, "all", "the only networks whose addresses are InternalIP"),
    key(Networking, "address-sort-order", Networks, "", "ranges whose addresses come first, in this order"),
    key(LoadBalancer, "enabled", Bool, "true", "serve Services of type LoadBalancer"),
    key(LoadBalancer, "lb-version", Choice(&["v2", ""]), "v2", "version of the API; there is no other"),
    key(LoadBalancer, "lb-provider", Text, "amphora", "driver of Octavia"),
    key(LoadBalancer, "lb-method", Choice(METHODS), "ROUND_ROBIN", "how members are chosen; the driver ovn has SOURCE_IP_PORT alone"),
    key(LoadBalancer, "subnet-id", Text, "that of a node", "subnet of the virtual address"),
    key(LoadBalancer, "member-subnet-id", Text, "subnet-id", "subnet of the members"),
    key(LoadBalancer, "network-id", Text, "", "network of the virtual address"),
    key(LoadBalancer, "floating-network-id", Text, "the external network", "where floating IPs come from"),
    key(LoadBalancer, "floating-subnet-id", Text, "any", "subnet where floating IPs come from"),
    key(LoadBalancer, "floating-subnet", Pattern, "any", "the same by a name with `*` and `?`, or a regular expression after `~`; `!` before it negates"),
    key(LoadBalancer, "floating-subnet-tags", Tags, "any", "the same by tags: one of a list, or after `&` all of it; `!` before it negates"),
    key(LoadBalancer, "create-monitor", Bool, "false", "health monitors"),
    key(LoadBalancer, "monitor-delay", Seconds, "5s", "time between checks"),
    key(LoadBalancer, "monitor-timeout", Seconds, "3s", "time until a check fails"),
    key(LoadBalancer, "monitor-max-retries", Number(1), "1", "good checks until a member is up"),
    key(LoadBalancer, "monitor-max-retries-down", Number(1), "3", "bad checks until a member is down"),
    key(LoadBalancer, "manage-security-groups", Bool, "false", "open the node ports in a security group of each Service"),
    key(LoadBalancer, "internal-lb", Bool, "false", "no load balancer gets a floating IP"),
    key(LoadBalancer, "node-selector", Labels, "all", "labels that the nodes of members must have"),
    key(LoadBalancer, "cascade-delete", Bool, "true", "delete a load balancer in one request")
        .no_effect("load balancers are always deleted in one request, which every Octavia has"),
    key(LoadBalancer, "flavor-id", Text, "", "flavor of load balancers"),
    key(LoadBalancer, "availability-zone", Text, "", "availability zone of load balancers"),
    key(LoadBalancer, "enable-ingress-hostname", Bool, "false", "publish a host name where the PROXY protocol is used"),
    key(LoadBalancer, "ingress-hostname-suffix", Text, "nip.io", "its suffix"),
    key(LoadBalancer, "default-tls-container-ref", Text, "", "the certificate of TLS listeners: the URL of a container or secret of Barbican's; then TLS ends at all TCP ports"),
    key(LoadBalancer, "container-store", Choice(&["barbican", "external", ""]), "barbican", "who has the certificate: with `external`, the manager does not look for it"),
    key(LoadBalancer, "max-shared-lb", Number(1), "2", "most Services of one load balancer"),
    key(LoadBalancer, "error-recovery", Choice(Recovery::NAMES), "failover", "what is done about a load balancer in ERROR: none, failover, or recreate after that; the Go manager ignores the key"),
    key(LoadBalancer, "provider-requires-serial-api-calls", Bool, "false", "listeners, pools, members and monitors are created one at a time"),
    key(LoadBalancerClass, "subnet-id", Text, "", "as in LoadBalancer"),
    key(LoadBalancerClass, "member-subnet-id", Text, "", "as in LoadBalancer"),
    key(LoadBalancerClass, "network-id", Text, "", "as in LoadBalancer"),
    key(LoadBalancerClass, "floating-network-id", Text, "", "as in LoadBalancer"),
    key(LoadBalancerClass, "floating-subnet-id", Text, "", "as in LoadBalancer"),
    key(LoadBalancerClass, "floating-subnet", Pattern, "", "as in LoadBalancer"),
    key(LoadBalancerClass, "floating-subnet-tags", Tags, "", "as in LoadBalancer"),
    key(Route, "router-id", Text, "", "router that gets routes to the pods of nodes; needs --cluster-cidr"),
    key(Metadata, "search-order", Sources, "configDrive,metadataService", "where a server learns about itself").of_driver(),
    key(Metadata, "request-timeout", Duration, "60s", "limit of every request to OpenStack"),
    key(BlockStorage, "node-volume-attach-limit", UpTo(256), "0", "most volumes of a node; with 0 what its buses have room for"),
    key(BlockStorage, "rescan-on-resize", Bool, "false", "look at the size of a device again")
        .no_effect("a device that is smaller than its volume is always looked at again"),
    key(BlockStorage, "ignore-volume-az", Bool, "false", "volumes without a zone"),
    key(BlockStorage, "ignore-volume-microversion", Bool, "false", "avoid newer microversions")
        .no_effect("a newer microversion is asked for only where a call needs it"),
    key(BlockStorage, "zone-map", Zones, "", "zones of Cinder for zones of Nova that it does not have: `NOVA=CINDER,NOVA=CINDER`; the Go driver ignores the key"),
    key(BlockStorage, "bs-version", Text, "", "version of Cinder's API").no_effect("the version of Cinder's API is 3, which every Cinder has"),
    key(KeyManager, "key-id", Text, "", "key of the KMS plugin"),
];
