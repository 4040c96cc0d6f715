//! Replacing a machine that its health check gave up.

use super::observe::Observation;
use super::{ControlPlaneError, Scope, Subject};

/// Deletes a machine that has to be remediated; true when it did.
pub(super) async fn act(
    _scope: &Scope,
    _subject: &Subject,
    _seen: &Observation,
) -> Result<bool, ControlPlaneError> {
    Ok(false)
}
