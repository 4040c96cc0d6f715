//! Serves an API server on loopback for trying it with kubectl.
//!
//! `cargo run -p ferrostack-apiserver --example serve -- DIRECTORY [memory]` keeps its objects in
//! `DIRECTORY/objects.db` (or nowhere) and writes `DIRECTORY/kubeconfig`.

use std::error::Error;
use std::path::PathBuf;

use apiserver::{ApiServer, Options, Store, Synchronous, server_config};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("the directory is missing")?);
    std::fs::create_dir_all(&directory)?;
    let store = match arguments.next().as_deref() {
        Some("memory") => Store::Memory,
        _ => Store::Sqlite {
            path: directory.join("objects.db"),
            synchronous: Synchronous::Full,
        },
    };

    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "example-ca");
    let ca_key = KeyPair::generate()?;
    let ca = params.self_signed(&ca_key)?.pem();
    let issuer = Issuer::new(params, ca_key);
    let key = KeyPair::generate()?;
    let names = [
        "127.0.0.1",
        "10.96.0.1",
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let names: Vec<String> = names.map(str::to_owned).to_vec();
    let certificate = CertificateParams::new(names)?.signed_by(&key, &issuer)?;
    let admin_key = KeyPair::generate()?;
    let mut admin = CertificateParams::default();
    admin
        .distinguished_name
        .push(DnType::CommonName, "system:admin");
    admin
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    let admin = admin.signed_by(&admin_key, &issuer)?;

    let options = Options {
        store,
        client_ca: Some(ca.clone()),
        root_ca: Some(ca.clone()),
        kubernetes_service_port: Some(6443),
        kubernetes_version: "v1.34.2".to_owned(),
        ..Options::default()
    };
    let server = ApiServer::open(options).await?;
    let tls = server_config(&certificate.pem(), &key.serialize_pem(), Some(&ca))?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    for (name, text) in [
        ("ca.pem", ca),
        ("admin.pem", admin.pem()),
        ("admin.key", admin_key.serialize_pem()),
    ] {
        std::fs::write(directory.join(name), text)?;
    }
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: example\nclusters:\n- name: example\n  cluster: {{server: \"https://{address}\", certificate-authority: ca.pem}}\nusers:\n- name: admin\n  user: {{client-certificate: admin.pem, client-key: admin.key}}\ncontexts:\n- name: example\n  context: {{cluster: example, user: admin}}\n"
    );
    std::fs::write(directory.join("kubeconfig"), kubeconfig)?;

    let stop = CancellationToken::new();
    let interrupt = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupt.cancel();
        }
    });
    server.serve(listener, tls, stop).await;
    server.close().await;
    Ok(())
}
