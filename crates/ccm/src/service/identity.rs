//! Identity that marks a load balancer.
//!
//! Names, tags and descriptions are the Go manager's, so that a cluster can switch back. Two clusters with the same
//! name would have the same ones, so our load balancers also have the uids of the cluster and of the Service.

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use load_balancing::Names;
use openstack::loadbalancer::MemberCreate;

use super::vip::Family;

/// Limit of Octavia, which rejects longer names.
const LONGEST: usize = 255;
const CLUSTER_TAG: &str = "ferrostack-cluster=";
const SERVICE_TAG: &str = "ferrostack-service=";
/// Tag on a load balancer created for another Service, or by a user.
const SHARED_TAG: &str = "ferrostack-shared=";
/// Prefix of the names of the Go manager's load balancers, and of its tags for Services.
const PREFIX: &str = "kube_service_";

/// [`Names`] of the parts of a load balancer, as the Go manager gives them.
pub(crate) const NAMES: Names = Names {
    renamed: Identity::renamed,
    of_single_member: named_alone,
};

/// Names and tags of a Service's load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Name of the load balancer, and the Go manager's tag on all of its parts.
    pub(crate) name: String,
    /// `namespace/name` of the Service.
    pub(crate) service: String,
    cluster_name: String,
    cluster_uid: String,
    /// Uid of the Service; for a second load balancer, with the family.
    service_uid: String,
    /// [`Family`] of a second load balancer.
    family: Option<Family>,
}

impl Identity {
    pub(crate) fn new(service: &Service, cluster_name: &str, cluster_uid: &str) -> Self {
        let (namespace, name) = (service.namespace().unwrap_or_default(), service.name_any());
        Self {
            name: cut(format!("{PREFIX}{cluster_name}_{namespace}_{name}")),
            service: format!("{namespace}/{name}"),
            cluster_name: cluster_name.to_owned(),
            cluster_uid: cluster_uid.to_owned(),
            service_uid: service.uid().unwrap_or_default(),
            family: None,
        }
    }

    /// Identity of the Service's load balancer for one [`Family`], if the first one cannot have the address. The name has
    /// a capital letter, unlike the name of any Service, so no first load balancer has this name.
    pub(crate) fn of_second(&self, family: Family) -> Self {
        let name = family.name();
        let stem = cut_to(self.name.clone(), LONGEST.saturating_sub(name.len() + 1));
        Self {
            name: format!("{stem}_{name}"),
            service_uid: format!("{}-{name}", self.service_uid),
            family: Some(family),
            ..self.clone()
        }
    }

    /// True for the identity of a second load balancer.
    pub(crate) const fn is_second(&self) -> bool {
        self.family.is_some()
    }

    /// Description of the load balancer, also a part of the description of its floating IP.
    pub(crate) fn description(&self) -> String {
        let family = self.family.map(|family| format!(" ({})", family.name()));
        format!(
            "Kubernetes external service {} from cluster {}{}",
            self.service,
            self.cluster_name,
            family.unwrap_or_default()
        )
    }

    /// Description of the floating IP: starts with the Go manager's description, since the Go manager deletes
    /// floating IPs by this prefix, and ends with the mark.
    pub(crate) fn floating_ip_description(&self) -> String {
        self.marked(format!("Floating IP for {}", self.description()))
    }

    /// Description with both uids at its end: neither a floating IP nor a group has tags from its beginning. The uid
    /// of the cluster is left out where both do not fit.
    fn marked(&self, text: String) -> String {
        let service = format!(" ({})", self.service_tag());
        let both = format!(" ({}){service}", self.cluster_tag());
        let fits = text.len() + both.len() <= LONGEST;
        text + if fits { &both } else { &service }
    }

    /// True if a floating IP was created for this Service, according to the uid in the description.
    pub(crate) fn owns_floating_ip(&self, description: &str) -> bool {
        description.ends_with(&format!("({})", self.service_tag()))
    }

    /// True if a manager created the floating IP on the port of our load balancer: this manager or the Go one.
    pub(crate) fn is_managed_floating_ip(description: &str) -> bool {
        description.starts_with("Floating IP for Kubernetes external service ")
    }

    pub(crate) fn cluster_tag(&self) -> String {
        format!("{CLUSTER_TAG}{}", self.cluster_uid)
    }

    pub(crate) fn service_tag(&self) -> String {
        format!("{SERVICE_TAG}{}", self.service_uid)
    }

    /// Tags of the load balancer.
    pub(crate) fn tags(&self) -> Vec<String> {
        vec![self.name.clone(), self.cluster_tag(), self.service_tag()]
    }

    /// Name of the security group.
    pub(crate) fn group_name(&self) -> String {
        let service = self.service.replacen('/', "-", 1);
        cut(format!("lb-sg-{}-{service}", self.service_uid))
    }

    /// Description of the security group: begins with the Go manager's description, and ends with the mark.
    pub(crate) fn group_description(&self) -> String {
        let mark = format!(" ({})", self.service_tag());
        self.marked(cut_to(
            self.go_group_description(),
            LONGEST.saturating_sub(mark.len()),
        ))
    }

    fn go_group_description(&self) -> String {
        format!(
            "Security Group for {} Service LoadBalancer in cluster {}",
            self.service, self.cluster_name
        )
    }

    /// True if a security group was created for this Service: by the mark, or by a name with the uid of the Service,
    /// together with the description of the Go manager.
    pub(crate) fn owns_group(&self, name: &str, description: &str) -> bool {
        description.ends_with(&format!("({})", self.service_tag()))
            || name == self.group_name() && description == cut(self.go_group_description())
    }

    /// Mark of a load balancer with this Service as a guest.
    pub(crate) fn shared_tag(&self) -> String {
        format!("{SHARED_TAG}{}", self.service_uid)
    }

    /// Tags of a part of the load balancer.
    pub(crate) fn part_tags(&self) -> Vec<String> {
        vec![self.name.clone(), self.service_tag()]
    }

    /// Tags for this Service on a load balancer of another Service or of a user.
    pub(crate) fn guest_tags(&self) -> Vec<String> {
        vec![self.name.clone(), self.shared_tag()]
    }

    /// True if a load balancer created for somebody else serves this Service, too.
    pub(crate) fn is_guest(&self, tags: &[String]) -> bool {
        tags.contains(&self.shared_tag())
    }

    /// True if a part with these tags belongs to this Service. A part without the tag of a Service is the Go
    /// manager's, which marks parts by the name of the load balancer alone.
    pub(crate) fn owns_part(&self, prefix: &str, name: &str, tags: &[String]) -> bool {
        match tags.iter().any(|tag| tag.starts_with(SERVICE_TAG)) {
            true => tags.contains(&self.service_tag()),
            false => {
                let named = name.starts_with(prefix) && name.ends_with(&format!("_{}", self.name));
                tags.contains(&self.name) || named
            }
        }
    }

    /// New name for a part whose name comes from no manager. An outdated index of a port, and the name of another
    /// cluster, are left unchanged, as by the Go manager.
    fn renamed(wanted: &str, known: &str) -> Option<String> {
        let stem = |name: &str| {
            let (kind, rest) = name.split_once('_')?;
            let (index, _) = rest.split_once('_')?;
            index.parse::<usize>().ok().map(|_| kind.to_owned())
        };
        (stem(wanted) != stem(known)).then(|| wanted.to_owned())
    }

    /// Tags of a load balancer without this Service's. The name at the creation is one of these tags if the load
    /// balancer was created for this Service, also under another name of the cluster.
    pub(crate) fn without_ours(&self, name: &str, tags: &[String]) -> Vec<String> {
        let ours = [self.name.clone(), self.service_tag(), self.shared_tag()];
        let is_name = |tag: &String| tag == name && self.owns(tags);
        let left = tags
            .iter()
            .filter(|tag| !ours.contains(tag) && !is_name(tag));
        left.cloned().collect()
    }

    /// Other Services of a load balancer, by their tags.
    pub(crate) fn others(&self, name: &str, tags: &[String]) -> Vec<String> {
        let mut others: Vec<_> = self.without_ours(name, tags);
        others.retain(|tag| tag.starts_with(PREFIX));
        others
    }

    /// True if a manager of this cluster created the load balancer, and deletes the load balancer with the last
    /// Service.
    pub(crate) fn is_managed(&self, name: &str, tags: &[String]) -> bool {
        name.starts_with(PREFIX) && tags.contains(&self.cluster_tag())
    }

    /// True if the manager of another or an unknown cluster created the load balancer.
    pub(crate) fn is_foreign(&self, name: &str, tags: &[String]) -> bool {
        let cluster = self.cluster_tag();
        let mut clusters = tags.iter().filter(|tag| tag.starts_with(CLUSTER_TAG));
        clusters.clone().any(|tag| *tag != cluster)
            || name.starts_with(PREFIX) && !clusters.any(|tag| *tag == cluster)
    }

    /// True for tags of this Service in this cluster.
    pub(crate) fn owns(&self, tags: &[String]) -> bool {
        tags.contains(&self.cluster_tag()) && tags.contains(&self.service_tag())
    }

    /// True if name and tags are the Go manager's for this Service, without tags of another cluster or Service.
    pub(crate) fn is_legacy(&self, name: &str, tags: &[String]) -> bool {
        let marked = |tag: &String| tag.starts_with(CLUSTER_TAG) || tag.starts_with(SERVICE_TAG);
        name == self.name && tags.contains(&self.name) && !tags.iter().any(marked)
    }

    /// Name of a part: `listener`, `pool` or `monitor` for the port with this index.
    pub(crate) fn part(&self, what: &str, index: usize) -> String {
        cut(format!("{what}_{index}_{}", self.name))
    }
}

/// Name of a member created alone.
fn named_alone(member: &MemberCreate) -> String {
    let MemberCreate {
        name,
        address,
        protocol_port: port,
        ..
    } = member;
    cut(format!("member_{name}_{address}_{port}"))
}

/// Truncates to [`LONGEST`] bytes, as the Go manager does.
fn cut(name: String) -> String {
    cut_to(name, LONGEST)
}

fn cut_to(mut name: String, longest: usize) -> String {
    let end = (0..=longest.min(name.len()))
        .rev()
        .find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or(0));
    name
}
