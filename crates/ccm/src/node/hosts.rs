//! The host names of servers that the shared lists show to administrators alone, for nodes that are not found without them.

use std::time::Duration;

use openstack::Cloud;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::names::HostNames;

/// The maximum age of the host names: all nodes without a server share one list.
const AGE: Duration = Duration::from_secs(15);

/// The host names that were read last.
#[derive(Debug, Default)]
pub(crate) struct Hosts(Mutex<Option<(Instant, HostNames)>>);

impl Hosts {
    /// The host names by server, read anew once they are old. Without an answer there are none: what is found without
    /// them does not depend on it.
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
