//! Providers of a manager: all, or some beside another program's controllers of the others.
//!
//! Every manager has objects of its own in the cluster: ServiceAccount, ClusterRole, webhook configurations, Service,
//! Lease and certificate. Objects of a subset have its name as a suffix, so that several managers share none.

use std::collections::BTreeSet;

use api::providers::Provider;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::older::Older;

/// Some or all [`Provider`]s, with or without the kind of clouds, and with [`Older`] versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subset {
    providers: BTreeSet<Provider>,
    clouds: bool,
    older: Older,
}

impl Subset {
    /// Subset of these [`Provider`]s, or of all if empty. The kind of clouds comes with all providers, or if `clouds`
    /// are run.
    pub fn new(providers: impl IntoIterator<Item = Provider>, clouds: bool) -> Self {
        let mut providers: BTreeSet<Provider> = providers.into_iter().collect();
        if providers.is_empty() {
            providers.extend(Provider::ALL);
        }
        let clouds = clouds || providers.len() == Provider::ALL.len();
        Self {
            providers,
            clouds,
            older: Older::default(),
        }
    }

    /// Same subset with [`Older`] versions in its CRDs.
    pub fn serving(self, older: Older) -> Self {
        Self { older, ..self }
    }

    /// All providers, with all kinds.
    pub fn all() -> Self {
        Self::new([], false)
    }

    /// True if these are all providers.
    pub fn is_all(&self) -> bool {
        self.providers.len() == Provider::ALL.len()
    }

    /// The providers.
    pub fn providers(&self) -> &BTreeSet<Provider> {
        &self.providers
    }

    /// True if the subset has the [`Provider`].
    pub fn has(&self, provider: Provider) -> bool {
        self.providers.contains(&provider)
    }

    /// True if controllers of the crate `clusterapi` run.
    pub fn has_clusterapi(&self) -> bool {
        self.providers
            .iter()
            .any(|it| *it != Provider::Infrastructure)
    }

    /// Names of the providers, joined by `separator`.
    pub fn names(&self, separator: &str) -> String {
        let names: Vec<&str> = self.providers.iter().map(|it| it.as_str()).collect();
        names.join(separator)
    }

    /// Per-manager `name` of an object.
    pub fn named(&self, name: &str) -> String {
        match self.is_all() {
            true => name.to_owned(),
            false => format!("{name}-{}", self.names("-")),
        }
    }

    /// CRDs of the kinds, in the order of installation.
    pub fn definitions(&self) -> Vec<CustomResourceDefinition> {
        let groups = self.groups();
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let mut all = api::crds::of(&groups);
        self.older.add(&mut all);
        all
    }

    /// The names of the definitions with several versions.
    pub fn converted(&self) -> Vec<String> {
        let all = self.definitions().into_iter();
        let several = all.filter(|it| it.spec.versions.len() > 1);
        several.filter_map(|it| it.metadata.name).collect()
    }

    /// The API groups of the kinds.
    pub fn groups(&self) -> BTreeSet<String> {
        let groups = self.providers.iter().flat_map(|it| it.groups());
        let clouds = self.clouds.then_some(&api::openstack::GROUP);
        groups.chain(clouds).map(|it| (*it).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managers_of_different_subsets_have_no_name_in_common() {
        let mut names = BTreeSet::new();
        let mut subsets = 0;
        for bits in 1_u8..16 {
            let chosen = Provider::ALL.into_iter().enumerate();
            let chosen = chosen.filter(|(at, _)| bits & (1 << at) != 0);
            let subset = Subset::new(chosen.map(|(_, provider)| provider), false);
            let name = subset.named("ferrostack-webhook");
            // The name of a Service.
            assert!(name.len() <= 63, "{name}");
            names.insert(name);
            subsets += 1;
        }
        assert_eq!(names.len(), subsets);
        assert!(names.contains("ferrostack-webhook"));
        assert!(names.contains("ferrostack-webhook-infrastructure"));
        assert!(names.contains("ferrostack-webhook-bootstrap-control-plane"));
    }

    #[test]
    fn a_subset_has_the_kinds_and_groups_of_its_providers_alone() {
        let infrastructure = Subset::new([Provider::Infrastructure], false);
        assert_eq!(
            infrastructure.groups(),
            BTreeSet::from(["infrastructure.cluster.x-k8s.io".to_owned()])
        );
        assert!(!infrastructure.has_clusterapi());
        let clouds = Subset::new([Provider::Infrastructure], true);
        assert!(clouds.groups().contains("ferrostack.dev"));
        assert_eq!(
            clouds.definitions().len(),
            // OpenStack and OpenStackOperation.
            infrastructure.definitions().len() + 2
        );
        let all = Subset::all();
        assert!(all.is_all() && all.definitions() == api::crds::all());
    }
}
