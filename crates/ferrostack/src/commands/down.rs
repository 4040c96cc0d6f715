//! `down`: stops the `up` of a data directory.

use super::status;
use crate::cli::Down;
use crate::environment::Environment;
use crate::output::say;

/// Runs the command.
pub(super) async fn execute(args: &Down, environment: &Environment) -> anyhow::Result<()> {
    status::down(args, environment, say).await
}
