//! Versions before v1beta1 in the installed CRDs: versions requested by a flag, versions served already, and, without
//! being served, versions of stored objects.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Client, ResourceExt};
use operator::client::Api;

/// Versions served by default.
const DEFAULT: [&str; 2] = ["v1beta1", "v1beta2"];

/// Older versions of CRDs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Older {
    served: BTreeSet<String>,
    /// Stored versions by the name of the CRD.
    stored: BTreeMap<String, BTreeSet<String>>,
}

impl Older {
    /// Older ones among the versions of `--serve-versions`; none without the flag.
    ///
    /// # Errors
    /// If a version is unknown, or a default one is missing.
    pub fn named(versions: &[String]) -> anyhow::Result<Self> {
        let known = api::crds::OLDER_VERSIONS;
        for name in versions {
            if !known.contains(&name.as_str()) && !DEFAULT.contains(&name.as_str()) {
                bail!(
                    "--serve-versions {name}: there is no such version; there are {}, {}",
                    known.join(", "),
                    DEFAULT.join(", ")
                );
            }
        }
        for name in DEFAULT {
            if !versions.is_empty() && !versions.iter().any(|it| it == name) {
                bail!(
                    "--serve-versions lacks {name}, which is always served: the controllers of Cluster API use it"
                );
            }
        }
        let older = versions.iter().filter(|it| known.contains(&it.as_str()));
        Ok(Self {
            served: older.cloned().collect(),
            stored: BTreeMap::new(),
        })
    }

    /// Adds the versions of a cluster's built-in CRDs: served ones, and ones with stored objects.
    ///
    /// # Errors
    /// If the CRDs cannot be listed.
    pub async fn and_of(
        self,
        client: &Client,
        is_ours: fn(&CustomResourceDefinition) -> bool,
    ) -> anyhow::Result<Self> {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let listed = definitions.list(&ListParams::default()).await;
        let listed = listed.context("cannot list CustomResourceDefinitions")?;
        Ok(self.and(&listed.items, is_ours))
    }

    fn and(
        mut self,
        there: &[CustomResourceDefinition],
        is_ours: fn(&CustomResourceDefinition) -> bool,
    ) -> Self {
        let known = api::crds::OLDER_VERSIONS;
        for definition in there.iter().filter(|it| it.spec.group == api::infra::GROUP) {
            let status = definition.status.as_ref();
            let stored = status.and_then(|it| it.stored_versions.as_ref());
            let stored: BTreeSet<String> = stored.into_iter().flatten().cloned().collect();
            self.stored.insert(definition.name_any(), stored);
            let is_ours = is_ours(definition);
            let versions = definition.spec.versions.iter();
            let versions = versions.filter(|it| is_ours && it.served);
            let names = versions.map(|it| it.name.clone());
            self.served
                .extend(names.filter(|it| known.contains(&it.as_str())));
        }
        self
    }

    /// Adds these versions to [`CustomResourceDefinition`]s.
    pub fn add(&self, definitions: &mut [CustomResourceDefinition]) {
        if self.served.is_empty() && self.stored.values().all(BTreeSet::is_empty) {
            return;
        }
        let served: Vec<String> = self.served.iter().cloned().collect();
        api::crds::add_older(definitions, &served, |definition| {
            let stored = self.stored.get(&definition.name_any());
            stored.into_iter().flatten().cloned().collect()
        });
    }
}

#[cfg(test)]
mod tests;
