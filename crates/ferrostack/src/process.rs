//! Settings of the process: log, TLS provider, proxies, exit status.

use std::io;
use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::environment::Environment;
use crate::{log, output};

/// Sets up logging on standard error, and the TLS provider of the process.
pub(crate) fn set_up(cli: &Cli) -> anyhow::Result<()> {
    let log = match &cli.command {
        Command::CloudControllerManager(args) if cli.logging.log == "error" => {
            args.klog.log_filter()
        }
        Command::CinderCsiPlugin(args) if cli.logging.log == "error" => args.klog.log_filter(),
        Command::KeystoneWebhook(args) if cli.logging.log == "error" => args.log_filter(),
        _ => &cli.logging.log,
    };
    log::set_up(log, cli.logging.log_json)?;
    install_tls()
}

/// Installs the TLS provider of the process.
pub(crate) fn install_tls() -> anyhow::Result<()> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another TLS provider is installed already"))
}

/// Sets [`Environment::proxies_of_clouds`] for requests to clouds and for files of the web.
pub(crate) fn install_proxies(environment: &Environment) {
    let proxies = environment.proxies_of_clouds();
    openstack::transport::install_proxies(move |target| {
        proxies.to(&target.parse().ok()?).map(ToString::to_string)
    });
}

/// Exit status of the program; an error is printed.
pub(crate) fn status(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        // The reader of our output has closed the pipe, which is not an error.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::fail(&message(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes, in words.
fn message(error: &anyhow::Error) -> String {
    operator::words::chain(&**error)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_printed_without_the_numbers_of_the_operating_system() {
        let missing = io::Error::from_raw_os_error(2);
        let error = anyhow::Error::new(missing).context("cannot read x");
        assert_eq!(message(&error), "cannot read x: No such file or directory");
    }
}
