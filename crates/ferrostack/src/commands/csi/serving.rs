//! `/healthz` and `/metrics` of the driver.

use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use csi_spec::ProbeRequest;
use csi_spec::endpoint::{self, Endpoint};
use grpc::Client;
use operator::health;
use operator::metrics::Metrics;
use tokio::net::{TcpStream, UnixStream};
use tokio_util::sync::CancellationToken;

use crate::cli::{CinderCsiPlugin, Listen};
use crate::serve;

/// Timeout for a response on the socket.
const LIMIT: Duration = Duration::from_secs(10);
/// Limit of the response in bytes.
const LARGEST: usize = 1 << 16;

/// Serves `/healthz` and `/metrics` at the addresses of the flags, until `stop`.
pub(super) async fn serve(
    args: &CinderCsiPlugin,
    socket: &Endpoint,
    metrics: Metrics,
    stop: &CancellationToken,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let health = health(socket.clone());
    let all = health.clone().merge(health::metrics(metrics));
    serve::plain("health and metrics", args.http_endpoint, all, stop, say).await?;
    let port = match args.health_port {
        Some(port) => Listen::On(endpoint::everywhere(port)),
        None => Listen::Off,
    };
    serve::plain("health", port, health, stop, say).await
}

/// Router of health: 200 after any response on the socket, ready or not, since a restart does not help an unready
/// cloud.
fn health(endpoint: Endpoint) -> Router {
    let answer = move || {
        let endpoint = endpoint.clone();
        async move {
            match probe(&endpoint).await {
                Ok(()) => (StatusCode::OK, "ok".to_owned()),
                Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error:#}")),
            }
        }
    };
    Router::new().route("/healthz", get(answer))
}

async fn probe(endpoint: &Endpoint) -> anyhow::Result<()> {
    let origin = "http://csi";
    let connected = || format!("{endpoint} cannot be reached");
    let client = match endpoint {
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(path).await.with_context(connected)?;
            Client::connect(stream, origin, LIMIT, LARGEST).await?
        }
        Endpoint::Tcp(address) => {
            let stream = TcpStream::connect(address).await.with_context(connected)?;
            Client::connect(stream, origin, LIMIT, LARGEST).await?
        }
    };
    client.call(&ProbeRequest {}).await?;
    Ok(())
}
