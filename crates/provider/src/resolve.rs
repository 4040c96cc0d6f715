//! Resolves the references of a spec, by id or filter, to resources of the cloud. Errors list the existing names.

use std::sync::Arc;

use api::conditions::{Reason, Type};
use api::infra::v1beta2::{
    FlavorParam, ImageParam, NetworkFilter, NetworkParam, Param, SecurityGroupParam,
    ServerGroupParam, SubnetFilter, SubnetParam, SubnetPoolParam,
};
use openstack::compute::{Flavor, ServerGroup};
use openstack::image::Image;
use openstack::inventory::{Resource, Table};
use openstack::network::{Network, Router, SecurityGroup, Subnet, SubnetPool};
use openstack::{Kind, View};
use serde_json::Value;

use crate::problem::Problem;

/// The maximum number of names in an error.
const NAMES: usize = 12;

/// Reason why no resource was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotFound {
    /// The reason, for users.
    pub(crate) text: String,
    /// [`Kind`] of the searched list; a newer list may give another answer.
    pub(crate) searched: Option<Kind>,
}

impl NotFound {
    /// Reason that a newer list of `searched` may refute.
    pub(crate) fn among(searched: Kind, text: String) -> Self {
        let searched = Some(searched);
        Self { text, searched }
    }

    /// Same reason, for a field of the spec.
    pub(crate) fn in_field(self, field: &str) -> Self {
        let text = format!("{field}: {}", self.text);
        Self { text, ..self }
    }

    /// [`Problem`] for conditions.
    pub(crate) fn problem(self, about: Type, reason: Reason) -> Problem {
        Problem {
            searched: self.searched,
            ..Problem::new(about, reason, self.text)
        }
    }
}

impl From<String> for NotFound {
    /// Reason independent of lists.
    fn from(text: String) -> Self {
        let searched = None;
        Self { text, searched }
    }
}

/// [`Network`] selected by `param`; a filter selects among the networks accepted by `among`.
pub(crate) fn network<'v>(
    view: &'v View,
    param: &NetworkParam,
    among: impl Fn(&Network) -> bool,
) -> Result<&'v Arc<Network>, NotFound> {
    one(&view.networks, param, "network", |filter, item| {
        among(item) && matches_filter(filter, item, &item.project_id)
    })
}

/// External [`Network`] selected by `param` in `field`, or else the only one; `without` is the advice without any.
pub(crate) fn external_network<'v>(
    view: &'v View,
    param: Option<&NetworkParam>,
    field: &str,
    without: &str,
) -> Result<&'v Arc<Network>, NotFound> {
    if let Some(param) = param {
        let found = network(view, param, |network| network.external);
        let found = found.map_err(|why| why.in_field(field))?;
        if found.external {
            return Ok(found);
        }
        let text = format!("{field}: network {} is not external", found.id);
        return Err(NotFound::among(Kind::Networks, text));
    }
    let all: Vec<_> = view.external_networks().collect();
    let text = match all.as_slice() {
        [only] => return Ok(*only),
        [] => format!("the cloud has no external network that the project can see{without}"),
        several => format!(
            "the cloud has {} external networks ({}): choose one in {field}",
            several.len(),
            names(several.iter().map(|network| network.name.as_str()))
        ),
    };
    Err(NotFound::among(Kind::Networks, text))
}

/// [`Router`] selected by `param`.
pub(crate) fn router<'v>(
    view: &'v View,
    param: &NetworkParam,
) -> Result<&'v Arc<Router>, NotFound> {
    one(&view.routers, param, "router", |filter, item| {
        matches_filter(filter, item, &item.project_id)
    })
}

/// [`SubnetPool`] selected by `param`.
pub(crate) fn subnet_pool<'v>(
    view: &'v View,
    param: &SubnetPoolParam,
) -> Result<&'v Arc<SubnetPool>, NotFound> {
    one(&view.subnet_pools, param, "subnet pool", |filter, item| {
        matches_filter(filter, item, &item.project_id)
    })
}

/// [`Subnet`] selected by `param`, in `network` if set.
pub(crate) fn subnet<'v>(
    view: &'v View,
    param: &SubnetParam,
    network: Option<&str>,
) -> Result<&'v Arc<Subnet>, NotFound> {
    let inside = |subnet: &Subnet| network.is_none_or(|network| subnet.network_id == network);
    let found = one(&view.subnets, param, "subnet", |filter, item| {
        inside(item) && matches_subnet(filter, item)
    })?;
    if inside(found) {
        return Ok(found);
    }
    let (id, known, network) = (&found.id, &found.network_id, network.unwrap_or_default());
    Err(format!("subnet {id} is in network {known}, not in {network}").into())
}

/// All [`SecurityGroup`]s selected by `param`: as in the Go provider, every match of a filter.
pub(crate) fn security_groups<'v>(
    view: &'v View,
    param: &SecurityGroupParam,
) -> Result<Vec<&'v Arc<SecurityGroup>>, NotFound> {
    let table = &view.security_groups;
    let found: Vec<_> = match param {
        Param::Id(id) => table.get(id).into_iter().collect(),
        Param::Filter(filter) => table
            .iter()
            .filter(|g| matches_filter(filter, g.as_ref(), &g.project_id))
            .collect(),
    };
    if found.is_empty() {
        return Err(absent(table, "security group", &described(param)));
    }
    Ok(found)
}

/// [`Flavor`] selected by `param`.
pub(crate) fn flavor<'v>(
    view: &'v View,
    param: &FlavorParam,
    project: &str,
) -> Result<&'v Arc<Flavor>, NotFound> {
    let (found, name) = match param {
        FlavorParam::Id(id) => (view.flavors.get(id), id.as_str()),
        FlavorParam::Filter(filter) => {
            let name = filter.name.as_deref().unwrap_or_default();
            (view.flavors.named(name).first(), name)
        }
    };
    found.ok_or_else(|| {
        let there_are = names(view.flavors.iter().map(|flavor| flavor.name.as_str()));
        let text = format!("flavor `{name}` does not exist in {project}; there are: {there_are}");
        NotFound::among(Kind::Flavors, text)
    })
}

/// [`Image`] selected by `param`; a filter must match exactly one.
pub(crate) fn image<'v>(
    view: &'v View,
    param: &ImageParam,
    project: &str,
) -> Result<&'v Arc<Image>, NotFound> {
    let there_are = || names(view.images.iter().map(|image| image.name.as_str()));
    let filter = match param {
        ImageParam::Id(id) => {
            return view.images.get(id).ok_or_else(|| {
                let there_are = there_are();
                let text =
                    format!("image `{id}` does not exist in {project}; there are: {there_are}");
                NotFound::among(Kind::Images, text)
            });
        }
        ImageParam::ImageRef(image) => {
            // Its id takes the place of the name as soon as the Image is available.
            let text = format!("Image {} of ORC (imageRef) is not available", image.name);
            return Err(text.into());
        }
        ImageParam::Filter(filter) => filter,
    };
    let found: Vec<_> = view
        .images
        .iter()
        .filter(|image| filter.name.as_ref().is_none_or(|name| image.name == *name))
        .filter(|image| filter.tags.iter().all(|tag| image.tags.contains(tag)))
        .collect();
    let wanted = match &filter.name {
        Some(name) if filter.tags.is_empty() => format!("`{name}`"),
        Some(name) => format!("`{name}` with tags {}", filter.tags.join(", ")),
        None => format!("with tags {}", filter.tags.join(", ")),
    };
    let text = match found.as_slice() {
        [image] => return Ok(image),
        [] => format!(
            "image {wanted} does not exist in {project}; there are: {}",
            there_are()
        ),
        several => format!(
            "{} images match {wanted}: {}. Give one's id in image.id",
            several.len(),
            names(several.iter().map(|image| image.id.as_str()))
        ),
    };
    Err(NotFound::among(Kind::Images, text))
}

/// [`ServerGroup`] selected by `param`.
pub(crate) fn server_group<'v>(
    view: &'v View,
    param: &ServerGroupParam,
) -> Result<&'v Arc<ServerGroup>, NotFound> {
    one(
        &view.server_groups,
        param,
        "server group",
        |filter, item| filter.name.as_ref().is_none_or(|name| item.name == *name),
    )
}

/// Reason why a tag in `field` is rejected, see [`Mark::foreign_tag`](crate::identity::Mark::foreign_tag).
pub(crate) fn foreign_tag(field: &str, tag: &str) -> String {
    format!(
        "{field}: {tag} is a tag by which what belongs to another cluster, machine or Service is found: remove it"
    )
}

/// Up to [`NAMES`] names, sorted, without duplicates.
pub(crate) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    let more = names.len().saturating_sub(NAMES);
    names.truncate(NAMES);
    match (names.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    }
}

fn one<'v, T: Resource, F: serde::Serialize>(
    table: &'v Table<T>,
    param: &Param<F>,
    what: &str,
    matches: impl Fn(&F, &T) -> bool,
) -> Result<&'v Arc<T>, NotFound> {
    let found: Vec<_> = match param {
        Param::Id(id) => table.get(id).into_iter().collect(),
        Param::Filter(filter) => table.iter().filter(|item| matches(filter, item)).collect(),
    };
    match found.as_slice() {
        [item] => Ok(item),
        [] => Err(absent(table, what, &described(param))),
        several => {
            let ids = names(several.iter().map(|item| item.id()));
            let (number, wanted) = (several.len(), described(param));
            let text = format!("{number} {what}s match {wanted}: {ids}. Give one's id");
            Err(NotFound::among(T::KIND, text))
        }
    }
}

fn absent<T: Resource>(table: &Table<T>, what: &str, wanted: &str) -> NotFound {
    let there_are = names(table.iter().map(|item| item.name()));
    let text = format!(
        "{what} {wanted} does not exist, or the project cannot see it; there are: {there_are}"
    );
    NotFound::among(T::KIND, text)
}

fn described<F: serde::Serialize>(param: &Param<F>) -> String {
    match param {
        Param::Id(id) => format!("`{id}`"),
        Param::Filter(filter) => described_filter(filter),
    }
}

/// Fields of a filter with values.
fn described_filter<F: serde::Serialize>(filter: &F) -> String {
    let fields = serde_json::to_value(filter).unwrap_or_default();
    let fields = fields.as_object().into_iter().flatten();
    let set: Vec<_> = fields
        .filter_map(|(name, value)| Some(format!("{name} `{}`", described_value(value)?)))
        .collect();
    format!("with {}", set.join(" and "))
}

fn described_value(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().filter_map(described_value).collect();
            (!items.is_empty()).then(|| items.join(", "))
        }
        other => Some(other.to_string()),
    }
}

fn matches_filter<T: Resource>(filter: &NetworkFilter, item: &T, project: &str) -> bool {
    let is = |wanted: &Option<String>, known: &str| wanted.as_ref().is_none_or(|w| w == known);
    is(&filter.name, item.name())
        && is(&filter.description, item.description())
        && is(&filter.project_id, project)
        && matches_tags(
            item.tags(),
            &filter.tags,
            &filter.tags_any,
            &filter.not_tags,
            &filter.not_tags_any,
        )
}

fn matches_subnet(filter: &SubnetFilter, item: &Subnet) -> bool {
    let is = |wanted: &Option<String>, known: &str| wanted.as_ref().is_none_or(|w| w == known);
    // The inventory does not have the IPv6 modes of subnets: a filter with them matches nothing.
    filter.ipv6_address_mode.is_none()
        && filter.ipv6_ra_mode.is_none()
        && is(&filter.name, &item.name)
        && is(&filter.description, &item.description)
        && is(&filter.project_id, &item.project_id)
        && is(&filter.cidr, &item.cidr)
        && is(
            &filter.gateway_ip,
            item.gateway_ip.as_deref().unwrap_or_default(),
        )
        && filter
            .ip_version
            .is_none_or(|version| version == i32::from(item.ip_version))
        && matches_tags(
            &item.tags,
            &filter.tags,
            &filter.tags_any,
            &filter.not_tags,
            &filter.not_tags_any,
        )
}

/// Neutron's four tag filters: all, any, not all, not any.
fn matches_tags(
    known: &[String],
    all: &[String],
    any: &[String],
    not_all: &[String],
    not_any: &[String],
) -> bool {
    let has = |tag: &String| known.contains(tag);
    all.iter().all(has)
        && (any.is_empty() || any.iter().any(has))
        && (not_all.is_empty() || !not_all.iter().all(has))
        && !not_any.iter().any(has)
}

#[cfg(test)]
mod tests;
