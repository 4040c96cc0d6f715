//! Remains of a deleted cloud: its volumes, passwords and keys.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, bail};
use deployer::{Cloud, Credentials, PART_OF, Parameters, Reference, Release, UID};
use kube::Client;
use kube::api::{DeleteParams, Preconditions};
use serde_json::Value;
use terminal::counted;
use tokio_util::sync::CancellationToken;

use super::plan::cluster;

/// Pause between two reads.
const PAUSE: Duration = Duration::from_millis(200);

/// Cloud whose data is deleted.
pub(super) struct Deleted<'a> {
    pub(super) client: &'a Client,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

impl Deleted<'_> {
    /// Deletes the remains of the cloud, and waits for the end. Returns a description, such as
    /// `2 PersistentVolumeClaims`; empty without remains.
    pub(super) async fn purge(
        &self,
        limit: Duration,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<Vec<String>> {
        let objects = cluster::objects(self.client, self.namespace).await?;
        let left = self.left(&objects);
        for (reference, uid) in &left {
            self.delete(reference, uid).await?;
        }
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            // A claim that a Pod mounts stays until that has ended.
            let objects = cluster::objects(self.client, self.namespace).await?;
            let still = self.left(&objects);
            let Some((reference, _)) = still.first() else {
                return Ok(counts(&left));
            };
            if shutdown.is_cancelled() {
                bail!("interrupted: the data is being deleted; the same command goes on");
            }
            if tokio::time::Instant::now() > deadline {
                bail!(
                    "not deleted after {} s: {reference} is still there; does a Pod mount it?",
                    limit.as_secs()
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Objects with uids, in the order of deletion: a cloud made again after a loss of passwords has left objects with
    /// two uids.
    fn left(&self, objects: &[Value]) -> Vec<(Reference, String)> {
        let of_cloud = |it: &&Value| it["metadata"]["labels"][PART_OF] == self.name;
        let label = |it: &Value| Some(it["metadata"]["labels"][UID].as_str()?.to_owned());
        let uids: BTreeSet<String> = objects.iter().filter(of_cloud).filter_map(label).collect();
        let cloud = Cloud {
            name: self.name.to_owned(),
            namespace: self.namespace.to_owned(),
            parameters: Parameters::from_release(Release::Epoxy),
            spec: Value::Null,
        };
        // Nothing of it is written.
        let graph = deployer::desired(&cloud, &Credentials::complete(self.name, objects, || 0));
        let left = uids.iter().flat_map(|uid| {
            let groups = deployer::removal(&graph, uid, objects, true);
            groups.into_iter().flatten()
        });
        let with_uid = |reference: Reference| {
            let mut all = objects.iter();
            let there = all.find(|it| Reference::from_object(it).as_ref() == Some(&reference))?;
            let uid = there["metadata"]["uid"].as_str()?.to_owned();
            Some((reference, uid))
        };
        left.filter_map(with_uid).collect()
    }

    async fn delete(&self, reference: &Reference, uid: &str) -> anyhow::Result<()> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let api = cluster::api(self.client, self.namespace, reference.kind);
        match api.delete(&reference.name, &params).await {
            // Gone, or another one has its name.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            deleted => deleted
                .map(drop)
                .with_context(|| format!("cannot delete {reference}")),
        }
    }
}

/// Number of objects of each kind.
fn counts(objects: &[(Reference, String)]) -> Vec<String> {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (reference, _) in objects {
        *kinds.entry(reference.kind.name()).or_default() += 1;
    }
    let kinds = kinds.into_iter();
    kinds.map(|(kind, count)| counted(count, kind)).collect()
}
