//! Servers of all projects with their user data and actions, for administrators.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::server::{Server, UserData};
use super::{Compute, Keypair, SERVERS};
use crate::call::Call;
use crate::error::Result;
use crate::service::Service;

/// Server of any project, with the attributes that Nova returns to administrators only (microversion 2.3).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct HostedServer {
    /// Attributes that every user sees.
    #[serde(flatten)]
    pub server: Server,
    /// Host name that Nova derived from the server's name.
    #[serde(rename = "OS-EXT-SRV-ATTR:hostname")]
    pub hostname: String,
    /// User who created the server and owns the key pair.
    pub user_id: String,
    /// `True` for a server with a config drive, else empty.
    pub config_drive: String,
    /// User data of the guest. `None` without user data, or if the credential may not read them.
    #[serde(rename = "OS-EXT-SRV-ATTR:user_data", deserialize_with = "user_data")]
    pub user_data: Option<UserData>,
}

impl HostedServer {
    /// True if the server has a config drive.
    pub fn has_config_drive(&self) -> bool {
        self.config_drive.eq_ignore_ascii_case("true")
    }
}

/// Action on a server, as recorded by Nova.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct InstanceAction {
    /// `create`, `start`, `stop`, `reboot`, `rebuild`, ...
    pub action: String,
    /// Time of the request, in UTC without a zone, such as `2026-01-02T03:04:05.000000`.
    pub start_time: String,
}

impl Compute {
    /// Returns the servers of all projects with their user data, for administrators.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request; [`crate::ErrorKind::Denied`] for everyone else.
    pub async fn servers_of_all_projects(&self) -> Result<Vec<HostedServer>> {
        let call = Call::list(Service::Compute, "/servers/detail", &[])
            .microversion(SERVERS)
            .query("all_tenants", "true");
        self.session.list(call, "servers").await
    }

    /// Returns the latest actions on a server, up to a thousand, the newest first.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn actions_of_server(&self, id: &str) -> Result<Vec<InstanceAction>> {
        let route = "/servers/{id}/os-instance-actions";
        let call = Call::list(Service::Compute, route, &[id]).microversion(SERVERS);
        self.session.one(call, "instanceActions").await
    }

    /// Stops a server.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request; [`crate::ErrorKind::Conflict`] if the server is not running, or
    /// another action is not finished.
    pub async fn stop_server(&self, id: &str) -> Result<()> {
        self.act(id, "os-stop", &Value::Null).await
    }

    /// Sets a server to ERROR, for administrators. The fault of the server stays empty: no request can set it.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request; [`crate::ErrorKind::Denied`] for everyone else.
    pub async fn set_server_to_error(&self, id: &str) -> Result<()> {
        self.act(id, "os-resetState", &json!({"state": "error"}))
            .await
    }

    async fn act(&self, id: &str, action: &str, argument: &Value) -> Result<()> {
        let call = Call::post(Service::Compute, "/servers/{id}/action", &[id])
            .microversion(SERVERS)
            .body(action, argument);
        self.session.done(call).await
    }

    /// Returns a key pair of any user, for administrators.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request; [`crate::ErrorKind::Denied`] for everyone else.
    pub async fn keypair_of_user(&self, user: &str, name: &str) -> Result<Keypair> {
        let call = Call::get(Service::Compute, "/os-keypairs/{name}", &[name])
            .microversion(SERVERS)
            .query("user_id", user);
        self.session.one(call, "keypair").await
    }
}

/// Nova returns the base64 text as sent, possibly with line breaks.
fn user_data<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<UserData>, D::Error> {
    let text: String = Option::deserialize(deserializer)?.unwrap_or_default();
    let text: String = text.split_ascii_whitespace().collect();
    let data = STANDARD
        .decode(text)
        .map_err(|_| serde::de::Error::custom("the user data is not base64"))?;
    Ok((!data.is_empty()).then(|| UserData::new(Bytes::from(data))))
}

#[cfg(test)]
mod tests;
