//! Addition of a learner.

use futures::FutureExt;

use super::{Connections, Member, Target};

/// Port of the peer URLs of members.
const PEER_PORT: u16 = 2380;

impl Connections {
    /// Adds a learner with kubeadm's peer URL for `host`, through the first of `members` that accepts the addition.
    /// Returns the name of that [`Member`].
    ///
    /// # Errors
    /// The error of the last asked member, or the absence of a member to ask.
    pub async fn add_learner(
        &self,
        target: &Target<'_>,
        members: &[&Member],
        host: &str,
    ) -> Result<String, String> {
        let url = peer_url(host);
        let mut words = "there is no other member".to_owned();
        for member in members {
            let add = |client: etcd::Client| {
                let url = url.clone();
                async move { client.add(&url, true).await }.boxed()
            };
            match self.with(target, &member.name, add).await {
                Ok(_) => return Ok(member.name.clone()),
                Err(why) => words = why,
            }
        }
        Err(format!("no member adds {url}: {words}"))
    }
}

/// Peer URL in kubeadm's form for a machine with the address `host`.
pub(super) fn peer_url(host: &str) -> String {
    match host.contains(':') {
        true => format!("https://[{host}]:{PEER_PORT}"),
        false => format!("https://{host}:{PEER_PORT}"),
    }
}
