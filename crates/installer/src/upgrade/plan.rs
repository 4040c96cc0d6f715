//! Installed version, and the version after an upgrade. Pure.

use std::collections::BTreeMap;

use api::providers::Provider;
use api::version::Version;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::installed::{self, Installer, Manager, THIS};
use crate::storage::Outdated;

/// [`Provider`] of this program in the cluster.
#[derive(Debug)]
struct Row {
    provider: Provider,
    namespace: String,
    /// Version written by `init`; versions before 0.2 wrote nothing.
    version: Option<String>,
}

/// Providers in a cluster, with their versions before and after an upgrade.
pub struct Plan {
    rows: Vec<Row>,
    /// [`Manager`]s of this program.
    pub managers: Vec<Manager>,
    /// Providers of other programs.
    others: Vec<String>,
    /// [`Outdated`] kinds, with objects in versions no longer written.
    pub(super) stored: Vec<Outdated>,
}

impl Plan {
    pub(super) fn new(
        there: &BTreeMap<Provider, Installer>,
        definitions: &[CustomResourceDefinition],
    ) -> Self {
        let managers = installed::managers(there);
        let rows = managers.iter().flat_map(|manager| {
            manager.subset.providers().iter().map(|provider| Row {
                provider: *provider,
                namespace: manager.namespace.clone(),
                version: manager.version.clone(),
            })
        });
        let others = there.values().filter_map(|it| match it {
            Installer::Another(name) => Some(name.clone()),
            _ => None,
        });
        let ours = managers.iter().flat_map(|it| it.subset.definitions());
        let ours: Vec<String> = ours.map(|it| it.name_any()).collect();
        let known = definitions
            .iter()
            .filter(|it| ours.contains(&it.name_any()));
        Self {
            rows: rows.collect(),
            others: others.collect(),
            stored: known.filter_map(Outdated::from_definition).collect(),
            managers,
        }
    }

    /// Newest installed version, if newer than this program.
    pub(super) fn newer(&self) -> Option<&str> {
        let this: Version = THIS.parse().ok()?;
        let versions = self.rows.iter().filter_map(|it| it.version.as_deref());
        let mut newer = versions.filter(|it| it.parse::<Version>().is_ok_and(|it| it > this));
        newer.next()
    }

    /// Plan as JSON.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "name": row.provider.label(),
                "namespace": row.namespace,
                "type": type_of(row.provider),
                "currentVersion": row.version,
                "nextVersion": THIS,
                "upToDate": row.version.as_deref() == Some(THIS),
            })
        });
        json!({
            "contract": "v1beta2",
            "providers": rows.collect::<Vec<_>>(),
            "otherProviders": self.others,
            "storedInOtherVersions": self.stored_words(),
        })
    }

    /// Table of clusterctl, with the next step.
    pub fn text(&self, program: &str) -> String {
        let mut lines = Vec::new();
        if self.rows.is_empty() {
            lines.push(format!(
                "ferrostack has installed no providers here; `{program} init` does"
            ));
        } else {
            let head = [
                "NAME",
                "NAMESPACE",
                "TYPE",
                "CURRENT VERSION",
                "NEXT VERSION",
            ];
            let mut cells = vec![head.map(str::to_owned)];
            cells.extend(self.rows.iter().map(|row| {
                let next = match row.version.as_deref() == Some(THIS) {
                    true => "Already up to date",
                    false => THIS,
                };
                [
                    row.provider.label().to_owned(),
                    row.namespace.clone(),
                    type_of(row.provider).to_owned(),
                    row.version.clone().unwrap_or_else(|| "unknown".to_owned()),
                    next.to_owned(),
                ]
            }));
            lines.extend(aligned(&cells));
        }
        lines.extend(self.others());
        lines.extend(self.rewritten());
        let differs = |row: &Row| row.version.as_deref() != Some(THIS);
        if self.rows.iter().any(differs) {
            lines.push(format!("{program} upgrade apply installs {THIS}"));
        }
        lines.push(String::new());
        lines.join("\n")
    }

    /// Objects not touched by an upgrade.
    pub(super) fn others(&self) -> Option<String> {
        (!self.others.is_empty()).then(|| {
            format!(
                "of another program, and left as they are: {}",
                self.others.join(", ")
            )
        })
    }

    /// Objects to rewrite in an upgrade, besides the manifests.
    fn rewritten(&self) -> Option<String> {
        (!self.stored.is_empty()).then(|| {
            format!(
                "objects may still be stored in versions that are not written any more: {}. An upgrade writes each of them once in the current \
                 version, and then clears status.storedVersions",
                self.stored_words().join(", ")
            )
        })
    }

    fn stored_words(&self) -> Vec<String> {
        self.stored.iter().flat_map(Outdated::words).collect()
    }
}

/// Type of a [`Provider`], as printed by clusterctl.
pub(crate) fn type_of(provider: Provider) -> &'static str {
    match provider {
        Provider::Core => "CoreProvider",
        Provider::Bootstrap => "BootstrapProvider",
        Provider::ControlPlane => "ControlPlaneProvider",
        Provider::Infrastructure => "InfrastructureProvider",
    }
}

/// Rows with columns of the same width, three blanks apart.
pub(crate) fn aligned<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |at: usize| {
        rows.iter()
            .map(|row| row[at].len())
            .max()
            .unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths);
        let cells = cells.map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("   ");
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
