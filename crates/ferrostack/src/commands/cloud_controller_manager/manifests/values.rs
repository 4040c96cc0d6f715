//! Values file of the Helm chart `openstack-cloud-controller-manager`, read for the manifests of this manager.

mod apply;
mod keys;

use crate::chart_values::Values;

pub(super) use self::apply::{apply, has_cloud};

/// Reads a file.
///
/// # Errors
/// Paths of all keys unknown to the chart, and of invalid values.
pub(super) fn parse(text: &str) -> anyhow::Result<Values> {
    Values::parse(text, keys::all())
}

#[cfg(test)]
mod tests;
