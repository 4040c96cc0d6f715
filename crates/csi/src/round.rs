//! Observe, plan, send at most one write, wait for the cloud, answer.

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

/// The age up to which a view may lead to a write that the cloud itself checks. An answer and a refusal need a list of
/// now.
pub(crate) const CHECKED: Duration = Duration::from_secs(60);
/// The same for a write that makes something: Cinder takes a name twice.
pub(crate) const CREATION: Duration = Duration::from_secs(10);
/// The most writes that the cloud refuses before the call ends.
const REFUSALS: usize = 2;

/// One call of a sidecar.
pub(crate) struct Round {
    inventory: Inventory,
    deadline: Instant,
    guard: Arc<Guard>,
    relaxed: Duration,
}

/// What a view has to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    /// Up to [`CHECKED`] or [`CREATION`].
    Relaxed,
    /// Of a list that began after the call, or after the last write that was refused.
    Fresh,
    /// What is known: the call has written, and follows the changes.
    Known,
}

impl Round {
    /// Begins a call that holds `guard` until it, and its write, have ended. A view of the age `relaxed` may lead to a
    /// write.
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

    /// Plans by what is observed of `kinds` until there is an answer.
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
                    // What was written is known, and of the rest a list is needed.
                    match self.view(&wider, Age::Relaxed).await {
                        Ok(_) => kinds = wider,
                        // The cloud's refusal is the answer, even if nothing explains it.
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

    /// Waits for something beside the cloud until the call has to end.
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

    /// A refusal after a write that Cinder has taken and not done: with what Cinder says of it.
    async fn explained(&self, mut status: Status, past: &Past) -> Status {
        let written = past.written.as_ref();
        // Words that come too late are not worth the answer.
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

    /// Waits until the object changes.
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

    /// Sends a write, which goes on if the caller gives up. The outer error is that of a write whose outcome is not
    /// known, the inner one a refusal.
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
            // The task has ended with the process, or the time of the call has.
            Ok(Err(_)) | Err(_) => {
                let message =
                    format!("{doing}: the cloud has not answered yet; the next call goes on");
                Err(Status::new(Code::Aborted, message))
            }
        }
    }
}

/// True if the cloud refused this very write.
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

/// The answer of a call that has written, and would have to again.
fn later(next: &Write) -> Status {
    let message = format!("{}: the next call does it", next.doing());
    Status::new(Code::Aborted, message)
}

/// Sends a write. The answer is what Cinder says of what failed.
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

/// Deletes the reservations of a volume. Nova makes its own record first, so that Cinder refuses to delete one of a server
/// that is being attached.
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

/// What Cinder says of an object that failed; nothing if it is not known to have.
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

/// The newest of Cinder's messages about an object.
async fn message(inventory: &Inventory, id: &str) -> Option<String> {
    let messages = inventory.session().volume().messages(id).await;
    let messages = messages.unwrap_or_default();
    let newest = messages.into_iter().next();
    newest.map(|it| plan::line(it.user_message))
}
