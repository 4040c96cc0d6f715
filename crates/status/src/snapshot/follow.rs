//! Objects of any provider: found by following references, through discovery.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use kube::api::ApiResource;
use kube::discovery::{self, ApiGroup};

use super::reference::Role;
use super::{Kind, Snapshot};

/// Kinds to read besides the objects of clusters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The templates of machines.
    pub templates: bool,
    /// ClusterResourceSets and their bindings.
    pub resource_sets: bool,
}

/// [`Snapshot`], and the kinds read for it.
pub struct Followed {
    /// The objects.
    pub snapshot: Snapshot,
    /// The kinds of these objects.
    pub resources: Vec<ApiResource>,
}

impl Snapshot {
    /// Reads the objects of clusters of any providers, as a [`Followed`] snapshot.
    pub async fn follow(
        client: &Client,
        namespace: Option<&str>,
        wanted: Wanted,
    ) -> kube::Result<Followed> {
        let mut reading = Reading {
            client,
            namespace,
            groups: BTreeMap::new(),
            seen: BTreeSet::new(),
            snapshot: Snapshot::default(),
            resources: Vec::new(),
        };
        for kind in Kind::ALL {
            let resource = kind.resource();
            reading
                .seen
                .insert((resource.group.clone(), resource.kind.clone()));
            reading.list(resource).await?;
        }
        reading.find("cluster.x-k8s.io", "MachinePool").await?;
        if wanted.resource_sets {
            for kind in ["ClusterResourceSetBinding", "ClusterResourceSet"] {
                reading.find("addons.cluster.x-k8s.io", kind).await?;
            }
        }
        // Machines of a control plane of another provider refer to kinds that nothing else refers to.
        while reading.next(wanted).await? {}
        Ok(Followed {
            snapshot: reading.snapshot,
            resources: reading.resources,
        })
    }
}

struct Reading<'a> {
    client: &'a Client,
    namespace: Option<&'a str>,
    /// Groups after discovery; `None` if the API server lacks the group.
    groups: BTreeMap<String, Option<ApiGroup>>,
    /// Groups and kinds that have been read.
    seen: BTreeSet<(String, String)>,
    snapshot: Snapshot,
    resources: Vec<ApiResource>,
}

impl Reading<'_> {
    /// Reads the kinds to which the objects read so far refer; false if there were none.
    async fn next(&mut self, wanted: Wanted) -> kube::Result<bool> {
        let templates = Role::TEMPLATES.iter().filter(|_| wanted.templates);
        let roles: Vec<Role> = Role::OBJECTS.iter().chain(templates).copied().collect();
        let referred: BTreeSet<(String, String)> = self
            .snapshot
            .items
            .iter()
            .flat_map(|item| roles.iter().filter_map(|role| item.reference(*role)))
            .map(|reference| (reference.group, reference.kind))
            .filter(|kind| !self.seen.contains(kind))
            .collect();
        for (group, kind) in &referred {
            self.find(group, kind).await?;
        }
        Ok(!referred.is_empty())
    }

    /// Reads the objects of a kind, in the version preferred by the API server.
    async fn find(&mut self, group: &str, kind: &str) -> kube::Result<()> {
        if !self.seen.insert((group.to_owned(), kind.to_owned())) {
            return Ok(());
        }
        if !self.groups.contains_key(group) {
            let found = match discovery::group(self.client, group).await {
                Ok(found) => Some(found),
                Err(kube::Error::Discovery(_)) => None,
                Err(kube::Error::Api(status)) if status.code == 404 => None,
                Err(other) => return Err(other),
            };
            self.groups.insert(group.to_owned(), found);
        }
        let known = self.groups.get(group).and_then(Option::as_ref);
        let resource = known.and_then(|known| {
            let mut resources = known.resources_by_stability().into_iter();
            resources.find(|(resource, _)| resource.kind == kind)
        });
        match resource {
            Some((resource, _)) => self.list(resource).await,
            None => Ok(()),
        }
    }

    async fn list(&mut self, resource: ApiResource) -> kube::Result<()> {
        if self
            .snapshot
            .list(self.client, self.namespace, &resource)
            .await?
        {
            self.resources.push(resource);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
