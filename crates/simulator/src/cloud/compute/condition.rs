//! States in which a server can be changed.

use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;

/// Returns a [`Fault`] for an action on a server in the midst of another one, or with none of the statuses.
pub(super) fn allowed(doc: &Doc, action: &str, statuses: &[&str]) -> Result<(), Fault> {
    let id = doc.text("id");
    if !doc.text("_task").is_empty() {
        return Err(Fault::conflict(format!(
            "Cannot '{action}' instance {id} while it is in task_state {}",
            doc.text("_task")
        )));
    }
    if statuses.contains(&doc.text("status")) {
        return Ok(());
    }
    let state = match doc.text("status") {
        "SHUTOFF" => "stopped".to_owned(),
        "BUILD" => "building".to_owned(),
        "SOFT_DELETED" => "soft-delete".to_owned(),
        other => other.to_ascii_lowercase(),
    };
    Err(Fault::conflict(format!(
        "Cannot '{action}' instance {id} while it is in vm_state {state}"
    )))
}
