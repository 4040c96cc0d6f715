//! `delete cluster --dry-run`: objects and resources to delete, by the functions of the finalizer.

use std::sync::Arc;

use anyhow::Context as _;
use api::core::v1beta2::Cluster;
use api::deletion::{Volumes, Wanted};
use api::infra::v1beta2::OpenStackCluster;
use kube::Client;
use openstack::inventory::Resource;
use operator::client::Api;
use provider::cluster::leftovers::{self, Leftovers};
use provider::cluster::observed::{Known, Observed};
use provider::identity::{CLUSTER_ID, Identity};
use status::snapshot::{Kind, Snapshot};
use terminal::counted;

use crate::commands::audit::{self, thing::Form};

/// Objects and resources of the cloud to delete, and resources that stay.
pub(super) async fn text(
    client: &Client,
    snapshot: &Snapshot,
    name: &str,
    namespace: &str,
    wanted: Option<Wanted>,
) -> anyhow::Result<String> {
    let clusters: Api<Cluster> = Api::namespaced(client.clone(), namespace);
    let cluster = clusters.get(name).await?;
    let left = super::left_over(snapshot, name);
    let objects = Kind::ALL.iter().filter_map(|kind| {
        let count = left.iter().filter(|item| item.kind == *kind).count();
        (count > 0).then(|| counted(count, kind.as_str()))
    });
    let objects: Vec<String> = objects.collect();
    let mut text = format!("would delete {}\n", objects.join(", "));
    let reference = cluster.spec.infrastructure_ref.as_ref();
    let Some(infra) = reference.filter(|it| it.kind == "OpenStackCluster") else {
        return Ok(text);
    };
    let infras: Api<OpenStackCluster> = Api::namespaced(client.clone(), namespace);
    let Some(infra) = infras.get_opt(&infra.name).await? else {
        return Ok(text);
    };
    let config = provider::cloud_config(client, namespace, &infra.spec.identity_ref).await;
    let inventory = audit::connected(config?).await?;
    let view = audit::thing::view(&inventory).await;
    let view = view.context("cannot read the cloud")?;
    let wanted = wanted.map_or_else(|| Wanted::of(&cluster), Ok);
    let wanted = wanted.map_err(anyhow::Error::msg)?;
    let mut rows = Rows::default();
    if let Some(id) = Identity::of(&infra, CLUSTER_ID) {
        of_provider(
            &Observed::of(Arc::clone(&view), id, &Known::default()),
            &mut rows,
        );
    }
    match leftovers::uid(&cluster) {
        Some(uid) => of_programs(&Leftovers::of(&view, uid), wanted, &mut rows),
        None => text.push_str(
            "its API server never answered: what its Services and claims have in the cloud is not known, and stays\n",
        ),
    }
    text.push_str(&terminal::align(&rows.0));
    Ok(text)
}

struct Rows(Vec<[String; 4]>);

impl Default for Rows {
    fn default() -> Self {
        Self(vec![["KIND", "NAME", "ID", "THEN"].map(str::to_owned)])
    }
}

impl Rows {
    fn add<'a, T: Resource + 'a>(
        &mut self,
        form: Form,
        items: impl IntoIterator<Item = &'a Arc<T>>,
        name: impl Fn(&T) -> &str,
        then: &str,
    ) {
        let rows = items.into_iter().map(|item| {
            terminal::cells([form.name(), name(item), item.id(), then].map(str::to_owned))
        });
        self.0.extend(rows);
    }
}

fn of_provider(observed: &Observed, rows: &mut Rows) {
    let then = "deleted";
    rows.add(Form::Server, &observed.servers, |it| &it.name, then);
    rows.add(Form::LoadBalancer, &observed.balancers, |it| &it.name, then);
    let ips = observed.floating_ips.iter().chain(&observed.bastion_ips);
    rows.add(Form::FloatingIp, ips, |it| &it.floating_ip_address, then);
    rows.add(Form::Volume, &observed.volumes, |it| &it.name, then);
    rows.add(Form::Port, &observed.ports, |it| &it.name, then);
    rows.add(Form::SecurityGroup, &observed.groups, |it| &it.name, then);
    rows.add(Form::Router, &observed.routers, |it| &it.name, then);
    rows.add(Form::Subnet, &observed.subnets, |it| &it.name, then);
    rows.add(Form::Network, &observed.networks, |it| &it.name, then);
}

fn of_programs(left: &Leftovers, wanted: Wanted, rows: &mut Rows) {
    let then = match wanted.services {
        true => "deleted, of a Service",
        false => "stays, of a Service: --with services deletes it",
    };
    rows.add(Form::LoadBalancer, &left.balancers, |it| &it.name, then);
    rows.add(
        Form::FloatingIp,
        &left.floating_ips,
        |it| &it.floating_ip_address,
        then,
    );
    rows.add(Form::SecurityGroup, &left.groups, |it| &it.name, then);
    let then = match wanted.volumes {
        Volumes::Delete => "deleted, of a claim",
        Volumes::Policy => "of a claim: as the reclaim policy says",
        Volumes::Keep => "stays, of a claim: --with volumes deletes it, or --with volumes=delete",
    };
    rows.add(Form::Volume, &left.volumes, |it| &it.name, then);
}
