//! The status of a server: a function of the observed state and of the problem of the reconcile.

use api::conditions::{Reason, Status, Type};
use api::infra::v1alpha1::OpenStackServer;
use api::k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;

use crate::context::kept::{condition, reported};
use crate::context::{self, FALLBACK};
use crate::machine::status::{addresses, fault};
use crate::machine::work::ServerWork;

/// Sets a condition to false, and Ready, too.
pub(super) fn not_ready(
    object: &mut OpenStackServer,
    now: Timestamp,
    type_: Type,
    reason: Reason,
    message: &str,
) {
    for type_ in [type_, Type::Ready] {
        condition(object, now, type_, (Status::False, reason, message));
    }
    object.status.get_or_insert_default().ready = false;
}

/// Writes the state of the server, and returns the time of the next look.
pub(super) async fn show(
    object: &OpenStackServer,
    next: &mut OpenStackServer,
    work: &ServerWork<'_>,
    waits: Vec<String>,
) -> Action {
    let (now, observed) = (work.ctx.now(), work.known());
    let again = Action::requeue(FALLBACK);
    if let Some(wait) = waits.first() {
        not_ready(
            next,
            now,
            Type::InstanceReady,
            Reason::WaitingForCloud,
            wait,
        );
        return again;
    }
    let Some(server) = observed.server() else {
        return again;
    };
    let status = next.status.get_or_insert_default();
    status.instance_id = Some(server.id.clone());
    status.instance_state = Some(server.status.clone());
    let (reason, text) = match server.status.as_str() {
        _ if server.is_deleting() => (
            Reason::InstanceDeleted,
            format!("server {} is being deleted by somebody else", server.id),
        ),
        "ACTIVE" => {
            status.addresses = addresses(server);
            status.ready = true;
            let address = work
                .address
                .iter()
                .map(|_| Type::FloatingAddressFromPoolReady);
            for type_ in [Type::InstanceReady, Type::Ready]
                .into_iter()
                .chain(address)
            {
                condition(next, now, type_, (Status::True, Reason::Ready, ""));
            }
            return context::settled();
        }
        "ERROR" => (Reason::InstanceStateError, fault(server, "OpenStackServer")),
        "" | "BUILD" => (
            Reason::InstanceNotReady,
            format!("creating server {}", server.id),
        ),
        other => (
            Reason::InstanceNotReady,
            format!("server {} is {other}", server.id),
        ),
    };
    not_ready(next, now, Type::InstanceReady, reason, &text);
    let is_error = reason == Reason::InstanceStateError;
    if is_error && reported(object, Type::InstanceReady) != reported(next, Type::InstanceReady) {
        let recorder = &work.ctx.recorder;
        recorder
            .warning(object, "FailedCreateServer", "CreateServer", text)
            .await;
    }
    again
}
