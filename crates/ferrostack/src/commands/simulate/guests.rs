//! `simulate guests`: guests, or machines of a guest runner, on the servers of a cloud with fake hypervisors.

use guests::Options;
use tokio_util::sync::CancellationToken;

use crate::cli::SimulateGuests;
use crate::cloud;
use crate::data_dir::write_private;
use crate::environment::Environment;

/// Runs until `shutdown`.
pub(crate) async fn run(
    args: &SimulateGuests,
    environment: &Environment,
    shutdown: CancellationToken,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let options = Options {
        program: args.program.program(),
        state_dir: args.state_dir.clone(),
        bind_range: args.bind_range.clone(),
        interval: args.interval,
        write: write_private,
    };
    options.check()?;
    let config = cloud::find(&args.cloud, environment)?;
    guests::run(config, &options, shutdown, say).await
}
