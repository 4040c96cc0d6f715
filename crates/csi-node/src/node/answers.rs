//! The codes of what goes wrong, in words that name the volume and say what to do.

use std::io;
use std::path::Path;

use grpc::{Code, Status};

use crate::device::Unusable;
use crate::format::Refusal;
use crate::mount::state::Conflict;
use crate::program;

/// A failure of the call for a volume.
pub(super) fn status(code: Code, volume: &str, what: impl std::fmt::Display) -> Status {
    Status::new(code, format!("volume {volume}: {what}"))
}

/// The request is wrong.
pub(super) fn invalid(what: impl Into<String>) -> Status {
    Status::new(Code::InvalidArgument, what)
}

/// Whatever is not known of a device is unavailable: the caller asks again.
pub(super) fn unusable(volume: &str, why: &Unusable) -> Status {
    status(Code::Unavailable, volume, why)
}

pub(super) fn refusal(volume: &str, device: &Path, why: &Refusal) -> Status {
    let code = match why {
        Refusal::NotKnown(_) | Refusal::NotUsable(_) | Refusal::Unfinished(_) => Code::Unavailable,
        Refusal::Occupied(_) | Refusal::OtherKind { .. } | Refusal::NothingToRead => {
            Code::FailedPrecondition
        }
    };
    status(code, volume, format!("{}: {why}", device.display()))
}

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

/// A program that failed, or is absent.
pub(super) fn program(volume: &str, device: &Path, error: &program::Error) -> Status {
    status(
        Code::Internal,
        volume,
        format!("{}: {error}", device.display()),
    )
}

/// A system call that failed.
pub(super) fn system(volume: &str, what: &str, path: &Path, error: &io::Error) -> Status {
    let code = match error.kind() {
        io::ErrorKind::ResourceBusy => Code::FailedPrecondition,
        _ => Code::Internal,
    };
    status(code, volume, format!("{what} {}: {error}", path.display()))
}
