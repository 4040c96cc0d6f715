//! Values file of the Helm chart `openstack-cinder-csi`, read for the manifests of this driver.

mod apply;
mod keys;

use crate::chart_values::Values;

pub(super) use self::apply::apply;

/// Reads a file.
///
/// # Errors
/// Paths of all keys unknown to the chart, and of invalid values.
pub(super) fn parse(text: &str) -> anyhow::Result<Values> {
    Values::parse(text, keys::all())
}

#[cfg(test)]
mod tests;
