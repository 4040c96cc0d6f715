//! Serves a simulated cloud on a loopback address, for trying it with the `openstack` command line client:
//! `cargo run -p ferrostack-simulator --example serve -- 127.0.0.1:5000 clouds.yaml [store.sqlite]`

use simulator::cloud::{Cloud, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let listen = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:5000".to_owned());
    let clouds_file = arguments.next().unwrap_or_else(|| "clouds.yaml".to_owned());
    let options = Options {
        store: arguments.next().map(Into::into),
        ..Options::default()
    };
    let cloud = Cloud::open(options).await?;
    let listener = tokio::net::TcpListener::bind(&listen).await?;
    let base = format!("http://{}", listener.local_addr()?);
    std::fs::write(&clouds_file, cloud.clouds_yaml(&base))?;
    axum::serve(listener, cloud.router(&base)).await?;
    Ok(())
}
