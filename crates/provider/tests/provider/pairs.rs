//! `ports[].allowedAddressPairs` of machines that exist.

use std::collections::{BTreeMap, BTreeSet};

use api::infra::v1beta2::OpenStackMachine;
use openstack::Service;
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;
use testbed::Fuse;

use crate::world::{MINUTE, World, eventually};

/// What a cloud controller manager adds to the port of a node.
const OF_OTHERS: &str = "10.244.1.0/24";

fn spec(addresses: &[&str]) -> Value {
    let pairs: Vec<_> = addresses
        .iter()
        .map(|ip| json!({"ipAddress": ip}))
        .collect();
    json!({"ports": [{"allowedAddressPairs": pairs}, {"nameSuffix": "second"}]})
}

/// A ready worker with two ports, of which the first one has a pair of the spec and one of others.
async fn worker(world: &World) -> String {
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("md-0", false, spec(&["10.6.0.100"])).await;
    let machine = world.machine_ready("md-0").await;
    let ports = machine.status.unwrap().resources.unwrap().ports;
    assert_eq!(ports.len(), 2);
    let port = ports[0].id.clone();
    let session = world.session().await;
    let (network, of_others) = (session.network(), [OF_OTHERS.to_owned()]);
    let added = network.set_port_pairs(&port, &of_others, &[]);
    added.await.unwrap();
    port
}

async fn set(world: &World, addresses: &[&str]) {
    let change = json!({"spec": spec(addresses)});
    world.merge::<OpenStackMachine>("md-0", change).await;
}

/// The addresses of the pairs of a port.
async fn pairs(world: &World, port: &str) -> BTreeSet<String> {
    let session = world.session().await;
    let port = session.network().port(port).await.unwrap();
    let pairs = port.allowed_address_pairs.into_iter();
    pairs.map(|pair| pair.ip_address).collect()
}

/// Waits until the port has these pairs and the one of others, and the status names exactly these.
async fn has(world: &World, port: &str, addresses: &[&str]) {
    let texts = |texts: &[&str]| {
        texts
            .iter()
            .map(|&text| text.to_owned())
            .collect::<BTreeSet<_>>()
    };
    let expected = &texts(&[addresses, &[OF_OTHERS]].concat());
    let recorded = &texts(addresses);
    eventually(&format!("pairs {addresses:?}"), || async {
        let found = pairs(world, port).await;
        let machine = world.api::<OpenStackMachine>().get("md-0").await.unwrap();
        let resolved = machine
            .status
            .unwrap_or_default()
            .resolved
            .unwrap_or_default();
        let pairs = resolved
            .ports
            .iter()
            .flat_map(|port| &port.fields.allowed_address_pairs);
        let in_status: BTreeSet<_> = pairs.map(|pair| pair.ip_address.clone()).collect();
        if found == *expected && in_status == *recorded {
            Ok(())
        } else {
            Err(format!("{found:?}, status {in_status:?}"))
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_change_of_allowed_address_pairs_reaches_the_port_in_one_update_and_those_of_others_stay()
{
    let world = World::start().await;
    let port = worker(&world).await;
    has(&world, &port, &["10.6.0.100"]).await;
    for addresses in [
        &["10.6.0.101", "10.6.0.102"][..],
        &["10.6.0.102"],
        &[],
        &["10.7.0.0/24"],
    ] {
        world.cloud.reset_requests();
        set(&world, addresses).await;
        has(&world, &port, addresses).await;
        // Reconciled again, nothing is left to do.
        world.poke::<OpenStackMachine>("md-0").await;
        tokio::time::sleep(MINUTE).await;
        has(&world, &port, addresses).await;
        let expected = BTreeMap::from([("PUT /v2.0/ports/{id}".to_owned(), 1)]);
        assert_eq!(world.writes(), expected, "{addresses:?}");
    }
    let events = world.notes("md-0", "Normal").await;
    let update = "SuccessfulUpdatePort: Set the allowed address pairs of port md-0-0";
    assert!(
        events.iter().any(|event| event.starts_with(update)),
        "{events:?}"
    );

    // Somebody removes one of ours in the cloud.
    let path = format!("/ports/{port}");
    let body = json!({"port": {"allowed_address_pairs": [{"ip_address": OF_OTHERS}]}});
    world.request(Service::Network, "PUT", &path, body).await;
    has(&world, &port, &["10.7.0.0/24"]).await;
    world.delete_machine("md-0").await;
}

#[tokio::test(start_paused = true)]
async fn pairs_that_neutron_rejects_are_a_condition_until_they_are_corrected() {
    let world = World::start().await;
    let port = worker(&world).await;
    let fault = json!({"service": "network", "method": "PUT", "route": "/v2.0/ports/{id}",
        "status": 400, "message": "Invalid input for allowed_address_pairs"});
    world.fault(fault).await;
    set(&world, &["10.6.0.101"]).await;
    let condition = world
        .machine_says("md-0", "InstanceReady", "allowed_address_pairs")
        .await;
    assert_eq!(condition.reason, "PortUpdateFailed");
    world.mend().await;
    has(&world, &port, &["10.6.0.101"]).await;
    world.machine_ready("md-0").await;
}

/// Where the process ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// At the n-th write to the API server.
    Record(usize),
    /// At the write to the cloud.
    Update,
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_of_a_change_and_changed_again_the_port_has_what_the_spec_says() {
    let mut world = World::open(CloudOptions::default()).await;
    world.run();
    let port = worker(&world).await;
    has(&world, &port, &["10.6.0.100"]).await;
    world.kill().await;
    for (round, end) in [End::Record(1), End::Update, End::Record(2)]
        .into_iter()
        .enumerate()
    {
        let (first, second) = (format!("10.6.1.{round}"), format!("10.6.2.{round}"));
        set(&world, &[&first]).await;
        match end {
            End::Record(nth) => {
                let fuse = Fuse::at(nth);
                world.run_behind(&fuse);
                fuse.blown().await;
            }
            End::Update => {
                world.run();
                let writes = world.cut_at(1);
                eventually("the write to the cloud", || async {
                    writes.reached().then_some(()).ok_or("none yet".to_owned())
                })
                .await;
            }
        }
        world.kill().await;
        world.cloud.on_write(|_| {});
        // What the first change may have added is not forgotten.
        set(&world, &[&second]).await;
        world.run();
        has(&world, &port, &[&second]).await;
        world.kill().await;
    }
}
