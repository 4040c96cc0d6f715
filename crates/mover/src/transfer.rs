//! Copies in the target: owners before dependents. The target's controllers confirm each layer before the next.

use std::collections::HashMap;
use std::sync::Arc;

use api::k8s_openapi::api::core::v1::Namespace;
use futures::{StreamExt, TryStreamExt};
use kube::ResourceExt;
use kube::api::{DynamicObject, PostParams};
use kube::core::ObjectMeta;
use operator::client::Api;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::access::Side;
use crate::copies::{self, Mark};
use crate::error::{Error, or_absent};
use crate::graph::{Moving, Object, Selection, layers};
use crate::kinds::Kind;
use crate::pausing::{AT_A_TIME, LOOK, late, read};
use crate::preflight::version;
use crate::removal;
use crate::work::Work;

/// Maximum number of attempts to replace a copy that changes in the meantime.
const ATTEMPTS: u32 = 5;

/// Copies of a move in the target.
pub(crate) struct Target<'a> {
    pub(crate) side: &'a Side,
    pub(crate) kinds: &'a [Arc<Kind>],
    pub(crate) namespace: &'a str,
    pub(crate) id: &'a str,
}

impl Target<'_> {
    /// Creates all copies, with status.
    ///
    /// # Errors
    /// When an object without the [`Mark`] of the move exists, or the target's controllers do not confirm in time
    /// that the copies are seen and paused.
    pub(crate) async fn fill(&self, work: &Work<'_>, selection: &Selection) -> Result<(), Error> {
        let mut uids = HashMap::new();
        let highest = selection.moves.iter().map(|moving| moving.level).max();
        for level in 0..=highest.unwrap_or_default() {
            let layer: Vec<&Moving> = selection
                .moves
                .iter()
                .filter(|moving| moving.level == level)
                .collect();
            let copies = layer
                .iter()
                .map(|moving| self.create(work, &moving.object, &uids));
            let copies: Vec<(String, String)> = futures::stream::iter(copies)
                .buffer_unordered(AT_A_TIME)
                .try_collect()
                .await?;
            uids.extend(copies);
            self.confirmed(work, &layer).await?;
        }
        (work.say)(&format!(
            "the target has {} copies, paused; copying what was observed of them",
            uids.len()
        ));
        let statuses = selection
            .moves
            .iter()
            .map(|moving| self.complete(work, &moving.object));
        futures::stream::iter(statuses)
            .buffer_unordered(AT_A_TIME)
            .try_collect()
            .await
    }

    /// Creates the namespace if missing. An undo keeps the namespace, because others may use it by then.
    pub(crate) async fn ensure_namespace(&self) -> Result<(), Error> {
        let namespaces: Api<Namespace> = Api::all(self.side.client.clone());
        let action = || format!("creating namespace {}", self.namespace);
        if self
            .side
            .attempt(action, || namespaces.get_opt(self.namespace))
            .await?
            .is_some()
        {
            return Ok(());
        }
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(self.namespace.to_owned()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let params = PostParams::default();
        match self
            .side
            .attempt(action, || namespaces.create(&params, &namespace))
            .await
        {
            Err(error) if error.code() == Some(409) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Creates a copy; returns the uids of original and copy.
    async fn create(
        &self,
        work: &Work<'_>,
        original: &Object,
        uids: &HashMap<String, String>,
    ) -> Result<(String, String), Error> {
        let copy = copies::copy(original, self.id, uids);
        let (_, name) = original.key();
        let api = self
            .side
            .objects(&original.kind, version(original), self.namespace);
        let action = || format!("creating {}", original.label());
        let params = PostParams::default();
        for _ in 0..ATTEMPTS {
            work.guard().await?;
            let created = self
                .side
                .attempt(action, || api.create(&params, &copy))
                .await;
            let stored = match created {
                Ok(stored) => stored,
                Err(error) if error.code() == Some(409) => {
                    match self.side.attempt(action, || api.get_opt(name)).await? {
                        // Somebody has deleted the copy.
                        None => continue,
                        Some(stored) => stored,
                    }
                }
                Err(error) => return Err(error),
            };
            let pair = (original.uid().to_owned(), stored.uid().unwrap_or_default());
            let ours = Mark::from_object(&stored)
                .is_some_and(|mark| mark.id == self.id && mark.original == original.uid());
            if !ours {
                return Err(Error::Refused(vec![foreign(original)]));
            }
            if has_all(&stored, &copy) {
                return Ok(pair);
            }
            let mut next = copy.clone();
            next.metadata.uid = stored.metadata.uid;
            next.metadata.resource_version = stored.metadata.resource_version;
            let replaced = self
                .side
                .attempt(action, || api.replace(name, &params, &next))
                .await;
            match replaced {
                Ok(_) => return Ok(pair),
                Err(error) if matches!(error.code(), Some(404 | 409)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Stuck(format!(
            "{} of the target changes all the time, though it is paused",
            original.label()
        )))
    }

    /// Waits until the target's controllers report the copies as seen and paused, as the controllers of the source
    /// have.
    async fn confirmed(&self, work: &Work<'_>, layer: &[&Moving]) -> Result<(), Error> {
        let reporting: Vec<&Object> = layer
            .iter()
            .map(|moving| &moving.object)
            .filter(|object| object.condition("Paused").is_some())
            .collect();
        let mut kinds: Vec<Arc<Kind>> = Vec::new();
        for object in &reporting {
            if !kinds.iter().any(|known| known.same(&object.kind)) {
                let known = self.kinds.iter().find(|known| known.same(&object.kind));
                kinds.extend(known.cloned());
            }
        }
        let deadline = Instant::now() + work.options.confirm_within;
        loop {
            let stored = read(self.side, &kinds, self.namespace).await?;
            let confirmed = |original: &&&Object| {
                let mut same = stored.iter().filter(|copy| copy.kind.same(&original.kind));
                let copy = same.find(|copy| copy.name() == original.name());
                copy.is_some_and(|copy| copy.condition("Paused") == Some("True"))
            };
            let waits: Vec<String> = reporting
                .iter()
                .filter(|original| !confirmed(original))
                .map(|object| {
                    format!(
                        "{}: no controller has confirmed that it is there and paused",
                        object.label()
                    )
                })
                .collect();
            if waits.is_empty() {
                return Ok(());
            }
            work.guard().await?;
            if Instant::now() > deadline {
                return Err(late("target", work.options.confirm_within, &waits));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Copies the status, and then the field managers, because each write changes the field managers.
    async fn complete(&self, work: &Work<'_>, original: &Object) -> Result<(), Error> {
        let version = version(original);
        let gone = || {
            Error::Stuck(format!(
                "{} of the target was deleted during the move",
                original.label()
            ))
        };
        let stored = self
            .side
            .get(&original.kind, version, (self.namespace, original.name()))
            .await?;
        let mut copy = Object::read_in(&original.kind, version, stored.ok_or_else(gone)?);
        if let Some(status) = copies::status(original)
            && !copies::contains(copy.field("/status"), &status)
        {
            work.guard().await?;
            let patch = json!({"status": status});
            let stored = self
                .side
                .merge(&copy, version, Some("status"), patch)
                .await?;
            copy.object = stored.ok_or_else(gone)?;
        }
        if !copies::has_managers(&copy.object, &original.object) {
            work.guard().await?;
            let managers: Value = json!(original.object.managed_fields());
            let patch = json!({"metadata": {"managedFields": managers}});
            self.side
                .merge(&copy, version, None, patch)
                .await?
                .ok_or_else(gone)?;
        }
        Ok(())
    }

    /// Copies of the move, each with a [`Mark`].
    pub(crate) async fn copies(&self) -> Result<Vec<(Object, Mark)>, Error> {
        let all = read(self.side, self.kinds, self.namespace).await?;
        let marked = all.into_iter().filter_map(|object| {
            let mark = Mark::from_object(&object.object)?;
            (mark.id == self.id).then_some((object, mark))
        });
        Ok(marked.collect())
    }

    /// Deletes the originals of the copies, owners last.
    pub(crate) async fn remove_originals(
        &self,
        source: &Side,
        kinds: &[Arc<Kind>],
    ) -> Result<(), Error> {
        let copies = self.copies().await?;
        let marks: HashMap<String, Mark> = copies
            .iter()
            .map(|(copy, mark)| (copy.uid().to_owned(), mark.clone()))
            .collect();
        let objects = copies.into_iter().map(|(copy, _)| copy).collect();
        for layer in layers(objects).into_iter().rev() {
            let originals = layer
                .iter()
                .filter_map(|copy| original(copy, marks.get(copy.uid())?, kinds));
            let originals: Vec<Object> = originals.collect();
            delete_all(source, &originals).await?;
        }
        Ok(())
    }

    /// Deletes all copies, owners last.
    pub(crate) async fn remove_copies(&self) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let copies = self.copies().await?;
            if copies.is_empty() {
                return Ok(());
            }
            let objects = copies.into_iter().map(|(copy, _)| copy).collect();
            for layer in layers(objects).into_iter().rev() {
                delete_all(self.side, &layer).await?;
            }
        }
        Err(Error::Stuck(
            "copies come back in the target as they are deleted".to_owned(),
        ))
    }

    /// Removes the marks and resumes the copies: Clusters last, when all dependencies are complete.
    pub(crate) async fn release(&self) -> Result<(), Error> {
        let mut copies = self.copies().await?;
        copies.sort_by_key(|(copy, _)| (copies::can_be_paused(copy), copy.kind.is("Cluster")));
        for (copy, mark) in copies {
            let patch = copies::release(&copy, mark.resumes);
            self.side.merge(&copy, version(&copy), None, patch).await?;
        }
        Ok(())
    }

    /// Objects of the target with the name of a [`Moving`] object, but without the mark of the move.
    pub(crate) async fn foreign(&self, selection: &Selection) -> Result<Vec<String>, Error> {
        let stored = read(self.side, self.kinds, self.namespace);
        // A missing namespace has no objects.
        let stored = or_absent(stored.await)?.unwrap_or_default();
        let foreign_to = |object: &Object| {
            let mut same = stored.iter().filter(|other| other.kind.same(&object.kind));
            let other = same.find(|other| other.name() == object.name())?;
            let mark = Mark::from_object(&other.object);
            let ours = mark.is_some_and(|mark| mark.id == self.id && mark.original == object.uid());
            (!ours).then(|| foreign(object))
        };
        let objects = selection.moves.iter().map(|moving| &moving.object);
        Ok(objects.filter_map(foreign_to).collect())
    }
}

/// Original of `copy` in the source cluster.
fn original(copy: &Object, mark: &Mark, kinds: &[Arc<Kind>]) -> Option<Object> {
    let kind = kinds.iter().find(|kind| kind.same(&copy.kind))?;
    let (namespace, name) = copy.key();
    let object = DynamicObject {
        types: None,
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            uid: Some(mark.original.clone()),
            ..ObjectMeta::default()
        },
        data: Value::Null,
    };
    Some(Object::read_in(kind, kind.stored(), object))
}

async fn delete_all(side: &Side, objects: &[Object]) -> Result<(), Error> {
    futures::stream::iter(objects)
        .map(|object| removal::remove(side, object))
        .buffer_unordered(AT_A_TIME)
        .try_collect()
        .await
}

/// True if the stored copy has every field of `copy`, apart from the status.
fn has_all(stored: &DynamicObject, copy: &DynamicObject) -> bool {
    let json = |object: &DynamicObject| serde_json::to_value(object).unwrap_or_default();
    copies::contains(&json(stored), &json(copy))
}

fn foreign(object: &Object) -> String {
    format!(
        "{} exists in the target and is another one: it is not overwritten; delete or rename it there",
        object.label()
    )
}
