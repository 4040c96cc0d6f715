//! Deletes orphans one after the other. Resource and cluster are read again before each deletion: an orphan named in
//! the meantime is kept. No state is kept, so the command can be killed at any point and repeated.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use openstack::session::Session;

use super::claimed::Claimed;
use super::judge::{Rules, Verdict, judge};
use super::thing::{Form, Thing};

/// Timeout for the deletion of snapshots before their volume is deleted, in seconds.
const PATIENCE: u32 = 120;

/// Outcome for an orphan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Cinder deletes the resource.
    Deleted,
    /// The resource was gone already.
    Gone,
    /// No orphan any more, or not deletable any more.
    Kept(String),
    /// Message of the cloud.
    Failed(String),
}

/// Deletes one [`Thing`].
pub(super) async fn one(
    thing: &Thing,
    sessions: &BTreeMap<String, Session>,
    client: &Client,
    rules: &Rules,
) -> anyhow::Result<Outcome> {
    let Some(session) = sessions.get(&thing.cloud) else {
        return Ok(Outcome::Failed("its cloud is not connected".to_owned()));
    };
    if thing.form == Form::Volume
        && let Err(error) = snapshots_gone(thing, session).await
    {
        return Ok(Outcome::Failed(error.cause("list the snapshots")));
    }
    let now = match thing.again(session).await {
        Ok(Some(now)) => now,
        Ok(None) => return Ok(Outcome::Gone),
        Err(error) => {
            let doing = format!("read {} {}", thing.form.name(), thing.id);
            return Ok(Outcome::Failed(error.cause(&doing)));
        }
    };
    // Last of all, what the cluster names.
    let claimed = Claimed::read(client).await?;
    Ok(match judge(&now, &claimed, rules, Timestamp::now()) {
        Verdict::Foreign => Outcome::Kept("its metadata have changed".to_owned()),
        Verdict::Held(object) => Outcome::Kept(format!("{object} names it now")),
        Verdict::Kept(reason) => Outcome::Kept(reason),
        Verdict::Orphan => match now.delete(session).await {
            Ok(()) => Outcome::Deleted,
            Err(error) => {
                let doing = format!("delete {} {}", now.form.name(), now.id);
                Outcome::Failed(error.cause(&doing))
            }
        },
    })
}

/// Waits for snapshots of the volume that are being deleted. Cinder refuses the deletion because of other snapshots.
async fn snapshots_gone(volume: &Thing, session: &Session) -> openstack::Result<()> {
    for _ in 0..PATIENCE {
        let snapshots = session.volume().snapshots().await?;
        let mut of_volume = snapshots.iter().filter(|it| it.volume_id == volume.id);
        if !of_volume.any(|it| it.status == "deleting") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}
