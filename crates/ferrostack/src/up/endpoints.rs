//! The addresses chosen at the first start, kept because kubeconfigs and Secrets name them.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::data_dir::DataDir;

/// The content of `endpoints.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Endpoints {
    /// The management API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) management: Option<SocketAddr>,
    /// The simulated cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cloud: Option<SocketAddr>,
    /// Second byte of the simulated cloud's floating IPs, 127.N.0.0/16.
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

    pub(super) fn write(&self, data: &DataDir) -> anyhow::Result<()> {
        Ok(data.write("endpoints.json", &serde_json::to_string_pretty(self)?)?)
    }
}

/// Listens on the address asked for, else the remembered one, else a free port of 127.0.0.1.
pub(super) async fn listen(
    what: &str,
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
                ", or choose another address with --listen"
            } else {
                ""
            }
        ),
        Err(source) => Err(source).with_context(|| format!("{what} cannot listen on {address}")),
    }
}
