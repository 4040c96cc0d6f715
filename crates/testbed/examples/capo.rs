//! State of cluster-api-provider-openstack for one cluster, in a real cloud and a management cluster: `capo CLUSTER CLOUD`, with
//! the cluster in the namespace `default` of KUBECONFIG and the cloud in OS_CLIENT_CONFIG_FILE. See [`testbed::Capo`], which
//! writes it without running the Go provider.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use kube::{Client, Config};
use openstack::{CloudConfig, Session, SessionOptions};
use testbed::Capo;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    rustls::crypto::ring::default_provider()
        .install_default()
        .unwrap();
    let mut arguments = std::env::args().skip(1);
    let (Some(cluster), Some(cloud)) = (arguments.next(), arguments.next()) else {
        panic!("usage: capo CLUSTER CLOUD");
    };
    let file = std::env::var("OS_CLIENT_CONFIG_FILE").expect("OS_CLIENT_CONFIG_FILE");
    let config = CloudConfig::parse(&std::fs::read_to_string(file).unwrap(), &cloud).unwrap();
    let session = Session::connect(config, &SessionOptions::default())
        .await
        .unwrap();
    let client = Client::try_from(Config::infer().await.unwrap()).unwrap();
    Capo::new(&session, &client, &cluster).build().await;
}
