//! `init`: makes a management cluster of an existing Kubernetes cluster.

use std::collections::BTreeMap;

use anyhow::ensure;
use installer::install::{self, Options};
use installer::older::Older;
use installer::{choice, names};

use crate::cli::{Init, InitCommand, Output};
use crate::connect;
use crate::environment::Environment;
use crate::output::{print, say};

/// Runs the command.
pub(super) async fn execute(args: &Init, environment: &Environment) -> anyhow::Result<()> {
    run(args, environment, print, say).await
}

/// Installs CRDs, permissions, webhooks and managers, or lists their images.
pub(crate) async fn run(
    args: &Init,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    if let Some(InitCommand::ListImages {
        image,
        providers,
        output,
    }) = &args.command
    {
        // As on an empty cluster; one image has all providers.
        choice::of(&providers.named(), &BTreeMap::new(), names::NAMESPACE)?;
        return print(&images(image.as_deref(), output.output));
    }
    let providers = args.providers.named();
    choice::check(&providers)?;
    let older = Older::named(&args.older.serve_versions)?;
    ensure!(
        args.validate,
        "--validate=false: all manifests are validated before the first one is applied, so that a rejected one leaves nothing behind; \
         leave the flag out. A provider that the cluster has from another program is left out with `-`, such as --infrastructure -"
    );
    let options = Options {
        providers,
        older,
        namespace: args.target_namespace.clone(),
        image: args.image.clone(),
        clouds: args.openstack_namespace.clone(),
    };
    options.check()?;
    let client = connect::cluster(&args.server, environment).await?;
    let subset = install::install(&client, &options, &say).await?;
    if args.wait_providers {
        let limit = args.wait_provider_timeout;
        install::wait(&client, &options.namespace, &subset, limit, &say).await?;
    }
    let program = &environment.program;
    if args.image.is_none() {
        let flag = match subset.is_all() {
            true => String::new(),
            false => format!(" --providers {}", subset.names(",")),
        };
        say(&format!(
            "no manager runs yet: `{program} manager{flag} --leader-elect` is one, and the same `init` with --image IMAGE has two run in the cluster"
        ));
    }
    say(&format!(
        "the cluster can manage clusters; the manifests of one are printed by: {program} generate cluster NAME --cloud CLOUD"
    ));
    Ok(())
}

/// The images of all containers, one in a line.
fn images(image: Option<&str>, output: Output) -> String {
    let image = image.unwrap_or(names::IMAGE);
    match output {
        Output::Text => format!("{image}\n"),
        Output::Json => terminal::json_document(&serde_json::json!([image])),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use parking_lot::Mutex;

    use super::*;
    use crate::cli::{Cli, Command};

    fn args(words: &[&str]) -> Init {
        let words = [&["ferrostack", "init"], words].concat();
        match Cli::try_parse_from(words).unwrap().command {
            Command::Init(args) => *args,
            _ => panic!("another command"),
        }
    }

    #[test]
    fn the_images_are_listed_for_people_and_for_programs() {
        assert_eq!(images(Some("a:1"), Output::Text), "a:1\n");
        let listed: Vec<String> = serde_json::from_str(&images(None, Output::Json)).unwrap();
        assert_eq!(listed, ["ferrostack:latest"]);
    }

    #[tokio::test]
    async fn manifests_are_validated_and_a_flag_against_it_is_rejected() {
        assert!(args(&["--validate"]).validate && args(&["--validate=true"]).validate);
        let without = args(&["--validate=false"]);
        let error = run(
            &without,
            &Environment::default(),
            |_: &str| Ok(()),
            |_: &str| {},
        )
        .await
        .unwrap_err()
        .to_string();
        assert!(error.starts_with("--validate=false: "), "{error}");
    }

    #[tokio::test]
    async fn images_are_listed_for_providers_that_exist() {
        let list = async |words: &[&str]| {
            let words = [&["list-images"], words].concat();
            let printed = Mutex::new(String::new());
            let print = |text: &str| {
                printed.lock().push_str(text);
                Ok(())
            };
            let listed = run(&args(&words), &Environment::default(), print, |_: &str| {}).await;
            listed
                .map(|()| printed.into_inner())
                .map_err(|error| error.to_string())
        };
        let image = format!("{}\n", names::IMAGE);
        assert_eq!(list(&[]).await.unwrap(), image);
        assert_eq!(list(&["-i", "openstack"]).await.unwrap(), image);
        let error = list(&["-i", "aws"]).await.unwrap_err();
        assert!(error.starts_with("--infrastructure aws: "), "{error}");
    }
}
