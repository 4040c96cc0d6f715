//! Host names of servers, for nodes that cannot be found otherwise. The shared lists show host names to
//! administrators only.

use std::time::Duration;

use openstack::Cloud;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::names::HostNames;

/// Maximum age of the host names: all nodes without a server share one list.
const AGE: Duration = Duration::from_secs(15);

/// [`HostNames`] from the last read.
#[derive(Debug, Default)]
pub(crate) struct Hosts(Mutex<Option<(Instant, HostNames)>>);

impl Hosts {
    /// [`HostNames`] by server, read again when old. Without an answer the result is empty: a search without host names
    /// does not depend on them.
    pub(crate) async fn of(&self, cloud: &Cloud) -> HostNames {
        let mut known = self.0.lock().await;
        if let Some((at, names)) = &*known
            && at.elapsed() < AGE
        {
            return names.clone();
        }
        let names = cloud.session.compute().host_names().await;
        let names = names.unwrap_or_else(|error| {
            tracing::debug!(
                "the host names of servers cannot be read: {}",
                error.words()
            );
            HostNames::new()
        });
        *known = Some((Instant::now(), names.clone()));
        names
    }
}
