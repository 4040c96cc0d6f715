//! The multicall binary of the suite: flags, logging, wiring. Of all crates, only this one reads the environment,
//! installs the TLS provider, and prints.
//!
//! ```text
//!   cli          commands with their flags
//!   commands     a file for each command, under its name
//!   environment, output, process, signals   the process: input, output and end
//!   connect, endpoints, located, cloud      the API server and the cloud of a command
//!   data_dir, pki, serve, simulated         parts of programs that serve
//! ```

mod chart_values;
mod cli;
mod cloud;
mod commands;
mod connect;
mod data_dir;
mod defaults;
mod dumps;
mod endpoints;
mod environment;
mod footprint;
mod located;
mod log;
mod output;
mod picture;
mod pki;
mod process;
mod serve;
mod shell;
mod signals;
mod simulated;
mod source;
#[cfg(test)]
mod tests;

// The allocator.
use heap as _;

use std::process::ExitCode;

use crate::commands::completion;
use crate::environment::Environment;

fn main() -> ExitCode {
    if let Some(shell) = environment::variable(completion::VARIABLE) {
        return completion::complete(&shell);
    }
    let cli = cli::parse(environment::arguments());
    process::status(process::set_up(&cli).and_then(|()| {
        let environment = Environment::of_process();
        process::install_proxies(&environment);
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(commands::execute(cli.command, &environment))
    }))
}
