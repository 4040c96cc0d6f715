//! Record of a move: a ConfigMap in the moving namespace, in the source, or, for a move from files, in the target.
//!
//! A process enters its name when it begins or continues a move. A phase changes only if no other process has written
//! the record since: of two processes, only the later one goes on.

use api::k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use operator::client::Api;
use serde_json::json;
use uuid::Uuid;

use crate::access::Side;
use crate::error::{Error, or_absent};
use crate::graph::JOURNAL;

/// Phase of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The target lacks objects: the move can be undone.
    Moving,
    /// The target has every object: the move can only be completed.
    Committed,
    /// The undo of the move is in progress.
    RollingBack,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Phase::Moving => "Moving",
            Phase::Committed => "Committed",
            Phase::RollingBack => "RollingBack",
        }
    }
}

/// Content of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Id of the move, and mark of the copies.
    pub(crate) id: String,
    pub(crate) phase: Phase,
    /// Other side: `cluster UID`, `to directory PATH` or `from directory DIGEST`.
    pub(crate) other: String,
    /// Process at work on the move.
    process: String,
}

/// Stored [`Record`] of a move.
pub(crate) struct Journal {
    side: Side,
    namespace: String,
    pub(crate) record: Record,
    stored: ObjectMeta,
}

impl Journal {
    /// Record of an unfinished move.
    pub(crate) async fn find(side: &Side, namespace: &str) -> Result<Option<Self>, Error> {
        let Some(map) = read(side, namespace).await? else {
            return Ok(None);
        };
        let record = parse(&map).ok_or_else(|| {
            Error::Refused(vec![format!(
                "ConfigMap {namespace}/{JOURNAL} of the {} is not the record of a move of this version: it is not touched",
                side.title
            )])
        })?;
        Ok(Some(Self {
            side: side.clone(),
            namespace: namespace.to_owned(),
            record,
            stored: map.metadata,
        }))
    }

    /// Records a new move.
    ///
    /// # Errors
    /// When another move has begun in the meantime.
    pub(crate) async fn begin(side: &Side, namespace: &str, other: &str) -> Result<Self, Error> {
        let record = Record {
            id: Uuid::new_v4().to_string(),
            phase: Phase::Moving,
            other: other.to_owned(),
            process: Uuid::new_v4().to_string(),
        };
        let map = content(&record, namespace, None);
        let maps: Api<ConfigMap> = Api::namespaced(side.client.clone(), namespace);
        let action = || format!("recording the move in ConfigMap {namespace}/{JOURNAL}");
        let params = PostParams::default();
        let stored = match side.attempt(action, || maps.create(&params, &map)).await {
            Ok(stored) => Some(stored),
            // A repeated request finds the record of its first attempt.
            Err(error) if error.code() == Some(409) => read(side, namespace)
                .await?
                .filter(|stored| parse(stored).as_ref() == Some(&record)),
            Err(error) => return Err(error),
        };
        let stored = stored.ok_or_else(|| Error::TakenOver(namespace.to_owned()))?;
        Ok(Self {
            side: side.clone(),
            namespace: namespace.to_owned(),
            record,
            stored: stored.metadata,
        })
    }

    /// Continues the move in the calling process, and stops any other process at work on the same move.
    pub(crate) async fn take_over(&mut self) -> Result<(), Error> {
        let process = Uuid::new_v4().to_string();
        self.store(Record {
            process,
            ..self.record.clone()
        })
        .await
    }

    /// Enters a [`Phase`].
    pub(crate) async fn enter(&mut self, phase: Phase) -> Result<(), Error> {
        self.store(Record {
            phase,
            ..self.record.clone()
        })
        .await
    }

    /// Fails when another process has taken over.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        let stored = read(&self.side, &self.namespace).await?;
        match stored.as_ref().and_then(parse) {
            Some(record) if record == self.record => Ok(()),
            _ => Err(Error::TakenOver(self.namespace.clone())),
        }
    }

    /// Ends the move.
    pub(crate) async fn remove(self) -> Result<(), Error> {
        let maps: Api<ConfigMap> = Api::namespaced(self.side.client.clone(), &self.namespace);
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: self.stored.uid.clone(),
            resource_version: None,
        });
        let action = || format!("deleting ConfigMap {}/{JOURNAL}", self.namespace);
        let deleted = self
            .side
            .attempt(action, || maps.delete(JOURNAL, &params))
            .await;
        match or_absent(deleted) {
            // Another process has ended this move, and a new move has begun.
            Err(error) if error.code() == Some(409) => Ok(()),
            other => other.map(drop),
        }
    }

    async fn store(&mut self, record: Record) -> Result<(), Error> {
        let map = content(&record, &self.namespace, Some(&self.stored));
        let maps: Api<ConfigMap> = Api::namespaced(self.side.client.clone(), &self.namespace);
        let action = || {
            format!(
                "recording the move in ConfigMap {}/{JOURNAL}",
                self.namespace
            )
        };
        let params = PostParams::default();
        let stored = match self
            .side
            .attempt(action, || maps.replace(JOURNAL, &params, &map))
            .await
        {
            Ok(stored) => Some(stored),
            Err(error) if matches!(error.code(), Some(404 | 409)) => {
                read(&self.side, &self.namespace)
                    .await?
                    .filter(|stored| parse(stored).as_ref() == Some(&record))
            }
            Err(error) => return Err(error),
        };
        let stored = stored.ok_or_else(|| Error::TakenOver(self.namespace.clone()))?;
        self.stored = stored.metadata;
        self.record = record;
        Ok(())
    }
}

async fn read(side: &Side, namespace: &str) -> Result<Option<ConfigMap>, Error> {
    let maps: Api<ConfigMap> = Api::namespaced(side.client.clone(), namespace);
    let action = || format!("reading ConfigMap {namespace}/{JOURNAL}");
    side.attempt(action, || maps.get_opt(JOURNAL)).await
}

fn content(record: &Record, namespace: &str, stored: Option<&ObjectMeta>) -> ConfigMap {
    let data = json!({
        "id": record.id, "phase": record.phase.as_str(), "other": record.other, "process": record.process,
        "note": "The record of a ferrostack move that has not ended. Run the same command again to go on, or with --roll-back to undo it.",
    });
    let mut map = ConfigMap {
        data: serde_json::from_value(data).ok(),
        ..ConfigMap::default()
    };
    let meta = map.meta_mut();
    meta.name = Some(JOURNAL.to_owned());
    meta.namespace = Some(namespace.to_owned());
    meta.uid = stored.and_then(|stored| stored.uid.clone());
    meta.resource_version = stored.and_then(|stored| stored.resource_version.clone());
    map
}

fn parse(map: &ConfigMap) -> Option<Record> {
    let data = map.data.as_ref()?;
    let phases = [Phase::Moving, Phase::Committed, Phase::RollingBack];
    let phase = data.get("phase")?;
    Some(Record {
        id: data.get("id").filter(|id| !id.is_empty())?.clone(),
        phase: phases.into_iter().find(|known| known.as_str() == phase)?,
        other: data.get("other")?.clone(),
        process: data.get("process")?.clone(),
    })
}
