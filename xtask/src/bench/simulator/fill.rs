//! Filling of the cloud.

use std::thread;

use anyhow::{Context, anyhow};
use serde_json::{Value, json};

use crate::simulated::{Client, Simulator};

/// Size of each server's user data in bytes, about as for a machine that joins a cluster.
pub(super) const USER_DATA: usize = 3_000;
/// Number of ports in one request.
const BULK: usize = 100;

/// Network of the servers, with their image and flavor.
pub(super) struct Network {
    pub(super) id: String,
    flavor: String,
    image: String,
}

/// Creates a [`Network`] with room for all servers, and looks up image and flavor.
pub(super) fn network(client: &mut Client) -> anyhow::Result<Network> {
    let body = json!({"network": {"name": "bench"}});
    let id = text(&client.make("POST", "/network/v2.0/networks", &body)?, "id")?;
    let body = json!({"subnet": {"network_id": id, "ip_version": 4, "cidr": "10.0.0.0/16"}});
    client.make("POST", "/network/v2.0/subnets", &body)?;
    let flavors: Value = serde_json::from_slice(&client.get("/compute/v2.1/flavors")?)?;
    let images: Value = serde_json::from_slice(&client.get("/image/v2/images?limit=1")?)?;
    Ok(Network {
        id,
        flavor: text(&flavors["flavors"][0], "id")?,
        image: text(&images["images"][0], "id")?,
    })
}

/// Creates `count` servers, each with its own port, over several connections.
pub(super) fn servers(
    simulator: &Simulator,
    network: &Network,
    count: usize,
    connections: usize,
) -> anyhow::Result<()> {
    thread::scope(|scope| {
        let workers: Vec<_> = (0..connections)
            .map(|worker| {
                scope.spawn(move || -> anyhow::Result<()> {
                    let mut client = simulator.client()?;
                    for batch in (worker..count.div_ceil(BULK)).step_by(connections) {
                        let size = BULK.min(count - batch * BULK);
                        servers_on_new_ports(&mut client, network, size)?;
                    }
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow!("a thread panicked"))??;
        }
        Ok(())
    })
}

fn servers_on_new_ports(client: &mut Client, network: &Network, size: usize) -> anyhow::Result<()> {
    let ports: Vec<Value> = (0..size)
        .map(|_| json!({"network_id": network.id, "name": "bench", "description": "of the benchmark"}))
        .collect();
    let created = client.make("POST", "/network/v2.0/ports", &json!({"ports": ports}))?;
    let user_data = "Zm9v".repeat(USER_DATA / 3);
    for port in created.as_array().context("a list of ports")? {
        let body = json!({"server": {"name": format!("bench-{}", text(port, "id")?),
            "flavorRef": network.flavor, "imageRef": network.image, "user_data": user_data,
            "tags": ["bench"], "metadata": {"a": "b"}, "networks": [{"port": port["id"]}]}});
        client.make("POST", "/compute/v2.1/servers", &body)?;
    }
    Ok(())
}

fn text(value: &Value, field: &str) -> anyhow::Result<String> {
    let found = value[field].as_str().map(str::to_owned);
    found.with_context(|| format!("no `{field}` in {value}"))
}
