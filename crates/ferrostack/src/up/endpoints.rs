//! The addresses chosen at the first start, stored because kubeconfigs and Secrets contain them, and the cloud in use.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::cli::Up;
use crate::connect::quoted;
use crate::data_dir::DataDir;

/// The content of `endpoints.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Endpoints {
    /// The address of the management API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) management: Option<SocketAddr>,
    /// The address of the simulated cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cloud: Option<SocketAddr>,
    /// The entry of clouds.yaml with which `up` was last started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) openstack: Option<String>,
    /// The second byte of the simulated cloud's floating IPs, 127.N.0.0/16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) floating: Option<u8>,
}

impl Endpoints {
    pub(super) fn read(data: &DataDir) -> anyhow::Result<Self> {
        match data.read("endpoints.json")? {
            None => Ok(Self::default()),
            Some(text) => serde_json::from_str(&text)
                .with_context(|| format!("{} is damaged", data.file("endpoints.json").display())),
        }
    }

    /// Rejects another address for the simulated cloud, since the credentials of stored clusters contain the current
    /// one.
    pub(super) fn check_simulated(&self, asked: Option<SocketAddr>) -> anyhow::Result<()> {
        match (asked, self.cloud) {
            (Some(asked), Some(known)) if asked.port() != 0 && asked != known => bail!(
                "--simulated-listen {asked}: the simulated cloud of this data directory has the address {known}, which its \
                 clusters use; choose another data directory with --data-dir"
            ),
            _ => Ok(()),
        }
    }

    /// Rejects a change between a real cloud and the simulated one.
    pub(super) fn check_cloud(
        &self,
        args: &Up,
        program: &str,
        data: &DataDir,
    ) -> anyhow::Result<()> {
        if args.switch_cloud {
            return Ok(());
        }
        let path = data.path().display();
        let start = format!("{program} up --data-dir {}", quoted(data.path()));
        match (&args.cloud, &self.openstack) {
            (Some(asked), None) if self.cloud.is_some() => bail!(
                "the data directory {path} was used with a simulated OpenStack, not with cloud `{asked}`: start it with `{start}`, \
                 choose another with --data-dir, or accept the change with --switch-cloud"
            ),
            (None, Some(before)) => bail!(
                "the data directory {path} was used with cloud `{before}`: start it with `{start} --cloud {before}`, choose \
                 another with --data-dir, or start a simulated OpenStack in it with --switch-cloud"
            ),
            _ => Ok(()),
        }
    }

    pub(super) fn write(&self, data: &DataDir) -> anyhow::Result<()> {
        Ok(data.write("endpoints.json", &serde_json::to_string_pretty(self)?)?)
    }
}

/// Listens on the requested address, or else the stored one, or else a free port of 127.0.0.1.
pub(super) async fn listen(
    what: &str,
    flag: &str,
    asked: Option<SocketAddr>,
    remembered: Option<SocketAddr>,
) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let address = match (asked, remembered) {
        (Some(asked), Some(remembered)) if asked.port() == 0 && asked.ip() == remembered.ip() => {
            remembered
        }
        (Some(asked), _) => asked,
        (None, Some(remembered)) => remembered,
        (None, None) => SocketAddr::from(([127, 0, 0, 1], 0)),
    };
    match TcpListener::bind(address).await {
        Ok(listener) => {
            let address = listener.local_addr()?;
            Ok((listener, address))
        }
        Err(source) if source.kind() == std::io::ErrorKind::AddrInUse => bail!(
            "{address}, the address of {what}, is in use by another program; stop that program{}",
            if asked.is_some() {
                format!(", or choose another address with {flag}")
            } else {
                String::new()
            }
        ),
        Err(source) => Err(source).with_context(|| format!("{what} cannot listen on {address}")),
    }
}
