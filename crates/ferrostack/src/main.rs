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

mod admin;
mod adopt;
mod apply_files;
mod audit;
mod background;
mod ccm;
mod chart_values;
mod cli;
mod cloud;
mod cloud_conf;
mod completion;
mod connect;
mod convert;
mod csi;
mod data_dir;
mod defaults;
mod delete;
mod deploy;
mod describe;
mod docs;
mod dumps;
mod endpoints;
mod env;
mod environment;
mod events;
#[cfg(test)]
mod fixtures;
mod footprint;
mod generate;
mod guests;
mod init;
mod keystone;
mod keystone_login;
mod kubeconfig;
mod list;
mod located;
mod log;
mod logs;
mod man;
mod manager;
mod managers;
mod moving;
mod output;
mod picture;
mod pki;
mod plan;
mod planning;
mod repositories;
mod rolling;
mod serve;
mod session;
mod shell;
mod simulated;
mod source;
mod uninstall;
mod up;
mod upgrade;
mod version;
mod waiting;
mod why;

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
    if let Some(shell) = environment::variable(completion::VARIABLE) {
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
    let words = completion::answer(shell, &Environment::of_process());
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
            return deploy::plan(&args, &environment, print, warn).await;
        }
        Command::Plan(args) => return plan::run(&args, &environment, print).await,
        Command::Audit(args) => {
            return audit::run(&args, &environment, print, output::answer_to).await;
        }
        Command::Up(args) => up::run(&args, &environment, stop_on_signal()?).await,
        Command::Manager(args) => manager::run(&args, &environment, stop_on_signal()?, say).await,
        Command::CloudControllerManager(args) => {
            ccm::run(&args, &environment, stop_on_signal()?, say).await
        }
        Command::CinderCsiPlugin(args) => {
            csi::run(&args, &environment, stop_on_signal()?, say).await
        }
        Command::Csi(Csi::Check(args)) => {
            return csi::check::run(&args, &environment, print).await;
        }
        Command::Csi(Csi::Orphans(args)) => {
            csi::orphans::run(&args, &environment, print, output::answer_to).await
        }
        Command::ClientKeystoneAuth(args) => {
            keystone_login::run(&args, &environment, print_document, warn).await
        }
        Command::KeystoneWebhook(args) => {
            keystone::run(&args, &environment, stop_on_signal()?, say).await
        }
        Command::KeystoneAuth(KeystoneAuth::Explain(args)) => {
            print(&keystone::explain::text(&args)?)
        }
        Command::KeystoneAuth(KeystoneAuth::Check(args)) => {
            let (text, usable) = keystone::check::run(&args);
            print(&text)?;
            anyhow::ensure!(usable, "something will not work");
            Ok(())
        }
        Command::CloudConf(CloudConf::Check { file, output }) => {
            let (text, usable) = cloud_conf::check(&file, output.output)?;
            print(&text)?;
            anyhow::ensure!(usable, "{} cannot be used", file.display());
            Ok(())
        }
        Command::CloudConf(CloudConf::Generate(args)) => {
            let generated = cloud_conf::generate(&args, &environment)?;
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
            managers::manager(&args, print_document, say)
        }
        Command::Generate(Generate::Chart(args)) => managers::chart(&args, say),
        Command::Generate(Generate::Monitoring(args)) => {
            print_document(&managers::monitoring(&args)?)
        }
        Command::Generate(Generate::CloudControllerManager(args)) => {
            manifest::check_namespace(&args.namespace)?;
            let text = ccm::manifests::render(&args, &environment, remark)?;
            print_document(text.expose_secret())
        }
        Command::Generate(Generate::CinderCsiPlugin(args)) => {
            manifest::check_namespace(&args.namespace)?;
            let text = csi::manifests::render(&args, &environment, remark)?;
            print_document(text.expose_secret())
        }
        Command::Generate(Generate::Kubeconfig(args)) => {
            let text = keystone_login::kubeconfig::render(&args, &environment)?;
            match &args.write_to {
                Some(file) => output::file::write_secret(&environment, file, &text),
                None => print_document(&text),
            }
        }
        Command::Generate(Generate::KeystoneAuth(args)) => {
            manifest::check_namespace(&args.namespace)?;
            print_document(keystone::manifests::render(&args)?.expose_secret())
        }
        Command::Generate(Generate::Yaml(args)) => {
            print_document(&generate::yaml(&args, &environment, remark).await?)
        }
        Command::Generate(Generate::Cluster(args)) => {
            generate::cluster(&args, &environment, print_document, remark).await
        }
        Command::Describe(Describe::Cluster(args)) => {
            describe::cluster(&args, &environment, stop_if(args.watch)?, print_painted).await
        }
        Command::Init(args) => init::run(&args, &environment, print, say).await,
        Command::Convert(args) => convert::run(&args, &environment, print_document, remark).await,
        Command::Why(args) => print(&why::run(&args, &environment).await?),
        Command::Get(Get::Kubeconfig(args)) if args.merge => {
            say(&kubeconfig::merge(&args, &environment).await?);
            Ok(())
        }
        Command::Get(Get::Kubeconfig(args)) => {
            let text = kubeconfig::of_workload(&args, &environment).await?.text;
            match &args.write_to {
                Some(file) => output::file::write_secret(&environment, file, &text),
                None => print_document(&text),
            }
        }
        Command::Get(Get::Clusters(args)) => {
            list::clusters(&args, &environment, stop_if(args.watch)?, print).await
        }
        Command::Apply(args) => return apply_files::run(&args, &environment, print, say).await,
        Command::Status(args) => return session::status(&args, &environment, print).await,
        Command::Down(args) => session::down(&args, &environment, say).await,
        Command::Completion(args) => print_document(&completion::script(args.shell)?),
        Command::Docs(args) => docs::run(&args, &environment, print),
        Command::Man(args) => print(&man::write(&args)?),
        Command::Version(args) => print(&version::text(&args, &environment).await?),
        Command::Delete(args) => match args.command {
            None => uninstall::run(&args.providers, &environment, say).await,
            Some(DeleteCommand::Cluster(args)) => {
                delete::cluster(&args, &environment, print, say).await
            }
        },
        Command::Adopt(args) => adopt::run(&args, &environment, print).await,
        Command::Upgrade(Upgrade::Plan(args)) => print(&upgrade::plan(&args, &environment).await?),
        Command::Upgrade(Upgrade::Apply(args)) => upgrade::apply(&args, &environment, say).await,
        Command::Config(ConfigCommand::Repositories(args)) => {
            print(&repositories::list(args.output))
        }
        Command::Generate(Generate::Provider(args)) => {
            repositories::generate(&args, print_document)
        }
        Command::Generate(Generate::Repository(args)) => repositories::write(&args, say),
        Command::OpenStack(OpenStack::Up(args)) => {
            deploy::up(&args, &environment, stop_on_signal()?, say, warn).await
        }
        Command::OpenStack(OpenStack::Upgrade(args)) => {
            deploy::upgrade(&args, &environment, stop_on_signal()?, say, warn).await
        }
        Command::OpenStack(OpenStack::Backup(args)) => {
            deploy::backup(&args, &environment, stop_on_signal()?, say).await
        }
        Command::OpenStack(OpenStack::Restore(args)) => {
            deploy::restore(&args, &environment, stop_on_signal()?, say).await
        }
        Command::OpenStack(OpenStack::Fault(args)) => {
            print(&deploy::fault(&args, &environment).await?)
        }
        Command::OpenStack(OpenStack::Sample) => print_document(deploy::SAMPLE),
        Command::OpenStack(OpenStack::Status(args)) => {
            print(&deploy::status(&args, &environment).await?)
        }
        Command::OpenStack(OpenStack::Apply(args)) => {
            deploy::apply(&args, &environment, say, warn).await
        }
        Command::OpenStack(OpenStack::Why(args)) => print(&deploy::why(&args, &environment).await?),
        Command::OpenStack(OpenStack::CloudsYaml(args)) => {
            let text = deploy::clouds_yaml(&args.cloud, &environment).await?;
            print_document(text.expose_secret())
        }
        Command::OpenStack(OpenStack::Delete(args)) => {
            deploy::delete(&args, &environment, stop_on_signal()?, say).await
        }
        Command::OpenStack(OpenStack::Config(args)) => {
            let printed = deploy::config(&args)?;
            for warning in &printed.warnings {
                warn(warning);
            }
            print_document(&printed.text)
        }
        Command::Env(args) => print_document(env::text(&args, &environment)?.expose_secret()),
        Command::Wait(args) => waiting::run(&args, &environment, say).await,
        Command::Events(args) => {
            events::run(&args, &environment, stop_if(args.watch)?, print).await
        }
        Command::Logs(args) => logs::run(&args, &environment, stop_if(args.follow)?, print).await,
        Command::Rollout(args) => rolling::run(&args, &environment, print, say).await,
        Command::Topology(Topology::Plan(args)) => {
            print(&planning::run(&args, &environment).await?)
        }
        Command::Move(args) => {
            moving::run(&args, &environment, stop_on_signal()?, print, remark).await
        }
        Command::Admin(Admin::Backup(args)) => admin::backup(&args, &environment, say, warn).await,
        Command::Admin(Admin::Restore(args)) => admin::restore(&args, &environment, say),
        Command::Simulate(args) => match &args.command {
            None => simulated::run(&args, stop_on_signal()?, say).await,
            Some(SimulateCommand::Guests(guests)) => {
                guests::run(guests, &environment, stop_on_signal()?, say).await
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
