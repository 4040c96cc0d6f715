//! The service catalog, and the selection of a service's base URL.

use serde::{Deserialize, Serialize};

use super::Token;
use super::auth::identity_url;
use crate::config::{CloudConfig, Interface};
use crate::error::{Error, ErrorKind, Result};
use crate::service::Service;

/// One service of the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CatalogEntry {
    /// Service type, for example `compute`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name, for example `nova`.
    pub name: String,
    /// URLs of the service.
    pub endpoints: Vec<Endpoint>,
}

/// One URL of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// `public`, `internal` or `admin`.
    pub interface: String,
    /// Region.
    pub region: String,
    /// Id of the region, which newer versions of Keystone return, too.
    pub region_id: String,
    /// URL.
    pub url: String,
}

/// Returns the base URL of a service, version included.
pub(super) fn endpoint(config: &CloudConfig, token: &Token, service: Service) -> Result<String> {
    if service == Service::Identity {
        return Ok(identity_url(config));
    }
    let project = token.project_id.as_deref().unwrap_or_default();
    if let Some(url) = override_url(config, service) {
        return Ok(versioned(url, service, project));
    }
    let found = service
        .types()
        .iter()
        .filter_map(|kind| token.catalog.iter().find(|entry| entry.kind == *kind))
        .flat_map(|entry| &entry.endpoints)
        .find(|endpoint| matches(endpoint, config.interface, config.region.as_deref()));
    match found {
        Some(endpoint) => Ok(versioned(&endpoint.url, service, project)),
        None => Err(Error::new(
            ErrorKind::Invalid,
            missing(config, token, service),
        )),
    }
}

/// Returns the region of the compute endpoint, else of any endpoint.
pub(super) fn region(catalog: &[CatalogEntry], interface: Interface) -> Option<String> {
    let of = |entry: &CatalogEntry| {
        entry
            .endpoints
            .iter()
            .find(|endpoint| matches(endpoint, interface, None))
            .map(|endpoint| {
                if endpoint.region_id.is_empty() {
                    endpoint.region.clone()
                } else {
                    endpoint.region_id.clone()
                }
            })
            .filter(|region| !region.is_empty())
    };
    catalog
        .iter()
        .find(|entry| entry.kind == "compute")
        .and_then(of)
        .or_else(|| catalog.iter().find_map(of))
}

fn matches(endpoint: &Endpoint, interface: Interface, region: Option<&str>) -> bool {
    let same_interface = endpoint.interface.trim_end_matches("URL") == interface.name();
    let same_region =
        region.is_none_or(|region| endpoint.region_id == region || endpoint.region == region);
    same_interface && same_region && !endpoint.url.is_empty()
}

/// Returns the configured override, under the official type or an alias, with dashes or underscores.
fn override_url(config: &CloudConfig, service: Service) -> Option<&str> {
    service
        .types()
        .iter()
        .find_map(|kind| {
            let name = kind.replace('-', "_");
            config
                .endpoint_overrides
                .get(&name)
                .or_else(|| config.endpoint_overrides.get(*kind))
        })
        .map(String::as_str)
}

/// Appends the version path unless the URL has a version (`/v2.1`, `/v3/<project>`).
pub(super) fn versioned(url: &str, service: Service, project: &str) -> String {
    let url = url.trim_end_matches('/');
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let has_version = path.split('/').skip(1).any(|segment| {
        segment
            .strip_prefix('v')
            .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
    });
    if has_version {
        return url.to_owned();
    }
    format!(
        "{url}{}",
        service.version_path().replace("{project}", project)
    )
}

fn missing(config: &CloudConfig, token: &Token, service: Service) -> String {
    let in_region = config
        .region
        .as_ref()
        .map_or_else(String::new, |region| format!(" in region `{region}`"));
    let mut regions: Vec<_> = token
        .catalog
        .iter()
        .flat_map(|entry| &entry.endpoints)
        .map(|endpoint| endpoint.region.as_str())
        .filter(|region| !region.is_empty())
        .collect();
    regions.sort_unstable();
    regions.dedup();
    format!(
        "cloud `{}` lists no {} endpoint of {service}{in_region}; its regions: {}",
        config.name,
        config.interface.name(),
        if regions.is_empty() {
            "none".to_owned()
        } else {
            regions.join(", ")
        },
    )
}
