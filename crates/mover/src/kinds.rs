//! Kinds that a side serves, and the version in which objects are copied.

use std::sync::Arc;

use api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use api::names::{CLUSTERCTL_LABEL, MOVE_HIERARCHY_LABEL, MOVE_LABEL, PROVIDER_LABEL};
use kube::ResourceExt;
use kube::api::GroupVersionKind;
use kube::discovery::ApiResource;

/// Groups whose objects describe a management cluster, not the clusters in it.
const LOCAL: [&str; 2] = ["clusterctl.cluster.x-k8s.io", "runtime.cluster.x-k8s.io"];

/// Kind of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: String,
    /// Name, such as `MachineSet`.
    pub(crate) name: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    pub(crate) has_status: bool,
    /// True if all objects of the kind move, by [`MOVE_LABEL`].
    pub(crate) moves: bool,
    /// True if all objects of the kind move with their dependents, by [`MOVE_HIERARCHY_LABEL`].
    pub(crate) hierarchy: bool,
    /// Served versions: the stored one, then from the newest to the oldest.
    pub(crate) versions: Vec<String>,
    /// Newest contract of Cluster API in the labels of the definition.
    pub(crate) contract: Option<String>,
}

impl Kind {
    /// Kind of the core group.
    pub(crate) fn core(name: &str, plural: &str) -> Arc<Self> {
        Arc::new(Self {
            group: String::new(),
            name: name.to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
            has_status: false,
            moves: false,
            hierarchy: false,
            versions: vec!["v1".to_owned()],
            contract: None,
        })
    }

    /// Version in which objects are read.
    pub(crate) fn stored(&self) -> &str {
        self.versions.first().map_or("", String::as_str)
    }

    pub(crate) fn resource(&self, version: &str) -> ApiResource {
        let kind = GroupVersionKind::gvk(&self.group, version, &self.name);
        ApiResource::from_gvk_with_plural(&kind, &self.plural)
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name && (self.group.is_empty() || self.group.ends_with("cluster.x-k8s.io"))
    }

    pub(crate) fn same(&self, other: &Kind) -> bool {
        self.name == other.name && self.group == other.group
    }
}

/// [`Kind`] of a definition, if objects may belong to clusters.
pub(crate) fn of_definition(definition: &CustomResourceDefinition) -> Option<Kind> {
    let spec = &definition.spec;
    let labels = definition.labels();
    let of_cluster_api = spec.group == "cluster.x-k8s.io"
        || spec.group.ends_with(".cluster.x-k8s.io")
        || [
            PROVIDER_LABEL,
            CLUSTERCTL_LABEL,
            MOVE_LABEL,
            MOVE_HIERARCHY_LABEL,
        ]
        .iter()
        .any(|label| labels.contains_key(*label));
    if !of_cluster_api || spec.scope != "Namespaced" || LOCAL.contains(&spec.group.as_str()) {
        return None;
    }
    let mut served: Vec<_> = spec
        .versions
        .iter()
        .filter(|version| version.served)
        .collect();
    served.sort_by_key(|version| (!version.storage, std::cmp::Reverse(rank(&version.name))));
    let has_status = |version: &&api::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion| {
        let parts = version.subresources.as_ref();
        parts.is_some_and(|parts| parts.status.is_some())
    };
    let contracts = labels
        .keys()
        .filter_map(|label| label.strip_prefix("cluster.x-k8s.io/"));
    let contract = contracts
        .filter(|name| rank(name).is_some())
        .max_by_key(|name| rank(name));
    Some(Kind {
        group: spec.group.clone(),
        name: spec.names.kind.clone(),
        plural: spec.names.plural.clone(),
        namespaced: true,
        has_status: served.first().is_some_and(has_status),
        moves: labels.contains_key(MOVE_LABEL),
        hierarchy: labels.contains_key(MOVE_HIERARCHY_LABEL),
        versions: served.iter().map(|version| version.name.clone()).collect(),
        contract: contract.map(str::to_owned),
    })
    .filter(|kind| !kind.versions.is_empty())
}

/// Order of versions: v1alpha4, v1beta1, v1beta2, v1, v2; `None` for another string.
fn rank(version: &str) -> Option<(u32, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    for (stage, word) in [(0, "alpha"), (1, "beta")] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((major.parse().ok()?, stage, minor.parse().ok()?));
        }
    }
    Some((rest.parse().ok()?, 2, 0))
}

/// Version in which objects of `kind` are copied to a side with the kinds `others`: the version of the read.
///
/// # Errors
/// Reason why the objects cannot be copied, for users.
pub(crate) fn agree<'a>(
    kind: &Kind,
    version: &'a str,
    others: &[Arc<Kind>],
) -> Result<&'a str, String> {
    let Some(other) = others.iter().find(|other| other.same(kind)) else {
        return Err(format!(
            "the target does not know the kind {} of {}: install its CustomResourceDefinitions and controllers there first",
            kind.name, kind.group
        ));
    };
    if !other.versions.iter().any(|known| known == version) {
        return Err(format!(
            "the target serves {} of {} in {} only, and here it is stored in {version}: its controllers are older; upgrade them first",
            kind.name,
            kind.group,
            other.versions.join(", ")
        ));
    }
    let contract = |kind: &Kind| kind.contract.as_deref().and_then(rank);
    if let (Some(ours), Some(theirs)) = (contract(kind), contract(other))
        && theirs < ours
    {
        return Err(format!(
            "the target's {} of {} follows the older contract {}, and here it is {}: upgrade its controllers first",
            kind.name,
            kind.group,
            other.contract.as_deref().unwrap_or_default(),
            kind.contract.as_deref().unwrap_or_default()
        ));
    }
    Ok(version)
}

#[cfg(test)]
mod tests;
