//! Resource with its evidence, and the search for one. Pure.

use std::fmt;

use openstack::View;
use openstack::inventory::Resource;

use crate::identity::{Identity, Mark};

/// Kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names are self-explanatory; `Display` describes them.
pub enum What {
    Network,
    Subnet,
    Router,
    SecurityGroup,
    LoadBalancer,
    FloatingIp,
    Server,
    Port,
    Volume,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            What::Network => "network",
            What::Subnet => "subnet",
            What::Router => "router",
            What::SecurityGroup => "security group",
            What::LoadBalancer => "load balancer",
            What::FloatingIp => "floating IP",
            What::Server => "server",
            What::Port => "port",
            What::Volume => "volume",
        })
    }
}

/// Single write that marks a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// New description.
    Description(String),
    /// All new tags.
    Tags(Vec<String>),
}

/// Resource of the Go provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Kind.
    pub what: What,
    /// Id.
    pub id: String,
    /// Name; for a floating IP the address.
    pub name: String,
    /// Kind and name of the object that owns the resource.
    pub object: String,
    /// Evidence of the owner: an id first, then a name.
    pub evidence: Vec<String>,
    /// [`Write`] of the mark; `None` if marked.
    pub write: Option<Write>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.what, self.name, self.id)
    }
}

/// Part of the evidence common to all resources of an object.
#[derive(Clone, Debug)]
pub(super) struct Side {
    /// Kind and name of the object.
    pub(super) object: String,
    /// [`Mark`] of the resources.
    pub(super) mark: Mark,
}

/// Source of an id.
#[derive(Clone, Debug)]
pub(super) enum By {
    /// The status of an object, by its kind and name.
    Status(String),
    /// Server with the port or volume, by its id.
    Server(String),
}

impl By {
    fn which(&self) -> String {
        match self {
            By::Status(object) => format!("which the status of {object} names"),
            By::Server(id) => format!("which is at server {id}"),
        }
    }

    fn evidence(&self) -> String {
        match self {
            By::Status(object) => format!("the status of {object} names it"),
            By::Server(id) => format!("it is at server {id}"),
        }
    }
}

/// Properties required of a resource.
pub(super) struct Expected<'a> {
    pub(super) what: What,
    /// Id, and its source.
    pub(super) id: &'a str,
    pub(super) by: By,
    /// Names of such a resource of this object in the Go provider.
    pub(super) names: Vec<String>,
    /// Description in the Go provider.
    pub(super) description: String,
}

/// Search for the resources of one cluster.
pub(super) struct Search<'v> {
    pub(super) view: &'v View,
    pub(super) found: Vec<Found>,
    pub(super) conflicts: Vec<String>,
    pub(super) notes: Vec<String>,
}

impl<'v> Search<'v> {
    pub(super) fn new(view: &'v View) -> Self {
        Self {
            view,
            found: Vec::new(),
            conflicts: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Takes a resource with a description, or reports the reason against it.
    pub(super) fn described<T: Resource>(
        &mut self,
        side: &Side,
        expected: Expected<'_>,
        item: Option<&T>,
    ) {
        let Some(item) = self.proven(side, &expected, item) else {
            return;
        };
        let text = match item.description() {
            "" => expected.description.as_str(),
            text => text,
        };
        let is_marked = Mark::in_description(item.description()).is_some();
        let write = (!is_marked).then(|| Write::Description(side.mark.description(text)));
        let is_described = text == expected.description && !item.description().is_empty();
        self.push(side, &expected, item, write, is_described);
    }

    /// Takes a server, with a mark in the tags, or reports the reason against it.
    pub(super) fn tagged<T: Resource>(
        &mut self,
        side: &Side,
        expected: Expected<'_>,
        item: Option<&T>,
    ) {
        let Some(item) = self.proven(side, &expected, item) else {
            return;
        };
        let is_marked = Mark::in_tags(item.tags()).is_some();
        let mut tags = item.tags().to_vec();
        tags.extend(side.mark.tags());
        if tags.len() > MOST_TAGS && !is_marked {
            self.conflicts.push(format!(
                "{} {} has {} tags, and Nova takes {MOST_TAGS}: remove two of them",
                expected.what,
                item.id(),
                item.tags().len()
            ));
            return;
        }
        let write = (!is_marked).then_some(Write::Tags(tags));
        self.push(side, &expected, item, write, false);
    }

    /// Resource with an expected name and without a foreign mark; a conflict otherwise.
    fn proven<'i, T: Resource>(
        &mut self,
        side: &Side,
        expected: &Expected<'_>,
        item: Option<&'i T>,
    ) -> Option<&'i T> {
        let (what, id, which) = (expected.what, expected.id, expected.by.which());
        let refused = match item {
            None => format!("{what} {id}, {which}, does not exist in the project"),
            Some(item) if !expected.names.iter().any(|name| name == item.name()) => format!(
                "{what} {id}, {which}, has the name {}, and cluster-api-provider-openstack would have called it {}",
                item.name(),
                expected.names.join(" or ")
            ),
            Some(item) => match (Mark::from_item(item), Identity::of_pool(item)) {
                (Some(mark), _) if mark == side.mark => return Some(item),
                (Some(mark), _) => format!(
                    "{what} {id}, {which}, carries the mark {} of another owner, and that of {} would be {}",
                    mark.suffix(),
                    side.object,
                    side.mark.suffix()
                ),
                (None, Some(pool)) => {
                    format!("{what} {id}, {which}, was allocated by the pool with identity {pool}")
                }
                (None, None) => return Some(item),
            },
        };
        self.conflicts.push(refused);
        None
    }

    fn push<T: Resource>(
        &mut self,
        side: &Side,
        expected: &Expected<'_>,
        item: &T,
        write: Option<Write>,
        is_described: bool,
    ) {
        if self.found.iter().any(|known| known.id == item.id()) {
            return;
        }
        let mut evidence = vec![expected.by.evidence()];
        evidence.push(match expected.what {
            What::FloatingIp => format!("its description is \"{}\"", item.description()),
            _ => format!("its name is {}", item.name()),
        });
        if is_described && expected.what != What::FloatingIp {
            evidence.push(format!("its description is \"{}\"", item.description()));
        }
        self.found.push(Found {
            what: expected.what,
            id: item.id().to_owned(),
            name: item.name().to_owned(),
            object: side.object.clone(),
            evidence,
            write,
        });
    }

    /// Notes a resource with a name of the cluster but in no status: the provider would create another one.
    pub(super) fn stray<T: Resource>(
        &mut self,
        what: What,
        side: &Side,
        items: &[std::sync::Arc<T>],
    ) {
        for item in items {
            let known = self.found.iter().any(|known| known.id == item.id());
            if known || Mark::from_item(&**item).is_some() {
                continue;
            }
            self.conflicts.push(format!(
                "{what} {} has the name {} of {}, and no status names it: let cluster-api-provider-openstack finish, or \
                 delete what is nobody's",
                item.id(),
                item.name(),
                side.object
            ));
        }
    }
}

/// Nova's limit for the tags of a server.
const MOST_TAGS: usize = 50;
