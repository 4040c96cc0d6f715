//! The multicall binary of the suite: flags, logging, wiring. Of all crates, only this one reads the environment,
//! installs the TLS provider, and prints.
//!
//! ```text
//!   ccm        the cloud controller manager
//!   csi        the Cinder CSI driver; what is wrong with a cluster's storage, and what it has left behind
//!   keystone   the Keystone webhook of API servers
//!   cloud_conf cloud.conf of the two
//!   keystone_login  tokens of Keystone for kubectl
//!   admin      backups of the data directory of `up`
//!   manager    the controllers against any Kubernetes cluster; init, what it needs there; upgrade, uninstall,
//!              repositories; storage, objects in versions that are not written any more
//!   up         management API, controllers and (simulated) cloud in one process
//!   status, down                                 an `up` in the background
//!   generate   templates to manifests            describe, why, get, apply, delete   the running API server
//!   convert    manifests between versions
//!   moving     clusters to another management cluster
//!   deploy     OpenStack on Kubernetes
//!   audit      what clusters have left behind in a cloud
//!   docs                                         the pages of docs/
//!   man, completion                              manual pages, and scripts for shells
//!   simulate   the simulated OpenStack alone, or guests alone on another cloud
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
#[cfg(test)]
mod fixtures;
mod footprint;
mod located;
mod log;
mod output;
mod picture;
mod pki;
mod serve;
mod shell;
mod simulated;
mod source;

// The allocator.
use heap as _;

use std::io;
use std::process::ExitCode;

use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use crate::cli::{
    Admin, Cli, CloudConf, Command, ConfigCommand, Csi, DeleteCommand, Describe, Generate, Get,
    KeystoneAuth, OpenStack, SimulateCommand, Topology, Upgrade,
};
use crate::environment::Environment;
use crate::output::{print, print_document, print_painted, remark, say, warn};

fn main() -> ExitCode {
    if let Some(shell) = environment::variable(commands::completion::VARIABLE) {
        return complete(&shell);
    }
    let cli = cli::parse(environment::arguments());
    let result = set_up(&cli).and_then(|()| {
        let environment = Environment::of_process();
        install_proxies(&environment);
        tokio::runtime::Runtime::new()?.block_on(run(cli, environment))
    });
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

/// Prints words for the shell that completes a line.
fn complete(shell: &str) -> ExitCode {
    // Without it, only the names of API servers would be missing.
    let _ = install_tls();
    let words = commands::completion::answer(shell, &Environment::of_process());
    let _ = print_document(&String::from_utf8_lossy(&words));
    ExitCode::SUCCESS
}

/// An error with its causes, in words.
fn message(error: &anyhow::Error) -> String {
    operator::words::chain(&**error)
}

/// Runs the command. Its exit status is 0, but for those that answer a question by it.
async fn run(mut cli: Cli, environment: Environment) -> anyhow::Result<ExitCode> {
    if let Some(connect) = cli.command.connection()
        && let Some(namespace) = connect::namespace(connect, &environment)
    {
        connect.namespace = namespace;
    }
    let result = match cli.command {
        Command::OpenStack(OpenStack::Plan(args)) => {
            return commands::openstack::plan(&args, &environment, print, warn).await;
        }
        Command::Plan(args) => return commands::plan::run(&args, &environment, print).await,
        Command::Audit(args) => {
            return commands::audit::run(&args, &environment, print, output::answer_to).await;
        }
        Command::Up(args) => commands::up::run(&args, &environment, stop_on_signal()?).await,
        Command::Manager(args) => {
            commands::manager::run(&args, &environment, stop_on_signal()?, say).await
        }
        Command::CloudControllerManager(args) => {
            commands::cloud_controller_manager::run(&args, &environment, stop_on_signal()?, say)
                .await
        }
        Command::CinderCsiPlugin(args) => {
            commands::csi::run(&args, &environment, stop_on_signal()?, say).await
        }
        Command::Csi(Csi::Check(args)) => {
            return commands::csi::check::run(&args, &environment, print).await;
        }
        Command::Csi(Csi::Orphans(args)) => {
            commands::csi::orphans::run(&args, &environment, print, output::answer_to).await
        }
        Command::ClientKeystoneAuth(args) => {
            commands::client_keystone_auth::run(&args, &environment, print_document, warn).await
        }
        Command::KeystoneWebhook(args) => {
            commands::keystone_auth::run(&args, &environment, stop_on_signal()?, say).await
        }
        Command::KeystoneAuth(KeystoneAuth::Explain(args)) => {
            print(&commands::keystone_auth::explain::text(&args)?)
        }
        Command::KeystoneAuth(KeystoneAuth::Check(args)) => {
            let (text, usable) = commands::keystone_auth::check::run(&args);
            print(&text)?;
            anyhow::ensure!(usable, "something will not work");
            Ok(())
        }
        Command::CloudConf(CloudConf::Check { file, output }) => {
            let (text, usable) = commands::cloud_conf::check(&file, output.output)?;
            print(&text)?;
            anyhow::ensure!(usable, "{} cannot be used", file.display());
            Ok(())
        }
        Command::CloudConf(CloudConf::Generate(args)) => {
            let generated = commands::cloud_conf::generate(&args, &environment)?;
            for note in &generated.notes {
                remark(&format!("note: {note}"));
            }
            let text = generated.text.expose_secret();
            match &args.write_to {
                Some(file) => output::file::write_secret(&environment, file, text),
                None => print_document(text),
            }
        }
        Command::Generate(Generate::Manager(args)) => {
            commands::generate::managers::manager(&args, print_document, say)
        }
        Command::Generate(Generate::Chart(args)) => commands::generate::managers::chart(&args, say),
        Command::Generate(Generate::Monitoring(args)) => {
            print_document(&commands::generate::managers::monitoring(&args)?)
        }
        Command::Generate(Generate::CloudControllerManager(args)) => {
            manifest::check_namespace(&args.namespace)?;
            let text =
                commands::cloud_controller_manager::manifests::render(&args, &environment, remark)?;
            print_document(text.expose_secret())
        }
        Command::Generate(Generate::CinderCsiPlugin(args)) => {
            manifest::check_namespace(&args.namespace)?;
            let text = commands::csi::manifests::render(&args, &environment, remark)?;
            print_document(text.expose_secret())
        }
        Command::Generate(Generate::Kubeconfig(args)) => {
            let text = commands::client_keystone_auth::kubeconfig::render(&args, &environment)?;
            match &args.write_to {
                Some(file) => output::file::write_secret(&environment, file, &text),
                None => print_document(&text),
            }
        }
        Command::Generate(Generate::KeystoneAuth(args)) => {
            manifest::check_namespace(&args.namespace)?;
            print_document(commands::keystone_auth::manifests::render(&args)?.expose_secret())
        }
        Command::Generate(Generate::Yaml(args)) => {
            print_document(&commands::generate::yaml(&args, &environment, remark).await?)
        }
        Command::Generate(Generate::Cluster(args)) => {
            commands::generate::cluster(&args, &environment, print_document, remark).await
        }
        Command::Describe(Describe::Cluster(args)) => {
            commands::describe::cluster(&args, &environment, stop_if(args.watch)?, print_painted)
                .await
        }
        Command::Init(args) => commands::init::run(&args, &environment, print, say).await,
        Command::Convert(args) => {
            commands::convert::run(&args, &environment, print_document, remark).await
        }
        Command::Why(args) => print(&commands::why::run(&args, &environment).await?),
        Command::Get(Get::Kubeconfig(args)) if args.merge => {
            say(&commands::get::kubeconfig::merge(&args, &environment).await?);
            Ok(())
        }
        Command::Get(Get::Kubeconfig(args)) => {
            let text = commands::get::kubeconfig::of_workload(&args, &environment)
                .await?
                .text;
            match &args.write_to {
                Some(file) => output::file::write_secret(&environment, file, &text),
                None => print_document(&text),
            }
        }
        Command::Get(Get::Clusters(args)) => {
            commands::get::clusters(&args, &environment, stop_if(args.watch)?, print).await
        }
        Command::Apply(args) => return commands::apply::run(&args, &environment, print, say).await,
        Command::Status(args) => return commands::status::status(&args, &environment, print).await,
        Command::Down(args) => commands::status::down(&args, &environment, say).await,
        Command::Completion(args) => print_document(&commands::completion::script(args.shell)?),
        Command::Docs(args) => commands::docs::run(&args, &environment, print),
        Command::Man(args) => print(&commands::man::write(&args)?),
        Command::Version(args) => print(&commands::version::text(&args, &environment).await?),
        Command::Delete(args) => match args.command {
            None => commands::delete::providers::run(&args.providers, &environment, say).await,
            Some(DeleteCommand::Cluster(args)) => {
                commands::delete::cluster(&args, &environment, print, say).await
            }
        },
        Command::Adopt(args) => commands::adopt::run(&args, &environment, print).await,
        Command::Upgrade(Upgrade::Plan(args)) => {
            print(&commands::upgrade::plan(&args, &environment).await?)
        }
        Command::Upgrade(Upgrade::Apply(args)) => {
            commands::upgrade::apply(&args, &environment, say).await
        }
        Command::Config(ConfigCommand::Repositories(args)) => {
            print(&commands::config::list(args.output))
        }
        Command::Generate(Generate::Provider(args)) => {
            commands::config::generate(&args, print_document)
        }
        Command::Generate(Generate::Repository(args)) => commands::config::write(&args, say),
        Command::OpenStack(OpenStack::Up(args)) => {
            commands::openstack::up(&args, &environment, stop_on_signal()?, say, warn).await
        }
        Command::OpenStack(OpenStack::Upgrade(args)) => {
            commands::openstack::upgrade(&args, &environment, stop_on_signal()?, say, warn).await
        }
        Command::OpenStack(OpenStack::Backup(args)) => {
            commands::openstack::backup(&args, &environment, stop_on_signal()?, say).await
        }
        Command::OpenStack(OpenStack::Restore(args)) => {
            commands::openstack::restore(&args, &environment, stop_on_signal()?, say).await
        }
        Command::OpenStack(OpenStack::Fault(args)) => {
            print(&commands::openstack::fault(&args, &environment).await?)
        }
        Command::OpenStack(OpenStack::Sample) => print_document(commands::openstack::SAMPLE),
        Command::OpenStack(OpenStack::Status(args)) => {
            print(&commands::openstack::status(&args, &environment).await?)
        }
        Command::OpenStack(OpenStack::Apply(args)) => {
            commands::openstack::apply(&args, &environment, say, warn).await
        }
        Command::OpenStack(OpenStack::Why(args)) => {
            print(&commands::openstack::why(&args, &environment).await?)
        }
        Command::OpenStack(OpenStack::CloudsYaml(args)) => {
            let text = commands::openstack::clouds_yaml(&args.cloud, &environment).await?;
            print_document(text.expose_secret())
        }
        Command::OpenStack(OpenStack::Delete(args)) => {
            commands::openstack::delete(&args, &environment, stop_on_signal()?, say).await
        }
        Command::OpenStack(OpenStack::Config(args)) => {
            let printed = commands::openstack::config(&args)?;
            for warning in &printed.warnings {
                warn(warning);
            }
            print_document(&printed.text)
        }
        Command::Env(args) => {
            print_document(commands::env::text(&args, &environment)?.expose_secret())
        }
        Command::Wait(args) => commands::wait::run(&args, &environment, say).await,
        Command::Events(args) => {
            commands::events::run(&args, &environment, stop_if(args.watch)?, print).await
        }
        Command::Logs(args) => {
            commands::logs::run(&args, &environment, stop_if(args.follow)?, print).await
        }
        Command::Rollout(args) => commands::rollout::run(&args, &environment, print, say).await,
        Command::Topology(Topology::Plan(args)) => {
            print(&commands::topology::run(&args, &environment).await?)
        }
        Command::Move(args) => {
            commands::r#move::run(&args, &environment, stop_on_signal()?, print, remark).await
        }
        Command::Admin(Admin::Backup(args)) => {
            commands::admin::backup(&args, &environment, say, warn).await
        }
        Command::Admin(Admin::Restore(args)) => commands::admin::restore(&args, &environment, say),
        Command::Simulate(args) => match &args.command {
            None => simulated::run(&args, stop_on_signal()?, say).await,
            Some(SimulateCommand::Guests(guests)) => {
                commands::simulate::guests::run(guests, &environment, stop_on_signal()?, say).await
            }
        },
    };
    result.map(|()| ExitCode::SUCCESS)
}

/// Sets up logging on standard error, and the TLS provider of the process.
fn set_up(cli: &Cli) -> anyhow::Result<()> {
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

fn install_tls() -> anyhow::Result<()> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another TLS provider is installed already"))
}

/// Requests to clouds and for files of the web go through these.
fn install_proxies(environment: &Environment) {
    let proxies = environment.proxies_of_clouds();
    openstack::transport::install_proxies(move |target| {
        proxies.to(&target.parse().ok()?).map(ToString::to_string)
    });
}

/// For commands that go on until interrupted: a token that is cancelled by Ctrl-C or SIGTERM; a second Ctrl-C terminates the
/// process at once.
fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let token = CancellationToken::new();
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    let stopping = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stopping.cancel();
        interrupt.recv().await;
        std::process::exit(130);
    });
    Ok(token)
}

/// As [`stop_on_signal`] for what goes on until interrupted; otherwise Ctrl-C ends the process as usual.
fn stop_if(watches: bool) -> anyhow::Result<CancellationToken> {
    match watches {
        true => stop_on_signal(),
        false => Ok(CancellationToken::new()),
    }
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
