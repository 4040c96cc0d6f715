//! `cinder-csi-plugin`: the Cinder CSI driver.

use super::csi;
use crate::cli::CinderCsiPlugin;
use crate::environment::Environment;
use crate::output::say;
use crate::signals::stop_on_signal;

/// Runs the command.
pub(super) async fn execute(
    args: &CinderCsiPlugin,
    environment: &Environment,
) -> anyhow::Result<()> {
    csi::run(args, environment, stop_on_signal()?, say).await
}
