//! Errors of the cloud as codes of CSI.
//!
//! A *final* code makes a sidecar forget its request; CANCELED, DEADLINE_EXCEEDED, UNAVAILABLE and ABORTED do not.

use grpc::{Code, Status};
use openstack::{Error, ErrorKind};

/// Phrases of Nova for a server at its limit of disks, in lower case.
const FULL: &[&str] = &[
    "maximum allowed number of disk devices",
    "no more available pci slots",
    "no more free slots",
    "disk device limit",
];
/// Phrases of Cinder for an object with dependents, in lower case.
const NEEDED: &[&str] = &[
    "snapshot",
    "dependent",
    "attached",
    "in use",
    "must be available",
];

/// Phrases of Cinder for a retype in the wrong status, in lower case.
const NOT_NOW: &[&str] = &[
    "only allowed on available volumes",
    "retype needs volume to be in",
];

/// INVALID_ARGUMENT.
pub(crate) fn invalid<T>(message: impl Into<String>) -> Result<T, Status> {
    Err(Status::new(Code::InvalidArgument, message))
}

/// [`Status`] for a failed read. Never final: an earlier call may have begun a write.
pub(crate) fn of_read(error: &Error) -> Status {
    let hint = match error.kind() {
        ErrorKind::Unauthenticated | ErrorKind::Denied => {
            "; check the credentials and roles in cloud.conf"
        }
        _ => "",
    };
    Status::new(Code::Unavailable, format!("{}{hint}", error.cause("list")))
}

/// True if the cloud has certainly not performed the request. A failed read before a write tells nothing about the
/// write.
pub(crate) fn is_certain(error: &Error) -> bool {
    if error.method().is_some_and(|method| method == "GET") {
        return false;
    }
    match error.kind() {
        ErrorKind::Transient { .. } | ErrorKind::Unreachable | ErrorKind::Protocol => false,
        ErrorKind::Absent
        | ErrorKind::Busy
        | ErrorKind::Conflict
        | ErrorKind::Quota
        | ErrorKind::Denied
        | ErrorKind::Unauthenticated
        | ErrorKind::Invalid => true,
    }
}

/// [`Status`] for a write with unknown outcome.
pub(crate) fn unknown(error: &Error, doing: &str) -> Status {
    let message = format!(
        "{}; the next call looks for what became of it",
        error.cause(doing)
    );
    Status::new(Code::Aborted, message)
}

/// [`Status`] for a write that the cloud refused.
pub(crate) fn of_write(error: &Error, doing: &str) -> Status {
    let message = error.message().to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let code = match error.kind() {
        ErrorKind::Quota => Code::ResourceExhausted,
        ErrorKind::Invalid | ErrorKind::Denied | ErrorKind::Conflict if says(FULL) => {
            Code::ResourceExhausted
        }
        ErrorKind::Absent => Code::NotFound,
        ErrorKind::Busy => Code::Aborted,
        ErrorKind::Conflict => Code::FailedPrecondition,
        ErrorKind::Denied => Code::PermissionDenied,
        ErrorKind::Unauthenticated => Code::Unavailable,
        ErrorKind::Invalid if doing.starts_with("delete") && says(NEEDED) => {
            Code::FailedPrecondition
        }
        ErrorKind::Invalid
            if [
                "attach",
                "detach",
                "extend",
                "change volume group",
                "take group snapshot",
            ]
            .iter()
            .any(|it| doing.starts_with(it)) =>
        {
            Code::FailedPrecondition
        }
        // A retype is possible after a detach, or after the deletion of the snapshots.
        ErrorKind::Invalid if doing.starts_with("retype") && says(NOT_NOW) => {
            Code::FailedPrecondition
        }
        ErrorKind::Invalid => Code::InvalidArgument,
        ErrorKind::Transient { .. } | ErrorKind::Unreachable | ErrorKind::Protocol => Code::Aborted,
    };
    Status::new(code, error.cause(doing))
}
