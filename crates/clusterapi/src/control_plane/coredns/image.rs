//! Image of CoreDNS for a control plane.

use api::bootstrap::v1beta2::ClusterConfiguration;
use api::version::Version;

use super::migration::{self, Release};

/// kubeadm's registry.
const REGISTRY: &str = "registry.k8s.io";
/// Name of CoreDNS in other registries, and in [`REGISTRY`] within a folder of its own.
const NAME: &str = "coredns";

/// Image with its release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image {
    /// The whole name.
    pub(super) text: String,
    /// [`Release`] of CoreDNS in the tag.
    pub(super) release: Release,
}

/// Reason why the release of an image is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tag `{tag}` of the image of CoreDNS does not begin with a version such as v1.12.1")]
pub(super) struct NoVersion {
    tag: String,
}

/// Running [`Image`], and the image for `configuration` at a version of Kubernetes. `None` for an image with a digest or
/// without a tag, because its release cannot be read.
///
/// Repository: of `dns`, or of the cluster, or the present one. Tag: of `dns`, or else kubeadm's for this version,
/// unless older than the present tag, or the present one has a suffix (`v1.9.3-vendor.1`).
pub(super) fn wanted(
    current: &str,
    configuration: &ClusterConfiguration,
    version: &Version,
) -> Result<Option<(Image, Image)>, NoVersion> {
    if current.contains('@') {
        return Ok(None);
    }
    let path = current.rfind('/').map_or(0, |at| at + 1);
    let Some(colon) = current[path..].find(':') else {
        return Ok(None);
    };
    let (repository, tag) = (&current[..path + colon], &current[path + colon + 1..]);
    let release = release(tag)?;
    let dns = configuration.dns.clone().unwrap_or_default();
    let repository = match (&dns.image_repository, &configuration.image_repository) {
        (Some(of_dns), _) => format!("{of_dns}/{NAME}"),
        (None, Some(of_cluster)) if of_cluster == REGISTRY => format!("{REGISTRY}/{NAME}/{NAME}"),
        (None, Some(of_cluster)) => format!("{of_cluster}/{NAME}"),
        (None, None) => repository.to_owned(),
    };
    let default = migration::of_kubernetes(version.major_minor().1);
    let default = default.filter(|it| *it > release && is_plain(tag, release));
    let (wanted, to) = match (&dns.image_tag, default) {
        (Some(of_dns), _) => (of_dns.clone(), self::release(of_dns)?),
        (None, Some(default)) => (format!("v{}", migration::text(default)), default),
        (None, None) => (tag.to_owned(), release),
    };
    let from = Image {
        text: current.to_owned(),
        release,
    };
    let to = Image {
        text: format!("{repository}:{wanted}"),
        release: to,
    };
    Ok(Some((from, to)))
}

/// [`Release`] at the start of a tag such as `v1.9.3-vendor.1` or `v1.9.3_vendor.1`.
fn release(tag: &str) -> Result<Release, NoVersion> {
    let numbers = tag.trim_start_matches('v');
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != '.');
    let mut numbers = numbers[..end.unwrap_or(numbers.len())]
        .split('.')
        .map(str::parse);
    match (
        numbers.next(),
        numbers.next(),
        numbers.next(),
        numbers.next(),
    ) {
        (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) => Ok((major, minor, patch)),
        _ => Err(NoVersion {
            tag: tag.to_owned(),
        }),
    }
}

fn is_plain(tag: &str, release: Release) -> bool {
    tag.trim_start_matches('v') == migration::text(release)
}

#[cfg(test)]
mod tests;
