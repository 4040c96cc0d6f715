//! Types and reasons of the conditions of an [`OpenStack`](super::v1alpha1::OpenStack).

use crate::conditions::vocabulary::vocabulary;

vocabulary! {
impl ConditionType for
/// Type of a condition.
pub enum Type {
    Ready: "Every step is ready.",
    ConfigurationValid: "The parameters describe a valid cloud.",
    TasksSucceeded: "No task has failed.",
    AccountsWritten: "RabbitMQ and Keystone have all accounts of the services.",
    NodesDrained: "No server is on a compute node that is cordoned or gone.",
    Paused: "The object is paused, and the controller leaves the cloud unchanged.",
}
}

vocabulary! {
impl ConditionReason for
/// Reason of a condition.
pub enum Reason {
    AllStepsReady: "Every step is ready.",
    Progressing: "The message names a step that is not ready yet.",
    TaskFailed: "A task has failed; the message has its last lines.",
    Conflict: "An object or account with the name of one of the cloud belongs to somebody else.",
    WriteRejected: "The API server has rejected a write.",
    CertificateUnusable: "No client could connect with the given certificate. The edge serves the last good one.",
    ConfigurationInvalid: "The parameters are rejected; the message names the fields.",
    Deleting: "The cloud is being deleted.",
    Accepted: "The parameters are valid.",
    Rejected: "The parameters are rejected; the message names the fields.",
    NoneFailed: "No task has failed.",
    Written: "All accounts are there.",
    NotWritten: "An account is missing, or a store does not answer.",
    NotYet: "No store can be asked yet.",
    NoneCordoned: "No compute node is cordoned.",
    Drained: "No server is on a cordoned node.",
    Draining: "Servers leave cordoned nodes.",
    ServersCannotMove: "The message names servers that no migration moves, each with the reason.",
    TimedOut: "No more migrations are started: compute.drain.timeout is over.",
    WaitingForServers: "Servers are on a cordoned node, and compute.drain.mode is Wait.",
    NodeGone: "A node is gone, and Nova has its service or servers still.",
    NotAnswered: "Nova or Keystone does not answer, or nodes cannot be listed.",
    Paused: "The object is paused.",
    NotPaused: "The object is not paused.",
}
}
