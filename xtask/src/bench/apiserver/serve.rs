//! The embedded API server in a separate process.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use apiserver::{ApiServer, Options, Store, Synchronous, server_config};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serves an [`ApiServer`] on SQLite, with each write on disk before its response, and with the certificates in
/// `directory`, until end of file on standard input.
pub(super) async fn serve(directory: &Path) -> anyhow::Result<()> {
    let read =
        |name: &str| std::fs::read_to_string(directory.join(name)).with_context(|| name.to_owned());
    let ca = read("ca.crt")?;
    let server = ApiServer::open(Options {
        store: Store::Sqlite {
            path: directory.join("objects.db"),
            synchronous: Synchronous::Full,
        },
        client_ca: Some(ca.clone()),
        ..Options::default()
    })
    .await?;
    let tls = server_config(&read("server.crt")?, &read("server.key")?, Some(&ca))?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address: SocketAddr = listener.local_addr()?;
    crate::print(&format!("{address}\n"))?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        stopped.cancel();
    });
    server.serve(listener, tls, stop).await;
    server.close().await;
    Ok(())
}
