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
use provider::cluster::observed::{Observed, References};
use provider::identity::{CLUSTER_ID, Identity};
use serde_json::{Map, Value, json};
use status::snapshot::{Kind, Snapshot};
use terminal::{Layout, counted};

use crate::commands::audit::{self, thing::Form};
use crate::output;

/// The objects that go, and what of the cloud goes and stays.
pub(super) struct Preview {
    /// Number of objects of each kind.
    objects: Vec<(Kind, usize)>,
    /// Why some resources of the cloud are not known.
    unknown: Option<&'static str>,
    /// Resources of the cloud; `None` if the cluster is on none.
    rows: Option<Rows>,
}

/// A cluster of which nothing in the cloud has its uid.
const NEVER_ANSWERED: &str = "its API server never answered: what its Services and claims have in the cloud is not known, and stays";

impl Preview {
    pub(super) async fn new(
        client: &Client,
        snapshot: &Snapshot,
        name: &str,
        namespace: &str,
        wanted: Option<Wanted>,
    ) -> anyhow::Result<Self> {
        let clusters: Api<Cluster> = Api::namespaced(client.clone(), namespace);
        let cluster = clusters.get(name).await?;
        let left = super::left_over(snapshot, name);
        let objects = Kind::ALL.iter().map(|kind| {
            let count = left.iter().filter(|item| item.kind == *kind).count();
            (*kind, count)
        });
        let mut preview = Self {
            objects: objects.filter(|(_, count)| *count > 0).collect(),
            unknown: None,
            rows: None,
        };
        let reference = cluster.spec.infrastructure_ref.as_ref();
        let Some(infra) = reference.filter(|it| it.kind == "OpenStackCluster") else {
            return Ok(preview);
        };
        let infras: Api<OpenStackCluster> = Api::namespaced(client.clone(), namespace);
        let Some(infra) = infras.get_opt(&infra.name).await? else {
            return Ok(preview);
        };
        let config = provider::cloud_config(client, namespace, &infra.spec.identity_ref).await;
        let inventory = audit::connected(config?).await?;
        let view = audit::thing::view(&inventory).await;
        let view = view.context("cannot read the cloud")?;
        let wanted = wanted.map_or_else(|| Wanted::from_cluster(&cluster), Ok);
        let wanted = wanted.map_err(anyhow::Error::msg)?;
        let mut rows = Rows::default();
        if let Some(id) = Identity::for_object(&infra, CLUSTER_ID) {
            of_provider(
                &Observed::new(Arc::clone(&view), id, &References::default()),
                &mut rows,
            );
        }
        match leftovers::uid(&cluster) {
            Some(uid) => of_programs(&Leftovers::for_uid(&view, uid), wanted, &mut rows),
            None => preview.unknown = Some(NEVER_ANSWERED),
        }
        preview.rows = Some(rows);
        Ok(preview)
    }

    pub(super) fn text(&self, layout: Layout) -> String {
        let objects = self.objects.iter();
        let objects = objects.map(|(kind, count)| counted(*count, kind.as_str()));
        let mut text = format!("would delete {}\n", objects.collect::<Vec<_>>().join(", "));
        if let Some(unknown) = self.unknown {
            text.push_str(&format!("{unknown}\n"));
        }
        if let Some(rows) = &self.rows {
            // A narrow terminal does without ids.
            text.push_str(&output::table(&rows.0, layout, &[2]));
        }
        text
    }

    /// The same for programs.
    pub(super) fn document(&self) -> Value {
        let objects = self.objects.iter();
        let objects: Map<String, Value> = objects
            .map(|(kind, count)| (kind.as_str().to_owned(), json!(count)))
            .collect();
        let rows = self.rows.iter().flat_map(|rows| &rows.0[1..]);
        let resources: Vec<Value> = rows
            .map(|[kind, name, id, then]| json!({"kind": kind, "name": name, "id": id, "then": then}))
            .collect();
        json!({"objects": objects, "resources": resources, "unknown": self.unknown})
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_says_the_same_to_people_and_programs() {
        let mut rows = Rows::default();
        let row = ["server", "demo-a", "id-1", "deleted"].map(str::to_owned);
        rows.0.push(row);
        let preview = Preview {
            objects: vec![(Kind::Cluster, 1), (Kind::Machine, 2)],
            unknown: None,
            rows: Some(rows),
        };
        let text = "would delete 1 Cluster, 2 Machines\nKIND    NAME    ID    THEN\nserver  demo-a  id-1  deleted\n";
        assert_eq!(preview.text(Layout::Full), text);
        // Here neither the ids nor what becomes of the resources have room.
        let narrow =
            "would delete 1 Cluster, 2 Machines\nKIND    NAME\nserver  demo-a\n    deleted\n";
        assert_eq!(preview.text(Layout::Terminal(15)), narrow);
        let resource = json!({"kind": "server", "name": "demo-a", "id": "id-1", "then": "deleted"});
        let objects = json!({"Cluster": 1, "Machine": 2});
        assert_eq!(
            preview.document(),
            json!({"objects": objects, "resources": [resource], "unknown": null})
        );
    }
}
