//! `init`: makes a management cluster of an existing Kubernetes cluster.

pub(crate) mod choice;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use operator::client::Api;
use terminal::counted;

use crate::cli::{Init, InitCommand, Output};
use crate::connect;
use crate::environment::Environment;
use crate::generate::check_namespace;
use crate::manager::older::Older;
use crate::manager::subset::Subset;
use crate::manager::{installed, manifests};

/// How often the Deployment of the managers is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Installs kinds, permissions, webhooks and managers, or lists the images that they need.
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
        choice::of(providers, &BTreeMap::new(), manifests::NAMESPACE)?;
        return print(&images(image.as_deref(), output.output));
    }
    choice::check(&args.providers)?;
    Older::named(&args.older.serve_versions)?;
    ensure!(
        args.validate,
        "--validate=false: all manifests are validated before the first one is applied, so that a rejected one leaves nothing behind; \
         leave the flag out. A provider that the cluster has from another program is left out with `-`, such as --infrastructure -"
    );
    let namespaces = [
        Some(&args.target_namespace),
        args.openstack_namespace.as_ref(),
    ];
    for namespace in namespaces.into_iter().flatten() {
        check_namespace(namespace)?;
    }
    let client = connect::cluster(&args.server, environment).await?;
    let subset = install(&client, args, &say).await?;
    if args.wait_providers {
        wait(&client, args, &subset, &say).await?;
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

/// Applies the manifests; nothing is written when one of them is rejected.
async fn install(client: &Client, args: &Init, say: &impl Fn(&str)) -> anyhow::Result<Subset> {
    let namespace = &args.target_namespace;
    let clouds = args.openstack_namespace.as_deref();
    let there = installed::read(client).await?;
    let chosen = choice::of(&args.providers, &there, namespace)?;
    let older = Older::named(&args.older.serve_versions)?;
    let older = older.and_of(client, installed::is_ours).await?;
    let subset = Subset::new(chosen, clouds.is_some()).serving(older);
    let text = manifests::render(&subset, namespace, args.image.as_deref(), clouds)?;
    let documents = manifest::read("the manifests of the manager", &text)?;
    apply::all(client, &documents, namespace)
        .await
        .context("the manifests were rejected")?;
    let definitions = documents
        .iter()
        .filter(|it| it.text(&["kind"]) == "CustomResourceDefinition");
    let kinds = definitions.count();
    let providers = match subset.is_all() {
        true => String::new(),
        false => format!(" of {}", subset.names(", ")),
    };
    say(&format!(
        "installed{providers}: {} and {}, with namespace {namespace}",
        counted(kinds, "kind"),
        counted(documents.len() - kinds, "other object"),
    ));
    Ok(subset)
}

/// Waits until the managers are available.
async fn wait(
    client: &Client,
    args: &Init,
    subset: &Subset,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let (namespace, name) = (&args.target_namespace, subset.named(manifests::MANAGER));
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let started = Instant::now();
    loop {
        let found = api.get_opt(&name).await;
        let found = found.with_context(|| format!("cannot read Deployment {name}"))?;
        let state = found
            .as_ref()
            .map_or(Err("it is not there".to_owned()), available);
        let Err(why) = state else {
            say("the managers are available");
            return Ok(());
        };
        if started.elapsed() > args.wait_provider_timeout {
            bail!(
                "Deployment {namespace}/{name} is not available after {} s: {why}",
                args.wait_provider_timeout.as_secs()
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Availability of the Deployment, or the reason against it.
pub(crate) fn available(deployment: &Deployment) -> Result<(), String> {
    let status = deployment.status.as_ref();
    let conditions = status.and_then(|it| it.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    match conditions.find(|it| it.type_.as_deref() == Some("Available")) {
        Some(found) if found.status.as_deref() == Some("True") => Ok(()),
        Some(found) => Err(found.message.clone().unwrap_or_default()),
        None => Err("it has no status".to_owned()),
    }
}

/// The images of all containers, one in a line.
fn images(image: Option<&str>, output: Output) -> String {
    let image = image.unwrap_or(manifests::IMAGE);
    match output {
        Output::Text => format!("{image}\n"),
        Output::Json => terminal::json_document(&serde_json::json!([image])),
    }
}

#[cfg(test)]
mod tests;
