//! Deletes orphans one after the other. Each is looked at again before, and so is the cluster: what has been named since is
//! kept. Nothing is remembered, so that it can be killed at any point and repeated.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use openstack::session::Session;

use super::claimed::Claimed;
use super::judge::{Rules, Verdict, judge};
use super::thing::{Form, Thing};

/// How long snapshots that are being deleted are waited for before their volume is deleted, in seconds.
const PATIENCE: u32 = 120;

/// Outcome for an orphan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Cinder deletes it.
    Deleted,
    /// It was gone already.
    Gone,
    /// It is no orphan any more, or may not be deleted any more.
    Kept(String),
    /// In the cloud's words.
    Failed(String),
}

/// Deletes one.
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

/// Waits for those of its snapshots that are being deleted. The others are Cinder's reason to refuse.
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
