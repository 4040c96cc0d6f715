//! `k8s-keystone-auth`: the Keystone webhook of an API server.

use super::keystone_auth;
use crate::cli::KeystoneWebhook;
use crate::environment::Environment;
use crate::output::say;
use crate::signals::stop_on_signal;

/// Runs the command.
pub(super) async fn execute(
    args: &KeystoneWebhook,
    environment: &Environment,
) -> anyhow::Result<()> {
    keystone_auth::run(args, environment, stop_on_signal()?, say).await
}
