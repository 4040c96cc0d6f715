//! The embedded API server with kube-apiserver's files and options: for clusters with real kubelets, scheduler and
//! controllers (`tests/kubernetes/node up --api-server ferrostack`).

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use apiserver::{ApiServer, KubeletClient, Options, Store, Synchronous, server_config};
use clap::Parser;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The embedded API server, with options of kube-apiserver.
#[derive(Parser)]
struct Arguments {
    /// Where objects are kept: an SQLite file, which is created.
    #[arg(long)]
    database: PathBuf,
    #[arg(long, default_value = "127.0.0.1")]
    bind_address: IpAddr,
    #[arg(long, default_value_t = 6443)]
    secure_port: u16,
    /// Where pods reach the server; it becomes the endpoint of the Service `kubernetes`.
    #[arg(long)]
    advertise_address: Option<IpAddr>,
    #[arg(long)]
    tls_cert_file: PathBuf,
    #[arg(long)]
    tls_private_key_file: PathBuf,
    /// Whose client certificates are accepted. Pods verify the server with it as well.
    #[arg(long)]
    client_ca_file: PathBuf,
    #[arg(long)]
    service_account_signing_key_file: PathBuf,
    #[arg(long, default_value = "https://kubernetes.default.svc.cluster.local")]
    service_account_issuer: String,
    #[arg(long)]
    kubelet_certificate_authority: PathBuf,
    #[arg(long)]
    kubelet_client_certificate: PathBuf,
    #[arg(long)]
    kubelet_client_key: PathBuf,
    #[arg(long, value_delimiter = ',')]
    kubelet_preferred_address_types: Vec<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let client_ca = read(&arguments.client_ca_file)?;
    let tls = server_config(
        &read(&arguments.tls_cert_file)?,
        &read(&arguments.tls_private_key_file)?,
        Some(&client_ca),
    )?;
    let address = SocketAddr::new(arguments.bind_address, arguments.secure_port);
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("{address} cannot be listened on"))?;
    let server = ApiServer::open(options(&arguments, client_ca)?).await?;

    let stop = CancellationToken::new();
    let interrupt = stop.clone();
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        interrupt.cancel();
    });
    server.serve(listener, tls, stop).await;
    server.close().await;
    Ok(())
}

fn options(arguments: &Arguments, client_ca: String) -> anyhow::Result<Options> {
    let mut kubelets = KubeletClient::new(
        &read(&arguments.kubelet_certificate_authority)?,
        &read(&arguments.kubelet_client_certificate)?,
        &read(&arguments.kubelet_client_key)?.into(),
    )?;
    if !arguments.kubelet_preferred_address_types.is_empty() {
        kubelets = kubelets.preferring(arguments.kubelet_preferred_address_types.clone())?;
    }
    let advertised = arguments.advertise_address;
    Ok(Options {
        store: Store::Sqlite {
            path: arguments.database.clone(),
            synchronous: Synchronous::Full,
        },
        kubelet_client: Some(kubelets),
        root_ca: Some(client_ca.clone()),
        client_ca: Some(client_ca),
        service_account_key: Some(read(&arguments.service_account_signing_key_file)?.into()),
        service_account_issuer: arguments.service_account_issuer.clone(),
        kubernetes_service_port: Some(arguments.secure_port),
        advertised: advertised.map(|address| SocketAddr::new(address, arguments.secure_port)),
        kubernetes_version: "v1.34.2".to_owned(),
        ..Options::default()
    })
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}
