//! `adopt cluster`: resources of a cluster of cluster-api-provider-openstack to be taken over, with the evidence; and
//! the annotation that starts the adoption in the provider.
//!
//! The search is shared with the provider, and the writes are the provider's alone: the command shows, asks and waits.

mod report;

#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Context as _, bail};
use api::core::v1beta2::Cluster;
use api::infra::v1alpha1::OpenStackServer;
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::names::{ADOPT_ANNOTATION, CLUSTER_NAME_LABEL, PAUSED_ANNOTATION};
use kube::api::{ListParams, Patch};
use kube::{Client, ResourceExt};
use openstack::CloudConfig;
use openstack::inventory::Inventory;
use operator::client::Api;
use provider::cluster::adoption::{self, Adoption, Objects};
use serde_json::json;
use status::clusters;
use tokio::time::Instant;

use crate::cli::{Adopt, AdoptCluster};
use crate::commands::audit;
use crate::connect;
use crate::environment::Environment;
use crate::output::print;

/// Runs the command.
pub(super) async fn execute(args: &Adopt, environment: &Environment) -> anyhow::Result<()> {
    run(args, environment, print).await
}

/// Pause between two reads of the [`OpenStackCluster`].
const PAUSE: Duration = Duration::from_secs(1);

/// Prints the resources, and starts the [`Adoption`] unless unwanted.
///
/// # Errors
/// If a resource cannot be read, the evidence is not clear, or the provider does not finish in time. Known facts are
/// printed before.
pub(crate) async fn run(
    args: &Adopt,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Adopt::Cluster(args) = args;
    let client = connect::client(&args.connect.server, environment).await?;
    adopted(args, &client, audit::connected, print).await
}

async fn adopted(
    args: &AdoptCluster,
    client: &Client,
    open: impl AsyncFn(CloudConfig) -> anyhow::Result<Inventory>,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let place = Target {
        client,
        namespace: &args.connect.namespace,
        name: &args.name,
    };
    let (cluster, infra) = place.objects().await?;
    let found = match adoption::is_done(&infra) {
        true => Adoption::default(),
        false => place.found(&infra, &open).await?,
    };
    print(&report::text(
        args.output.output,
        place.name,
        &found,
        adoption::is_done(&infra),
    )?)?;
    match found.conflicts.len() {
        _ if adoption::is_done(&infra) => return Ok(()),
        0 if args.dry_run => return Ok(()),
        0 => {}
        number => bail!(
            "nothing is taken over: {number} of the resources are not clear, the list says why"
        ),
    }
    let paused =
        cluster.spec.paused == Some(true) || infra.annotations().contains_key(PAUSED_ANNOTATION);
    if paused {
        bail!(
            "Cluster/{} is paused: end the pause, and try again",
            args.name
        );
    }
    place.ask(&infra).await?;
    place.wait(&infra, args.timeout).await
}

/// Place of the cluster.
struct Target<'a> {
    client: &'a Client,
    namespace: &'a str,
    name: &'a str,
}

impl Target<'_> {
    fn infra(&self) -> Api<OpenStackCluster> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    async fn objects(&self) -> anyhow::Result<(Cluster, OpenStackCluster)> {
        let clusters = Api::<Cluster>::namespaced(self.client.clone(), self.namespace);
        let Some(cluster) = clusters.get_opt(self.name).await? else {
            bail!(clusters::missing(self.client, self.name, self.namespace).await?);
        };
        let reference = cluster.spec.infrastructure_ref.as_ref();
        let reference = reference.filter(|it| it.kind == "OpenStackCluster");
        let reference = reference.with_context(|| {
            format!(
                "Cluster/{} is not of OpenStack: its infrastructureRef names no OpenStackCluster",
                self.name
            )
        })?;
        let infra = self.infra().get_opt(&reference.name).await?;
        let infra =
            infra.with_context(|| format!("there is no OpenStackCluster/{}", reference.name))?;
        Ok((cluster, infra))
    }

    async fn found(
        &self,
        infra: &OpenStackCluster,
        open: &impl AsyncFn(CloudConfig) -> anyhow::Result<Inventory>,
    ) -> anyhow::Result<Adoption> {
        let label = format!("{CLUSTER_NAME_LABEL}={}", self.name);
        let labelled = ListParams::default().labels(&label);
        let machines = Api::<OpenStackMachine>::namespaced(self.client.clone(), self.namespace);
        let machines = machines.list(&labelled).await?.items;
        let servers = Api::<OpenStackServer>::namespaced(self.client.clone(), self.namespace);
        let servers = servers.list(&labelled).await?.items;
        let identity = &infra.spec.identity_ref;
        let config = provider::cloud_config(self.client, self.namespace, identity).await?;
        let inventory = open(config).await?;
        let view = adoption::view(&inventory)
            .await
            .context("cannot read the cloud")?;
        let objects = Objects {
            cluster: self.name,
            infra,
            machines: &machines,
            servers: &servers,
        };
        Ok(adoption::find(&objects, &view))
    }

    /// Sets the annotation.
    async fn ask(&self, infra: &OpenStackCluster) -> anyhow::Result<()> {
        let patch = json!({"metadata": {"annotations": {ADOPT_ANNOTATION: "true"}}});
        let (api, name) = (self.infra(), infra.name_any());
        let asked = api
            .patch(&name, &Default::default(), &Patch::Merge(&patch))
            .await;
        asked.context("cannot set the annotation")?;
        Ok(())
    }

    /// Waits until the provider has stored the identity of the [`OpenStackCluster`].
    async fn wait(&self, infra: &OpenStackCluster, timeout: Duration) -> anyhow::Result<()> {
        let (name, end) = (infra.name_any(), Instant::now() + timeout);
        loop {
            let now = self.infra().get(&name).await?;
            if adoption::is_done(&now) {
                return Ok(());
            }
            let conditions = now.status.iter().flat_map(|status| &status.conditions);
            let mut unmet = conditions.filter(|it| it.type_ == "Ready" && it.status != "True");
            let ready = unmet.next();
            if let Some(refused) = ready.filter(|it| it.reason == "AdoptionRefused") {
                bail!("{}", refused.message);
            }
            if Instant::now() >= end {
                let why = ready.map_or("no provider answers", |it| it.message.as_str());
                bail!(
                    "OpenStackCluster/{name} is not taken over after {}: {why}. The annotation {ADOPT_ANNOTATION} stays, and a \
                     provider that runs does it",
                    humanize(timeout)
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn humanize(timeout: Duration) -> String {
    format!("{} s", timeout.as_secs())
}
