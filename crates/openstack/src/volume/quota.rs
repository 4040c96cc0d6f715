//! Cinder's quotas.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Volumes;
use crate::call::Call;
use crate::error::Result;
use crate::service::Service;

/// Quota of a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeQuota {
    /// Maximum; -1 for no limit.
    pub limit: i64,
    /// Use by existing objects.
    pub in_use: i64,
    /// Reservations for objects under creation.
    #[serde(default)]
    pub reserved: i64,
}

impl Volumes {
    /// Returns the quotas of a project by resource: `snapshots`, `gigabytes`, ..., and for each type `snapshots_TYPE`
    /// and the like.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn quotas(&self, project: &str) -> Result<BTreeMap<String, VolumeQuota>> {
        let call = Call::get(Service::Volume, "/os-quota-sets/{project}", &[project]);
        let call = call.query("usage", "true");
        let set: BTreeMap<String, Value> = self.session.one(call, "quota_set").await?;
        // The id of the project is among them.
        let quotas = set.into_iter();
        let quotas = quotas.filter_map(|(name, it)| Some((name, serde_json::from_value(it).ok()?)));
        Ok(quotas.collect())
    }
}
