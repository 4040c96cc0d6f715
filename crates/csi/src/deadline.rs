//! When a call answers at the latest.

use std::time::Duration;

use grpc::Context;
use tokio::time::Instant;

/// The time before the caller's deadline in which the answer travels.
const RESERVE: Duration = Duration::from_secs(1);
/// The time of a call without a deadline.
const PATIENCE: Duration = Duration::from_secs(180);

/// A second before the caller stops waiting.
pub(crate) fn of(context: Context) -> Instant {
    let asked = context.deadline.and_then(|it| it.checked_sub(RESERVE));
    asked.unwrap_or_else(|| Instant::now() + PATIENCE)
}
