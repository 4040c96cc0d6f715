//! Simulated cloud and its servers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::simulated::{Client, PASSWORD, Simulator};

/// Timeout of waiting for the cloud.
const LIMIT: Duration = Duration::from_secs(60);

/// Cloud as a process, and a directory for drivers.
pub(crate) struct World {
    /// Ended on drop.
    _cloud: Simulator,
    client: Client,
    admin: Client,
    directory: tempfile::TempDir,
}

impl World {
    /// Opens a cloud without quotas, with further arguments of `ferrostack simulate`.
    pub(crate) fn open(binary: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("ferrostack-csi")
            .tempdir()?;
        let cloud = Simulator::start_with(binary, arguments)?;
        let mut world = Self {
            client: cloud.client()?,
            admin: cloud.client_of("admin")?,
            _cloud: cloud,
            directory,
        };
        let (admin, project) = (world.admin.project(), world.client.project());
        let path = format!("/volume/v3/{admin}/os-quota-sets/{project}");
        let quota =
            json!({"quota_set": {"volumes": -1, "gigabytes": -1, "snapshots": -1, "backups": -1}});
        world.admin.call("PUT", &path, Some(&quota))?;
        let path = format!("/compute/v2.1/os-quota-sets/{project}");
        let quota = json!({"quota_set": {"instances": -1, "cores": -1, "ram": -1}});
        world.admin.call("PUT", &path, Some(&quota))?;
        let url = world._cloud.url();
        let conf = format!(
            "[Global]\nauth-url = {url}/identity/v3\nusername = demo\npassword = {PASSWORD}\ntenant-name = demo\n\
             domain-name = Default\n"
        );
        std::fs::write(world.conf(), conf)?;
        Ok(world)
    }

    /// Directory of drivers, sockets and disks.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Path of the cloud.conf.
    pub(crate) fn conf(&self) -> PathBuf {
        self.directory().join("cloud.conf")
    }

    /// [`Client`] of the user, or of the administrator.
    pub(crate) fn client(&mut self, admin: bool) -> &mut Client {
        if admin {
            &mut self.admin
        } else {
            &mut self.client
        }
    }

    /// Creates a server without network; returns its id.
    pub(crate) fn server(&mut self, name: &str) -> anyhow::Result<String> {
        let flavors = self.get("/compute/v2.1/flavors")?;
        let images = self.get("/image/v2/images?limit=1")?;
        let body = json!({"server": {"name": name, "flavorRef": flavors["flavors"][0]["id"],
            "imageRef": images["images"][0]["id"], "networks": "none"}});
        let server = self.client.make("POST", "/compute/v2.1/servers", &body)?;
        let id = server["id"].as_str().context("the id of a server")?;
        let (begun, path) = (Instant::now(), format!("/compute/v2.1/servers/{id}"));
        while self.get(&path)?["server"]["status"] != "ACTIVE" {
            if begun.elapsed() > LIMIT {
                bail!("server {name} is not active");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(id.to_owned())
    }

    fn get(&mut self, path: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.client.get(path)?)?)
    }

    /// Detailed list of Cinder: `volumes`, `snapshots` or `backups`.
    pub(crate) fn all(&mut self, kind: &str) -> anyhow::Result<Vec<Value>> {
        let path = format!("/volume/v3/{}/{kind}/detail", self.client.project());
        let mut list = self.get(&path)?;
        Ok(serde_json::from_value(list[kind].take())?)
    }

    /// Resets the counters of requests.
    pub(crate) fn reset(&mut self) -> anyhow::Result<()> {
        self.client.call("DELETE", "/_simulator/requests", None)?;
        Ok(())
    }

    /// Writes and reads since [`World::reset`], without logins.
    pub(crate) fn requests(&mut self) -> anyhow::Result<(u64, u64)> {
        let answer = self.get("/_simulator/requests")?;
        let (mut writes, mut reads) = (0, 0);
        for entry in answer["requests"].as_array().into_iter().flatten() {
            let count = entry["count"].as_u64().unwrap_or(0);
            if entry["service"] == "identity" {
                continue;
            }
            match entry["method"] == "GET" {
                true => reads += count,
                false => writes += count,
            }
        }
        Ok((writes, reads))
    }
}
