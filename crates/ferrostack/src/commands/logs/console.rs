//! The console of the server of a Machine, an OpenStackMachine or an OpenStackServer.

use anyhow::{Context as _, bail};
use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1alpha1::OpenStackServer;
use api::infra::v1beta2::{IdentityRef, OpenStackCluster, OpenStackMachine};
use api::names::CLUSTER_NAME_LABEL;
use kube::ResourceExt as _;
use openstack::session::{Session, SessionOptions};
use operator::client::Api;
use status::asked::{self, Asked};

use crate::cli::Logs;
use crate::connect;
use crate::environment::Environment;

/// Server, and the credentials for its console.
struct Server {
    id: String,
    identity: IdentityRef,
}

/// Last lines of the console, as many as requested.
pub(super) async fn text(args: &Logs, environment: &Environment) -> anyhow::Result<String> {
    let asked = asked::parse(&args.object)?;
    let client = connect::client(&args.connect.server, environment).await?;
    let reader = Reader {
        client,
        namespace: &args.connect.namespace,
    };
    let server = reader.server(&asked).await?;
    let namespace = reader.namespace;
    let config = provider::cloud_config(&reader.client, namespace, &server.identity).await?;
    let name = config.name.clone();
    let session = Session::connect(config, &SessionOptions::default()).await;
    let session = session.with_context(|| format!("cloud {name}"))?;
    let lines = args.tail.map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    let mut console = match lines {
        // Nova takes 0 for all lines.
        Some(0) => String::new(),
        lines => {
            let output = session.compute().console_output(&server.id, lines).await;
            output.with_context(|| format!("cannot read the console of server {}", server.id))?
        }
    };
    if !console.is_empty() && !console.ends_with('\n') {
        console.push('\n');
    }
    Ok(console)
}

/// The objects of a namespace.
struct Reader<'a> {
    client: kube::Client,
    namespace: &'a str,
}

impl Reader<'_> {
    async fn server(&self, asked: &Asked) -> anyhow::Result<Server> {
        let Asked::Object { name, .. } = asked else {
            bail!("name a machine, as in machine/NAME: a Node has the console of its Machine");
        };
        if asked.means("Machine", name) {
            let machine: Machine = self.get("Machine", name).await?;
            let reference = &machine.spec.infrastructure_ref;
            if reference.kind != "OpenStackMachine" {
                bail!(
                    "Machine/{name} is not of OpenStack: its infrastructureRef names {}/{}",
                    reference.kind,
                    reference.name
                );
            }
            self.of_machine(&reference.name).await
        } else if asked.means("OpenStackMachine", name) {
            self.of_machine(name).await
        } else if asked.means("OpenStackServer", name) {
            let server: OpenStackServer = self.get("OpenStackServer", name).await?;
            let status = server.status.unwrap_or_default();
            Ok(Server {
                id: id("OpenStackServer", name, status.instance_id)?,
                identity: server.spec.identity_ref,
            })
        } else {
            bail!(
                "{} has no console: a Machine, an OpenStackMachine and an OpenStackServer have one, as in machine/NAME",
                asked.label()
            );
        }
    }

    async fn of_machine(&self, name: &str) -> anyhow::Result<Server> {
        let machine: OpenStackMachine = self.get("OpenStackMachine", name).await?;
        let status = machine.status.clone().unwrap_or_default();
        let identity = match machine.spec.identity_ref.clone() {
            Some(identity) => identity,
            None => self.of_cluster(&machine).await?,
        };
        Ok(Server {
            id: id("OpenStackMachine", name, status.instance_id)?,
            identity,
        })
    }

    /// The credentials of the cluster of a machine.
    async fn of_cluster(&self, machine: &OpenStackMachine) -> anyhow::Result<IdentityRef> {
        let name = machine.name_any();
        let cluster = machine.labels().get(CLUSTER_NAME_LABEL);
        let cluster = cluster.with_context(|| {
            format!("OpenStackMachine/{name} belongs to no cluster, and has no identityRef")
        })?;
        let object: Cluster = self.get("Cluster", cluster).await?;
        let infra = object.spec.infrastructure_ref;
        let infra = infra.filter(|it| it.kind == "OpenStackCluster");
        let infra = infra.with_context(|| {
            format!("Cluster/{cluster} is not of OpenStack: its infrastructureRef names no OpenStackCluster")
        })?;
        let infra: OpenStackCluster = self.get("OpenStackCluster", &infra.name).await?;
        Ok(infra.spec.identity_ref)
    }

    async fn get<K>(&self, kind: &str, name: &str) -> anyhow::Result<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let namespace = self.namespace;
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let found = api.get_opt(name).await;
        let found = found.with_context(|| format!("cannot read {kind}/{name}"))?;
        found.with_context(|| format!("there is no {kind}/{name} in namespace {namespace}"))
    }
}

/// The id of a server that exists.
fn id(kind: &str, name: &str, id: Option<String>) -> anyhow::Result<String> {
    id.with_context(|| format!("{kind}/{name} has no server yet"))
}
