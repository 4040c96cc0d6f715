//! Providers of Cluster API in this suite, by type.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::{addons, bootstrap, controlplane, core, crds, infra, ipam};

/// Provider of this suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// Clusters and machines.
    Core,
    /// Kubeadm bootstrap.
    Bootstrap,
    /// Kubeadm control plane.
    ControlPlane,
    /// OpenStack.
    Infrastructure,
}

impl Provider {
    /// All providers, in the order of installation.
    pub const ALL: [Self; 4] = [
        Self::Core,
        Self::Bootstrap,
        Self::ControlPlane,
        Self::Infrastructure,
    ];

    /// Type, as in the flags of `clusterctl init`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Bootstrap => "bootstrap",
            Self::ControlPlane => "control-plane",
            Self::Infrastructure => "infrastructure",
        }
    }

    /// Name, as in the values of the flags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "cluster-api",
            Self::Bootstrap | Self::ControlPlane => "kubeadm",
            Self::Infrastructure => "openstack",
        }
    }

    /// Value of the [provider label](crate::names::PROVIDER_LABEL) on definitions.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Core => "cluster-api",
            Self::Bootstrap => "bootstrap-kubeadm",
            Self::ControlPlane => "control-plane-kubeadm",
            Self::Infrastructure => "infrastructure-openstack",
        }
    }

    /// Version of the upstream provider with the same API, for comparisons of `clusterctl` with releases.
    #[must_use]
    pub fn upstream(self) -> &'static str {
        match self {
            Self::Core | Self::Bootstrap | Self::ControlPlane => "v1.14.2",
            Self::Infrastructure => "v0.14.0",
        }
    }

    /// [`CustomResourceDefinition`]s of the provider.
    #[must_use]
    pub fn definitions(self) -> Vec<CustomResourceDefinition> {
        crds::of(self.groups())
    }

    /// API groups of the provider.
    #[must_use]
    pub fn groups(self) -> &'static [&'static str] {
        match self {
            Self::Core => &[core::GROUP, addons::GROUP, ipam::GROUP],
            Self::Bootstrap => &[bootstrap::GROUP],
            Self::ControlPlane => &[controlplane::GROUP],
            Self::Infrastructure => &[infra::GROUP],
        }
    }
}

impl std::fmt::Display for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::PROVIDER_LABEL;

    #[test]
    fn every_definition_of_a_provider_has_its_label_its_groups_and_both_contracts() {
        for provider in Provider::ALL {
            for definition in provider.definitions() {
                let name = definition.metadata.name.clone().unwrap_or_default();
                let labels = definition.metadata.labels.unwrap_or_default();
                assert_eq!(labels[PROVIDER_LABEL], provider.label(), "{name}");
                let group = definition.spec.group.as_str();
                assert!(provider.groups().contains(&group), "{name}");
                // Identities are of no contract.
                if definition.spec.versions.len() == 1 {
                    continue;
                }
                // By these the controllers of Cluster API, of any origin, find the version to use.
                for contract in ["v1beta1", "v1beta2"] {
                    let versions = &labels[&format!("cluster.x-k8s.io/{contract}")];
                    for version in versions.split('_') {
                        let mut served = definition.spec.versions.iter().filter(|it| it.served);
                        assert!(served.any(|it| it.name == version), "{name}: {version}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_definition_belongs_to_one_provider_but_that_of_clouds() {
        let of_providers: usize = Provider::ALL.map(|it| it.definitions().len()).iter().sum();
        assert_eq!(
            of_providers + crds::of(&[crate::openstack::GROUP]).len(),
            crds::all().len()
        );
    }
}
