//! Latest moment for the answer of a call.

use std::time::Duration;

use grpc::Context;
use tokio::time::Instant;

/// Reserve before the caller's deadline, for the way of the answer.
const RESERVE: Duration = Duration::from_secs(1);
/// Time limit of a call without a deadline.
const PATIENCE: Duration = Duration::from_secs(180);

/// Deadline for the answer: [`RESERVE`] before the caller stops waiting, or [`PATIENCE`] from now.
pub(crate) fn of(context: Context) -> Instant {
    let asked = context.deadline.and_then(|it| it.checked_sub(RESERVE));
    asked.unwrap_or_else(|| Instant::now() + PATIENCE)
}
