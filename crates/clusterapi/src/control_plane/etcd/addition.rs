//! Addition of a learner.

use futures::FutureExt;

use super::{Connections, Member, Target};

/// The port at which members reach each other.
const PEER_PORT: u16 = 2380;

impl Connections {
    /// Adds a learner whose peer URL is that of kubeadm for `host`, through the first of `members` that accepts it, and
    /// returns the name of that member.
    ///
    /// # Errors
    /// The error of the last member that was asked, or that there is none to ask.
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

/// The peer URL that kubeadm gives to the member of a machine with the address `host`.
pub(super) fn peer_url(host: &str) -> String {
    match host.contains(':') {
        true => format!("https://[{host}]:{PEER_PORT}"),
        false => format!("https://{host}:{PEER_PORT}"),
    }
}
