//! cloud.conf, and the files named there, read again while the driver runs.

use std::convert::Infallible;
use std::time::Duration;

use csi::Driver;

use super::clouds;
use crate::cli::CinderCsiPlugin;
use crate::environment::Environment;

/// Interval between two reads of the files.
pub(super) const EVERY: Duration = Duration::from_secs(10);

/// Passes clouds and credentials from changed files to the driver. Invalid files change nothing, and neither do other
/// keys before a restart: both are logged.
pub(super) async fn watch(
    args: &CinderCsiPlugin,
    environment: &Environment,
    driver: Option<&Driver>,
    every: Duration,
) -> Infallible {
    let Some(driver) = driver else {
        // Without the controller service there are no credentials.
        return std::future::pending().await;
    };
    let mut settings = clouds::load(&args.into(), environment)
        .ok()
        .map(|it| it.settings());
    let mut last_problem = String::new();
    loop {
        tokio::time::sleep(every).await;
        match clouds::load(&args.into(), environment) {
            Ok(loaded) => {
                last_problem.clear();
                let now = Some(loaded.settings());
                if now != settings {
                    tracing::warn!(
                        "[BlockStorage] or [Metadata] of cloud.conf has changed, which takes effect at the next start"
                    );
                    settings = now;
                }
                if driver.replace(loaded.clouds) {
                    tracing::info!(
                        "cloud.conf has changed: its clouds and credentials are used from now on"
                    );
                }
            }
            Err(problem) => {
                let problem = format!("{problem:#}");
                if problem != last_problem {
                    tracing::error!("the clouds and credentials stay as they are: {problem}");
                }
                last_problem = problem;
            }
        }
    }
}

#[cfg(test)]
mod tests;
