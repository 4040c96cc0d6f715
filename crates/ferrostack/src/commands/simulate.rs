//! `simulate`: the simulated OpenStack alone, or guests alone on another cloud.

mod guests;

use anyhow::Context;
use simulator::cloud::Passwords;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cli::{Simulate, SimulateCommand};
use crate::data_dir::write_private;
use crate::environment::Environment;
use crate::output::say;
use crate::signals::stop_on_signal;
use crate::simulated::{Bodies, CLOUD, Setup, Simulated};

/// Runs the command.
pub(super) async fn execute(args: &Simulate, environment: &Environment) -> anyhow::Result<()> {
    match &args.command {
        None => run(args, stop_on_signal()?, say).await,
        Some(SimulateCommand::Guests(guests)) => {
            guests::run(guests, environment, stop_on_signal()?, say).await
        }
    }
}

/// Runs a simulated cloud until Ctrl-C.
async fn run(
    args: &Simulate,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(args.listen).await.map_err(|source| {
        anyhow::anyhow!(
            "cannot listen on {}: {source}; choose another address with --listen",
            args.listen
        )
    })?;
    let setup = Setup {
        store: None,
        guest_state: None,
        latency: args.latency.clone(),
        seed: args.seed,
        volume_zones: args.volume_zone.clone(),
        floating: 30,
        bodies: Bodies::new(
            &args.runner,
            || {
                let missing =
                    "--guest-runner needs --state-dir, where the disks of the machines are kept";
                args.state_dir.clone().context(missing)
            },
            if args.guests {
                Bodies::Guests(None)
            } else {
                Bodies::Nothing
            },
        )?,
        passwords: args
            .password
            .as_deref()
            .map_or_else(Passwords::random, Passwords::same),
    };
    let simulated = Simulated::start(setup, listener, shutdown.clone()).await?;
    if let Some(path) = &args.clouds_file {
        write_private(path, &simulated.clouds_yaml)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    say(&format!("simulated OpenStack at {}", simulated.url));
    match &args.clouds_file {
        Some(path) => say(&format!(
            "export OS_CLIENT_CONFIG_FILE={} OS_CLOUD={CLOUD}",
            path.display()
        )),
        None => say(&simulated.clouds_yaml),
    }
    shutdown.cancelled().await;
    simulated.stopped().await;
    Ok(())
}
