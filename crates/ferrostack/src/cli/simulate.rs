//! Flags of `simulate`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::{LatencyArg, duration, latency, loopback};
use super::{ProgramArgs, RunnerArgs};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Simulate {
    #[command(subcommand)]
    pub(crate) command: Option<SimulateCommand>,
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8774", value_parser = loopback)]
    pub(crate) listen: SocketAddr,
    /// File for a clouds.yaml of the cloud.
    #[arg(long, value_name = "FILE")]
    pub(crate) clouds_file: Option<PathBuf>,
    /// Password of the users `admin` and `demo`, for tests; otherwise each gets a new one, which the clouds.yaml has.
    #[arg(long, value_name = "PASSWORD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) password: Option<String>,
    /// Latency of the cloud: `none`, `real` (as measured on a real cloud), or a file with delays.
    #[arg(long, value_name = "none|real|FILE", default_value = "none", value_parser = latency)]
    pub(crate) latency: LatencyArg,
    /// Seed for random values, such as identifiers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Availability zone of volumes, where they are not those of servers; the first is the default. May be given more
    /// than once.
    #[arg(long, value_name = "ZONE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) volume_zone: Vec<String>,
    /// Boot servers as simulated Kubernetes nodes, from their user data.
    #[arg(long, conflicts_with = "guest_runner")]
    pub(crate) guests: bool,
    #[command(flatten)]
    pub(crate) runner: RunnerArgs,
    /// Directory for the disks of --guest-runner's machines.
    #[arg(long, value_name = "DIR", requires = "guest_runner")]
    pub(crate) state_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimulateCommand {
    /// Boot simulated Kubernetes nodes, or machines of a guest runner, for the servers of a cloud with fake
    /// hypervisors.
    Guests(SimulateGuests),
}

#[derive(Debug, Args)]
pub(crate) struct SimulateGuests {
    /// Entry of clouds.yaml with the credentials of an administrator. The floating IPs of the cloud must be loopback
    /// addresses, or inside a --bind-range.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: String,
    /// Directory for the state of the guests, which is otherwise lost when the program ends, or for the disks and
    /// consoles of the machines of --guest-runner.
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) program: ProgramArgs,
    /// Also serve floating and fixed addresses in this range; needs a network namespace in which the whole range is
    /// local; may be given more than once.
    #[arg(long, value_name = "CIDR")]
    pub(crate) bind_range: Vec<ipnet::IpNet>,
    /// Polling interval.
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = duration)]
    pub(crate) interval: std::time::Duration,
}
