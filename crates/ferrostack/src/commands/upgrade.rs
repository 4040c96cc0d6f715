//! `upgrade`: from the installed version to this program's version.

use anyhow::{Context, bail};
use installer::older::Older;
use installer::{installed, upgrade};

use crate::cli::{Output, Upgrade, UpgradeApply, UpgradePlan};
use crate::connect;
use crate::environment::Environment;
use crate::output::{print, say};

/// Runs the command.
pub(super) async fn execute(args: &Upgrade, environment: &Environment) -> anyhow::Result<()> {
    match args {
        Upgrade::Plan(args) => print(&plan(args, environment).await?),
        Upgrade::Apply(args) => apply(args, environment, say).await,
    }
}

/// Plan of an upgrade.
pub(crate) async fn plan(args: &UpgradePlan, environment: &Environment) -> anyhow::Result<String> {
    let client = connect::cluster(&args.server, environment).await?;
    let plan = upgrade::read(&client).await?;
    Ok(match args.output.output {
        Output::Json => terminal::json(&plan.json())?,
        Output::Text => plan.text(&environment.program),
    })
}

/// Applies the manifests of this version for each manager; nothing is written when a manifest is rejected. Then objects
/// stored in versions no longer written are rewritten.
pub(crate) async fn apply(
    args: &UpgradeApply,
    environment: &Environment,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    if let Some((flag, name)) = args.providers.first() {
        bail!(
            "{flag} {name}: the providers of ferrostack are one program, and `upgrade apply` upgrades all that it has installed to its own \
             version, {}. Leave the flag out; providers of other programs are upgraded by these",
            installed::THIS
        );
    }
    let client = connect::cluster(&args.server, environment).await?;
    let older = Older::named(&args.older.serve_versions)?;
    upgrade::upgrade(&client, args.image.as_deref(), older, &say).await?;
    if args.wait_providers {
        let managers = upgrade::read(&client).await?.managers;
        let available = upgrade::managers_available(&client, &managers, args.wait_provider_timeout);
        available.await.context("everything is applied")?;
        say("the managers are available");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command, Upgrade};

    #[tokio::test]
    async fn versions_of_single_providers_are_rejected_with_the_reason() {
        let words = ["ferrostack", "upgrade", "apply"];
        let parsed = |more: &[&str]| {
            let all = words.iter().chain(more);
            match Cli::try_parse_from(all).unwrap().command {
                Command::Upgrade(Upgrade::Apply(args)) => *args,
                _ => panic!("another command"),
            }
        };
        for flag in [
            "--core",
            "--infrastructure",
            "--bootstrap",
            "--control-plane",
            "--ipam",
            "--runtime-extension",
            "--addon",
        ] {
            let args = parsed(&[flag, "capo-system/openstack:v0.15.0"]);
            let error = apply(&args, &Environment::default(), |_: &str| {}).await;
            let error = error.unwrap_err().to_string();
            let start =
                format!("{flag} capo-system/openstack:v0.15.0: the providers of ferrostack");
            assert!(error.starts_with(&start), "{error}");
        }
        let args = parsed(&[
            "--image",
            "example.org/ferrostack:1",
            "--wait-providers",
            "--wait-provider-timeout=90",
        ]);
        assert!(args.wait_providers);
        assert_eq!(args.wait_provider_timeout.as_secs(), 90);
    }
}
