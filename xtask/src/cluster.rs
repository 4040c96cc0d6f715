//! Embedded API server in this process.

use std::path::Path;
use std::sync::Arc;

use apiserver::{ApiServer, Options, Store, server_config};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::https::{Access, certificates};

/// Serves an API server with its objects in memory, until `stop`.
pub(crate) async fn serve(directory: &Path, stop: CancellationToken) -> anyhow::Result<Access> {
    let tls = Arc::new(certificates(directory)?);
    let read = |name: &str| std::fs::read_to_string(directory.join(name));
    let ca = read("ca.crt")?;
    let server = ApiServer::open(Options {
        store: Store::Memory,
        client_ca: Some(ca.clone()),
        ..Options::default()
    })
    .await?;
    let config = server_config(&read("server.crt")?, &read("server.key")?, Some(&ca))?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        server.serve(listener, config, stop).await;
        server.close().await;
    });
    Ok(Access { address, tls })
}

/// Kubeconfig of the administrator, for the directory of the certificates.
pub(crate) fn kubeconfig(access: &Access) -> String {
    let cluster =
        json!({"server": format!("https://{}", access.address), "certificate-authority": "ca.crt"});
    let user = json!({"client-certificate": "admin.crt", "client-key": "admin.key"});
    json!({"apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": cluster}], "users": [{"name": "here", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}]})
    .to_string()
}
