//! Simulated cloud, and a directory for webhooks.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::https::certificates;
use crate::simulated::{Client, PASSWORD, Simulator};

const TOKENS: &str = "/identity/v3/auth/tokens";

/// Cloud as a process.
pub(crate) struct World {
    cloud: Simulator,
    admin: Client,
    directory: tempfile::TempDir,
    tls: Arc<rustls::ClientConfig>,
}

impl World {
    /// Opens a cloud, and writes certificates for webhooks.
    pub(crate) fn open(binary: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("ferrostack-keystone")
            .tempdir()?;
        let tls = Arc::new(certificates(directory.path())?);
        let cloud = Simulator::start(binary)?;
        Ok(Self {
            admin: cloud.client_of("admin")?,
            cloud,
            directory,
            tls,
        })
    }

    /// Directory of policies, logs and certificates.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// TLS settings for clients of a webhook.
    pub(crate) fn tls(&self) -> &Arc<rustls::ClientConfig> {
        &self.tls
    }

    /// URL of Keystone.
    pub(crate) fn keystone(&self) -> String {
        format!("{}/identity/v3", self.cloud.url())
    }

    /// Connection of the administrator.
    pub(crate) fn admin(&mut self) -> &mut Client {
        &mut self.admin
    }

    /// Opens a further connection of the administrator.
    pub(crate) fn connect(&self) -> anyhow::Result<Client> {
        self.cloud.client_of("admin")
    }

    /// Creates a user with the role member in the project demo.
    pub(crate) fn member(&mut self, name: &str) -> anyhow::Result<()> {
        let project = self.cloud.client()?.project();
        let body = json!({"user": {"name": name, "password": PASSWORD, "domain_id": "default"}});
        let user = self.admin.make("POST", "/identity/v3/users", &body)?;
        let user = user["id"].as_str().context("the id of a user")?;
        let roles: Value =
            serde_json::from_slice(&self.admin.get("/identity/v3/roles?name=member")?)?;
        let role = roles["roles"][0]["id"].as_str();
        let role = role.context("the id of a role")?;
        let path = format!("/identity/v3/projects/{project}/users/{user}/roles/{role}");
        self.admin.call("PUT", &path, None)?;
        Ok(())
    }

    /// Requests to Keystone since [`Self::reset`], without logins.
    pub(crate) fn requests(&mut self) -> anyhow::Result<u64> {
        let answer: Value = serde_json::from_slice(&self.admin.get("/_simulator/requests")?)?;
        let entries = answer["requests"].as_array().into_iter().flatten();
        let asked = entries.filter(|it| it["service"] == "identity" && it["method"] != "POST");
        Ok(asked.filter_map(|it| it["count"].as_u64()).sum())
    }

    /// Resets the counters of requests.
    pub(crate) fn reset(&mut self) -> anyhow::Result<()> {
        self.admin.call("DELETE", "/_simulator/requests", None)?;
        Ok(())
    }
}

/// Token for `auth`, the value of the key `auth` in the body of a login.
pub(crate) fn token(client: &mut Client, auth: &Value) -> anyhow::Result<String> {
    let (status, token, reply) = client.exchange("POST", TOKENS, Some(&json!({ "auth": auth })))?;
    if status != 201 {
        bail!("login: {status} {}", String::from_utf8_lossy(&reply));
    }
    token.context("the token of a login")
}

/// Login of a user in a project, both of the domain `Default`.
pub(crate) fn password(user: &str, project: &str) -> Value {
    let domain = json!({"name": "Default"});
    json!({
        "identity": {"methods": ["password"], "password": {"user": {"name": user, "domain": domain, "password": PASSWORD}}},
        "scope": {"project": {"name": project, "domain": domain}},
    })
}

/// Login by another token, for the same project.
pub(crate) fn of_token(token: &str) -> Value {
    let domain = json!({"name": "Default"});
    json!({
        "identity": {"methods": ["token"], "token": {"id": token}},
        "scope": {"project": {"name": "demo", "domain": domain}},
    })
}
