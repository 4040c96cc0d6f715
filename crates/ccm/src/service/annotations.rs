//! Annotations of Services.

use std::collections::BTreeMap;

use super::traffic::Traffic;
use super::{Rejection, weights};
use cloud_conf::{CloudConf, MonitorDefaults, NamePattern, Placement, Selector, TagFilter};

const PREFIX: &str = "loadbalancer.openstack.org/";
/// Annotation for a load balancer without a floating IP.
pub(crate) const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";
/// Annotation with source ranges, used if the spec has none.
pub(crate) const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
pub(crate) const ID: &str = "loadbalancer.openstack.org/load-balancer-id";
pub(crate) const ADDRESS: &str = "loadbalancer.openstack.org/load-balancer-address";

const NODE_SELECTOR: &str = "loadbalancer.openstack.org/node-selector";
const MEMBER_SUBNET: &str = "loadbalancer.openstack.org/member-subnet-id";

/// Maximum number in Octavia: a year in milliseconds.
const GREATEST: i64 = 31_536_000_000;

/// An annotation.
#[derive(Clone, Copy, Debug)]
pub struct Annotation {
    /// The full name.
    pub name: &'static str,
    /// The meaning.
    pub meaning: &'static str,
}

const fn served(name: &'static str, meaning: &'static str) -> Annotation {
    Annotation { name, meaning }
}

/// All [`Annotation`]s: the Go manager's, and our own.
pub const ANNOTATIONS: &[Annotation] = &[
    served(INTERNAL, "no floating IP"),
    served(
        SOURCE_RANGES,
        "who may connect, if spec.loadBalancerSourceRanges is empty",
    ),
    served(
        ID,
        "written back; one of another Service or of a user is shared",
    ),
    served(ADDRESS, "written back: the published address"),
    served(
        "loadbalancer.openstack.org/hostname",
        "published in place of the address",
    ),
    served(
        "loadbalancer.openstack.org/class",
        "a LoadBalancerClass of cloud.conf",
    ),
    served(
        "loadbalancer.openstack.org/subnet-id",
        "subnet of the virtual address; at creation",
    ),
    served(
        "loadbalancer.openstack.org/network-id",
        "network of the virtual address; at creation",
    ),
    served(
        "loadbalancer.openstack.org/member-subnet-id",
        "subnet of the members",
    ),
    served(
        "loadbalancer.openstack.org/floating-network-id",
        "where the floating IP comes from; at its creation",
    ),
    served(
        "loadbalancer.openstack.org/floating-subnet-id",
        "subnet where the floating IP comes from; at its creation",
    ),
    served(
        "loadbalancer.openstack.org/keep-floatingip",
        "keep the floating IP when the load balancer is deleted or becomes internal",
    ),
    served(
        "loadbalancer.openstack.org/lb-method",
        "how members are chosen",
    ),
    served(
        "loadbalancer.openstack.org/enable-health-monitor",
        "health monitors",
    ),
    served(
        "loadbalancer.openstack.org/health-monitor-delay",
        "seconds between checks",
    ),
    served(
        "loadbalancer.openstack.org/health-monitor-timeout",
        "seconds until a check fails",
    ),
    served(
        "loadbalancer.openstack.org/health-monitor-max-retries",
        "good checks until a member is up",
    ),
    served(
        "loadbalancer.openstack.org/health-monitor-max-retries-down",
        "bad checks until a member is down",
    ),
    served(
        "loadbalancer.openstack.org/flavor-id",
        "flavor; at creation",
    ),
    served(
        "loadbalancer.openstack.org/availability-zone",
        "availability zone; at creation",
    ),
    served(
        "loadbalancer.openstack.org/node-selector",
        "labels that the nodes of members must have",
    ),
    served(
        "loadbalancer.openstack.org/port-id",
        "an existing port with the virtual address; at creation",
    ),
    served(
        "loadbalancer.openstack.org/floating-subnet",
        "the same by a name with `*` and `?`, or a regular expression after `~`; `!` before it negates",
    ),
    served(
        "loadbalancer.openstack.org/floating-subnet-tags",
        "the same by tags: one of a list, or after `&` all of it; `!` before it negates",
    ),
    served(
        "loadbalancer.openstack.org/connection-limit",
        "most connections of a listener; -1 for no limit",
    ),
    served(
        "loadbalancer.openstack.org/proxy-protocol",
        "PROXY protocol to the members: `true` or `v1`, `v2`; of TCP alone",
    ),
    served(
        "loadbalancer.openstack.org/x-forwarded-for",
        "HTTP listeners that add X-Forwarded-For; of TCP alone",
    ),
    served(
        "loadbalancer.openstack.org/default-tls-container-ref",
        "TLS ends at the listeners, with this certificate of Barbican's; empty for none; of TCP alone",
    ),
    served(
        "loadbalancer.openstack.org/port-protocols",
        "`app-protocol`, or `80=HTTP,443=TERMINATED_HTTPS,22=TCP`: the protocol of single ports; not in the Go one",
    ),
    served(
        "loadbalancer.openstack.org/member-weights",
        "`ready-endpoints`: nodes get traffic by the number of ready endpoints on them; not in the Go one",
    ),
    served(
        "loadbalancer.openstack.org/timeout-client-data",
        "milliseconds of silence of clients",
    ),
    served(
        "loadbalancer.openstack.org/timeout-member-connect",
        "milliseconds for connections to members",
    ),
    served(
        "loadbalancer.openstack.org/timeout-member-data",
        "milliseconds of silence of members",
    ),
    served(
        "loadbalancer.openstack.org/timeout-tcp-inspect",
        "milliseconds for packets to inspect content",
    ),
];

/// Combined settings of cloud.conf and the annotations of a Service: annotations override the class, and the class
/// overrides cloud.conf.
#[derive(Clone, Debug)]
pub(crate) struct Wishes {
    pub(crate) internal: bool,
    pub(crate) placement: Placement,
    /// Existing port; empty for a new one.
    pub(crate) port_id: String,
    pub(crate) floating_subnet: FloatingSubnet,
    pub(crate) method: String,
    pub(crate) monitor: MonitorDefaults,
    pub(crate) flavor_id: String,
    pub(crate) availability_zone: String,
    pub(crate) node_selector: Selector,
    pub(crate) hostname: Option<String>,
    pub(crate) traffic: Traffic,
    /// True if members have weights by ready endpoints.
    pub(crate) has_weights: bool,
}

impl Wishes {
    /// Combines the settings.
    ///
    /// # Errors
    /// Names the invalid or unsupported annotation.
    pub(crate) fn new(
        annotations: &BTreeMap<String, String>,
        conf: &CloudConf,
    ) -> Result<Self, Rejection> {
        let given = Given(annotations);
        // The value matters at the deletion, when a wrong one could no longer be corrected.
        given.truth("keep-floatingip")?;
        let defaults = &conf.load_balancer;
        let class = match given.text("class") {
            None => None,
            Some(name) => Some(conf.classes.get(name).ok_or_else(|| {
                given.wrong(
                    "class",
                    &format!("cloud.conf has no [LoadBalancerClass \"{name}\"]"),
                )
            })?),
        };
        let placed = |name: &str, field: fn(&Placement) -> &String| {
            let class = class.map(field).filter(|value| !value.is_empty());
            let given = given.text(name).map(str::to_owned);
            given
                .or_else(|| class.cloned())
                .unwrap_or_else(|| field(&defaults.placement).clone())
        };
        let monitor = &defaults.monitor;
        let seconds = |name: &str, default: std::time::Duration| {
            let count = given
                .number(name)?
                .map(|count| std::time::Duration::from_secs(count.into()));
            Ok::<_, Rejection>(count.unwrap_or(default))
        };
        let monitor = MonitorDefaults {
            create: given
                .truth("enable-health-monitor")?
                .unwrap_or(monitor.create),
            delay: seconds("health-monitor-delay", monitor.delay)?,
            timeout: seconds("health-monitor-timeout", monitor.timeout)?,
            max_retries: given
                .number("health-monitor-max-retries")?
                .unwrap_or(monitor.max_retries),
            max_retries_down: given
                .number("health-monitor-max-retries-down")?
                .unwrap_or(monitor.max_retries_down),
        };
        if monitor.timeout > monitor.delay {
            return Err(given.wrong(
                "health-monitor-timeout",
                "the timeout is longer than the delay, which Octavia rejects",
            ));
        }
        let text = |name: &str, default: &str| given.text(name).unwrap_or(default).to_owned();
        Ok(Self {
            internal: defaults.internal || given.internal()?,
            placement: Placement {
                subnet_id: placed("subnet-id", |p| &p.subnet_id),
                member_subnet_id: placed("member-subnet-id", |p| &p.member_subnet_id),
                network_id: placed("network-id", |p| &p.network_id),
                floating_network_id: placed("floating-network-id", |p| &p.floating_network_id),
                ..Placement::default()
            },
            port_id: text("port-id", ""),
            floating_subnet: FloatingSubnet::new(&given, class, &defaults.placement)?,
            method: given.method(&defaults.method, &defaults.provider)?,
            monitor,
            flavor_id: text("flavor-id", &defaults.flavor_id),
            availability_zone: text("availability-zone", &defaults.availability_zone),
            node_selector: given
                .selector()?
                .unwrap_or_else(|| defaults.node_selector.clone()),
            hostname: given.text("hostname").map(str::to_owned),
            traffic: Traffic::new(&given, defaults)?,
            has_weights: weights::asked(&given)?,
        })
    }
}

/// Subnets for a floating IP.
#[derive(Clone, Debug)]
pub(crate) enum FloatingSubnet {
    Any,
    Id(String),
    Matching {
        name: Option<NamePattern>,
        tags: Option<TagFilter>,
        /// Source of the choice, for messages.
        source: String,
    },
}

impl FloatingSubnet {
    /// The first of annotations, class and cloud.conf with one of the three settings provides all three.
    fn new(
        given: &Given<'_>,
        class: Option<&Placement>,
        defaults: &Placement,
    ) -> Result<Self, Rejection> {
        let text = |name: &str| given.text(name).unwrap_or_default().to_owned();
        let annotated = Placement {
            floating_subnet_id: text("floating-subnet-id"),
            floating_subnet: text("floating-subnet"),
            floating_subnet_tags: text("floating-subnet-tags"),
            ..Placement::default()
        };
        let levels = [Some(&annotated), class, Some(defaults)];
        let mut levels = levels.into_iter().flatten();
        let Some(level) = levels.find(|level| level.asks_for_floating_subnet()) else {
            return Ok(Self::Any);
        };
        if !level.floating_subnet_id.is_empty() {
            return Ok(Self::Id(level.floating_subnet_id.clone()));
        }
        let name = Some(level.floating_subnet.as_str()).filter(|text| !text.is_empty());
        let name = name.map(NamePattern::parse).transpose();
        let name = name.map_err(|error| given.wrong("floating-subnet", &error.to_string()))?;
        let tags = TagFilter::parse(&level.floating_subnet_tags);
        if name.is_none() && tags.is_none() {
            return Err(given.wrong("floating-subnet-tags", "the list has no tags"));
        }
        let source = [
            ("floating-subnet", &level.floating_subnet),
            ("floating-subnet-tags", &level.floating_subnet_tags),
        ];
        let source = source.into_iter().filter(|(_, value)| !value.is_empty());
        let source: Vec<_> = source
            .map(|(key, value)| format!("{key} `{value}`"))
            .collect();
        Ok(Self::Matching {
            name,
            tags,
            source: source.join(", "),
        })
    }
}

/// True if the floating IP of a Service is kept at its deletion, even if other annotations are invalid.
pub(crate) fn keeps_floating_ip(annotations: &BTreeMap<String, String>) -> bool {
    Given(annotations).text("keep-floatingip") == Some("true")
}

/// Annotations with our prefix and without a meaning: misspelled ones, and annotations of other versions.
pub(crate) fn unknown(annotations: &BTreeMap<String, String>) -> Vec<&str> {
    let ours = annotations.keys().filter(|name| name.starts_with(PREFIX));
    let unknown = ours.filter(|name| !ANNOTATIONS.iter().any(|known| known.name == **name));
    unknown.map(String::as_str).collect()
}

/// Annotations that choose the members: all of them, and then only the selector, if valid.
pub(crate) fn of_members(annotations: &BTreeMap<String, String>) -> [Vec<&'static str>; 2] {
    let selector = Given(annotations).selector().ok();
    let selector: Vec<_> = selector.map(|_| NODE_SELECTOR).into_iter().collect();
    [[&selector[..], &[MEMBER_SUBNET]].concat(), selector]
}

/// Removes the annotations with settings of a Service, except the ones in `kept`.
pub(crate) fn keep_only(annotations: &mut BTreeMap<String, String>, kept: &[&str]) {
    annotations.retain(|name, _| {
        !(name.starts_with(PREFIX) || name == INTERNAL) || kept.contains(&name.as_str())
    });
}

/// True if a name is published in place of addresses.
pub(crate) fn has_hostname(annotations: &BTreeMap<String, String>) -> bool {
    Given(annotations).text("hostname").is_some()
}

pub(super) struct Given<'a>(&'a BTreeMap<String, String>);

impl<'a> Given<'a> {
    pub(super) const fn from_annotations(annotations: &'a BTreeMap<String, String>) -> Self {
        Self(annotations)
    }

    /// Value as written, empty or not.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        self.0.get(&format!("{PREFIX}{name}")).map(String::as_str)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let value = self
            .0
            .get(&format!("{PREFIX}{name}"))
            .map(|value| value.trim());
        value.filter(|value| !value.is_empty())
    }

    pub(super) fn wrong(&self, name: &str, problem: &str) -> Rejection {
        let value = self.text(name).unwrap_or_default();
        Rejection::new(format!("annotation {PREFIX}{name}: `{value}`: {problem}"))
    }

    pub(super) fn truth(&self, name: &str) -> Result<Option<bool>, Rejection> {
        match self.text(name) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(self.wrong(name, "write true or false")),
        }
    }

    fn internal(&self) -> Result<bool, Rejection> {
        match self.0.get(INTERNAL).map(String::as_str) {
            None | Some("" | "false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Rejection::new(format!(
                "annotation {INTERNAL}: `{other}`: write true or false"
            ))),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u32>, Rejection> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match text.parse::<u32>() {
            Ok(number @ 1..) => Ok(Some(number)),
            _ => Err(self.wrong(name, "write a number of 1 or more")),
        }
    }

    /// Number with a minimum.
    pub(super) fn at_least(&self, name: &str, least: i64) -> Result<Option<i64>, Rejection> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match text.parse::<i64>() {
            Ok(number) if (least..=GREATEST).contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong(
                name,
                &format!("write a number of at least {least} and at most {GREATEST}"),
            )),
        }
    }

    fn method(&self, default: &str, provider: &str) -> Result<String, Rejection> {
        let method = self.text("lb-method").unwrap_or(default);
        if !cloud_conf::METHODS.contains(&method) {
            let all = cloud_conf::METHODS.join(", ");
            return Err(self.wrong("lb-method", &format!("write one of {all}")));
        }
        if provider == "ovn" && method != "SOURCE_IP_PORT" {
            return Err(Rejection::new(format!(
                "the driver ovn has no {method}: set lb-method = SOURCE_IP_PORT in cloud.conf, or the annotation {PREFIX}lb-method"
            )));
        }
        Ok(method.to_owned())
    }

    fn selector(&self) -> Result<Option<Selector>, Rejection> {
        let Some(text) = self.text("node-selector") else {
            return Ok(None);
        };
        cloud_conf::selector(text).map(Some).map_err(|part| {
            let wrong = format!("`{part}` is no label: write key=value, or key for any value");
            self.wrong("node-selector", &wrong)
        })
    }
}
