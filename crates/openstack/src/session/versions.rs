//! Version discovery, on request and once per service.

use serde::Deserialize;
use serde_json::Value;

use super::Session;
use crate::call::Call;
use crate::error::Result;
use crate::lenient;
use crate::service::Service;

/// Supported versions of a service as (major, minor).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionRange {
    /// Oldest.
    pub min: (u32, u32),
    /// Newest.
    pub max: (u32, u32),
}

impl VersionRange {
    /// True if the service supports `major.minor`.
    pub fn has(&self, major: u32, minor: u32) -> bool {
        self.min <= (major, minor) && (major, minor) <= self.max
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    id: String,
    version: String,
    max_version: String,
    min_version: String,
}

impl Session {
    /// Returns the versions of a service: microversions of Nova, Cinder and Placement, minor versions of Octavia (each
    /// an entry of its list).
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn versions(&self, service: Service) -> Result<VersionRange> {
        if let Some(range) = self.shared.versions.lock().get(&service) {
            return Ok(*range);
        }
        let value = self.send(Call::get(service, "/", &[]).at_root()).await?;
        let range = range(value);
        self.shared.versions.lock().insert(service, range);
        Ok(range)
    }
}

fn range(mut value: Value) -> VersionRange {
    let list = value.get_mut("versions").map(Value::take);
    let one = value
        .get_mut("version")
        .map(|one| Value::Array(vec![one.take()]));
    let entries: Vec<Entry> = list
        .or(one)
        .and_then(|list| lenient::from_value(list).ok())
        .unwrap_or_default();
    let all = entries.iter().flat_map(|entry| {
        [
            &entry.id,
            &entry.version,
            &entry.max_version,
            &entry.min_version,
        ]
        .map(|text| number(text))
    });
    let mut range: Option<VersionRange> = None;
    for version in all.flatten() {
        let range = range.get_or_insert(VersionRange {
            min: version,
            max: version,
        });
        range.min = range.min.min(version);
        range.max = range.max.max(version);
    }
    range.unwrap_or_default()
}

/// Parses `v2.26`, `2.93` or `v3`.
fn number(text: &str) -> Option<(u32, u32)> {
    let text = text.trim_start_matches('v');
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}
