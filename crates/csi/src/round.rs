//! Loop of a call: observe, plan, send at most one write, wait for the cloud, answer.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use grpc::{Code, Context, Status};
use openstack::{Error, Inventory, Kind, View};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

use crate::busy::Guard;
use crate::deadline;
use crate::mark;
use crate::plan::{self, Past, Step, Wait, Write};
use crate::refusal;

/// Maximum age of a view for a write that the cloud checks itself. An answer and a refusal need a fresh list.
pub(crate) const CHECKED: Duration = Duration::from_secs(60);
/// Maximum age of a view for a creation: Cinder accepts a name twice.
pub(crate) const CREATION: Duration = Duration::from_secs(10);
/// Maximum number of refused writes in a call.
const REFUSALS: usize = 2;

/// One call of a sidecar, which holds its [`Guard`].
pub(crate) struct Round {
    inventory: Inventory,
    deadline: Instant,
    guard: Arc<Guard>,
    relaxed: Duration,
}

/// Requirement on a [`View`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    /// At most [`CHECKED`] or [`CREATION`] old.
    Relaxed,
    /// From a list that began after the call, or after the last refused write.
    Fresh,
    /// Latest known state: the call has written, and follows the changes.
    Known,
}

impl Round {
    /// Begins a call. `guard` is held until the call and its write have ended. `relaxed`: maximum age of a view for a
    /// write, [`CHECKED`] or [`CREATION`].
    pub(crate) fn new(
        inventory: Inventory,
        context: Context,
        guard: Arc<Guard>,
        relaxed: Duration,
    ) -> Self {
        Self {
            inventory,
            deadline: deadline::of(context),
            guard,
            relaxed,
        }
    }

    /// Repeats `plan` on views of `kinds` until it answers or refuses.
    pub(crate) async fn run<T>(
        &self,
        kinds: &[Kind],
        plan: impl Fn(&View, &Past) -> Step<T> + Send,
    ) -> Result<(T, Arc<View>), Status>
    where
        T: Send,
    {
        let mut kinds = kinds.to_vec();
        let mut past = Past::default();
        let (mut age, mut refusals) = (Age::Relaxed, 0);
        let mut changes = self.inventory.changes();
        loop {
            let view = self.view(&kinds, age).await?;
            match plan(&view, &past) {
                Step::Look(more) => {
                    past.looked = true;
                    let wider = [&kinds, more].concat();
                    // The state after the write is known; the added kinds need a list.
                    match self.view(&wider, Age::Relaxed).await {
                        Ok(_) => kinds = wider,
                        // The refusal of the cloud is the answer, also without an explanation.
                        Err(_) if past.refused.is_some() => {}
                        Err(status) => return Err(status),
                    }
                }
                Step::Reread(kind) => {
                    past.looked = true;
                    self.view(&[kind], Age::Fresh).await?;
                }
                Step::Answer(_) | Step::Refuse(_) | Step::Wait(_) if age == Age::Relaxed => {
                    age = Age::Fresh;
                }
                Step::Answer(answer) => return Ok((answer, view)),
                Step::Refuse(status) => return Err(self.explained(status, &past).await),
                Step::Wait(wait) => {
                    self.wait(&mut changes, &wait).await?;
                    age = Age::Known;
                }
                Step::Write(next) if past.written.is_some() => return Err(later(&next)),
                Step::Write(next) if refused_before(&past, &next) || refusals == REFUSALS => {
                    return Err(refused(&past));
                }
                Step::Write(next) => match self.write(&next).await? {
                    Ok(reason) => {
                        (past.written, past.reason) = (Some(next), reason);
                        age = Age::Known;
                    }
                    Err(error) => {
                        past.refused = Some((next, error));
                        (refusals, age) = (refusals + 1, Age::Fresh);
                    }
                },
            }
        }
    }

    /// Runs other work than requests to the cloud, until the deadline of the call.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        let done = timeout_at(self.deadline, work).await;
        done.unwrap_or_else(|_| {
            let message = "the API server does not answer in the time of the call";
            Err(Status::new(Code::Unavailable, message))
        })
    }

    /// Adds Cinder's message to a refusal that follows an accepted write without effect.
    async fn explained(&self, mut status: Status, past: &Past) -> Status {
        let written = past.written.as_ref();
        // The answer does not wait for a late message.
        if let (Some(write), None) = (written, &past.reason)
            && let Some(id) = write.subject()
            && let Ok(Some(reason)) = timeout_at(self.deadline, message(&self.inventory, id)).await
            && write.may_be_explained_by(&reason)
        {
            status.message = format!("{}: {reason}", status.message);
        }
        status
    }

    async fn view(&self, kinds: &[Kind], age: Age) -> Result<Arc<View>, Status> {
        let most = match age {
            Age::Known => return Ok(self.inventory.known()),
            Age::Relaxed => self.relaxed,
            Age::Fresh => {
                kinds.iter().for_each(|kind| self.inventory.stale(*kind));
                self.relaxed
            }
        };
        let viewed = timeout_at(self.deadline, self.inventory.view(kinds, most)).await;
        let viewed = viewed.map_err(|_| {
            Status::new(
                Code::Unavailable,
                "the cloud does not answer in the time of the call",
            )
        })?;
        viewed.map_err(|error| refusal::of_read(&error))
    }

    /// Waits for a change of the object.
    async fn wait(
        &self,
        changes: &mut Receiver<openstack::Change>,
        wait: &Wait,
    ) -> Result<(), Status> {
        self.inventory.watch_pending(wait.kind, &wait.id);
        let late = || {
            let message = format!("{}: the next call goes on", wait.why);
            Status::new(Code::Aborted, message)
        };
        loop {
            match timeout_at(self.deadline, changes.recv()).await {
                Err(_) | Ok(Err(RecvError::Closed)) => return Err(late()),
                Ok(Err(RecvError::Lagged(_))) => return Ok(()),
                Ok(Ok(change)) if change.kind == wait.kind && change.id == wait.id => return Ok(()),
                Ok(Ok(_)) => {}
            }
        }
    }

    /// Sends a write, to its end even if the caller gives up. The outer error is for an unknown outcome, the inner one
    /// a refusal by the cloud.
    async fn write(&self, write: &Write) -> Result<Result<Option<String>, Error>, Status> {
        let (inventory, guard) = (self.inventory.clone(), Arc::clone(&self.guard));
        let doing = write.doing();
        let sent = write.clone();
        let task: BoxFuture<'static, _> = Box::pin(async move {
            let outcome = send(&inventory, &sent).await;
            if outcome.as_ref().is_err() {
                inventory.stale(sent.kind());
            }
            drop(guard);
            outcome
        });
        let outcome = timeout_at(self.deadline, tokio::spawn(task)).await;
        match outcome {
            Ok(Ok(Err(error))) if !refusal::is_certain(&error) => {
                Err(refusal::unknown(&error, &doing))
            }
            Ok(Ok(outcome)) => Ok(outcome),
            // The process is ending, or the time of the call is over.
            Ok(Err(_)) | Err(_) => {
                let message =
                    format!("{doing}: the cloud has not answered yet; the next call goes on");
                Err(Status::new(Code::Aborted, message))
            }
        }
    }
}

/// True if the cloud has refused the same write in this call.
fn refused_before(past: &Past, next: &Write) -> bool {
    past.refused
        .as_ref()
        .is_some_and(|(write, _)| write == next)
}

fn refused(past: &Past) -> Status {
    match &past.refused {
        Some((write, error)) => refusal::of_write(error, &write.doing()),
        None => Status::new(Code::Internal, "a write was refused without a reason"),
    }
}

/// ABORTED, for a call that has written and would have to write again.
fn later(next: &Write) -> Status {
    let message = format!("{}: the next call does it", next.doing());
    Status::new(Code::Aborted, message)
}

/// Sends a [`Write`], and returns Cinder's message about a failed object.
fn send<'a>(
    inventory: &'a Inventory,
    write: &'a Write,
) -> BoxFuture<'a, Result<Option<String>, Error>> {
    let reason = |id: &'a str| reason(inventory, id);
    async move {
        match write {
            Write::CreateVolume(volume) => inventory.create_volume(volume).await.map(drop)?,
            Write::DeleteVolume { id } => inventory.delete_volume(id).await?,
            Write::DeleteFailedVolume { id } => {
                let reason = reason(id).await;
                inventory.delete_volume(id).await?;
                return Ok(reason);
            }
            Write::ExtendVolume { id, size, attached } => {
                inventory.extend_volume(id, *size, *attached).await?;
            }
            Write::Attach { server, volume } => inventory.attach_volume(server, volume).await?,
            Write::Detach { server, volume } => inventory.detach_volume(server, volume).await?,
            Write::DeleteAttachment { volume, attachment } => {
                inventory.delete_attachment(volume, attachment).await?;
            }
            Write::Release { server, volume } => release(inventory, server, volume).await?,
            Write::Retype { volume, to, moves } => {
                inventory.retype_volume(volume, to, *moves).await?;
            }
            Write::SetMetadata { volume, metadata } => {
                let metadata = metadata.clone();
                inventory.set_volume_metadata(volume, metadata).await?;
            }
            Write::NoteFirstAttachment { volume, attachment } => {
                let note = [(mark::FIRST_ATTACHMENT.to_owned(), attachment.clone())];
                inventory.set_volume_metadata(volume, note.into()).await?;
            }
            Write::CreateSnapshot(it) => inventory.create_snapshot(it).await.map(drop)?,
            Write::DeleteSnapshot { id } => {
                let reason = reason(id).await;
                inventory.delete_snapshot(id).await?;
                return Ok(reason);
            }
            Write::CreateBackup(it) => inventory.create_backup(it).await.map(drop)?,
            Write::DeleteBackup { id } => inventory.delete_backup(id).await?,
            Write::CreateGroup(it) => inventory.create_volume_group(it).await.map(drop)?,
            Write::ChangeGroup { group, add, remove } => {
                inventory.change_volume_group(group, add, remove).await?;
            }
            Write::DeleteGroup { id } => inventory.delete_volume_group(id).await?,
            Write::CreateGroupSnapshot(it) => {
                inventory.create_group_snapshot(it).await.map(drop)?;
            }
            Write::DeleteGroupSnapshot { id } => inventory.delete_group_snapshot(id).await?,
        }
        Ok(None)
    }
    .boxed()
}

/// Deletes the reservations of a volume. Nova makes its own record first; so Cinder refuses to delete the reservation
/// of an attachment in progress.
async fn release(inventory: &Inventory, server: &str, volume: &str) -> Result<(), Error> {
    let attachments = inventory.session().volume().attachments_of(volume).await?;
    for one in attachments {
        let is_asked = server.is_empty() || one.instance == server;
        if is_asked && one.status == "reserved" {
            inventory.delete_attachment(volume, &one.id).await?;
        }
    }
    inventory.stale(Kind::Volumes);
    Ok(())
}

/// Cinder's message about an object, if its known status is an error.
async fn reason(inventory: &Inventory, id: &str) -> Option<String> {
    let view = inventory.known();
    let failed = |status: &str| status.starts_with("error");
    let is_failed = view.volumes.get(id).is_some_and(|it| failed(&it.status))
        || view.snapshots.get(id).is_some_and(|it| failed(&it.status));
    match is_failed {
        true => message(inventory, id).await,
        false => None,
    }
}

/// Cinder's newest message about an object.
async fn message(inventory: &Inventory, id: &str) -> Option<String> {
    let messages = inventory.session().volume().messages(id).await;
    let messages = messages.unwrap_or_default();
    let newest = messages.into_iter().next();
    newest.map(|it| plan::line(it.user_message))
}
