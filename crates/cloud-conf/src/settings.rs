//! Typed settings of a cloud.conf.

use std::collections::BTreeMap;

use ipnet::IpNet;
use openstack::SecretReference;
use secrecy::SecretString;

use super::finding::Finding;
use super::keys::{Program, Section};
use super::recovery::Recovery;
use super::value::{Duration, MetadataSource, Value};

/// All settings of a program. Settings of the other program have their defaults.
#[derive(Clone, Debug, Default)]
pub struct CloudConf {
    /// `[Global]`.
    pub global: Global,
    /// `[Global "NAME"]` by name: the further clouds of the CSI driver.
    pub clouds: BTreeMap<String, Global>,
    /// `[Networking]`.
    pub networking: Networking,
    /// `[LoadBalancer]`.
    pub load_balancer: LoadBalancer,
    /// `[LoadBalancerClass "NAME"]` by name.
    pub classes: BTreeMap<String, Class>,
    /// `[Route]`.
    pub route: Route,
    /// `[Metadata]`.
    pub metadata: Metadata,
    /// `[BlockStorage]`.
    pub block_storage: BlockStorage,
}

/// `[Global]`: the cloud and the credentials. Empty values count as unset.
#[derive(Clone, Debug, Default)]
pub struct Global {
    /// Name in the header; empty for `[Global]`.
    pub(super) name: String,
    pub(super) auth: BTreeMap<&'static str, String>,
    pub(super) secrets: BTreeMap<&'static str, SecretString>,
    /// `use-clouds`: read the cloud from a clouds.yaml.
    pub use_clouds: bool,
}

impl Global {
    /// Value of a key that is not a secret, unless it is empty.
    pub fn get(&self, key: &str) -> Option<&str> {
        let value = self.auth.get(key).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }
}

/// `[Networking]`: the addresses of nodes.
#[derive(Clone, Debug, Default)]
pub struct Networking {
    /// `ipv6-support-disabled`.
    pub ipv6_support_disabled: bool,
    /// `public-network-name`.
    pub public_network_names: Vec<String>,
    /// `internal-network-name`.
    pub internal_network_names: Vec<String>,
    /// `address-sort-order`.
    pub address_sort_order: Vec<IpNet>,
}

/// Networks and subnets of a load balancer, from `[LoadBalancer]` or from a class. Empty values count as unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// `subnet-id`.
    pub subnet_id: String,
    /// `member-subnet-id`.
    pub member_subnet_id: String,
    /// `network-id`.
    pub network_id: String,
    /// `floating-network-id`.
    pub floating_network_id: String,
    /// `floating-subnet-id`.
    pub floating_subnet_id: String,
    /// `floating-subnet`.
    pub floating_subnet: String,
    /// `floating-subnet-tags`.
    pub floating_subnet_tags: String,
}

/// A `[LoadBalancerClass "NAME"]`.
pub type Class = Placement;

/// Defaults of health monitors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorDefaults {
    /// `create-monitor`.
    pub create: bool,
    /// `monitor-delay`.
    pub delay: Duration,
    /// `monitor-timeout`.
    pub timeout: Duration,
    /// `monitor-max-retries`.
    pub max_retries: u32,
    /// `monitor-max-retries-down`.
    pub max_retries_down: u32,
}

impl Default for MonitorDefaults {
    fn default() -> Self {
        Self {
            create: false,
            delay: Duration::from_secs(5),
            timeout: Duration::from_secs(3),
            max_retries: 1,
            max_retries_down: 3,
        }
    }
}

/// `[LoadBalancer]`.
#[derive(Clone, Debug)]
pub struct LoadBalancer {
    /// `enabled`.
    pub enabled: bool,
    /// `lb-provider`.
    pub provider: String,
    /// `lb-method`.
    pub method: String,
    /// Networks and subnets, as a [`Placement`].
    pub placement: Placement,
    /// `create-monitor` and `monitor-*`.
    pub monitor: MonitorDefaults,
    /// `manage-security-groups`.
    pub manage_security_groups: bool,
    /// `internal-lb`.
    pub internal: bool,
    /// `node-selector`: required labels of member nodes; a label without value only needs to exist.
    pub node_selector: Vec<(String, Option<String>)>,
    /// `flavor-id`.
    pub flavor_id: String,
    /// `availability-zone`.
    pub availability_zone: String,
    /// `enable-ingress-hostname`.
    pub enable_ingress_hostname: bool,
    /// `ingress-hostname-suffix`.
    pub ingress_hostname_suffix: String,
    /// `default-tls-container-ref`: the certificate of TLS listeners; empty for none.
    pub tls_container: String,
    /// `container-store = external`: the existence of certificates is not checked.
    pub has_external_store: bool,
    /// `max-shared-lb`.
    pub max_shared: u32,
    /// `error-recovery`.
    pub recovery: Recovery,
    /// `provider-requires-serial-api-calls`: the driver has no bulk requests.
    pub is_serial: bool,
}

impl Default for LoadBalancer {
    fn default() -> Self {
        Self {
            enabled: true,
            provider: "amphora".to_owned(),
            method: "ROUND_ROBIN".to_owned(),
            placement: Placement::default(),
            monitor: MonitorDefaults::default(),
            manage_security_groups: false,
            internal: false,
            node_selector: Vec::new(),
            flavor_id: String::new(),
            availability_zone: String::new(),
            enable_ingress_hostname: false,
            ingress_hostname_suffix: "nip.io".to_owned(),
            tls_container: String::new(),
            has_external_store: false,
            max_shared: 2,
            recovery: Recovery::default(),
            is_serial: false,
        }
    }
}

/// `[Route]`.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// `router-id`; without it, routes are not managed.
    pub router_id: String,
}

/// `[Metadata]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// `request-timeout`: timeout of every request to OpenStack.
    pub request_timeout: Duration,
    /// `search-order`: sources of a server's own metadata, as [`MetadataSource`]s. Never empty.
    pub search_order: Vec<MetadataSource>,
}

/// `[BlockStorage]`: settings of the CSI driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockStorage {
    /// `node-volume-attach-limit`: maximum number of volumes of a node, 1 to 256; `None` for the capacity of its
    /// buses.
    pub node_volume_attach_limit: Option<u32>,
    /// `ignore-volume-az`: volumes are created without a zone.
    pub ignore_volume_az: bool,
    /// `zone-map`: zones of Nova, with the corresponding zones of Cinder.
    pub zone_map: BTreeMap<String, String>,
}

impl Default for Metadata {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(60),
            search_order: MetadataSource::ALL.to_vec(),
        }
    }
}

impl CloudConf {
    pub(super) fn enter_class(&mut self, name: &str) {
        self.classes.entry(name.to_owned()).or_default();
    }

    pub(super) fn enter_cloud(&mut self, name: &str) {
        let cloud = self.clouds.entry(name.to_owned()).or_default();
        cloud.name = name.to_owned();
    }

    /// Section `[Global "NAME"]`, or `[Global]` for an empty name; `None` if the file has none or only the header.
    pub fn cloud(&self, name: &str) -> Option<&Global> {
        let global = match name {
            "" => Some(&self.global),
            name => self.clouds.get(name),
        };
        global.filter(|global| !global.is_empty())
    }

    /// Sets a [`Value`] in the form of its key.
    pub(super) fn set(
        &mut self,
        section: Section,
        subsection: Option<&str>,
        key: &'static str,
        value: Value,
    ) {
        match section {
            Section::Global => {
                let global = match subsection {
                    None => Some(&mut self.global),
                    Some(name) => self.clouds.get_mut(name),
                };
                if let Some(global) = global {
                    global.set(key, value);
                }
            }
            Section::Networking => self.networking.set(key, value),
            Section::LoadBalancer => self.load_balancer.set(key, value),
            Section::LoadBalancerClass => {
                let class = subsection.and_then(|name| self.classes.get_mut(name));
                if let Some(class) = class {
                    class.set(key, value);
                }
            }
            Section::Route => self.route.router_id = value.text(),
            Section::Metadata => self.metadata.set(value),
            Section::BlockStorage => self.block_storage.set(key, value),
            Section::KeyManager => {}
        }
    }

    /// Checks the combination of a [`Program`]'s values, and adds [`Finding`]s.
    pub(super) fn check(&self, program: Program, findings: &mut Vec<Finding>) {
        match program {
            Program::CloudControllerManager => {
                self.check_load_balancers(findings);
                self.global.check(findings);
            }
            // The need for a cloud is checked elsewhere: nodes need none.
            Program::CinderCsi => {
                let globals = std::iter::once(&self.global).chain(self.clouds.values());
                for global in globals.filter(|global| !global.is_empty()) {
                    global.check(findings);
                }
            }
        }
    }

    fn check_load_balancers(&self, findings: &mut Vec<Finding>) {
        let monitor = &self.load_balancer.monitor;
        if monitor.timeout > monitor.delay {
            findings.push(Finding::error(
                Section::LoadBalancer.name(),
                "monitor-timeout",
                0,
                "must not be longer than monitor-delay: Octavia rejects such monitors",
            ));
        }
        self.load_balancer.check_certificate(findings);
    }
}

impl Global {
    /// True if no key of the section is set.
    fn is_empty(&self) -> bool {
        self.auth.is_empty() && self.secrets.is_empty() && !self.use_clouds
    }

    fn set(&mut self, key: &'static str, value: Value) {
        match (key, value) {
            ("use-clouds", value) => self.use_clouds = value.truth(),
            (key, Value::Secret(secret)) => {
                self.secrets.insert(key, secret);
            }
            (key, value) => {
                self.auth.insert(key, value.text());
            }
        }
    }
}

impl Metadata {
    fn set(&mut self, value: Value) {
        match value {
            Value::Sources(sources) => self.search_order = sources,
            value => self.request_timeout = value.seconds(),
        }
    }
}

impl BlockStorage {
    fn set(&mut self, key: &'static str, value: Value) {
        match (key, value) {
            ("node-volume-attach-limit", value) => {
                self.node_volume_attach_limit = Some(value.number()).filter(|limit| *limit > 0);
            }
            ("ignore-volume-az", value) => self.ignore_volume_az = value.truth(),
            (_, Value::Zones(zones)) => self.zone_map = zones,
            _ => {}
        }
    }
}

impl Networking {
    fn set(&mut self, key: &'static str, value: Value) {
        match (key, value) {
            ("ipv6-support-disabled", value) => self.ipv6_support_disabled = value.truth(),
            ("public-network-name", value) => self.public_network_names.extend(value.list()),
            ("internal-network-name", value) => self.internal_network_names.extend(value.list()),
            (_, Value::Networks(networks)) => self.address_sort_order = networks,
            _ => {}
        }
    }
}

impl Placement {
    /// True if one of the three settings of the floating IP's subnet is set.
    pub fn asks_for_floating_subnet(&self) -> bool {
        let settings = [
            &self.floating_subnet_id,
            &self.floating_subnet,
            &self.floating_subnet_tags,
        ];
        settings.iter().any(|setting| !setting.is_empty())
    }

    fn set(&mut self, key: &'static str, value: Value) {
        let field = match key {
            "subnet-id" => &mut self.subnet_id,
            "member-subnet-id" => &mut self.member_subnet_id,
            "network-id" => &mut self.network_id,
            "floating-network-id" => &mut self.floating_network_id,
            "floating-subnet-id" => &mut self.floating_subnet_id,
            "floating-subnet" => &mut self.floating_subnet,
            "floating-subnet-tags" => &mut self.floating_subnet_tags,
            _ => return,
        };
        *field = value.text();
    }
}

impl LoadBalancer {
    /// Rejects a certificate that no listener can have.
    fn check_certificate(&self, findings: &mut Vec<Finding>) {
        let reference = self.tls_container.as_str();
        let problem = if reference.is_empty() {
            return;
        } else if self.provider == "ovn" {
            "the driver ovn has no TLS: remove the key, or set lb-provider"
        } else if !self.has_external_store && SecretReference::parse(reference).is_none() {
            "this is not the URL of a container or secret such as https://HOST/v1/containers/ID; with another store, set \
             container-store = external"
        } else {
            return;
        };
        let section = Section::LoadBalancer.name();
        findings.push(Finding::error(
            section,
            "default-tls-container-ref",
            0,
            problem,
        ));
    }

    fn set(&mut self, key: &'static str, value: Value) {
        match key {
            "enabled" => self.enabled = value.truth(),
            "lb-provider" => self.provider = value.text(),
            "lb-method" => self.method = value.text(),
            "create-monitor" => self.monitor.create = value.truth(),
            "monitor-delay" => self.monitor.delay = value.seconds(),
            "monitor-timeout" => self.monitor.timeout = value.seconds(),
            "monitor-max-retries" => self.monitor.max_retries = value.number(),
            "monitor-max-retries-down" => self.monitor.max_retries_down = value.number(),
            "manage-security-groups" => self.manage_security_groups = value.truth(),
            "internal-lb" => self.internal = value.truth(),
            "flavor-id" => self.flavor_id = value.text(),
            "availability-zone" => self.availability_zone = value.text(),
            "enable-ingress-hostname" => self.enable_ingress_hostname = value.truth(),
            "ingress-hostname-suffix" => self.ingress_hostname_suffix = value.text(),
            "default-tls-container-ref" => self.tls_container = value.text(),
            "container-store" => self.has_external_store = value.text() == "external",
            "max-shared-lb" => self.max_shared = value.number(),
            "error-recovery" => self.recovery = Recovery::named(&value.text()),
            "provider-requires-serial-api-calls" => self.is_serial = value.truth(),
            "node-selector" => {
                if let Value::Labels(labels) = value {
                    self.node_selector = labels;
                }
            }
            _ => self.placement.set(key, value),
        }
    }
}
