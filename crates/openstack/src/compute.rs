//! Nova: servers, flavors, key pairs, availability zones, server groups.

mod catalog;
mod hosted;
mod server;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::error::Result;
use crate::service::Service;
use crate::session::Session;

pub use catalog::{AvailabilityZone, ComputeLimits, Flavor, Keypair, ServerGroup};
pub use hosted::{HostedServer, InstanceAction};
pub use server::{
    Address, AttachedVolume, BlockDevice, Fault, Server, ServerCreate, ServerFlavor, ServerNetwork,
    ServerRebuild, UserData,
};

/// Queens (2018): tags at creation (2.52), flavor details in servers (2.47), tag filters (2.26)
/// and booting from multi-attach volumes (2.60).
const SERVERS: &str = "2.60";
/// Type of a volume created by Nova.
const VOLUME_TYPE: &str = "2.67";
/// `soft-affinity` policies are listed from 2.15 on; 2.64 would rename `policies`.
const SERVER_GROUPS: &str = "2.15";

/// All users see the host names of their servers.
const HOST_NAMES: &str = "2.90";

/// Filter of a list of servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerQuery {
    /// Exact name.
    pub name: Option<String>,
    /// Required tags.
    pub tags: Vec<String>,
}

/// Calls to Nova.
#[derive(Clone, Debug)]
pub struct Compute {
    session: Session,
}

impl Session {
    /// Returns the calls to Nova.
    pub fn compute(&self) -> Compute {
        Compute::new(self.clone())
    }
}

impl Compute {
    fn new(session: Session) -> Self {
        Self { session }
    }

    /// Returns the project's servers in full.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn servers(&self, query: &ServerQuery) -> Result<Vec<Server>> {
        let mut call = Call::list(Service::Compute, "/servers/detail", &[]).microversion(SERVERS);
        if let Some(name) = &query.name {
            // Nova takes a regular expression.
            call = call.query("name", format!("^{}$", escaped(name)));
        }
        if !query.tags.is_empty() {
            call = call.query("tags", query.tags.join(","));
        }
        self.session.list(call, "servers").await
    }

    /// Returns the host names of the project's servers by server id. Empty for a Nova older than Xena (2021), which
    /// shows host names to administrators alone.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request, or of the request for the versions.
    pub async fn host_names(&self) -> Result<BTreeMap<String, String>> {
        let versions = self.session.versions(Service::Compute).await?;
        if !versions.has(2, 90) {
            return Ok(BTreeMap::new());
        }
        let call = Call::list(Service::Compute, "/servers/detail", &[]).microversion(HOST_NAMES);
        let servers: Vec<Server> = self.session.list(call, "servers").await?;
        let names = servers
            .into_iter()
            .map(|server| (server.id, server.hostname));
        Ok(names.collect())
    }

    /// Returns one server.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn server(&self, id: &str) -> Result<Server> {
        let call = Call::get(Service::Compute, "/servers/{id}", &[id]).microversion(SERVERS);
        self.session.one(call, "server").await
    }

    /// Creates a server. Nova returns little more than the id; the rest of the [`Server`] is copied from the request,
    /// with status `BUILD`.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_server(&self, server: &ServerCreate) -> Result<Server> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Created {
            id: String,
        }
        let mut body = Map::new();
        body.insert("server".to_owned(), server.body());
        if !server.scheduler_hints.is_empty() {
            let hints = Value::Object(server.scheduler_hints.clone());
            body.insert("os:scheduler_hints".to_owned(), hints);
        }
        let names_type = server
            .block_devices
            .iter()
            .any(|disk| disk.volume_type.is_some());
        let call = Call::post(Service::Compute, "/servers", &[])
            .microversion(if names_type { VOLUME_TYPE } else { SERVERS })
            .whole_body(&body);
        let created: Created = self.session.one(call, "server").await?;
        Ok(server.as_building(created.id))
    }

    /// Rebuilds a server from an image, with other user data (since microversion 2.57). Nova has only accepted the request
    /// when this returns.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn rebuild_server(&self, id: &str, rebuild: &ServerRebuild) -> Result<()> {
        let call = Call::post(Service::Compute, "/servers/{id}/action", &[id])
            .microversion(SERVERS)
            .body("rebuild", rebuild);
        self.session.done(call).await
    }

    /// Deletes a server. Nova lists the server until its ports and volumes are detached.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_server(&self, id: &str) -> Result<()> {
        let call = Call::delete(Service::Compute, "/servers/{id}", &[id]).microversion(SERVERS);
        self.session.done(call).await
    }

    /// Sets the tags of a server, replacing all.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn set_tags(&self, id: &str, tags: &[String]) -> Result<()> {
        let call = Call::put(Service::Compute, "/servers/{id}/tags", &[id])
            .microversion(SERVERS)
            .body("tags", &tags);
        self.session.done(call).await
    }

    /// Attaches a volume to a server. Nova has only reserved the volume when this returns, and attaches it afterwards.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn attach_volume(&self, server: &str, volume: &str) -> Result<()> {
        let route = "/servers/{id}/os-volume_attachments";
        let call = Call::post(Service::Compute, route, &[server])
            .microversion(SERVERS)
            .body("volumeAttachment", &json!({"volumeId": volume}));
        self.session.done(call).await
    }

    /// Starts to detach a volume from a server. Nova completes this after the call returns.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn detach_volume(&self, server: &str, volume: &str) -> Result<()> {
        let route = "/servers/{id}/os-volume_attachments/{volume}";
        let call = Call::delete(Service::Compute, route, &[server, volume]).microversion(SERVERS);
        self.session.done(call).await
    }

    /// Returns the last lines of a server's console.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn console_output(&self, id: &str, lines: Option<u32>) -> Result<String> {
        let call = Call::post(Service::Compute, "/servers/{id}/action", &[id])
            .microversion(SERVERS)
            .body(
                "os-getConsoleOutput",
                &lines.map_or(json!({}), |lines| json!({"length": lines})),
            );
        self.session.one(call, "output").await
    }

    /// Lists all flavors that the project can use.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn flavors(&self) -> Result<Vec<Flavor>> {
        let call = Call::list(Service::Compute, "/flavors/detail", &[]).microversion(SERVERS);
        self.session.list(call, "flavors").await
    }

    /// Returns one flavor.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn flavor(&self, id: &str) -> Result<Flavor> {
        let call = Call::get(Service::Compute, "/flavors/{id}", &[id]).microversion(SERVERS);
        self.session.one(call, "flavor").await
    }

    /// Returns a key pair of the user.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn keypair(&self, name: &str) -> Result<Keypair> {
        let call =
            Call::get(Service::Compute, "/os-keypairs/{name}", &[name]).microversion(SERVERS);
        self.session.one(call, "keypair").await
    }

    /// Returns the key pairs of the user.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn keypairs(&self) -> Result<Vec<Keypair>> {
        #[derive(Deserialize)]
        struct Entry {
            keypair: Keypair,
        }
        let call = Call::list(Service::Compute, "/os-keypairs", &[]).microversion(SERVERS);
        let entries: Vec<Entry> = self.session.list(call, "keypairs").await?;
        Ok(entries.into_iter().map(|entry| entry.keypair).collect())
    }

    /// Returns the availability zones.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn availability_zones(&self) -> Result<Vec<AvailabilityZone>> {
        let call = Call::get(Service::Compute, "/os-availability-zone", &[]).microversion(SERVERS);
        self.session.one(call, "availabilityZoneInfo").await
    }

    /// Returns the project's server groups.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn server_groups(&self) -> Result<Vec<ServerGroup>> {
        let call =
            Call::list(Service::Compute, "/os-server-groups", &[]).microversion(SERVER_GROUPS);
        self.session.list(call, "server_groups").await
    }

    /// Creates a server group.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn create_server_group(&self, name: &str, policy: &str) -> Result<ServerGroup> {
        let call = Call::post(Service::Compute, "/os-server-groups", &[])
            .microversion(SERVER_GROUPS)
            .body("server_group", &json!({"name": name, "policies": [policy]}));
        self.session.one(call, "server_group").await
    }

    /// Deletes a server group; its servers stay.
    ///
    /// # Errors
    /// The [`Error`] of the request.
    pub async fn delete_server_group(&self, id: &str) -> Result<()> {
        let call = Call::delete(Service::Compute, "/os-server-groups/{id}", &[id]);
        self.session.done(call.microversion(SERVER_GROUPS)).await
    }

    /// Returns the limits of the project and their use.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn limits(&self) -> Result<ComputeLimits> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Limits {
            absolute: ComputeLimits,
        }
        let call = Call::get(Service::Compute, "/limits", &[]).microversion(SERVERS);
        Ok(self.session.one::<Limits>(call, "limits").await?.absolute)
    }
}

/// Returns a regular expression that matches exactly `name`.
fn escaped(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for letter in name.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}
