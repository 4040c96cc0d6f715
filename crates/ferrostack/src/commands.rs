//! Commands: a file for each, under its name. In each file `execute` is the command with the output of the process; the
//! functions below have their output as parameters.

mod admin;
mod adopt;
mod apply;
mod audit;
mod cinder_csi_plugin;
mod client_keystone_auth;
mod cloud_conf;
mod cloud_controller_manager;
pub(crate) mod completion;
mod config;
mod convert;
mod csi;
mod delete;
mod describe;
pub(crate) mod docs;
mod down;
mod env;
mod events;
mod generate;
pub(crate) mod get;
mod init;
mod k8s_keystone_auth;
mod keystone_auth;
mod logs;
mod man;
mod manager;
mod r#move;
mod openstack;
mod plan;
mod rollout;
mod simulate;
mod status;
mod topology;
mod up;
mod upgrade;
mod version;
mod wait;
mod why;

use std::process::ExitCode;

use crate::cli::Command;
use crate::connect;
use crate::environment::Environment;

/// Runs the [`Command`]. The exit status is 0, except for commands with an answer in the status.
pub(crate) async fn execute(
    mut command: Command,
    environment: &Environment,
) -> anyhow::Result<ExitCode> {
    if let Some(connect) = command.connection()
        && let Some(namespace) = connect::namespace(connect, environment)
    {
        connect.namespace = namespace;
    }
    match command {
        Command::Apply(args) => return apply::execute(&args, environment).await,
        Command::Audit(args) => return audit::execute(&args, environment).await,
        Command::Csi(args) => return csi::execute(&args, environment).await,
        Command::OpenStack(args) => return openstack::execute(&args, environment).await,
        Command::Plan(args) => return plan::execute(&args, environment).await,
        Command::Status(args) => return status::execute(&args, environment).await,
        Command::Admin(args) => admin::execute(&args, environment).await,
        Command::Adopt(args) => adopt::execute(&args, environment).await,
        Command::CinderCsiPlugin(args) => cinder_csi_plugin::execute(&args, environment).await,
        Command::ClientKeystoneAuth(args) => {
            client_keystone_auth::execute(&args, environment).await
        }
        Command::CloudConf(args) => cloud_conf::execute(&args, environment),
        Command::CloudControllerManager(args) => {
            cloud_controller_manager::execute(&args, environment).await
        }
        Command::Completion(args) => completion::execute(&args),
        Command::Config(args) => config::execute(&args),
        Command::Convert(args) => convert::execute(&args, environment).await,
        Command::Delete(args) => delete::execute(&args, environment).await,
        Command::Describe(args) => describe::execute(&args, environment).await,
        Command::Docs(args) => docs::execute(&args, environment),
        Command::Down(args) => down::execute(&args, environment).await,
        Command::Env(args) => env::execute(&args, environment),
        Command::Events(args) => events::execute(&args, environment).await,
        Command::Generate(args) => generate::execute(&args, environment).await,
        Command::Get(args) => get::execute(&args, environment).await,
        Command::Init(args) => init::execute(&args, environment).await,
        Command::KeystoneAuth(args) => keystone_auth::execute(&args),
        Command::KeystoneWebhook(args) => k8s_keystone_auth::execute(&args, environment).await,
        Command::Logs(args) => logs::execute(&args, environment).await,
        Command::Man(args) => man::execute(&args),
        Command::Manager(args) => manager::execute(&args, environment).await,
        Command::Move(args) => r#move::execute(&args, environment).await,
        Command::Rollout(args) => rollout::execute(&args, environment).await,
        Command::Simulate(args) => simulate::execute(&args, environment).await,
        Command::Topology(args) => topology::execute(&args, environment).await,
        Command::Up(args) => up::execute(&args, environment).await,
        Command::Upgrade(args) => upgrade::execute(&args, environment).await,
        Command::Version(args) => version::execute(&args, environment).await,
        Command::Wait(args) => wait::execute(&args, environment).await,
        Command::Why(args) => why::execute(&args, environment).await,
    }?;
    Ok(ExitCode::SUCCESS)
}
