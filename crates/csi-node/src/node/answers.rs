//! gRPC codes of failures, and messages with the name of the volume and the next step.

use std::io;
use std::path::Path;

use grpc::{Code, Status};

use crate::device::Unusable;
use crate::format::Refusal;
use crate::mount::state::Conflict;
use crate::program;

/// Status for a failure with a volume: `volume ID: …`.
pub(super) fn status(code: Code, volume: &str, what: impl std::fmt::Display) -> Status {
    Status::new(code, format!("volume {volume}: {what}"))
}

/// Status for an invalid request.
pub(super) fn invalid(what: impl Into<String>) -> Status {
    Status::new(Code::InvalidArgument, what)
}

/// Status for a disk that is not usable yet: `UNAVAILABLE`, so that the caller tries again.
pub(super) fn unusable(volume: &str, why: &Unusable) -> Status {
    status(Code::Unavailable, volume, why)
}

/// Status for a [`Refusal`]: `UNAVAILABLE` while the content of the device is unknown, `FAILED_PRECONDITION` if known
/// and in the way.
pub(super) fn refusal(volume: &str, device: &Path, why: &Refusal) -> Status {
    let code = match why {
        Refusal::NotKnown(_) | Refusal::NotUsable(_) | Refusal::Unfinished(_) => Code::Unavailable,
        Refusal::Occupied(_) | Refusal::OtherKind { .. } | Refusal::NothingToRead => {
            Code::FailedPrecondition
        }
    };
    status(code, volume, format!("{}: {why}", device.display()))
}

/// Status for a [`Conflict`] at a mount point.
pub(super) fn conflict(volume: &str, path: &Path, what: Conflict) -> Status {
    let path = path.display();
    match what {
        Conflict::Foreign => status(
            Code::FailedPrecondition,
            volume,
            format!("another device is mounted at {path}: unmount it there if it is not used"),
        ),
        Conflict::ReadOnly => status(
            Code::AlreadyExists,
            volume,
            format!("it is mounted read-only at {path}: unpublish it there first"),
        ),
    }
}

/// Status for a program that failed or is absent, by [`program::run`].
pub(super) fn program(volume: &str, device: &Path, error: &program::Error) -> Status {
    status(
        Code::Internal,
        volume,
        format!("{}: {error}", device.display()),
    )
}

/// Status for a failed system call; `FAILED_PRECONDITION` if the kernel answers `EBUSY`.
pub(super) fn system(volume: &str, what: &str, path: &Path, error: &io::Error) -> Status {
    let code = match error.kind() {
        io::ErrorKind::ResourceBusy => Code::FailedPrecondition,
        _ => Code::Internal,
    };
    status(code, volume, format!("{what} {}: {error}", path.display()))
}
