//! Providers to install: the named ones, and on a cluster without a core provider the rest, like `clusterctl init`.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use api::providers::Provider;

use crate::installed::{Installer, ours};

/// Value of clusterctl to leave out a type of provider.
const NONE: &str = "-";

/// Names of providers by type, as in `clusterctl init`; `-` leaves out a type.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Core provider.
    pub core: Option<String>,
    /// Infrastructure providers.
    pub infrastructure: Vec<String>,
    /// Bootstrap providers.
    pub bootstrap: Vec<String>,
    /// Control plane providers.
    pub control_plane: Vec<String>,
    /// IPAM providers; ferrostack has none.
    pub ipam: Vec<String>,
    /// Runtime extensions; ferrostack has none.
    pub runtime_extension: Vec<String>,
    /// Add-on providers; ferrostack has none.
    pub addon: Vec<String>,
}

/// Choice of the flags about a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Nothing.
    Open,
    Install,
    LeaveOut,
}

/// Checks that all named providers are built in: this program installs no others.
///
/// # Errors
/// If a name is unknown.
pub fn check(flags: &Named) -> anyhow::Result<()> {
    for (flag, names, why) in [
        (
            "--ipam",
            &flags.ipam,
            "IPAddressClaims are answered by a provider of another program",
        ),
        (
            "--runtime-extension",
            &flags.runtime_extension,
            "runtime extensions are not called",
        ),
        (
            "--addon",
            &flags.addon,
            "add-ons are applied by ClusterResourceSets, or by a provider of another program",
        ),
    ] {
        if let Some(name) = names.first() {
            bail!(
                "{flag} {name}: ferrostack has no providers of this type: {why}. Leave the flag out; those of other programs are installed \
                 and deleted by `kubectl apply` and `kubectl delete` of the manifests of their releases"
            );
        }
    }
    for provider in Provider::ALL {
        asked(flags, provider)?;
    }
    Ok(())
}

/// [`Provider`]s named by the flags.
///
/// # Errors
/// If a name is unknown.
pub fn named(flags: &Named) -> anyhow::Result<BTreeSet<Provider>> {
    check(flags)?;
    let mut named = BTreeSet::new();
    for provider in Provider::ALL {
        if asked(flags, provider)? == Asked::Install {
            named.insert(provider);
        }
    }
    Ok(named)
}

fn asked(flags: &Named, provider: Provider) -> anyhow::Result<Asked> {
    let core: Vec<String> = flags.core.iter().cloned().collect();
    let names = match provider {
        Provider::Core => &core,
        Provider::Bootstrap => &flags.bootstrap,
        Provider::ControlPlane => &flags.control_plane,
        Provider::Infrastructure => &flags.infrastructure,
    };
    let mut asked = Asked::Open;
    for name in names {
        // A version is that of this program.
        let (plain, version) = name.split_once(':').unwrap_or((name, ""));
        asked = match plain {
            NONE if names.len() == 1 => Asked::LeaveOut,
            _ if plain == provider.name() && version.is_empty() => Asked::Install,
            _ => bail!(
                "--{provider} {name}: ferrostack has the provider {} in its own version only, and installs no other; `-` leaves it out",
                provider.name()
            ),
        };
    }
    Ok(asked)
}

/// [`Provider`]s to install with a manager in `namespace`; `there` has the installed ones.
///
/// # Errors
/// If nothing would be installed, or a provider of another program has the same kinds.
pub fn of(
    flags: &Named,
    there: &BTreeMap<Provider, Installer>,
    namespace: &str,
) -> anyhow::Result<BTreeSet<Provider>> {
    check(flags)?;
    if there.values().any(|it| *it == Installer::InProcess) {
        bail!(
            "this is the API server of a `ferrostack up`, which has kinds and controllers already; name another cluster with --kubeconfig"
        );
    }
    // As in clusterctl: a cluster with a core provider gets what is named, and nothing else.
    let prepared = matches!(there.get(&Provider::Core), Some(Installer::Another(_)));
    let mut chosen = BTreeSet::new();
    for provider in Provider::ALL {
        match asked(flags, provider)? {
            Asked::Install => chosen.insert(provider),
            Asked::Open if !prepared => chosen.insert(provider),
            Asked::Open | Asked::LeaveOut => false,
        };
    }
    if chosen.is_empty() {
        bail!(
            "nothing is to be installed: the cluster has controllers of another program. Name the providers that ferrostack is to be, such as \
             --infrastructure openstack, or use another cluster, and `ferrostack move` for the clusters of this one"
        );
    }
    let taken = chosen.iter().filter_map(|it| match there.get(it) {
        Some(Installer::Another(name)) => Some(name.as_str()),
        _ => None,
    });
    let taken: BTreeSet<&str> = taken.collect();
    if !taken.is_empty() {
        bail!(
            "the cluster has kinds of these providers, whose controllers would work against ours: {}. Leave them out, such as with \
             --infrastructure -, or use another cluster, and `ferrostack move` for the clusters of this one",
            Vec::from_iter(taken).join(", ")
        );
    }
    same_manager(&chosen, there, namespace)?;
    Ok(chosen)
}

/// Rejects an installed provider of another manager: a provider stays with its manager.
fn same_manager(
    chosen: &BTreeSet<Provider>,
    there: &BTreeMap<Provider, Installer>,
    namespace: &str,
) -> anyhow::Result<()> {
    for provider in chosen {
        let Some((of, place)) = there.get(provider).and_then(ours) else {
            continue;
        };
        let place = place.unwrap_or(namespace);
        if of == chosen && place == namespace {
            continue;
        }
        let names: Vec<&str> = of.iter().map(|it| it.as_str()).collect();
        bail!(
            "{provider} is installed already, for a manager of {} in namespace {place}: two managers would work on the same objects. \
             Use the same providers and --target-namespace, or delete it first: ferrostack delete --{provider} {}",
            names.join(", "),
            provider.name()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
