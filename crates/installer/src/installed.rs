//! Annotations of a CRD, written by an installation and read before a change: version of the program, namespace of the
//! manager, and its providers.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use api::names::{CLUSTERCTL_LABEL, PROVIDER_LABEL};
use api::providers::Provider;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Client, ResourceExt};
use operator::client::Api;

use crate::names::{self, SERVICE};
use crate::subset::Subset;

/// Version of the program that installed a CRD.
const VERSION: &str = "ferrostack.dev/version";
/// The namespace of the manager.
const NAMESPACE: &str = "ferrostack.dev/manager-namespace";
/// Providers of this manager, separated by commas.
const PROVIDERS: &str = "ferrostack.dev/providers";
/// Label of objects in releases of Helm, with its value.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const HELM: &str = "Helm";
/// Version of this program.
pub const THIS: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// Program or person that installed a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installer {
    /// API server of an `up`, without a manager.
    InProcess,
    /// Another program; its provider label, or the name of the CRD.
    Another(String),
    /// This program, with known values: before version 0.2 a [`CustomResourceDefinition`] had none.
    Ours {
        /// Version of the program.
        version: Option<String>,
        /// Namespace of the manager.
        namespace: Option<String>,
        /// Providers of the manager.
        providers: BTreeSet<Provider>,
    },
}

/// Writes the installer and its values into the annotations of a [`CustomResourceDefinition`].
pub(crate) fn annotate(
    definition: &mut CustomResourceDefinition,
    subset: &Subset,
    namespace: &str,
) {
    let annotations = definition.annotations_mut();
    annotations.insert(VERSION.to_owned(), THIS.to_owned());
    annotations.insert(NAMESPACE.to_owned(), namespace.to_owned());
    annotations.insert(PROVIDERS.to_owned(), subset.names(","));
}

/// True for a [`CustomResourceDefinition`] installed by this program.
pub fn is_ours(definition: &CustomResourceDefinition) -> bool {
    definition.annotations().contains_key(VERSION)
}

/// True for a [`CustomResourceDefinition`] of a built-in kind installed by another program: by clusterctl, or with
/// foreign webhooks. The label of a provider decides nothing: this program's CRDs have the label, too.
pub fn is_of_another(definition: &CustomResourceDefinition) -> bool {
    let labels = definition.metadata.labels.as_ref();
    let of_clusterctl = labels.is_some_and(|it| it.contains_key(CLUSTERCTL_LABEL));
    let conversion = definition.spec.conversion.as_ref();
    let webhook = conversion.and_then(|it| it.webhook.as_ref());
    let config = webhook.and_then(|it| it.client_config.as_ref());
    let service = config.and_then(|it| it.service.as_ref());
    of_clusterctl || service.is_some_and(|it| !it.name.starts_with(SERVICE))
}

/// True if the API server itself converts objects of a [`CustomResourceDefinition`], as in an `up`.
pub fn is_in_process(definition: &CustomResourceDefinition) -> bool {
    let conversion = definition.spec.conversion.as_ref();
    conversion.is_some_and(|it| it.strategy == "Webhook" && it.webhook.is_none())
}

/// [`Installer`] of a CRD of a built-in kind.
pub(crate) fn installer(definition: &CustomResourceDefinition) -> Installer {
    if is_in_process(definition) {
        return Installer::InProcess;
    }
    let by_helm = definition.labels().get(MANAGED_BY).map(String::as_str) == Some(HELM);
    if by_helm || is_of_another(definition) {
        let label = definition.labels().get(PROVIDER_LABEL);
        let mut name = label.cloned().unwrap_or_else(|| definition.name_any());
        if by_helm {
            name.push_str(" (installed by Helm, which upgrades and uninstalls it)");
        }
        return Installer::Another(name);
    }
    let written = |name: &str| definition.annotations().get(name).cloned();
    let types = written(PROVIDERS).unwrap_or_default();
    let providers = Provider::ALL
        .into_iter()
        .filter(|it| types.is_empty() || types.split(',').any(|name| name == it.as_str()));
    Installer::Ours {
        version: written(VERSION),
        namespace: written(NAMESPACE),
        providers: providers.collect(),
    }
}

/// Manager of this program, by the annotations of its CRDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Providers and kinds.
    pub subset: Subset,
    /// Namespace of the manager.
    pub namespace: String,
    /// Version in the annotations of the CRDs, if any.
    pub version: Option<String>,
}

/// [`Manager`]s of this program, each once, in the order of their providers.
pub fn managers(there: &BTreeMap<Provider, Installer>) -> Vec<Manager> {
    let mut found: Vec<Manager> = Vec::new();
    for installer in there.values() {
        let Installer::Ours {
            version,
            namespace,
            providers,
        } = installer
        else {
            continue;
        };
        let namespace = namespace.as_deref().unwrap_or(names::NAMESPACE);
        let manager = Manager {
            subset: Subset::new(providers.iter().copied(), false),
            namespace: namespace.to_owned(),
            version: version.clone(),
        };
        let same = |it: &Manager| it.subset == manager.subset && it.namespace == manager.namespace;
        if !found.iter().any(same) {
            found.push(manager);
        }
    }
    found
}

/// [`Provider`]s of a manager of this program, and its namespace.
pub(crate) fn ours(installer: &Installer) -> Option<(&BTreeSet<Provider>, Option<&str>)> {
    match installer {
        Installer::Ours {
            providers,
            namespace,
            ..
        } => Some((providers, namespace.as_deref())),
        _ => None,
    }
}

/// [`Installer`] of each provider, by the CRDs in the cluster. Among several, another program has precedence.
///
/// # Errors
/// If the CRDs cannot be listed.
pub async fn read(client: &Client) -> anyhow::Result<BTreeMap<Provider, Installer>> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let listed = api.list(&ListParams::default()).await;
    let listed = listed.context("cannot list CustomResourceDefinitions")?;
    let mut found = BTreeMap::new();
    for provider in Provider::ALL {
        let wanted = provider.definitions();
        let is_of_it = |name: String| wanted.iter().any(|it| it.name_any() == name);
        let there = listed.items.iter().filter(|it| is_of_it(it.name_any()));
        let mut installers: Vec<Installer> = there.map(installer).collect();
        // A definition with one version needs no conversion, by which those of an `up` are known.
        installers.sort_by_key(|it| match it {
            Installer::InProcess => 0,
            Installer::Another(_) => 1,
            Installer::Ours { .. } => 2,
        });
        if let Some(first) = installers.into_iter().next() {
            found.insert(provider, first);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_on_a_definition_is_read_again() {
        let subset = Subset::new([Provider::Bootstrap, Provider::ControlPlane], false);
        for mut definition in subset.definitions() {
            annotate(&mut definition, &subset, "capi");
            let expected = Installer::Ours {
                version: Some(THIS.to_owned()),
                namespace: Some("capi".to_owned()),
                providers: subset.providers().clone(),
            };
            assert_eq!(installer(&definition), expected);
        }
    }

    #[test]
    fn definitions_of_a_version_that_wrote_nothing_are_those_of_a_manager_of_all_providers() {
        let definition = api::crds::all().remove(0);
        let expected = Installer::Ours {
            version: None,
            namespace: None,
            providers: Provider::ALL.into_iter().collect(),
        };
        assert_eq!(installer(&definition), expected);
        let embedded = ::management::converted(definition);
        assert_eq!(installer(&embedded), Installer::InProcess);
    }

    #[test]
    fn definitions_of_another_program_have_the_name_of_its_provider() {
        let mut theirs = api::crds::all().remove(0);
        let labels = theirs.labels_mut();
        labels.insert("clusterctl.cluster.x-k8s.io".to_owned(), String::new());
        let expected = Installer::Another("cluster-api".to_owned());
        assert_eq!(installer(&theirs), expected);
    }

    #[test]
    fn what_helm_has_installed_is_left_to_helm() {
        let subset = Subset::all();
        let mut released = api::crds::all().remove(0);
        annotate(&mut released, &subset, names::NAMESPACE);
        let label = (MANAGED_BY.to_owned(), HELM.to_owned());
        released.labels_mut().extend([label]);
        let Installer::Another(name) = installer(&released) else {
            panic!("it is taken for ours");
        };
        assert!(name.starts_with("cluster-api (installed by Helm"), "{name}");
    }
}
