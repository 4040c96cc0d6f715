//! Pause of the source before the first copy, and resumption when the move is undone.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use tokio::time::{Duration, Instant};

use crate::access::Side;
use crate::copies;
use crate::error::Error;
use crate::graph::{Object, Selection, select};
use crate::kinds::Kind;
use crate::preflight;
use crate::work::Work;

/// Maximum number of requests in flight.
pub(crate) const AT_A_TIME: usize = 8;
/// Pause between two reads of the confirmations.
pub(crate) const LOOK: Duration = Duration::from_millis(250);
/// Maximum number of objects named in an error.
const NAMED: usize = 10;

/// Objects of a namespace.
pub(crate) async fn read(
    side: &Side,
    kinds: &[Arc<Kind>],
    namespace: &str,
) -> Result<Vec<Object>, Error> {
    let lists = kinds.iter().map(|kind| side.list(kind, namespace));
    let lists: Vec<Vec<Object>> = futures::stream::iter(lists)
        .buffered(AT_A_TIME)
        .try_collect()
        .await?;
    Ok(lists.into_iter().flatten().collect())
}

/// Pauses the source, waits for the confirmation of the controllers, and returns the [`Selection`].
///
/// # Errors
/// When no confirmation comes in time, or an object is not ready for the move.
pub(crate) async fn pause(
    work: &Work<'_>,
    source: &Side,
    kinds: &[Arc<Kind>],
) -> Result<Selection, Error> {
    let id = &work.journal.record.id;
    let deadline = Instant::now() + work.options.confirm_within;
    loop {
        let selection = select(read(source, kinds, &work.options.namespace).await?);
        let mut changed = false;
        for moving in &selection.moves {
            let object = &moving.object;
            if copies::can_be_paused(object) && !copies::is_paused(object) {
                work.guard().await?;
                let version = preflight::version(object);
                source
                    .merge(object, version, None, copies::pause(object, id))
                    .await?;
                changed = true;
            }
        }
        let waits = preflight::unquiet(&selection);
        if !changed && waits.is_empty() {
            let problems = preflight::source(&selection, Some(id));
            return if problems.is_empty() {
                Ok(selection)
            } else {
                Err(Error::Refused(problems))
            };
        }
        if !changed {
            work.guard().await?;
            if Instant::now() > deadline {
                return Err(late("source", work.options.confirm_within, &waits));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Resumes the objects paused by the move `id`.
pub(crate) async fn resume(
    side: &Side,
    kinds: &[Arc<Kind>],
    namespace: &str,
    id: &str,
) -> Result<(), Error> {
    for object in read(side, kinds, namespace).await? {
        if copies::is_paused_by(&object, id) {
            let version = preflight::version(&object);
            side.merge(&object, version, None, copies::release(&object, true))
                .await?;
        }
    }
    Ok(())
}

/// Error of a missing confirmation.
pub(crate) fn late(side: &str, limit: Duration, waits: &[String]) -> Error {
    let mut text = format!(
        "the {side} is not ready for the move after {} s. Do its controllers run?",
        limit.as_secs()
    );
    for wait in waits.iter().take(NAMED) {
        text.push_str(&format!("\n  {wait}"));
    }
    if waits.len() > NAMED {
        text.push_str(&format!("\n  and {} more", waits.len() - NAMED));
    }
    Error::Stuck(text)
}
